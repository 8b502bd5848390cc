package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// As useChat takes it, a conversation is a list of what its user said and of the answers: no instructions, no tools' results.
func TestConversationUI(t *testing.T) {
	n := newNode(t, nil)
	for i := range 3 {
		c := call(fmt.Sprintf("ans_%d", i), herons("https://heron.example/"))
		c.Conversation = "c1"
		c.Prompt = []store.Message{{Role: "system", Text: "Be brief."}, {Role: "tool", Text: "found"}, {Role: "user"}, {Role: "user", Text: fmt.Sprintf("Herons 🪶 %d?", i)}}
		n.put(t, c)
	}
	type message struct {
		ID, Role string
		Parts    []struct {
			Type, Text, ID string
			Data           struct {
				Status, Unit string
				Citations    []struct {
					Index int
				}
			}
		}
	}
	var got []message
	n.read(t, "/v1/conversations/c1?as=ui", &got)
	var lines []string
	for _, m := range got {
		for _, p := range m.Parts {
			line := m.ID + " " + m.Role + " " + p.Type
			if p.Type == "data-citations" {
				line += fmt.Sprintf(" %s %s %d", p.Data.Status, p.Data.Unit, len(p.Data.Citations))
			}
			lines = append(lines, line)
		}
	}
	var want []string
	for i := range 3 {
		id := fmt.Sprintf("ans_%d", i)
		// The instructions are said again with every call, and counted before what was said first only.
		question := fmt.Sprintf("%s-%d user text", id, map[bool]int{true: 4, false: 2}[i == 0])
		want = append(want, question, id+" assistant step-start", id+" assistant data-citations final utf-16 1", id+" assistant text", id+" assistant source-url")
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	res := n.do(t, "GET", "/v1/conversations/c1?as=ui&limit=1", "")
	next := res.Header.Get("Link")
	if !strings.HasPrefix(next, "</v1/conversations/c1?as=ui&cursor=") || !strings.HasSuffix(next, `>; rel="next"`) {
		t.Fatalf("Link: %q", next)
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(next, "<"), ">")
	var before []message
	n.read(t, path, &before)
	if len(before) != 2 || before[1].ID != "ans_1" {
		t.Errorf("before: %+v", before)
	}
	if res := n.do(t, "GET", "/v1/conversations/c1?as=ui&unit=utf-8", ""); res.StatusCode != 400 {
		t.Errorf("with a unit: %d", res.StatusCode)
	}
}

// A question that is asked again is there once, with its last answer, and without what came behind the first one; so it is while
// that is still arriving, and on whatever page it stands.
func TestConversationUIAgain(t *testing.T) {
	asked := func(id, follows string, again bool, prompt ...string) *store.Call {
		c := call(id, herons("https://heron.example/"))
		c.Conversation, c.Prompt = "c1", nil
		if again {
			c.Follows = &follows
		}
		for i, text := range prompt {
			c.Prompt = append(c.Prompt, store.Message{Role: []string{"user", "assistant"}[i%2], Text: text})
		}
		return c
	}
	var pending []*store.Call
	n := openNode(t, t.TempDir(), func(_ *node, o *api.Options) { o.Pending = func(string, string) []*store.Call { return pending } })
	shows := func(about, path string, want ...string) {
		t.Helper()
		var got []struct {
			ID    string
			Parts []struct{ Text string }
		}
		n.read(t, path, &got)
		lines := []string{}
		for _, m := range got {
			if lines = append(lines, m.ID); strings.Contains(m.ID, "-") {
				lines[len(lines)-1] = m.Parts[0].Text
			}
		}
		testenv.Equal(t, about, want, lines)
	}
	const path = "/v1/conversations/c1?as=ui"
	n.put(t, asked("ans_1", "", false, "a"))
	n.put(t, asked("ans_2", "", true, "a"))
	shows("the first answer again", path, "a", "ans_2")
	n.put(t, asked("ans_3", "", false, "a", "A", "b"))
	n.put(t, asked("ans_4", "ans_2", true, "a", "A", "b"))
	n.put(t, asked("ans_5", "", false, "a", "A", "b", "B", "b"))
	shows("the second answer again, and the same question", path, "a", "ans_2", "b", "ans_4", "b", "ans_5")
	shows("a page", path+"&limit=1", "b", "ans_5")
	shows("a page that begins with it", path+"&limit=2", "b", "ans_4", "b", "ans_5")
	shows("a page that begins with what it replaces", path+"&limit=3", "b", "ans_4", "b", "ans_5")
	pending = []*store.Call{asked("", "ans_2", true, "a", "A", "c")}
	pending[0].Answer = nil
	shows("while an answer to another question arrives", path, "a", "ans_2", "c")
	pending = nil
	n.put(t, asked("ans_6", "unknown", true, "a", "A", "d"))
	shows("behind an answer that is not there", path, "a", "ans_2", "b", "ans_4", "b", "ans_5", "d", "ans_6")
}
