package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// verify verifies a body, which must produce a report.
func (n *node) verify(t *testing.T, path, body string, fields ...string) *verify.Report {
	t.Helper()
	res := n.do(t, http.MethodPost, path, body, fields...)
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	var r verify.Report
	testenv.OK(t, json.Unmarshal([]byte(res.body), &r))
	return &r
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b := testenv.Must(json.Marshal(v))(t)
	return string(b)
}

func codesOf(list []verify.Finding) []verify.Status {
	var all []verify.Status
	for i := range list {
		all = append(all, list[i].Code)
	}
	return all
}

// Everything that can be verified can be sent in an order, or by itself with query parameters.
func TestVerifyInputs(t *testing.T) {
	p := newPress(t, 3, loopback)
	source := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(source, quote)))
	host := strings.TrimPrefix(p.URL, "http://")
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	signed := testenv.Must(p.store.Manifest(t.Context(), at.Path))(t)
	signed.JWKS = testenv.Must(p.publisher.Keys.Directory(true))(t)
	answer := p.get(t, "/v1/answers/ans_1")
	printed := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%s: %s\r\n\r\n%s", manifest.HeaderName, answer.Header.Get(manifest.HeaderName), answer.body)
	bundle, address := asJSON(t, signed), p.URL+"/v1/answers/ans_1"
	params := "?trust=" + url.QueryEscape("other.example,"+host)
	raw := func(name, value string) string { return `{"` + name + `":` + value + `,"trust":["` + host + `"]}` }
	for name, c := range map[string]struct {
		path, body string
		kind       verify.Kind
		state      verify.State
	}{
		"url":             {"", raw("url", asJSON(t, address)), verify.KindResponse, verify.Trusted},
		"url of manifest": {"", raw("url", asJSON(t, at.URL)), verify.KindManifest, verify.Trusted},
		"manifest url":    {"", raw("manifest", asJSON(t, at.URL)), verify.KindManifest, verify.Trusted},
		"manifest":        {"", raw("manifest", string(signed.Body)), verify.KindManifest, verify.Valid},
		"bundle":          {"", raw("bundle", bundle), verify.KindBundle, verify.Trusted},
		"document":        {"", raw("document", answer.body), verify.KindDocument, verify.Valid},
		"response":        {"", asJSON(t, map[string]any{"response": printed, "url": address, "trust": []string{host}}), verify.KindResponse, verify.Trusted},
		"untrusted":       {"", asJSON(t, map[string]any{"url": address}), verify.KindResponse, verify.Valid},
		"raw manifest":    {params, string(signed.Body), verify.KindManifest, verify.Valid},
		"raw bundle":      {params, bundle, verify.KindBundle, verify.Trusted},
		"raw document":    {"", answer.body, verify.KindDocument, verify.Valid},
		"raw response":    {params + "&url=" + url.QueryEscape(address), printed, verify.KindResponse, verify.Trusted},
		"level":           {"?require_level=3", string(signed.Body), verify.KindManifest, verify.Invalid},
		"max_age":         {"?max_age=60", answer.body, verify.KindDocument, verify.Valid},
		"no judge wanted": {"?judge=false", string(signed.Body), verify.KindManifest, verify.Valid},
	} {
		t.Run(name, func(t *testing.T) {
			r := p.verify(t, "/v1/verify"+c.path, c.body)
			if r.Kind != c.kind || r.State != c.state || r.Offline {
				t.Errorf("%s %s, want %s %s: %s %+v", r.Kind, r.State, c.kind, c.state, r.Why(), r.Failure)
			}
		})
	}
	own := p.verify(t, "/v1/verify", answer.body, "Content-Type", "application/x-www-form-urlencoded") // as curl labels everything
	if own.State != verify.Valid {
		t.Errorf("%s", own.State)
	}
}

// Offline nothing is fetched: the sources read for the manifest are available as copies. The tenant's answers are
// unchanged.
func TestVerifyOffline(t *testing.T) {
	p := newPress(t, 3)
	source := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(source, quote)))
	p.pages.Close()
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	signed := testenv.Must(p.store.Manifest(t.Context(), at.Path))(t)
	signed.JWKS = testenv.Must(p.publisher.Keys.Directory(true))(t)
	r := p.verify(t, "/v1/verify?offline=true", asJSON(t, signed))
	if r.Kind != verify.KindBundle || r.State != verify.Valid || !r.Offline || r.Claims[0].Sources[0].Result.Status != verify.Verified {
		t.Errorf("%s %s: %s %+v", r.Kind, r.State, r.Why(), r.Failure)
	}
	pins, err := p.store.Pins(t.Context(), store.DefaultTenant, source)
	if err != nil || len(pins) == 0 || pins[0].Status != "" {
		t.Errorf("%+v, %v", pins, err)
	}
}

// A forged manifest does not change our answers, whatever it claims.
func TestVerifyForged(t *testing.T) {
	p := newPress(t, 3, loopback)
	source := p.pages.set("/herons", eggs)
	p.publish(t, call("ans_1", cites(source, quote)))
	var at where
	p.read(t, "/v1/answers/ans_1/manifest", &at)
	signed := testenv.Must(p.store.Manifest(t.Context(), at.Path))(t)
	forged := strings.ReplaceAll(string(signed.Body), "usually lay four", "never lay any")
	r := p.verify(t, "/v1/verify", forged)
	if r.State != verify.Invalid {
		t.Errorf("%s", r.State)
	}
	pins, err := p.store.Pins(t.Context(), store.DefaultTenant, source)
	if err != nil || len(pins) == 0 {
		t.Fatal(len(pins), err)
	}
	for i := range pins {
		if pins[i].Status != "" {
			t.Errorf("a citation was %s", pins[i].Status)
		}
	}
}

// Nothing makes ibid connect to a network that its operator did not allow: neither an address, nor one named in a
// document, a response or a manifest.
func TestVerifyReachesNothing(t *testing.T) {
	p := newPress(t, 3)
	var hits atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(quote))
	}))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, address := range []string{
		inside.URL, "http://localhost" + port, "http://[::1]" + port, "http://[::ffff:127.0.0.1]" + port, "http://127.1" + port, "http://0.0.0.0" + port,
		"http://2130706433" + port, "http://user@127.0.0.1" + port, "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd", "gopher://127.0.0.1" + port, "nonsense",
		p.URL + "/v1/answers",
	} {
		for name, body := range map[string]string{
			"url":      asJSON(t, map[string]any{"url": address}),
			"manifest": asJSON(t, map[string]any{"manifest": address}),
			"response": asJSON(t, map[string]any{"response": "HTTP/1.1 200 OK\r\nCitation-Source: <https://a.invalid/>; manifest=\"" + address + "\"\r\n\r\nHi."}),
			"document": asJSON(t, map[string]any{"document": cites(address, quote)}),
		} {
			r := p.verify(t, "/v1/verify", body)
			if r.State == verify.Trusted || r.State == verify.Valid {
				t.Errorf("%s %s: %s", name, address, r.State)
			}
			if name != "document" {
				continue
			}
			switch got := r.Claims[0].Sources[0].Result.Status; got {
			case verify.Blocked, verify.NotDereferenceable:
			default:
				t.Errorf("%s: the source is %s", address, got)
			}
		}
	}
	if n := hits.Load(); n > 0 {
		t.Errorf("%d requests arrived", n)
	}
	r := p.verify(t, "/v1/verify", asJSON(t, map[string]any{"url": inside.URL}))
	if diff := cmp.Diff([]verify.Status{verify.ResponseUnreadable}, codesOf(r.Info)); diff != "" || !strings.Contains(r.Info[0].Detail, "blocked") {
		t.Errorf("%s %+v", diff, r.Info)
	}
}

// Unreadable input and forbidden options are refused with the reason.
func TestVerifyBad(t *testing.T) {
	p := newPress(t, 0)
	const document = `{"version":1,"text":"x","text_sha256":"y","citations":[]}`
	for _, body := range []string{
		`{"url":"https://a.example/` + strings.Repeat("x", 5000) + `"}`,
		`{"url":"https://a.example/","trust":["` + strings.Repeat(`a","`, 65) + `b"]}`,
	} {
		wantProblem(t, p.do(t, "POST", "/v1/verify", body), 400)
	}
	wantProblem(t, p.do(t, "POST", "/v1/verify", "x", "Content-Encoding", "gzip"), 400)
	wantProblem(t, p.do(t, "POST", "/v1/verify", strings.Repeat("x", 64<<20+1)), 413)
	n := newNode(t, nil)
	res := n.do(t, "POST", "/v1/verify", document)
	if wantProblem(t, res, 404); !strings.Contains(res.body, "hint") {
		t.Error(res.body)
	}
}

// A tenant can run four verifications at a time; more are told to retry.
func TestVerifyLimit(t *testing.T) {
	p := newPress(t, 0, loopback)
	arrived, release := make(chan struct{}, 100), make(chan struct{}) // a verification may still connect after it was answered
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/.well-known/") { // the origin's own documents
			http.NotFound(w, r)
			return
		}
		arrived <- struct{}{}
		<-release
		_, _ = w.Write([]byte(quote))
	}))
	defer slow.Close()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			res := p.do(t, "POST", "/v1/verify", fmt.Sprintf(`{"url":"%s/%d"}`, slow.URL, i))
			if res.StatusCode != 200 {
				t.Errorf("%d %s", res.StatusCode, res.body)
			}
		})
	}
	for range 4 {
		<-arrived
	}
	res := p.do(t, "POST", "/v1/verify", `{"url":"https://a.invalid/"}`)
	if wantProblem(t, res, 429); res.Header.Get("Retry-After") == "" {
		t.Errorf("%v", res.Header)
	}
	close(release)
	all.Wait()
	if r := p.verify(t, "/v1/verify", asJSON(t, map[string]any{"document": &ibid.Answer{Text: "x"}, "offline": true})); r.State != verify.Unverifiable {
		t.Errorf("%s", r.State)
	}
}

// A tenant whose verifications all hang does not keep others from verifying.
func TestVerifyLimitOfTenant(t *testing.T) {
	p := newPress(t, 0, loopback)
	acme, other := bearer(p.token(t, "acme", store.ScopeVerify)), bearer(p.token(t, "other", store.ScopeVerify))
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer slow.Close()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() { p.do(t, "POST", "/v1/verify", fmt.Sprintf(`{"url":"%s/%d"}`, slow.URL, i), acme...) })
	}
	for range 4 {
		<-arrived
	}
	own := asJSON(t, map[string]any{"document": &ibid.Answer{Text: "x"}, "offline": true})
	wantProblem(t, p.do(t, "POST", "/v1/verify", own, acme...), 429)
	if res := p.do(t, "POST", "/v1/verify", own, other...); res.StatusCode != 200 {
		t.Errorf("another tenant: %d %s", res.StatusCode, res.body)
	}
	close(release)
	all.Wait()
}
