package gateway

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// LateSearch is the search for citations of an answer that ended without any: a second call, or a comparison with what
// the model was given. It runs in the gateway that made the call. It is safe for concurrent use.
type LateSearch struct {
	begun  atomic.Bool // set before the answer's end mark is sent
	done   chan struct{}
	answer *ibid.Answer
}

type lateSearchKey struct{}

// WithLateSearch returns a context for one call by [Gateway.Transport], and the search for citations that may follow
// its answer.
func WithLateSearch(ctx context.Context) (context.Context, *LateSearch) {
	s := &LateSearch{done: make(chan struct{})}
	return context.WithValue(ctx, lateSearchKey{}, s), s
}

// Begun reports whether a search was started. Call it after reading the answer's end mark or the end of its body.
func (s *LateSearch) Begun() bool { return s.begun.Load() }

// Done is closed when the search has ended, with or without a result. It stays open if the gateway is closed first.
func (s *LateSearch) Done() <-chan struct{} { return s.done }

// Answer returns the answer with the citations found, or nil if there are none or the search has not ended. The answer
// must not be changed.
func (s *LateSearch) Answer() *ibid.Answer {
	select {
	case <-s.done:
		return s.answer
	default:
		return nil
	}
}

// lateHeader is the header with the name of a call's LateSearch; like [identityHeader], it is only used in-process.
const lateHeader = "Ibid-Late"

// announceLate registers the LateSearch of the request's context and puts its name into the header. The function it
// returns removes the registration.
func (g *Gateway) announceLate(r *http.Request) (forget func()) {
	delete(r.Header, lateHeader)
	s, ok := r.Context().Value(lateSearchKey{}).(*LateSearch)
	if !ok {
		return func() {}
	}
	name := strconv.FormatUint(g.lateSeq.Add(1), 10)
	g.lateSearches.Store(name, s)
	r.Header[lateHeader] = []string{name}
	return func() { g.lateSearches.Delete(name) }
}

// withLate adds the LateSearch named in the header to the context of an in-process request.
func (g *Gateway) withLate(r *http.Request) *http.Request {
	name := r.Header.Get(lateHeader)
	delete(r.Header, lateHeader)
	s, ok := g.lateSearches.Load(name)
	if !ok {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), lateSearchKey{}, s))
}

// offerLateCitations offers an answer without citations to those who may find some: the backfill, which asks a provider
// again, and if that found none, the comparison with what the model was given. It reports whether one of them accepted.
// Citations, whether sent or found, are offered to those who check them.
func (e *exchange) offerLateCitations(keys call.Keys, c *store.Call) bool {
	end := func(*store.Call) {}
	search, waits := e.in.Context().Value(lateSearchKey{}).(*LateSearch)
	if waits {
		end = func(found *store.Call) {
			if found != nil {
				search.answer = found.Answer
			}
			close(search.done)
		}
	}
	if by := e.g.options.Checks; len(by) > 0 {
		ended := end
		end = func(found *store.Call) {
			if ended(found); found != nil {
				offerAll(by, c.WithAnswer(found.Answer)) // found is a later state, with an id of its own
			}
		}
		offerAll(by, c)
	}
	job := watch.Job{
		Call: c, Provider: e.provider(), URL: e.up.URL, Format: e.route.Format, Request: e.body, Done: end,
	}
	compare := func() bool {
		if c.Strategy == "" {
			return false
		}
		compared := job
		compared.Request, _ = call.Mask(keys, job.Request) // parts of the request become sources
		return e.g.options.Attribution.Offer(compared)
	}
	begun := false
	if e.stream && e.wantsBackfill() {
		again := job
		again.Keys = watch.Keys(e.in, e.provider())
		again.Done = func(found *store.Call) {
			if found != nil || !compare() {
				end(found)
			}
		}
		begun = e.g.options.Backfill.Offer(again)
	}
	if begun = begun || compare(); waits {
		search.begun.Store(begun)
	}
	return begun
}

// Check checks the citations of answers in the background, like [watch.Judging] and [watch.FirstCheck].
type Check interface {
	// Offer queues an answer without blocking, and reports whether it will be checked.
	Offer(j watch.Job) bool
}

// offerAll offers an answer to all who check citations.
func offerAll(to []Check, c *store.Call) {
	for _, check := range to {
		check.Offer(watch.Job{Call: c})
	}
}
