package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/journal"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/watch"
)

// daemon is a gateway with all that belongs to it.
type daemon struct {
	config  *config
	world   world
	log     *slog.Logger
	metrics *prometheus.Registry
	tracer  trace.Tracer // nil: no traces

	store   *store.Store
	journal *journal.Journal
	bus     *bus.Bus
	guard   *gateway.Guard
	gateway *gateway.Gateway
	api     *api.API

	backfill    *watch.Backfill                       // nil: no rules
	choose      func(run string) *experiment.Strategy // nil: no strategy
	attribution *watch.Attribution                    // likewise
	attributing attribution
	people      people
	listener    net.Listener // where it serves; nil: it opens one
	demo        *demoSite    // nil: it is no demo

	own   map[string]bool // the first segments of paths that are ibid's
	close []func() error  // what was opened, the first last
}

// newDaemon opens everything. What was opened before an error is closed.
func newDaemon(ctx context.Context, c *config, w world) (*daemon, error) {
	// There net/http shows the first bytes of what an upstream sends unasked: an answer, perhaps.
	stdlog.SetOutput(io.Discard)
	d := &daemon{
		config:  c,
		world:   w,
		log:     newLogger(w.err, c.quiet),
		metrics: prometheus.NewRegistry(),
		own:     map[string]bool{"": true},
	}
	for _, name := range gateway.Reserved() {
		d.own[name] = true
	}
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(err, d.shut())
	}
	return d, nil
}

// open opens what the gateway works with, then makes it.
func (d *daemon) open(ctx context.Context) error {
	d.metrics.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if err := d.openTraces(ctx); err != nil {
		return err
	}
	if err := d.config.prepareData(); err != nil {
		return err
	}
	var err error
	if d.store, err = store.Open(
		ctx, d.config.db, &store.Options{Logger: d.log, Track: d.config.attribution.recheck > 0},
	); err != nil {
		return fmt.Errorf("opening the database %s: %w", redacted(d.config.db), err)
	}
	d.close = append(d.close, d.store.Close)
	if d.journal, err = journal.Open(d.journalDir(), &journal.Options{Logger: d.log}); err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	d.close = append(d.close, d.journal.Close)
	if d.bus, err = bus.Open(ctx, d.config.nats, &bus.Options{Logger: d.log}); err != nil {
		return fmt.Errorf("connecting to NATS at %s: %w", redacted(d.config.nats), err)
	}
	d.close = append(d.close, d.bus.Close)
	d.guard = gateway.NewGuard(&gateway.GuardOptions{
		Store: d.store, Bootstrap: d.config.bootstrap, Origins: d.config.origins, Hosts: d.config.hosts(),
		Key: []byte(d.config.streamKey), Logger: d.log,
	})
	if err := d.openAttribution(ctx); err != nil {
		return err
	}
	return d.make() //nolint:contextcheck // what it makes outlives ctx
}

func (d *daemon) journalDir() string { return filepath.Join(d.config.data, "journal") }

// make makes the gateway and the API.
func (d *daemon) make() error {
	var err error
	if rules := d.config.backfillRules(d.world); len(rules) > 0 {
		d.backfill, err = watch.NewBackfill(&watch.BackfillOptions{
			Rules: rules, Logger: d.log, Metrics: d.metrics,
			Store: func(ctx context.Context, call *store.Call) error { return d.gateway.Keep(ctx, call) },
		})
		if err != nil {
			return err
		}
	}
	if err := d.makeAttribution(); err != nil {
		return err
	}
	d.gateway, err = gateway.New(&gateway.Options{
		Upstreams: d.config.upstreamList(), Store: d.store, Bus: d.bus, Journal: d.journal, Guard: d.guard,
		Capture: gateway.Mode(d.config.capture.value), CaptureWait: d.config.captureWait,
		Prompts: gateway.Prompts(d.config.prompts.value), KeepEncoding: d.config.encoding,
		Damaged: filepath.Join(d.config.data, "damaged"), Proxy: http.ProxyFromEnvironment,
		Logger: d.log, Metrics: d.metrics, Tracer: d.tracer, Backfill: d.backfill,
		Attribution: d.attribution, Citing: d.attributing.citing,
	})
	if err != nil {
		return err
	}
	d.api, err = api.New(&api.Options{
		Store:      d.store,
		Guard:      d.guard,
		Gateway:    d.gateway,
		Bus:        d.bus,
		Logger:     d.log,
		Metrics:    d.metrics,
		Version:    readBuild().Version,
		Strategies: d.config.strategyList(),
		Choose:     d.choose,
		Publisher:  d.attributing.publisher,
		Verifier:   d.verifier,
	})
	if err != nil {
		return err
	}
	return d.makePeople()
}

// makeAttribution makes what finds citations for answers that came without, if a strategy was named.
func (d *daemon) makeAttribution() error {
	choose, err := d.config.chooseStrategy()
	if err != nil || choose == nil {
		return err
	}
	d.choose = choose
	checkers, err := d.makeCheckers()
	if err != nil {
		return err
	}
	d.attribution, err = watch.NewAttribution(&watch.AttributionOptions{
		Choose: d.choose, Checkers: checkers, Trail: d.store.Trail, Logger: d.log, Metrics: d.metrics,
		Store: func(ctx context.Context, call *store.Call) error { return d.gateway.Keep(ctx, call) },
	})
	return err
}

// makeCheckers makes the checkers of the strategies that are in use.
func (d *daemon) makeCheckers() (map[string]support.Checker, error) {
	checkers := map[string]support.Checker{}
	for _, s := range d.config.chosen() {
		made, err := d.config.checker(&s, d.world)
		if err != nil {
			return nil, err
		}
		if made != nil {
			checkers[s.ID()] = made
		}
	}
	return checkers, nil
}

// shut closes what was opened, in the other order.
func (d *daemon) shut() error {
	var all []error
	for _, closeOne := range slices.Backward(d.close) {
		all = append(all, closeOne())
	}
	return errors.Join(all...)
}

// run serves until ctx ends. It calls ready before it says that it listens. At the end it lets the calls under way end,
// and closes everything.
func (d *daemon) run(ctx context.Context, ready func(ctx context.Context, url string) error) (err error) {
	defer func() { err = errors.Join(err, d.shut()) }()
	server, err := d.server()
	if err != nil {
		return err
	}
	l, err := d.listen(ctx)
	if err != nil {
		return err
	}
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var group sync.WaitGroup
	failed := make(chan error, 1)
	start := func(name string, f func(context.Context) error) {
		group.Go(func() {
			if err := f(work); err != nil {
				select {
				case failed <- fmt.Errorf("%s: %w", name, err):
				default: // the first one counts
				}
			}
		})
	}
	d.start(work, start)
	start("serving", func(context.Context) error { return serveOn(server, l) })
	if ready != nil {
		if err = ready(ctx, d.url(l)); ctx.Err() != nil {
			err = nil // it was told to stop
		}
	}
	if err == nil {
		err = d.announce(d.url(l))
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	d.stop(ctx, server)
	end()
	group.Wait()
	return err
}

// start starts what works in the background.
func (d *daemon) start(ctx context.Context, start func(name string, f func(context.Context) error)) {
	start("indexing", d.gateway.Run)
	start("relaying events", func(ctx context.Context) error { return d.bus.Relay(ctx, d.store) })
	for _, name := range d.config.keep.strangers(d.config.settings) {
		d.log.LogAttrs(
			ctx, slog.LevelWarn, "retention names no provider", slog.String("name", name),
			slog.String("hint", strangerHint),
		)
	}
	retention := &watch.Retention{
		Store:  d.store,
		Keep:   d.config.keep.rules(),
		Logger: d.log,
	}
	start("removing old answers", retention.Run)
	if d.backfill != nil {
		start("asking again", d.backfill.Run)
	}
	if d.attribution != nil {
		start("attributing answers", d.attribution.Run)
	}
	d.attributing.start(start)
}

// server returns the server for everything.
func (d *daemon) server() (*http.Server, error) {
	o := &gateway.ServerOptions{Logger: d.log}
	if d.config.tlsCert != "" {
		certificate, err := tls.LoadX509KeyPair(d.config.tlsCert, d.config.tlsKey)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate: %w", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	s := gateway.NewServer(d.config.listen, d, o)
	s.RegisterOnShutdown(d.api.Close)
	s.RegisterOnShutdown(d.people.page.Close)
	return s, nil
}

// ServeHTTP hands a request to the API or, where the path begins with an upstream's name, to the gateway.
func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if d.own[first] {
		d.handler(first, r).ServeHTTP(w, r)
		return
	}
	if !d.guard.CORS(w, r) {
		d.gateway.ServeHTTP(w, r)
	}
}

// serveOn serves until the server is shut down.
func serveOn(s *http.Server, l net.Listener) error {
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop lets calls end, and their answers reach the store.
func (d *daemon) stop(ctx context.Context, s *http.Server) {
	d.log.LogAttrs(ctx, slog.LevelInfo, "stopping", slog.Duration("drain", d.config.drain))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.config.drain)
	defer cancel()
	var talks sync.WaitGroup
	if d.people.chat != nil { // its streams would hold up the server, and the gateway waits for its calls
		talks.Go(func() { _ = d.people.chat.Close(ctx) }) // that some were broken off, the gateway says as well
	}
	defer talks.Wait()
	if err := gateway.Shutdown(ctx, s, d.gateway); err != nil {
		d.log.LogAttrs(ctx, slog.LevelWarn, "stopped before everything had ended", slog.Any("error", err))
	}
}
