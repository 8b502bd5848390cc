package api_test

import (
	"fmt"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Every path requires its scope.
func TestScopes(t *testing.T) {
	n := newNode(t, &gateway.GuardOptions{Bootstrap: "b"})
	secrets := map[string]string{}
	for _, scope := range store.Scopes() {
		secrets[scope] = n.token(t, store.DefaultTenant, scope)
	}
	for _, test := range testenv.Table[struct {
		Method string
		Path   string
		Scope  string
	}](t, "testdata/scopes.txt") {
		want := map[string]bool{"bootstrap": true}
		for _, scope := range store.Scopes() {
			want[scope] = scope == test.Scope
		}
		got := map[string]bool{}
		for scope, secret := range secrets {
			got[scope] = n.do(t, test.Method, test.Path, "", "Ibid-Token", secret).StatusCode != 403
		}
		got["bootstrap"] = n.do(t, test.Method, test.Path, "", "Authorization", "Bearer b").StatusCode != 403
		testenv.Equal(t, fmt.Sprintf("%s %s", test.Method, test.Path), want, got)
		for _, fields := range [][]string{nil, {"Authorization", "Bearer wrong"}} {
			res := n.do(t, test.Method, test.Path, "", fields...)
			if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") != `Bearer realm="ibid"` {
				t.Errorf("%s %s, %q: %d", test.Method, test.Path, fields, res.StatusCode)
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/"} {
		if res := n.get(t, path, "Host", "pod-1.cluster"); res.StatusCode != 200 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}
