package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
	"github.com/ibidhq/ibid/store"
)

// configured reads a configuration file.
func configured(t *testing.T, yaml string, env map[string]string) (*server.Config, error) {
	t.Helper()
	c := server.Defaults()
	c.Data, c.File = t.TempDir(), filepath.Join(t.TempDir(), "ibid.yaml")
	testenv.OK(t, os.WriteFile(c.File, []byte(yaml), 0o600))
	return c, c.Resolve(nil, func(name string) (string, bool) { value, ok := env[name]; return value, ok })
}

// Mistakes in the webhooks of the file prevent the start.
func TestOperatorMistakes(t *testing.T) {
	for _, test := range testenv.Table[struct {
		Yaml string
		Want string
	}](t, "testdata/operator-mistakes.txt") {
		yaml, want := test.Yaml, test.Want
		if _, err := configured(t, yaml, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", yaml, err, want)
		}
	}
	for secret, want := range map[string]string{"": "it has 0 bytes", "short": "it has 5 bytes, but needs 24"} {
		c, err := configured(t, "webhooks: {a: {url: https://a.example, secret_env: HOOK}}", nil)
		testenv.OK(t, err)
		_, err = server.Open(t.Context(), c, &server.Options{Env: func(string) (string, bool) { return secret, true }})
		if err == nil || !strings.Contains(err.Error(), "webhook a: the secret in HOOK: "+want) {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

// A server sends alerts to the endpoint in its configuration, signed with the secret from a file.
func TestServerCallsWebhooks(t *testing.T) {
	got := make(chan store.Alert, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a store.Alert
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &a) != nil || !strings.HasPrefix(r.Header.Get("webhook-signature"), "v1,") {
			t.Errorf("%v %v: %s", err, r.Header, body)
		}
		got <- a
	}))
	t.Cleanup(receiver.Close)
	secret := filepath.Join(t.TempDir(), "secret")
	testenv.OK(t, os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600))
	w := servertest.Start(t, &servertest.Setup{Configure: func(c *server.Config) {
		c.File = filepath.Join(t.TempDir(), "ibid.yaml")
		testenv.OK(t, os.WriteFile(c.File, []byte("webhooks: {ops: {url: '"+receiver.URL+"/x', secret_file: '"+secret+"', kinds: quota}}"), 0o600))
		c.Publish.Allow = server.Networks{netip.MustParsePrefix("127.0.0.0/8")}
	}})
	testenv.Must(w.Store.AddAlerts(t.Context(), []store.Alert{
		{Kind: store.AlertDiffers, Tenant: "acme"}, {Kind: store.AlertQuota, Tenant: "acme", Summary: "It is full."},
	}))(t)
	if a := <-got; a.Kind != store.AlertQuota || a.Tenant != "acme" || a.Summary != "It is full." {
		t.Errorf("%+v", a)
	}
	testenv.OK(t, w.Stop())
	if len(got) > 0 {
		t.Errorf("another alert: %+v", <-got)
	}
}
