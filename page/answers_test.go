package page_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
)

var listed = regexp.MustCompile(`<h2><a href="([^"]+)" dir="auto">([^<]*)</a></h2>`)

// Every answer is on the front page, in the list and in the search, whether or not its client named a conversation; the
// answers of a conversation are one entry.
func TestAnswersListed(t *testing.T) {
	w := newWorld(t, nil)
	to := w.ask(t, "", replay.Answers()[0].Prompt)
	w.waitFor(t, to.Query().Get("answer"))
	single := talked("ans_1", "Where <b>do</b> egrets nest?", "In trees. Often.", "https://a.example/")
	single.Conversation = ""
	w.put(t, single)
	want := []string{"/ui/answers/ans_1", to.Path}
	for _, path := range []string{"/", "/ui/answers"} {
		got := w.get(t, path)
		var found []string
		for _, m := range listed.FindAllStringSubmatch(got.body, -1) {
			found = append(found, m[1])
		}
		testenv.Equal(t, path, want, found)
		if strings.Contains(got.body, "<b>do</b>") {
			t.Errorf("%s: a question is markup", path)
		}
	}
	if got := w.get(t, "/ui/search"); !strings.Contains(got.body, "/ui/answers/ans_1") {
		t.Errorf("search: %s", got.body)
	}
	if got := w.get(t, "/ui/answers?cursor=nonsense"); got.StatusCode != 400 {
		t.Errorf("a cursor that is none: %d", got.StatusCode)
	}
	// A single call is no run to a reader.
	if got := w.get(t, "/ui/runs"); !strings.Contains(got.body, "No runs") {
		t.Errorf("runs: %s", got.body)
	}
}

// The pages of the list have every entry once, the latest answer first.
func TestAnswersPaged(t *testing.T) {
	w := newWorld(t, nil)
	const most = 60
	var want []string
	for i := range most {
		c := talked(fmt.Sprintf("ans_%03d", i), "Where do egrets nest?", "In trees. Often.", "https://a.example/")
		c.Started = c.Started.AddDate(0, 0, i)
		c.Conversation = ""
		at := "/ui/answers/" + c.AnswerID
		switch i % 4 {
		case 1:
			c.Conversation = "c-" + c.AnswerID
			at = "/ui/conversations/" + c.Conversation
		case 2: // the last of its answers counts
			c.Conversation = "all"
			at = ""
			if i+4 >= most {
				at = "/ui/conversations/all"
			}
		}
		w.put(t, c)
		if at != "" {
			want = append(want, at)
		}
	}
	slices.Reverse(want)
	var found []string
	for path := "/ui/answers"; path != ""; {
		got := w.get(t, path)
		for _, m := range listed.FindAllStringSubmatch(got.body, -1) {
			found = append(found, m[1])
		}
		_, rest, more := strings.Cut(got.body, `href="/ui/answers?cursor=`)
		if path = ""; more {
			next, _, _ := strings.Cut(rest, `"`)
			path = "/ui/answers?cursor=" + next
		}
	}
	testenv.Equal(t, "all pages", want, found)
}

// The heading of an answer is the question, not the passages that a program wrote around it.
func TestQuestionOfPrompt(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "Context:\n[1] The mill\nThe mill on the Orre was built in 1612.\n\n[2] The bridge\nThe bridge has six "+
		"arches.\n\nQuestion: How old is the mill?\nAnswer:", "It was built in 1612.")
	c.Conversation = ""
	w.put(t, c)
	for _, path := range []string{"/", "/ui/answers", "/ui/search?q=mill", "/ui/answers/ans_1"} {
		if got := w.get(t, path); !strings.Contains(got.body, ">How old is the mill?<") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
}
