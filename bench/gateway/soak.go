package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/ibidhq/ibid/internal/testenv"
)

const (
	soakShare    = 0.7 // of the gateways' capacity
	capacityTime = 10 * time.Second
	capacityFrom = 16 // number of clients for measuring capacity
	settleTime   = 2 * time.Minute
)

// soak runs two gateways with PostgreSQL and NATS at 70 % of their capacity under random faults. One of them is killed
// now and then; the other one stays, and must not grow. Every answer whose end a client saw must be stored as it was
// sent.
func soak(ctx context.Context, args []string, out io.Writer) (err error) {
	set := flags("soak")
	minutes := set.Float64("minutes", 30, "how long")
	most := set.Float64("most", 1500, "calls a second at most, whatever the capacity is: half an hour of them takes 6 GB")
	seed := set.Uint64("seed", uint64(time.Now().UnixNano()), "of the faults") //nolint:gosec // any number
	if err := set.Parse(args); err != nil {
		return err
	}
	if *minutes <= 0 || *minutes > 24*60 || set.NArg() > 0 {
		return errors.Join(errors.New("soak: between 0 and 1440 minutes, and nothing else"), flag.ErrHelp)
	}
	w, err := newSoakWorld(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove(context.WithoutCancel(ctx))) }()
	capacity, err := w.capacity(ctx)
	if err != nil {
		return err
	}
	rate := min(capacity*soakShare, *most)
	length := time.Duration(*minutes * float64(time.Minute))
	fmt.Fprintf(os.Stderr, "soak: %.0f calls a second can be served; %v at %.0f, seed %d\n", capacity, length, rate, *seed)

	c := startSoakCalls(ctx, w, rate, *seed)
	watched, endWatch := context.WithCancel(ctx)
	var samples []sample
	var watching sync.WaitGroup
	watching.Go(func() { samples = w.sample(watched, length) })
	happened, err := w.faults(ctx, length, *seed)
	c.stopCalls()
	endWatch()
	watching.Wait()
	if err != nil {
		c.discard()
		return err
	}
	lost := c.settle(ctx)
	fmt.Fprintf(out, "\n### Soak: %v at %.0f calls a second (capacity %.0f), seed %d\n\n| | |\n| --- | --- |\n", length, rate,
		capacity, *seed)
	fmt.Fprintf(out, "| answers whose end was seen | %d |\n| broke off | %d |\n| not begun, too many at once | %d |\n",
		c.seen.Load(), c.broken.Load(), c.shed.Load())
	fmt.Fprintf(out, "| faults | %s |\n| lost | %d |\n| altered | %d |\n", happened, lost, c.altered.Load())
	flat := reportFlat(out, samples)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.seen.Load() == 0:
		return errors.New("soak: no call was completed")
	case lost > 0 || c.altered.Load() > 0:
		return fmt.Errorf("soak: %d answers lost, %d altered", lost, c.altered.Load())
	case flat != nil:
		return fmt.Errorf("soak: %w", flat)
	}
	return nil
}

// soakWorld is the running system: everything that can fail is connected through a relay.
type soakWorld struct {
	*daemon

	pg            *testenv.PostgresServer
	db            *sql.DB // of pg
	nats          *server.Server
	upstream, bus *testenv.Relay
	gateways      [2]*process // the second one is killed now and then
	addrs         [2]atomic.Pointer[string]
}

func newSoakWorld(ctx context.Context) (_ *soakWorld, err error) {
	d, err := newDaemon(ctx)
	if err != nil {
		return nil, err
	}
	w := &soakWorld{daemon: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.remove(context.WithoutCancel(ctx)))
		}
	}()
	if w.pg, err = testenv.NewPostgres(ctx); err != nil {
		return nil, err
	}
	if w.db, err = sql.Open("pgx", w.pg.DSN); err != nil {
		return nil, err
	}
	if w.nats, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true}); err != nil {
		return nil, err
	}
	w.nats.Start()
	if !w.nats.ReadyForConnections(time.Minute) {
		return nil, errors.New("starting NATS: it takes no connections")
	}
	if w.bus, err = testenv.NewRelay("tcp", w.nats.Addr().String()); err != nil {
		return nil, err
	}
	if w.upstream, err = testenv.NewRelay("tcp", d.up.addr); err != nil {
		return nil, err
	}
	d.args = []string{"--db", w.pg.DSN, "--nats", "nats://" + w.bus.Addr()}
	for i := range w.gateways {
		if err := w.start(ctx, i); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// start starts a gateway on the data it left.
func (w *soakWorld) start(ctx context.Context, i int) (err error) {
	p, err := w.serveIn(ctx, fmt.Sprintf("data-%d", i), w.upstream.Addr())
	if err != nil {
		return err
	}
	w.gateways[i] = p
	w.addrs[i].Store(&p.addr)
	return nil
}

func (w *soakWorld) addr(i int) string { return *w.addrs[i].Load() }

func (w *soakWorld) remove(ctx context.Context) error {
	for _, p := range w.gateways {
		if p != nil {
			p.stop()
		}
	}
	for _, r := range []*testenv.Relay{w.upstream, w.bus} {
		if r != nil {
			r.Close()
		}
	}
	if w.nats != nil {
		w.nats.Shutdown()
		w.nats.WaitForShutdown()
	}
	var err error
	if w.db != nil {
		_ = w.db.Close()
	}
	if w.pg != nil {
		err = w.pg.Remove(ctx)
	}
	w.daemon.remove()
	return err
}

// capacity returns how many calls a second are served when each client sends its next call right away.
func (w *soakWorld) capacity(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, capacityTime)
	defer cancel()
	c := newSoakCalls(w)
	var group sync.WaitGroup
	for i := range capacityFrom {
		group.Go(func() {
			for n := uint64(i); ctx.Err() == nil; n += capacityFrom { //nolint:gosec // few
				_, _ = c.make(ctx, soakShape(n), i%2)
			}
		})
	}
	group.Wait()
	if c.seen.Load() == 0 {
		return 0, errors.New("measuring the capacity: no call was completed")
	}
	return float64(c.seen.Load()) / capacityTime.Seconds(), nil
}

// faults causes random faults until the last tenth of the time, and returns which ones.
func (w *soakWorld) faults(ctx context.Context, length time.Duration, seed uint64) (happened string, err error) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	seconds := func(most int) time.Duration {
		return time.Second + time.Duration(random.IntN(most*1000))*time.Millisecond
	}
	cut := func(r *testenv.Relay, length time.Duration) error {
		for end := time.Now().Add(length); time.Now().Before(end); {
			r.Break()
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}
	kinds := []struct {
		name string
		do   func() error
	}{
		{"connections to the provider broken", func() error { w.upstream.Break(); return nil }},
		{"provider away", func() error { return cut(w.upstream, seconds(2)) }},
		{"bus cut", func() error { return cut(w.bus, seconds(5)) }},
		{"bus half open", func() error { w.bus.BreakSilently(); return nil }},
		{"database stopped", func() error {
			return errors.Join(w.pg.Down(ctx), pause(ctx, seconds(6)), w.pg.Up(context.WithoutCancel(ctx)))
		}},
		{"kill -9", func() error {
			w.gateways[1].kill()
			w.gateways[1] = nil
			return errors.Join(pause(ctx, seconds(2)), w.start(ctx, 1))
		}},
	}
	count := make([]int, len(kinds))
	end := time.Now().Add(length)
	for time.Until(end) > length/10 {
		if err := pause(ctx, seconds(6)); err != nil {
			return "", err
		}
		i := random.IntN(len(kinds))
		if err := kinds[i].do(); err != nil {
			return "", fmt.Errorf("%s: %w", kinds[i].name, err)
		}
		count[i]++
	}
	var list []string
	for i, k := range kinds {
		list = append(list, fmt.Sprintf("%s %d", k.name, count[i]))
	}
	return strings.Join(list, ", "), pause(ctx, time.Until(end))
}

// sample reads the metrics of the gateway that stays, after a warm-up of a fifth of the time.
func (w *soakWorld) sample(ctx context.Context, length time.Duration) []sample {
	begin := time.Now()
	var all []sample
	for pause(ctx, sampleEvery) == nil {
		s, err := readSample(ctx, w.addr(0))
		if err == nil && time.Since(begin) > length/5 {
			s.at = time.Since(begin)
			all = append(all, s)
		}
	}
	return slices.Clip(all)
}
