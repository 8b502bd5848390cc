package api

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
)

// Any input is one thing to verify, or a problem that blames the sender.
func FuzzVerifyOrder(f *testing.F) {
	for _, seed := range []string{
		`{"url":"https://a.example/"}`, `{"manifest":"https://a.example/m"}`, `{"manifest":{"claims":[]},"trust":["a"]}`, `{"response":"HTTP/1.1 200 OK\n\nx","url":"x"}`,
		`{"bundle":null,"document":{}}`, `{}`, `null`, `[]`, "HTTP/1.1 200 OK\r\n\r\n", `{"claims":[],"run_id":"r"}`, `{"url":"a","judge":false,"require_level":3}`,
	} {
		f.Add([]byte(seed), "")
	}
	f.Add([]byte(`{"text":""}`), "a,b")
	f.Fuzz(func(t *testing.T, body []byte, trust string) {
		query := ""
		if trust != "" {
			query = url.Values{"trust": {trust}}.Encode()
		}
		p, err := httpx.ReadParams(query, verifyParams())
		if err != nil {
			return
		}
		o, err := readOrder(body, p)
		if err != nil {
			if got := gateway.ProblemOf(err).Status; got != http.StatusBadRequest {
				t.Fatalf("%d: %v", got, err)
			}
			return
		}
		if o.Text == nil && len(o.Manifest) == 0 && o.URL == "" || o.Text != nil && len(o.Manifest) > 0 || len(o.Trust) > maxTrust {
			t.Fatalf("%q: %+v", body, o)
		}
	})
}
