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
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/unpack"
	"github.com/ibidhq/ibid/store"
)

const (
	// StoreTime limits how long one request may use the store.
	StoreTime = 20 * time.Second
	// catchUpTime is the default for how long a list waits for what was just captured.
	catchUpTime = 500 * time.Millisecond
	// bodyTime is how long a client may take to send a large body.
	bodyTime = 2 * time.Minute
	// firstRead is the initial size of a body's buffer: its length is only a promise.
	firstRead = 16 << 10
	// MaxJSON is the largest body that [ReadJSON] reads, in bytes.
	MaxJSON = 64 << 10
)

// Reader finds captured answers in the gateway's memory or in the store.
type Reader struct {
	Store   *store.Store
	Gateway *gateway.Gateway // may be nil
	Logger  *slog.Logger
	Wait    time.Duration // how long CatchUp waits at most; 0 means half a second
}

// CatchUp waits a moment until everything captured so far is in the store, and reports whether it is.
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

// Captured returns an answer that the gateway still has in memory: the store may not have it yet.
func (rd *Reader) Captured(tenant, answerID string) (*store.Call, bool) {
	if rd.Gateway == nil {
		return nil, false
	}
	return rd.Gateway.Find(tenant, answerID)
}

// Call returns an answer, as soon as it is captured. The call must not be changed.
func (rd *Reader) Call(ctx context.Context, tenant, answerID string) (*store.Call, error) {
	if call, ok := rd.Captured(tenant, answerID); ok {
		return call, nil
	}
	call, err := rd.Store.Call(ctx, tenant, answerID)
	return call, StoreError("read an answer", err)
}

// StoreError wraps the error of an operation on the store. An unavailable store is reported to the client
// ([gateway.Unavailable]); problems stay as they are, and other errors are for the log. It returns nil for nil.
func StoreError(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case gateway.IsInternal(err) && store.IsTemporary(err), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w: %w", doing, gateway.Unavailable("the store does not answer"), err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// maxRuns is how many stored bytes of runs are processed at the same time: in memory they need a multiple. A larger run
// is processed alone, and a small one counts as a quarter, because each uses a processor.
const maxRuns = 32 << 20

// Runs limits the stored bytes of the runs that are processed at the same time.
type Runs struct{ room *semaphore.Weighted }

// NewRuns returns a new Runs.
func NewRuns() *Runs { return &Runs{semaphore.NewWeighted(maxRuns)} }

// Hold waits until a run may be read and processed. Call release afterwards.
func (rs *Runs) Hold(ctx context.Context, s *store.Store, tenant, run string) (release func(), err error) {
	weight, err := s.Weight(ctx, tenant, run)
	if err != nil {
		return nil, StoreError("read a run", err)
	}
	return rs.HoldBytes(ctx, weight)
}

// HoldBytes waits until a run of that many bytes may be processed. Call release afterwards.
func (rs *Runs) HoldBytes(ctx context.Context, weight int64) (release func(), err error) {
	weight = min(max(weight, maxRuns/4), maxRuns)
	if err := rs.room.Acquire(ctx, weight); err != nil {
		return nil, gateway.Unavailable("too many runs are being processed at the same time")
	}
	return func() { rs.room.Release(weight) }, nil
}

// Bodies reads request bodies, within a budget of memory.
type Bodies struct{ room *gateway.Budget }

// NewBodies returns a Bodies that holds its bytes in the gateway's budget, or in one of its own, with room for several
// bodies of the given size, if g is nil.
func NewBodies(g *gateway.Gateway, one int64) *Bodies {
	if g == nil {
		const several = 8
		return &Bodies{gateway.NewBudget("bytes of memory", several*one, one+1)}
	}
	return &Bodies{g.Memory()}
}

// Hold reserves n bytes that do not come from a request's body. Call release afterwards.
func (b *Bodies) Hold(who gateway.Identity, n int64) (release func(), err error) {
	if err := b.room.Hold(who, n); err != nil {
		return nil, err
	}
	return func() { b.room.Release(who, n) }, nil
}

// HoldWork reserves the memory that processing n bytes takes, at times bytes each. Call release afterwards.
func (b *Bodies) HoldWork(who gateway.Identity, n int, times int64) (release func(), err error) {
	return b.Hold(who, int64(n)*times)
}

// Read reads a request body and decodes its Content-Encoding. It may have limit bytes, both before and after decoding,
// and memory is reserved as it arrives. Call release once, when the body is no longer needed. The error is a problem,
// and leaves nothing to release.
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
	unpacking, err := b.Hold(r.Who, coding.Memory(-1))
	if err != nil {
		return nil, nil, err
	}
	defer unpacking()
	plain, err := coding.Reader(paced, unpack.MaxWindow)
	if err == nil {
		body, held, err = b.readAll(r.Who, unpack.Limit(plain, limit, tooLarge), limit)
	}
	if err == nil {
		return body, func() { b.room.Release(r.Who, held) }, nil
	}
	b.room.Release(r.Who, held)
	// Problems and limits are reported as they are.
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, nil, large
	}
	if p, ok := errors.AsType[*gateway.Problem](err); ok {
		return nil, nil, p
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil, gateway.Late("send it faster, or in parts where the route accepts them")
	}
	return nil, nil, BadRequest("the body cannot be read: "+Said(err.Error()),
		"if it is compressed, Content-Encoding says how: gzip, deflate, br or zstd; else leave that out")
}

// readAll reads to the end. held is the number of bytes reserved.
func (b *Bodies) readAll(who gateway.Identity, from io.Reader, limit int64) (body []byte, held int64, err error) {
	for {
		if len(body) == cap(body) {
			more := min(max(firstRead, 2*int64(cap(body))), limit+1) // one more, to detect the end
			if err := b.room.HoldMore(who, held, more-held); err != nil {
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

// ReadJSON decodes a small JSON object from a request's body into v, which must have all its members. The error is a
// problem.
func ReadJSON(w http.ResponseWriter, r *http.Request, v any) error {
	return DecodeJSON(http.MaxBytesReader(w, r.Body, MaxJSON), v)
}

// DecodeJSON is [ReadJSON] for a body from another reader.
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
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text is about Go types
		why = fmt.Sprintf("%s: it must not be a JSON %s", cmp.Or(Said(kind.Field), "all of it"), kind.Value)
	}
	return BadRequest("the body is not the JSON object that is needed: "+why, "docs/http.md lists its members")
}

// Quota limits how many of something each tenant may have open on this node.
type Quota struct {
	Most int

	mu   sync.Mutex
	open map[string]int
	sum  int
}

// Take counts one more for a tenant, unless it has reached its limit. Call release once, to count one less.
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
