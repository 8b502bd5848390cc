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
// the model was given. It begins and ends in the gateway that makes the call. Its methods may be called at the same
// time.
type LateSearch struct {
	begun  atomic.Bool // set before the answer's end mark is handed out
	done   chan struct{}
	answer *ibid.Answer
}

type lateSearchKey struct{}

// WithLateSearch returns a context for one call by [Gateway.Transport], and what tells of the search for citations that
// may follow its answer.
func WithLateSearch(ctx context.Context) (context.Context, *LateSearch) {
	s := &LateSearch{done: make(chan struct{})}
	return context.WithValue(ctx, lateSearchKey{}, s), s
}

// Begun reports whether there is a search. It may be called once the answer's end mark was read, or its body's end.
func (s *LateSearch) Begun() bool { return s.begun.Load() }

// Done is closed when the search has ended, whatever came of it. It stays open where the gateway was closed meanwhile.
func (s *LateSearch) Done() <-chan struct{} { return s.done }

// Answer returns the answer with the citations that were found; nil: there are none, or the search has not ended. It
// must not be changed.
func (s *LateSearch) Answer() *ibid.Answer {
	select {
	case <-s.done:
		return s.answer
	default:
		return nil
	}
}

// lateHeader names the search that a call from inside wants to hear of, as [identityHeader] does who makes it.
const lateHeader = "Ibid-Late"

// announceLate has the search of the request's context found by its name in the header. The function that it returns
// forgets the name.
func (g *Gateway) announceLate(r *http.Request) (forget func()) {
	delete(r.Header, lateHeader)
	s, ok := r.Context().Value(lateSearchKey{}).(*LateSearch)
	if !ok {
		return func() {}
	}
	name := strconv.FormatUint(g.lateNames.Add(1), 10)
	g.lates.Store(name, s)
	r.Header[lateHeader] = []string{name}
	return func() { g.lates.Delete(name) }
}

// withLate gives a request from inside the search that its header names.
func (g *Gateway) withLate(r *http.Request) *http.Request {
	name := r.Header.Get(lateHeader)
	delete(r.Header, lateHeader)
	s, ok := g.lates.Load(name)
	if !ok {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), lateSearchKey{}, s))
}

// offerLateCitations hands an answer without citations to those who may find some: its provider, asked again, and if
// that found none, who compares it with what the model was given. It reports whether somebody took it.
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
	job := watch.Job{
		Call: c, Provider: e.provider(), URL: e.up.URL, Format: e.route.Format, Request: e.body, Done: end,
	}
	compare := func() bool {
		if c.Strategy == "" {
			return false
		}
		compared := job
		compared.Request, _ = call.Mask(keys, job.Request) // what the model was given becomes sources
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
