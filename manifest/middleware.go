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

// buildTime is how long the middleware takes at most to build and publish a manifest, once the agent is done. A client
// that has gone does not end it.
const buildTime = 30 * time.Second

// Middleware makes any agent one of Level 1, 2 or 3: agent calls Cite with what it answered, and Read with what it
// read. The manifests must be served by Handler, under the same origin.
//
// A response that ends within Buffer leaves with the whole header, the manifest's digest included; the manifest is kept
// before. A longer one, and one that is flushed, begins with the member that says that there are more, and ends with
// the whole header as a trailer, unless it has a Content-Length; until then its manifest is 202. A manifest is of one
// response, under a name that nobody can guess, and bound to its body; to its text where the body is an event stream or
// compressed.
//
// A response that is no success, or for which the agent says nothing, leaves as it is; one of the latter that was
// streamed has a manifest without claims. Wrap the handler that answers, not one that serves other things besides. What
// goes wrong with a manifest is told to OnError and never to the client: the header then names the sources, and no
// manifest.
//
// Flushing, deadlines and hijacking work as without it. At Level 0 it is agent itself. The error says why p cannot
// publish: that of Check, or that there is no key to sign with at Level 3.
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
		defer func() { // also if the agent panics
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

// Cite says what the response to the request of ctx answers, and how the run came to it; t may be nil. The last call
// counts. Neither is changed, and both must stay as they are until the handler has returned. Behind no middleware it
// does nothing.
func Cite(ctx context.Context, a *ibid.Answer, t *trail.Trail) {
	if s, ok := ctx.Value(sessionKey{}).(*session); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answer, s.trail = a, t
	}
}

// Read says that the agent itself read s for its answer: the manifest has the hash of these octets, by ByPublisher. A
// snapshot needs URL, MediaType and Octets; where it does not say when it was read, that is now. Behind no middleware
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

// session is what the agent says of one response.
type session struct {
	now    func() time.Time
	mu     sync.Mutex
	answer *ibid.Answer
	trail  *trail.Trail
	reads  []*snapshot.Snapshot
}

// said returns what the agent has said.
func (s *session) said() (a *ibid.Answer, t *trail.Trail, reads []*snapshot.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answer, s.trail, s.reads
}

// announce makes the manifest of a response and returns what its header says. There is always something to say of
// sources, if not of a manifest.
func (p *Publisher) announce(ctx context.Context, s *session, b *Builder) []Announcement {
	a, t, reads := s.said()
	b.Own = reads
	sources := b.consulted(a, t)
	if p.Level < 2 {
		return Announce(sources, "", nil)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), buildTime)
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

// response holds an agent's response back until its header is known, or until it has to go on.
type response struct {
	http.ResponseWriter
	publisher *Publisher
	session   *session
	run       string
	limit     int
	trailers  bool // the protocol has them

	status   int         // 0: the agent has written nothing
	header   http.Header // as it was when the agent wrote the status
	held     bytes.Buffer
	sum      hash.Hash // of a streamed body; nil: it is held
	streamed bool
	trailer  bool // one was announced
	over     bool // hijacked, or done
}

// Unwrap lets http.ResponseController through to what the response cannot do itself.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	switch {
	case w.status != 0 || w.over: // a mistake that net/http reports
		w.ResponseWriter.WriteHeader(status)
	case status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		w.ResponseWriter.WriteHeader(status) // an early word; the response comes later
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

// startBody makes sure that there is a status, and that the body is on its way if it may not be held any more.
func (w *response) startBody(letGo bool) error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if letGo && !w.streamed && !w.over {
		return w.stream()
	}
	return nil
}

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	if err := w.startBody(true); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// Hijack implements http.Hijacker. What is hijacked is no response.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.over = w.over || err == nil
	return conn, buffered, err
}

// stream lets go of what is held, with a header that says that there is more to come.
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

// commit sends the status with the header as it was when the agent wrote it, changed by change. Fields that the agent
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

// endHeld sends a response that was held as a whole.
func (w *response) endHeld(ctx context.Context) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	body := w.held.Bytes()
	if _, said := w.header["Content-Type"]; !said && len(body) > 0 && w.header.Get("Content-Encoding") == "" {
		w.header.Set("Content-Type", http.DetectContentType(body)) // as net/http would
	}
	var list []Announcement
	if a, _, reads := w.session.said(); a != nil || len(reads) > 0 {
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
		_, _ = w.ResponseWriter.Write(body) // a client that has gone does not matter
	}
	if trailer {
		// or net/http counts a short body, and sends no trailer
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
		SetHeader(w.Header(), w.publisher.Form, list...) // nothing to announce: removes it
	}
}

// builder returns one that knows the response.
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

// identity reports whether the body's octets are what the manifest is bound to: they have no coding that can be taken
// off, and are no stream of events, of which the text counts.
func (w *response) identity() bool {
	coding := strings.TrimSpace(w.header.Get("Content-Encoding"))
	return (coding == "" || strings.EqualFold(coding, "identity")) && w.mediaType() != eventStream
}

// hasTrailer reports whether the agent has a trailer of its own, which needs a body without a length.
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
