package gateway

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// DefaultHeaderBuffer is the default number of bytes of a JSON response that are held until its sources are known.
const DefaultHeaderBuffer = 1 << 20

// Citing makes responses name the sources consulted for them, in the header Citation-Source of docs/attribution-v1.md.
// This applies to complete answers of captured calls whose caller may publish (see [Identity.Publish]). An upstream's
// own such header is dropped: a verifier would take it for ibid's.
//
// A JSON response is held until it is decoded and durable, so that its header can name all sources; its bytes and
// length are unchanged. For a response longer than Buffer, and for every stream, the header only refers to the
// manifest, and the sources follow in the trailer if there is no Content-Length.
type Citing struct {
	Level  int    // 1 names the sources; 2 and 3 also the address of the manifest
	Origin string // prefix of the manifests' addresses: https://agent.example
	Form   manifest.Form
	Buffer int64 // bytes; 0 means [DefaultHeaderBuffer]
	// Pub returns the published name of a run, as in [store.PubNames]. If it is empty, the name is not known yet and
	// the response names its sources only. Pub must be safe for concurrent use. It is required from level 2 on.
	Pub func(tenant, run string) string
}

// citation is the state of a response that names its sources.
type citation struct {
	hash    string       // hash of the body's octets; empty if unknown when the answer is kept
	trailer bool         // the sources follow in the trailer
	answer  *ibid.Answer // complete and kept, so that it will have a manifest; may be nil
}

// wantsCitation reports whether the response is to name its sources.
func (e *exchange) wantsCitation() bool {
	c := e.g.options.Citing
	return c != nil && e.publishes && e.captured && !e.route.Get && !e.overQuota
}

// cite replaces [exchange.capture] for responses that name their sources or wait for policies. It holds a JSON response
// until its answer is kept, and puts its sources into the header. The header of any other response gets the address of
// the manifest.
func (e *exchange) cite(body io.ReadCloser) io.ReadCloser {
	if e.wantsCitation() {
		e.cited = &citation{}
	}
	if e.route.Stream || !isJSON(e.res.Header) {
		if !e.route.Stream && !isStream(e.res.Header) {
			e.passUnchecked()
		}
		return e.citeLater(e.capture(body))
	}
	held, err := e.holdBody(body)
	whole := errors.Is(err, io.EOF)
	if e.cited != nil && whole && len(e.res.Header["Content-Encoding"]) == 0 {
		e.cited.hash = snapshot.Hash(held)
	}
	rest := io.MultiReader(bytes.NewReader(held), &afterHeld{body: body, err: err})
	e.holds = whole
	captured := e.capture(&heldBody{Reader: rest, Closer: body})
	if !whole {
		e.passUnchecked()
		return e.citeLater(captured)
	}
	_, _ = io.Copy(io.Discard, captured) // decodes and keeps the answer
	if !e.kept {
		delete(e.w.Header(), AnswerHeader)
	}
	if e.cited != nil && e.cited.answer != nil {
		e.setCitations(e.w.Header(), e.announcements(e.cited.answer))
	}
	return &heldBody{Reader: bytes.NewReader(held), Closer: captured}
}

// holdBody reads as much of the body as may be held. The error is io.EOF if that is all of it, and nil if there is
// more.
func (e *exchange) holdBody(body io.Reader) ([]byte, error) {
	limit := int64(DefaultHeaderBuffer)
	if c := e.g.options.Citing; c != nil && c.Buffer > 0 {
		limit = c.Buffer
	}
	held := make([]byte, 0, min(max(e.res.ContentLength, firstRead), firstReadMost, limit)+1)
	for int64(len(held)) <= limit {
		if len(held) == cap(held) {
			held = append(held, 0)[:len(held)]
		}
		n, err := body.Read(held[len(held):cap(held)])
		held = held[:len(held)+n]
		if err != nil {
			return held, err
		}
	}
	return held, nil
}

// afterHeld follows the held bytes: it is the error that ended them, or the rest of the body.
type afterHeld struct {
	body io.Reader
	err  error
}

func (a *afterHeld) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	return a.body.Read(p)
}

// heldBody combines a reader with the body to close.
type heldBody struct {
	io.Reader
	io.Closer
}

// citeLater announces the manifest's address in the header, as the sources are not known yet, and the sources for the
// trailer.
func (e *exchange) citeLater(body io.ReadCloser) io.ReadCloser {
	if e.cited == nil {
		return body
	}
	h := e.w.Header()
	if url := e.manifestURL(); url != "" {
		e.setCitations(h, []manifest.Announcement{{More: true, Manifest: url}})
	}
	if e.cited.trailer = e.res.ContentLength < 0 && e.in.ProtoAtLeast(1, 1); e.cited.trailer {
		h.Add("Trailer", manifest.HeaderName)
	}
	return body
}

// citeTrailer puts the sources into the trailer announced by [exchange.citeLater].
func (e *exchange) citeTrailer() {
	if e.cited == nil || !e.cited.trailer {
		return
	}
	h := e.w.Header()
	delete(h, manifest.HeaderName)
	if e.cited.answer != nil {
		_ = e.flush() // without it the server would give a short body a length, and no trailers
		e.setCitations(h, e.announcements(e.cited.answer))
	}
}

func (e *exchange) setCitations(h http.Header, list []manifest.Announcement) {
	if len(list) > 0 {
		manifest.SetHeader(h, e.g.options.Citing.Form, list...)
	}
}

// announcements returns the announcements of an answer's sources, cited or not: all were consulted.
func (e *exchange) announcements(a *ibid.Answer) []manifest.Announcement {
	return manifest.Announce(manifest.Consulted(a, nil), e.manifestURL(), nil)
}

// manifestURL returns the address at which the answer's manifest will be, or "" if there will be none or its address is
// not known yet.
func (e *exchange) manifestURL() string {
	c := e.g.options.Citing
	if c.Level < 2 {
		return ""
	}
	pub := c.Pub(e.tenant, e.labels.run)
	if pub == "" {
		return ""
	}
	return c.Origin + manifest.Path(pub, e.answerID, 1)
}

// isJSON reports whether a response is a single JSON document. Line-delimited JSON is a stream.
func isJSON(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json") && t != "application/stream+json")
}

// isStream reports whether a response has one of the media types of streamed answers.
func isStream(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch t {
	case "text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq",
		"application/stream+json", "application/vnd.amazon.eventstream":
		return true
	}
	return false
}
