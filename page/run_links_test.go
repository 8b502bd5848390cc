package page_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// answerDocument is an answer with two sources, the second of which is cited for no particular place.
const answerDocument = `{"version":1,"provider":"openai","text":"Herons breed in trees.","complete":true,
	"parts":[{"kind":"answer","text_start":0,"text_end":22}],
	"sources":[{"index":1,"id":"s1","kind":"web","title":"Nobody has it","url":"https://nobody.example/y","cited":true},
		{"index":2,"id":"s2","kind":"web","title":"Nor this","url":"https://nobody.example/z","cited":true}],
	"citations":[{"index":1,"id":"c1","source_id":"s1","text_start":0,"text_end":22,"claim_start":0,"claim_end":22,"covers":"claim","anchor":"exact","origin":"provider"},
		{"index":2,"id":"c2","source_id":"s2","text_start":null,"text_end":null,"covers":"document","anchor":"none","origin":"provider"}]}`

// Links within the page of a run lead somewhere, and no source is left out, whatever steps and answer share.
func TestRunLinks(t *testing.T) {
	w := newWorld(t, nil)
	const said = "Herons lay five blue eggs in March."
	var sameChunk []string
	for i := range 7 {
		sameChunk = append(sameChunk, fmt.Sprintf(`{"document_id":"b","chunk_index":0,"content":"Passage %d says the heron %[1]d flies %d miles."}`, i+1, 11*(i+1)))
	}
	for _, c := range []struct {
		name, body   string
		want, forbid []string // on the page and in its words
	}{
		{
			"an answer of sources that no step has", `{"answer":` + answerDocument + `}`,
			[]string{`href="https://nobody.example/y`, `href="https://nobody.example/z`, `href="#final-s-1"`, "Only in the answer, in no step"},
			[]string{`href="/ui/answers/#`},
		},
		{
			"more passages of a chunk than are shown",
			`{"final_answer":"Passage 7 says the heron 7 flies 77 miles.","reasoning_steps":[{"search_results":[` + strings.Join(sameChunk, ",") + `]}]}`,
			[]string{"the heron 7 flies 77 miles", "the heron 6 flies 66 miles"},
			[]string{"another passage is in step"},
		},
		{
			"the same words of two chunks",
			`{"final_answer":"` + said + `","reasoning_steps":[
				{"intermediate_answer":"Something else.","search_results":[{"document_id":"a","chunk_index":0,"content":"` + said + `"}]},
				{"after":[],"intermediate_answer":"` + said + `","search_results":[{"document_id":"a","chunk_index":1,"content":"` + said + `"}]}]}`,
			[]string{"Its conclusion is "},
			nil,
		},
		{
			"one document under two ids",
			`{"final_answer":"` + said + `","reasoning_steps":[{"search_results":[
				{"document_id":"a","url":"https://a.example/x","content":"` + said + `"},
				{"document_id":"d","title":"Another title","url":"https://a.example/x","content":"` + said + `"}]}]}`,
			[]string{"the same passage again", "Another title"},
			[]string{"another passage"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := strings.ReplaceAll(c.name, " ", "-")
			body := `{"run_id":"` + id + `",` + strings.TrimPrefix(c.body, "{")
			if res := w.do(t, "POST", "/v1/runs", body, "Content-Type", "application/json"); res.StatusCode != http.StatusCreated {
				t.Fatalf("%d %s", res.StatusCode, res.body)
			}
			res := w.get(t, "/ui/runs/"+id)
			page := res.body + wordsOf(sound(t, res.body)) // which fails if a link leads nowhere
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("it lacks %q", want)
				}
			}
			for _, wrong := range c.forbid {
				if strings.Contains(page, wrong) {
					t.Errorf("it has %q", wrong)
				}
			}
		})
	}
}
