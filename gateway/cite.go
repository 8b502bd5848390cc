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

// DefaultHeaderBuffer is how many bytes of a JSON response are held, unless told otherwise, until its sources are
// known.
const DefaultHeaderBuffer = 1 << 20

// Citing says how responses tell what was consulted for them: in the header Citation-Source of docs/attribution-v1.md.
// Only captured calls are cited, of those who may publish (see [Identity.Publish]), and whose answers are whole. What
// an upstream itself says in such a header is not passed on: a verifier would take it for ours.
//
// A JSON response is held until it is decoded and durable, so that its header names all sources; its bytes and its
// length stay what they are. One that is longer than Buffer, and every stream, names in its header only the manifest,
// and its sources in the trailer, where it has no Content-Length.
type Citing struct {
	Level  int    // 1: the sources; 2 and 3: also where the manifest is
	Origin string // what the manifests' addresses begin with: https://agent.example
	Form   manifest.Form
	Buffer int64 // bytes; 0: [DefaultHeaderBuffer]
	// Pub returns the published name of a run, as [store.PubNames] has it; empty: nobody knows it yet, and a response
	// names its sources only. It must be safe for concurrent use. Needed from level 2 on.
	Pub func(tenant, run string) string
}

// citation is what a response that is cited needs besides.
type citation struct {
	hash    string       // of the body's octets; empty: they are not known when the answer is kept
	trailer bool         // the sources come in the trailer
	answer  *ibid.Answer // whole and kept, so that its manifest will be there; nil: there is none
}

// wantsCitation reports whether the response is to say what was consulted.
func (e *exchange) wantsCitation() bool {
	c := e.g.options.Citing
	return c != nil && e.publishes && e.captured && !e.route.Get && !e.full
}

// cite holds a JSON response until its answer is kept, for policies to look at it, and puts what it cites into the
// header. Everything else gets the address of its manifest there. It takes the place of [exchange.capture].
func (e *exchange) cite(body io.ReadCloser) io.ReadCloser {
	if e.wantsCitation() {
		e.cited = &citation{}
	}
	if e.route.Stream || !isJSON(e.res.Header) {
		if !e.route.Stream && !isStream(e.res.Header) {
			e.passUnjudged()
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
		e.passUnjudged()
		return e.citeLater(captured)
	}
	_, _ = io.Copy(io.Discard, captured) // the same bytes again: now it is decoded and kept
	if !e.kept {
		delete(e.w.Header(), AnswerHeader)
	}
	if e.cited != nil && e.cited.answer != nil {
		e.setCitations(e.w.Header(), e.announcements(e.cited.answer))
	}
	return &heldBody{Reader: bytes.NewReader(held), Closer: captured}
}

// holdBody reads the body as far as it may be held. The error is io.EOF where that is all of it; nil where there is
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

// afterHeld is what follows the bytes that were held: the error that ended them, or the rest of the body.
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

// heldBody reads from one and closes another.
type heldBody struct {
	io.Reader
	io.Closer
}

// citeLater says where the manifest will be, as the sources are not known yet, and announces them for the trailer.
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

// citeTrailer puts the sources into the trailer, which [exchange.citeLater] announced.
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

// announcements returns what is said of each source of an answer, cited or not: all were consulted.
func (e *exchange) announcements(a *ibid.Answer) []manifest.Announcement {
	return manifest.Announce(manifest.Consulted(a, nil), e.manifestURL(), nil)
}

// manifestURL returns the address of the answer's manifest, which is there once it was made; empty: there will be none,
// or its address is not known yet.
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

// isJSON reports whether a response is one JSON document, which ends. A document a line is a stream.
func isJSON(h http.Header) bool {
	t, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (t == "application/json" || strings.HasSuffix(t, "+json") && t != "application/stream+json")
}

// isStream reports whether a response says that it is one of the forms in which answers come in pieces.
func isStream(h http.Header) bool {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch t {
	case "text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-seq",
		"application/stream+json", "application/vnd.amazon.eventstream":
		return true
	}
	return false
}
