package verify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/curl"
	"github.com/ibidhq/ibid/internal/unpack"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// URL fetches an answer and verifies what it announces. If the URL is that of a manifest, the manifest is verified by
// itself. A failed fetch is a report too; an error means that the context ended, or that Memory or a checker failed.
func (v *Verifier) URL(ctx context.Context, url string) (*Report, error) {
	j := v.job(KindResponse, url)
	snap, err := j.fetchDocument(ctx, &snapshot.FetchRequest{URL: url, Fresh: true})
	j.report.Unread, _ = errors.AsType[*snapshot.FetchError](err)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("verifying %s: %w", url, context.Cause(ctx))
	case err != nil && manifestURL.MatchString(url):
		j.report.Kind = KindManifest
		m := j.newChecked(clean(url))
		m.done = true
		m.foundUnfetched(err)
		return j.result(m.check(ctx))
	case err != nil:
		j.report.found(ResponseUnreadable, "%s", sentence("The answer could not be fetched", err))
		return j.finished(), nil
	case len(fields(snap.Header))+len(fields(snap.Trailer)) == 0 &&
		(snap.Status == http.StatusAccepted || recognise(snap.Octets) == KindManifest):
		j.report.Kind = KindManifest
		return j.checkAlone(ctx, url)
	}
	return j.result(j.checkResponse(ctx, &Response{
		URL: snap.FinalURL, Status: snap.Status, Header: snap.Header, Trailer: snap.Trailer, Body: snap.Octets,
		fetched: true,
	}))
}

// manifestURL matches the addresses of manifests, as [manifest.Path] makes them.
var manifestURL = regexp.MustCompile(`^[^:]+://[^/?#]*/runs/[^/?#]+/cite(\.[^/?#]*)?(/[^/?#]+)?([?#]|$)`)

// Manifest fetches the manifest at a URL and verifies it by itself. Errors are as for [Verifier.URL].
func (v *Verifier) Manifest(ctx context.Context, url string) (*Report, error) {
	return v.job(KindManifest, url).checkAlone(ctx, url)
}

func (j *job) checkAlone(ctx context.Context, url string) (*Report, error) {
	j.addToDo("manifest", 1)
	return j.result(j.newChecked(clean(url)).verify(ctx))
}

// Response verifies what a response announces. The response is not changed; its URL, if known, is taken for its sender.
func (v *Verifier) Response(ctx context.Context, r *Response) (*Report, error) {
	j := v.job(KindResponse, r.URL)
	return j.result(j.checkResponse(ctx, r))
}

// checkResponse verifies the manifests that a response announces, one after the other, and then the sources announced
// without one.
func (j *job) checkResponse(ctx context.Context, r *Response) error {
	j.report.ResponseURL = r.URL
	list, ok := j.readHeader(r)
	switch {
	case !ok:
		return nil
	case len(list) == 0:
		j.checkPromise(ctx, r.URL, 0)
		return ctx.Err()
	}
	manifests, alone, ok := j.group(list)
	if !ok {
		return nil
	}
	j.addToDo("manifest", len(manifests))
	for i := range manifests {
		m := j.newChecked(manifests[i].url)
		m.announced, m.response = manifests[i], r
		if err := m.verify(ctx); err != nil {
			return err
		}
	}
	if err := j.checkSources(ctx, alone); err != nil {
		return err
	}
	if len(manifests) == 0 {
		j.checkPromise(ctx, r.URL, 1)
	}
	return ctx.Err()
}

// checkPromise compares a response that announces no manifest, or nothing at all, with the required level and with the
// level that its origin promises. If it announces nothing, it is unknown whether the promise applies to it.
func (j *job) checkPromise(ctx context.Context, address string, observed int) {
	what, counts := "The response announces no manifest", CountFailure
	if observed == 0 {
		what, counts = "The response announces nothing", CountUnverifiable
	}
	if address != "" {
		j.report.Level.Promised = j.directory(ctx, origin(address), false).promised(j.now)
	}
	switch promised := j.report.Level.Promised; {
	case observed < j.RequireLevel:
		j.report.found(LevelNotMet, "%s, which is level %d, and level %d is required.", what, observed, j.RequireLevel)
	case observed < promised:
		detail := fmt.Sprintf("%s, and its origin promises level %d.", what, promised)
		j.report.add(Finding{Code: LevelNotMet, Counts: counts, Detail: detail})
	}
}

// readHeader returns what a response announces in its header, its trailer and the events of a stream that ibid wrote,
// perhaps nothing. It returns false if they cannot be read.
func (j *job) readHeader(r *Response) ([]manifest.Announcement, bool) {
	lines := append(fields(r.Header), fields(r.Trailer)...)
	list, err := manifest.ParseHeader(lines)
	if err == nil && strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "text/event-stream") {
		var more []manifest.Announcement
		sent := events(r.Body)
		more, err = manifest.ParseHeader(sent)
		list, lines = append(list, more...), append(lines, sent...)
	}
	switch {
	case err != nil:
		j.report.found(HeaderMalformed, "%s", sentence("Citation-Source cannot be read", err))
		return nil, false
	case len(list) == 0 && strings.Trim(strings.Join(lines, ""), " \t,") != "":
		j.report.found(HeaderMalformed, "Citation-Source has no member that announces a source.")
		return nil, false
	case len(list) == 0:
		j.report.found(HeaderMissing,
			"The response has no Citation-Source field: it announces no sources, so there is nothing to verify.")
		return nil, true
	}
	j.reportVoid(list)
	j.report.Level.Observed = 1
	return list, true
}

// reportVoid reports members that were malformed: each announces a source that is unknown.
func (j *job) reportVoid(list []manifest.Announcement) {
	n, why := 0, ""
	for i := range list {
		if list[i].Invalid != "" {
			n, why = n+1, cmp.Or(why, list[i].Invalid)
		}
	}
	if n > 0 {
		j.report.add(Finding{Code: HeaderMalformed, Counts: CountWarning, Detail: fmt.Sprintf(
			"Citation-Source has %s that cannot be read: %s.", number(n, "member"), why,
		)})
	}
}

// fields returns the values of the Citation-Source field, whatever the case of its name.
func fields(h http.Header) []string {
	var values []string
	for name, lines := range h {
		if strings.EqualFold(name, manifest.HeaderName) {
			values = append(values, lines...)
		}
	}
	return values
}

// events returns the data of the events that announce sources at the end of a stream. Data that is longer than the
// field may be is cut to a length that its parser still rejects.
func events(body []byte) []string {
	var values []string
	var data bytes.Buffer
	named := false
	end := func() {
		if named && data.Len() > 0 && len(values) < maxEvents {
			values = append(values, data.String())
		}
		data.Reset()
		named = false
	}
	for line := range bytes.Lines(body) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if len(line) == 0 {
			end()
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			named = strings.EqualFold(string(value), manifest.HeaderName)
		case "data":
			data.Write(value[:min(len(value), manifest.MaxHeaderRead+1-data.Len())])
		}
	}
	end()
	return values
}

// maxEvents bounds how many announcing events of a stream are read: there should be one.
const maxEvents = 8

// group groups announcements by manifest, in order, and returns the sources without one as alone.
func (j *job) group(list []manifest.Announcement) (manifests []announced, alone []string, ok bool) {
	places, sources, seen := map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, a := range list {
		if a.URL != "" && !a.More {
			sources[a.URL] = true
		}
		if a.Manifest == "" {
			if a.URL != "" && !seen[a.URL] {
				alone, seen[a.URL] = append(alone, a.URL), true
			}
			continue
		}
		url := clean(a.Manifest)
		at, there := places[url]
		if !there {
			at = len(manifests)
			places[url], manifests = at, append(manifests, announced{url: url})
		}
		m := &manifests[at]
		switch {
		case a.Digest == nil:
		case m.digest == nil:
			m.digest = a.Digest
		case !bytes.Equal(m.digest, a.Digest):
			f := newFinding(HeaderMalformed, "The field gives two digests for one manifest.")
			f.Manifest = url
			j.report.add(f)
			return nil, nil, false
		}
		if !a.More {
			m.listed = append(m.listed, a)
		}
	}
	if most := j.limits.Manifests; len(manifests) > most {
		j.report.found(HeaderMalformed, "The field names %d manifests; at most %d are allowed.", len(manifests), most)
		return nil, nil, false
	}
	j.report.found(HeaderRead, "Citation-Source announces %s and %s.",
		number(len(sources), "source"), number(len(manifests), "manifest"))
	return manifests, alone, true
}

// sentence appends an error to what it prevented, as a sentence.
func sentence(what string, err error) string {
	why := err.Error()
	if f, ok := errors.AsType[*snapshot.FetchError](err); ok {
		why = string(f.Kind)
		if f.Reason != "" {
			why += " (" + f.Reason + ")"
		}
		if f.Err != nil {
			why += ": " + f.Err.Error()
		}
	}
	return what + ": " + strings.TrimRight(why, ".") + "."
}

// ErrUnrecognised means that an input is nothing that can be verified.
var ErrUnrecognised = errors.New(
	"it is not a manifest, an answer document, a stored bundle, or a response as printed by `curl -i`",
)

var errAmbiguous = errors.New("an object in it has two members with one name, or is nested too deeply")

// ErrInput means that an input is longer than Limits.Input.
var ErrInput = errors.New("it is longer than Limits.Input")

// Bytes verifies the content of a file, recognising what it is: a manifest, an answer document, a stored bundle, or a
// response as printed by `curl -i`, preceded by the headers of redirects and followed by its trailer. The error wraps
// [ErrUnrecognised] if it is none of these.
func (v *Verifier) Bytes(ctx context.Context, b []byte, o *BytesOptions) (*Report, error) {
	if o == nil {
		o = &BytesOptions{}
	}
	if most := v.Limits.withDefaults().Input; len(b) > most {
		return nil, fmt.Errorf("verifying %d octets: %w", len(b), ErrInput)
	}
	switch p, err := curl.Read(bytes.NewReader(b)); {
	case err != nil:
		return nil, fmt.Errorf("reading a response: %w", err)
	case p.Status != 0:
		return v.verifyPrinted(ctx, p, o)
	}
	kind := recognise(b)
	if (kind == KindBundle || kind == KindDocument) && !isUnambiguous(b) {
		return nil, fmt.Errorf("reading a %s: %w", kind, errAmbiguous)
	}
	switch kind {
	case KindManifest:
		j := v.job(KindManifest, o.Name)
		m := j.newStored(newSigned(selfOf(b), http.StatusOK, http.Header{"Content-Type": {"application/json"}}, b))
		m.bare = true
		return j.result(m.check(ctx))
	case KindBundle:
		var s manifest.Signed
		if err := json.Unmarshal(b, &s); err != nil {
			return nil, fmt.Errorf("reading a stored bundle: %w", err)
		}
		return v.bundle(ctx, &s, o.Name)
	case KindDocument:
		var a ibid.Answer
		if err := json.Unmarshal(b, &a); err != nil {
			return nil, fmt.Errorf("verifying: %w", err)
		}
		return v.answer(ctx, &a, o.Name)
	default:
		return nil, fmt.Errorf("verifying: %w", ErrUnrecognised)
	}
}

// verifyPrinted verifies a response printed by curl: an answer, or a manifest with its signature.
func (v *Verifier) verifyPrinted(ctx context.Context, p *curl.Response, o *BytesOptions) (*Report, error) {
	var body bytes.Buffer
	_, err := body.ReadFrom(p.Body)
	r := &Response{
		URL: cmp.Or(o.URL, p.URL), Status: p.Status, Header: p.Header, Trailer: p.Trailer, Body: body.Bytes(),
		Cut: err != nil, hinted: o.URL == "" && p.URL != "",
	}
	r.unpack(v.Limits.withDefaults().Input)
	if len(fields(r.Header)) > 0 || recognise(r.Body) != KindManifest {
		j := v.job(KindResponse, o.Name)
		return j.result(j.checkResponse(ctx, r))
	}
	address := r.URL
	if address == "" {
		address = selfOf(r.Body)
	}
	j := v.job(KindManifest, o.Name)
	m := j.newStored(newSigned(address, r.Status, r.Header, r.Body))
	m.header = r.Header
	return j.result(m.check(ctx))
}

// newStored returns a manifest that was not fetched by this job.
func (j *job) newStored(s *manifest.Signed) *checked {
	address := ""
	if s.TargetURI != "" {
		address = clean(s.TargetURI)
	}
	m := j.newChecked(address)
	m.stored, m.served, m.header = true, new(*s), http.Header{}
	for name, value := range map[string]string{
		"Content-Type": s.ContentType, "Content-Digest": s.ContentDigest,
		"Signature-Input": s.SignatureInput, "Signature": s.Signature,
	} {
		if value != "" {
			m.header.Set(name, value)
		}
	}
	if j.report.Input == "" {
		j.report.Input = address
	}
	m.all.visited[address] = true
	return m
}

// selfOf returns the URL that a manifest gives as its own, or "" if it gives none.
func selfOf(b []byte) string {
	if m, err := manifest.Parse(b); err == nil {
		return m.Self
	}
	return ""
}

// Bundle verifies a stored bundle: the manifest as it was served then, and its sources as they are now. With
// [Verifier.Offline] nothing is fetched, and sources are read from the bundle.
func (v *Verifier) Bundle(ctx context.Context, s *manifest.Signed) (*Report, error) {
	return v.bundle(ctx, s, "")
}

func (v *Verifier) bundle(ctx context.Context, s *manifest.Signed, name string) (*Report, error) {
	j := v.job(KindBundle, name)
	for i := range s.Sources {
		src := &s.Sources[i]
		address := clean(src.URL)
		j.all.given[address] = &snapshot.Snapshot{
			URL: address, FinalURL: address, Status: http.StatusOK, MediaType: src.MediaType, Octets: src.Octets,
			Header: http.Header{"Content-Type": {src.MediaType}}, Hash: snapshot.Hash(src.Octets), FetchedAt: j.now,
		}
	}
	return j.result(j.newStored(s).check(ctx))
}

// Answer verifies the quotes of an answer document against its sources. The document is unsigned, so its report is
// never [Trusted].
func (v *Verifier) Answer(ctx context.Context, a *ibid.Answer) (*Report, error) {
	return v.answer(ctx, a, "")
}

func (v *Verifier) answer(ctx context.Context, a *ibid.Answer, name string) (*Report, error) {
	j := v.job(KindDocument, name)
	m := j.newChecked("")
	m.stored = true
	m.man, m.words = quotes(a)
	if j.RequireLevel > 0 {
		j.report.found(LevelNotMet,
			"An answer document has no manifest, which is level 0, and level %d is required.", j.RequireLevel)
	}
	if len(m.man.Claims) == 0 {
		j.report.found(NothingQuoted,
			"No citation of the answer quotes its source or has its address, and what the model was given of it is "+
				"not known, so there is nothing to compare.")
		return j.finished(), nil
	}
	unsigned := newFinding(Unsigned, "The answer is not signed.")
	if j.RequireLevel >= 3 {
		unsigned.Counts = CountFailure
	}
	j.report.add(unsigned)
	return j.result(m.checkClaims(ctx))
}

// citedWords is what is known of a claim of an answer document beside its manifest.
type citedWords struct {
	context string            // the sentence that it is a part of; empty if it is none
	given   []support.Passage // see [evidence]
}

// quotes returns the citations of an answer as a manifest: those of sources that it quotes, that the model was given,
// or that have an address. Citations of the same words are one claim: their quotes are read together.
func quotes(a *ibid.Answer) (man *manifest.Manifest, all []citedWords) {
	man = &manifest.Manifest{TextProfile: manifest.TextProfile}
	claimOf := map[ibid.Span]int{}
	for i := range a.Citations {
		c := &a.Citations[i]
		claim, at, words := manifest.Claim{ID: c.ID}, ibid.Span{}, citedWords{}
		for _, span := range []ibid.Span{c.Span, c.Claim} {
			if span.Start >= 0 && span.Start < span.End && span.End <= len(a.Text) {
				claim.Text, at, words.context = a.Text[span.Start:span.End], span, SentenceOf(a.Text, span)
			}
		}
		for k := range c.Refs {
			src, quote := a.Source(c.Refs[k].Source), c.Refs[k].Quote
			given := Given(a, &c.Refs[k])
			if src == nil {
				continue
			}
			cs := manifest.ClaimSource{Source: src.ID, URL: src.URL, ExcerptOrigin: manifest.OriginProvider}
			_, err := snapshot.CleanURL(cs.URL)
			if err != nil && given == "" {
				continue
			}
			if err != nil {
				cs.URL = manifest.SourceURN + src.ID
			}
			if given != "" && (err != nil || quote == "") {
				words.given = append(words.given, support.Passage{ID: cs.URL, Text: given})
			}
			if quote != "" {
				cs.Excerpt = &manifest.Excerpt{Exact: quote}
			}
			if !slices.ContainsFunc(man.Sources, func(s manifest.Source) bool { return s.ID == src.ID }) {
				man.Sources = append(man.Sources, manifest.Source{ID: src.ID, URL: cs.URL, Title: src.Title})
			}
			claim.Sources = append(claim.Sources, cs)
		}
		n, there := claimOf[at]
		switch {
		case len(claim.Sources) == 0:
		case there && at.Len() > 0:
			man.Claims[n].Sources = append(man.Claims[n].Sources, claim.Sources...)
			all[n].given = append(all[n].given, words.given...)
		default:
			claimOf[at] = len(man.Claims)
			man.Claims, all = append(man.Claims, claim), append(all, words)
		}
	}
	return man, all
}

// recognise tells what a JSON document is by the names of its members, or returns "" if it is of no known kind.
func recognise(b []byte) Kind {
	b = bytes.TrimLeft(b, "\xef\xbb\xbf \t\r\n")
	if len(b) == 0 || b[0] != '{' {
		return ""
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		if bytes.Contains(b, []byte(`"claims"`)) && bytes.Contains(b, []byte(`"run_id"`)) {
			return KindManifest // a broken one; its parser reports what is wrong
		}
		return ""
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return members[name] == nil })
	}
	switch {
	case has("target_uri", "body"), has("target_uri", "body_base64"):
		return KindBundle
	case has("claims", "run_id") || has("claims", "agent_id"):
		return KindManifest
	case has("text", "text_sha256", "citations"):
		return KindDocument
	}
	return ""
}

// unpack removes the content coding of a body that was printed as it was sent. A body that is not in its coding was
// already decoded by the program that printed it.
func (r *Response) unpack(most int) {
	var names []string
	for _, line := range r.Header.Values("Content-Encoding") {
		for name := range strings.SplitSeq(line, ",") {
			names = append(names, strings.ToLower(strings.TrimSpace(name)))
		}
	}
	if len(names) != 1 {
		return
	}
	coding, ok := unpack.Find(names[0])
	if !ok {
		return
	}
	in, err := coding.Reader(bytes.NewReader(r.Body), unpack.MaxWindow)
	if err != nil {
		return
	}
	out, err := io.ReadAll(unpack.Limit(in, int64(most), ErrInput))
	switch {
	case err == nil:
		r.Body = out
	case errors.Is(err, ErrInput):
		r.Cut = true
	}
}
