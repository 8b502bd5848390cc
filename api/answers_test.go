package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// talk stores a conversation of three calls: two steps of one run, and a run of its own.
func talk(t *testing.T, n *node) {
	t.Helper()
	question, answer := store.Message{Role: "user", Text: "Do herons build?"}, store.Message{Role: "assistant", Text: "…"}
	one := call("ans_1", herons("https://heron.example/"))
	one.Conversation, one.Run, one.Agent, one.Step = "c1", "r1", "birder", store.Step{Number: 1, Tool: "search"}
	one.Prompt = []store.Message{{Role: "system", Text: "Be <brief>."}, question}
	one.Answer.Finish = ibid.FinishTool
	two := call("ans_2", herons("https://otter.example/", "https://heron.example/"))
	two.Conversation, two.Run, two.Agent, two.Step = "c1", "r1", "birder", store.Step{Number: 2, After: []int{1}}
	two.Prompt = []store.Message{{Role: "system", Text: "Be <brief>."}, question}
	two.Started = started.Add(time.Minute)
	three := call("ans_3", herons("https://owl.example/"))
	three.Conversation, three.Started = "c1", started.Add(2*time.Minute)
	three.Prompt = []store.Message{{Role: "system", Text: "Be <brief>."}, question, answer, {Role: "user", Text: "And owls?"}}
	n.put(t, one, two, three)
}

func TestShapes(t *testing.T) {
	n := newNode(t, nil)
	talk(t, n)
	for _, test := range []struct{ name, path string }{
		{"answer.json", "/v1/answers/ans_1"},
		{"answers.json", "/v1/answers?q=owl&unit=code-point&style=plain"},
		{"answers-none.json", "/v1/answers?q=nothing"},
		{"conversations.json", "/v1/conversations"},
		{"conversation.json", "/v1/conversations/c1?unit=utf-16&style=plain"},
		{"sources.json", query("/v1/sources", "url", "HTTPS://heron.example")},
		{"sources-none.json", "/v1/sources?id=nothing"},
		{"runs.json", "/v1/runs"},
		{"run.json", "/v1/runs/r1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res := n.get(t, test.path)
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%d %s: %s", res.StatusCode, res.Header.Get("Content-Type"), res.body)
			}
			goldenJSON(t, test.name, res.body)
			if strings.Contains(res.body, `\u003c`) {
				t.Error("< is escaped")
			}
		})
	}
}

func TestAnswerForms(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	for form, mediaType := range map[string]string{
		"markdown": "text/markdown; charset=utf-8", "plain": "text/plain; charset=utf-8", "html": "text/html; charset=utf-8",
		"footnotes": "text/markdown; charset=utf-8", "latex": "text/x-tex; charset=utf-8", "bibtex": "application/x-bibtex",
		"ris": "application/x-research-info-systems", "csl-json": "application/vnd.citationstyles.csl+json",
		"apa": "text/plain; charset=utf-8", "mla": "text/plain; charset=utf-8", "chicago": "text/plain; charset=utf-8",
		"openai": "application/json", "langchain": "application/json", "llamaindex": "application/json",
	} {
		res := n.get(t, "/v1/answers/ans_1?as="+form)
		if got := res.Header.Get("Content-Type"); !strings.HasPrefix(got, mediaType) {
			t.Errorf("%s: Content-Type %q, want %q", form, got, mediaType)
		}
		golden(t, "as-"+form+".txt", res.body)
	}
	body := n.get(t, "/v1/answers/ans_1?as=json").body
	if diff := cmp.Diff(n.get(t, "/v1/answers/ans_1").body, body); diff != "" {
		t.Errorf("as=json (-default +json):\n%s", diff)
	}
}

// Pages contain everything exactly once, newest first, and filters apply to all of them.
func TestPages(t *testing.T) {
	n := newNode(t, nil)
	var want []string
	for i := range 25 {
		c := call(fmt.Sprintf("ans_%02d", i), herons("https://heron.example/"))
		c.Run, c.Conversation = fmt.Sprintf("r%02d", i), fmt.Sprintf("c%02d", i)
		c.Started = started.Add(time.Duration(i) * time.Second)
		n.put(t, c)
		want = append([]string{fmt.Sprintf("%02d", i)}, want...)
	}
	for list, pick := range map[string]struct{ path, items, id string }{
		"answers": {"/v1/answers?q=herons", "answers", "answer_id"}, "conversations": {"/v1/conversations?", "conversations", "id"},
		"runs": {"/v1/runs?", "runs", "id"}, "sources": {query("/v1/sources", "url", "https://heron.example/"), "sources", "answer_id"},
	} {
		var got []string
		cursor, pages := "", 0
		for {
			var page map[string]json.RawMessage
			n.read(t, pick.path+"&limit=10"+cursor, &page)
			var items []map[string]any
			testenv.OK(t, json.Unmarshal(page[pick.items], &items))
			for _, item := range items {
				id := item[pick.id].(string)
				got = append(got, id[len(id)-2:])
			}
			pages++
			var next *string
			testenv.OK(t, json.Unmarshal(page["next_cursor"], &next))
			if next == nil {
				break
			}
			cursor = query("", "cursor", *next)
			cursor = "&" + cursor[1:]
		}
		if diff := cmp.Diff(want, got); diff != "" || pages != 3 {
			t.Errorf("%s, %d pages (-want +got):\n%s", list, pages, diff)
		}
	}
	var page struct{ Answers []any }
	n.read(t, "/v1/answers", &page)
	if len(page.Answers) != 20 {
		t.Errorf("a page has %d answers", len(page.Answers))
	}
	for filter, want := range map[string]int{"run=r03": 1, "conversation=c04": 1, "source=https%3A%2F%2Fheron.example%2F": 20, "source=x": 0} {
		n.read(t, "/v1/answers?"+filter, &page)
		if len(page.Answers) != want {
			t.Errorf("%s: %d answers, want %d", filter, len(page.Answers), want)
		}
	}
}
