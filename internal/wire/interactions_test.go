package wire

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestInteractionsTemplate(t *testing.T) {
	const learned = `{"index":1,"delta":{"text":"a","type":"text"},"event_type":"step.delta","event_id":"e1","metadata":{}}`
	for _, tc := range []struct {
		doc string
		hot bool
	}{
		{strings.Replace(learned, `"a"`, `"\"b\" €"`, 1), true},
		{strings.Replace(learned, `"e1"`, `"quite \"another\""`, 1), true},
		{strings.Replace(learned, `"index":1`, `"index":2`, 1), false},
		{strings.Replace(learned, `"text"}`, `"text","annotations":[]}`, 1), false},
		{strings.Replace(learned, `{}}`, `{"x":1}}`, 1), false},
		{strings.Replace(learned, `"e1"`, `"e1`, 1), false},
		{learned[:40], false},
	} {
		p := newInteractions(quiet()).(*interactions)
		p.Parse(nil, scan.Value(learned))
		if _, _, hot := p.deltas.match([]byte(tc.doc)); hot != tc.hot {
			t.Errorf("match = %v, want %v: %s", hot, tc.hot, tc.doc)
		}
	}
}

func FuzzInteractions(f *testing.F) {
	f.Add([]byte(`{"index":1,"delta":{"text":"a","type":"text"},"event_type":"step.delta","event_id":"e"}`))
	f.Add([]byte(`{"object":"interaction","status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"x","annotations":[{"type":"file_citation","file_name":"a","end_index":1},{"type":"url_citation","url":"u","start_index":1,"end_index":"2"}]}]},{"type":"google_search_result","result":[{"search_suggestions":"<"}]}]}`))
	f.Add([]byte(`{"outputs":[{"type":"text","text":"x"}],"error":{}}`))
	fuzzGoogle(f, "gemini-interactions")
}

func BenchmarkInteractions(b *testing.B) {
	docs := [][]byte{[]byte(`{"index":1,"step":{"type":"model_output"},"event_type":"step.start"}`)}
	for range 300 {
		docs = append(docs, []byte(`{"index":1,"delta":{"text":"Mörike wrote of the mountain in spring, the notes of a later hand add, and ","type":"text"},"event_type":"step.delta"}`))
	}
	var list []string
	for i := range 20 {
		list = append(list, `{"start_index":`+strconv.Itoa(i*80)+`,"end_index":`+strconv.Itoa(i*80+40)+`,"url":"https://redirect.example/`+strings.Repeat("Ab3_", 40)+`","title":"berge.example","type":"url_citation"}`)
	}
	docs = append(docs, []byte(`{"index":1,"delta":{"annotations":[`+strings.Join(list, ",")+`],"type":"text_annotation_delta"},"event_type":"step.delta"}`))
	benchStreams(b, benchStream{"stream", "gemini-interactions", docs})
}
