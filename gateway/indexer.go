package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/ibidhq/ibid/internal/journal"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxBatch and maxBatchBytes bound what is stored in one transaction.
	maxBatch      = 256
	maxBatchBytes = 16 << 20
	// linger is how long a batch that somebody waits for, and one that nobody waits for, may gather.
	lingerAwaited = time.Millisecond
	lingerElse    = 20 * time.Millisecond
	// drainTime is how long Run goes on when its context has ended, to store what is in the journal.
	drainTime = 5 * time.Second
	// The pauses after errors that may pass, before jitter.
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Second
)

// indexer moves answers from the journal into the store. It belongs to one goroutine.
type indexer struct {
	g      *Gateway
	reader *journal.Reader
	batch  []indexItem
	bytes  int // of the records in batch
	calls  []*store.Call
}

// indexItem is a record of the journal.
type indexItem struct {
	at     journal.Position
	record []byte
	call   *store.Call // nil: the record cannot be read
	own    bool        // it was captured by this process
}

// Run moves what was captured from the journal into the store until ctx ends; then it stores what is still there, as long
// as that takes no more than 5 seconds, and returns nil. While the store is away it tries again and again and the journal
// grows. A record that the store does not take, whatever else it takes, is set aside: see Options.Damaged. One Run at a time.
//
// It returns early, with nil, when the journal is closed and read to its end, and with an error if the journal is closed under it.
func (g *Gateway) Run(ctx context.Context) error {
	if g.running.Swap(true) {
		return errors.New("running the indexer: it runs already")
	}
	defer g.running.Store(false)
	ix := &indexer{g: g, reader: g.journal.Reader()}
	err := ix.run(ctx)
	if closing := ix.reader.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("running the indexer: %w", err)
	}
	return nil
}

func (ix *indexer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := ix.step(ctx); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			if ctx.Err() == nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	last := journal.Position(ix.g.last.Load())
	for len(ix.batch) > 0 || ix.g.indexed.at() < last {
		if err := ix.step(ctx); err != nil {
			if !errors.Is(err, io.EOF) {
				ix.g.log.LogAttrs(ctx, slog.LevelWarn, "answers stay in the journal until the next start",
					slog.Int64("records", ix.g.journal.Stats().Records), slog.Any("error", err))
			}
			return nil
		}
	}
	return nil
}

// step moves one batch. When ctx ends what was read and is not stored stays in ix.batch, for the next step.
func (ix *indexer) step(ctx context.Context) error {
	if len(ix.batch) == 0 {
		if err := ix.fill(ctx); err != nil {
			return err
		}
	}
	if len(ix.batch) == 0 {
		return nil
	}
	g := ix.g
	g.oldest.Store(ix.oldest().UnixNano())
	if err := ix.put(ctx, ix.batch); err != nil {
		return err
	}
	last := ix.batch[len(ix.batch)-1]
	for i := range ix.batch {
		if c := ix.batch[i].call; c != nil {
			g.tail.remove(tailKey{c.Tenant, c.AnswerID})
		}
	}
	clear(ix.batch)
	ix.batch, ix.bytes = ix.batch[:0], 0
	if err := g.journal.Release(last.at); err != nil {
		g.log.LogAttrs(ctx, slog.LevelError, "the journal cannot be shortened", slog.Any("error", err))
	}
	g.oldest.Store(0)
	g.indexed.advance(last.at, last.own)
	if g.bus != nil {
		g.bus.Wake()
	}
	return nil
}

// oldest returns when the first answer of the batch had ended.
func (ix *indexer) oldest() time.Time {
	for i := range ix.batch {
		if c := ix.batch[i].call; c != nil {
			return c.Started.Add(c.Duration)
		}
	}
	return time.Now()
}

// fill reads a batch: it waits for its first record, and gathers for a moment.
func (ix *indexer) fill(ctx context.Context) error {
	if ix.g.indexed.isCurrent() {
		if err := ix.next(ctx); err != nil {
			return err
		}
	}
	linger := lingerElse
	if ix.g.indexed.awaited() {
		linger = lingerAwaited
	}
	gather, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	for len(ix.batch) < maxBatch && ix.bytes < maxBatchBytes {
		if err := ix.next(gather); err != nil {
			switch {
			case ctx.Err() == nil && gather.Err() != nil:
				if len(ix.batch) == 0 {
					ix.g.indexed.advance(0, true) // there is nothing left of earlier processes
				}
			case errors.Is(err, io.EOF) && len(ix.batch) > 0:
			default:
				return err
			}
			return nil
		}
	}
	return nil
}

// next adds the next record to the batch. The error is ctx's, io.EOF or journal.ErrClosed: any other is tried again.
func (ix *indexer) next(ctx context.Context) error {
	for {
		p, record, err := ix.reader.Next(ctx)
		switch {
		case err == nil:
			ix.bytes += len(record)
			ix.batch = append(ix.batch, ix.g.item(p, record))
			return nil
		case errors.Is(err, io.EOF), errors.Is(err, journal.ErrClosed), ctx.Err() != nil:
			return err
		}
		ix.g.log.LogAttrs(ctx, slog.LevelError, "the journal cannot be read", slog.Any("error", err))
		if err := pause(ctx, longPause); err != nil {
			return err
		}
	}
}

func (g *Gateway) item(p journal.Position, record []byte) indexItem {
	if c := g.tail.findAt(p); c != nil {
		return indexItem{at: p, record: record, call: c, own: true}
	}
	c, err := store.DecodeCall(record)
	if err != nil {
		c = nil // put sets it aside
	}
	return indexItem{at: p, record: record, call: c}
}

// put stores items, those that can be, and sets the others aside. The error is ctx's.
func (ix *indexer) put(ctx context.Context, items []indexItem) error {
	ix.calls = ix.calls[:0]
	for i := range items {
		if items[i].call != nil {
			ix.calls = append(ix.calls, items[i].call)
		} else {
			ix.g.setAside(ctx, &items[i], errors.New("it cannot be read"))
		}
	}
	if len(ix.calls) == 0 {
		return nil
	}
	err := ix.try(ctx, ix.calls)
	switch {
	case err == nil:
		ix.g.metrics.indexed.Add(float64(len(ix.calls)))
		return nil
	case ctx.Err() != nil:
		return err
	case len(items) == 1:
		ix.g.setAside(ctx, &items[0], err)
		return nil
	}
	half := len(items) / 2
	for i := range items { // what cannot be read was set aside already
		if items[i].call == nil {
			return ix.putReadable(ctx, items)
		}
	}
	if err := ix.put(ctx, items[:half]); err != nil {
		return err
	}
	return ix.put(ctx, items[half:])
}

// putReadable puts those items that can be read.
func (ix *indexer) putReadable(ctx context.Context, items []indexItem) error {
	var readable []indexItem
	for i := range items {
		if items[i].call != nil {
			readable = append(readable, items[i])
		}
	}
	return ix.put(ctx, readable)
}

// try puts calls until it works, or fails for good.
func (ix *indexer) try(ctx context.Context, calls []*store.Call) error {
	wait := firstPause
	for {
		err := ix.g.store.Put(ctx, calls)
		if err == nil || ctx.Err() != nil || !store.IsTemporary(err) {
			return err
		}
		ix.g.metrics.retries.Inc()
		ix.g.log.LogAttrs(ctx, slog.LevelWarn, "the store takes no answers; they stay in the journal",
			slog.Int("answers", len(calls)), slog.Duration("again_in", wait), slog.Any("error", err))
		if err := pause(ctx, wait/2+rand.N(wait)); err != nil {
			return err
		}
		wait = min(2*wait, longPause)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// setAside puts a record that the store does not take where somebody can look at it.
func (g *Gateway) setAside(ctx context.Context, item *indexItem, why error) {
	g.metrics.setAside.Inc()
	attrs := []slog.Attr{slog.Uint64("position", uint64(item.at)), slog.Any("error", why)}
	if item.call != nil {
		attrs = append(attrs, slog.String("answer", item.call.AnswerID), slog.String("tenant", item.call.Tenant))
	}
	if g.options.Damaged != "" {
		name := filepath.Join(g.options.Damaged, fmt.Sprintf("%s-%d.json", time.Now().UTC().Format("20060102T150405"), item.at))
		if err := writeDamaged(name, item.record); err != nil {
			attrs = append(attrs, slog.Any("writing", err))
		} else {
			attrs = append(attrs, slog.String("file", name))
		}
	}
	g.log.LogAttrs(ctx, slog.LevelError, "an answer was set aside: the store does not take it", attrs...)
}

func writeDamaged(name string, record []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(record)
	return errors.Join(err, f.Sync(), f.Close())
}
