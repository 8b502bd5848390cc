package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

const bootstrap = "a token from the environment"

// guardRequest returns a request with header fields, alternating names and values; "Host" sets the host.
func guardRequest(method string, fields ...string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:8080/v1/answers", nil)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
			continue
		}
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

// guardCase is a row of testdata/guard_*.txt.
type guardCase struct{ Name, Method, Scope, Want, Fields string }

// request returns the case's request, with $names replaced by values.
func (c *guardCase) request(values map[string]string) *http.Request {
	r := guardRequest(c.Method)
	setFields(r, c.Fields, values)
	return r
}

// setFields sets header fields, separated by " | ", with $names replaced by values; "Host" sets the host.
func setFields(r *http.Request, fields string, values map[string]string) {
	for field := range strings.SplitSeq(fields, " | ") {
		name, value, _ := strings.Cut(field, ": ")
		value = os.Expand(value, func(name string) string { return values[name] })
		if name == "Host" {
			r.Host = value
		} else if name != "" {
			r.Header.Set(name, value)
		}
	}
}

// outcome returns the code of a problem, or "" for no error.
func outcome(err error) string {
	if err == nil {
		return ""
	}
	return gateway.ProblemOf(err).Code
}

func openTokens(t *testing.T) *store.Store {
	t.Helper()
	s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newSecret(t *testing.T, s *store.Store, token store.Token) (secret, id string) {
	t.Helper()
	secret = testenv.Must(s.NewToken(t.Context(), &token))(t)
	return secret, token.ID
}

// Without tokens everyone is admitted, except requests of web pages unrelated to ibid.
func TestGuardWithoutTokens(t *testing.T) {
	g := gateway.NewGuard(&gateway.GuardOptions{
		Store: openTokens(t), Origins: []string{"https://App.example/", "*"},
	})
	for _, test := range testenv.Table[guardCase](t, "testdata/guard_open.txt") {
		t.Run(test.Name, func(t *testing.T) {
			r := test.request(nil)
			id, err := g.API(r, test.Scope)
			if got := outcome(err); got != test.Want {
				t.Fatalf("API: %q (%v), want %q", got, err, test.Want)
			}
			if _, err := g.Proxy(r); outcome(err) != test.Want {
				t.Errorf("Proxy: %v, want %q", err, test.Want)
			}
			if err := g.Local(r); outcome(err) != test.Want {
				t.Errorf("Local: %v, want %q", err, test.Want)
			}
			if err == nil {
				testenv.Equal(t, "identity", gateway.Identity{Tenant: "default", Scopes: store.Scopes(), Publish: true}, id)
			}
		})
	}
}

// If ibid is exposed, nothing works without a token, under any name: a proxy in front may send this machine's name as
// the Host. An empty or lost database of tokens opens nothing. Public paths stay public.
func TestGuardExposed(t *testing.T) {
	for name, s := range map[string]*store.Store{"no token": openTokens(t), "no store": nil} {
		g := gateway.NewGuard(&gateway.GuardOptions{Store: s, Exposed: true})
		for _, host := range []string{"ibid.example", "127.0.0.1:8080", "localhost"} {
			r := guardRequest("GET", "Host", host)
			_, proxy := g.Proxy(r)
			_, api := g.API(r, store.ScopeAdmin)
			_, page := g.Page(r, store.ScopeRead)
			_, stream := g.Stream(r, "run_1")
			for what, err := range map[string]error{"Proxy": proxy, "API": api, "Page": page, "Stream": stream} {
				if outcome(err) != gateway.CodeToken {
					t.Errorf("%s, %s: %s: %v", name, host, what, err)
				}
			}
			if err := g.Local(r); err != nil {
				t.Errorf("%s, %s: Local: %v", name, host, err)
			}
		}
		if g.Still(t.Context(), gateway.Identity{Tenant: store.DefaultTenant}) {
			t.Errorf("%s: a client that needed no token is still admitted", name)
		}
	}
}

// A client that guesses tokens is soon blocked, and logged; valid tokens still work from the same address.
func TestGuardGuessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &servertest.Log{}
		g := gateway.NewGuard(&gateway.GuardOptions{Bootstrap: bootstrap, Logger: slog.New(slog.NewJSONHandler(log, nil))})
		ask := func(address, secret string) error {
			r := guardRequest("GET", "Authorization", "Bearer "+secret)
			r.RemoteAddr = address
			_, err := g.API(r, store.ScopeRead)
			return err
		}
		const one, other, near, far = "192.0.2.1:1000", "192.0.2.1:2000", "[2001:db8::1]:1", "[2001:db8:0:1::1]:1"
		testenv.OK(t, ask(one, bootstrap))
		for range 100 { // a program whose token was revoked
			if err := ask(one, "stale"); outcome(err) != gateway.CodeToken {
				t.Fatalf("the same wrong token: %v", err)
			}
		}
		codes := map[string]int{}
		for i := range 50 {
			codes[outcome(ask([]string{one, other}[i%2], fmt.Sprint("guess ", i)))]++
			codes["IPv6 "+outcome(ask(strings.Replace(near, "::1", fmt.Sprintf("::%d", i+1), 1), fmt.Sprint("other ", i)))]++
		}
		testenv.Equal(t, "guesses", map[string]int{
			gateway.CodeToken: 19, gateway.CodeTooMany: 31, "IPv6 " + gateway.CodeToken: 20, "IPv6 " + gateway.CodeTooMany: 30,
		}, codes)
		problem := gateway.ProblemOf(ask(one, "one more"))
		if problem.Status != 429 || problem.Header.Get("Retry-After") != "3" {
			t.Errorf("%d, Retry-After %q", problem.Status, problem.Header.Get("Retry-After"))
		}
		if got := outcome(ask(one, "stale")); got != gateway.CodeToken {
			t.Errorf("a token that was wrong before: %q", got)
		}
		testenv.OK(t, ask(one, bootstrap))
		if got := outcome(ask(near, bootstrap)); got != "" {
			t.Errorf("a token that was right elsewhere: %q", got)
		}
		for _, address := range []string{"192.0.2.2:1", far, "@"} {
			if got := outcome(ask(address, "a guess from "+address)); got != gateway.CodeToken {
				t.Errorf("%s: %q", address, got)
			}
		}
		if lines := strings.Count(log.String(), "an access token was refused"); lines != 20+20+3 {
			t.Errorf("%d lines:\n%s", lines, log.String())
		}
		for _, secret := range []string{bootstrap, "stale", "guess"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log has %q:\n%s", secret, log.String())
			}
		}
		time.Sleep(3 * time.Second)
		if got := outcome(ask(one, "later")); got != gateway.CodeToken {
			t.Errorf("later: %q", got)
		}
		if got := outcome(ask(one, "and another")); got != gateway.CodeTooMany {
			t.Errorf("and another: %q", got)
		}
	})
}

// After a restart, the holders of known tokens are admitted while the store is unavailable, and nobody else. A store
// that has lost its tokens opens nothing.
func TestGuardCopy(t *testing.T) {
	server := testenv.Postgres(t)
	s := testenv.Must(store.Open(t.Context(), server.DSN, nil))(t)
	defer s.Close()
	reader, _ := newSecret(t, s, store.Token{Tenant: "acme", Scopes: []string{store.ScopeRead, store.ScopeProxy}, Publish: true})
	revoked, id := newSecret(t, s, store.Token{Scopes: []string{store.ScopeRead}})
	testenv.OK(t, s.RevokeToken(t.Context(), id))
	file := filepath.Join(t.TempDir(), "tokens.json")
	run := func(s *store.Store, until string) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- gateway.NewGuard(&gateway.GuardOptions{Store: s, Copy: file}).Run(ctx) }()
		data := []byte(nil)
		for !strings.Contains(string(data), until) {
			data, _ = os.ReadFile(file)
		}
		if strings.Contains(string(data), reader) {
			t.Error("the copy has a secret")
		}
		cancel()
		testenv.OK(t, <-done)
	}
	run(s, `"tenant":"acme"`)

	server.Stop(t)
	away := testenv.Must(store.Open(t.Context(), server.DSN, &store.Options{Later: true}))(t)
	defer away.Close()
	g := gateway.NewGuard(&gateway.GuardOptions{Store: away, Copy: file})
	who, err := g.API(guardRequest("GET", "Authorization", "Bearer "+reader), store.ScopeRead)
	if err != nil || who.Tenant != "acme" || !who.Publish || who.May(store.ScopeAdmin) || !g.Still(t.Context(), who) {
		t.Errorf("a token of before: %+v, %v", who, err)
	}
	for name, fields := range map[string][]string{"revoked": {"Authorization", "Bearer " + revoked}, "unknown": {"Authorization", "Bearer ibid_x"}} {
		if _, err := g.API(guardRequest("GET", fields...), store.ScopeRead); outcome(err) != gateway.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := g.Proxy(guardRequest("GET")); outcome(err) != gateway.CodeToken {
		t.Errorf("no token: %v", err)
	}

	lost := openTokens(t) // empty
	run(lost, `{"made":true,"tokens":[]}`)
	g = gateway.NewGuard(&gateway.GuardOptions{Store: lost, Copy: file})
	if _, err := g.Proxy(guardRequest("GET")); outcome(err) != gateway.CodeToken {
		t.Errorf("no token, of a store that lost them: %v", err)
	}
	testenv.OK(t, os.WriteFile(file, []byte("rubbish"), 0o600))
	g = gateway.NewGuard(&gateway.GuardOptions{Store: lost, Copy: file})
	if _, err := g.Proxy(guardRequest("GET")); outcome(err) != gateway.CodeToken {
		t.Errorf("no token, and a copy that cannot be read: %v", err)
	}
}

func TestGuardWithTokens(t *testing.T) {
	s := openTokens(t)
	reader, readerID := newSecret(t, s, store.Token{Tenant: "acme", Scopes: []string{store.ScopeRead}})
	caller, _ := newSecret(t, s, store.Token{Tenant: "acme", Scopes: []string{store.ScopeProxy}})
	admin, _ := newSecret(t, s, store.Token{Tenant: "acme", Scopes: []string{store.ScopeAdmin}})
	revoked, revokedID := newSecret(t, s, store.Token{Tenant: "acme", Scopes: []string{store.ScopeRead, store.ScopeProxy}})
	testenv.OK(t, s.RevokeToken(t.Context(), revokedID))
	g := gateway.NewGuard(&gateway.GuardOptions{Store: s, Bootstrap: bootstrap})
	values := map[string]string{
		"reader": reader, "caller": caller, "admin": admin, "revoked": revoked, "bootstrap": bootstrap,
		"long": strings.Repeat("x", 10<<10),
	}
	for _, test := range testenv.Table[guardCase](t, "testdata/guard_tokens.txt") {
		t.Run(test.Name, func(t *testing.T) {
			for range 2 { // the second time from the cache
				r := test.request(values)
				_, err := g.API(r, test.Scope)
				scheme := `Bearer realm="ibid"`
				if test.Scope == "" { // the pass-through
					_, err = g.Proxy(r)
					scheme = `Ibid-Token realm="ibid"`
				}
				if got := outcome(err); got != test.Want {
					t.Fatalf("%q (%v), want %q", got, err, test.Want)
				}
				if test.Want == gateway.CodeToken {
					testenv.Equal(t, "WWW-Authenticate", scheme, gateway.ProblemOf(err).Header.Get("WWW-Authenticate"))
				}
			}
		})
	}
	got := testenv.Must(g.API(guardRequest("GET", "Ibid-Token", reader), ""))(t)
	testenv.Equal(t, "identity", gateway.Identity{Tenant: "acme", Token: readerID, Scopes: []string{"read"}}, got)
}

// Revoking the last token must not admit everyone.
func TestGuardStaysClosed(t *testing.T) {
	s := openTokens(t)
	secret, id := newSecret(t, s, store.Token{Scopes: []string{store.ScopeRead}})
	testenv.OK(t, s.RevokeToken(t.Context(), id))
	g := gateway.NewGuard(&gateway.GuardOptions{Store: s})
	for _, r := range []*http.Request{guardRequest("GET"), guardRequest("GET", "Ibid-Token", secret)} {
		if _, err := g.API(r, store.ScopeRead); outcome(err) != gateway.CodeToken {
			t.Errorf("%v, want %s", err, gateway.CodeToken)
		}
	}
}

// A token revoked elsewhere is refused within 30 seconds, and one created elsewhere is required as soon.
func TestGuardForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
		defer s.Close()
		g := gateway.NewGuard(&gateway.GuardOptions{Store: s})
		testenv.Must(g.API(guardRequest("GET"), store.ScopeRead))(t)
		secret, id := newSecret(t, s, store.Token{Scopes: []string{store.ScopeRead}})
		read := func() string {
			_, err := g.API(guardRequest("GET", "Ibid-Token", secret), store.ScopeRead)
			return outcome(err)
		}
		elapse(30 * time.Second)
		if _, err := g.API(guardRequest("GET"), store.ScopeRead); outcome(err) != gateway.CodeToken {
			t.Errorf("without the token: %v", err)
		}
		if got := read(); got != "" {
			t.Errorf("with the token: %s", got)
		}
		testenv.OK(t, s.RevokeToken(t.Context(), id))
		elapse(10 * time.Second)
		if got := read(); got != "" {
			t.Errorf("the cache is not used: %s", got)
		}
		elapse(20 * time.Second)
		if got := read(); got != gateway.CodeToken {
			t.Errorf("30 seconds after it was revoked: %q", got)
		}
	})
}

// elapse lets time pass in a synctest bubble.
func elapse(d time.Duration) { <-time.After(d) }

// A store outage fails no call with a token that was used before, however long it lasts.
func TestGuardWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
		used, _ := newSecret(t, s, store.Token{Scopes: []string{store.ScopeProxy}})
		unused, _ := newSecret(t, s, store.Token{Scopes: []string{store.ScopeProxy}})
		g := gateway.NewGuard(&gateway.GuardOptions{Store: s, Bootstrap: bootstrap})
		call := func(secret string) string {
			_, err := g.Proxy(guardRequest("POST", "Ibid-Token", secret))
			return outcome(err)
		}
		if got := call(used); got != "" {
			t.Fatal(got)
		}
		testenv.OK(t, s.Close())
		for range 3 {
			elapse(40 * time.Second)
			for range 3 {
				got := map[string]string{"used": call(used), "unused": call(unused), "bootstrap": call(bootstrap)}
				want := map[string]string{"used": "", "unused": gateway.CodeUnavailable, "bootstrap": ""}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		}
	})
}

// A guard that never learned whether there are tokens admits nobody.
func TestGuardWithoutKnowledge(t *testing.T) {
	s := openTokens(t)
	testenv.OK(t, s.Close())
	g := gateway.NewGuard(&gateway.GuardOptions{Store: s})
	for range 2 {
		if _, err := g.API(guardRequest("GET"), store.ScopeRead); outcome(err) != gateway.CodeUnavailable {
			t.Errorf("%v, want %s", err, gateway.CodeUnavailable)
		}
	}
	if err := g.Local(guardRequest("GET")); err != nil {
		t.Errorf("probes: %v", err)
	}
}

func TestGuardForget(t *testing.T) {
	s := openTokens(t)
	g := gateway.NewGuard(&gateway.GuardOptions{Store: s})
	testenv.Must(g.API(guardRequest("GET"), store.ScopeAdmin))(t)
	secret, id := newSecret(t, s, store.Token{Scopes: []string{store.ScopeRead}})
	g.Forget()
	if _, err := g.API(guardRequest("GET"), store.ScopeAdmin); outcome(err) != gateway.CodeToken {
		t.Errorf("the first token was made: %v", err)
	}
	if _, err := g.API(guardRequest("GET", "Ibid-Token", secret), store.ScopeRead); err != nil {
		t.Error(err)
	}
	testenv.OK(t, s.RevokeToken(t.Context(), id))
	g.Forget()
	if _, err := g.API(guardRequest("GET", "Ibid-Token", secret), store.ScopeRead); outcome(err) != gateway.CodeToken {
		t.Errorf("it was revoked: %v", err)
	}
}

func streamRequest(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/v1/runs/r1/events?access_token="+token, nil)
	r.Host = "ibid.example"
	return r
}

func TestGuardStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
		defer s.Close()
		secret, tokenID := newSecret(t, s, store.Token{Tenant: "acme", Scopes: []string{store.ScopeRead}})
		key := []byte(strings.Repeat("k", 32))
		here := gateway.NewGuard(&gateway.GuardOptions{Store: s, Key: key})
		there := gateway.NewGuard(&gateway.GuardOptions{Store: s, Key: key})
		stranger := gateway.NewGuard(&gateway.GuardOptions{Store: s})
		who := testenv.Must(here.API(guardRequest("GET", "Ibid-Token", secret), store.ScopeRead))(t)
		token, expires := here.StreamToken(who, "r1")
		if got := time.Until(expires); got <= 0 || got > 5*time.Minute {
			t.Errorf("it expires in %v", got)
		}
		id := testenv.Must(there.Stream(streamRequest(token), "r1"))(t)
		testenv.Equal(t, "identity", gateway.Identity{Tenant: "acme", Token: tokenID, Scopes: []string{"read"}}, id)
		refused := func(what string, g *gateway.Guard, token, run string) {
			t.Helper()
			if _, err := g.Stream(streamRequest(token), run); outcome(err) != gateway.CodeToken {
				t.Errorf("%s: %v, want %s", what, err, gateway.CodeToken)
			}
		}
		payload, mac, _ := strings.Cut(token, ".")
		refused("another run", there, token, "r2")
		refused("another key", stranger, token, "r1")
		refused("no mac", there, payload, "r1")
		refused("empty mac", there, payload+".", "r1")
		refused("changed", there, "A"+payload[1:]+"."+mac, "r1")
		refused("long", there, strings.Repeat("x", 10<<10)+"."+mac, "r1")
		refused("none", there, "", "r1")
		refused("an access token", there, secret, "r1")
		r := streamRequest(token)
		r.Header.Set("Authorization", "Bearer "+token)
		if _, err := there.API(r, store.ScopeRead); outcome(err) != gateway.CodeToken {
			t.Errorf("as a bearer token: %v", err)
		}
		if !there.Still(t.Context(), id) {
			t.Error("no longer valid")
		}
		testenv.OK(t, s.RevokeToken(t.Context(), tokenID))
		elapse(30 * time.Second)
		if there.Still(t.Context(), id) {
			t.Error("valid after its token was revoked")
		}
		refused("revoked", there, token, "r1")

		// A stream token made with the bootstrap token ends only when it expires.
		root := gateway.NewGuard(&gateway.GuardOptions{Store: s, Bootstrap: bootstrap})
		who = testenv.Must(root.API(guardRequest("GET", "Ibid-Token", bootstrap), store.ScopeRead))(t)
		token, expires = root.StreamToken(who, "r1")
		for _, node := range []*gateway.Guard{root, gateway.NewGuard(&gateway.GuardOptions{Store: s, Bootstrap: bootstrap})} {
			if _, err := node.Stream(streamRequest(token), "r1"); err != nil {
				t.Error(err)
			}
		}
		elapse(time.Until(expires))
		refused("expired", root, token, "r1")
	})
}

// A stream opened while no token was needed does not outlive that.
func TestGuardStill(t *testing.T) {
	s := openTokens(t)
	g := gateway.NewGuard(&gateway.GuardOptions{Store: s})
	r := streamRequest("whatever")
	r.Host = "localhost"
	id := testenv.Must(g.Stream(r, "r1"))(t)
	if !g.Still(t.Context(), id) {
		t.Error("not valid")
	}
	newSecret(t, s, store.Token{Scopes: []string{store.ScopeRead}})
	g.Forget()
	if g.Still(t.Context(), id) {
		t.Error("valid though there is a token")
	}
	if g.Still(context.Background(), gateway.Identity{Token: "bootstrap"}) {
		t.Error("there is no bootstrap token")
	}
}

func TestGuardCORS(t *testing.T) {
	s := openTokens(t)
	open := gateway.NewGuard(&gateway.GuardOptions{Store: s, Origins: []string{"https://app.example"}})
	closed := gateway.NewGuard(&gateway.GuardOptions{Store: s, Origins: []string{"*"}, Bootstrap: bootstrap})
	openToAny := gateway.NewGuard(&gateway.GuardOptions{Store: s, Origins: []string{"*"}})
	none := gateway.NewGuard(&gateway.GuardOptions{Store: s})
	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, x-stainless-lang", "Access-Control-Request-Private-Network", "true"}
	allowed := map[string]string{
		"Vary": "Origin", "Access-Control-Allow-Origin": "https://app.example", "Access-Control-Expose-Headers": "Ibid-Run, Ibid-Answer, Ibid-Policy, Citation-Source",
	}
	allowedPreflight := map[string]string{
		"Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE", "Access-Control-Allow-Headers": "authorization, x-stainless-lang",
		"Access-Control-Allow-Private-Network": "true", "Access-Control-Max-Age": "600",
	}
	maps.Copy(allowedPreflight, allowed)
	vary := map[string]string{"Vary": "Origin"}
	for _, test := range []struct {
		name   string
		guard  *gateway.Guard
		method string
		fields []string
		want   map[string]string
		done   bool
	}{
		{name: "no page", guard: open, method: "GET", want: vary},
		{name: "allowed", guard: open, method: "GET", fields: []string{"Origin", "https://app.example"}, want: allowed},
		{name: "not allowed", guard: open, method: "GET", fields: []string{"Origin", "https://evil.example"}, want: vary},
		{name: "preflight", guard: open, method: "OPTIONS", fields: append([]string{"Origin", "https://app.example"}, preflight...), want: allowedPreflight, done: true},
		{name: "any, with tokens", guard: closed, method: "OPTIONS", fields: append([]string{"Origin", "https://app.example"}, preflight...), want: allowedPreflight, done: true},
		{name: "any, without tokens", guard: openToAny, method: "OPTIONS", fields: append([]string{"Origin", "https://app.example"}, preflight...), want: vary},
		{name: "preflight not allowed", guard: open, method: "OPTIONS", fields: append([]string{"Origin", "https://evil.example"}, preflight...), want: vary},
		{name: "OPTIONS that is no preflight", guard: open, method: "OPTIONS", fields: []string{"Origin", "https://app.example"}, want: allowed},
		{name: "nothing configured", guard: none, method: "OPTIONS", fields: append([]string{"Origin", "https://app.example"}, preflight...), want: map[string]string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			if done := test.guard.CORS(w, guardRequest(test.method, test.fields...)); done != test.done {
				t.Errorf("done %v, want %v", done, test.done)
			}
			got := map[string]string{}
			for name := range w.Header() {
				got[name] = w.Header().Get(name)
			}
			testenv.Equal(t, "headers", test.want, got)
			if test.done && w.Code != http.StatusNoContent {
				t.Errorf("status %d", w.Code)
			}
		})
	}
}
