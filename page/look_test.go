package page_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// paste pastes an answer, and returns its page.
func (w *world) paste(tb testing.TB, answer, given string) *shownPage {
	tb.Helper()
	res := w.post(tb, "/ui/look", url.Values{"answer": {answer}, "given": {given}})
	if res.StatusCode != 303 {
		tb.Fatalf("%d %s", res.StatusCode, res.body)
	}
	return w.get(tb, res.Header.Get("Location"))
}

// An answer that somebody has can be looked at as any other: a response, a stream, or a text with numbers and what they
// stand for in any of the forms in which people have it.
func TestLook(t *testing.T) {
	w := newWorld(t, nil)
	const text = "The bridge opened in 1907 [1]. It is 340 metres long [2].\r\n"
	const passages = "[1] The old bridge\r\nThe bridge was opened to traffic in 1907.\r\n\r\n[2] Lengths\r\nIts length is 340 metres.\r\n"
	for name, given := range map[string]string{
		"passages":            passages,
		"documents":           `[{"title": "The old bridge", "text": "It was opened in 1907."}, {"title": "Lengths", "text": "340 metres"}]`,
		"a request":           `{"messages": [{"role": "user", "content": ` + strconv.Quote("Context:\n"+passages+"\nQuestion: When did it open?") + `}]}`,
		"addresses":           "https://bridges.example/old\r\nhttps://bridges.example/lengths",
		"addresses in a list": "1. The old bridge: https://bridges.example/old\r\n2. Lengths - https://bridges.example/lengths",
	} {
		got := w.paste(t, text, given)
		if got.StatusCode != 200 || strings.Count(got.body, `class="chip`) != 2 || strings.Contains(got.body, "No sources") {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.body)
		}
	}
	if got := w.paste(t, text, ""); !strings.Contains(got.body, "No sources") || !strings.Contains(got.body, "1907 [1]") {
		t.Errorf("nothing given: %s", got.body)
	}
	got := w.paste(t, `{"id": "x", "model": "sonar", "citations": ["https://bridges.example/old"],`+
		`"choices": [{"finish_reason": "stop", "message": {"content": "It opened in 1907.[1]"}}]}`, "")
	if strings.Count(got.body, `class="chip`) != 1 || !strings.Contains(got.body, "bridges.example") {
		t.Errorf("a response: %s", got.body)
	}
	for _, answer := range []string{"", " \r\n", "\x00\x01\x02\x03\xff\xfe"} {
		if got := w.post(t, "/ui/look", url.Values{"answer": {answer}}); got.StatusCode < 400 || got.StatusCode >= 500 {
			t.Errorf("%q: %d", answer, got.StatusCode)
		}
	}
}

// A pasted answer is in no list and in no store, and gone when enough others came, unless its reader has it stored.
func TestLookStoresNothing(t *testing.T) {
	w := newWorld(t, nil)
	first := w.post(t, "/ui/look", url.Values{"answer": {"The bridge opened in 1907 [1]."}, "given": {"https://a.example/"}}).Header.Get("Location")
	if got := w.get(t, "/ui/answers"); !strings.Contains(got.body, "There are none yet.") {
		t.Errorf("listed: %s", got.body)
	}
	page := w.get(t, first)
	if !strings.Contains(page.body, first+"/keep") || strings.Contains(page.body, `class="judge"`) {
		t.Errorf("%s", page.body)
	}
	for _, path := range []string{first + "/export?as=markdown", first + "/sources/1", first + "/verification"} {
		if got := w.get(t, path); got.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
	}
	if got := w.post(t, first+"/keep", nil); got.StatusCode != 303 {
		t.Fatalf("keep: %d %s", got.StatusCode, got.body)
	}
	if got := w.get(t, "/ui/answers"); !strings.Contains(got.body, first) {
		t.Errorf("kept, not listed: %s", got.body)
	}
	if got := w.get(t, first); got.StatusCode != 200 || strings.Contains(got.body, "/keep") {
		t.Errorf("kept: %d %s", got.StatusCode, got.body)
	}
	second := w.post(t, "/ui/look", url.Values{"answer": {"Another."}}).Header.Get("Location")
	for range 8 {
		w.post(t, "/ui/look", url.Values{"answer": {"More."}})
	}
	if got := w.get(t, second); got.StatusCode != 404 {
		t.Errorf("the ninth did not take its place: %d", got.StatusCode)
	}
}

// What one tenant pasted is nobody else's, and storing it needs the scope for writing.
func TestLookTenants(t *testing.T) {
	w := newWorld(t, nil)
	cookies := map[string]string{}
	for _, who := range []store.Token{
		{Tenant: "one", Name: "ann", Scopes: []string{store.ScopeRead}}, {Tenant: "two", Name: "bob", Scopes: []string{store.ScopeRead}},
	} {
		cookies[who.Name] = gateway.SessionCookie + "=" + testenv.Must(w.Store.NewToken(t.Context(), &who))(t)
	}
	res := w.post(t, "/ui/look", url.Values{"answer": {"Text [1]."}}, "Cookie", cookies["ann"])
	at := res.Header.Get("Location")
	if got := w.get(t, at, "Cookie", cookies["ann"]); got.StatusCode != 200 {
		t.Errorf("one's own: %d", got.StatusCode)
	}
	if got := w.get(t, at, "Cookie", cookies["bob"]); got.StatusCode != 404 {
		t.Errorf("another tenant's: %d", got.StatusCode)
	}
	if got := w.post(t, at+"/keep", nil, "Cookie", cookies["ann"]); got.StatusCode != 403 {
		t.Errorf("keep without the scope: %d", got.StatusCode)
	}
}

// A claim that the passage behind its number does not say is marked in the text, though nothing was quoted.
func TestLookCompares(t *testing.T) {
	w := newWorld(t, nil)
	got := w.paste(t, "The bridge opened in 1931 [1]. Its length is 340 metres [2].",
		"[1] The old bridge\nThe bridge was opened to traffic in 1907.\n\n[2] Lengths\nIts length is 340 metres, and it has six arches.")
	for _, want := range []string{">differs: </span>", "source: 1907", ">supported: </span>"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s: %s", want, got.body)
		}
	}
}
