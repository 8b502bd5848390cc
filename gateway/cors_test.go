package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/gateway"
)

// Pages learn what they may do from ibid alone: what the upstream says of that would be one answer too many, but it may add to
// the headers that can be read. A preflight never reaches it.
func TestCORSOnTheWayThrough(t *testing.T) {
	guard := gateway.NewGuard(&gateway.GuardOptions{Origins: []string{"https://app.example"}})
	for name, test := range map[string]struct {
		guard  *gateway.Guard
		origin string
		want   http.Header
	}{
		"allowed": {guard, "https://app.example", http.Header{
			"Access-Control-Allow-Origin": {"https://app.example"}, "Access-Control-Expose-Headers": {"Ibid-Run, Ibid-Answer, Citation-Source, X-Request-Id"},
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
