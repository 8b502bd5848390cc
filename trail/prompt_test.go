package trail_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/trail"
)

// pasted is what matters of a source from a prompt.
type pasted struct{ ID, Title, URL, Content string }

func TestSourcesFromPrompt(t *testing.T) {
	tests := []struct {
		name, prompt string
		want         []pasted
	}{
		{name: "nothing", prompt: "What is the capital of Chile?"},
		{name: "a list is no documents", prompt: "Do three things:\n[3] sing\n[5] dance\n"},
		{name: "one short item", prompt: "[1] see there"},
		{
			name:   "what a tool found",
			prompt: `{"query":"x","results":[{"id":"a","title":"A","url":"https://a.example/","text":"Words of a."},{"city":"Quito","metres":2850},"Bare words."," "]}`,
			want:   []pasted{{"a", "A", "https://a.example/", "Words of a."}, {"doc:2", "", "", `{"city":"Quito","metres":2850}`}, {"doc:3", "", "", "Bare words."}},
		},
		{
			name: "what a tool found, in the names of a run",
			prompt: `[{"document_id":"d-1","document_title":"A","score":0.9,"content":"Words of a, in full.","excerpt":"Words of a"},` +
				`{"doc_id":17,"excerpt":"Words of b."},{"id":3,"metadata":{"title":"C","source_url":"https://c.example/"},"chunk":"Words of c."}]`,
			want: []pasted{{"d-1", "A", "", "Words of a, in full."}, {"17", "", "", "Words of b."}, {"https://c.example/", "C", "https://c.example/", "Words of c."}},
		},
		{
			name: "tags with attributes",
			prompt: "Answer from these.\n<doc id='7' title=\"Tide tables\" url=\"https://t.example/\">High water at 3.</doc>\n<doc id='8'>\n  Low at 9.\n</doc>\n" +
				"When is high water?",
			want: []pasted{{"7", "Tide tables", "https://t.example/", "High water at 3."}, {"8", "", "", "Low at 9."}},
		},
		{
			name: "tags in tags",
			prompt: "<documents>\n<document index=\"1\">\n<source>report.pdf</source>\n<document_content>\nSales rose.\n</document_content>\n</document>\n" +
				"<document index=\"2\"><source>https://b.example/x</source><document_content>Sales fell.</document_content></document>\n</documents>",
			want: []pasted{{"doc:1", "report.pdf", "", "Sales rose."}, {"https://b.example/x", "", "https://b.example/x", "Sales fell."}},
		},
		{
			name: "numbers in brackets",
			prompt: "Context:\n[1] Title: Tides\nURL: https://t.example/\nHigh water is at three.\nLow water is at nine.\n\n[2] The moon pulls the sea.\n\n" +
				"Question: when is low water?\nAnswer:",
			want: []pasted{{"https://t.example/", "Tides", "https://t.example/", "High water is at three.\nLow water is at nine."}, {"doc:2", "", "", "The moon pulls the sea."}},
		},
		{
			name:   "numbered sources",
			prompt: "Source 1:\nFirst words.\n-----\nSource 2:\nSecond words.\n-----\nQuery: which?",
			want:   []pasted{{"doc:1", "", "", "First words."}, {"doc:2", "", "", "Second words."}},
		},
		{
			name:   "titles behind the number",
			prompt: "Document [1](Title: Rome) Rome is a city.\nDocument [2](Title: Milan) Milan is one, too.\n\nQuestion: which?",
			want:   []pasted{{"doc:1", "Rome", "", "Rome is a city."}, {"doc:2", "Milan", "", "Milan is one, too."}},
		},
		{name: "tags that never close", prompt: strings.Repeat("<doc><source>", 20_000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []pasted
			for _, s := range trail.SourcesFromPrompt(tt.prompt) {
				if s.Counted() != (s.Key != "") {
					t.Errorf("%s: key %q; what is only counted is known by its words", s.DocumentID, s.Key)
				}
				if !s.Retrieved {
					t.Errorf("%s: a document of the prompt was retrieved", s.DocumentID)
				}
				got = append(got, pasted{s.DocumentID, s.Title, s.URL, s.Content})
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzSourcesFromPrompt(f *testing.F) {
	f.Add("[1] a\n[2] b")
	f.Add("<doc id=1><title>x</title><text>y</text></doc>")
	f.Add(`[{"text":"x"}]`)
	f.Fuzz(func(t *testing.T, prompt string) {
		for _, s := range trail.SourcesFromPrompt(prompt) {
			if s.Content == "" {
				t.Error("a document without words")
			}
		}
	})
}
