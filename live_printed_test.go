package ibid_test

import (
	"bytes"
	"testing"

	"github.com/ibidhq/ibid"
)

// A stream's marks that the model's own list explains at the end were written as they came: nothing is added to them.
func TestLiveListOfItsOwn(t *testing.T) {
	for _, name := range []string{"footnotes-of-its-own", "list-of-its-own"} {
		v := readVector(t, "testdata/openai-chat/"+name+".txtar")
		var out bytes.Buffer
		live := ibid.Live{W: &out, Style: ibid.StylePlain, List: true}
		d := ibid.Decoder{OnEvent: live.Event}
		for stream := v.section("stream.sse"); len(stream) > 0; stream = stream[min(len(stream), 9):] {
			_, _ = d.Write(stream[:min(len(stream), 9)])
		}
		_ = d.Close()
		if a, _ := d.Answer(); out.String() != a.Text || len(a.Citations) != 2 {
			t.Errorf("%s: %d citations, and instead of the text:\n%s", name, len(a.Citations), out.String())
		}
	}
}
