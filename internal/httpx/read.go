package httpx

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/unpack"
	"github.com/ibidhq/ibid/store"
)

const (
	// StoreTime bounds how long one request may take the store.
	StoreTime = 20 * time.Second
	// catchUpTime is how long a list waits for what was just captured, unless told otherwise.
	catchUpTime = 500 * time.Millisecond
	// bodyTime is how long a client may take to send a body that is not small.
	bodyTime = 2 * time.Minute
	// firstRead is how many bytes of room a body has at first: its length is only a promise.
	firstRead = 16 << 10
	// MaxJSON is how long the body of a request may be that [ReadJSON] reads, in bytes.
	MaxJSON = 64 << 10
)

// Reader finds what was captured, wherever it is: in the gateway's memory, or in the store.
type Reader struct {
	Store   *store.Store
	Gateway *gateway.Gateway // nil: there is none
	Logger  *slog.Logger
	Wait    time.Duration // how long CatchUp waits at most; 0: half a second
}

// CatchUp waits, for a moment, until what was captured before is in the store, and reports whether it is.
func (rd *Reader) CatchUp(ctx context.Context) bool {
	if rd.Gateway == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(rd.Wait, catchUpTime))
	defer cancel()
	err := rd.Gateway.CatchUp(ctx)
	if err != nil && rd.Logger != nil {
		rd.Logger.LogAttrs(ctx, slog.LevelDebug, "the latest answers may not be in the store yet",
			slog.Any("error", err))
	}
	return err == nil
}

// Captured reports whether the gateway still has an answer in memory: the store may not have it yet.
func (rd *Reader) Captured(tenant, answerID string) (*store.Call, bool) {
	if rd.Gateway == nil {
		return nil, false
	}
	return rd.Gateway.Find(tenant, answerID)
}

// Call returns an answer as soon as it was captured. The call must not be changed.
func (rd *Reader) Call(ctx context.Context, tenant, answerID string) (*store.Call, error) {
	if call, ok := rd.Captured(tenant, answerID); ok {
		return call, nil
	}
	call, err := rd.Store.Call(ctx, tenant, answerID)
	return call, StoreError("read an answer", err)
}

// StoreError returns the error of something that was done with the store. That the store is away is the client's to
// know ([gateway.Unavailable]); problems stay what they are, and the rest is for the log. Of nil it returns nil.
func StoreError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case gateway.IsInternal(err) && store.IsTemporary(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", doing, gateway.Unavailable("the store does not answer"), err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// maxRuns is how many stored bytes of runs are worked on at the same time: they take some times as many. A larger run
// goes alone, and a small one counts as a quarter: each takes a processor.
const maxRuns = 32 << 20

// Runs bounds the stored bytes of the runs that are worked on at the same time.
type Runs struct{ room *semaphore.Weighted }

// NewRuns returns a Runs.
func NewRuns() *Runs { return &Runs{semaphore.NewWeighted(maxRuns)} }

// Hold waits until a run may be read and worked on. Release lets others.
func (rs *Runs) Hold(ctx context.Context, s *store.Store, tenant, run string) (release func(), err error) {
	weight, err := s.Weight(ctx, tenant, run)
	if err != nil {
		return nil, StoreError("read a run", err)
	}
	weight = min(max(weight, maxRuns/4), maxRuns)
	if err := rs.room.Acquire(ctx, weight); err != nil {
		return nil, gateway.Unavailable("too many runs are being worked on at the same time")
	}
	return func() { rs.room.Release(weight) }, nil
}

// Bodies bounds the bytes of all request bodies that are held at the same time.
type Bodies struct{ room *gateway.Budget }

// NewBodies returns a Bodies that holds up to so many bytes, of which one request may need so many.
func NewBodies(most, one int64) *Bodies {
	return &Bodies{gateway.NewBudget("bytes of requests", most, one+1)}
}

// Hold takes up room for n bytes that do not come from a request's body. Release gives it back.
func (b *Bodies) Hold(who gateway.Identity, n int64) (release func(), err error) {
	if err := b.room.Hold(who, n); err != nil {
		return nil, err
	}
	return func() { b.room.Release(who, n) }, nil
}

// Read reads the body of a request, as it was before its Content-Encoding. It may have limit bytes, before and after it
// is unpacked, and takes up room as it comes. Release gives the room back; call it once, when the body is not needed
// any more. The error is a problem, and leaves nothing to release.
func (b *Bodies) Read(w http.ResponseWriter, r *Request, limit int64) (body []byte, release func(), err error) {
	tooLarge := &http.MaxBytesError{Limit: limit}
	if r.ContentLength > limit {
		return nil, nil, tooLarge
	}
	coding, known := unpack.Find(r.Header.Get("Content-Encoding"))
	if !known {
		const codings = "gzip, deflate, br, zstd"
		p := gateway.NewProblem(
			gateway.CodeMediaType, "the body's Content-Encoding cannot be unpacked", "it is one of "+codings)
		p.Header = http.Header{"Accept-Encoding": {codings}}
		return nil, nil, p
	}
	paced := gateway.NewPaced(http.MaxBytesReader(w, r.Body, limit), w, gateway.DefaultPace, time.Now().Add(bodyTime))
	defer paced.Done()
	var held int64
	plain, err := coding.Reader(paced, unpack.MaxWindow)
	if err == nil {
		body, held, err = b.readAll(r.Who, unpack.Limit(plain, limit, tooLarge), limit)
	}
	if err == nil {
		return body, func() { b.room.Release(r.Who, held) }, nil
	}
	b.room.Release(r.Who, held)
	// Problems and limits keep their own words.
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, nil, large
	}
	if p, ok := errors.AsType[*gateway.Problem](err); ok {
		return nil, nil, p
	}
	return nil, nil, BadRequest("the body cannot be read: "+Said(err.Error()),
		"if it is compressed, Content-Encoding says how: gzip, deflate, br or zstd; else leave that out")
}

// readAll reads to the end, and returns for how many bytes it took up room.
func (b *Bodies) readAll(who gateway.Identity, from io.Reader, limit int64) (body []byte, held int64, err error) {
	for {
		if len(body) == cap(body) {
			more := min(max(firstRead, 2*int64(cap(body))), limit+1) // one more, to see that it ends
			if err := b.room.Hold(who, more-held); err != nil {
				return nil, held, err
			}
			held = more
			body = append(make([]byte, 0, more), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, held, nil
		case err != nil:
			return nil, held, err
		}
	}
}

// ReadJSON reads a small JSON object from a request's body. It may have no other members than v. The error is a
// problem.
func ReadJSON(w http.ResponseWriter, r *http.Request, v any) error {
	return DecodeJSON(http.MaxBytesReader(w, r.Body, MaxJSON), v)
}

// DecodeJSON is [ReadJSON] for a body that is read in another way.
func DecodeJSON(body io.Reader, v any) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("something follows the object")
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return large
	}
	why := Said(strings.TrimPrefix(err.Error(), "json: "))
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its words are about Go
		why = fmt.Sprintf("%s: it must not be a JSON %s", cmp.Or(Said(kind.Field), "all of it"), kind.Value)
	}
	return BadRequest("the body is not the JSON object that is needed: "+why, "docs/http.md lists its members")
}

// Quota bounds how many of something each tenant may have open on this node.
type Quota struct {
	Most int

	mu   sync.Mutex
	open map[string]int
	sum  int
}

// Take counts one more of a tenant, unless it has as many as it may. Release counts one less; call it once.
func (q *Quota) Take(tenant string) (release func(), ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[tenant] >= q.Most {
		return nil, false
	}
	if q.open == nil {
		q.open = map[string]int{}
	}
	q.open[tenant]++
	q.sum++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.sum--
		if q.open[tenant]--; q.open[tenant] == 0 {
			delete(q.open, tenant)
		}
	}, true
}

// Total returns how many are open.
func (q *Quota) Total() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.sum
}
