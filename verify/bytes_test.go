package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/verify"
)

func (w *world) bytes(b string, o *verify.BytesOptions) *verify.Report {
	w.t.Helper()
	r, err := w.verifier().Bytes(w.t.Context(), []byte(b), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// All forms in which curl prints a response: status lines of each version, preceding redirects and proxies, trailers,
// undecoded chunks, both line ends.
func TestPrinted(t *testing.T) {
	w := newWorld(t)
	s := w.publish(w.manifest())
	field := fmt.Sprintf(`Citation-Source: <%s/source>; manifest="%s"`, w.origin, s.TargetURI)
	more := fmt.Sprintf(`Citation-Source: <urn:ibid:more>; manifest="%s"`, s.TargetURI)
	for name, printed := range map[string]string{
		"HTTP/1.1":    "HTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + answer,
		"HTTP/2":      "HTTP/2 200 \r\n" + strings.ToLower(field[:15]) + field[15:] + "\r\n\r\n" + answer,
		"LF":          "HTTP/1.1 200 OK\n" + field + "\n\n" + answer,
		"blank first": "\r\n\n HTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + answer,
		"100":         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + answer,
		"103":         "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + answer,
		"proxy":       "HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + answer,
		"redirect":    "HTTP/1.1 302 Found\r\nLocation: " + w.origin + anAnswer + "\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + answer,
		"trailer":     "HTTP/1.1 200 OK\r\nTrailer: Citation-Source\r\n" + more + "\r\n\r\n" + answer + field + "\r\n",
		"trailer in its own line": "HTTP/1.1 200 OK\r\nTrailer: Citation-Source, X-Other\r\n" + more + "\r\n\r\n" + answer + "\nX-Other: 1\r\n" +
			field + "\r\n\r\n",
		"length and trailer": fmt.Sprintf("HTTP/2 200\r\nContent-Length: %d\r\n%s\r\n\r\n%s%s\r\n", len(answer), more, answer, field),
		"chunks left in": fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Citation-Source\r\n%s\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n%s\r\n\r\n",
			more, 10, answer[:10], len(answer)-10, answer[10:], field),
	} {
		t.Run(name, func(t *testing.T) {
			r := w.bytes(printed, &verify.BytesOptions{Name: "-", URL: w.origin + anAnswer})
			wants(t, r, verify.Trusted, verify.OutputBound)
			if r.Input != "-" || r.ResponseURL != w.origin+anAnswer {
				t.Errorf("the report is about %q, %q", r.Input, r.ResponseURL)
			}
			if strings.Contains(printed, field) && !strings.Contains(has(r, verify.HeaderRead).Detail, "announces 1 source and 1 manifest") {
				t.Error("the field was not read")
			}
		})
	}
	r := w.bytes("HTTP/1.1 302 Found\r\nLocation: "+w.origin+anAnswer+"\r\n\r\nHTTP/1.1 200 OK\r\n"+field+"\r\n\r\n"+answer, nil)
	if r.ResponseURL != w.origin+anAnswer {
		t.Errorf("the response came from %q, want where the redirect led", r.ResponseURL)
	}
	wants(t, w.bytes("HTTP/1.1 200 OK\r\n"+field+"\r\n\r\n"+answer, nil), verify.Trusted, verify.AuthorityUnchecked)
	wants(t, w.bytes("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n"+field+"\r\n\r\n"+answer, nil), verify.Unverifiable, verify.OutputUnchecked)
	wants(t, w.bytes("HTTP/1.1 200 OK\r\n"+field+"\r\n\r\n"+answer+"x", nil), verify.Invalid, verify.OutputMismatch)
}

// The output of the installed curl, with a redirect and a trailer.
func TestCurl(t *testing.T) {
	curl := testenv.Tool(t, "curl")
	w := newWorld(t)
	s := w.publish(w.manifest())
	w.handle("/moved", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, anAnswer, http.StatusFound) })
	w.handle(anAnswer, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		rw.Header().Set("Trailer", manifest.HeaderName)
		rw.Write([]byte(answer[:5]))
		http.NewResponseController(rw).Flush()
		rw.Write([]byte(answer[5:]))
		manifest.SetHeader(rw.Header(), manifest.Link, manifest.Announcement{URL: w.origin + "/source", Manifest: s.TargetURI})
	})
	for _, args := range [][]string{{"-isL"}, {"-is", "--raw", "-L"}, {"-iL", "-s", "--compressed"}} {
		out, err := exec.CommandContext(t.Context(), curl, append(args, w.origin+"/moved")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		wants(t, w.bytes(string(out), nil), verify.Trusted, verify.OutputBound)
	}
	out, err := exec.CommandContext(t.Context(), curl, "-is", s.TargetURI).Output()
	if err != nil {
		t.Fatal(err)
	}
	r := w.bytes(string(out), nil)
	wants(t, r, verify.Trusted, verify.SignatureValid)
	if r.Kind != verify.KindManifest {
		t.Errorf("it is a %s, want a manifest", r.Kind)
	}
}

// Each kind of file is recognised.
func TestBytes(t *testing.T) {
	w := newWorld(t)
	s := w.publish(w.manifest())
	bundle, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, file string
		kind       verify.Kind
		state      verify.State
		code       verify.Status
	}{
		{"manifest", string(s.Body), verify.KindManifest, verify.Valid, verify.Unsigned},
		{"manifest with white space", "\n\t" + string(s.Body) + "\n", verify.KindManifest, verify.Valid, verify.Unsigned},
		{"bundle", string(bundle), verify.KindBundle, verify.Trusted, verify.SignatureValid},
		{"document", document(t, w.origin+"/source", excerpt), verify.KindDocument, verify.Valid, verify.Unsigned},
		{"document that misquotes", document(t, w.origin+"/source", strings.Replace(excerpt, "is not", "is", 1)), verify.KindDocument, verify.Invalid, verify.ExcerptAltered},
		{"document without quotes", document(t, w.origin+"/source", ""), verify.KindDocument, verify.Valid, verify.Unsigned},
		{"document without addresses", document(t, "", ""), verify.KindDocument, verify.Unverifiable, verify.NothingQuoted},
		{"broken manifest", string(s.Body[:len(s.Body)-9]), verify.KindManifest, verify.Invalid, verify.ManifestMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := w.bytes(test.file, &verify.BytesOptions{Name: "file"})
			wants(t, r, test.state, test.code)
			if r.Kind != test.kind {
				t.Errorf("it is a %s, want a %s", r.Kind, test.kind)
			}
		})
	}
	for level, code := range map[int]verify.Status{1: verify.LevelNotMet, 2: verify.LevelNotMet, 3: verify.Unsigned} {
		v := w.verifier()
		v.RequireLevel = level
		r := must(t)(v.Bytes(t.Context(), []byte(document(t, w.origin+"/source", excerpt)), nil))
		if wants(t, r, verify.Invalid, code); has(r, verify.LevelNotMet) == nil || has(r, code).Counts != verify.CountFailure {
			t.Errorf("a document at level %d:\n%s", level, text(r))
		}
	}
	for _, junk := range []string{"", "x", "{}", "[]", "HTTP/1.1", "HTTP/1.1 200 OK", "HTTP/1.1 abc\r\n\r\n", `{"claims":1}`, "\x00\xff"} {
		if r, err := w.verifier().Bytes(t.Context(), []byte(junk), nil); err == nil {
			t.Errorf("%q was recognised: %s", junk, text(r))
		} else if !errors.Is(err, verify.ErrUnrecognised) && !strings.HasPrefix(junk, "HTTP/") {
			t.Errorf("%q: %v, want ErrUnrecognised", junk, err)
		}
	}
	v := w.verifier()
	v.Limits.Input = 10
	if _, err := v.Bytes(t.Context(), s.Body, nil); !errors.Is(err, verify.ErrInput) {
		t.Errorf("more than Limits.Input: %v, want ErrInput", err)
	}
}

func document(t *testing.T, url, quote string) string {
	t.Helper()
	b, err := json.Marshal(ibid.Answer{
		Text: answer, Parts: []ibid.Part{{Span: ibid.Span{End: len(answer)}, Kind: ibid.AnswerPart}},
		Sources: []ibid.Source{{ID: "a", Kind: ibid.Web, URL: url}},
		Citations: []ibid.Citation{{
			ID: "c-1", Span: ibid.Span{End: len(claim)}, Claim: ibid.Span{End: len(claim)}, Covers: ibid.CoversClaim, Anchor: ibid.AnchorExact,
			Refs: []ibid.Ref{{Source: "a", Quote: quote}}, Origin: ibid.OriginProvider,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A bundle is verified without any request, and the report tells what could not be checked.
func TestOffline(t *testing.T) {
	w := published(t)
	online := w.verifier()
	online.KeepSources = true
	r := w.report(online)
	wants(t, r, verify.Trusted, "")
	kept, err := json.Marshal(r.Manifests[0].Bundle)
	if err != nil {
		t.Fatal(err)
	}
	var bundle manifest.Signed
	if err := json.Unmarshal(kept, &bundle); err != nil {
		t.Fatal(err)
	}
	if bundle.JWKS == nil || bundle.Proof == nil || len(bundle.Sources) != 1 {
		t.Fatalf("the bundle lacks the keys, the proof or the source: %s", kept)
	}
	before := maps.Clone(w.hits)
	v := &verify.Verifier{Offline: true, Fetcher: w.fetch, Now: w.clock, Trust: []string{r.Manifests[0].KeyID}}
	off, err := v.Bundle(t.Context(), &bundle)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, off, verify.Trusted, verify.KeyFromBundle)
	if diff := cmp.Diff(before, w.hits); diff != "" {
		t.Errorf("requests were made: %s", diff)
	}
	bundle.Sources = nil
	off = must(t)(v.Bundle(t.Context(), &bundle))
	wants(t, off, verify.Unverifiable, verify.Blocked)
	if got := off.Claims[0].Sources[0].Result.Reason; got != "offline" {
		t.Errorf("the reason is %q, want offline", got)
	}
}

// Bytes never panics and always reports something, for any input. Nothing is fetched.
func FuzzBytes(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nCitation-Source: \"https://a.example/\";manifest=\"https://a.example/m\"\r\n\r\nbody",
		"HTTP/1.1 302 Found\nLocation: https://a.example/\n\nHTTP/2 200\nTrailer: Citation-Source\n\nxCitation-Source: <https://a.example/>\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: citation-source\ndata: \"https://a.example/\"\n\n",
		`{"run_id":"1","agent_id":"a.example","emitted_at":"2026-04-28T10:00:00Z","claims":[{"claim_id":"c","text":"t","sources":[{"url":"https://a.example/","retrieved_at":"2026-04-28T10:00:00Z","excerpt":{"exact":"words of a page"}}]}]}`,
		`{"target_uri":"https://a.example/m","status":200,"body":"{}","jwks_seen":{"keys":[]},"signature_input":"a=(\"@status\");tag=\"agent-citation-manifest\"","signature":"a=:AA==:"}`,
		`{"version":1,"text":"a","text_sha256":"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4f72b9807785afee48bb","citations":[],"sources":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v := &verify.Verifier{Offline: true}
		defer v.Close()
		r, err := v.Bytes(t.Context(), b, nil)
		if err != nil {
			return
		}
		if r.State == verify.Trusted || r.State == "" {
			t.Errorf("the state is %q with nobody to trust", r.State)
		}
		if text(r) == "" {
			t.Error("the report says nothing")
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
