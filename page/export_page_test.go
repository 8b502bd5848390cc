package page_test

import (
	"encoding/json"
	"mime"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// talked returns a call of a conversation whose answer cites pages, one in each sentence.
func talked(id, question, text string, urls ...string) *store.Call {
	a := &ibid.Answer{
		ID: id, Provider: "openai", Format: "openai-responses", Model: "heron-1", Complete: true, Finish: ibid.FinishStop, Text: text,
		Parts: []ibid.Part{{Span: ibid.Span{End: len(text)}, Kind: ibid.AnswerPart}},
	}
	for i, u := range urls {
		one := "web:" + string(rune('0'+i))
		a.Sources = append(a.Sources, ibid.Source{ID: one, Kind: ibid.Web, Title: "About " + u, URL: u})
		if err := a.Cite(ibid.Span{End: strings.IndexByte(text, '.') + 1}, ibid.Ref{Source: one, Quote: "herons do"}); err != nil {
			panic(err)
		}
	}
	return &store.Call{
		AnswerID: id, Tenant: store.DefaultTenant, Upstream: "openai", Route: "POST /v1/responses", Run: "run_" + id, Conversation: "c 1/2", Status: 200,
		Started: time.Date(2026, 11, 21, 10, 0, int(id[len(id)-1]-'0'), 0, time.UTC), Prompt: []store.Message{{Role: "user", Text: question}}, Answer: a,
	}
}

// A conversation is exported as one file with one numbering and each source once.
func TestExportConversation(t *testing.T) {
	w := newWorld(t, nil)
	broken := talked("ans_3", "And code?", "It is. This:\n\n```go\nx :=", "https://c.example/")
	broken.Answer.Complete = false
	if err := w.Store.Put(t.Context(), []*store.Call{
		talked("ans_1", "Where do herons\nnest? <b>", "In trees. Often.", "https://a.example/", "https://b.example/"),
		talked("ans_2", "And egrets?", "There too. Yes.", "https://b.example/", "https://c.example/"),
		broken,
	}); err != nil {
		t.Fatal(err)
	}
	base := "/ui/conversations/" + url.PathEscape("c 1/2")
	got := w.get(t, base+"/export?as=plain")
	want := `> Where do herons
> nest? <b>

In trees.[1][2] Often.

> And egrets?

There too.[2][3] Yes.

> And code?

It is.[3] This:

` + "```go\nx :=\n```" + `

*The answer broke off here.*

Sources:

[1] About https://a.example/ — a.example — https://a.example/
[2] About https://b.example/ — b.example — https://b.example/
[3] About https://c.example/ — c.example — https://c.example/
`
	testenv.Equal(t, "", want, got.body)
	tests := []struct {
		as, name, want string
		count          int
	}{
		{"markdown", "where-do-herons-nest-b.md", "(https://b.example/)", 2},
		{"footnotes", "where-do-herons-nest-b.footnotes.md", "[^2]: ", 1},
		{"html", "where-do-herons-nest-b.html", "<title>Where do herons nest? &lt;b&gt;</title>", 1},
		{"latex", "where-do-herons-nest-b.tex", "b.example", 1},
		{"bibtex", "where-do-herons-nest-b.bib", "@online{", 3},
		{"ris", "where-do-herons-nest-b.ris", "TY  - ", 3},
		{"csl-json", "where-do-herons-nest-b.csl.json", `"URL":`, 3},
		{"apa", "where-do-herons-nest-b.apa.txt", "About", 3},
		{"mla", "where-do-herons-nest-b.mla.txt", "About", 3},
		{"chicago", "where-do-herons-nest-b.chicago.txt", "About", 3},
		{"json", "where-do-herons-nest-b.json", `"answer_id":"ans_`, 6},
	}
	for _, tt := range tests {
		got := w.get(t, base+"/export?as="+tt.as)
		_, params, err := mime.ParseMediaType(got.Header.Get("Content-Disposition"))
		if got.StatusCode != 200 || err != nil || params["filename"] != tt.name {
			t.Errorf("%s: %d %v %q", tt.as, got.StatusCode, err, params["filename"])
		}
		if n := strings.Count(got.body, tt.want); n < tt.count {
			t.Errorf("%s: %q occurs %d times: %s", tt.as, tt.want, n, got.body)
		}
		if head := w.do(t, "HEAD", base+"/export?as="+tt.as, ""); head.StatusCode != 200 || head.body != "" {
			t.Errorf("HEAD %s: %d", tt.as, head.StatusCode)
		}
	}
	for _, as := range []string{"openai", "docx", "../x"} {
		if got := w.get(t, base+"/export?as="+url.QueryEscape(as)); got.StatusCode != 400 {
			t.Errorf("%s: %d", as, got.StatusCode)
		}
	}
	page := w.get(t, base)
	if page.StatusCode != 200 || !strings.Contains(page.body, base+"/export?as=bibtex") || !strings.Contains(page.body, "Where do herons\nnest? &lt;b&gt;") {
		t.Errorf("%d %s", page.StatusCode, page.body)
	}
}

// A single answer can be exported in every form of the menu.
func TestExportAnswer(t *testing.T) {
	w := newWorld(t, nil)
	w.put(t, talked("ans_1", "Wo nisten Reiher? 蒼鷺", "In trees. Often.", "https://a.example/"))
	page := w.get(t, "/ui/answers/ans_1").body
	for _, as := range []string{
		"markdown", "footnotes", "html", "plain", "latex", "json", "bibtex", "ris", "csl-json", "apa", "mla", "chicago", "openai", "langchain", "llamaindex",
	} {
		path := "/ui/answers/ans_1/export?as=" + as
		got := w.get(t, path)
		if got.StatusCode != 200 || !strings.Contains(got.body, "a.example") && as != "openai" {
			t.Errorf("%s: %d %s", as, got.StatusCode, got.body)
		}
		if strings.HasPrefix(got.Header.Get("Content-Type"), "application/json") && !json.Valid([]byte(got.body)) {
			t.Errorf("%s: no JSON: %s", as, got.body)
		}
		_, params, err := mime.ParseMediaType(got.Header.Get("Content-Disposition"))
		if err != nil || !strings.HasPrefix(params["filename"], "wo-nisten-reiher-蒼鷺.") {
			t.Errorf("%s: %v %q", as, err, params)
		}
		if !strings.Contains(page, path) {
			t.Errorf("the page has no link to %s", path)
		}
	}
}

// A long conversation has several pages, and is exported as a whole.
func TestLongConversation(t *testing.T) {
	w := newWorld(t, nil)
	const many = 45
	var calls []*store.Call
	for i := range many {
		c := talked("ans_"+time.Duration(1000+i).String()+"0", "Question "+time.Duration(i).String(), "It is. So.", "https://a.example/")
		c.Started = c.Started.Add(time.Duration(i) * time.Minute)
		calls = append(calls, c)
	}
	w.put(t, calls...)
	path := "/ui/conversations/c%201%2F2"
	seen, pages := 0, 0
	for path != "" {
		got := w.get(t, path)
		if got.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, got.StatusCode, got.body)
		}
		pages++
		seen += strings.Count(got.body, `<article class="answer"`)
		_, rest, more := strings.Cut(got.body, `href="/ui/conversations/c%201%2F2?cursor=`)
		if path = ""; more {
			cursor, _, _ := strings.Cut(rest, `"`)
			path = "/ui/conversations/c%201%2F2?cursor=" + cursor
		}
	}
	if seen != many || pages != 3 {
		t.Errorf("%d answers on %d pages", seen, pages)
	}
	if n := strings.Count(w.get(t, "/ui/conversations/c%201%2F2/export?as=markdown").body, "It is."); n != many {
		t.Errorf("%d answers in the file", n)
	}
	if got := w.get(t, "/ui/conversations/c%201%2F2?cursor=nonsense"); got.StatusCode != 400 {
		t.Errorf("a cursor that is none: %d", got.StatusCode)
	}
}

// What Google requires to be shown is shown as it was sent, where it can do nothing.
func TestDisplay(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/")
	const hostile = `<style>a{color:red}</style><a href="https://google.example/">herons</a><script>top.location="https://evil.example"</script>`
	c.Answer.Display = []ibid.Display{{Kind: "google-search-suggestions", HTML: hostile}}
	w.put(t, c)
	got := w.get(t, "/ui/answers/ans_1/display/1")
	if got.StatusCode != 200 || !strings.HasSuffix(got.body, hostile) {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	policy := got.Header.Get("Content-Security-Policy")
	for _, want := range []string{"sandbox allow-popups", "default-src 'none'", "frame-ancestors 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q has no %s", policy, want)
		}
	}
	for _, not := range []string{"script", "allow-same-origin", "https:"} {
		if strings.Contains(policy, not) {
			t.Errorf("policy %q has %s", policy, not)
		}
	}
	for _, n := range []string{"0", "2", "-1", "x", "99999999999999999999"} {
		if got := w.get(t, "/ui/answers/ans_1/display/"+n); got.StatusCode != 404 {
			t.Errorf("%s: %d", n, got.StatusCode)
		}
	}
}

// Feedback on a citation is stored with the name of the reader's token, and shown with it.
func TestGiveFeedback(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/")
	citation := c.Answer.Citations[0].ID
	w.put(t, c)
	form := url.Values{"answer": {"ans_1"}, "citation": {citation}, "verdict": {"wrong-source"}, "note": {"It is about <owls>."}, "next": {"/ui/answers/ans_1#m-1"}}
	if got := w.post(t, "/ui/feedback", form); got.StatusCode != 303 || got.Header.Get("Location") != "/ui/answers/ans_1#m-1" {
		t.Errorf("%d %s", got.StatusCode, got.Header.Get("Location"))
	}
	if got := w.post(t, "/ui/feedback", form, "Accept", "application/json"); got.StatusCode != 204 {
		t.Errorf("by a script: %d %s", got.StatusCode, got.body)
	}
	about := w.get(t, "/ui/feedback?answer=ans_1&citation="+citation)
	for _, want := range []string{`value="wrong-source" class="first" aria-current="true"`, "It is about &lt;owls&gt;.", "It is."} {
		if !strings.Contains(about.body, want) {
			t.Errorf("no %q: %s", want, about.body)
		}
	}
	if got := w.get(t, "/ui/feedback"); got.StatusCode != 200 || !strings.Contains(got.body, "2 verdicts") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if got := w.get(t, "/ui/feedback?as=csv"); got.StatusCode != 200 || strings.Count(got.body, "wrong-source") != 2 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	for name, wrong := range map[string]url.Values{
		"no such citation": {"answer": {"ans_1"}, "citation": {"x"}, "verdict": {"right"}},
		"no such verdict":  {"answer": {"ans_1"}, "citation": {citation}, "verdict": {"nice"}},
		"nothing":          {},
		"no number":        {"run": {"run_ans_1"}, "source": {"https://a.example/"}, "relevance": {"much"}},
		"no step":          {"run": {"run_ans_1"}, "source": {"https://a.example/"}, "relevance": {"1"}, "step": {"0"}},
	} {
		if got := w.post(t, "/ui/feedback", wrong); got.StatusCode != 400 {
			t.Errorf("%s: %d", name, got.StatusCode)
		}
	}
	rate := url.Values{"run": {"run_ans_1"}, "source": {"https://a.example/"}, "relevance": {"0.5"}, "step": {"1"}, "next": {"https://evil.example/"}}
	if got := w.post(t, "/ui/feedback", rate); got.StatusCode != 303 || got.Header.Get("Location") != "/" {
		t.Errorf("%d %s %s", got.StatusCode, got.Header.Get("Location"), got.body)
	}
	if got := w.do(t, "POST", "/ui/feedback", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://evil.example"); got.StatusCode != 403 {
		t.Errorf("another site's form: %d", got.StatusCode)
	}
}

// Feedback names the reader's token, which must allow it.
func TestFeedbackBy(t *testing.T) {
	w := newWorld(t, nil)
	c := talked("ans_1", "q", "It is. So.", "https://a.example/")
	w.put(t, c)
	form := url.Values{"answer": {"ans_1"}, "citation": {c.Answer.Citations[0].ID}, "verdict": {"right"}}
	for _, who := range []struct {
		name   string
		scopes []string
		want   int
	}{{"ann", []string{store.ScopeRead, store.ScopeWrite}, 303}, {"bob", []string{store.ScopeRead}, 403}} {
		secret := testenv.Must(w.Store.NewToken(t.Context(), &store.Token{Name: who.name, Scopes: who.scopes}))(t)
		if got := w.post(t, "/ui/feedback", form, "Cookie", gateway.SessionCookie+"="+secret); got.StatusCode != who.want {
			t.Errorf("%s: %d %s", who.name, got.StatusCode, got.body)
		}
	}
	kept, err := w.Store.Feedback(t.Context(), store.DefaultTenant, nil)
	if err != nil || len(kept.Items) != 1 || kept.Items[0].By != "ann" {
		t.Errorf("%v %+v", err, kept)
	}
}
