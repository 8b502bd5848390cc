package page_test

import (
	"bufio"
	"database/sql"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
)

// If somebody changed the chain, the page says that it is broken, and from where on.
func TestBrokenChain(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, store.DefaultTenant, 1)
	db, err := sql.Open("sqlite", w.dsn)
	must(t, err)
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(t.Context(), "UPDATE incidents SET status = 'gone' WHERE seq = 2")
	must(t, err)
	body := w.get(t, "GET", "/ui/incidents?check=chain").body
	if !strings.Contains(body, "The chain is broken: the first incident is in order, and a later one was changed") || strings.Contains(body, "checking incidents") {
		t.Error(body)
	}
	checkHTML(t, body)
}

// Filters that are too long are refused: dropping or cutting one would show something else under its name.
func TestLongFiltersAreRefused(t *testing.T) {
	w := newProofWorld(t, nil)
	w.fill(t, store.DefaultTenant, 1)
	long := "https://mill.example/" + strings.Repeat("x", 4<<10)
	for _, path := range []string{"/ui/incidents?source=", "/ui/search?source=", "/ui/sources?url=", "/ui/sources?key=", "/ui/verify?url="} {
		if got := w.get(t, "GET", path+long); got.StatusCode != http.StatusBadRequest || !strings.Contains(got.body, "too long") {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
		if got := w.get(t, "GET", path+long[:4<<10]); got.StatusCode != http.StatusOK && !strings.Contains(path, "key") {
			t.Errorf("%s of 4 KiB: %d %s", path, got.StatusCode, got.body)
		}
	}
	call := millCall(7, store.DefaultTenant)
	call.Answer.Sources[0].URL = long[:2<<10]
	must(t, w.store.Put(t.Context(), []*store.Call{call}))
	if body := w.get(t, "GET", "/ui/search?source="+long[:2<<10]).body; !strings.Contains(body, call.AnswerID) {
		t.Errorf("an address of 2 KiB is not found: %s", body)
	}
}

// Overviews of long answers read fewer of them, and say so.
func TestOverviewOfLongAnswers(t *testing.T) {
	w := newProofWorld(t, nil)
	text := strings.Repeat("The mill closed in 1987. ", 6<<20/25)
	for n := range 4 {
		call := millCall(n, store.DefaultTenant)
		call.Answer.Text, call.Answer.Citations = text, nil
		call.Answer.Parts = []ibid.Part{{Span: ibid.Span{End: len(text)}, Kind: ibid.AnswerPart}}
		must(t, w.store.Put(t.Context(), []*store.Call{call}))
	}
	for _, path := range []string{"/ui/overview", "/ui/sources"} {
		got := w.get(t, "GET", path)
		if got.StatusCode != http.StatusOK || !regexp.MustCompile(`the latest [12] answers?`).MatchString(got.body) {
			t.Errorf("%s: %d %s", path, got.StatusCode, got.body)
		}
	}
}

// A reader whose session has expired is shown where to sign in, also after sending a form, and then returns to that
// page.
func TestExpiredSession(t *testing.T) {
	w := newProofWorld(t, nil)
	_, err := w.store.NewToken(t.Context(), &store.Token{Tenant: store.DefaultTenant, Name: "reader", Scopes: []string{store.ScopeRead}})
	must(t, err)
	w.token = "ibid_expired"
	for referer, want := range map[string]string{
		w.URL + "/ui/verify?url=x":       `href="/ui/login?next=%2Fui%2Fverify%3Furl%3Dx"`,
		"https://evil.example/ui/verify": `href="/ui/login"`,
		w.URL + "//evil.example":         `href="/ui/login"`,
		"":                               `href="/ui/login"`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/ui/verify", strings.NewReader("url=https://a.example"))
		must(t, err)
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {w.URL}, "Sec-Fetch-Site": {"same-origin"}, "Referer": {referer}}
		got := w.send(t, r)
		if got.StatusCode != http.StatusUnauthorized || !strings.Contains(got.body, want) || strings.Contains(got.body, "ibid token") {
			t.Errorf("%q: %d %s", referer, got.StatusCode, got.body)
		}
		checkHTML(t, got.body)
	}
}

// Pages show the public address, and cookies are only sent over https if it is https.
func TestPublicURL(t *testing.T) {
	w := newProofWorld(t, nil)
	w.options.PublicURL = "https://ibid.example/"
	w.start(t)
	for path, want := range map[string]string{"/": "curl https://ibid.example/openai/v1/responses", "/ui/verify": "curl https://ibid.example/v1/verify"} {
		if body := w.get(t, "GET", path).body; !strings.Contains(body, want) {
			t.Errorf("%s has no %q: %s", path, want, body)
		}
	}
	secret, err := w.store.NewToken(t.Context(), &store.Token{Tenant: store.DefaultTenant, Name: "reader", Scopes: []string{store.ScopeRead}})
	must(t, err)
	for public, want := range map[string]bool{"": false, "http://ibid.example": false, "https://ibid.example": true} {
		w.options.PublicURL = public
		w.start(t)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/ui/login", strings.NewReader("token="+secret))
		must(t, err)
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"}}
		got := w.send(t, r)
		if cookies := got.Cookies(); len(cookies) != 1 || cookies[0].Secure != want {
			t.Errorf("%q: %d %v", public, got.StatusCode, cookies)
		}
	}
}

// A slow upload does not keep others from verifying: a slot is taken only once everything has arrived.
func TestSlowUploads(t *testing.T) {
	w := newProofWorld(t, nil)
	address := strings.TrimPrefix(w.URL, "http://")
	for range 4 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		must(t, err)
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "POST /ui/verify HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n"+
			"Expect: 100-continue\r\n\r\n", address, w.URL)
		must(t, err)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
			t.Fatalf("the form is not being read: %q, %v", line, err)
		}
	}
	if got := w.verifyForm(t, nil, document(t, w.site.URL+"/mill")); got.StatusCode != http.StatusOK {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

// timedWriter records the read deadline that is set on its connection.
type timedWriter struct {
	*httptest.ResponseRecorder

	until []time.Time
}

func (w *timedWriter) SetReadDeadline(until time.Time) error {
	w.until = append(w.until, until)
	return nil
}

// Forms have a deadline to arrive; processing them has none.
func TestFormsArriveInTime(t *testing.T) {
	w := newProofWorld(t, nil)
	for _, path := range []string{"/ui/verify", "/ui/login"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+path, strings.NewReader("text=x&token=x"))
		r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"}}
		rw := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
		w.page.ServeHTTP(rw, r)
		if len(rw.until) != 2 || time.Until(rw.until[0]) > time.Minute || time.Until(rw.until[0]) < time.Second || !rw.until[1].IsZero() {
			t.Errorf("%s: %d %v", path, rw.Code, rw.until)
		}
	}
}
