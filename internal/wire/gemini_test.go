package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/scan"
)

func TestGenerateFinish(t *testing.T) {
	for reason, want := range map[string]string{
		`"STOP"`:                      finishStop,
		`"stop"`:                      finishStop,
		`1`:                           finishStop,
		`"MAX_TOKENS"`:                finishLength,
		`"RECITATION"`:                finishFilter,
		`"BLOCKLIST"`:                 finishFilter,
		`"PROHIBITED_CONTENT"`:        finishFilter,
		`"SPII"`:                      finishFilter,
		`"LANGUAGE"`:                  finishFilter,
		`"IMAGE_SAFETY"`:              finishFilter,
		`"MALFORMED_FUNCTION_CALL"`:   finishError,
		`"UNEXPECTED_TOOL_CALL"`:      finishError,
		`"OTHER"`:                     "",
		`"FINISH_REASON_UNSPECIFIED"`: "none",
		`null`:                        "none",
	} {
		got := record(t, "gemini-generate", "", `{"candidates":[{"finishReason":`+reason+`}]}`)
		expected := []string{"finish 0 " + want, "end"}
		switch want {
		case "":
			expected = []string{"end"} // it ended for an unknown reason
		case "none":
			expected = nil
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}

// A chunk that differs from the learned one only in text and usage matches the template; others do not.
func TestGenerateTemplate(t *testing.T) {
	const learned = `{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"x":[{"tokenCount":99}]},"modelVersion":"m"}`
	for _, tc := range []struct {
		doc string
		hot bool
	}{
		{strings.Replace(learned, `"a"`, `"longer \"text\" \u00e9"`, 1), true},
		{strings.Replace(learned, `:9,`, `:10,`, 1), true},
		{strings.Replace(learned, `:99}`, `:100}`, 1), true},
		{strings.Replace(learned, `:99}`, `:1}`, 1), true},
		{strings.Replace(learned, `:99}`, `:}`, 1), false},
		{strings.Replace(learned, `"index":0`, `"index":1`, 1), false},
		{strings.Replace(learned, `"role"`, `"thought":true,"role"`, 1), false},
		{strings.Replace(learned, `"index":0`, `"index":0,"finishReason":"STOP"`, 1), false},
		{strings.Replace(learned, `"index":0`, `"index":0,"groundingMetadata":{"webSearchQueries":["q"]}`, 1), false},
		{strings.Replace(learned, `"m"}`, `"m","error":{}}`, 1), false},
		{strings.TrimSuffix(learned, "}"), false},
		{learned[:60], false},
	} {
		g := newGenerate(quiet()).(*generate)
		g.Parse(nil, scan.Value(learned))
		if _, _, hot := g.chunks.match([]byte(tc.doc)); hot != tc.hot {
			t.Errorf("match = %v, want %v: %s", hot, tc.hot, tc.doc)
		}
	}
}

// However a stream is split, its operations are those of the body, except for the pieces of text.
func TestGenerateStreamEqualsBody(t *testing.T) {
	const meta = `"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u"}}],"groundingSupports":[{"segment":{"startIndex":3,"endIndex":7,"text":"界🍰"},"groundingChunkIndices":[0]}]}`
	quote := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	body := record(t, "gemini-generate", "", `{"candidates":[{"content":{"parts":[{"text":`+quote("世界🍰e\u0301")+`}]},`+meta+`}]}`)
	var docs []string
	for _, r := range "世界🍰e\u0301" {
		docs = append(docs, `{"candidates":[{"content":{"parts":[{"text":`+quote(string(r))+`}]}}]}`)
	}
	docs = append(docs, `{"candidates":[{"content":{"parts":[{"text":""}]},`+meta+`}]}`)
	if diff := cmp.Diff(withoutText(body), withoutText(record(t, "gemini-generate", "", docs...))); diff != "" {
		t.Errorf("body and stream differ (-body +stream):\n%s", diff)
	}
}

// Words that are supported by a new chunk in each event cost the same each time: of the sources of former lists the
// last maxRefs are kept, and none is reported twice.
func TestGenerateSupportOfNewChunks(t *testing.T) {
	const events = 3 * maxRefs
	var docs []string
	for i := range events {
		docs = append(docs, fmt.Sprintf(`{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://%d.example/"}}],"groundingSupports":[{"segment":{"endIndex":4,"text":"aaaa"},"groundingChunkIndices":[0]}]}}]}`, i))
	}
	lines := record(t, "gemini-generate", "", docs...)
	for prefix, want := range map[string]int{
		"source ": events, "cite ": events, "issue " + IssueNotRepeated: events - 1, "issue " + IssueLimit: events - maxRefs,
	} {
		if got := countPrefix(lines, prefix); got != want {
			t.Errorf("%d lines begin with %q, want %d", got, prefix, want)
		}
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "cite ") && strings.Count(line, " -> ") > maxRefs {
			t.Fatalf("operation %d has %d refs, at most %d", i, strings.Count(line, " -> "), maxRefs)
		}
	}
	last := lines[len(lines)-1]
	for i, want := range map[int]bool{events - 1: true, events - maxRefs: true, events - maxRefs - 1: false, 1: false} {
		if got := strings.Contains(last+" ", numbered(" -> chunk:0~", i)+" "); got != want {
			t.Errorf("the last citation names the chunk of event %d: %v, want %v", i, got, want)
		}
	}
}

func withoutText(lines []string) []string {
	var kept []string
	for _, l := range lines {
		if !strings.HasPrefix(l, "text ") {
			kept = append(kept, l)
		}
	}
	return kept
}

func TestSiteOf(t *testing.T) {
	for title, want := range map[string]string{
		"wetter.example": "wetter.example", "sub.müller.example": "sub.müller.example", "example.com": "example.com",
		"": "", "Wetter": "", "Das Wetter. Heute": "", "report.pdf": "", "v1.2": "", "a..b": "", ".com": "", "x.": "", "https://a.example": "",
	} {
		if got := siteOf(title); got != want {
			t.Errorf("siteOf(%q) = %q, want %q", title, got, want)
		}
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}],"usageMetadata":{"a":1}}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"}]},"finishReason":"STOP","groundingMetadata":{"groundingChunks":[{"web":{"uri":"u","title":"t"}},{"retrievedContext":{"ragChunk":{"pageSpan":{}}}}],"groundingSupports":[{"segment":{"startIndex":1,"endIndex":2,"partIndex":1,"text":"b"},"groundingChunkIndices":[0,1],"confidenceScores":[1]}]}}]}`))
	f.Add([]byte(`[{"response":{"candidates":[{"citationMetadata":{"citations":[{},{"uri":"u","publicationDate":{"year":1}}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"x"}]}}]}}]`))
	fuzzGoogle(f, "gemini-generate")
}

// fuzzGoogle lets a parser read any bytes, twice, and formats the operations.
func fuzzGoogle(f *testing.F, format string) {
	f.Helper()
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := New(format, &Config{Emit: func(op *Op) { _ = line(op) }})
		if err != nil {
			t.Fatal(err)
		}
		Detect(nil, doc)
		p.Parse(nil, doc)
		p.Parse([]byte("step.delta"), doc)
		p.Parse(nil, doc[:len(doc)/2])
		p.Close()
	})
}

// generateStream returns the chunks of an answer of about n bytes of text.
func generateStream(n int) [][]byte {
	var docs [][]byte
	text := `Mörike wrote of the mountain in spring, the notes of a later hand add, and `
	for size, tokens := 0, 7; size < n; size += len(text) {
		tokens += 15
		docs = append(docs, []byte(`{"candidates": [{"content": {"parts": [{"text": `+strconv.Quote(text)+`}],"role": "model"},"index": 0,"groundingMetadata": {}}],"usageMetadata": {"promptTokenCount": 22,"candidatesTokenCount": `+strconv.Itoa(tokens)+`,"totalTokenCount": `+strconv.Itoa(tokens+90)+`,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 22}],"thoughtsTokenCount": 68},"modelVersion": "gemini-x","responseId": "M1GDaNrGOJ7NkdUPqvinwAs"}`))
	}
	var chunks, supports []string
	for i := range 20 {
		chunks = append(chunks, `{"web": {"uri": "https://redirect.example/`+strings.Repeat("Ab3_", 40)+strconv.Itoa(i)+`","title": "berge.example"}}`)
		supports = append(supports, fmt.Sprintf(`{"segment": {"startIndex": %d,"endIndex": %d,"text": %q},"groundingChunkIndices": [%d]}`, i*len(text), i*len(text)+20, text[:20], i))
	}
	docs = append(docs, []byte(`{"candidates": [{"content": {"parts": [{"text": "."}],"role": "model"},"finishReason": "STOP","index": 0,"groundingMetadata": {"groundingChunks": [`+strings.Join(chunks, ",")+`],"groundingSupports": [`+strings.Join(supports, ",")+`],"searchEntryPoint": {"renderedContent": "`+strings.Repeat(`<style>\n.x{}\n`, 200)+`"}}}]}`))
	return docs
}

func BenchmarkGenerate(b *testing.B) {
	benchStreams(b, benchStream{"stream", "gemini-generate", generateStream(20_000)})
}

// The deltas of a stream cost no allocation.
func TestGoogleDeltaAllocs(t *testing.T) {
	for format, docs := range map[string][2]string{
		"gemini-generate": {
			`{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"usageMetadata":{"totalTokenCount":9},"modelVersion":"m"}`,
			`{"candidates":[{"content":{"parts":[{"text":"b\n\u00e9"}],"role":"model"},"index":0}],"usageMetadata":{"totalTokenCount":10},"modelVersion":"m"}`,
		},
		"gemini-interactions": {
			`{"index":1,"delta":{"text":"a","type":"text"},"event_type":"step.delta"}`,
			`{"index":1,"delta":{"text":"b\n\u00e9","type":"text"},"event_type":"step.delta"}`,
		},
	} {
		p, err := New(format, quiet())
		if err != nil {
			t.Fatal(err)
		}
		p.Parse(nil, []byte(docs[0]))
		next := []byte(docs[1])
		p.Parse(nil, next)
		if n := testing.AllocsPerRun(100, func() { p.Parse(nil, next) }); n != 0 {
			t.Errorf("%s: %v allocations for a delta", format, n)
		}
	}
}

func BenchmarkGoogleDelta(b *testing.B) {
	for format, doc := range map[string]string{
		"gemini-generate":     `{"candidates": [{"content": {"parts": [{"text": "the mountain in spring"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 22,"candidatesTokenCount": 15,"totalTokenCount": 90},"modelVersion": "gemini-x","responseId": "r"}`,
		"gemini-interactions": `{"index":1,"delta":{"text":"the mountain in spring","type":"text"},"event_type":"step.delta"}`,
	} {
		b.Run(format, func(b *testing.B) {
			p, err := New(format, quiet())
			if err != nil {
				b.Fatal(err)
			}
			data := []byte(doc)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p.Parse(nil, data)
			}
		})
	}
}
