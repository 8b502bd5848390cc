package page

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

// liveURL returns where a script hears that something was added to a run behind what is stored of it now; empty:
// nowhere. It is asked for before the run is read, so that nothing falls between the two.
func (p *Page) liveURL(ctx context.Context, tenant, run string) (string, error) {
	if p.o.Bus == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	last := int64(0)
	for {
		events, err := p.o.Store.Events(ctx, tenant, run, last, store.MaxLimit)
		if err != nil {
			return "", err
		}
		if len(events) == 0 {
			return runURL(run) + "/live?after=" + strconv.FormatInt(last, 10), nil
		}
		last = events[len(events)-1].Seq
	}
}

// liveRun tells a reader of a run that something was added to it behind the event after: one event, changed, which ends
// the stream. The page then offers to be loaded again.
func (p *Page) liveRun(w http.ResponseWriter, r *request) error {
	id, err := idOf(r)
	if err != nil {
		return err
	}
	if p.o.Bus == nil {
		return p.nowhere(w, r)
	}
	release, ok := p.bounds.watching.take(r.who.Tenant, maxLive)
	if !ok {
		return &gateway.Problem{
			Status: http.StatusTooManyRequests,
			Code:   gateway.CodeTooMany,
			Detail: fmt.Sprintf("%d answers and runs are being watched already.", maxLive),
			Hint:   "Reload the page to see what was added.",
			Header: http.Header{"Retry-After": {"5"}},
		}
	}
	defer release()
	listener, err := p.o.Bus.Listen(r.Context(), r.who.Tenant, id)
	if err != nil {
		return gateway.Unavailable("The run cannot be watched now.")
	}
	defer listener.Close()
	after := int64(readNumber(r, "after"))
	p.stream(w, r, func(ctx context.Context, s *eventStream) error {
		if err := s.write(": watching\nretry: 5000\n\n"); err != nil {
			return err
		}
		return listener.Follow(ctx, p.o.Store, after, func(m bus.Message) error {
			switch {
			case m.Event != nil:
				_ = s.write("event: changed\ndata: {}\n\n")
				return errLiveEnd
			case m.Live != nil:
				return nil
			case !p.o.Guard.Still(ctx, r.who):
				return errLiveEnd
			}
			return s.write(": heartbeat\n\n")
		})
	})
	return nil
}
