package gateway_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A browser never shows what an upstream sent as a page of ibid's origin, and a program gets it as it was sent.
func TestUpstreamPages(t *testing.T) {
	const own = "default-src *"
	for name, test := range map[string]struct {
		kind   string // the response's Content-Type; "-": none
		fields []string
		shown  bool
	}{
		"JSON, to a program":      {"application/json", []string{"Accept", "*/*"}, false},
		"JSON, to a page's fetch": {"application/json", []string{"Accept", "*/*", "Sec-Fetch-Dest", "empty"}, false},
		"a stream, to a page":     {"text/event-stream", []string{"Accept", "text/event-stream", "Sec-Fetch-Dest", "empty"}, false},
		"a picture in a page":     {"image/png", []string{"Accept", "image/*", "Sec-Fetch-Dest", "image"}, false},
		"nothing, to a program":   {"-", []string{"User-Agent", "curl/8"}, false},
		"JSON, as a page":         {"application/json", []string{"Sec-Fetch-Dest", "document"}, true},
		"JSON, in a frame":        {"application/json", []string{"Sec-Fetch-Dest", "iframe"}, true},
		"JSON, as an object":      {"application/json", []string{"Sec-Fetch-Dest", "object"}, true},
		"JSON, embedded":          {"application/json", []string{"Sec-Fetch-Dest", "embed"}, true},
		"to an old browser":       {"text/plain", []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}, true},
		"HTML, to a program":      {"text/html; charset=utf-8", nil, true},
		"HTML, to a page's fetch": {"Text/HTML", []string{"Sec-Fetch-Dest", "empty"}, true},
		"XHTML":                   {"application/xhtml+xml", nil, true},
		"SVG":                     {"image/svg+xml", []string{"Sec-Fetch-Dest", "image"}, true},
		"XML":                     {"application/xml", nil, true},
		"a feed":                  {"application/atom+xml;type=feed", nil, true},
		"one of two":              {"application/json, text/html", nil, true},
		"any, to a browser":       {"*/*", []string{"User-Agent", "Mozilla/5.0"}, true},
		"unknown, to a browser":   {"unknown/unknown", []string{"User-Agent", "Mozilla/5.0"}, true},
		"no type, to a browser":   {"page", []string{"User-Agent", "Mozilla/5.0"}, true},
		"no type, to a program":   {"page", nil, false},
		"nothing, to a browser":   {"-", []string{"User-Agent", "Mozilla/5.0"}, true},
	} {
		for _, path := range []string{captured, "/up/v1/files/1/content"} {
			w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{test.kind}
				if test.kind == "-" {
					w.Header()["Content-Type"] = nil
				}
				w.Header().Set("Content-Security-Policy", own)
				_, _ = w.Write([]byte(`<script>parent.x=1</script>`))
			}, nil)
			r := w.request(t, "GET", path, nil)
			for i := 0; i < len(test.fields); i += 2 {
				r.Header.Set(test.fields[i], test.fields[i+1])
			}
			res, _ := w.do(t, r)
			policies, sniff := []string{own}, []string(nil)
			if test.shown {
				policies, sniff = []string{own, "sandbox"}, []string{"nosniff"}
			}
			testenv.Equal(t, name+": policies", policies, res.Header["Content-Security-Policy"])
			testenv.Equal(t, name+": sniffing", sniff, res.Header["X-Content-Type-Options"])
		}
	}
}

// What an upstream says in ibid's place never goes on: not in the header, not in the trailer, announced or not.
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
			if diff := cmp.Diff(passes, of(res.Header)); diff != "" {
				t.Errorf("%s: header (-want +got):\n%s", path, diff)
			}
			if diff := cmp.Diff(passes, of(res.Trailer)); diff != "" {
				t.Errorf("%s: trailer %q (-want +got):\n%s", path, prefix, diff)
			}
		}
	}
}

// No page changes anything that is neither ours nor allowed, with and without tokens; programs do.
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
	const own = "http://127.0.0.1:8080"
	for _, test := range []struct {
		name   string
		fields []string
		want   string
	}{
		{"curl", nil, ""},
		{"a page of ours", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, ""},
		{"one that is allowed", []string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, ""},
		{"a sandboxed page", []string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, gateway.CodeForeign},
		{"one that keeps its origin to itself", []string{"Origin", "null", "Sec-Fetch-Site", "same-origin"}, gateway.CodeForeign},
		{"a sandboxed page, by http", []string{"Origin", "null"}, gateway.CodeForeign},
		{"another site", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, gateway.CodeForeign},
		{"another port", []string{"Origin", "http://127.0.0.1:3000", "Sec-Fetch-Site", "same-site"}, gateway.CodeForeign},
		{"one without an origin", []string{"Sec-Fetch-Site", "cross-site"}, gateway.CodeForeign},
	} {
		for name, g := range guards {
			fields := append([]string{"Host", "127.0.0.1:8080", gateway.TokenHeader, token}, test.fields...)
			want := test.want
			if name == "with any origin" && len(test.fields) > 2 && test.fields[1] != "null" {
				want = ""
			}
			for _, method := range []string{"POST", "DELETE", "BREW"} {
				_, err := g.API(guardRequest(method, fields...), store.ScopeAdmin)
				testenv.Equal(t, test.name+", "+name+", API "+method, want, outcome(err))
				_, err = g.Proxy(guardRequest(method, fields...))
				testenv.Equal(t, test.name+", "+name+", proxy "+method, want, outcome(err))
			}
		}
	}
}
