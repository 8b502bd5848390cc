package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

// A browser never displays an upstream's response as a page of ibid's origin, and a program gets it unchanged.
func TestUpstreamPages(t *testing.T) {
	const own = "default-src *"
	for _, test := range testenv.Table[struct {
		Name, Kind, Fields string
		Shown              bool
	}](t, "testdata/pages.txt") {
		for _, path := range []string{captured, "/up/v1/files/1/content"} {
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{test.Kind}
				if test.Kind == "-" {
					w.Header()["Content-Type"] = nil
				}
				w.Header().Set("Content-Security-Policy", own)
				_, _ = w.Write([]byte(`<script>parent.x=1</script>`))
			}, nil)
			r := w.request(t, "GET", path, nil)
			setFields(r, test.Fields, nil)
			res, _ := w.do(t, r)
			policies, sniff := []string{own}, []string(nil)
			if test.Shown {
				policies, sniff = []string{own, "sandbox"}, []string{"nosniff"}
			}
			testenv.Equal(t, test.Name+": policies", policies, res.Header["Content-Security-Policy"])
			testenv.Equal(t, test.Name+": sniffing", sniff, res.Header["X-Content-Type-Options"])
		}
	}
}

// An upstream's values for ibid's own headers are never forwarded: neither in the header nor in the trailer, announced
// or not.
func TestUpstreamSpeaksForItself(t *testing.T) {
	says := http.Header{
		"Strict-Transport-Security": {"max-age=1"},
		"Service-Worker-Allowed":    {"/"},
		"Clear-Site-Data":           {`"*"`},
		"Alt-Svc":                   {`h3=":443"`},
		"Nel":                       {`{"report_to":"theirs","max_age":86400}`},
		"Report-To":                 {`{"group":"theirs","max_age":86400,"endpoints":[{"url":"https://evil.example/"}]}`},
		"Citation-Source":           {`"https://evil.example"`},
		"Ibid-Answer":               {"ans_evil"},
		"Set-Cookie":                {gateway.SessionCookie + "=x", gateway.SecureCookie + "=x; Secure; Path=/", "theirs=1"},
		"X-Theirs":                  {"1"},
	}
	passes := http.Header{"Set-Cookie": {"theirs=1"}, "X-Theirs": {"1"}}
	of := func(h http.Header) http.Header {
		found := http.Header{}
		for name := range says {
			if values, ok := h[name]; ok && (name != "Ibid-Answer" || values[0] == "ans_evil") {
				found[name] = values
			}
		}
		return found
	}
	for _, path := range []string{captured, "/up/v1/files"} {
		for _, prefix := range []string{"", http.TrailerPrefix} {
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, values := range says {
					w.Header()[name] = values
					if prefix == "" {
						w.Header().Add("Trailer", name)
					}
				}
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				for name, values := range says {
					w.Header()[prefix+name] = values
				}
			}, nil)
			res, _ := w.do(t, w.request(t, "GET", path, nil))
			testenv.Equal(t, path+": header", passes, of(res.Header))
			testenv.Equal(t, path+": trailer "+prefix, passes, of(res.Trailer))
		}
	}
}

// Trailers that RFC 9110 forbids are not forwarded: a client rejects a response that announces them.
func TestForbiddenTrailers(t *testing.T) {
	for _, path := range []string{captured, "/up/v1/files"} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, "{}")
			flush(w)
			for _, name := range []string{"Content-Length", "Transfer-Encoding", "Content-Type", "Host", "If-Match", "Trailer", "X-Theirs"} {
				w.Header().Set(http.TrailerPrefix+name, "1")
			}
		}, nil)
		res, _ := w.do(t, w.request(t, "POST", path, strings.NewReader("{}")))
		testenv.Equal(t, path, http.Header{"X-Theirs": {"1"}}, res.Trailer)
	}
}

// Only our own and allowed pages can change anything, with or without tokens; programs always can.
func TestForeignPagesChangeNothing(t *testing.T) {
	s := openTokens(t)
	const token = "tok_for_this_test"
	guards := map[string]*gateway.Guard{
		"without tokens": gateway.NewGuard(&gateway.GuardOptions{Store: s, Origins: []string{"https://app.example"}}),
		"with one": gateway.NewGuard(&gateway.GuardOptions{
			Store: s, Bootstrap: token, Origins: []string{"https://app.example"},
		}),
		"with any origin": gateway.NewGuard(&gateway.GuardOptions{
			Store: s, Bootstrap: token, Origins: []string{"https://app.example", "*"},
		}),
	}
	for _, test := range testenv.Table[guardCase](t, "testdata/guard_foreign.txt") {
		for name, g := range guards {
			want := test.Want
			if name == "with any origin" && strings.HasPrefix(test.Fields, "Origin: http") {
				want = ""
			}
			for _, test.Method = range []string{"POST", "DELETE", "BREW"} {
				r := test.request(nil)
				r.Host = "127.0.0.1:8080"
				r.Header.Set(gateway.TokenHeader, token)
				_, err := g.API(r, test.Scope)
				testenv.Equal(t, test.Name+", "+name+", API "+test.Method, want, outcome(err))
				_, err = g.Proxy(r)
				testenv.Equal(t, test.Name+", "+name+", proxy "+test.Method, want, outcome(err))
			}
		}
	}
}
