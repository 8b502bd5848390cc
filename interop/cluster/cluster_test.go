package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == natsCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

func startCluster(t *testing.T, o options) *cluster {
	t.Helper()
	if !o.alone {
		testenv.Tool(t, "/usr/lib/postgresql/15/bin/initdb")
	}
	c := testenv.Must(newCluster(t.Context(), o))(t)
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range c.nodes {
				t.Log(n.logTail())
			}
		}
		testenv.OK(t, c.close())
	})
	testenv.OK(t, c.ready(t.Context()))
	return c
}

// suffer runs a load during a fault.
func suffer(t *testing.T, c *cluster, f *fault) {
	t.Helper()
	judge(t, testenv.Must(c.phase(t.Context(), f))(t))
}

// judge fails a test for everything that is wrong.
func judge(t *testing.T, v *verdict) {
	t.Helper()
	t.Log(v)
	for i, wrong := range v.wrong {
		if i == 10 {
			t.Fatalf("and %d more", len(v.wrong)-i)
		}
		t.Error(wrong)
	}
	if v.completed == 0 {
		t.Error("no call was completed")
	}
}

// Whatever happens to a process of the cluster, every completed call has its answer once, every reader of events sees
// each once and in order, and only calls to a killed gateway fail.
func TestCluster(t *testing.T) {
	c := startCluster(t, options{next: true})
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) { suffer(t, c, &f) })
	}
	t.Run("upgrade", func(t *testing.T) {
		suffer(t, c, &fault{do: func(ctx context.Context, c *cluster) error { return c.roll(ctx, "next") }})
		check := exec.Command(c.programs["current"], "serve", "--check", "--db", c.pg.DSN, "--data", t.TempDir())
		if said, err := check.CombinedOutput(); err == nil || !strings.Contains(string(said), "newer") {
			t.Errorf("the earlier version accepts the database: %v\n%s", err, said)
		}
	})
}

// Whatever is wrong with the connections between clients, gateways, providers, PostgreSQL and NATS, in both directions,
// no answer whose end a client received is lost or altered, aborted responses do not look complete, and everything
// recovers when the fault is over.
func TestConnections(t *testing.T) {
	c := startCluster(t, options{nodes: 2, proxied: true})
	for _, f := range connections() {
		t.Run(f.name, func(t *testing.T) { suffer(t, c, &f) })
	}
}
