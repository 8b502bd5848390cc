package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

const (
	gateways    = 3
	natsServers = 3

	streamKey = "a key that all nodes of the cluster share" // of browsers' event streams
)

// options configure a cluster. The zero value is three directly connected gateways.
type options struct {
	nodes   int  // number of gateways; 0 means 3
	proxied bool // every connection between two processes goes through a link that can be disturbed
	alone   bool // SQLite and no NATS: the nodes share nothing
	next    bool // also build the next version

	data, db    string // for nodes that are alone and for their databases; empty means below the cluster's
	descriptors int    // the limit of each gateway; 0 means that of this program
}

// cluster runs gateways, NATS and PostgreSQL in separate processes, and their provider in this one.
type cluster struct {
	dir      string
	programs map[string]string // by version: current, next
	upstream *httptest.Server
	pg       *testenv.PostgresServer // nil for SQLite
	nats     []*process
	nodes    []*process
	links    *links // nil unless proxied
	next     int    // number of phases, for names
}

// newCluster builds ibid and starts everything. The caller must close it.
func newCluster(ctx context.Context, o options) (_ *cluster, err error) {
	dir, err := os.MkdirTemp("", "ibid-cluster")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, programs: map[string]string{}, upstream: httptest.NewServer(http.HandlerFunc(provider))}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if err := c.build(ctx, o.next); err != nil {
		return nil, err
	}
	if !o.alone {
		if c.pg, err = testenv.NewPostgres(ctx); err != nil {
			return nil, err
		}
		if err := c.startNATS(ctx); err != nil {
			return nil, err
		}
	}
	if o.proxied {
		if c.links, err = newLinks(c); err != nil {
			return nil, err
		}
	}
	for i := range cmp.Or(o.nodes, gateways) {
		n, err := c.newNode(ctx, i, &o)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
		if err := n.start(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// close ends everything and removes what it made.
func (c *cluster) close() error {
	for _, p := range append(append([]*process{}, c.nodes...), c.nats...) {
		p.end()
	}
	if c.links != nil {
		c.links.close()
	}
	var err error
	if c.pg != nil {
		err = c.pg.Remove(context.Background())
	}
	c.upstream.Close()
	return errors.Join(err, os.RemoveAll(c.dir))
}

// build builds the program and, if needed, the next version, which differs only by a migration.
func (c *cluster) build(ctx context.Context, next bool) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/ibidhq/ibid").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	root := strings.TrimSpace(string(out))
	overlay, err := c.nextMigration(root)
	if err != nil {
		return err
	}
	flags := map[string][]string{"current": nil}
	if next {
		flags["next"] = []string{"-overlay", overlay}
	}
	for version, more := range flags {
		program := filepath.Join(c.dir, "ibid-"+version)
		args := append([]string{"-C", root, "build", "-o", program}, more...)
		build := exec.CommandContext(ctx, "go", append(args, "./cmd/ibid")...) //nolint:gosec // our own program
		if said, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("building ibid, %s: %w\n%s", version, err, said)
		}
		c.programs[version] = program
	}
	return nil
}

// nextMigration writes the migration of the next version, which changes the largest table as real ones do, and the
// overlay for building the program with it.
func (c *cluster) nextMigration(root string) (overlay string, err error) {
	there, err := filepath.Glob(filepath.Join(root, "store", "migrations", "*.sql"))
	if err != nil || len(there) == 0 {
		return "", errors.Join(errors.New("there are no migrations"), err)
	}
	last, err := strconv.Atoi(filepath.Base(there[len(there)-1])[:5])
	if err != nil {
		return "", err
	}
	file, overlay := filepath.Join(c.dir, "next.sql"), filepath.Join(c.dir, "overlay.json")
	const migration = "ALTER TABLE calls ADD COLUMN of_next_version BIGINT DEFAULT 7;\n" +
		"CREATE INDEX calls_of_next_version ON calls (tenant, of_next_version);\n"
	name := filepath.Join(root, "store", "migrations", fmt.Sprintf("%05d_next.sql", last+1))
	content, err := json.Marshal(map[string]map[string]string{"Replace": {name: file}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(file, []byte(migration), 0o600), os.WriteFile(overlay, content, 0o600))
}

func (c *cluster) startNATS(ctx context.Context) error {
	var addrs, routes []string
	for range 2 * natsServers {
		addr, err := freeAddr(ctx)
		if err != nil {
			return err
		}
		if addrs = append(addrs, addr); len(addrs) > natsServers {
			addrs, routes = addrs[:natsServers], append(routes, addr)
		}
	}
	for i := range natsServers {
		p, err := newNATS(c.dir, i, addrs, routes)
		if err != nil {
			return err
		}
		c.nats = append(c.nats, p)
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// natsURLs returns the NATS servers that the gateways are configured with.
func (c *cluster) natsURLs() string {
	var urls []string
	for i, p := range c.nats {
		addr := p.addr
		if c.links != nil {
			addr = c.links.addr("bus-" + strconv.Itoa(i))
		}
		urls = append(urls, "nats://"+addr)
	}
	return strings.Join(urls, ",")
}

func (c *cluster) newNode(ctx context.Context, i int, o *options) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	name := "gateway-" + strconv.Itoa(i)
	upstream := c.upstream.URL
	if c.links != nil {
		upstream = "http://" + c.links.addr("upstream")
	}
	argv := []string{
		c.programs["current"], "serve", "--listen", addr, "--data", filepath.Join(cmp.Or(o.data, c.dir), name),
		"--upstream", mockName + "=" + upstream + ",provider=openai",
	}
	if o.db != "" {
		argv = append(argv, "--db", filepath.Join(o.db, "ibid.db"))
	}
	if o.descriptors > 0 {
		argv = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, o.descriptors), "sh"}, argv...)
	}
	if c.pg != nil {
		dsn := c.pg.DSN
		if c.links != nil {
			dsn = "postgres://postgres@" + c.links.addr("store") + "/ibid?sslmode=disable&statement_timeout=3000"
		}
		argv = append(argv, "--db", dsn, "--nats", c.natsURLs())
	}
	if c.links != nil {
		if err := c.links.add("client-"+strconv.Itoa(i), addr); err != nil {
			return nil, err
		}
	}
	return &process{
		name: name, addr: addr, log: filepath.Join(c.dir, name+".log"), argv: argv,
		env: []string{"IBID_STREAM_KEY=" + streamKey},
	}, nil
}

// address returns the address of a gateway for clients.
func (c *cluster) address(node int) string {
	if c.links != nil {
		return c.links.addr("client-" + strconv.Itoa(node))
	}
	return c.nodes[node].addr
}

// ready waits until all gateways report that they are ready, for at most settleTime.
func (c *cluster) ready(ctx context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	for _, n := range c.nodes {
		last := errors.New("not asked")
		for deadline := time.Now().Add(settleTime); last != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) || ctx.Err() != nil {
				return fmt.Errorf("%s is not ready: %w\n%s", n.name, errors.Join(last, ctx.Err()), n.logTail())
			}
			var status struct {
				Status string `json:"status"`
			}
			last = getJSON(ctx, client, "http://"+n.addr+"/readyz", &status)
			if last == nil && status.Status != "ready" {
				last = errors.New(status.Status)
			}
		}
	}
	return nil
}

func getJSON(ctx context.Context, client *http.Client, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
