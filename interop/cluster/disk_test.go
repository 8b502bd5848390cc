package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

const diskSize = 24 // megabytes

// startAlone starts one gateway with SQLite.
func startAlone(t *testing.T, o options) *cluster {
	t.Helper()
	o.alone, o.nodes = true, 1
	return startCluster(t, o)
}

// awaitCheck waits until a check in /readyz has a status and a message containing a word.
func (c *cluster) awaitCheck(ctx context.Context, status int, check, word string) error {
	said := ""
	for deadline := time.Now().Add(settleTime); time.Now().Before(deadline) && ctx.Err() == nil; {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.nodes[0].addr+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		var ready struct {
			Checks map[string]string `json:"checks"`
		}
		err = json.NewDecoder(response.Body).Decode(&ready)
		_ = response.Body.Close()
		if err != nil {
			return err
		}
		said = fmt.Sprint(response.StatusCode, ready.Checks)
		if response.StatusCode == status && strings.Contains(ready.Checks[check], word) {
			return nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("/readyz says " + said)
}

// restart restarts a gateway, however it ended.
func (c *cluster) restart(ctx context.Context) error {
	return errors.Join(c.nodes[0].start(ctx), c.ready(ctx))
}

// The disk of the journal is full. Calls succeed and /readyz fails. Once there is room, captured answers are stored;
// responses that were not captured have no id.
func TestDiskOfJournalFull(t *testing.T) {
	data := testenv.NewDisk(t, diskSize)
	c := startAlone(t, options{data: data.Dir, db: t.TempDir()})
	suffer(t, c, &fault{do: func(ctx context.Context, c *cluster) error {
		data.Fill(t)
		err := c.awaitCheck(ctx, http.StatusServiceUnavailable, "journal", "cannot be captured")
		data.Free(t)
		return errors.Join(err, c.awaitCheck(ctx, http.StatusOK, "journal", "ok"))
	}, unkept: true})
}

// The disk of the database is full and the gateway is killed. The answers are in the journal, and are stored once there
// is room.
func TestDiskOfDatabaseFull(t *testing.T) {
	db := testenv.NewDisk(t, diskSize)
	c := startAlone(t, options{db: db.Dir})
	suffer(t, c, &fault{
		do: func(ctx context.Context, c *cluster) error {
			db.Fill(t)
			if err := errors.Join(c.awaitLog(ctx, "the store takes no answers"), pause(ctx, after), c.nodes[0].kill()); err != nil {
				return err
			}
			// The database cannot be opened without room: the gateway reports that, and the answers stay where they
			// are.
			full := c.nodes[0].start(ctx)
			if full == nil {
				c.nodes[0].end()
			}
			db.Free(t)
			return c.restart(ctx)
		},
		mayFail: anyCall, repeats: true,
	})
}

// awaitLog waits until the gateway has logged a message.
func (c *cluster) awaitLog(ctx context.Context, words string) error {
	for deadline := time.Now().Add(settleTime); !strings.Contains(c.nodes[0].logTail(), words); {
		if time.Now().After(deadline) {
			return errors.New("nobody is told that " + words)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// The disk of all data is full when the gateway is killed and restarted: once there is room, every answer whose end was
// delivered before is there.
func TestDiskFullAtStart(t *testing.T) {
	data := testenv.NewDisk(t, diskSize)
	c := startAlone(t, options{data: data.Dir})
	l := c.startLoad(t.Context())
	testenv.OK(t, pause(t.Context(), 2*before))
	l.stop()
	data.Fill(t)
	testenv.OK(t, c.nodes[0].kill())
	if err := c.nodes[0].start(t.Context()); err == nil {
		testenv.OK(t, c.nodes[0].kill())
	} else if said := c.nodes[0].logTail(); !strings.Contains(said, "full") {
		t.Errorf("the error does not name the cause: %v", err)
	}
	data.Free(t)
	testenv.OK(t, c.restart(t.Context()))
	judge(t, l.settle(t.Context(), &fault{}))
}

// A disk that is read-only when the gateway starts is reported, nothing on it is lost, and once writable it is used.
func TestDiskReadOnly(t *testing.T) {
	data := testenv.NewDisk(t, diskSize)
	c := startAlone(t, options{data: data.Dir})
	l := c.startLoad(t.Context())
	testenv.OK(t, pause(t.Context(), 2*before))
	l.stop()
	testenv.OK(t, c.nodes[0].kill())
	data.ReadOnly(t, true)
	said, err := exec.CommandContext(t.Context(), c.nodes[0].argv[0], c.nodes[0].argv[1:]...).CombinedOutput() //nolint:gosec // ours
	if err == nil || !strings.Contains(string(said), "read-only") && !strings.Contains(string(said), "readonly") {
		t.Errorf("on a read-only disk: %v\n%s", err, said)
	}
	data.ReadOnly(t, false)
	testenv.OK(t, c.restart(t.Context()))
	judge(t, l.settle(t.Context(), &fault{}))
}

// A disk turns read-only under a running gateway, as after an error of the device. Calls succeed, those that begin later
// have no id, and once the disk is mounted again, every answer whose end was seen before is there: with a disk of its
// own for the journal, all of them are.
func TestDiskTurnsReadOnly(t *testing.T) {
	for name, test := range map[string]struct {
		options func(dir string) options
		told    func(ctx context.Context, c *cluster) error
		journal bool // is on the disk
	}{
		"of all data": {
			func(dir string) options { return options{data: dir} },
			func(ctx context.Context, c *cluster) error {
				return c.awaitCheck(ctx, http.StatusServiceUnavailable, "journal", "cannot be captured")
			}, true,
		},
		"of the database": {
			func(dir string) options { return options{data: t.TempDir(), db: dir} },
			func(ctx context.Context, c *cluster) error { return c.awaitLog(ctx, "the store takes no answers") }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := testenv.NewBreakableDisk(t, 2*diskSize)
			c := startAlone(t, test.options(disk.Dir))
			broken := time.Now()
			suffer(t, c, &fault{
				do: func(ctx context.Context, c *cluster) error {
					broken = time.Now()
					disk.Break(t)
					err := errors.Join(test.told(ctx, c), pause(ctx, after), c.nodes[0].kill())
					disk.Mend(t)
					return errors.Join(err, c.restart(ctx))
				},
				mayFail: anyCall, repeats: true, unkept: test.journal,
				mayLose: func(c *call) bool { return test.journal && c.ended.After(broken) },
			})
		})
	}
}
