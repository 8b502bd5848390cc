package verify_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/verify"
)

// signedBy signs a manifest by hand with any parameters.
func (w *world) signedBy(m *manifest.Manifest, change func(*httpsig.Params)) *manifest.Signed {
	w.t.Helper()
	s, err := manifest.Unsigned(m)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.signedAs(s, change)
}

// signedAs signs a served manifest unchanged, even one without its URL.
func (w *world) signedAs(s *manifest.Signed, change ...func(*httpsig.Params)) *manifest.Signed {
	w.t.Helper()
	k, private := signer(w.t, w.ring)
	created := w.now.Unix()
	p := &httpsig.Params{
		Components: []httpsig.Component{
			{Name: "@status"}, {Name: "content-type"}, {Name: "content-digest"}, {Name: "@target-uri", Request: true},
		},
		Created: &created, KeyID: k.ID, Tag: manifest.SignatureTag,
	}
	for _, c := range change {
		c(p)
	}
	message := &httpsig.Message{
		Status: s.Status, Header: http.Header{"Content-Type": {s.ContentType}, "Content-Digest": {s.ContentDigest}},
		Request: &httpsig.Message{Method: http.MethodGet, TargetURI: s.TargetURI},
	}
	var err error
	if s.SignatureInput, s.Signature, err = httpsig.Sign(message, "any", p, private); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// Every status in the specification's table of headers and manifests.
func TestStatuses(t *testing.T) {
	edit := func(change func(*manifest.Manifest)) func(*world) {
		return func(w *world) {
			m := w.manifest()
			change(m)
			w.put(m, w.sign(m, w.now), cite)
		}
	}
	params := func(change func(*world, *httpsig.Params)) func(*world) {
		return func(w *world) {
			m := w.manifest()
			w.put(m, w.signedBy(m, func(p *httpsig.Params) { change(w, p) }), cite)
		}
	}
	served := func(change func(*manifest.Signed)) func(*world) {
		return func(w *world) {
			m := w.manifest()
			s := w.sign(m, w.now)
			change(s)
			w.put(m, s, cite)
		}
	}
	then := func(change func(*world)) func(*world) {
		return func(w *world) {
			w.publish(w.manifest())
			change(w)
		}
	}
	body := func(change func(string) string) func(*world) {
		return served(func(s *manifest.Signed) {
			s.Body = []byte(change(string(s.Body)))
			s.ContentDigest = httpsig.ContentDigest(s.Body)
		})
	}
	for _, test := range []struct {
		name  string // its code, and the case
		state verify.State
		make  func(*world)
	}{
		{"header-missing", verify.Unverifiable, func(w *world) { w.announce(answer) }},
		{"header-malformed: neither form", verify.Invalid, func(w *world) { w.header(`"https://a.example/`) }},
		{"header-malformed: over 16 KiB", verify.Invalid, func(w *world) {
			w.header(strings.Repeat(`"https://a.example/";x=1, `, 700) + `"https://a.example/"`)
		}},
		{"header-malformed: two digests", verify.Invalid, func(w *world) {
			w.publish(w.manifest())
			a, b := make([]byte, 32), bytes.Repeat([]byte{1}, 32)
			w.announce(answer, manifest.Announcement{URL: w.origin + "/source", Manifest: w.origin + cite, Digest: a},
				manifest.Announcement{URL: w.origin + "/other", Manifest: w.origin + cite, Digest: b})
		}},
		{"header-malformed: many manifests", verify.Invalid, func(w *world) {
			var list []manifest.Announcement
			for i := range 17 {
				list = append(list, manifest.Announcement{URL: w.origin + "/source", Manifest: fmt.Sprintf("%s%s%d", w.origin, cite, i)})
			}
			w.announce(answer, list...)
		}},
		{"manifest-blocked", verify.Unverifiable, func(w *world) {
			w.announce(answer, manifest.Announcement{URL: w.origin + "/source", Manifest: "http://10.0.0.1/runs/r1/cite"})
		}},
		{"manifest-unreachable: 404", verify.Unverifiable, then(func(w *world) { w.status(cite, http.StatusNotFound) })},
		{"manifest-unreachable: 500, three times", verify.Unverifiable, func(w *world) {
			w.publish(w.manifest())
			w.status(cite, http.StatusInternalServerError)
			t.Cleanup(func() {
				if n := w.asked(cite); n != 3 {
					t.Errorf("the manifest was asked for %d times, want 3", n)
				}
			})
		}},
		{"manifest-unreachable: redirect", verify.Unverifiable, then(func(w *world) {
			w.handle(cite, func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/elsewhere", http.StatusFound) })
		})},
		{"manifest-unreachable: 203", verify.Unverifiable, then(func(w *world) { w.status(cite, http.StatusNonAuthoritativeInfo) })},
		{"manifest-too-large", verify.Invalid, then(func(w *world) { w.page(cite, "application/json", strings.Repeat(" ", 1<<20+1)) })},
		{"manifest-too-large: content coding", verify.Invalid, func(w *world) {
			w.publish(w.manifest())
			w.handle(cite, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Encoding", "gzip")
				rw.Write([]byte("\x1f\x8b\x08\x00"))
			})
		}},
		{"manifest-pending", verify.Pending, then(func(w *world) { w.status(cite, http.StatusAccepted) })},
		{"manifest-mutated: not what is announced", verify.Invalid, func(w *world) {
			w.publish(w.manifest())
			m := w.manifest()
			m.Claims[0].Confidence = manifest.ConfidenceHigh
			w.serveSigned(w.sign(m, w.now), cite)
		}},
		{"manifest-malformed", verify.Invalid, body(func(s string) string { return s + "x" })},
		{"manifest-malformed: duplicate name", verify.Invalid, body(func(s string) string {
			return strings.Replace(s, `"run_id"`, `"run_id":"other","run_id"`, 1)
		})},
		{"version-unsupported", verify.Invalid, body(func(s string) string {
			return strings.Replace(s, `"version":"1.0"`, `"version":"2.0"`, 1)
		})},
		{"manifest-inconsistent: hash", verify.Invalid, edit(func(m *manifest.Manifest) {
			m.Sources[0].Hash = "sha256:" + strings.Repeat("0", 64)
		})},
		{"manifest-inconsistent: header", verify.Invalid, func(w *world) {
			s := w.publish(w.manifest())
			sum := s.Digest()
			w.announce(answer, manifest.Announcement{URL: w.origin + "/another", Manifest: w.origin + cite, Digest: sum[:]})
		}},
		{"manifest-inconsistent: the answer does not make the claim", verify.Invalid, edit(func(m *manifest.Manifest) {
			m.Claims[0].Text = strings.Replace(claim, "1874", "1875", 1)
		})},
		{"manifest-inconsistent: emitted after it was signed", verify.Invalid, func(w *world) {
			m := w.manifest()
			w.put(m, w.sign(m, w.now.Add(-time.Hour)), cite)
		}},
		{"manifest-mismatch: self", verify.Invalid, func(w *world) {
			m := w.manifest()
			s := w.sign(m, w.now)
			s.TargetURI = w.origin + "/runs/r1/cite/b"
			w.put(m, s, "/runs/r1/cite/b")
		}},
		{"manifest-mismatch: two runs", verify.Invalid, func(w *world) {
			a, b := w.manifest(), w.manifestAt("/runs/r2/cite/a1")
			b.RunID = "r2"
			w.publish(a)
			w.publish(b)
			w.announce(answer, manifest.Announcement{URL: w.origin + "/source", Manifest: a.Self}, manifest.Announcement{More: true, Manifest: b.Self})
		}},
		{"output-mismatch", verify.Invalid, func(w *world) {
			m := w.manifest()
			s := w.publish(m)
			w.announce("The old bridge was finished in 1875 [1].", w.announcement(s))
		}},
		{"replayed: older than a day, bound to nothing", verify.Invalid, func(w *world) {
			m := w.manifest()
			m.Output = nil
			s := w.sign(m, w.now)
			w.serveSigned(s, cite)
			w.handle(anAnswer, func(rw http.ResponseWriter, _ *http.Request) {
				manifest.SetHeader(rw.Header(), manifest.List, w.announcement(s))
				rw.Header().Set("Date", w.now.Add(25*time.Hour).Format(http.TimeFormat))
				rw.Write([]byte(answer))
			})
		}},
		{"unsigned", verify.Valid, func(w *world) {
			w.pub.Level = 2
			w.publish(w.manifest())
		}},
		{"unsigned: no signature with our tag", verify.Invalid, params(func(_ *world, p *httpsig.Params) { p.Tag = "web-bot-auth" })},
		{"signature-invalid: parse error", verify.Invalid, served(func(s *manifest.Signed) {
			s.SignatureInput = `manifest=("@status"`
		})},
		{"signature-invalid: unknown component parameter", verify.Invalid, served(func(s *manifest.Signed) {
			s.SignatureInput = strings.Replace(s.SignatureInput, `"@status"`, `"@status";x`, 1)
		})},
		{"signature-invalid: digest is not the body's", verify.Invalid, served(func(s *manifest.Signed) {
			s.Body = bytes.Replace(s.Body, []byte(`"search"`), []byte(`"browse"`), 1)
		})},
		{"signature-invalid: another body, another digest", verify.Invalid, body(func(s string) string { return s + " " })},
		{"signature-invalid: algorithm", verify.Invalid, served(func(s *manifest.Signed) {
			s.SignatureInput += `;alg="hmac-sha256"`
		})},
		{"signature-invalid: algorithm is not the key's", verify.Invalid, served(func(s *manifest.Signed) {
			s.SignatureInput += `;alg="ecdsa-p256-sha256"`
		})},
		{"signature-invalid: made for another purpose, and relabelled", verify.Invalid, func(w *world) {
			m := w.manifest()
			s := w.signedBy(m, func(p *httpsig.Params) { p.Tag = "web-bot-auth" })
			s.SignatureInput = strings.Replace(s.SignatureInput, "web-bot-auth", manifest.SignatureTag, 1)
			w.put(m, s, cite)
		}},
		{"signature-invalid: a digest of another algorithm only", verify.Invalid, func(w *world) {
			m := w.manifest()
			w.put(m, w.signedAs(sha512Digested(w, m)), cite)
		}},
		{"signature-valid: a digest of another algorithm, too", verify.Trusted, func(w *world) {
			m := w.manifest()
			s := sha512Digested(w, m)
			s.ContentDigest += ", " + httpsig.ContentDigest(s.Body)
			w.put(m, w.signedAs(s), cite)
		}},
		{"signature-valid: P-256", verify.Trusted, func(w *world) {
			key(t, w.ring, &keyring.NewOptions{Algorithm: keyring.ECDSAP256, At: w.now.Add(-time.Hour)})
			w.publish(w.manifest())
		}},
		{"unsupported-media: a page nested endlessly", verify.Unverifiable, then(func(w *world) {
			w.page("/source", "text/html", strings.Repeat("<div>", 100_000))
		})},
		{"manifest-malformed: nested endlessly", verify.Invalid, func(w *world) {
			w.announce(answer, manifest.Announcement{URL: w.origin + "/source", Manifest: w.origin + cite})
			w.page(cite, "application/json", `{"run_id":"1","claims":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"}")
		}},
		{"coverage-insufficient: @status", verify.Invalid, params(func(_ *world, p *httpsig.Params) { p.Components = p.Components[1:] })},
		{"coverage-insufficient: content-digest", verify.Invalid, params(func(_ *world, p *httpsig.Params) {
			p.Components = append(p.Components[:2:2], p.Components[3])
		})},
		{"coverage-insufficient: @target-uri", verify.Invalid, params(func(_ *world, p *httpsig.Params) { p.Components = p.Components[:3] })},
		{"coverage-insufficient: created", verify.Invalid, params(func(_ *world, p *httpsig.Params) { p.Created = nil })},
		{"coverage-insufficient: keyid", verify.Invalid, params(func(_ *world, p *httpsig.Params) { p.KeyID = "" })},
		{"key-unknown", verify.Invalid, func(w *world) {
			other := keyring.Memory(&keyring.Options{Now: w.clock})
			key(w.t, other, &keyring.NewOptions{At: w.now.AddDate(-1, 0, 0)})
			ours := w.ring
			w.ring = other
			m := w.manifest()
			w.put(m, w.sign(m, w.now), cite)
			w.ring = ours
		}},
		{"key-unavailable", verify.Unverifiable, then(func(w *world) { w.status(manifest.DirectoryPath, http.StatusInternalServerError) })},
		{"key-unavailable: redirect", verify.Unverifiable, func(w *world) {
			w.publish(w.manifest())
			w.handle(manifest.DirectoryPath, func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, manifest.KeysPath, http.StatusFound)
			})
		}},
		{"key-unavailable: over 64 KiB", verify.Unverifiable, then(func(w *world) {
			w.page(manifest.DirectoryPath, keyring.MediaType, `{"keys":[]}`+strings.Repeat(" ", 64<<10))
		})},
		{"key-unavailable: elsewhere", verify.Unverifiable, then(func(w *world) { w.discovery(`"jwks_uri":"https://keys.example/"`) })},
		{"key-revoked", verify.Invalid, then(func(w *world) { w.revoke(w.now.Add(-time.Hour)) })},
		{"signature-expired", verify.Invalid, params(func(w *world, p *httpsig.Params) {
			at := w.now.Add(-6 * time.Minute).Unix()
			p.Expires = &at
		})},
		{"not-yet-valid", verify.Invalid, params(func(w *world, p *httpsig.Params) {
			at := w.now.Add(6 * time.Minute).Unix()
			p.Created = &at
		})},
		{"key-outside-validity", verify.Invalid, func(w *world) {
			w.publish(w.manifest())
			if err := w.ring.Retire(w.ring.List()[1].ID, w.now.Add(-time.Hour)); err != nil {
				w.t.Fatal(err)
			}
		}},
		{"authority-mismatch: agent of another host", verify.Invalid, edit(func(m *manifest.Manifest) { m.AgentID = "bank.example/v1" })},
		{"expired", verify.Invalid, func(w *world) {
			m := w.manifest()
			m.ExpiresAt = manifest.At(w.now.Add(time.Second))
			w.put(m, w.sign(m, w.now), cite)
			w.advance(time.Minute)
		}},
		{"not-logged", verify.Trusted, func(w *world) {
			m := w.manifest()
			w.put(m, w.sign(m, w.now), cite)
		}},
		{"log-proof-invalid: of another manifest", verify.Invalid, func(w *world) {
			w.publish(w.manifest())
			other := sha256.Sum256([]byte("another"))
			w.proof(w.log, other)
		}},
		{"log-proof-invalid: of another log", verify.Invalid, func(w *world) {
			s := w.publish(w.manifest())
			w.proof(newLog(w.t, "other.example/log", logSigner(w.t, w.ring)), s.Digest())
		}},
		{"chain-invalid", verify.Invalid, edit(func(m *manifest.Manifest) { m.Chain[1].InputsRef = []string{"r1/7"} })},
		{"chain-gap", verify.Invalid, edit(func(m *manifest.Manifest) {
			m.Chain[0].Sources, m.Chain[1].Sources = nil, nil
		})},
		{"level-not-met: promised and unsigned", verify.Invalid, func(w *world) {
			m := w.manifest()
			s, err := manifest.Unsigned(m)
			if err != nil {
				w.t.Fatal(err)
			}
			w.put(m, s, cite)
		}},
		{"level-not-met: an offset left out without a reason", verify.Invalid, edit(func(m *manifest.Manifest) {
			m.Claims[0].Sources[0].ExcerptOffset = nil
		})},
		{"level-not-met: promised and not announced", verify.Invalid, func(w *world) {
			w.announce(answer, manifest.Announcement{URL: w.origin + "/source"})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.make(w)
			r := w.report(w.verifier())
			word, _, _ := strings.Cut(test.name, ":")
			code := verify.Status(word)
			wants(t, r, test.state, code)
			if test.state == verify.Invalid && code != verify.Unsigned && r.Failure[0].Code != code {
				t.Errorf("the first failure is %s, want %s", r.Failure[0].Code, code)
			}
		})
	}
}

// sha512Digested returns an unsigned manifest whose Content-Digest is right, but uses another algorithm than specified.
func sha512Digested(w *world, m *manifest.Manifest) *manifest.Signed {
	w.t.Helper()
	s, err := manifest.Unsigned(m)
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha512.Sum512(s.Body)
	s.ContentDigest = "sha-512=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	return s
}

func (w *world) header(value string) {
	w.handle(anAnswer, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set(manifest.HeaderName, value)
		rw.Write([]byte(answer))
	})
}

func (w *world) discovery(members string) {
	w.page(manifest.DiscoveryPath, "application/json", `{"version":"1.0",`+members+`}`)
}

func (w *world) revoke(at time.Time) {
	w.t.Helper()
	for _, k := range w.ring.List() {
		if k.Use == keyring.Manifest {
			if err := w.ring.Revoke(k.ID, at, "stolen"); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// proof serves the proof that a log has a digest as that of the manifest.
func (w *world) proof(l *tlog.Log, digest tlog.Leaf) {
	w.t.Helper()
	if _, err := l.Append(w.t.Context(), digest); err != nil {
		w.t.Fatal(err)
	}
	b, err := l.Proof(w.t.Context(), digest)
	if err != nil {
		w.t.Fatal(err)
	}
	w.page(cite+manifest.ProofSuffix, "text/plain", string(b))
}

// A promise holds for what was emitted since it was made: raising the level makes no earlier answer invalid.
func TestPromiseIsDated(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration // of the promise, after the manifest
		want  verify.Counts
	}{{"raised later", time.Hour, ""}, {"raised before", -time.Hour, verify.CountFailure}} {
		w := newWorld(t)
		w.pub.Level = 2
		w.publish(w.manifest())
		w.pub.Level, w.pub.Since = 3, map[int]time.Time{3: w.now.Add(test.after)}
		w.advance(2 * time.Hour)
		report := must(t)(w.verifier().URL(t.Context(), w.origin+anAnswer))
		got := verify.Counts("")
		for _, f := range report.Failure {
			if f.Code == verify.LevelNotMet {
				got = f.Counts
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q: %+v", test.name, got, test.want, report.Level)
		}
	}
}
