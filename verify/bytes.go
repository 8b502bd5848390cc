package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/unpack"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// ErrUnrecognised says that bytes are nothing that can be verified.
var ErrUnrecognised = errors.New(
	"it is no manifest, no answer document, no stored bundle, and no response as `curl -i` prints it",
)

var errReadings = errors.New("an object in it has two members of one name, or is nested deeper than is read")

// ErrInput says that bytes are more than are read.
var ErrInput = errors.New("it is longer than Limits.Input")

// Bytes verifies what a file holds, recognising it: a manifest, an answer document, a stored bundle, or a response as
// `curl -i` prints it, with the headers of redirects before it and its trailer behind it. The error wraps
// [ErrUnrecognised] if it is none of them.
func (v *Verifier) Bytes(ctx context.Context, b []byte, o *BytesOptions) (*Report, error) {
	if o == nil {
		o = &BytesOptions{}
	}
	if most := v.Limits.withDefaults().Input; len(b) > most {
		return nil, fmt.Errorf("verifying %d octets: %w", len(b), ErrInput)
	}
	if at := bytes.TrimLeft(b, "\xef\xbb\xbf \t\r\n"); bytes.HasPrefix(at, []byte("HTTP/")) {
		r, err := readPrinted(at)
		if err != nil {
			return nil, fmt.Errorf("verifying: %w", err)
		}
		r.unpack(v.Limits.withDefaults().Input)
		return v.printed(ctx, r, o)
	}
	switch recognise(b) {
	case KindManifest:
		j := v.job(KindManifest, o.Name)
		return j.finish(j.file(ctx, b))
	case KindBundle:
		if !oneReading(b) {
			return nil, fmt.Errorf("reading a stored bundle: %w", errReadings)
		}
		var s manifest.Signed
		if err := json.Unmarshal(b, &s); err != nil {
			return nil, fmt.Errorf("reading a stored bundle: %w", err)
		}
		return v.bundle(ctx, &s, o.Name)
	case KindDocument:
		if !oneReading(b) {
			return nil, fmt.Errorf("verifying: %w", errReadings)
		}
		var a ibid.Answer
		if err := json.Unmarshal(b, &a); err != nil {
			return nil, fmt.Errorf("verifying: %w", err)
		}
		return v.answer(ctx, &a, o.Name)
	default:
		return nil, fmt.Errorf("verifying: %w", ErrUnrecognised)
	}
}

// printed verifies a response that was printed: an answer, or a manifest with its signature.
func (v *Verifier) printed(ctx context.Context, r *Response, o *BytesOptions) (*Report, error) {
	if o.URL != "" {
		r.URL, r.hinted = o.URL, false
	}
	if len(fields(r.Header)) == 0 && recognise(r.Body) == KindManifest {
		s := &manifest.Signed{
			TargetURI: r.URL, Status: r.Status, ContentType: r.Header.Get("Content-Type"),
			ContentDigest:  strings.Join(r.Header.Values("Content-Digest"), ", "),
			SignatureInput: strings.Join(r.Header.Values("Signature-Input"), ", "),
			Signature:      strings.Join(r.Header.Values("Signature"), ", "), Body: r.Body,
		}
		if s.TargetURI == "" {
			s.TargetURI = selfOf(r.Body)
		}
		j := v.job(KindManifest, o.Name)
		return j.finish(j.kept(ctx, s, r.Header))
	}
	j := v.job(KindResponse, o.Name)
	return j.finish(j.response(ctx, r))
}

// file verifies the body of a manifest.
func (j *job) file(ctx context.Context, b []byte) error {
	at := selfOf(b)
	s := &manifest.Signed{TargetURI: at, Status: http.StatusOK, ContentType: "application/json", Body: b}
	m := j.stored(s)
	m.all.visited[m.url] = true
	m.bare = true
	return m.done(ctx)
}

// kept verifies a manifest that was stored.
func (j *job) kept(ctx context.Context, s *manifest.Signed, header http.Header) error {
	m := j.stored(s)
	m.header = header
	m.all.visited[m.url] = true
	return m.done(ctx)
}

func (j *job) stored(s *manifest.Signed) *checked {
	copied := *s
	m := &checked{job: j, announced: &announced{}, stored: true, served: &copied}
	if s.TargetURI != "" {
		m.url = clean(s.TargetURI)
	}
	m.out.URL, m.out.Level.Why = m.url, []string{}
	if j.report.Input == "" {
		j.report.Input = m.url
	}
	return m
}

// selfOf returns the URL that a manifest says it has; empty: it does not say.
func selfOf(b []byte) string {
	if m, err := manifest.Parse(b); err == nil {
		return m.Self
	}
	return ""
}

// Bundle verifies a stored bundle: the manifest as it was served then, and its sources as they are now. With
// [Verifier.Offline] nothing is looked up: then sources are those in the bundle.
func (v *Verifier) Bundle(ctx context.Context, s *manifest.Signed) (*Report, error) {
	return v.bundle(ctx, s, "")
}

func (v *Verifier) bundle(ctx context.Context, s *manifest.Signed, name string) (*Report, error) {
	j := v.job(KindBundle, name)
	for i := range s.Sources {
		src := &s.Sources[i]
		snap := &snapshot.Snapshot{
			URL: clean(
				src.URL,
			),
			FinalURL:  clean(src.URL),
			Status:    http.StatusOK,
			MediaType: src.MediaType,
			Octets:    src.Octets,
			Header:    http.Header{"Content-Type": {src.MediaType}},
			Hash:      snapshot.Hash(src.Octets),
			FetchedAt: j.now,
		}
		j.all.given[snap.URL] = snap
	}
	return j.finish(j.kept(ctx, s, nil))
}

// recognise says what JSON is by the names of its members; empty: none of ours.
func recognise(b []byte) Kind {
	b = bytes.TrimLeft(b, "\xef\xbb\xbf \t\r\n")
	if len(b) == 0 || b[0] != '{' {
		return ""
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		if bytes.Contains(b, []byte(`"claims"`)) && bytes.Contains(b, []byte(`"run_id"`)) {
			return KindManifest // a broken one: what is wrong, its parser says
		}
		return ""
	}
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := members[name]; !ok {
				return false
			}
		}
		return true
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

// unpack removes the codings of a body that was printed as it was sent. A body that is not in its coding was unpacked
// by who printed it.
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
