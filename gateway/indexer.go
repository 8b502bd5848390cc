package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

const (
	// maxBatch and maxBatchBytes limit what is stored in one transaction.
	maxBatch      = 1000
	maxBatchBytes = 16 << 20
	// A batch gathers records until it has enoughRecords, because a transaction of few costs each of them several times
	// as much, or for the first of these times, or for the second once somebody waits for one of them: a caller of
	// CatchUp, such as a list, or a listener to its run.
	enoughRecords = 128
	lingerElse    = time.Second
	lingerAwaited = time.Millisecond
	// lingerFirst is how long a start waits for records of earlier processes before it knows that there are none.
	lingerFirst = 20 * time.Millisecond
	// drainTime is how long Run continues after its context has ended, to store what is in the journal.
	drainTime = 5 * time.Second
	// longPause is the longest pause after a temporary error.
	longPause = 5 * time.Second
)

// retry calls do until it returns nil or a permanent error, with growing pauses in between, each reported to failed.
// The error is that one, or ctx's.
func retry(ctx context.Context, do func() error, failed backoff.Notify) error {
	pauses := &backoff.ExponentialBackOff{
		InitialInterval: 100 * time.Millisecond, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: longPause,
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, do() },
		backoff.WithBackOff(pauses), backoff.WithMaxElapsedTime(0), backoff.WithNotify(failed))
	return err
}

// indexer moves answers from the journal into the store. It is used by one goroutine.
type indexer struct {
	g      *Gateway
	reader *journal.Reader
	read   journal.Position // the last position read
	batch  []indexItem
	bytes  int // size of the records in batch
	calls  []*store.Call
}

// indexItem is a record of the journal.
type indexItem struct {
	at     journal.Position
	record []byte
	call   *store.Call // nil if the record cannot be decoded
	own    bool        // captured by this process
	done   bool        // stored or set aside
}

// Run moves captured answers from the journal into the store until ctx ends; it then takes up to 5 seconds to store
// what is still in the journal, and returns nil. While the store is unavailable, Run keeps trying and the journal
// grows. A record that the store rejects on its own is set aside, see Options.Damaged; if that is not possible, Run
// waits until it is. Only one Run may be active.
//
// Run returns early with nil when the journal is closed and read to its end, and with an error if the journal is closed
// under it.
func (g *Gateway) Run(ctx context.Context) error {
	if g.running.Swap(true) {
		return errors.New("running the indexer: it is already running")
	}
	defer g.running.Store(false)
	if len(g.quotas) > 0 {
		watching, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		group.Go(func() {
			tick := time.NewTicker(quotaEvery)
			defer tick.Stop()
			for watching.Err() == nil {
				g.countStored(watching)
				select {
				case <-watching.Done():
				case <-tick.C:
				}
			}
		})
	}
	ix := &indexer{g: g, reader: g.options.Journal.Reader()}
	err := ix.run(ctx)
	if closing := ix.reader.Close(); err == nil { //nolint:contextcheck // it must be closed even if ctx has ended
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
	for {
		if at, _ := ix.g.indexed.state(); len(ix.batch) == 0 && at >= last {
			return nil
		}
		if err := ix.step(ctx); err != nil {
			if !errors.Is(err, io.EOF) {
				ix.g.log.LogAttrs(ctx, slog.LevelWarn, "answers stay in the journal until the next start",
					slog.Int64("records", ix.g.options.Journal.Stats().Records), slog.Any("error", err))
			}
			return nil
		}
	}
}

// step moves one batch. If ctx ends, records that were read but not stored stay in ix.batch for the next step.
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
	oldest := time.Now()
	if i := slices.IndexFunc(ix.batch, func(item indexItem) bool { return item.call != nil }); i >= 0 {
		oldest = ix.batch[i].call.Ended()
	}
	g.oldest.Store(oldest.UnixNano())
	if err := ix.storeItems(ctx, ix.batch); err != nil {
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
	if err := g.options.Journal.Release(last.at); err != nil {
		g.log.LogAttrs(ctx, slog.LevelError, "the journal cannot be shortened", slog.Any("error", err))
	}
	g.oldest.Store(0)
	g.indexed.advance(last.at, last.own)
	if g.options.Bus != nil {
		g.options.Bus.Wake()
	}
	return nil
}

// fill reads a batch: it waits for the first record and then gathers more for a moment.
func (ix *indexer) fill(ctx context.Context) error {
	linger := lingerFirst
	if _, current := ix.g.indexed.state(); current {
		linger = lingerElse
		if err := ix.next(ctx); err != nil {
			return err
		}
	}
	gather, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	var waiter sync.WaitGroup
	defer waiter.Wait()
	defer cancel()
	waiter.Go(func() {
		select {
		case <-ix.g.indexed.wanted:
			time.AfterFunc(lingerAwaited, cancel)
		case <-gather.Done():
		}
	})
	for len(ix.batch) < maxBatch && ix.bytes < maxBatchBytes {
		if len(ix.batch) >= enoughRecords {
			cancel() // only what is there already
		}
		if err := ix.next(gather); err != nil {
			switch {
			case ctx.Err() == nil && gather.Err() != nil:
				if len(ix.batch) == 0 {
					ix.g.indexed.advance(0, true) // nothing is left from earlier processes
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

// next adds the next record to the batch. The error is ctx's, io.EOF or journal.ErrClosed; after any other it tries
// again.
func (ix *indexer) next(ctx context.Context) error {
	for {
		p, record, err := ix.reader.Next(ctx)
		switch {
		case err == nil:
			if p != ix.read+1 { // records lost from the journal may still be in memory
				for _, item := range ix.g.tail.between(ix.read, p) {
					ix.add(item)
				}
			}
			item := indexItem{at: p, record: record, call: ix.g.tail.findAt(p)}
			if item.own = item.call != nil; !item.own {
				if c, err := store.DecodeCall(record); err == nil { // otherwise it is set aside
					item.call = c
				}
			}
			ix.add(item)
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

func (ix *indexer) add(item indexItem) {
	ix.bytes += len(item.record)
	ix.batch = append(ix.batch, item)
	ix.read = item.at
	if c := item.call; c != nil && ix.g.options.Bus != nil && ix.g.options.Bus.Listening(c.Tenant, c.Run) {
		ix.g.indexed.want()
	}
}

// storeItems stores the items that the store accepts and sets the others aside. The error is ctx's; some items may then
// be done.
func (ix *indexer) storeItems(ctx context.Context, items []indexItem) error {
	ix.calls = ix.calls[:0]
	for i := range items {
		item := &items[i]
		if item.call == nil && !item.done {
			if err := ix.setAside(ctx, item, errors.New("it cannot be read")); err != nil {
				return err
			}
		}
		if !item.done {
			ix.calls = append(ix.calls, item.call)
		}
	}
	if len(ix.calls) == 0 {
		return nil
	}
	err := ix.try(ctx, ix.calls)
	switch {
	case err == nil:
		ix.g.metrics.indexed.Add(float64(len(ix.calls)))
		for i := range items {
			items[i].done = true
		}
		return nil
	case ctx.Err() != nil:
		return err
	case len(items) == 1:
		return ix.setAside(ctx, &items[0], err)
	}
	half := len(items) / 2
	if err := ix.storeItems(ctx, items[:half]); err != nil {
		return err
	}
	return ix.storeItems(ctx, items[half:])
}

// try stores calls, retrying temporary errors.
func (ix *indexer) try(ctx context.Context, calls []*store.Call) error {
	return retry(ctx, func() error {
		err := ix.g.options.Store.Put(ctx, calls)
		if (err == nil || !store.IsTemporary(err)) && ix.g.storeErr.Load() != nil {
			ix.g.storeErr.Store(nil)
		}
		if err != nil && !store.IsTemporary(err) {
			return backoff.Permanent(err)
		}
		return err
	}, func(err error, wait time.Duration) {
		ix.g.metrics.retries.Inc()
		ix.g.storeErr.Store(&err)
		ix.g.log.LogAttrs(ctx, slog.LevelWarn, "the store takes no answers; they stay in the journal",
			slog.Int("answers", len(calls)), slog.Duration("again_in", wait), slog.Any("error", err))
	})
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

// setAside saves a record that the store rejects for an operator to inspect. It retries until it succeeds; the error is
// ctx's.
func (ix *indexer) setAside(ctx context.Context, item *indexItem, why error) error {
	g := ix.g
	attrs := []slog.Attr{slog.Uint64("position", uint64(item.at)), slog.Any("error", why)}
	if item.call != nil {
		attrs = append(attrs, slog.String("answer_id", item.call.AnswerID), slog.String("tenant", item.call.Tenant))
	}
	if g.options.Damaged != "" {
		// A record that is read again after a crash gets the same name.
		name := filepath.Join(g.options.Damaged, fmt.Sprintf("%d-%08x.json", item.at, crc32.ChecksumIEEE(item.record)))
		err := retry(ctx, func() error {
			if err := os.MkdirAll(g.options.Damaged, 0o700); err != nil {
				return err
			}
			return errors.Join(file.Replace(name, item.record, 0o600), file.SyncDir(filepath.Dir(filepath.Dir(name))))
		}, func(err error, wait time.Duration) {
			g.log.LogAttrs(
				ctx, slog.LevelError,
				"an answer that the store rejects cannot be set aside; it stays in the journal",
				slog.Uint64("position", uint64(item.at)), slog.Duration("again_in", wait), slog.Any("error", err),
			)
		})
		if err != nil {
			return err
		}
		attrs = append(attrs, slog.String("file", name))
	}
	item.done = true
	g.metrics.setAside.Inc()
	g.log.LogAttrs(ctx, slog.LevelError, "an answer was set aside: the store rejects it", attrs...)
	return nil
}
