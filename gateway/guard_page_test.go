package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// cookie returns a request's Cookie header with a session.
func cookie(secret string) string {
	pair, _, _ := strings.Cut(gateway.SessionOf(secret, true).String(), ";")
	return pair
}

// With tokens, a page needs one, in a header or in the cookie, and changes must come from one of our own pages.
func TestGuardPage(t *testing.T) {
	s := openTokens(t)
	reading, _ := newSecret(t, s, store.Token{Tenant: "acme", Scopes: []string{store.ScopeRead}})
	g := gateway.NewGuard(&gateway.GuardOptions{Store: s, Bootstrap: bootstrap, Origins: []string{"https://app.example"}})
	values := map[string]string{
		"reading": reading, "session": cookie(reading), "rootCookie": cookie(bootstrap), "own": "https://ibid.example:8443",
		"plain":  strings.Repeat(gateway.SessionCookie+"=x; ", 100),
		"secure": strings.Repeat(gateway.SecureCookie+"=x; ", 100),
	}
	for _, test := range testenv.Table[guardCase](t, "testdata/guard_page.txt") {
		r := test.request(values)
		r.Host = "ibid.example:8443"
		id, err := g.Page(r, test.Scope)
		if got := outcome(err); got != test.Want {
			t.Errorf("%s: %q, want %q", test.Name, got, test.Want)
		}
		if err == nil && id.Token != "bootstrap" && id.Tenant != "acme" {
			t.Errorf("%s: %+v", test.Name, id)
		}
	}
	if needed, err := g.NeedsToken(t.Context()); err != nil || !needed {
		t.Errorf("NeedsToken: %t, %v", needed, err)
	}
}

// Without tokens, pages are for everyone on this machine, except for web pages unrelated to ibid.
func TestGuardPageWithoutTokens(t *testing.T) {
	g := gateway.NewGuard(&gateway.GuardOptions{Store: openTokens(t), Origins: []string{"https://app.example"}})
	values := map[string]string{"own": "http://127.0.0.1:8080"}
	for _, test := range testenv.Table[guardCase](t, "testdata/guard_page_open.txt") {
		id, err := g.Page(test.request(values), test.Scope)
		if got := outcome(err); got != test.Want {
			t.Errorf("%s: %q, want %q", test.Name, got, test.Want)
		}
		if err == nil && id.Tenant != store.DefaultTenant {
			t.Errorf("%s: %+v", test.Name, id)
		}
	}
	if needed, err := g.NeedsToken(t.Context()); err != nil || needed {
		t.Errorf("NeedsToken: %t, %v", needed, err)
	}
}

// No script and no other site's page can read the cookie, whatever it contains. Links from elsewhere send it.
func TestSessionOf(t *testing.T) {
	for secret, want := range map[string]string{
		"tok_1":          "__Host-ibid_session=tok_1; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax",
		"a; b=\"c\",\\é": "__Host-ibid_session=a%3B%20b=%22c%22%2C%5C%C3%A9; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Lax",
		"":               "__Host-ibid_session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax",
	} {
		if got := gateway.SessionOf(secret, true).String(); got != want {
			t.Errorf("%q: %s, want %s", secret, got, want)
		}
	}
	if got := gateway.SessionOf("x", false); got.Secure || got.SameSite != http.SameSiteLaxMode {
		t.Errorf("without https: %s", got)
	}
}

// No provider sees the session, which a browser sends to all paths, and none can set one.
func TestSessionStays(t *testing.T) {
	secret := cookie("tok_1")
	for name, test := range map[string]struct{ sent, want []string }{
		"alone":            {[]string{secret}, nil},
		"first":            {[]string{secret + "; a=1; b=2"}, []string{"a=1; b=2"}},
		"between":          {[]string{"a=1; " + secret + "; b=2"}, []string{"a=1; b=2"}},
		"last":             {[]string{"a=1;" + secret}, []string{"a=1"}},
		"twice":            {[]string{secret + "; " + secret}, nil},
		"in a line":        {[]string{"a=1", secret, "b=2; " + secret}, []string{"a=1", "b=2"}},
		"with space":       {[]string{"a=1;\t ibid_session =x"}, []string{"a=1"}},
		"without a value":  {[]string{"ibid_session; a=1"}, []string{"a=1"}},
		"others like it":   {[]string{"my_ibid_session=1; ibid_session2=2; a=ibid_session"}, []string{"my_ibid_session=1; ibid_session2=2; a=ibid_session"}},
		"others, not well": {[]string{";; a ;b=\"x;y\";"}, []string{";; a ;b=\"x;y\";"}},
	} {
		for _, path := range []string{captured, streamed, "/up/v1/realtime"} {
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				testenv.Equal(t, fmt.Sprintf("%s, %s", name, path), test.want, r.Header["Cookie"])
				set := []string{"ibid_session=evil; Path=/", "__Host-ibid_session=evil; Path=/; Secure", "__host-ibid_session=evil", " ibid_session =evil", "=ibid_session=evil", "ibid_session", "ibid_session;Max-Age=0", "theirs=ibid_session"}
				w.Header()["Set-Cookie"] = set
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(http.StatusNoContent)
			}, nil)
			r := w.request(t, "GET", path, nil)
			r.Header["Cookie"] = test.sent
			if path == "/up/v1/realtime" {
				r.Header["Connection"], r.Header["Upgrade"] = []string{"upgrade"}, []string{"websocket"}
			}
			r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
				if diff := cmp.Diff([]string{"theirs=ibid_session"}, h["Set-Cookie"]); diff != "" && path != "/up/v1/realtime" {
					t.Errorf("%s, %s: set early (-want +got):\n%s", name, path, diff)
				}
				return nil
			}}))
			res, _ := w.do(t, r)
			testenv.Equal(t, fmt.Sprintf("%s, %s: set", name, path), []string{"theirs=ibid_session"}, res.Header["Set-Cookie"])
		}
	}
}

// Only ibid decides what pages may do: the upstream's answer to that is dropped, but it may add readable headers. A
// preflight never reaches it.
func TestCORSOnTheWayThrough(t *testing.T) {
	guard := gateway.NewGuard(&gateway.GuardOptions{Origins: []string{"https://app.example"}})
	for name, test := range map[string]struct {
		guard  *gateway.Guard
		origin string
		want   http.Header
	}{
		"allowed": {guard, "https://app.example", http.Header{
			"Access-Control-Allow-Origin": {"https://app.example"}, "Access-Control-Expose-Headers": {"Ibid-Run, Ibid-Answer, Ibid-Policy, Citation-Source, X-Request-Id"},
			"Vary": {"Origin", "Accept"},
		}},
		"no page": {guard, "", http.Header{"Vary": {"Origin", "Accept"}}},
		"not configured": {gateway.NewGuard(nil), "", http.Header{
			"Access-Control-Allow-Origin": {"*"}, "Access-Control-Allow-Credentials": {"true"}, "Access-Control-Expose-Headers": {"X-Request-Id"},
			"Vary": {"Accept"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				h := w.Header()
				h.Set("Access-Control-Allow-Origin", "*")
				h.Set("Access-Control-Allow-Credentials", "true")
				h.Set("Access-Control-Expose-Headers", "X-Request-Id")
				h.Set("Vary", "Accept")
				answerParts(chatParts("So ", "it is.")...)(w, r)
			}, &setup{options: gateway.Options{Guard: test.guard}})
			front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				if !test.guard.CORS(out, r) {
					w.gateway.ServeHTTP(out, r)
				}
			}))
			defer front.Close()
			w.url = front.URL
			for i, path := range []string{chat, streamed} {
				r := w.request(t, "POST", path, strings.NewReader(chatRequest))
				if test.origin != "" {
					r.Header.Set("Origin", test.origin)
				}
				res, _ := w.do(t, r)
				got := http.Header{}
				for name, values := range res.Header {
					if name == "Vary" || strings.HasPrefix(name, "Access-Control-") {
						got[name] = values
					}
				}
				if diff := cmp.Diff(test.want, got); diff != "" || res.StatusCode != 200 || int(calls.Load()) != i+1 {
					t.Errorf("%s: %d, %d calls (-want +got):\n%s", path, res.StatusCode, calls.Load(), diff)
				}
			}
			if test.origin == "" {
				return
			}
			r := w.request(t, "OPTIONS", chat, nil)
			r.Header.Set("Origin", test.origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
			asked := "anthropic-dangerous-direct-browser-access,anthropic-version,authorization,content-type,ibid-conversation,ibid-run,ibid-token,x-api-key,x-goog-api-key"
			r.Header.Set("Access-Control-Request-Headers", asked)
			res, _ := w.do(t, r)
			if res.StatusCode != 204 || res.Header.Get("Access-Control-Allow-Headers") != asked || calls.Load() != 2 ||
				len(res.Header["Access-Control-Allow-Origin"]) != 1 {
				t.Errorf("preflight: %d %v, %d calls", res.StatusCode, res.Header, calls.Load())
			}
		})
	}
}
