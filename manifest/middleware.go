package manifest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
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
// Flushing, deadlines and hijacking work as without it. At Level 0, and where Check complains, it is agent itself.
func (p *Publisher) Middleware(agent http.Handler) http.Handler {
	if !p.on() {
		return agent
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.Method == http.MethodOptions {
			agent.ServeHTTP(w, r) // not an answer
			return
		}
		s := &session{now: p.now}
		held := &response{
			ResponseWriter: w, publisher: p, session: s, limit: cmp.Or(p.Buffer, DefaultBuffer),
			run: newRun(), trailers: r.ProtoAtLeast(1, 1),
		}
		defer held.abandon() // the agent may panic
		agent.ServeHTTP(held, r.WithContext(context.WithValue(r.Context(), sessionKey{}, s)))
		held.finish(r.Context())
	})
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

// newRun mints the name of a run: 128 bits.
func newRun() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
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
	if err != nil {
		p.tell(ctx, err)
		return Announce(sources, "", nil)
	}
	signed, err := p.Publish(ctx, path, m)
	if err != nil {
		p.tell(ctx, err)
		return Announce(sources, "", nil)
	}
	digest := signed.Digest()
	return Announce(m.Sources, b.Self, digest[:])
}
