package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// talk puts a conversation of three calls, in one run of two steps and one of its own.
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

// Who has an answer already gets no second one.
func TestAnswerTags(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	res := n.get(t, "/v1/answers/ans_1")
	tag := res.Header.Get("ETag")
	if tag == "" || res.Header.Get("Cache-Control") != "private, no-cache" {
		t.Fatalf("ETag %q, Cache-Control %q", tag, res.Header.Get("Cache-Control"))
	}
	for _, given := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		if res := n.get(t, "/v1/answers/ans_1", "If-None-Match", given); res.StatusCode != 304 || res.body != "" || res.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: %d %q", given, res.StatusCode, res.body)
		}
	}
	if res := n.get(t, "/v1/answers/ans_1?unit=utf-16", "If-None-Match", tag); res.StatusCode != 200 {
		t.Errorf("in another unit: %d", res.StatusCode)
	}
}

func TestDeleteAnswer(t *testing.T) {
	n := newNode(t, nil)
	n.put(t, call("ans_1", herons("https://heron.example/")))
	if res := n.do(t, "DELETE", "/v1/answers/ans_1", ""); res.StatusCode != 204 || res.body != "" {
		t.Errorf("%d %q", res.StatusCode, res.body)
	}
	wantProblem(t, n.get(t, "/v1/answers/ans_1"), 404)
	wantProblem(t, n.do(t, "DELETE", "/v1/answers/ans_1", ""), 404)
}

// Pages hold everything, once each, newest first; filters hold through all of them.
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

// The numbers of a conversation run on, and stay.
func TestConversationNumbers(t *testing.T) {
	n := newNode(t, nil)
	talk(t, n)
	type shown struct {
		Messages []struct {
			Role   string
			Text   string
			Answer struct {
				Sources []struct {
					Index int
					URL   string
				}
			}
		}
	}
	numbers := func() map[string]int {
		var c shown
		n.read(t, "/v1/conversations/c1", &c)
		got := map[string]int{}
		for _, m := range c.Messages {
			for _, s := range m.Answer.Sources {
				got[s.URL] = s.Index
			}
		}
		return got
	}
	want := map[string]int{"https://heron.example/": 1, "https://otter.example/": 2, "https://owl.example/": 3}
	testenv.Equal(t, "", want, numbers())
	if res := n.do(t, "DELETE", "/v1/answers/ans_1", ""); res.StatusCode != 204 {
		t.Fatal(res.body)
	}
	testenv.Equal(t, "after an answer was deleted", want, numbers())
	testenv.Equal(t, "messages", []string{"system: Be <brief>.", "user: Do herons build?", "assistant", "user: And owls?", "assistant"}, n.messages(t, "c1"))
}

// messages returns what was said in a conversation.
func (n *node) messages(t *testing.T, id string) (said []string) {
	t.Helper()
	var c struct {
		Messages []struct {
			Role string
			Text *string
		}
	}
	n.read(t, "/v1/conversations/"+id, &c)
	for _, m := range c.Messages {
		line := m.Role
		if m.Text != nil {
			line += ": " + *m.Text
		}
		said = append(said, line)
	}
	return said
}

// Clients say the same again and again; a conversation has it once.
func TestConversationMessages(t *testing.T) {
	system, question := store.Message{Role: "system", Text: "Be brief."}, store.Message{Role: "user", Text: "Herons?"}
	answer, result := store.Message{Role: "assistant", Text: "…"}, store.Message{Role: "tool", Text: "found"}
	for name, test := range map[string]struct {
		prompts [][]store.Message
		finish  ibid.Finish
		want    []string
	}{
		"no prompts": {prompts: [][]store.Message{nil, nil}, want: []string{"assistant", "assistant"}},
		"the same question twice": {
			prompts: [][]store.Message{{question}, {question}}, finish: ibid.FinishStop,
			want: []string{"user: Herons?", "assistant", "user: Herons?", "assistant"},
		},
		"with instructions, kept by the provider": {
			prompts: [][]store.Message{{system, question}, {system, question}}, finish: ibid.FinishStop,
			want: []string{"system: Be brief.", "user: Herons?", "assistant", "user: Herons?", "assistant"},
		},
		"all messages again": {
			prompts: [][]store.Message{{system, question}, {system, question, answer, question}}, finish: ibid.FinishStop,
			want: []string{"system: Be brief.", "user: Herons?", "assistant", "user: Herons?", "assistant"},
		},
		"a tool's result": {
			prompts: [][]store.Message{{system, question}, {system, question, answer, result}}, finish: ibid.FinishTool,
			want: []string{"system: Be brief.", "user: Herons?", "assistant", "tool: found", "assistant"},
		},
		"a tool's result, of which only the question is kept": {
			prompts: [][]store.Message{{question}, {question}}, finish: ibid.FinishTool,
			want: []string{"user: Herons?", "assistant", "assistant"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, nil)
			for i, prompt := range test.prompts {
				c := call(fmt.Sprintf("ans_%d", i), herons("https://heron.example/"))
				c.Conversation, c.Prompt, c.Answer.Finish = "c1", prompt, test.finish
				n.put(t, c)
			}
			testenv.Equal(t, "", test.want, n.messages(t, "c1"))
		})
	}
}

// What belongs to another tenant is not there.
func TestTenants(t *testing.T) {
	n := newNode(t, nil)
	c := call("ans_1", herons("https://heron.example/"))
	c.Tenant, c.Conversation, c.Run = "acme", "c1", "r1"
	n.put(t, c)
	own, other := n.token(t, "acme", store.ScopeRead, store.ScopeWrite), n.token(t, "evil", store.ScopeRead, store.ScopeWrite)
	for _, path := range []string{"/v1/answers/ans_1", "/v1/answers/ans_1?as=plain", "/v1/conversations/c1", "/v1/runs/r1", "/v1/runs/r1/summary"} {
		if res := n.get(t, path, bearer(own)...); res.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, res.StatusCode, res.body)
		}
		wantProblem(t, n.get(t, path, bearer(other)...), 404)
	}
	wantProblem(t, n.do(t, http.MethodDelete, "/v1/answers/ans_1", "", bearer(other)...), 404)
	for _, path := range []string{"/v1/answers", "/v1/conversations", "/v1/runs", query("/v1/sources", "url", "https://heron.example/"), "/v1/answers?q=herons"} {
		lengths := map[string]int{}
		for name, secret := range map[string]string{"own": own, "other": other} {
			var page map[string]json.RawMessage
			n.read(t, path, &page, bearer(secret)...)
			delete(page, "next_cursor")
			for _, items := range page {
				var list []any
				testenv.OK(t, json.Unmarshal(items, &list))
				lengths[name] = len(list)
			}
		}
		testenv.Equal(t, path, map[string]int{"own": 1, "other": 0}, lengths)
	}
}
