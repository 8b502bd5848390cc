package api_test

import (
	"strings"
	"testing"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A question that is asked again appears once, with its latest answer and without the messages after the first one:
// also while that answer is still arriving, and on every page.
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
