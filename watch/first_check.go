package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// firstAtOnce is how many answers are checked at a time, and firstPause the time from the start of one to that of
	// the next in its place, so that a program that makes many calls does not make many requests to those it cites.
	firstAtOnce = 2
	firstPause  = time.Second
	// firstFor bounds the check of one answer, and firstSources the sources that are read for it.
	firstFor     = time.Minute
	firstSources = 20
	// firstFresh is how old a copy may be to count as current, unless a reader asks to read it again: see [AgainAfter].
	firstFresh = 15 * time.Minute
	// storedWithin is how long an answer may take from its capture until it is stored, and storedLook the interval at
	// which that is polled.
	storedWithin = 10 * time.Second
	storedLook   = 100 * time.Millisecond
)

// AgainAfter is how long ago a source must have been read before a reader can have it read again.
const AgainAfter = 5 * time.Second

// FirstCheck reads the web sources that an answer cites once, soon after it was captured, and records what they say of
// it, as [Freshness] does on a schedule. It keeps nothing of what is to be done: an answer that is still waiting when
// the program ends, or that comes when too many are waiting, stays unchecked until somebody asks for it.
type FirstCheck struct {
	freshness *Freshness
	queue     *queue
}

// NewFirstCheck returns a FirstCheck that records as f does, which need not run itself.
func NewFirstCheck(f *Freshness) *FirstCheck { return &FirstCheck{freshness: f, queue: newQueue()} }

// Offer queues an answer and reports whether its sources will be read, which is the case if it cites one with a web
// address and not too many answers are waiting. It never blocks. It uses only Call and Again of the job.
func (c *FirstCheck) Offer(j Job) bool {
	if j.Call == nil || j.Call.Answer == nil || len(store.CitedAddresses(j.Call.Answer)) == 0 {
		return false
	}
	return c.queue.offer(&Job{Call: j.Call, Again: j.Again})
}

// Again has the sources of a stored answer read again, unless that was within [AgainAfter], and returns how many will
// be.
func (c *FirstCheck) Again(_ context.Context, call *store.Call) (int, error) {
	if !c.Offer(Job{Call: call, Again: true}) {
		return 0, nil
	}
	return min(len(store.CitedAddresses(call.Answer)), firstSources), nil
}

// Run checks answers until ctx ends, discards those still waiting, and returns nil.
func (c *FirstCheck) Run(ctx context.Context) error {
	c.queue.run(ctx, firstAtOnce, func(ctx context.Context, j *Job) {
		pause := time.After(firstPause)
		c.do(ctx, j)
		select {
		case <-pause:
		case <-ctx.Done():
		}
	})
	return nil
}

// do checks one answer.
func (c *FirstCheck) do(ctx context.Context, j *Job) {
	work, cancel := context.WithTimeout(ctx, firstFor)
	defer cancel()
	log := c.freshness.log.With(slog.String("answer_id", j.Call.AnswerID))
	if err := c.awaitStored(work, j.Call); err != nil {
		if ctx.Err() == nil {
			log.WarnContext(ctx, "an answer could not be checked", slog.Any("error", err))
		}
		return
	}
	addresses := store.CitedAddresses(j.Call.Answer)
	var all sync.WaitGroup
	for _, address := range addresses[:min(len(addresses), firstSources)] {
		all.Go(func() {
			err := recovered(work, log, "checking a source", slog.String("url", bare(address)), func() error {
				return c.read(work, j, address)
			})
			if _, unread := errors.AsType[*snapshot.FetchError](err); unread || work.Err() != nil {
				log.DebugContext(ctx, "a source could not be read", slog.Any("error", err))
			} else if err != nil {
				log.WarnContext(ctx, "a source could not be checked", slog.Any("error", err))
			}
		})
	}
	all.Wait()
	if wake := c.freshness.options.Wake; wake != nil {
		wake()
	}
}

// awaitStored waits until an answer is stored.
func (c *FirstCheck) awaitStored(ctx context.Context, call *store.Call) error {
	waiting, cancel := context.WithTimeout(ctx, storedWithin)
	defer cancel()
	for {
		_, err := c.freshness.options.Store.Call(waiting, call.Tenant, call.AnswerID)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		select {
		case <-waiting.Done():
			return fmt.Errorf("waiting until it is stored: %w", waiting.Err())
		case <-time.After(storedLook):
		}
	}
}

// read reads a source, unless that was a short while ago, and compares what the answer cites of it. That a source
// cannot be reached is told to those who ask: of its own accord it may only mean that this machine is offline.
func (c *FirstCheck) read(ctx context.Context, j *Job, address string) error {
	f, call, within := c.freshness, j.Call, firstFresh
	if j.Again {
		within = AgainAfter
	}
	job := &store.Recheck{Tenant: call.Tenant, URL: address}
	snap, failed := f.read(ctx, job, within)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("waiting for its turn: %w", err)
	}
	if failed == nil || j.Again || failedAs(failed, snapshot.Gone) {
		if err := f.pin(ctx, job, call.AnswerID, snap); err != nil {
			return err
		}
	}
	all, err := f.options.Store.AnswerPins(ctx, call.Tenant, call.AnswerID)
	if err != nil {
		return err
	}
	var pins []store.Pin
	for i := range all {
		if all[i].URL == address {
			pins = append(pins, all[i])
		}
	}
	if _, err := f.compare(ctx, job, pins, snap, failed); err != nil {
		return err
	}
	return failed
}
