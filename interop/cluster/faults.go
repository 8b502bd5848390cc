package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// fault is a fault of a cluster, which is over when do returns.
type fault struct {
	name string
	do   func(ctx context.Context, c *cluster) error
	// mayFail reports whether the fault may abort a call; nil means none.
	mayFail func(c *call) bool
	// repeats allows two answers for a call that a client repeated after its connection broke.
	repeats bool
	// unkept allows calls whose answers are not stored. Such calls have no id.
	unkept bool
	// mayLose reports whether an answer may be lost although its call has an id; nil means none.
	mayLose func(c *call) bool
}

// anyCall is the mayFail of a fault between client, gateway and provider: any call may be aborted.
func anyCall(*call) bool { return true }

// victim is the gateway or NATS server that is killed or paused.
const victim = 2

// faults of a cluster's processes.
func faults() []fault {
	return []fault{
		{name: "kill", do: func(ctx context.Context, c *cluster) error {
			n := c.nodes[victim]
			return errors.Join(n.kill(), pause(ctx, time.Second), n.start(ctx))
		}, mayFail: func(c *call) bool { return c.node == victim }},
		{name: "pause", do: func(ctx context.Context, c *cluster) error {
			n := c.nodes[victim]
			return errors.Join(n.signal(syscall.SIGSTOP), pause(ctx, 3*time.Second), n.signal(syscall.SIGCONT))
		}},
		{name: "nats", do: func(ctx context.Context, c *cluster) error {
			n := c.nats[victim]
			return errors.Join(n.kill(), pause(ctx, time.Second), n.start(ctx))
		}},
		{name: "bus", do: func(ctx context.Context, c *cluster) error {
			var err error
			for _, n := range c.nats {
				err = errors.Join(err, n.kill())
			}
			err = errors.Join(err, pause(ctx, 3*time.Second))
			for _, n := range c.nats {
				err = errors.Join(err, n.start(ctx))
			}
			return err
		}},
		{name: "database", do: func(ctx context.Context, c *cluster) error {
			return errors.Join(c.pg.Down(ctx), pause(ctx, 3*time.Second), c.pg.Up(ctx))
		}},
	}
}

// roll replaces one gateway after another with another version, each once the previous one accepts calls.
func (c *cluster) roll(ctx context.Context, version string) error {
	for _, n := range c.nodes {
		if err := n.stop(); err != nil {
			return err
		}
		n.argv[0] = c.programs[version]
		if err := n.start(ctx); err != nil {
			return fmt.Errorf("version %q: %w", version, err)
		}
	}
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

// before and after are the durations of the load around a fault.
const (
	before = time.Second
	after  = time.Second
)

// phase runs a load during a fault and returns the result.
func (c *cluster) phase(ctx context.Context, f *fault) (*verdict, error) {
	l := c.startLoad(ctx)
	err := errors.Join(pause(ctx, before), f.do(ctx, c), pause(ctx, after))
	l.stop()
	if err == nil {
		err = c.ready(ctx)
	}
	if err != nil {
		l.leave()
		l.reading.Wait()
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return l.settle(ctx, f), nil
}
