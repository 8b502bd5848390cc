package api_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// traceWriter writes an OTLP request of one trace, span by span.
type traceWriter struct {
	words []string
	said  []string // sentences of documents, which answers repeat
	rng   *rand.Rand
	spans []map[string]any
}

// text returns sentences of about n bytes.
func (w *traceWriter) text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		for i := range 8 {
			word := w.words[w.rng.IntN(len(w.words))]
			if i == 0 {
				word = strings.ToUpper(word[:1]) + word[1:]
			}
			b.WriteString(word + " ")
		}
		fmt.Fprintf(&b, "in %d. ", 1900+w.rng.IntN(120))
	}
	return b.String()
}

func (w *traceWriter) span(name string, attrs map[string]string) {
	list := []any{}
	for key, value := range attrs {
		list = append(list, map[string]any{"key": key, "value": map[string]any{"stringValue": value}})
	}
	n := len(w.spans) + 1
	w.spans = append(w.spans, map[string]any{
		"traceId": strings.Repeat("a", 32), "spanId": fmt.Sprintf("%016x", n), "name": name,
		"startTimeUnixNano": fmt.Sprint(1_700_000_000_000_000_000 + n*1_000_000), "endTimeUnixNano": fmt.Sprint(1_700_000_000_000_900_000 + n*1_000_000),
		"attributes": list,
	})
}

// requests returns the spans in requests of at most n.
func (w *traceWriter) requests(tb testing.TB, n int) (bodies []string) {
	tb.Helper()
	for rest := w.spans; len(rest) > 0; {
		some := rest[:min(n, len(rest))]
		rest = rest[len(some):]
		bodies = append(bodies, string(testenv.Must(json.Marshal(map[string]any{"resourceSpans": []any{
			map[string]any{"scopeSpans": []any{map[string]any{"spans": some}}},
		}}))(tb)))
	}
	return bodies
}

// BenchmarkSummary measures the summary of a run of 20 MB of spans: 60 retrievers with 300 documents each, and 1,500
// calls of models.
func BenchmarkSummary(b *testing.B) {
	w := &traceWriter{rng: rand.New(rand.NewPCG(1, 2))}
	for range 3000 {
		word := ""
		for range 2 + w.rng.IntN(3) {
			word += string("bcdfghklmnprst"[w.rng.IntN(14)]) + string("aeiou"[w.rng.IntN(5)])
		}
		w.words = append(w.words, word)
	}
	for i := range 60 {
		attrs := map[string]string{"openinference.span.kind": "RETRIEVER", "input.value": w.text(60)}
		for k := range 300 {
			attrs[fmt.Sprintf("retrieval.documents.%d.document.id", k)] = fmt.Sprintf("doc-%d-%d", i, k)
			content := w.text(1000)
			attrs[fmt.Sprintf("retrieval.documents.%d.document.content", k)] = content
			w.said = append(w.said, content[:strings.Index(content, ". ")+2])
		}
		w.span("retrieve", attrs)
	}
	for range 1500 {
		answer := ""
		for range 3 {
			answer += w.said[w.rng.IntN(len(w.said))]
		}
		w.span("answer", map[string]string{
			"openinference.span.kind": "LLM", "llm.model_name": "m", "input.value": w.text(100), "output.value": answer,
		})
	}
	n := newNode(b, nil)
	size := 0
	for _, body := range w.requests(b, 200) {
		size += len(body)
		if res := n.do(b, "POST", "/v1/traces", body, "Content-Type", "application/json"); res.StatusCode != http.StatusOK {
			b.Fatal(res.StatusCode, res.body)
		}
	}
	run := strings.Repeat("a", 32)
	for _, changed := range []bool{true, false} {
		b.Run(fmt.Sprint("changed=", changed), func(b *testing.B) {
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				if changed {
					question := &trail.Trail{Question: fmt.Sprint("Question ", i)}
					testenv.Must(n.store.Record(b.Context(), store.DefaultTenant, &store.Recording{Run: run, Trail: question}))(b)
				}
				testenv.Must(n.api.Summary(b.Context(), store.DefaultTenant, run))(b)
			}
		})
	}
}
