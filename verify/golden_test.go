package verify_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

const (
	goldenManifest = "https://agent.example/runs/123/cite/a"
	goldenSource   = "https://geodocs.dev/strategy/programmatic-geo-framework"
)

// golden reads the published example: its files, and the fields of its two responses.
func golden(t *testing.T) (files map[string]string, announces string, served http.Header) {
	t.Helper()
	dir := filepath.Join(testenv.Shared(t), "spec", "golden")
	files = map[string]string{}
	for _, name := range []string{"answer.txt", "headers.txt", "jwks.json", "manifest.json", "source.html"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	served = http.Header{}
	for line := range strings.SplitSeq(files["headers.txt"], "\n") {
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case !ok || strings.ContainsAny(name, `" #`):
		case name == manifest.HeaderName:
			announces = value
		default:
			served.Set(name, value)
		}
	}
	return files, announces, served
}

// The published example verifies from a stored bundle without a network. Only the bundle vouches for the key, so its
// host is not trusted, but the key can be.
func TestGoldenBundle(t *testing.T) {
	files, _, served := golden(t)
	bundle := &manifest.Signed{
		TargetURI: goldenManifest, Status: 200, ContentType: served.Get("Content-Type"), ContentDigest: served.Get("Content-Digest"),
		SignatureInput: served.Get("Signature-Input"), Signature: served.Get("Signature"), Body: []byte(files["manifest.json"]),
		JWKS: []byte(files["jwks.json"]), Sources: []manifest.SignedSource{{
			URL: goldenSource, MediaType: "text/html; charset=utf-8", Octets: []byte(files["source.html"]),
		}},
	}
	now := func() time.Time { return time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC) }
	v := &verify.Verifier{Offline: true, TestKeys: true, Now: now, Trust: []string{"agent.example"}}
	defer v.Close()
	r := must(t)(v.Bundle(t.Context(), bundle))
	wants(t, r, verify.Valid, verify.KeyFromBundle)
	if got := r.Claims[0].Sources[0].Result; got.Status != verify.Verified || got.Match.Start != 32 || got.Match.End != 93 || r.Level.Observed != 3 {
		t.Errorf("the source is %s at level %d, want verified at 3:\n%s", got.Status, r.Level.Observed, text(r))
	}
	if got := r.Claims[0].Status; got != verify.ClaimUnjudged && got != verify.SupportedLexical {
		t.Errorf("the claim, a paraphrase, is %s", got)
	}
	v.Trust = []string{r.Manifests[0].KeyID}
	r = must(t)(v.Bundle(t.Context(), bundle))
	wants(t, r, verify.Trusted, verify.SignatureValid)
	v.TestKeys = false
	r = must(t)(v.Bundle(t.Context(), bundle))
	wants(t, r, verify.Unverifiable, verify.KeyUnavailable)
	bundle.Sources[0].Octets = []byte(strings.Replace(files["source.html"], "one", "two", 1))
	v.TestKeys = true
	r = must(t)(v.Bundle(t.Context(), bundle))
	wants(t, r, verify.Unverifiable, verify.Blocked) // other octets than were recorded prove nothing
}

// The published example verifies as it would on the internet: two hosts, TLS, keys in their place.
func TestGoldenServed(t *testing.T) {
	files, announces, served := golden(t)
	f := inTheWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch "https://" + r.Host + r.URL.Path {
		case "https://agent.example/answer":
			rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
			rw.Header().Set(manifest.HeaderName, announces)
			rw.Write([]byte(files["answer.txt"]))
		case goldenManifest:
			maps.Copy(rw.Header(), served)
			rw.Write([]byte(files["manifest.json"]))
		case "https://agent.example" + manifest.DirectoryPath:
			rw.Write([]byte(files["jwks.json"]))
		case goldenSource:
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			rw.Write([]byte(files["source.html"]))
		default:
			http.NotFound(rw, r)
		}
	})
	v := &verify.Verifier{Fetcher: f, TestKeys: true, Trust: []string{"agent.example"}}
	r := must(t)(v.URL(t.Context(), "https://agent.example/answer"))
	wants(t, r, verify.Trusted, verify.SignatureValid)
	if got := r.Claims[0].Sources[0].Result.Status; got != verify.Verified || r.Level.Observed != 3 {
		t.Errorf("the source is %s at level %d, want verified at 3:\n%s", got, r.Level.Observed, text(r))
	}
	v.TestKeys = false
	r = must(t)(v.URL(t.Context(), "https://agent.example/answer"))
	wants(t, r, verify.Invalid, verify.KeyUnknown) // anyone can have that key
}

// A manifest in the first published form, with a hash and an offset but no excerpt, is read: the text in that place of
// the unchanged source is the excerpt, and it is checked.
func TestFirstForm(t *testing.T) {
	const said = "Every template emits at most one canonical question per document"
	const html = "<!doctype html><title>x</title><h1>The framework of 2026</h1><p>" + said + "; duplicates dilute. Opening hours: nine to five."
	const claim = "Programmatic templates emit at most one canonical question per document."
	octets := strings.Index(html, said)
	content := "The framework of 2026 " + said + "; duplicates dilute. Opening hours: nine to five."
	at, hours := strings.Index(content, said), strings.Index(content, "Opening")
	for _, test := range []struct {
		name, claim string
		from, to    int
		status      verify.Status
		finding     support.Label
		unit        verify.Unit
	}{
		{"in place", claim, at, at + len(said), verify.Verified, support.Unjudged, ""},
		{"in octets", claim, octets, octets + len(said), verify.Verified, support.Unjudged, verify.UnitOctet},
		{"another number", "Every template emits at most 3 canonical question per document.", at, at + len(said), verify.Verified, support.Differs, ""},
		{"beyond the text", claim, 1234, 1380, verify.ExcerptMismatch, support.Unchecked, ""},
		{"ending beyond it", claim, at, 1380, verify.ExcerptMismatch, support.Unchecked, ""},
		{"off by five", claim, at + 5, at + len(said) + 5, verify.ExcerptMismatch, support.Unchecked, ""},
		{"off by five, too early", claim, at - 5, at + len(said) - 5, verify.ExcerptMismatch, support.Unchecked, ""},
		{"over other words", claim, hours, len(content), verify.Verified, support.Unjudged, ""},
	} {
		w := newWorld(t)
		w.page("/source", "text/html; charset=utf-8", html)
		b := fmt.Sprintf(`{"run_id":"123","agent_id":"agent.example/v1","emitted_at":"2026-04-28T10:00:00Z","claims":[{"claim_id":"c1","text":%q,`+
			`"sources":[{"url":"%s/source","retrieved_at":"2026-04-28T09:55:00Z","hash":"%s","excerpt_offset":[%d,%d]}],"confidence":"high"}]}`,
			test.claim, w.origin, snapshot.Hash([]byte(html)), test.from, test.to)
		r := must(t)(w.verifier().Bytes(t.Context(), []byte(b), &verify.BytesOptions{Name: "first.json"}))
		got := r.Claims[0]
		if found := got.Sources[0].Result; found.Status != test.status || found.Unit != test.unit || got.Finding != test.finding || r.Input != "first.json" ||
			test.status == verify.Verified && (r.State != verify.Valid || r.Level.Observed != 2) {
			t.Errorf("%s: the source is %s (%s), the claim %s, at level %d, want %s (%s), %s, 2:\n%s",
				test.name, found.Status, found.Unit, got.Finding, r.Level.Observed, test.status, test.unit, test.finding, text(r))
		}
	}
}

// inTheWorld returns a fetcher that resolves every name to a loopback address, where h serves over TLS. It needs port
// 443.
func inTheWorld(t *testing.T, h http.HandlerFunc) *snapshot.Fetcher {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.3:443")
	if err != nil {
		t.Skip("port 443 is not available: " + err.Error())
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	f := snapshot.NewFetcher(&snapshot.FetchOptions{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}, Limits: snapshot.FetchLimits{Gap: -1, Backoff: -1},
		Resolver: resolver(t, [4]byte{127, 0, 0, 3}), // its certificate is one for example.com
		TLS:      &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12},
	})
	t.Cleanup(func() { f.Close() })
	return f
}

// resolver returns a resolver that resolves every name to address.
func resolver(t *testing.T, address [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		b := make([]byte, 1024)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.Authoritative, m.Additionals = true, true, nil
			if q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}, Body: &dnsmessage.AResource{A: address},
				}}
			}
			if out, err := m.Pack(); err == nil {
				conn.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
