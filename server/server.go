package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
	"github.com/ibidhq/ibid/watch"
)

// Options are provided by the program that runs the server. The zero value is ready to use.
type Options struct {
	Logger  *slog.Logger // nil disables logging
	Env     Env          // provides the providers' keys; nil means none
	Version string       // of the program, for reports and traces

	// Handlers serve additional paths, by first segment.
	Handlers map[string]http.Handler
	// Demo is additional content of a demo's page; nil unless it is one.
	Demo *page.Demo
	// Listener is where Run serves; nil means Config.Listen.
	Listener net.Listener
}

// Server is a complete ibid server. Its methods are safe for concurrent use, except for Run and Close.
type Server struct {
	Store   *store.Store
	Bus     *bus.Bus
	Guard   *gateway.Guard
	Gateway *gateway.Gateway
	API     *api.API
	Chat    *chat.Chat // nil if no provider can be asked
	Page    *page.Page
	Metrics *prometheus.Registry

	config  *Config
	options Options
	log     *slog.Logger
	tracer  trace.Tracer // nil disables traces

	crowd       atomic.Pointer[gateway.Crowd] // nil before it serves, or without a limit of connections
	journal     *journal.Journal
	fetcher     *snapshot.Fetcher
	texts       *snapshot.Texts
	checker     support.Checker
	publishing  publishing
	backfill    *watch.Backfill    // nil without rules
	attribution *watch.Attribution // nil without a strategy
	judging     *watch.Judging     // nil without a judge
	checks      []gateway.Check    // of the citations of each answer
	alerts      *watch.Alerts
	choose      func(run string) *experiment.Strategy // likewise
	mcp         http.Handler

	own   map[string]bool // first path segments that are not upstreams
	close []func() error  // functions that close what was opened, run in reverse order
}

// Open opens everything in a resolved configuration. On an error it closes what it has opened. The caller must call
// Run, or Close if it only uses the handler.
func Open(ctx context.Context, c *Config, o *Options) (*Server, error) {
	s := &Server{config: c, Metrics: prometheus.NewRegistry(), own: map[string]bool{"": true}}
	if o != nil {
		s.options = *o
	}
	if s.log = s.options.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.options.Env == nil {
		s.options.Env = func(string) (string, bool) { return "", false }
	}
	for _, name := range gateway.Reserved() {
		s.own[name] = true
	}
	for name := range s.options.Handlers {
		s.own[name] = true
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// endWait is how long a server waits for the one before it, which the system may take seconds to end after SIGKILL.
const endWait = 5 * time.Second

func (s *Server) open(ctx context.Context) error {
	c := s.config
	s.Metrics.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if err := s.openTraces(ctx); err != nil {
		return err
	}
	// Refuse what listen would refuse for a new database before creating one.
	if _, err := os.Stat(c.DB); s.options.Listener == nil && !store.IsPostgres(c.DB) && errors.Is(err, fs.ErrNotExist) {
		if err := c.CheckExposure(false); err != nil {
			return err
		}
	}
	err := c.makeData()
	if err == nil {
		err = c.MakeDatabaseDir()
	}
	if err != nil {
		return err
	}
	if s.Bus, err = bus.Open(ctx, c.NATS, s.log); err != nil {
		return fmt.Errorf("connecting to NATS at %s: %w", Redacted(c.NATS), err)
	}
	s.close = append(s.close, s.Bus.Close)
	s.Store, err = store.Open(ctx, c.DB, &store.Options{
		Logger: s.log, Track: c.recheck().Every > 0, Later: true, Committed: s.Bus.Committed(),
		Serve: endWait,
	})
	if err != nil {
		return fmt.Errorf("opening the database %s: %w", Redacted(c.DB), err)
	}
	s.close = append(s.close, s.Store.Close)
	//nolint:contextcheck // the journal outlives ctx
	if s.journal, err = journal.Open(c.JournalDir(), &journal.Options{Logger: s.log, Wait: endWait}); err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	s.close = append(s.close, s.journal.Close)
	flag, _ := c.exposed()
	s.Guard = gateway.NewGuard(&gateway.GuardOptions{
		Store: s.Store, Bootstrap: c.BootstrapToken, Origins: c.Origins,
		Exposed: flag != "", Key: []byte(c.StreamKey), Copy: filepath.Join(c.Data, tokensFile), Logger: s.log,
		Refused: s.auditRefused(),
	})
	s.auditSettings(ctx)
	s.fetcher = snapshot.NewFetcher(&snapshot.FetchOptions{Allow: c.Publish.Allow, Log: s.log})
	s.close = append(s.close, s.fetcher.Close)
	s.texts, s.checker = &snapshot.Texts{}, support.Remember(&support.Lexical{}, rememberedVerdicts)
	if err := s.openPublishing(ctx); err != nil {
		return err
	}
	return s.assemble() //nolint:contextcheck // the result outlives ctx
}

// assemble creates the gateway and the other handlers.
func (s *Server) assemble() error {
	c, o := s.config, &s.options
	keep := func(ctx context.Context, call *store.Call) error { return s.Gateway.Keep(ctx, call) }
	var err error
	if rules := c.backfillRules(o.Env); len(rules) > 0 {
		s.backfill, err = watch.NewBackfill(&watch.BackfillOptions{
			Rules: rules, Logger: s.log, Metrics: s.Metrics, Store: keep,
		})
		if err != nil {
			return err
		}
	}
	if s.choose, err = c.chooseStrategy(); err != nil {
		return err
	}
	if s.choose != nil {
		checkers := map[string]support.Checker{}
		for _, strategy := range c.chosenStrategies() {
			checker, err := c.StrategyChecker(&strategy, o.Env)
			if err != nil {
				return err
			}
			if checker != nil {
				checkers[strategy.ID()] = checker
			}
		}
		s.attribution, err = watch.NewAttribution(&watch.AttributionOptions{
			Choose: s.choose, Checkers: checkers, Trail: s.Store.Trail, Logger: s.log, Metrics: s.Metrics, Store: keep,
		})
		if err != nil {
			return err
		}
	}
	if c.Judge != "" {
		checker, meter, err := c.buildJudge(o.Env, &watch.Verdicts{Memory: s.Store.Memory, Logger: s.log})
		if err != nil {
			return err
		}
		s.judging, err = watch.NewJudging(&watch.JudgingOptions{
			Checker: checker, Spent: meter.Spent, Store: keep, Logger: s.log, Metrics: s.Metrics,
		})
		if err != nil {
			return err
		}
		s.checks = append(s.checks, s.judging)
	}
	s.Gateway, err = gateway.New(&gateway.Options{
		Upstreams: c.upstreams(), Mappings: c.Mappings,
		Store: s.Store, Bus: s.Bus, Journal: s.journal, Guard: s.Guard,
		Capture: gateway.Mode(c.Capture), CaptureWait: c.CaptureWait,
		Prompts: gateway.Prompts(c.Prompts), KeepEncoding: c.KeepEncoding,
		Damaged: filepath.Join(c.Data, "damaged"), Proxy: http.ProxyFromEnvironment,
		Logger: s.log, Metrics: s.Metrics, Tracer: s.tracer, Backfill: s.backfill,
		Attribution: s.attribution, Checks: s.checks, Citing: s.publishing.citing, Tenants: c.tenants(),
		Alert:  func(a *store.Alert) { s.alerts.Add(a) },
		Limits: gateway.Limits{Memory: s.boundMemory(c.Memory)},
	})
	if err != nil {
		return err
	}
	if err := s.openAlerts(); err != nil {
		return err
	}
	pending := func(tenant, conversation string) []*store.Call {
		if s.Chat == nil {
			return nil
		}
		return s.Chat.Pending(tenant, conversation)
	}
	s.API, err = api.New(&api.Options{
		Store: s.Store, Guard: s.Guard, Gateway: s.Gateway, Bus: s.Bus, Logger: s.log, Metrics: s.Metrics,
		Version: o.Version, Strategies: c.AllStrategies(), Choose: s.choose, Mappings: c.Mappings,
		Publisher: s.publishing.publisher, Verifier: s.verifier, Pending: pending, Crowded: s.crowded,
	})
	if err != nil {
		return err
	}
	if providers := c.chatProviders(o.Env); len(providers) > 0 {
		s.Chat, err = chat.New(&chat.Options{
			Gateway: s.Gateway, Guard: s.Guard, Store: s.Store, Providers: providers,
			Late: c.ChatLate, Logger: s.log, Metrics: s.Metrics,
		})
		if err != nil {
			return err
		}
	}
	s.mcp = mcp.New(&mcp.Options{
		Store: s.Store, Gateway: s.Gateway, Verify: s.API.Verify, Version: o.Version, Logger: s.log,
	}).Handler(s.Guard)
	var upstreams []page.Upstream
	for _, name := range c.upstreamNames() {
		upstreams = append(upstreams, page.Upstream{Name: name, Provider: c.Upstreams[name].Provider})
	}
	s.Page, err = page.New(&page.Options{
		Store: s.Store, Guard: s.Guard, API: s.API, Gateway: s.Gateway, Bus: s.Bus, Chat: s.Chat, Verifies: true,
		Recheck:    s.publishing.recheck,
		Strategies: c.AllStrategies(), Logger: s.log, Version: o.Version, PublicURL: c.PublicURL,
		Upstreams: upstreams, Demo: o.Demo,
	})
	return err
}

// verifier returns a new verifier for a tenant.
func (s *Server) verifier(tenant string) *verify.Verifier {
	return &verify.Verifier{
		Fetcher:    s.fetcher,
		Texts:      s.texts,
		Memory:     s.Store.Memory(tenant),
		Copies:     s.Store.Copies(tenant),
		Checker:    s.checker,
		Name:       s.config.verifierName(),
		Version:    s.options.Version,
		SourceTTL:  -1,
		FailureTTL: -1, // report the current state
	}
}

// rememberedVerdicts is how many verdicts on claims are kept for when an answer is verified again, of about 1 KB each.
const rememberedVerdicts = 20_000

// traceFlush bounds sending the last traces.
const traceFlush = 5 * time.Second

// openTraces starts sending traces if the configuration has a receiver.
func (s *Server) openTraces(ctx context.Context) error {
	if s.config.OTLP == "" {
		return nil
	}
	background := context.WithoutCancel(ctx)
	client, err := newTraceClient(s.config.OTLP, s.options.Version, s.options.Env)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "traces", slog.Any("error", err))
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return fmt.Errorf("preparing traces for %s: %w", Redacted(s.config.OTLP), err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		s.log.LogAttrs(background, slog.LevelWarn, "traces could not be sent", slog.Any("error", err))
	}))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(
		resource.NewSchemaless(
			attribute.String("service.name", "ibid"), attribute.String("service.version", s.options.Version),
		),
	))
	s.tracer = provider.Tracer("github.com/ibidhq/ibid")
	s.close = append(s.close, func() error {
		ctx, cancel := context.WithTimeout(background, traceFlush)
		defer cancel()
		return provider.Shutdown(ctx)
	})
	return nil
}

// Close closes what was opened, in reverse order. Run calls it.
func (s *Server) Close() error {
	var all []error
	for _, closeOne := range slices.Backward(s.close) {
		all = append(all, closeOne())
	}
	s.close = nil
	return errors.Join(all...)
}

// ServeHTTP passes a request to the handler of its path, or to the gateway if the path begins with an upstream's name.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	more := s.options.Handlers[first]
	accepted := r.Header.Get("Accept")
	// A program that asks for it gets the list of the API.
	isProgram := strings.HasPrefix(accepted, "application/json") || strings.HasPrefix(accepted, "text/plain")
	switch {
	case !s.own[first]:
		if !s.Guard.CORS(w, r) {
			s.Gateway.ServeHTTP(w, r)
		}
	case first == "v1" && r.URL.Path != "/v1/chat" && s.Gateway.MissingUpstream(r) != nil:
		if !s.Guard.CORS(w, r) {
			s.Gateway.ServeHTTP(w, r) // responds with an error to those who may know the upstreams
		}
	case first == "ui", first == "ibid.js", first == "favicon.ico", r.URL.Path == "/" && !isProgram:
		s.Page.ServeHTTP(w, r)
	case more != nil:
		more.ServeHTTP(w, r)
	case r.URL.Path == "/mcp":
		s.mcp.ServeHTTP(w, r)
	case s.Chat != nil && (r.URL.Path == "/v1/chat" || strings.HasPrefix(r.URL.Path, "/v1/chat/")):
		s.Chat.ServeHTTP(w, r)
	default:
		s.API.ServeHTTP(w, r)
	}
}

// Listen listens on an address.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, Usagef(
			"--listen 127.0.0.1:0 picks a free port", "listening on %s: the address is already in use", address,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}

// Run serves until ctx ends or an essential part fails. Once it is listening it calls ready, unless it is nil, with the
// server's URL; an error of ready stops it. When it stops, it lets calls in progress end, within Config.Drain, and
// closes everything.
func (s *Server) Run(ctx context.Context, ready func(ctx context.Context, url string) error) (err error) {
	defer func() { err = errors.Join(err, s.Close()) }()
	httpServer, err := s.httpServer()
	if err != nil {
		return err
	}
	l, err := s.listen(ctx)
	if err != nil {
		return err
	}
	l = s.boundConnections(ctx, httpServer, l)
	work, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var group sync.WaitGroup
	failed := make(chan error, 1)
	start := func(name string, run func(context.Context) error) {
		group.Go(func() {
			if err := run(work); err != nil {
				select {
				case failed <- fmt.Errorf("%s: %w", name, err):
				default: // the first error counts
				}
			}
		})
	}
	s.startWork(work, start)
	start("serving", func(context.Context) error {
		serve := httpServer.Serve
		if httpServer.TLSConfig != nil {
			serve = func(l net.Listener) error { return httpServer.ServeTLS(l, "", "") }
		}
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	if ready != nil {
		if err = ready(ctx, s.url(l)); ctx.Err() != nil {
			err = nil // it was stopped
		}
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	_ = l.Close() // waiting clients can go to another node
	s.stop(ctx, httpServer)
	end()
	group.Wait()
	return err
}

// startWork starts the background workers.
func (s *Server) startWork(ctx context.Context, start func(name string, run func(context.Context) error)) {
	start("indexing", s.Gateway.Run)
	start("copying tokens", s.Guard.Run)
	start("relaying events", func(ctx context.Context) error { return s.Bus.Relay(ctx, s.Store) })
	for _, name := range s.config.unknownProviders() {
		s.log.LogAttrs(
			ctx, slog.LevelWarn, "retention names an unknown provider", slog.String("name", name),
			slog.String("hint", unknownProviderHint),
		)
	}
	retention := &watch.Retention{Store: s.Store, Keep: s.config.Retention.Rules(), Logger: s.log}
	start("removing old answers", retention.Run)
	start("sending alerts", s.alerts.Run)
	if s.backfill != nil {
		start("asking again", s.backfill.Run)
	}
	if s.attribution != nil {
		start("attributing answers", s.attribution.Run)
	}
	if s.judging != nil {
		start("judging citations", s.judging.Run)
	}
	if s.publishing.worker != nil {
		start("publishing manifests", s.publishing.worker.Run)
	}
	switch {
	case s.publishing.first != nil:
		s.log.LogAttrs(
			ctx, slog.LevelInfo, "the web sources of each answer are read once",
			slog.String("hint", "--recheck off turns it off, --recheck 24h also reads them again"),
		)
		start("checking answers", s.publishing.first.Run)
	case s.publishing.freshness != nil:
		start("checking sources again", s.publishing.freshness.Run)
	}
}

// httpServer returns the HTTP server for everything.
func (s *Server) httpServer() (*http.Server, error) {
	o := &gateway.ServerOptions{Logger: s.log}
	if s.config.TLSCert != "" {
		certificate, err := tls.LoadX509KeyPair(s.config.TLSCert, s.config.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate: %w", err)
		}
		o.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	}
	hs := gateway.NewServer(s.config.Listen, s, o)
	hs.RegisterOnShutdown(s.API.Close)
	hs.RegisterOnShutdown(s.Page.Close)
	return hs, nil
}

// listen opens the listen address, unless that would expose a gateway without tokens.
func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	tokens, err := s.Store.Tokens(ctx)
	switch {
	case errors.Is(err, store.ErrUnreachable): // the guard only accepts tokens that it knows
		_, err = s.config.isLocal()
	case err != nil:
		err = fmt.Errorf("reading the tokens: %w", err)
	default:
		err = s.config.CheckExposure(len(tokens) > 0)
	}
	if err != nil {
		return nil, err
	}
	if s.options.Listener != nil {
		return s.options.Listener, nil
	}
	return Listen(ctx, s.config.Listen)
}

// CheckExposure refuses a listen address or public URL where others can reach a server without tokens.
func (c *Config) CheckExposure(tokens bool) error {
	if _, err := c.isLocal(); err != nil {
		return err
	}
	_, by := c.exposed()
	if by == "" || tokens || c.BootstrapToken != "" {
		return nil
	}
	return Usagef(
		"`ibid token new --name FIRST --scope all"+c.storeFlags()+"` creates one; in containers, set "+
			"IBID_BOOTSTRAP_TOKEN",
		"%s can be reached from elsewhere, but there is no access token", by,
	)
}

// exposed returns how others than the users of this machine reach the server: the flag and its value, which is the
// listen address or the public URL. Both are empty if they do not.
func (c *Config) exposed() (flag, by string) {
	if local, err := c.isLocal(); err == nil && !local {
		return "listen", c.Listen
	}
	if u, err := ParseWebURL(c.PublicURL); err == nil && !gateway.IsLoopbackHost(u.Host) {
		return "public-url", c.PublicURL
	}
	return "", ""
}

// isLocal reports whether the listen address can be reached only from this machine.
func (c *Config) isLocal() (bool, error) {
	address, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return false, listenError(c.Listen, err)
	}
	return address.IP.IsLoopback(), nil
}

// storeFlags returns the flags that another command needs to find the database of a resolved configuration, each
// preceded by a space, or "" if it needs none.
func (c *Config) storeFlags() string {
	switch {
	case c.File != "":
		return " --config " + c.File
	case store.IsPostgres(c.DB):
		return " --db postgres://…"
	case c.DB != filepath.Join(c.Data, databaseFile):
		return " --db " + c.DB
	case c.namedData:
		return " --data " + c.Data
	}
	return ""
}

// url returns the URL of a listener.
func (s *Server) url(l net.Listener) string {
	scheme := "http"
	if s.config.TLSCert != "" {
		scheme = "https"
	}
	return scheme + "://" + strings.Replace(l.Addr().String(), "[::]", "0.0.0.0", 1)
}

// stop lets calls end, and their answers reach the store.
func (s *Server) stop(ctx context.Context, hs *http.Server) {
	s.log.LogAttrs(ctx, slog.LevelInfo, "stopping", slog.Duration("drain", s.config.Drain))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.Drain)
	defer cancel()
	var asked sync.WaitGroup
	if s.Chat != nil { // its streams would delay the shutdown, and the gateway waits for its calls
		asked.Go(func() { _ = s.Chat.Close(ctx) }) // the gateway reports aborted calls
	}
	defer asked.Wait()
	if err := gateway.Shutdown(ctx, hs, s.Gateway); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "stopped before everything had ended", slog.Any("error", err))
	}
}

// Routes returns all endpoints of a server except the pages for people, as data; the handlers must not be called. Those
// of the gateway and MCP are described here because they have no tables.
func Routes() []httpx.Route {
	forPeople := func(rt httpx.Route) bool { return rt.Access != httpx.Public }
	return slices.Concat(api.Routes(), chat.Routes(), slices.DeleteFunc(page.Routes(), forPeople), []httpx.Route{
		{
			Method: "POST", Pattern: "/{upstream}/{path...}", Scope: store.ScopeProxy,
			Doc: "Calls a provider; its own path follows the upstream's name. Request, response and errors are the " +
				"provider's. The response headers Ibid-Answer and Ibid-Run identify the stored answer. Other methods " +
				"are passed through as well.",
			Body: []string{"application/json", ""}, MaxBody: -1,
			Media: []string{"application/json", "text/event-stream"},
			Problems: []string{
				gateway.CodeNotFound, gateway.CodeTooMany, gateway.CodeUpstream, gateway.CodeUpstreamSlow,
			},
		},
		{
			Method: "POST", Pattern: "/mcp",
			Doc:  "Serves the Model Context Protocol over streamable HTTP. Each tool has its own scope.",
			Body: []string{"application/json"}, MaxBody: mcp.MaxMessage,
			Media: []string{"application/json", "text/event-stream"}, Status: []int{200, 202},
		},
	})
}
