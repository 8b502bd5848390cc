package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

func delta(kind string, at int, data any) *bus.Live {
	raw, _ := json.Marshal(data)
	return &bus.Live{Kind: kind, AnswerID: "ans_1", At: at, Data: raw}
}

// The offsets of deltas are in the unit of the stream, also where pieces repeat what was sent; what begins beyond the
// known text waits for a replay.
func TestUnitText(t *testing.T) {
	row := func(start, end int) gateway.LiveCitations {
		return gateway.LiveCitations{Key: "k", Citations: []ibid.DocumentCitation{{TextStart: &start, TextEnd: &end}}}
	}
	for unit, want := range map[ibid.Unit][]int{"": {0, 5, 9, 5, 9}, ibid.CodePoint: {0, 2, 6, 2, 6}, ibid.UTF16: {0, 3, 7, 3, 7}} {
		u := &unitText{unit: unit}
		if _, ok := u.convert(delta(gateway.LiveText, 5, "fish")); ok != (unit == "") {
			t.Errorf("%s: a piece without its beginning: %v", unit, ok)
		}
		var got []int
		for _, m := range []*bus.Live{
			delta(gateway.LiveText, 0, "𝄞 "), delta(gateway.LiveText, 5, "fish"), delta(gateway.LiveText, 5, "fish"), delta(gateway.LiveText, 9, ""),
		} {
			out, ok := u.convert(m)
			if !ok {
				t.Fatalf("%s: %+v", unit, m)
			}
			got = append(got, out.At)
		}
		out, ok := u.convert(delta(gateway.LiveCitation, 9, row(5, 9)))
		var rows gateway.LiveCitations
		testenv.OK(t, json.Unmarshal(out.Data, &rows))
		got = append(append(got[:2], got[3]), *rows.Citations[0].TextStart, *rows.Citations[0].TextEnd)
		if !ok || out.At != got[2] {
			t.Errorf("%s: %+v", unit, out)
		}
		testenv.Equal(t, string(unit), want, got)
		if _, ok := u.convert(delta(gateway.LiveCitation, 9, row(5, 10))); ok != (unit == "") {
			t.Errorf("%s: a citation of what has not arrived: %v", unit, ok)
		}
		u.ended(json.RawMessage(`{"answer_id": "ans_1"}`))
		if u.size != 0 || len(u.texts) != 0 {
			t.Errorf("%s: %d bytes are kept", unit, u.size)
		}
		if _, ok := u.convert(delta(gateway.LiveText, 0, strings.Repeat("x", maxUnitText+1))); ok != (unit == "") {
			t.Errorf("%s: more than the limit: %v", unit, ok)
		}
	}
}
