package verify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

const forged = "The old bridge collapsed in 2020."

// sent verifies a body that announces a manifest of the answer.
func (w *world) sent(s *manifest.Signed, mediaType, body string) *verify.Report {
	w.t.Helper()
	h := http.Header{"Content-Type": {mediaType}}
	manifest.SetHeader(h, manifest.List, w.announcement(s))
	r, err := w.verifier().Response(w.t.Context(), &verify.Response{URL: w.origin + "/x", Status: http.StatusOK, Header: h, Body: []byte(body)})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// A manifest is bound to its answer in every form in which the answer is sent, but not to a body that shows people an
// answer other than the signed one.
func TestOutputBound(t *testing.T) {
	w := newWorld(t)
	s := w.publish(w.manifest())
	document, err := json.Marshal(ibid.Answer{Text: answer})
	if err != nil {
		t.Fatal(err)
	}
	twice := func(first, second string) string {
		return strings.Replace(string(document), `"text":"`+answer+`"`, first+`,`+second, 1)
	}
	chat := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[%s]}`
	choice := func(i int, members string) string {
		return fmt.Sprintf(`{"index":%d,"finish_reason":"stop","message":{"role":"assistant",%s}}`, i, members)
	}
	said, lied := `"content":"`+answer+`"`, `"content":"`+forged+`"`
	chunk := `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{%s}%s}]}` + "\n\n"
	end := fmt.Sprintf(chunk, "", `,"finish_reason":"stop"`) + "data: [DONE]\n\n"
	for name, test := range map[string]struct{ mediaType, body string }{
		"page":                    {"text/html", "<svg><text>" + forged + "</text></svg><p style='display:none'>" + answer + "</p>"},
		"page, honest":            {"text/html; charset=utf-8", "<p>" + answer + "</p>"},
		"XHTML":                   {"application/xhtml+xml", "<p>" + answer + "</p>"},
		"document in a page":      {"text/html", string(document)},
		"document, another case":  {"application/json", twice(`"text":"`+forged+`"`, `"Text":"`+answer+`"`)},
		"document, twice":         {"application/json", twice(`"text":"`+forged+`"`, `"text":"`+answer+`"`)},
		"two choices":             {"application/json", fmt.Sprintf(chat, choice(0, said)+","+choice(1, lied))},
		"choice, twice":           {"application/json", fmt.Sprintf(chat, choice(0, lied+","+said))},
		"choice, another case":    {"application/json", fmt.Sprintf(chat, choice(0, said+`,"Content":"`+forged+`"`))},
		"after the end of stream": {"text/event-stream", fmt.Sprintf(chunk, said, "") + end + fmt.Sprintf(chunk, lied, "")},
		"in a stream, twice":      {"text/event-stream", fmt.Sprintf(chunk, lied+","+said, "") + end},
		"after the document":      {"application/json", fmt.Sprintf(chat, choice(0, said)) + forged},
		"two documents":           {"application/json", fmt.Sprintf(chat, choice(0, said)) + fmt.Sprintf(chat, choice(0, lied))},
		"deep":                    {"application/json", fmt.Sprintf(chat, choice(0, said+`,"x":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)))},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, w.sent(s, test.mediaType, test.body), verify.Invalid, verify.OutputMismatch)
		})
	}
	ours := "event: citation-source\ndata: " + manifest.FormatHeader([]manifest.Announcement{{URL: w.origin + "/source", Manifest: s.TargetURI}}, manifest.List) + "\n\n"
	half := fmt.Sprintf(chunk, `"role":"assistant","content":"`+answer[:10]+`"`, "") + fmt.Sprintf(chunk, `"content":"`+answer[10:]+`"`, "")
	for name, test := range map[string]struct{ mediaType, body string }{
		"octets":              {"text/plain", answer},
		"normalised text":     {"text/plain; charset=utf-8", "  The old bridge\nwas finished in 1874 [1].\n"},
		"answer document":     {"application/json", string(document)},
		"provider's response": {"application/json", fmt.Sprintf(chat, choice(0, said))},
		"provider's stream":   {"text/event-stream", half + end},
		"ibid's own event":    {"text/event-stream", fmt.Sprintf(chunk, said, "") + end + ours},
	} {
		t.Run(name, func(t *testing.T) { wants(t, w.sent(s, test.mediaType, test.body), verify.Trusted, verify.OutputBound) })
	}
	for name, b := range map[string]string{"document": twice(`"text":"`+forged+`"`, `"Text":"`+answer+`"`), "bundle": `{"target_uri":"a","body":"","Body":"x"}`} {
		if r, err := w.verifier().Bytes(t.Context(), []byte(b), nil); err == nil {
			t.Errorf("a %s with a duplicate member was verified: %s", name, r.State)
		}
	}
}

// A manifest is bound to a body of the publisher's own form that holds the text in one place, or where its output says.
func TestOutputHeld(t *testing.T) {
	w := newWorld(t)
	quoted := func(s string) string { return string(testenv.Must(json.Marshal(s))(t)) }
	stream := func(event, pattern string, parts ...string) string {
		var b strings.Builder
		for _, part := range parts {
			fmt.Fprintf(&b, "event: %s\ndata: "+pattern+"\n\n", event, quoted(part))
		}
		return b.String()
	}
	const page, sse = "application/json", "text/event-stream"
	for name, test := range map[string]struct {
		at, event, mediaType, body string
		bound                      bool
	}{
		"a member":                {"", "", page, `{"model":"m","answer":` + quoted(answer) + `,"cost":1}`, true},
		"white space":             {"", "", page, `{"data":[{"answer":` + quoted(" "+answer+"\n") + `}]}`, true},
		"two members":             {"", "", page, `{"answer":` + quoted(answer) + `,"debug":` + quoted(answer) + `}`, false},
		"one changed digit":       {"", "", page, `{"answer":` + quoted(strings.Replace(answer, "1874", "1875", 1)) + `}`, false},
		"twice under one name":    {"", "", page, `{"answer":` + quoted(forged) + `,"answer":` + quoted(answer) + `}`, false},
		"a name":                  {"", "", page, `{` + quoted(answer) + `:1}`, false},
		"events":                  {"", "", sse, stream("token", `{"delta":%s}`, answer[:9], answer[9:]) + "event: end\ndata: {}\n\n", true},
		"events, plain":           {"", "", sse, "data: " + answer + "\n\n", true},
		"events, changed":         {"", "", sse, stream("token", `{"delta":%s}`, answer[:9], "x", answer[9:]), false},
		"the stated member":       {"/answer", "", page, `{"answer":` + quoted(answer) + `,"debug":` + quoted(answer) + `}`, true},
		"not the stated member":   {"/answer", "", page, `{"answer":` + quoted(forged) + `,"debug":` + quoted(answer) + `}`, false},
		"the stated events":       {"/delta", "token", sse, stream("token", `{"delta":%s}`, answer) + stream("echo", `{"delta":%s}`, answer), true},
		"not the stated events":   {"/delta", "token", sse, stream("token", `{"delta":%s}`, forged) + stream("echo", `{"delta":%s}`, answer), false},
		"a stream sent as a page": {"", "", page, stream("token", `{"delta":%s}`, answer), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := w.manifestAt("/runs/r/cite/" + strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), ",", ""))
			m.Output.TextAt, m.Output.TextEvent = test.at, test.event
			s := w.publish(m)
			if r := w.sent(s, test.mediaType, test.body); test.bound {
				wants(t, r, verify.Trusted, verify.OutputBound)
			} else {
				wants(t, r, verify.Invalid, verify.OutputMismatch)
			}
		})
	}
}

// The manifest of a live answer is waited for, as its Retry-After asks.
func TestWait(t *testing.T) {
	for _, test := range []struct {
		wait  time.Duration
		state verify.State
		asked int
	}{{5 * time.Second, verify.Trusted, 2}, {0, verify.Pending, 1}} {
		w := newWorld(t)
		w.publish(w.manifest())
		first := true
		w.handle(cite, func(rw http.ResponseWriter, r *http.Request) {
			if first {
				first = false
				rw.Header().Set("Retry-After", "1")
				rw.WriteHeader(http.StatusAccepted)
				return
			}
			w.pub.Handler().ServeHTTP(rw, r) //nolint:contextcheck // r has it
		})
		v := w.verifier()
		v.Wait = test.wait
		if r := testenv.Must(v.URL(t.Context(), w.origin+anAnswer))(t); r.State != test.state || w.asked(cite) != test.asked {
			t.Errorf("waiting %v: %s, asked %d times", test.wait, r.State, w.asked(cite))
		}
	}
}

// A page is bound by its octets.
func TestOutputPage(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	body := "<p>" + answer + "</p>"
	m.Output.MediaType, m.Output.Hash = "text/html; charset=utf-8", snapshot.Hash([]byte(body))
	s := w.publish(m)
	wants(t, w.sent(s, "text/html; charset=utf-8", body), verify.Trusted, verify.OutputBound)
	wants(t, w.sent(s, "text/html; charset=utf-8", body+"<b>"+forged+"</b>"), verify.Invalid, verify.OutputMismatch)
	wants(t, w.sent(s, "text/plain", answer), verify.Invalid, verify.OutputMismatch)
}

// An excerpt that cuts off a number's first digit is found in its place, and supports nothing.
func TestExcerptCut(t *testing.T) {
	const said = "The trial cured 15 percent of all patients seen."
	whole := "<!doctype html><p>" + said + "</p>"
	for _, private := range []bool{false, true} {
		for _, drifted := range []string{"", "<!-- -->"} {
			w := newWorld(t)
			w.page("/source", "text/html; charset=utf-8", whole+drifted)
			m := w.manifest()
			at := strings.Index(said, "5 percent")
			src, cs, c, n := &m.Sources[0], &m.Claims[0].Sources[0], &m.Claims[0], len(said)
			src.Hash, src.TextHash, src.TextLength = snapshot.Hash([]byte(whole)), snapshot.Hash([]byte(said)), &n
			cs.Hash, cs.ExcerptOffset, cs.ExcerptHash = src.Hash, &manifest.Range{at, n}, snapshot.Hash([]byte(said[at:]))
			cs.Excerpt = &manifest.Excerpt{Exact: said[at:], Prefix: "The trial cured 1"}
			if private {
				cs.Excerpt = nil
			}
			c.Text, c.Span, c.Rewritten = "5 percent of all patients seen", nil, true
			c.ID = manifest.ClaimID(c.Text)
			w.publish(m)
			r := w.report(w.verifier())
			wants(t, r, verify.Trusted, verify.ExcerptCut)
			got := r.Claims[0]
			if got.Status != verify.ClaimUnchecked || got.Counts != verify.CountInfo || got.Sources[0].Result.Counts != verify.CountWarning {
				t.Errorf("the claim is %s, its source counts as %s", got.Status, got.Sources[0].Result.Counts)
			}
		}
	}
}

// A manifest without claims, or without a supporting source for a claim, is not trusted.
func TestNothingClaimed(t *testing.T) {
	for name, change := range map[string]func(*manifest.Manifest){
		"no claim":     func(m *manifest.Manifest) { m.Claims = []manifest.Claim{} },
		"contradicts":  func(m *manifest.Manifest) { m.Claims[0].Sources[0].Relation = manifest.RelationContradicts },
		"context only": func(m *manifest.Manifest) { m.Claims[0].Sources[0].Relation = manifest.RelationContext },
	} {
		w := newWorld(t)
		m := w.manifest()
		change(m)
		w.publish(m)
		r := w.report(w.verifier())
		wants(t, r, verify.Valid, verify.NothingClaimed)
		if name != "no claim" && (r.Claims[0].Reason != "no-source" || !strings.Contains(text(r), "note     nothing-claimed")) {
			t.Errorf("%s: %s", name, text(r))
		}
		if !strings.Contains(r.Why(), "claim") || strings.Contains(r.Why(), "trust its signer") {
			t.Errorf("%s: %s", name, r.Why())
		}
	}
}

// A forgery that is seen first does not block the real manifest.
func TestForgedFirst(t *testing.T) {
	w := newWorld(t)
	good := w.sign(w.manifest(), w.clock())
	other := w.manifest()
	other.Claims[0].Confidence = manifest.ConfidenceLow
	bad := *good
	bad.Body = w.sign(other, w.clock()).Body
	v := w.verifier()
	for _, test := range []struct {
		served *manifest.Signed
		state  verify.State
		code   verify.Status
	}{{&bad, verify.Invalid, verify.SignatureInvalid}, {good, verify.Trusted, verify.SignatureValid}, {&bad, verify.Invalid, verify.ManifestMutated}} {
		w.serveSigned(test.served, cite)
		wants(t, must(t)(v.Manifest(t.Context(), w.origin+cite)), test.state, test.code)
	}

	// Nor does a body that the caller supplies, if the manifest does not say which response it is about.
	w = newWorld(t)
	m := w.manifest()
	m.Output, m.Claims[0].Span = nil, nil
	s := w.sign(m, w.clock())
	w.serveSigned(s, cite)
	v = w.verifier()
	head := http.Header{"Date": {w.now.Format(http.TimeFormat)}}
	manifest.SetHeader(head, manifest.Link, w.announcement(s))
	w.handle(anAnswer, func(rw http.ResponseWriter, _ *http.Request) {
		for name := range head {
			rw.Header()[name] = head[name]
		}
		rw.Write([]byte(answer))
	})
	handed := func() *verify.Report {
		return must(t)(v.Response(t.Context(), &verify.Response{URL: w.origin + anAnswer, Header: head, Body: []byte(forged)}))
	}
	wants(t, handed(), verify.Valid, verify.OutputUnchecked)
	wants(t, w.report(v), verify.Valid, verify.OutputUnchecked)
	wants(t, handed(), verify.Invalid, verify.Replayed)
}

// Each source that names an upstream manifest must be the one that the manifest is about, even if the manifest was
// already read for another source.
func TestUpstreamOfAnother(t *testing.T) {
	w, up, m := upstreamWorld(t)
	first, text := m.Sources[0], "The old bridge was finished in 1874 they say, quite another text."
	w.page("/other", "text/plain; charset=utf-8", text)
	n := utf8.RuneCountInString(text)
	other := manifest.Source{
		ID: "other", URL: w.origin + "/other", FinalURL: w.origin + "/other", RetrievedAt: first.RetrievedAt, RetrievedBy: first.RetrievedBy, Status: 200,
		MediaType: "text/plain; charset=utf-8", Hash: snapshot.Hash([]byte(text)), TextHash: snapshot.Hash([]byte(text)), TextLength: &n,
		UpstreamManifest: up.origin + cite,
	}
	m.Sources = append(m.Sources, other)
	w.put(m, w.sign(m, w.now), cite)
	wants(t, w.report(w.verifier()), verify.Invalid, verify.UpstreamInvalid)

	again := first
	again.ID = "again"
	m.Sources[len(m.Sources)-1] = again
	w.put(m, w.sign(m, w.now), cite)
	r := w.report(w.verifier())
	if r.State == verify.Invalid || len(r.Upstream) != 1 || has(r, verify.UpstreamInvalid) != nil {
		t.Errorf("the same source twice:\n%s", text)
		t.Log(r.Why())
	}
}

// A publisher that names another log, or no log any more, may be hiding its first one.
func TestLogChanged(t *testing.T) {
	w := newWorld(t)
	v := w.verifier()
	w.publish(w.manifest())
	wants(t, w.report(v), verify.Trusted, verify.Logged)
	w.log = newLog(t, w.host()+"/log2", logSigner(t, w.ring))
	w.pub = &manifest.Publisher{Origin: w.origin, Level: 3, Keys: w.ring, Log: w.log, Now: w.clock}
	w.publish(w.manifestAt(cite + "b"))
	w.advance(10 * time.Minute)
	r := w.report(v)
	wants(t, r, verify.Trusted, verify.LogChanged)
	w.pub = &manifest.Publisher{Origin: w.origin, Level: 3, Keys: w.ring, Now: w.clock}
	w.publish(w.manifestAt(cite + "c"))
	w.advance(10 * time.Minute)
	if f := has(w.report(v), verify.NotLogged); f == nil || f.Counts != verify.CountWarning {
		t.Errorf("no longer a log: %+v", f)
	}
	if f := has(w.report(w.verifier()), verify.NotLogged); f == nil || f.Counts != verify.CountInfo {
		t.Errorf("never a log: %+v", f)
	}
}

// Text in a body is taken neither for another response nor for its trailer.
func TestPrintedForged(t *testing.T) {
	w := newWorld(t)
	s := w.publish(w.manifest())
	field := fmt.Sprintf(`Citation-Source: <%s/source>; manifest="%s"`, w.origin, s.TargetURI)
	next := "HTTP/1.1 200 OK\r\n" + field + "\r\n\r\n" + answer
	wants(t, w.bytes("HTTP/1.1 200 OK\r\nServer: x\r\n\r\nHTTP/1.1 302 Found\r\nLocation: "+w.origin+anAnswer+"\r\n\r\n"+next, nil),
		verify.Unverifiable, verify.HeaderMissing)
	r := w.bytes("HTTP/1.1 302 Found\r\nLocation: "+w.origin+anAnswer+"\r\n\r\n"+next, nil)
	wants(t, r, verify.Trusted, verify.AuthorityUnchecked)
	if has(r, verify.AuthorityVerified) != nil {
		t.Error("the printed text decides who it is from")
	}
	head := "HTTP/1.1 200 OK\r\nTrailer: Citation-Source\r\n" + field + "\r\n\r\n" + answer
	wants(t, w.bytes(head+field, nil), verify.Trusted, verify.OutputBound)
	for _, tail := range []string{
		" " + forged + " citation-source: x", "Citation-Source: <https://evil.example/x>; note=\"" + forged + "\"",
		"\nCitation-Source: <https://evil.example/x>; manifest=\"https://evil.example/m\"\r\n" + field,
	} {
		wants(t, w.bytes(head+tail, nil), verify.Invalid, verify.OutputMismatch)
	}
}

// hollow has a copy of which only the hash is left.
type hollow struct{ s *snapshot.Snapshot }

func (h hollow) Latest(context.Context, string) (*snapshot.Snapshot, error) { return h.s, nil }
func (h hollow) Keep(context.Context, *snapshot.Snapshot) error             { return nil }

// A copy without its octets, or with others, is ignored.
func TestHollowCopy(t *testing.T) {
	w := newWorld(t)
	s := w.publish(w.manifest())
	texts, memory := &snapshot.Texts{}, &verify.MemoryMap{}
	online := w.verifier()
	online.Memory = memory
	w.report(online)
	for _, octets := range []string{"", "<p>Something else."} {
		v := w.verifier()
		v.Memory, v.Offline, v.Texts = memory, true, texts
		v.Copies = hollow{&snapshot.Snapshot{
			URL: w.origin + "/source", FinalURL: w.origin + "/source", Status: http.StatusOK, MediaType: "text/html; charset=utf-8",
			Hash: snapshot.Hash([]byte(page)), Octets: []byte(octets),
		}}
		wants(t, must(t)(v.Bundle(t.Context(), s)), verify.Unverifiable, "")
	}
	v := w.verifier()
	v.Texts = texts
	wants(t, w.report(v), verify.Trusted, "")
	got := verify.Compare(&manifest.ClaimSource{URL: "https://a.example/", Excerpt: &manifest.Excerpt{Exact: excerpt}}, nil,
		&snapshot.Snapshot{URL: "https://a.example/", Hash: snapshot.Hash([]byte(page))}, nil, nil)
	if got.Status != verify.Unreachable || got.Counts != verify.CountUnverifiable {
		t.Errorf("a copy with only a hash: %+v", got)
	}
}

// A third party's signature of the response, such as a CDN's, does not make an unsigned manifest a forgery.
func TestForeignSignature(t *testing.T) {
	for input, code := range map[string]verify.Status{
		`cdn=("@status" "x-foo";zz);created=1`: verify.Unsigned,
		`cdn=("@status");created="x"`:          verify.SignatureInvalid,
	} {
		w := newWorld(t)
		w.pub.Level = 2
		m := w.manifest()
		s := w.sign(m, w.clock())
		s.Signature, s.SignatureInput = "cdn=:AAAA:", input
		w.put(m, s, cite)
		if r := w.report(w.verifier()); has(r, code) == nil {
			t.Errorf("%s:\n%s", input, text(r))
		}
	}
}

// Two sources with the same URL are distinguished by their ids.
func TestSameURLTwice(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	m.Sources = append(m.Sources, m.Sources[0])
	m.Sources[1].ID = "s2"
	s := w.publish(m)
	sum := s.Digest()
	for id, state := range map[string]verify.State{"s1": verify.Trusted, "s2": verify.Trusted, "s3": verify.Invalid} {
		w.announce(answer, manifest.Announcement{URL: m.Sources[1].URL, ID: id, Manifest: s.TargetURI, Digest: sum[:]})
		wants(t, w.report(w.verifier()), state, "")
	}
}

// A job ends in time, however slowly servers answer: what it has no time for cannot be verified, and is fetched again
// next time.
func TestTime(t *testing.T) {
	w := published(t)
	slow := make(chan struct{})
	w.handle("/source", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-slow:
		case <-r.Context().Done():
		}
	})
	v := w.verifier()
	v.SourceTTL, v.FailureTTL, v.Limits.Time = 0, 0, 2*time.Second
	start := time.Now()
	r := w.report(v)
	wants(t, r, verify.Unverifiable, verify.Blocked)
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	close(slow)
	w.page("/source", "text/html; charset=utf-8", page)
	wants(t, w.report(v), verify.Trusted, "")
}

// Fetches from a host that keeps failing are not retried.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	m := w.manifest()
	cs, src := m.Claims[0].Sources[0], m.Sources[0]
	m.Sources, m.Claims[0].Sources, m.Chain, m.Claims[0].Steps = nil, nil, nil, nil
	const pages = 40 // more than are fetched concurrently
	for i := range pages {
		path := fmt.Sprintf("/down/%d", i)
		src.ID, src.URL = fmt.Sprintf("s%d", i), w.origin+path
		src.FinalURL, cs.Source, cs.URL = src.URL, src.ID, src.URL
		m.Sources, m.Claims[0].Sources = append(m.Sources, src), append(m.Claims[0].Sources, cs)
		w.status(path, http.StatusServiceUnavailable)
	}
	w.put(m, w.sign(m, w.clock()), cite)
	w.report(w.verifier())
	asked := 0
	for i := range pages {
		asked += w.asked(fmt.Sprintf("/down/%d", i))
	}
	if asked < pages || asked > pages+2*20 {
		t.Errorf("%d pages were requested %d times", pages, asked)
	}
}

// No content of a page or manifest can look like something else in a report.
func TestShownUnseen(t *testing.T) {
	const unseen = "\u3164\u115f\u2800\u0336\ufe0f\u034f\u17b4"
	r := &verify.Report{Kind: verify.KindManifest, Claims: []verify.ClaimReport{{
		ID: "c", Text: "a" + unseen + "b \u05d0 12 34",
		Sources: []verify.SourceReport{{
			URL: "https://good.example:x@evil.example/", Excerpt: "y",
			Result: verify.SourceResult{Status: verify.ExcerptAltered, Counts: verify.CountFailure, Near: &snapshot.Near{
				Text: "x", Diff: []snapshot.Edit{{Kind: snapshot.EditSame, Text: "[-5-]{+6+}"}, {Kind: snapshot.EditText, Text: "7"}},
			}},
		}},
	}}}
	got := text(r)
	if strings.ContainsAny(got, unseen) || strings.Contains(got, "good.example") || strings.Contains(got, "[-5") || strings.Contains(got, "{+6") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(got, "{+7+}") || !strings.Contains(got, "https://evil.example/") || !strings.Contains(got, "\u2068a") || !strings.Contains(got, "34\u2069") {
		t.Errorf("%q", got)
	}
}

// A manifest that is abused for two responses makes two incidents.
func TestIncidentOfEachResponse(t *testing.T) {
	key := func(status verify.Status, url string) string {
		return (&verify.Incident{ManifestSHA256: "x", Status: status, ResponseURL: url}).Key()
	}
	for status, apart := range map[verify.Status]bool{verify.OutputMismatch: true, verify.Replayed: true, verify.SignatureInvalid: false} {
		if (key(status, "https://a.example/") != key(status, "https://b.example/")) != apart {
			t.Errorf("%s at two URLs", status)
		}
	}
}
