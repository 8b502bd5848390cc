package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// Keep keeps what [watch.Backfill] found for an answer that was captured: it takes the place of the stored one with c's
// AnswerID, and is dropped if that was deleted meanwhile. The call must not have been encoded; it is the gateway's from
// then on. How long Keep takes is up to CaptureWait, not to ctx.
//
//nolint:contextcheck // as it says
func (g *Gateway) Keep(_ context.Context, c *store.Call) error {
	c.Of, c.AnswerID = c.AnswerID, newAnswerID() // a later id is a later state: the journal may be read twice
	c.Duration = time.Since(c.Started)           // its event is of now
	return g.makeDurable(c)
}

// makeDurable makes an answer durable, as far as the mode of capture says. It returns within CaptureWait. The error
// says that the answer is lost, or may be.
func (g *Gateway) makeDurable(c *store.Call) error {
	record, err := c.Encode()
	if err != nil {
		g.metrics.failed(failedEncode)
		return err
	}
	key := tailKey{c.Tenant, c.AnswerID}
	if !c.Refetch && c.Of == "" {
		g.tail.add(key, c, int64(len(record)))
	}
	p, err := g.options.Journal.Append(record)
	if err != nil {
		g.tail.remove(key)
		if errors.Is(err, journal.ErrTooLarge) {
			g.metrics.failed(failedSize)
		} else {
			g.metrics.failed(failedAppend)
		}
		return err
	}
	g.tail.place(key, p)
	g.appended(p)
	if g.options.Capture == Relaxed {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.options.CaptureWait)
	defer cancel()
	err = g.options.Journal.Sync(ctx, p)
	if err == nil && g.options.Capture == Stored {
		err = g.indexed.wait(ctx, p)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // it is on its way all the same
		g.metrics.late.Inc()
		return nil
	}
	if err != nil {
		g.metrics.failed(failedSync)
	}
	return err
}

// appended notes that the journal has a record at p.
func (g *Gateway) appended(p journal.Position) {
	for {
		last := g.last.Load()
		if uint64(p) <= last || g.last.CompareAndSwap(last, uint64(p)) {
			return
		}
	}
}
