package manifest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/trail"
)

// buildTimeout bounds building and publishing a manifest after the agent is done. A client that disconnects does not
// cancel it.
const buildTimeout = 30 * time.Second

// Middleware makes any agent conform to Level 1, 2 or 3: agent calls Cite with its answer, and Read with what it read.
// The manifests must be served by Handler at the same origin.
//
// A response that ends within Buffer is sent with the complete header, including the digest of its manifest, which is
// stored before. A response that is longer, or is flushed, begins with the member that announces more sources, and ends
// with the complete field as a trailer, unless it has a Content-Length; until then its manifest is 202. A manifest is
// about one response, has an unguessable name, and is bound to the body, or to its text if the body is an event stream
// or compressed.
//
// A response that is not a success, or for which the agent calls neither Cite nor Read, is sent unchanged; in the
// latter case a streamed one has a manifest without claims. Wrap the handler that answers, not one that also serves
// other things. Errors with a manifest are reported to OnError and never to the client: the header then has the
// sources, but no manifest.
//
// Flushing, deadlines and hijacking work as without the middleware. At Level 0 it returns agent itself. The error tells
// why p cannot publish: that of Check, or that there is no signing key at Level 3.
func (p *Publisher) Middleware(agent http.Handler) (http.Handler, error) {
	if err := p.checkReady(); err != nil {
		return nil, err
	}
	if p.Level == 0 {
		return agent, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.Method == http.MethodOptions {
			agent.ServeHTTP(w, r) // not an answer
			return
		}
		s := &session{now: p.now}
		var name [16]byte
		_, _ = rand.Read(name[:]) // never fails
		held := &response{
			ResponseWriter: w, publisher: p, session: s, limit: cmp.Or(p.Buffer, defaultBuffer),
			run: hex.EncodeToString(name[:]), trailers: r.ProtoAtLeast(1, 1),
		}
		defer func() { // even if the agent panics
			if held.streamed {
				p.pending.Delete(Path(held.run, "", 1))
			}
		}()
		agent.ServeHTTP(held, r.WithContext(context.WithValue(r.Context(), sessionKey{}, s)))
		switch {
		case held.over:
		case held.streamed:
			held.endStream(r.Context())
		default:
			held.endHeld(r.Context())
		}
		held.over = true
	}), nil
}

// Cite sets the answer that the response to the request of ctx gives, and the run that led to it; t may be nil. The
// last call counts. Both must stay unchanged until the handler has returned. Without the middleware it does nothing.
func Cite(ctx context.Context, a *ibid.Answer, t *trail.Trail) {
	if s, ok := ctx.Value(sessionKey{}).(*session); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answer, s.trail = a, t
	}
}

// Read records that the agent itself read s for its answer: the manifest has the hash of these octets, as read by
// ByPublisher. A snapshot needs URL, MediaType and Octets; if it has no time, it was read now. Without the middleware
// Read does nothing.
func Read(ctx context.Context, s *snapshot.Snapshot) {
	session, ok := ctx.Value(sessionKey{}).(*session)
	if !ok || s == nil {
		return
	}
	own := *s
	if url, err := snapshot.CleanURL(s.URL); err == nil {
		own.URL = url
	}
	session.mu.Lock()
	defer session.mu.Unlock()
	if own.FetchedAt.IsZero() {
		own.FetchedAt = session.now()
	}
	session.reads = append(session.reads, &own)
}

type sessionKey struct{}

// session is what the agent has recorded for one response.
type session struct {
	now    func() time.Time
	mu     sync.Mutex
	answer *ibid.Answer
	trail  *trail.Trail
	reads  []*snapshot.Snapshot
}

// recorded returns what the agent has recorded.
func (s *session) recorded() (a *ibid.Answer, t *trail.Trail, reads []*snapshot.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer, s.trail, s.reads
}

// announce publishes the manifest of a response and returns the members of its header. If that fails, these are the
// sources without a manifest.
func (p *Publisher) announce(ctx context.Context, s *session, b *Builder) []Announcement {
	a, t, reads := s.recorded()
	b.Own = reads
	sources := b.consulted(a, t)
	if p.Level < 2 {
		return Announce(sources, "", nil)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), buildTimeout)
	defer cancel()
	path := Path(b.RunID, "", 1)
	b.Self, b.AgentID, b.Now, b.Salt = p.URL(path), p.Agent(), p.now, p.Salt(path)
	b.Texts, b.Checker, b.Read, b.By = cmp.Or(p.Texts, &p.texts), p.Checker, p.Read, ByObserver
	m, err := b.Build(ctx, a, t)
	var signed *Signed
	if err == nil {
		signed, err = p.Publish(ctx, path, m)
	}
	if err != nil {
		p.reportError(ctx, err)
		return Announce(sources, "", nil)
	}
	digest := signed.Digest()
	return Announce(m.Sources, b.Self, digest[:])
}

// response holds an agent's response back until its header is known, or until it must be sent.
type response struct {
	http.ResponseWriter
	publisher *Publisher
	session   *session
	run       string
	limit     int
	trailers  bool // the protocol supports them

	status   int         // 0 if the agent has written nothing
	header   http.Header // as it was when the agent wrote the status
	held     bytes.Buffer
	sum      hash.Hash // of a streamed body; nil while it is held
	streamed bool
	trailer  bool // one was announced
	over     bool // hijacked, or done
}

// Unwrap gives http.ResponseController access to what the response does not implement itself.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	switch {
	case w.status != 0 || w.over: // a mistake that net/http reports
		w.ResponseWriter.WriteHeader(status)
	case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		w.ResponseWriter.WriteHeader(status) // informational; the response comes later
	default:
		w.status = status
		w.header = w.Header().Clone()
		if !w.success() {
			w.commit(nil)
		}
	}
}

// success reports whether the response can be an answer.
func (w *response) success() bool { return w.status >= 200 && w.status < 300 }

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	if err := w.startBody(w.held.Len()+len(b) > w.limit); err != nil {
		return 0, err
	}
	if !w.streamed && !w.over {
		return w.held.Write(b)
	}
	if w.sum != nil {
		w.sum.Write(b) // never fails
	}
	return w.ResponseWriter.Write(b)
}

// startBody writes the status if there is none, and starts streaming if the body must not be held any longer.
func (w *response) startBody(release bool) error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if release && !w.streamed && !w.over {
		return w.stream()
	}
	return nil
}

// FlushError is called by http.ResponseController.
func (w *response) FlushError() error {
	if err := w.startBody(true); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// Hijack implements http.Hijacker. A hijacked connection has no manifest.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.over = w.over || err == nil
	return conn, buffered, err
}

// stream sends what is held, with a header that announces more.
func (w *response) stream() error {
	w.streamed, w.sum = true, sha256.New()
	var list []Announcement
	if w.publisher.Level >= 2 {
		path := Path(w.run, "", 1)
		w.publisher.pending.Store(path, true)
		list = []Announcement{{More: true, Manifest: w.publisher.URL(path)}}
	}
	w.commit(func(h http.Header) {
		if list != nil {
			SetHeader(h, w.publisher.Form, list...)
		}
		if w.trailer = w.trailers && h.Get("Content-Length") == ""; w.trailer {
			h.Add("Trailer", HeaderName)
		}
	})
	w.sum.Write(w.held.Bytes())
	_, err := w.ResponseWriter.Write(w.held.Bytes())
	w.held = bytes.Buffer{}
	return err
}

// commit sends the status with the header as it was when the agent wrote it, modified by change. Fields that the agent
// has set since are not sent, unless they are trailers.
func (w *response) commit(change func(http.Header)) {
	h := w.Header()
	since := h.Clone()
	clear(h)
	maps.Copy(h, w.header)
	if change != nil {
		change(h)
	}
	w.ResponseWriter.WriteHeader(w.status)
	maps.Copy(h, since)
	w.over = w.over || !w.success()
}

// endHeld sends a response that was completely held.
func (w *response) endHeld(ctx context.Context) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	body := w.held.Bytes()
	if _, recorded := w.header["Content-Type"]; !recorded && len(body) > 0 && w.header.Get("Content-Encoding") == "" {
		w.header.Set("Content-Type", http.DetectContentType(body)) // as net/http would
	}
	var list []Announcement
	if a, _, reads := w.session.recorded(); a != nil || len(reads) > 0 {
		b := w.builder()
		if w.identity() {
			b.Body = body
		}
		list = w.publisher.announce(ctx, w.session, b)
	}
	trailer := w.hasTrailer()
	counted := !trailer && w.status != http.StatusNoContent && w.status != http.StatusNotModified
	w.commit(func(h http.Header) {
		if len(list) > 0 {
			SetHeader(h, w.publisher.Form, list...)
		}
		if counted && h.Get("Content-Length") == "" && h.Get("Transfer-Encoding") == "" {
			h.Set("Content-Length", strconv.Itoa(len(body)))
		}
	})
	if len(body) > 0 {
		_, _ = w.ResponseWriter.Write(body) // the client may be gone
	}
	if trailer {
		// otherwise net/http counts a short body and sends no trailer
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// endStream sends the trailer of a response that was streamed.
func (w *response) endStream(ctx context.Context) {
	b := w.builder()
	if w.identity() {
		b.BodyHash = "sha256:" + hex.EncodeToString(w.sum.Sum(nil))
	}
	list := w.publisher.announce(ctx, w.session, b)
	if w.trailer {
		SetHeader(w.Header(), w.publisher.Form, list...) // removes it if there is nothing to announce
	}
}

// builder returns a Builder for the response.
func (w *response) builder() *Builder {
	b := &Builder{RunID: w.run}
	if w.identity() || w.mediaType() == eventStream {
		b.MediaType = short(w.header.Get("Content-Type"))
	}
	return b
}

const eventStream = "text/event-stream"

func (w *response) mediaType() string {
	mediaType, _, _ := mime.ParseMediaType(w.header.Get("Content-Type"))
	return mediaType
}

// identity reports whether the manifest is bound to the body's octets: they have no removable coding, and are not an
// event stream, of which the text counts.
func (w *response) identity() bool {
	coding := strings.TrimSpace(w.header.Get("Content-Encoding"))
	return (coding == "" || strings.EqualFold(coding, "identity")) && w.mediaType() != eventStream
}

// hasTrailer reports whether the agent sends its own trailer, which needs a body without a length.
func (w *response) hasTrailer() bool {
	if len(w.header["Trailer"]) > 0 {
		return true
	}
	for name := range w.Header() {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}
