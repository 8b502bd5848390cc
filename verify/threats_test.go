package verify_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

// A manifest and its signature are copied to another URL of the same publisher.
func TestThreatReplayAcrossURLs(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	m.Self = ""
	bare, err := manifest.Unsigned(m)
	if err != nil {
		t.Fatal(err)
	}
	bare.TargetURI = w.origin + cite
	signed := w.signedAs(bare)
	w.put(m, signed, cite)
	wants(t, w.report(w.verifier()), verify.Trusted, "")
	moved := *signed
	moved.TargetURI = w.origin + "/runs/r1/cite/other"
	w.put(m, &moved, "/runs/r1/cite/other")
	wants(t, w.report(w.verifier()), verify.Invalid, verify.SignatureInvalid)
}

// An @target-uri;req that is silently empty must not verify: the signature would be good for every URL.
func TestThreatVoidRequestComponent(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	s := w.signedBy(m, func(*httpsig.Params) {})
	s.SignatureInput = strings.Replace(s.SignatureInput, `"@target-uri";req`, `"@target-uri"`, 1)
	w.put(m, s, cite)
	r := w.report(w.verifier())
	wants(t, r, verify.Invalid, "")
	if r.Manifests[0].Verified {
		t.Error("a response's @target-uri was taken for its request's")
	}
}

// No URL of a manifest, discovery document, source, archive, log or redirect reaches a network that is not allowed.
func TestThreatSSRF(t *testing.T) {
	var reached atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("there is no second loopback address: " + err.Error())
	}
	inner := &http.Server{ReadHeaderTimeout: time.Second, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			reached.Add(1)
		}
	}}
	done := make(chan error, 1)
	go func() { done <- inner.Serve(l) }()
	t.Cleanup(func() {
		inner.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	secret := "http://" + l.Addr().String() + "/secret"
	for name, aim := range map[string]func(*world){
		"manifest": func(w *world) {
			w.announce(answer, manifest.Announcement{URL: w.origin + "/source", Manifest: secret})
		},
		"source": func(w *world) {
			w.announce(answer, manifest.Announcement{URL: secret})
		},
		"redirect": func(w *world) {
			w.publish(w.manifest())
			w.handle("/source", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, secret, http.StatusFound) })
		},
		"answer redirects": func(w *world) {
			w.handle(anAnswer, func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, secret, http.StatusFound) })
		},
		"archive": func(w *world) {
			m := w.manifest()
			m.Sources[0].ArchiveURL = secret
			w.publish(m)
			w.status("/source", http.StatusGone)
		},
		"upstream": func(w *world) {
			m := w.manifest()
			m.Sources[0].UpstreamManifest = secret
			w.publish(m)
		},
		"keys": func(w *world) {
			w.publish(w.manifest())
			w.discovery(`"jwks_uri":"` + secret + `"`)
		},
		"former keys": func(w *world) {
			w.publish(w.manifest())
			w.discovery(`"manifest_keys_uri":"` + secret + `"`)
		},
		"log": func(w *world) {
			v := w.verifier()
			w.publish(w.manifest())
			w.report(v)
			w.discovery(`"log":{"origin":"x","url":"` + secret + `","vkey":"` + w.log.VerifierKey() + `"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			aim(w)
			f := snapshot.NewFetcher(&snapshot.FetchOptions{
				Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Limits: snapshot.FetchLimits{Gap: -1, Backoff: -1},
			})
			defer f.Close()
			v := w.verifier()
			v.Fetcher = f
			if r := w.report(v); reached.Load() != 0 {
				t.Errorf("%d connections were made to a network that is not allowed:\n%s", reached.Load(), text(r))
			}
		})
	}
}

// A few kilobytes that decompress to gigabytes stop at the limit.
func TestThreatDecompressionBomb(t *testing.T) {
	w := newWorld(t)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 64 {
		z.Write(zeros)
	}
	z.Close()
	w.publish(w.manifest())
	w.handle("/source", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		rw.Write(bomb.Bytes())
	})
	wants(t, w.report(w.verifier()), verify.Unverifiable, verify.TooLarge)

	printed := "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nCitation-Source: <" + w.origin + "/source>; manifest=\"" + w.origin + cite + "\"\r\n\r\n"
	v := w.verifier()
	v.Limits.Input = 1 << 20
	wants(t, must(t)(v.Bytes(t.Context(), append([]byte(printed), bomb.Bytes()...), nil)), verify.Unverifiable, verify.OutputUnchecked)
}

// A server that sends an octet now and then times out.
func TestThreatSlowLoris(t *testing.T) {
	w := published(t)
	w.handle("/source", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		rw.Write([]byte("a"))
		http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	})
	v := w.verifier()
	f := snapshot.NewFetcher(&snapshot.FetchOptions{
		Allow:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Limits: snapshot.FetchLimits{Gap: -1, Backoff: -1, Idle: 50 * time.Millisecond, Retries: -1},
	})
	defer f.Close()
	v.Fetcher = f
	r := w.report(v)
	wants(t, r, verify.Unverifiable, verify.Unreachable)
	if got := r.Claims[0].Sources[0].Result.Reason; got != "timeout" {
		t.Errorf("the reason is %q, want timeout", got)
	}
}

func TestThreatRedirectLoop(t *testing.T) {
	w := published(t)
	w.handle("/source", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/source", http.StatusFound) })
	wants(t, w.report(w.verifier()), verify.Unverifiable, verify.Unreachable)
	if n := w.asked("/source"); n > 6 {
		t.Errorf("a loop was followed %d times", n)
	}
}

// A manifest with very many sources causes no more than the fetches of one job.
func TestThreatAmplifier(t *testing.T) {
	w := newWorld(t)
	w.many(400, func(i int, _ *manifest.Source, _ *manifest.ClaimSource) {
		w.page(fmt.Sprintf("/many/%d", i), "text/html; charset=utf-8", page)
	})
	wants(t, w.report(w.verifier()), verify.Unverifiable, verify.Blocked)
	if n := w.requests(); n > 256 {
		t.Errorf("one job made %d requests, at most %d are allowed", n, 256)
	}
}

// Look-alike names, and characters that reverse or move text, have no effect in a report.
func TestThreatHostileStrings(t *testing.T) {
	r := &verify.Report{
		State: verify.Invalid, Error: "no\x1b[2J\u202e", Kind: verify.KindResponse, Input: "https://аpple.com/\x1b[2J",
		Failure: []verify.Finding{{Code: "x\x1b[31m", Counts: verify.CountFailure, Detail: "a\r\nPASS \u202eevil\u2066 \x00 \xff", Path: "/\x1b"}},
		Claims: []verify.ClaimReport{{
			ID: "c\n1", Text: "soft\u00adhyphen \u200bzero \x1b]8;;http://evil\x07", Counts: verify.CountFailure,
			Sources: []verify.SourceReport{{
				URL: "https://аpple.com/<script>", Excerpt: "\u202eabc",
				Result: verify.SourceResult{Status: verify.ExcerptAltered, Counts: verify.CountFailure, Note: "\x1b[0m", Near: &snapshot.Near{
					Text: "\x1b[1m", Diff: []snapshot.Edit{{Kind: snapshot.EditQuote, Text: "\u202e"}, {Kind: snapshot.EditText, Text: "\x9b"}},
				}},
			}},
		}},
	}
	var b bytes.Buffer
	if err := r.WriteText(&b, false); err != nil {
		t.Fatal(err)
	}
	if err := verify.WriteJUnit(&b, "", r); err != nil {
		t.Fatal(err)
	}
	b.WriteString(text(&verify.Report{Error: r.Error}))
	for _, c := range b.String() {
		if c != '\n' && (c < ' ' || c >= 0x7f && c < 0xa0 || strings.ContainsRune("\u202e\u2066\u200b\u00ad\ufffdа", c)) {
			t.Errorf("the report has the character %U:\n%s", c, b.String())
		}
	}
	for _, want := range []string{"xn--pple-43d.com", `\u{001B}`, `\u{202E}`, `\xff`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not show %s:\n%s", want, b.String())
		}
	}
}

// Parsers must not read different manifests: member names are case-sensitive.
func TestThreatParserDifferential(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	s := w.sign(m, w.now)
	s.Body = bytes.Replace(s.Body, []byte(`"run_id":"r1"`), []byte(`"RUN_ID":"r9","run_id":"r1"`), 1)
	s.ContentDigest = httpsig.ContentDigest(s.Body)
	w.put(m, s, cite)
	r := w.report(w.verifier())
	if len(r.Manifests) != 1 || r.Manifests[0].RunID == "r9" {
		t.Errorf("RUN_ID was read as run_id: %+v", r.Manifests)
	}
}
