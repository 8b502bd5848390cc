package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// checkOutput checks whether the manifest is about the response that announces it, or about the source that names it.
func (m *checked) checkOutput(ctx context.Context) error {
	out, r := m.man.Output, m.response
	switch {
	case m.upstream != nil:
		f := m.upstream.compare(out)
		m.foundAs(f.Code, f.Counts, "%s", f.Detail)
		return nil
	case r == nil:
		m.foundAs(OutputUnchecked, CountInfo, "There is no response to compare the manifest with.")
		return nil
	case r.Cut:
		m.foundAs(OutputUnchecked, CountUnverifiable,
			"The response is incomplete, so it cannot be compared with the manifest.")
		return nil
	}
	digest, body := hexSum(m.served.Body), snapshot.Hash(r.Body)
	if out != nil {
		if how, beside := isOutput(out, r); how != "" {
			counts := CountPass
			if beside != "" {
				counts = CountWarning
				how += "; the body has other text, at " + beside + ", and nothing says which is the answer"
			}
			m.foundAs(OutputBound, counts, "The manifest is about this response: %s.", how)
			m.checkSpans(ctx)
			if err := m.Memory.Replace(ctx, memoryOutput, digest, []byte(body)); err != nil {
				return fmt.Errorf("remembering a response: %w", err)
			}
			return nil
		}
	}
	// A response that the caller supplied is not remembered: it may be forged, and must not make the publisher's own
	// look like a replay.
	first, err := m.Memory.Recall(ctx, memoryOutput, digest)
	if r.fetched {
		first, err = m.Memory.Remember(ctx, memoryOutput, digest, []byte(body))
	}
	if err != nil {
		return fmt.Errorf("remembering a response: %w", err)
	}
	replayed := first != nil && string(first) != body
	date, dateErr := http.ParseTime(r.Header.Get("Date"))
	switch {
	case out != nil && replayed:
		m.found(Replayed, "The manifest is about another response, and was seen with another one before.")
	case out != nil:
		m.found(OutputMismatch,
			"The manifest is about another response: this one has neither its octets nor its text.")
	case replayed:
		m.found(Replayed, "The manifest does not say which response it is about, and was seen with another one before.")
	case dateErr == nil && date.Sub(m.man.EmittedAt.Time()) > replayWindow: // an old answer may be served again
		m.found(OutputUnchecked,
			"The manifest does not say which response it is about, and is more than a day older than this one.")
	default:
		m.found(OutputUnchecked, "The manifest does not say which response it is about.")
	}
	return nil
}

// isOutput tells by what the response matches a manifest's output, or returns "" if it does not; for beside see
// [heldText]. Of a page only the octets count: two pages that look different may have the same text.
func isOutput(out *manifest.Output, r *Response) (how, beside string) {
	if out.Hash == snapshot.Hash(r.Body) {
		return "its octets have the hash", ""
	}
	if isMarkup(out.MediaType) {
		return "", ""
	}
	// The response's text is that of the answer document or provider's answer that it contains, else the body itself. A
	// page is not read: only a browser knows which of its text is visible.
	if isMarkup(r.Header.Get("Content-Type")) || !utf8.Valid(r.Body) {
		return "", ""
	}
	if out.TextAt != "" {
		if _, at, _ := heldText(out, r); at != "" {
			return "its text, at " + at + ", has the hash", ""
		}
		return "", ""
	}
	text, known := answerText(r.Body)
	if !known {
		text = new(string(r.Body))
	}
	switch {
	case text == nil: // readers may disagree about it
		return "", ""
	case out.Hash == snapshot.Hash([]byte(*text)):
		return "the text of its answer has the hash", ""
	case out.TextHash != "" && normalWithHash(out, text) != nil:
		return "its text has the hash", ""
	case !known:
		if _, at, beside := heldText(out, r); at != "" {
			return "the text at " + at + " has the hash, and nothing else in it does", beside
		}
	}
	return "", ""
}

// normalWithHash returns the normalised form of the text that has an output's text hash, or nil if none of the texts
// has it.
func normalWithHash(out *manifest.Output, texts ...*string) *string {
	for _, text := range texts {
		if text == nil {
			continue
		}
		normal := snapshot.Normalize(*text)
		if out.TextHash == snapshot.Hash([]byte(normal)) &&
			(out.TextLength == nil || *out.TextLength == utf8.RuneCountInString(normal)) {
			return &normal
		}
	}
	return nil
}

// checkSpans reports claims that are not in the answer where the manifest says. Any text of the response that has the
// hash will do; if none has it, only the octets are bound.
func (m *checked) checkSpans(ctx context.Context) {
	out, r := m.man.Output, m.response
	answer, _ := answerText(r.Body)
	texts := []*string{answer}
	if held, at, _ := heldText(out, r); at != "" {
		texts = append(texts, &held)
	}
	if utf8.Valid(r.Body) {
		texts = append(texts, new(string(r.Body)))
	}
	options := &snapshot.TextOptions{MediaType: r.Header.Get("Content-Type"), URL: r.URL, Context: ctx}
	if text, err := snapshot.Extract(r.Body, options); err == nil {
		texts = append(texts, &text.Content)
	}
	normal := normalWithHash(out, texts...)
	if normal == nil {
		return
	}
	for i := range m.man.Claims {
		c := &m.man.Claims[i]
		if c.Span == nil || c.Rewritten {
			continue
		}
		if said, ok := snapshot.Slice(*normal, c.Span[0], c.Span[1]); !ok || said != snapshot.Normalize(c.Text) {
			m.foundAt(ManifestInconsistent, fmt.Sprintf("/claims/%d/span", i),
				"The answer does not have the claim "+c.ID+" where the manifest says.")
		}
	}
}

// isMarkup reports whether a document of a media type is displayed differently from its source.
func isMarkup(mediaType string) bool {
	name, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		name, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	}
	name = strings.TrimSpace(name)
	return name == "text/html" || name == "application/pdf" || strings.HasSuffix(name, "/xml") ||
		strings.HasSuffix(name, "+xml")
}

// answerText returns the text of the answer that a body is: an answer document, or a provider's response or stream;
// known is false if it is neither. Text is nil if there are several answers in it, or if readers may read it in
// different ways.
func answerText(body []byte) (text *string, known bool) {
	if recognise(body) == KindDocument {
		var a ibid.Answer
		if !isUnambiguous(body) || json.Unmarshal(body, &a) != nil || len(a.Alternatives) > 0 {
			return nil, true
		}
		return &a.Text, true
	}
	one, err := ibid.Decode(body, &ibid.DecodeOptions{One: true})
	if one.Format == ibid.Generic || one.Format == "" {
		return nil, false
	}
	all, allErr := ibid.Decode(body, nil) // including what follows its end
	whole := true                         // each document is unambiguous, and nothing else follows
	frames := frame.Splitter{Emit: func(f frame.Frame) {
		whole = whole && f.Err == nil && (f.Done || isUnambiguous(f.Data))
	}}
	_, _ = frames.Write(body)
	frames.Close()
	if err != nil || allErr != nil || !whole || all.Text != one.Text ||
		len(one.Alternatives)+len(all.Alternatives) > 0 {
		return nil, true
	}
	return &one.Text, true
}

// maxNesting is how deeply a document may be nested to count as unambiguous.
const maxNesting = 64

// isUnambiguous reports whether no object of a JSON document has two members with the same name, ignoring case: some
// readers use the first, some the last, and some do not distinguish case.
func isUnambiguous(document []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(document),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var names []map[string]bool // of the enclosing objects, and empty ones for arrays
	for {
		parent, length := d.StackIndex(d.StackDepth())
		token, err := d.ReadToken()
		if err != nil {
			return true // invalid JSON is not read as JSON
		}
		switch token.Kind() { //nolint:exhaustive // the others have no parts
		case '{', '[':
			names = append(names, map[string]bool{})
		case '}', ']':
			names = names[:len(names)-1]
		case '"':
			if parent != '{' || length%2 != 0 {
				break
			}
			name := strings.ToLower(strings.ToUpper(token.String())) // as encoding/json folds
			if names[len(names)-1][name] {
				return false
			}
			names[len(names)-1][name] = true
		}
		if len(names) > maxNesting {
			return false
		}
	}
}

// upstream is a source whose own manifest is verified.
type upstream struct {
	source *manifest.Source
	body   *Response // nil if the source could not be read
}

// compare checks whether a manifest is about the source, as it was read for the claim or as it is now.
func (up *upstream) compare(out *manifest.Output) Finding {
	src := up.source
	switch {
	case out == nil:
		return newFinding(OutputUnchecked, "The manifest does not say which response it is about.")
	case out.Hash == src.Hash,
		out.TextHash != "" && out.TextHash == src.TextHash && !isMarkup(src.MediaType) && !isMarkup(out.MediaType),
		up.isOutput(out):
		return newFinding(OutputBound, "The manifest is about the source.")
	case up.body == nil:
		f := newFinding(OutputUnchecked, "The source could not be read, so it cannot be compared with its manifest.")
		f.Counts = CountUnverifiable
		return f
	}
	return newFinding(OutputMismatch, "The manifest is about something other than the source that names it.")
}

// isOutput reports whether the source as it is now matches a manifest's output.
func (up *upstream) isOutput(out *manifest.Output) bool {
	if up.body == nil {
		return false
	}
	how, _ := isOutput(out, up.body)
	return how != ""
}

// checkUpstreams verifies the manifests of sources that are agents' answers themselves, each once per job and down to a
// limited depth.
func (m *checked) checkUpstreams(ctx context.Context) error {
	for i := range m.man.Sources {
		src := &m.man.Sources[i]
		if src.UpstreamManifest == "" {
			continue
		}
		address := clean(src.UpstreamManifest)
		switch {
		case m.all.visited[address]:
			m.checkKnownUpstream(ctx, src, address)
		case m.depth >= m.limits.Upstream:
			m.foundUpstream(src, UpstreamUnverifiable,
				fmt.Sprintf("Upstream manifests are followed at most %d deep.", max(0, m.limits.Upstream)))
		default:
			j := &job{Verifier: m.Verifier, all: m.all, limits: m.limits, depth: m.depth + 1}
			j.newReport(KindManifest, address)
			j.addToDo("manifest", 1)
			c := j.newChecked(address)
			c.upstream = m.readUpstream(ctx, src)
			if err := c.verify(ctx); err != nil {
				return err
			}
			r := j.finished()
			m.report.Upstream = append(m.report.Upstream, r)
			m.foundUpstreamReport(src, r)
		}
	}
	return nil
}

func (m *checked) readUpstream(ctx context.Context, src *manifest.Source) *upstream {
	up := &upstream{source: src}
	if snap, err := m.readSource(ctx, src.URL, src.Hash); err == nil && snap != nil {
		up.body = &Response{URL: snap.FinalURL, Status: snap.Status, Header: snap.Header, Body: snap.Octets}
	}
	return up
}

func (m *checked) foundUpstream(src *manifest.Source, code Status, detail string) {
	m.foundOf(code, code.counts(), "", src.URL, detail)
}

func (m *checked) foundUpstreamReport(src *manifest.Source, r *Report) {
	switch r.State {
	case Invalid:
		m.foundUpstream(src, UpstreamInvalid,
			"The source is an agent's answer, and its manifest failed: "+string(r.Failure[0].Code)+".")
	case Unverifiable, Pending:
		m.foundUpstream(src, UpstreamUnverifiable,
			"The source is an agent's answer, and its manifest could not be verified completely.")
	default:
		m.foundUpstream(src, UpstreamVerified,
			"The source is an agent's answer, and its manifest is "+string(r.State)+".")
	}
}

// checkKnownUpstream reports on another source whose manifest this job has already read, or is reading: the manifest
// must be about that source too.
func (m *checked) checkKnownUpstream(ctx context.Context, src *manifest.Source, address string) {
	c := m.all.read[address]
	if c == nil {
		m.foundUpstream(src, UpstreamUnverifiable, "Its manifest could not be read: "+address+".")
		return
	}
	f := m.readUpstream(ctx, src).compare(c.man.Output)
	switch {
	case f.Counts == CountFailure:
		m.foundUpstream(src, UpstreamInvalid, f.Detail)
		return
	case f.Counts == CountUnverifiable:
		m.foundUpstream(src, UpstreamUnverifiable, f.Detail)
		return
	case c.upstream == nil || c.report.State == "":
		m.foundOf(UpstreamUnverifiable, CountInfo, "", src.URL,
			"Its manifest is already in this report: "+address+".")
		return
	}
	// Reuse the report, except for the finding that says what the manifest is about.
	about := func(f Finding) bool {
		return f.Manifest == address && slices.Contains([]Status{OutputBound, OutputUnchecked, OutputMismatch}, f.Code)
	}
	r := *c.report
	for _, list := range []*[]Finding{&r.Success, &r.Info, &r.Failure} {
		*list = slices.DeleteFunc(slices.Clone(*list), about)
	}
	f.Manifest = address
	r.add(f)
	r.State = r.state()
	m.foundUpstreamReport(src, &r)
}
