package ibid_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
)

// A stream may name its sources one by one, however many they are: marks find the last as well.
func TestMappingOfManyEvents(t *testing.T) {
	const n = 300
	var stream strings.Builder
	for i := range n {
		fmt.Fprintf(&stream, "data: {\"found\": {\"name\": \"Page %d\"}}\n\ndata: {\"say\": \"Fact %d [%d]. \"}\n\n", i+1, i+1, i+1)
	}
	a, err := ibid.Decode([]byte(stream.String()), &ibid.DecodeOptions{
		Provider: "own", Mappings: []ibid.Mapping{{Provider: "own", Text: "say", List: "found"}},
	})
	if err != nil || len(a.Sources) != n || len(a.Citations) != n || len(a.Issues) > 0 || !a.Complete {
		t.Errorf("%d sources, %d citations, complete %v, issues %v, error %v",
			len(a.Sources), len(a.Citations), a.Complete, a.Issues, err)
	}
}

func FuzzMapping(f *testing.F) {
	f.Add([]byte(`{"a": {"b": "One [x]."}, "c": [{"d": "T", "m": "x", "p": ["1", "2"]}]}`), "a.b", "", "c", "m", uint64(1))
	f.Add([]byte("data: {\"a\":\"1\"}\n\ndata: {\"c\":{\"d\":\"T\"}}\n\ndata: {\"b\":\"12 [1]\"}\n\n"), "b", "a", "c", "", uint64(2))
	f.Add([]byte("{\"a\":[\"1\",\"2\"]}\n{\"c\":{\"x\":{\"d\":\"T\"}}}\n"), "b", "a.*", "c", "", uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, text, delta, list, mark string, seed uint64) {
		m := ibid.Mapping{Provider: "own", Text: text, Delta: delta, List: list, Mark: mark, Passage: "p.*"}
		if m.Check() != nil {
			t.Skip("not a mapping")
		}
		fuzzReading(t, &ibid.DecodeOptions{
			Provider: "own", Mappings: []ibid.Mapping{m},
			Limits: ibid.Limits{Parts: 50, Sources: 50, Citations: 50, Issues: 50, Document: 1 << 20},
		}, data, seed)
	})
}
