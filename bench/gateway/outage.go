package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

// outage stops PostgreSQL under load and then looks up every answer.
func outage(ctx context.Context, args []string, out io.Writer) error {
	set := flags("outage")
	rate := set.Int("rate", 200, "calls a second")
	down := set.Duration("down", 30*time.Second, "how long PostgreSQL is stopped")
	if err := set.Parse(args); err != nil {
		return err
	}
	d, err := newDaemon(ctx)
	if err != nil {
		return err
	}
	defer d.remove()
	pg, err := testenv.NewPostgres(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pg.Remove(context.WithoutCancel(ctx)) }()
	d.args = []string{"--db", pg.DSN}
	proxy, err := d.serve(ctx)
	if err != nil {
		return err
	}
	defer proxy.stop()
	calls := startCalls(ctx, proxy.addr, *rate)
	steps := []func() error{
		func() error { return pause(ctx, 5*time.Second) },
		func() error { return pg.Down(ctx) },
		func() error { return pause(ctx, *down) },
		func() error { return pg.Up(ctx) },
		func() error { return pause(ctx, 5*time.Second) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			calls.end()
			return err
		}
	}
	ids, failed := calls.end()
	missing, waited, err := eventually(ctx, proxy.addr, ids)
	if err != nil {
		return err
	}
	fmt.Fprintf(
		out,
		"\n### PostgreSQL stopped for %v\n\n%d calls at %d a second: %d failed, %d answers missing %v after the last.\n",
		*down,
		len(ids)+failed,
		*rate,
		failed,
		missing,
		waited.Round(time.Second),
	)
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// calls is an open loop: calls begin at a rate, however long they take.
type calls struct {
	stop   context.CancelFunc
	group  sync.WaitGroup
	mu     sync.Mutex
	ids    []string
	failed atomic.Int64
}

func startCalls(ctx context.Context, addr string, rate int) *calls {
	c := &calls{}
	ticking, stop := context.WithCancel(ctx)
	c.stop = stop
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: rate}}
	c.group.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(rate))
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ticking.Done():
				return
			case <-ticker.C:
			}
			c.group.Go(func() {
				id, err := completed(ctx, client, addr, n%2 == 0)
				if err != nil {
					c.failed.Add(1)
					return
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				c.ids = append(c.ids, id)
			})
		}
	})
	return c
}

func (c *calls) end() (ids []string, failed int) {
	c.stop()
	c.group.Wait()
	return c.ids, int(c.failed.Load())
}

// eventually looks for answers until all are in the store, for a minute.
func eventually(ctx context.Context, addr string, ids []string) (missing int, waited time.Duration, err error) {
	begin := time.Now()
	for {
		missing, err = missingAnswers(ctx, addr, ids)
		waited = time.Since(begin)
		if err != nil || missing == 0 || waited > time.Minute {
			return missing, waited, err
		}
		if err := pause(ctx, time.Second); err != nil {
			return missing, waited, err
		}
	}
}
