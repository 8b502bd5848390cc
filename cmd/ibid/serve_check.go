package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// checkTime is how long --check waits for what is elsewhere.
const checkTime = 5 * time.Second

// checker says what serve would do, a line for each thing, and what stands in its way.
type checker struct {
	config *config
	table  *tabwriter.Writer
	world  world
	failed bool
}

// checkServe looks at everything serve needs, and changes nothing.
func checkServe(ctx context.Context, c *config, w world) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	k := &checker{config: c, table: tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0), world: w}
	k.line("configuration", cmp.Or(c.file, "no file"), nil)
	k.line("data", c.data, writable(c.data))
	schema, words, err := k.database(ctx)
	readable := err == nil
	k.line("database", redacted(c.db)+words, err)
	k.line("listen", c.listen, k.exposed(schema != nil && schema.Tokens > 0))
	certificate, err := k.certificate()
	k.line("tls", certificate, err)
	k.line("nats", redacted(c.nats), reachNATS(ctx, c.nats))
	k.line("capture", fmt.Sprintf("%s, at most %s", c.capture.value, c.captureWait), nil)
	k.line("prompts", c.prompts.value, nil)
	k.line("retention", c.keep.String(), nil)
	for _, name := range c.keep.strangers(c.settings) {
		say(w.err, "retention: %s is no provider", oneLine(name))
		hint(w.err, strangerHint)
	}
	k.backfill()
	if words := c.strategyWords(); words != "" {
		k.line("strategy", words, nil)
	}
	k.attribution(ctx, schema, readable)
	for _, p := range c.chatProviders(w) {
		k.line("chat", strings.Join([]string{"/" + p.Upstream, p.Model, keyWords(p.Key)}, "\t"), nil)
	}
	if every := c.attribution.recheck; every > 0 {
		k.line("recheck", "every "+every.String(), nil)
	}
	if c.otlp != "" {
		k.line("otlp", redacted(c.otlp), nil)
	}
	for _, u := range c.upstreamList() {
		k.line("upstream", fmt.Sprintf("/%s\t%s\t%s", u.Name, u.URL, u.Provider), nil)
	}
	if err := k.table.Flush(); err != nil {
		return err
	}
	if k.failed {
		return errCheck
	}
	return nil
}

var errCheck = errors.New("ibid serve would not start like this")

// line says one thing, and what is wrong with it.
func (k *checker) line(name, what string, err error) {
	if err == nil {
		fmt.Fprintf(k.table, "%s\t%s\n", name, what)
		return
	}
	k.failed = true
	fmt.Fprintf(k.table, "%s\t%s\tERROR\n", name, what)
	say(k.world.err, "%s: %v", name, err)
	hint(k.world.err, explain(err).hint)
}

// keyWords says whether there is a key.
func keyWords(key string) string {
	if key == "" {
		return "no key"
	}
	return "with a key"
}

// backfill says where answers are asked for again, and whether that can be.
func (k *checker) backfill() {
	rules := k.config.backfillRules(k.world)
	for i := range rules {
		r := &rules[i]
		_, err := watch.NewBackfill(
			&watch.BackfillOptions{
				Rules: rules[i : i+1],
				Store: func(context.Context, *store.Call) error { return nil },
			},
		)
		k.line(
			"backfill",
			fmt.Sprintf("/%s %s\tby %s %s", r.Upstream, cmp.Or(r.Route, "all routes"), r.Provider, r.Model),
			err,
		)
	}
}

// database looks at the database without changing it, and says what it found. Nil without an error: it is not there
// yet.
func (k *checker) database(ctx context.Context) (schema *store.Schema, words string, err error) {
	if !store.IsPostgres(k.config.db) {
		switch _, err := os.Stat(k.config.db); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, ", will be made", writable(filepath.Dir(k.config.db))
		case err != nil:
			return nil, "", err
		}
	}
	schema, err = store.Inspect(ctx, k.config.db)
	if err != nil {
		return nil, "", err
	}
	words = fmt.Sprintf(", version %d", schema.Version)
	if schema.Version < schema.Newest {
		words += fmt.Sprintf(", will be brought to %d", schema.Newest)
	}
	return schema, words + ", " + plural(schema.Tokens, "token"), nil
}

// exposed says why serve would refuse to listen.
func (k *checker) exposed(tokens bool) error {
	local, err := isLocal(k.config.listen)
	if err != nil || local || tokens || k.config.bootstrap != "" {
		return err
	}
	return exposedError(k.config.listen)
}

// certificate reads the certificate and its key.
func (k *checker) certificate() (string, error) {
	if k.config.tlsCert == "" {
		return "no", nil
	}
	pair, err := tls.LoadX509KeyPair(k.config.tlsCert, k.config.tlsKey)
	if err != nil {
		return k.config.tlsCert, err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return k.config.tlsCert, err
	}
	words := fmt.Sprintf("%s, until %s", k.config.tlsCert, leaf.NotAfter.Format(time.DateOnly))
	if time.Now().After(leaf.NotAfter) {
		return words, errors.New("the certificate has expired")
	}
	return words, nil
}

// reachNATS connects to NATS once.
func reachNATS(ctx context.Context, address string) error {
	if address == bus.Embedded {
		return nil
	}
	b, err := bus.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	return errors.Join(b.Healthy(), b.Close()) //nolint:contextcheck // it bounds itself
}

// writable says why no files can be made in a directory that is there, or in the one above it that is.
func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		f, err := os.CreateTemp(dir, ".ibid-check-*")
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
}
