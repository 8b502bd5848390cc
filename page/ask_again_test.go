package page_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// numbered returns the sources that a page lists, by number.
func numbered(html string) map[string]string {
	all := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)<span class="n" aria-hidden="true">(\d+)</span>.*?<bdi>(.*?)</bdi>`).FindAllStringSubmatch(html, -1) {
		all[m[1]] += "|" + m[2]
	}
	return all
}

// Two questions of a new conversation may be asked before the first is answered. Both answers are numbered as on the
// page afterwards.
func TestAskTwice(t *testing.T) {
	begin := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { replay.New(nil).ServeHTTP(&held{rw, begin}, r) }))
	first := w.ask(t, "", replay.Answers()[0].Prompt)
	conversation, _ := url.PathUnescape(strings.TrimPrefix(first.EscapedPath(), "/ui/conversations/"))
	second := w.ask(t, conversation, replay.Answers()[1].Prompt)
	if second.Path != first.Path {
		t.Fatalf("the second question leads to %s, the first to %s", second.Path, first.Path)
	}
	streams := []*http.Response{}
	for _, to := range []*url.URL{first, second} {
		streams = append(streams, w.open(t, "GET", "/ui/answers/"+to.Query().Get("answer")+"/live", "")) //nolint:bodyclose // open closes it with the test
	}
	close(begin)
	sources := map[string]string{}
	for _, stream := range streams {
		readEvents(stream.Body, func(e sent) bool {
			var data struct {
				HTML string `json:"html"`
			}
			if e.name == "answer" && json.Unmarshal([]byte(e.data), &data) == nil {
				maps.Copy(sources, numbered(data.HTML))
			}
			return e.name == "end"
		})
	}
	w.settle(t)
	if diff := cmp.Diff(numbered(w.get(t, first.Path).body), sources); diff != "" || len(sources) < 2 {
		t.Errorf("%d sources, live and on the page (-page +live):\n%s", len(sources), diff)
	}
}

// A question that cannot be asked in its conversation is not lost.
func TestAskNowhere(t *testing.T) {
	w := newWorld(t, nil)
	got := w.post(t, "/ui/ask", url.Values{"question": {"Where do <herons> nest?"}, "conversation": {"nobody's"}})
	if got.StatusCode != 404 || !strings.Contains(got.body, "Where do &lt;herons&gt; nest?</textarea>") || !strings.Contains(got.body, `role="alert"`) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// An address can say that an answer is arriving. If it has arrived, it is only shown in its own conversation, once, and
// with its question.
func TestAnnounced(t *testing.T) {
	w := newWorld(t, nil)
	other := talked("ans_0", "Other?", "It is. So.", "https://a.example/")
	other.Conversation = "other"
	calls := []*store.Call{other}
	for i := range 22 {
		c := talked("ans_1"+string(rune('a'+i))+"0", "Question?", "It is. So.", "https://a.example/")
		c.Started = c.Started.AddDate(0, 0, i+1)
		calls = append(calls, c)
	}
	w.put(t, calls...)
	tests := []struct {
		name, path   string
		status, want int
	}{
		{"of another conversation", "/ui/conversations/c%201%2F2?answer=ans_0&run=run_ans_0", 200, 20},
		{"on an earlier page", "/ui/conversations/c%201%2F2?answer=ans_1a0&run=run_ans_1a0", 200, 20},
		{"on this page", "/ui/conversations/c%201%2F2?answer=ans_1v0&run=run_ans_1v0", 200, 20},
		{"of a conversation that is not there", "/ui/conversations/nobodys?answer=ans_0&run=run_ans_0", 404, 0},
		{"still arriving somewhere", "/ui/conversations/new?answer=ans_019aa5d2-7000-7000-8000-000000000000&run=run_9", 200, 1},
		{"what is no answer", "/ui/conversations/new?answer=ans_9&run=run_9", 404, 0},
	}
	for _, tt := range tests {
		got := w.get(t, tt.path)
		if n := strings.Count(got.body, `<article class="answer"`); got.StatusCode != tt.status || n != tt.want {
			t.Errorf("%s: %d, %d answers; want %d, %d", tt.name, got.StatusCode, n, tt.status, tt.want)
		}
	}
}

// Feedback on a citation is shown with it, in the same words on all pages; a reader who may not give any is not asked
// to.
func TestFeedbackShown(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/")
	citation := c.Answer.Citations[0].ID
	w.put(t, c)
	cookies := map[string]string{}
	for name, scopes := range map[string][]string{"ann <b>": {store.ScopeRead, store.ScopeWrite}, "bob": {store.ScopeRead}} {
		secret := testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Name: name, Scopes: scopes}))(t)
		cookies[name] = gateway.SessionCookie + "=" + secret
	}
	for _, verdict := range []string{"right", "wrong-source"} {
		form := url.Values{"answer": {"ans_1"}, "citation": {citation}, "verdict": {verdict}}
		if got := w.post(t, "/ui/feedback", form, "Cookie", cookies["ann <b>"]); got.StatusCode != 303 {
			t.Fatalf("%d %s", got.StatusCode, got.body)
		}
	}
	about := "/ui/feedback?answer=ans_1&amp;citation=" + citation
	for _, path := range []string{"/ui/answers/ans_1", "/ui/conversations/c%201%2F2"} {
		got := w.get(t, path, "Cookie", cookies["ann <b>"])
		for _, want := range []string{`<a href="` + about + `"><bdi>ann &lt;b&gt;</bdi> says: wrong source: another one says it</a>`, `href="/ui/feedback?answer=ans_1"`, "Feedback (2)", `class="judge"`, `class="chip bad"`, ">wrong source: </span>"} {
			if !strings.Contains(got.body, want) {
				t.Errorf("%s has no %s: %s", path, want, got.body)
			}
		}
		if got := w.get(t, path, "Cookie", cookies["bob"]); strings.Contains(got.body, `class="judge"`) || !strings.Contains(got.body, "another one says it") {
			t.Errorf("%s: a reader who may not judge is asked to", path)
		}
	}
	path := strings.ReplaceAll(about, "&amp;", "&")
	if got := w.get(t, path, "Cookie", cookies["ann <b>"]); !strings.Contains(got.body, "Wrong source: another one says it") || !strings.Contains(got.body, `href="/ui/answers/ans_1"`) || !strings.Contains(got.body, "fieldset") {
		t.Errorf("%s: %s", path, got.body)
	}
	if got := w.get(t, path, "Cookie", cookies["bob"]); strings.Contains(got.body, "fieldset") {
		t.Errorf("a reader who may not judge is asked to: %s", got.body)
	}
	if got := w.get(t, "/ui/overview", "Cookie", cookies["bob"]); !strings.Contains(got.body, `href="/ui/feedback"`) {
		t.Error("nothing leads to all feedback")
	}
}
