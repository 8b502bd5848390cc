package page_test

import (
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A question leads to its conversation; a second one continues it, with the same numbering.
func TestAsk(t *testing.T) {
	w := newWorld(t, nil)
	if got := w.get(t, "/ui/ask"); got.StatusCode != 200 || !strings.Contains(got.body, `name="question"`) || !strings.Contains(got.body, "heron-1") {
		t.Fatalf("form: %d %s", got.StatusCode, got.body)
	}
	to := w.ask(t, "", replay.Answers()[0].Prompt)
	w.waitFor(t, to.Query().Get("answer"))
	first := w.get(t, to.Path)
	id := to.Query().Get("answer")
	if strings.Contains(first.body, "talk_") && strings.Contains(first.body, "<code") {
		t.Error("it shows the id of its conversation")
	}
	for _, want := range []string{`id="a-` + id + `"`, "Question", `name="conversation"`, `<textarea id="question"`} {
		if first.StatusCode != 200 || !strings.Contains(first.body, want) {
			t.Errorf("no %s: %d %s", want, first.StatusCode, first.body)
		}
	}
	if strings.Contains(first.body, "data-live") {
		t.Error("an answer that has ended is arriving")
	}
	conversation, _ := url.PathUnescape(strings.TrimPrefix(to.EscapedPath(), "/ui/conversations/"))
	again := w.ask(t, conversation, replay.Answers()[1].Prompt)
	if again.Path != to.Path {
		t.Errorf("the second question leads to %s, the first to %s", again.Path, to.Path)
	}
	w.waitFor(t, again.Query().Get("answer"))
	call := testenv.Must(w.Store.Call(t.Context(), store.DefaultTenant, again.Query().Get("answer")))(t)
	var roles []string
	for _, m := range call.Prompt {
		roles = append(roles, m.Role)
	}
	testenv.Equal(t, "what was asked", []string{"user", "assistant", "user"}, roles)
	both := w.get(t, to.Path)
	if n := strings.Count(both.body, `<article class="answer"`); n != 2 {
		t.Errorf("%d answers", n)
	}
	list := w.get(t, "/ui/answers")
	for _, want := range []string{replay.Answers()[0].Prompt, "2 answers", "heron-1", "Questions"} {
		if !strings.Contains(list.body, want) {
			t.Errorf("the list has no %q: %s", want, list.body)
		}
	}
}

// waitFor waits until an answer is stored.
func (w *world) waitFor(tb testing.TB, id string, fields ...string) {
	tb.Helper()
	for {
		w.watch(tb, "/ui/answers/"+id+"/live?run=x", func(e sent) bool { return e.name == "answer" || e.name == "gone" }, fields...)
		w.settle(tb)
		_, err := w.Store.Call(tb.Context(), store.DefaultTenant, id)
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrNotFound) { // an answer that was streamed need not be stored yet
			tb.Fatal(err)
		}
	}
}

// What is wrong with a question is shown on the form, which keeps the question.
func TestAskWrong(t *testing.T) {
	w := newWorld(t, nil)
	tests := []struct {
		name string
		form url.Values
		want []string
	}{
		{"nothing", url.Values{"question": {" "}}, []string{"Write a question first."}},
		{"too long", url.Values{"question": {strings.Repeat("a", 300<<10)}}, []string{"256 KiB"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := w.post(t, "/ui/ask", tt.form)
			if got.StatusCode != http.StatusUnprocessableEntity {
				t.Errorf("%d", got.StatusCode)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.body, want) {
					t.Errorf("no %q: %s", want, got.body)
				}
			}
		})
	}
	for _, tt := range []struct{ question, provider, want string }{
		{"Where <b>?", "nobody", "there is none of that name"}, {"error 429", "", "429"},
	} {
		sent := w.post(t, "/ui/ask", url.Values{"question": {tt.question}, "provider": {tt.provider}})
		to, err := sent.Location()
		if sent.StatusCode != http.StatusSeeOther || err != nil {
			t.Fatalf("%s: %d %s", tt.question, sent.StatusCode, sent.body)
		}
		for range 2 { // a reload loses nothing
			got := w.get(t, to.Path)
			for _, want := range []string{
				html.EscapeString(tt.question), tt.want, `role="alert"`, "Try again", `<input type="hidden" name="question" value="` + html.EscapeString(tt.question),
				`name="conversation" value="`,
			} {
				if got.StatusCode != 200 || strings.Contains(got.body, "..") || !strings.Contains(got.body, want) {
					t.Errorf("%s: no %q: %d %s", tt.question, want, got.StatusCode, got.body)
				}
			}
		}
		// asked again in its place, it is there once, above its answer
		talk, _ := url.PathUnescape(strings.TrimPrefix(to.EscapedPath(), "/ui/conversations/"))
		w.post(t, "/ui/ask", url.Values{"question": {tt.question}, "provider": {tt.provider}, "conversation": {talk}})
		if got := w.get(t, to.Path).body; strings.Count(got, `class="turn failed"`) != 1 {
			t.Errorf("%s asked again: %s", tt.question, got)
		}
	}
	if got := w.do(t, "POST", "/ui/ask", "question=x", "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"); got.StatusCode != 403 {
		t.Errorf("another site's form: %d", got.StatusCode)
	}
	if got := w.post(t, "/ui/ask", url.Values{"question": {"x"}, "conversation": {"nobody's"}}); got.StatusCode != 404 {
		t.Errorf("a conversation that is not there: %d", got.StatusCode)
	}
}

// An answer is shown while it arrives: on the page when it is opened, and block by block in the stream. Words that were
// shown do not change.
func TestLive(t *testing.T) {
	w := newWorld(t, replay.New(&replay.Options{Delay: 30 * time.Millisecond, ChunkSize: 8}))
	to := w.ask(t, "", replay.Answers()[0].Prompt)
	opened := w.get(t, to.RequestURI())
	if !strings.Contains(opened.body, "data-live=") || !strings.Contains(opened.body, "The answer is arriving.") || !strings.Contains(opened.body, `aria-busy="true"`) {
		t.Fatalf("nothing is arriving: %s", opened.body)
	}
	_, live, _ := strings.Cut(opened.body, `data-live="`)
	live, _, _ = strings.Cut(live, `"`)
	blocks, changed, whole, ended := map[int]string{}, 0, "", false
	status, mediaType := w.watch(t, strings.ReplaceAll(live, "&amp;", "&"), func(e sent) bool {
		var data struct {
			N    int    `json:"n"`
			Of   int    `json:"of"`
			HTML string `json:"html"`
		}
		if err := json.Unmarshal([]byte(e.data), &data); err != nil {
			t.Fatalf("%s: %v", e.data, err)
		}
		switch e.name {
		case "block":
			if whole != "" {
				t.Error("a block after the whole answer")
			}
			if before, had := blocks[data.N]; had {
				changed++
				if was, is := textOf(before), textOf(data.HTML); !strings.HasPrefix(is, strings.TrimRight(was, " \n")) {
					t.Errorf("block %d was %q and is %q", data.N, was, is)
				}
			}
			blocks[data.N] = data.HTML
		case "answer":
			whole = data.HTML
		case "end":
			ended = true
		}
		return e.name == "end"
	})
	if status != 200 || mediaType != "text/event-stream" {
		t.Errorf("%d %s", status, mediaType)
	}
	if len(blocks) == 0 || changed == 0 || whole == "" || !ended {
		t.Fatalf("%d blocks, %d changes, ended %v, whole %q", len(blocks), changed, ended, whole)
	}
	for n, block := range blocks {
		oneLine := func(html string) string { return strings.Join(strings.Fields(textOf(html)), " ") } // a label is between spaces
		if !strings.Contains(oneLine(whole), oneLine(block)) {
			t.Errorf("block %d is not in the answer: %q", n, textOf(block))
		}
	}
	w.settle(t)
	if got := w.get(t, to.RequestURI()); strings.Contains(got.body, "data-live=") || strings.Count(got.body, `<article class="answer"`) != 1 {
		t.Errorf("after its end: %s", got.body)
	}
}

// textOf returns the text of HTML without its chips.
func textOf(html string) string {
	var b strings.Builder
	for html != "" {
		before, rest, found := strings.Cut(html, "<")
		b.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(rest, "ibid-cite") {
			_, rest, _ = strings.Cut(rest, "</ibid-cite")
		}
		if strings.HasPrefix(rest, `span class="no-source`) {
			_, rest, _ = strings.Cut(rest, "</span")
		}
		_, html, _ = strings.Cut(rest, ">")
	}
	return b.String()
}

// held holds back an upstream's response after its header.
type held struct {
	http.ResponseWriter

	wait <-chan struct{}
}

func (h *held) Write(b []byte) (int, error) {
	if h.wait != nil {
		_ = http.NewResponseController(h.ResponseWriter).Flush()
		<-h.wait
		h.wait = nil
	}
	return h.ResponseWriter.Write(b)
}

func (h *held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// An answer that another node or a client of the gateway asked for arrives over the bus.
func TestLiveByBus(t *testing.T) {
	upstream, begin := replay.New(&replay.Options{Delay: 30 * time.Millisecond, ChunkSize: 8}), make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { upstream.ServeHTTP(&held{rw, begin}, r) }))
	call := w.open(t, "POST", "/openai/v1/responses", `{"model": "heron-1", "stream": true, "input": "`+replay.Answers()[0].Prompt+`"}`)
	defer func() { _ = call.Body.Close() }()
	id, run := call.Header.Get(gateway.AnswerHeader), call.Header.Get(gateway.RunHeader)
	if got := w.get(t, "/ui/answers/"+id+"/live"); got.StatusCode != 404 {
		t.Errorf("an answer of which nothing is known: %d", got.StatusCode)
	}
	opened := w.get(t, "/ui/conversations/c1?answer="+id+"&run="+run)
	if opened.StatusCode != 200 || !strings.Contains(opened.body, "/ui/answers/"+id+"/live?") {
		t.Errorf("%d %s", opened.StatusCode, opened.body)
	}
	res := w.open(t, "GET", "/ui/answers/"+id+"/live?run="+run, "")
	defer func() { _ = res.Body.Close() }()
	close(begin) // the stream has begun, so it listens
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, call.Body)
	}()
	blocks, last := 0, ""
	readEvents(res.Body, func(e sent) bool {
		if e.name == "block" {
			blocks++
		}
		last = e.name
		return e.name == "answer"
	})
	<-read
	if blocks < 2 || last != "answer" {
		t.Errorf("%d blocks, then %s", blocks, last)
	}
}

// Nothing of another tenant is found.
func TestConversationTenants(t *testing.T) {
	w := newWorld(t, nil)
	var cookies []string
	for _, tenant := range []string{store.DefaultTenant, "other"} {
		secret := testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Tenant: tenant, Name: tenant, Scopes: store.Scopes()}))(t)
		cookies = append(cookies, gateway.SessionCookie+"="+secret)
	}
	mine, cookie := cookies[0], cookies[1]
	asked := w.post(t, "/ui/ask", url.Values{"question": {replay.Answers()[0].Prompt}}, "Cookie", mine)
	to, err := asked.Location()
	if err != nil {
		t.Fatal(err, asked.body)
	}
	id := to.Query().Get("answer")
	w.waitFor(t, id, "Cookie", mine)
	if got := w.get(t, to.Path, "Cookie", mine); got.StatusCode != 200 {
		t.Errorf("one's own: %d", got.StatusCode)
	}
	for _, path := range []string{
		to.Path, to.Path + "/export", "/ui/answers/" + id + "/export?as=json", "/ui/answers/" + id + "/live", "/ui/answers/" + id + "/display/0",
		"/ui/feedback?answer=" + id + "&citation=x", "/ui/conversations/" + url.PathEscape("a/../b"), "/ui/conversations/%00", "/ui/conversations/" + strings.Repeat("a", 600),
	} {
		if got := w.get(t, path, "Cookie", cookie); got.StatusCode != 404 {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
	if got := w.get(t, "/ui/answers", "Cookie", cookie); got.StatusCode != 200 || !strings.Contains(got.body, "There are none yet.") {
		t.Errorf("the list: %d %s", got.StatusCode, got.body)
	}
	if got := w.post(t, "/ui/feedback", url.Values{"answer": {id}, "verdict": {"right"}}, "Cookie", cookie); got.StatusCode != 404 {
		t.Errorf("feedback: %d %s", got.StatusCode, got.body)
	}
	if got := w.get(t, to.Path); got.StatusCode != 303 {
		t.Errorf("without a token: %d", got.StatusCode)
	}
}

// An answer that broke off says so, while it is watched and afterwards, and a call goes on when nobody watches.
func TestLiveBrokenOff(t *testing.T) {
	w := newWorld(t, replay.New(&replay.Options{Delay: 10 * time.Millisecond}))
	to := w.ask(t, "", "break off")
	id := to.Query().Get("answer")
	whole := ""
	w.watch(t, "/ui/answers/"+id+"/live", func(e sent) bool {
		if e.name == "answer" {
			whole = e.data
		}
		return e.name == "end"
	})
	w.settle(t)
	for name, text := range map[string]string{"watched": whole, "afterwards": w.get(t, to.Path).body, "exported": w.get(t, to.Path+"/export?as=markdown").body} {
		if !strings.Contains(text, "broken off") && !strings.Contains(text, "broke off") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// A reader who stops an answer keeps what has arrived, and is shown that it was stopped.
func TestStop(t *testing.T) {
	w := newWorld(t, replay.New(&replay.Options{Delay: 100 * time.Millisecond, ChunkSize: 8}))
	to := w.ask(t, "", replay.Answers()[0].Prompt)
	id, state, whole := to.Query().Get("answer"), "", true
	opened := w.get(t, to.RequestURI()).body
	if !strings.Contains(opened, `action="/ui/answers/`+id+`/stop"`) {
		t.Fatalf("nothing to stop it by: %s", opened)
	}
	w.watch(t, "/ui/answers/"+id+"/live", func(e sent) bool {
		if e.name == "block" && state == "" {
			state = "stopping"
			if got := w.post(t, "/ui/answers/"+id+"/stop", nil); got.StatusCode != http.StatusSeeOther {
				t.Errorf("stop: %d %s", got.StatusCode, got.body)
			}
		}
		if e.name == "answer" {
			var told struct {
				State string `json:"state"`
				Whole bool   `json:"whole"`
			}
			testenv.OK(t, json.Unmarshal([]byte(e.data), &told))
			state, whole = told.State, told.Whole
		}
		return e.name == "end"
	})
	testenv.Equal(t, "state", "The answer was stopped.", state)
	testenv.Equal(t, "whole", false, whole)
	w.settle(t)
	for _, want := range []string{"The answer was stopped", "Try again", html.EscapeString(replay.Answers()[0].Prompt)} {
		if got := w.get(t, to.Path).body; !strings.Contains(got, want) {
			t.Errorf("afterwards no %q: %s", want, got)
		}
	}
}

// An answer that is asked for again replaces the one before, at once and afterwards.
func TestAskAgainReplaces(t *testing.T) {
	w := newWorld(t, replay.New(nil))
	first, second := replay.Answers()[0].Prompt, replay.Answers()[1].Prompt
	to := w.ask(t, "", first)
	w.awaitAnswer(t, to)
	last := w.ask(t, to.Path[strings.LastIndexByte(to.Path, '/')+1:], second)
	w.awaitAnswer(t, last)
	for _, test := range []struct {
		follows      string
		first, again int // number of times the questions are there
	}{
		{to.Query().Get("answer"), 1, 1}, {gateway.FollowsNone, 0, 1}, {"no id, as it has spaces", 0, 2},
	} {
		res := w.post(t, "/ui/ask", url.Values{
			"question": {second}, "conversation": {to.Path[strings.LastIndexByte(to.Path, '/')+1:]}, "follows": {test.follows},
		})
		testenv.Equal(t, "status", http.StatusSeeOther, res.StatusCode)
		next := testenv.Must(res.Location())(t)
		for _, when := range []string{"at once", "afterwards"} {
			body := w.get(t, next.RequestURI()).body
			count := func(question string) int {
				return strings.Count(body, `<div class="said-text" dir="auto">`+html.EscapeString(question))
			}
			if count(first) != test.first || count(second) != test.again {
				t.Errorf("behind %q, %s: %d and %d", test.follows, when, count(first), count(second))
			}
			w.awaitAnswer(t, next)
		}
	}
}

// awaitAnswer waits until an answer is stored.
func (w *world) awaitAnswer(tb testing.TB, to *url.URL) {
	tb.Helper()
	w.watch(tb, "/ui/answers/"+to.Query().Get("answer")+"/live", func(e sent) bool { return e.name == "answer" })
	w.settle(tb)
}

// The list of sources comes before the chips that open cards of it.
func TestLiveSources(t *testing.T) {
	w := newWorld(t, replay.New(&replay.Options{Delay: 30 * time.Millisecond, ChunkSize: 8}))
	to := w.ask(t, "", "How many herons nest at Lake Tonbo?")
	known, searching := "", false
	w.watch(t, "/ui/answers/"+to.Query().Get("answer")+"/live?prefix=live1-", func(e sent) bool {
		var data struct{ HTML, Text string }
		testenv.OK(t, json.Unmarshal([]byte(e.data), &data))
		switch e.name {
		case "state":
			searching = searching || strings.HasPrefix(data.Text, "Searching: heron colony")
		case "sources":
			known = data.HTML
		case "block":
			for _, m := range regexp.MustCompile(`class="chip[^"]*" href="#([^"]+)"`).FindAllStringSubmatch(data.HTML, -1) {
				if !strings.Contains(known, `id="`+m[1]+`"`) {
					t.Errorf("the chip of %s has no row yet: %s", m[1], known)
				}
			}
		}
		return e.name == "answer"
	})
	if known == "" || !searching {
		t.Errorf("sources %q, searching %v", known, searching)
	}
}

// Streams end with the server, and their number is limited.
func TestLiveEnds(t *testing.T) {
	wait := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { replay.New(nil).ServeHTTP(&held{rw, wait}, r) }))
	t.Cleanup(func() { close(wait) })
	call := w.open(t, "POST", "/openai/v1/responses", `{"model": "heron-1", "stream": true, "input": "`+replay.Answers()[0].Prompt+`"}`)
	defer func() { _ = call.Body.Close() }()
	path := "/ui/answers/" + call.Header.Get(gateway.AnswerHeader) + "/live?run=" + call.Header.Get(gateway.RunHeader)
	first := w.open(t, "GET", path, "")
	defer func() { _ = first.Body.Close() }()
	for range 255 {
		if res := w.open(t, "GET", path, ""); res.StatusCode != 200 { //nolint:bodyclose // open closes it with the test
			t.Fatal(res.StatusCode)
		}
	}
	if got := w.get(t, path); got.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one more: %d", got.StatusCode)
	}
	w.Page.Close()
	if _, err := io.ReadAll(first.Body); err != nil {
		t.Errorf("the stream did not end: %v", err)
	}
}
