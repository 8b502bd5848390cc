package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/watch"
)

const (
	checkTime = 5 * time.Second  // how long Check waits for each remote service
	storeWait = 15 * time.Second // and for a server that writes to the same SQLite file
)

// ErrCheck is returned if a server would not start: if a check was an error, not merely a warning.
var ErrCheck = errors.New("ibid serve would not start with this configuration")

// CheckOptions receive the output of Check.
type CheckOptions struct {
	Out   io.Writer       // receives a table of what a server would do
	Error func(err error) // called with each error: the server would not start
	Warn  func(err error) // called with each warning: it would start, without something that it should have
	Hint  func(s string)  // called with advice that belongs to no error
	Env   Env             // as in [Options]
}

// check is one run of Check.
type check struct {
	*CheckOptions

	config *Config
	table  *tabwriter.Writer
	failed bool
}

// Check reports what a server with a resolved configuration would do, and checks everything that it needs: the
// database, the data directory, the certificate, the keys, the log and NATS. It changes nothing. The error is
// [ErrCheck] if the server would not start; a database or NATS that is away is only a warning.
func Check(ctx context.Context, c *Config, o *CheckOptions) error {
	k := &check{CheckOptions: o, config: c, table: tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)}
	k.line("configuration", cmp.Or(c.File, "no file"), nil)
	k.line("data", c.Data, writable(c.Data))
	schema, words, err := k.database(ctx)
	readable := err == nil
	away := errors.Is(err, store.ErrUnreachable)
	if away {
		words = ", cannot be reached"
	}
	k.line("database", Redacted(c.DB)+words, err)
	k.addresses(c.CheckExposure(away || schema != nil && schema.Tokens > 0))
	certificate, err := k.certificate()
	k.line("tls", certificate, err)
	err = nil
	if c.NATS != "" {
		var b *bus.Bus
		if b, err = bus.Open(ctx, c.NATS, nil); err == nil {
			if err = errors.Join(b.Healthy(), b.Close()); err != nil {
				err = &warning{err}
			}
		}
	}
	k.line("nats", cmp.Or(Redacted(c.NATS), "none: one process"), err)
	k.line("capture", fmt.Sprintf("%s, at most %s", c.Capture, c.CaptureWait), nil)
	k.line("prompts", c.Prompts, nil)
	k.retention()
	rules := c.backfillRules(o.Env)
	for i, r := range rules {
		nothing := func(context.Context, *store.Call) error { return nil }
		_, err := watch.NewBackfill(&watch.BackfillOptions{Rules: rules[i : i+1], Store: nothing})
		what := fmt.Sprintf("/%s %s\tby %s %s", r.Upstream, cmp.Or(r.Route, "all routes"), r.Provider, r.Model)
		k.line("backfill", what, err)
	}
	switch chosen, e := c.chosenStrategies(), &c.Experiment; len(chosen) {
	case 1:
		k.line("strategy", chosen[0].ID(), nil)
	case 2:
		words := fmt.Sprintf("%s: %s and %s, %v of the runs", e.Name, chosen[0].ID(), chosen[1].ID(), e.Share)
		k.line("strategy", words, nil)
	}
	if c.Judge != "" {
		_, _, err := c.buildJudge(o.Env, nil)
		k.line("judge", c.Judge, err)
	}
	k.publishing(ctx, schema, readable)
	for _, p := range c.chatProviders(o.Env) {
		key := "with a key"
		if p.Key == "" {
			key = "no key"
		}
		k.line("chat", strings.Join([]string{"/" + p.Upstream, p.Model, key}, "\t"), nil)
	}
	switch when := c.recheck(); {
	case when.Once:
		k.line("recheck", "once, after each answer", nil)
	case when.Every > 0:
		k.line("recheck", "every "+when.Every.String(), nil)
	}
	k.operatorLines()
	if c.OTLP != "" {
		_, err := newTraceClient(c.OTLP, "", o.Env)
		if err != nil {
			err = &warning{err}
		}
		k.line("otlp", Redacted(c.OTLP), err)
	}
	k.mappings()
	for _, u := range c.upstreams() {
		k.line("upstream", fmt.Sprintf("/%s\t%s\t%s", u.Name, u.URL, u.Provider), nil)
	}
	if err := k.table.Flush(); err != nil {
		return err
	}
	if k.failed {
		return ErrCheck
	}
	return nil
}

// warning is an error with which the server would start.
type warning struct{ error }

func (w *warning) Unwrap() error { return w.error }

// line writes one line of the table, and the error or warning if there is one.
func (k *check) line(name, what string, err error) {
	_, degraded := errors.AsType[*warning](err)
	switch {
	case err == nil:
		fmt.Fprintf(k.table, "%s\t%s\n", name, what)
	case degraded || errors.Is(err, store.ErrUnreachable):
		fmt.Fprintf(k.table, "%s\t%s\tWARNING\n", name, what)
		k.Warn(fmt.Errorf("%s: %w", name, err))
	default:
		k.failed = true
		fmt.Fprintf(k.table, "%s\t%s\tERROR\n", name, what)
		k.Error(fmt.Errorf("%s: %w", name, err))
	}
}

// retention reports how long answers are kept, and rules for providers that do not exist.
func (k *check) retention() {
	var unknown error
	for _, name := range k.config.unknownProviders() {
		unknown = errors.Join(unknown, Usagef(unknownProviderHint, "%s is not a provider", name))
	}
	if unknown != nil {
		unknown = &warning{unknown}
	}
	k.line("retention", k.config.Retention.String(), unknown)
}

// addresses reports where the server listens and how others reach it. An exposure without tokens is reported at the one
// of them that causes it.
func (k *check) addresses(exposure error) {
	flag, _ := k.config.exposed()
	for _, a := range [][2]string{{"listen", k.config.Listen}, {"public-url", k.config.PublicURL}} {
		switch {
		case a[1] == "":
		case a[0] == flag || flag == "" && a[0] == "listen":
			k.line(a[0], a[1], exposure)
		default:
			k.line(a[0], a[1], nil)
		}
	}
}

// database inspects the database without changing it. It returns no schema and no error if there is no database yet.
func (k *check) database(ctx context.Context) (schema *store.Schema, words string, err error) {
	if !store.IsPostgres(k.config.DB) {
		switch _, err := os.Stat(k.config.DB); {
		case errors.Is(err, fs.ErrNotExist):
			if err := k.config.checkDatabaseDir(); err != nil {
				return nil, "", err
			}
			return nil, ", will be created", writable(filepath.Dir(k.config.DB))
		case err != nil:
			return nil, "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	schema, err = store.Inspect(ctx, k.config.DB)
	if err != nil {
		return nil, "", err
	}
	words = fmt.Sprintf(", version %d", schema.Version)
	if schema.Version < schema.Newest {
		words += fmt.Sprintf(", will be upgraded to %d", schema.Newest)
	}
	words += fmt.Sprintf(", %d token", schema.Tokens)
	if schema.Tokens != 1 {
		words += "s"
	}
	return schema, words, nil
}

// certificate reads the certificate and its key.
func (k *check) certificate() (string, error) {
	if k.config.TLSCert == "" {
		return "no", nil
	}
	pair, err := tls.LoadX509KeyPair(k.config.TLSCert, k.config.TLSKey)
	if err != nil {
		return k.config.TLSCert, err
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return k.config.TLSCert, err
	}
	words := fmt.Sprintf("%s, until %s", k.config.TLSCert, leaf.NotAfter.Format(time.DateOnly))
	if time.Now().After(leaf.NotAfter) {
		return words, &warning{errors.New("the certificate has expired")}
	}
	return words, nil
}

// writable returns an error if no files can be created in a directory or, if it does not exist, in its nearest existing
// parent.
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

// publishing reports how answers would be published, and any obstacle. schema is nil if there is no database, or it is
// not readable.
func (k *check) publishing(ctx context.Context, schema *store.Schema, readable bool) {
	p := &k.config.Publish
	level := p.number()
	k.unused()
	if level > 0 {
		origin, err := k.config.origin()
		publisher := k.config.publisher(origin)
		publisher.Keys = keyring.Memory(nil)
		if err == nil {
			err = checkPublisher(publisher)
		}
		k.line("publish", fmt.Sprintf("level %d, as %s at %s", level, publisher.Agent(), origin), err)
		held := "JSON answers are not held for it"
		if p.HeaderBuffer > 0 {
			held = fmt.Sprintf("JSON answers of up to %d bytes are held for it", p.HeaderBuffer)
		}
		k.line("header", "Citation-Source as "+p.Header+"; "+held, nil)
		k.contact()
		if p.IncidentEndpoint != "" {
			k.line("incidents", "accepted at "+Redacted(p.IncidentEndpoint), nil)
		}
		if level > 1 {
			runs := "end when their agent reports it"
			if p.RunIdle > 0 {
				runs = fmt.Sprintf("end after %s without a call", p.RunIdle)
			}
			k.line("runs", runs, nil)
			k.line("excerpts", p.Excerpts, nil)
			if p.ResolveRedirects {
				k.line("redirects", "resolved once", nil)
			}
			ring, words, err := k.keys()
			k.line("keys", words, err)
			if ring != nil && readable {
				words, err = k.log(ctx, origin, ring, schema)
				k.line("log", words, err)
			}
		}
	}
	if len(p.Allow) > 0 {
		k.line("networks", "public ones and "+p.Allow.String(), nil)
	}
}

// contact reports the published address for disputes, and a [warning] if there is none.
func (k *check) contact() {
	if c := k.config.Publish.Contact; c != "" {
		k.line("contact", c, nil)
		return
	}
	k.line("contact", "none", &warning{
		Usagef("set contact to an address for disputes", "nobody can be reached about a published answer"),
	})
}

// unused reports publishing settings that have no effect.
func (k *check) unused() {
	p, level := &k.config.Publish, k.config.Publish.number()
	none := Defaults().Publish
	var unused []string
	for _, s := range []struct {
		name  string
		said  bool
		level int // the lowest level at which it has an effect
	}{
		{"citation-header", p.Header != none.Header, 1},
		{"header-buffer", p.HeaderBuffer != gateway.DefaultHeaderBuffer, 1},
		{"agent-id", p.AgentID != "", 1},
		{"contact", p.Contact != "", 1},
		{"incident-endpoint", p.IncidentEndpoint != "", 1},
		{"publish-excerpts", p.Excerpts != none.Excerpts, 2},
		{"run-idle", p.RunIdle != none.RunIdle, 2},
		{"resolve-redirects", p.ResolveRedirects, 2},
	} {
		if s.said && level < s.level {
			unused = append(unused, s.name)
		}
	}
	if len(unused) == 0 {
		return
	}
	have, needs := "has", "--publish"
	if len(unused) > 1 {
		have = "have"
	}
	if level > 0 {
		needs += " 2 or 3"
	}
	k.Hint(fmt.Sprintf("%s %s no effect without %s", strings.Join(unused, ", "), have, needs))
}

// keys reports which keys would sign, and a [warning] if manifests would wait for one. If the server would create one
// for the log, the returned ring is a temporary one.
func (k *check) keys() (ring *keyring.Ring, words string, err error) {
	uses := []keyring.Use{keyring.Log}
	if k.config.Publish.number() == 3 {
		uses = []keyring.Use{keyring.Manifest, keyring.Log}
	}
	if ring, err = k.config.OpenKeyring(k.Env); err != nil {
		return nil, "", err
	}
	var all []string
	var wait error
	for _, use := range uses {
		key, _, err := ring.Signer(use)
		isNew := errors.Is(err, keyring.ErrNoKey) &&
			!slices.ContainsFunc(ring.List(), func(k keyring.Key) bool { return k.Use == use })
		switch {
		case isNew:
			all = append(all, fmt.Sprintf("%s: will be created", use))
		case errors.Is(err, keyring.ErrNoKey) && use == keyring.Manifest: // the server starts, and manifests wait
			all = append(all, fmt.Sprintf("%s: none can sign", use))
			wait = &warning{unusableKey(use, err)}
		case err != nil:
			return nil, strings.Join(append(all, string(use)), ", "), unusableKey(use, err)
		default:
			all = append(all, fmt.Sprintf("%s: %s", use, key.ID))
		}
		if isNew && use == keyring.Log {
			ring = keyring.Memory(nil)
			if _, err := ring.New(&keyring.NewOptions{Use: keyring.Log}); err != nil {
				return nil, "", err
			}
		}
	}
	return ring, strings.Join(all, ", "), wait
}

// log opens the transparency log as a server does but without writing, to compare its checkpoint with the copy beside
// the database.
func (k *check) log(
	ctx context.Context, origin string, ring *keyring.Ring, schema *store.Schema,
) (words string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	name := logName(origin)
	if schema != nil && schema.Version > 0 && schema.Version < schema.Newest {
		return name + ", not checked before the database is upgraded", nil
	}
	var tiles tlog.Tiles = &tlog.MemoryTiles{}
	if schema != nil && schema.Version > 0 {
		s, err := store.Open(ctx, k.config.DB, &store.Options{Wait: storeWait})
		if err != nil {
			return name, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		tiles = s.Tiles()
	}
	// Opening a log updates the copy of its checkpoint, so work on a copy of that.
	dir, err := os.MkdirTemp("", "ibid-check-")
	if err != nil {
		return name, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, copied := filepath.Join(k.config.Data, checkpointFile), filepath.Join(dir, checkpointFile)
	if in, err := os.Open(file); err == nil {
		checkpoint, err := io.ReadAll(io.LimitReader(in, tlog.MaxCheckpoint+1))
		if err = errors.Join(err, in.Close(), os.WriteFile(copied, checkpoint, 0o600)); err != nil {
			return name, err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return name, err
	}
	_, err = tlog.Open(ctx, &tlog.Options{Origin: name, Tiles: readOnlyTiles{tiles}, Keys: logKeys(ring), File: copied})
	if err != nil {
		said := errors.New(strings.ReplaceAll(err.Error(), copied, file))
		if errors.Is(err, tlog.ErrForeign) {
			return name, &usageError{said, k.config.foreignLogHint()}
		}
		return name, said
	}
	size, checkpoint, err := tiles.Head(ctx)
	switch {
	case err != nil:
		return name, err
	case checkpoint == nil:
		return name + ", will be created", nil
	case size == 1:
		return name + ", 1 entry", nil
	}
	return fmt.Sprintf("%s, %d entries", name, size), nil
}

// readOnlyTiles are the tiles of a log that is not written to.
type readOnlyTiles struct{ tlog.Tiles }

// Update reads what an Update reads, but discards the result.
func (t readOnlyTiles) Update(ctx context.Context, _ []tlog.Leaf, grow func(*tlog.Before) (*tlog.Growth, error)) error {
	size, checkpoint, err := t.Head(ctx)
	if err != nil {
		return err
	}
	_, err = grow(&tlog.Before{
		Size: size, Checkpoint: checkpoint, Known: map[tlog.Leaf]int64{},
		Hashes: func(indexes []int64) ([]tlog.Hash, error) { return t.Hashes(ctx, indexes) },
	})
	return err
}
