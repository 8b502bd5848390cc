package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Every path asks for its scope.
func TestScopes(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{Bootstrap: "b"})
	secrets := map[string]string{}
	for _, scope := range store.Scopes() {
		secrets[scope] = n.token(t, store.DefaultTenant, scope)
	}
	for _, test := range []struct{ method, path, scope string }{
		{"POST", "/v1/decode", store.ScopeRead},
		{"GET", "/v1/answers", store.ScopeRead},
		{"GET", "/v1/answers/ans_1", store.ScopeRead},
		{"DELETE", "/v1/answers/ans_1", store.ScopeWrite},
		{"GET", "/v1/conversations", store.ScopeRead},
		{"GET", "/v1/conversations/c", store.ScopeRead},
		{"GET", "/v1/sources", store.ScopeRead},
		{"GET", "/v1/runs", store.ScopeRead},
		{"GET", "/v1/runs/r", store.ScopeRead},
		{"HEAD", "/v1/runs/r/events", store.ScopeRead},
		{"GET", "/v1/runs/r/summary", store.ScopeRead},
		{"POST", "/v1/runs", store.ScopeWrite},
		{"POST", "/v1/runs/r/steps", store.ScopeWrite},
		{"POST", "/v1/runs/r/finish", store.ScopeWrite},
		{"GET", "/v1/feedback", store.ScopeRead},
		{"POST", "/v1/feedback", store.ScopeWrite},
		{"GET", "/v1/alerts", store.ScopeRead},
		{"POST", "/v1/alerts/a", store.ScopeWrite},
		{"POST", "/v1/stream-token", store.ScopeRead},
		{"GET", "/v1/tokens", store.ScopeAdmin},
		{"POST", "/v1/tokens", store.ScopeAdmin},
		{"DELETE", "/v1/tokens/t", store.ScopeAdmin},
	} {
		want := map[string]bool{"bootstrap": true}
		for _, scope := range store.Scopes() {
			want[scope] = scope == test.scope
		}
		got := map[string]bool{}
		for scope, secret := range secrets {
			got[scope] = n.do(t, test.method, test.path, "", "Ibid-Token", secret).StatusCode != 403
		}
		got["bootstrap"] = n.do(t, test.method, test.path, "", "Authorization", "Bearer b").StatusCode != 403
		testenv.Equal(t, fmt.Sprintf("%s %s", test.method, test.path), want, got)
		for _, fields := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
			res := n.do(t, test.method, test.path, "", fields...)
			if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") != `Bearer realm="ibid"` {
				t.Errorf("%s %s, %q: %d", test.method, test.path, fields, res.StatusCode)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		if res := n.get(t, path, "Host", "pod-1.cluster"); res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

// A web page that a user of this machine visits reaches nothing.
func TestForeignPages(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{Origins: []string{"https://app.example"}})
	n.put(t, call("ans_1", herons("https://heron.example/")))
	for _, path := range []string{"/v1/answers", "/v1/answers/ans_1", "/v1/runs/r/events", "/healthz", "/readyz", "/metrics", "/", "/v1/nothing"} {
		wantForeign(t, n.get(t, path, "Host", "rebound.example"))
		wantForeign(t, n.get(t, path, "Origin", "https://evil.example"))
	}
	wantForeign(t, n.do(t, "DELETE", "/v1/answers/ans_1", "", "Origin", "null"))
	wantForeign(t, n.do(t, "POST", "/v1/tokens", `{"scopes":["admin"]}`, "Origin", "https://evil.example"))

	res := n.get(t, "/v1/answers/ans_1", "Origin", "https://app.example")
	if res.StatusCode != 200 || res.Header.Get("Access-Control-Allow-Origin") != "https://app.example" ||
		res.Header.Get("Access-Control-Expose-Headers") != "Ibid-Run, Ibid-Answer, Ibid-Policy, Citation-Source" {
		t.Errorf("an allowed page: %d %v", res.StatusCode, res.Header)
	}
	res = n.do(t, "OPTIONS", "/v1/answers/ans_1", "", "Origin", "https://app.example", "Access-Control-Request-Method", "DELETE")
	if res.StatusCode != 204 || !strings.Contains(res.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Errorf("preflight: %d %v", res.StatusCode, res.Header)
	}
	res = n.do(t, "OPTIONS", "/v1/answers/ans_1", "", "Origin", "https://evil.example", "Access-Control-Request-Method", "DELETE")
	if res.StatusCode/100 == 2 || res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of another page: %d %v", res.StatusCode, res.Header)
	}
}

type shownToken struct {
	ID, Tenant, Name, Secret string
	Scopes                   []string
	Publish                  bool
	RevokedAt                *string `json:"revoked_at"`
}

func (n *node) newToken(t *testing.T, order string, fields ...string) shownToken {
	t.Helper()
	res := n.do(t, "POST", "/v1/tokens", order, fields...)
	if res.StatusCode != 201 {
		t.Fatalf("%s: %d %s", order, res.StatusCode, res.body)
	}
	var token shownToken
	testenv.OK(t, json.Unmarshal([]byte(res.body), &token))
	return token
}

// The life of tokens: the first closes the doors, administrators manage their tenant's, those of default all.
func TestTokens(t *testing.T) {
	n := newNode(t, nil)
	for _, scopes := range []string{`["read"]`, `["proxy", "publish"]`} { // who could make the next?
		wantProblem(t, n.do(t, "POST", "/v1/tokens", `{"name": "laptop", "scopes": `+scopes+`}`), 400)
	}
	root := n.newToken(t, `{"name": "root", "scopes": ["admin", "read", "admin"]}`)
	if want := (shownToken{ID: root.ID, Tenant: "default", Name: "root", Secret: root.Secret, Scopes: []string{"admin", "read"}}); !cmp.Equal(want, root) {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, root))
	}
	if !strings.HasPrefix(root.Secret, "ibid_") {
		t.Errorf("secret %q", root.Secret)
	}
	wantProblem(t, n.get(t, "/v1/tokens"), 401)
	asRoot := bearer(root.Secret)
	acme := n.newToken(t, `{"tenant": "acme", "scopes": ["admin"], "publish": true}`, asRoot...)
	asAcme := bearer(acme.Secret)
	reader := n.newToken(t, `{"scopes": ["read"]}`, asAcme...)
	if reader.Tenant != "acme" {
		t.Errorf("tenant %q", reader.Tenant)
	}
	list := func(fields ...string) (ids []string) {
		var body struct{ Tokens []shownToken }
		n.read(t, "/v1/tokens", &body, fields...)
		for _, token := range body.Tokens {
			if token.Secret != "" {
				t.Error("the list shows a secret")
			}
			ids = append(ids, token.ID)
		}
		return ids
	}
	testenv.Equal(t, "of default", []string{root.ID, acme.ID, reader.ID}, list(asRoot...))
	testenv.Equal(t, "of acme", []string{acme.ID, reader.ID}, list(asAcme...))
	wantProblem(t, n.do(t, "DELETE", "/v1/tokens/"+root.ID, "", asAcme...), 404)
	wantProblem(t, n.do(t, "POST", "/v1/tokens", `{"tenant": "default", "scopes": ["read"]}`, asAcme...), 400)
	if res := n.do(t, "DELETE", "/v1/tokens/"+reader.ID, "", asAcme...); res.StatusCode != 204 {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	wantProblem(t, n.get(t, "/v1/answers", bearer(reader.Secret)...), 401)

	for _, order := range []string{
		``, `{}`, `[]`, `{"scopes": []}`, `{"scopes": ["root"]}`, `{"scopes": ["read"], "expires": 1}`, `{"scopes": ["read"]} {}`, `{"scopes": "read"}`,
		`{"scopes": ["read"], "name": "a\u0000b"}`, `{"scopes": ["read"], "tenant": "` + strings.Repeat("x", 300) + `"}`,
	} {
		wantProblem(t, n.do(t, "POST", "/v1/tokens", order, asRoot...), 400)
	}
	wantProblem(t, n.do(t, "POST", "/v1/tokens", `{"name": "`+strings.Repeat("x", 70<<10)+`"}`, asRoot...), 413)
}
