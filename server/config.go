package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
)

// Config is the configuration of a server. Start from [Defaults]; the zero value is not usable.
type Config struct {
	File string // --config: the YAML file with more settings; empty if there is none

	Listen      string // HOST:PORT; port 0 picks a free one
	AddressFile string // the file that receives the URL once the server listens; empty for none
	Data        string // directory of the journal, keys and database; empty means below the user's state directory
	DB          string // an SQLite file or postgres://…; empty means ibid.db in Data
	NATS        string // nats://host:4222,…; empty: this node is the only one
	PublicURL   string // where others reach the server; empty if it is not public
	TLSCert     string // PEM file; empty means plain HTTP
	TLSKey      string
	Origins     Words // web origins whose pages may make requests
	Drain       time.Duration
	OTLP        string // URL that traces are sent to; empty disables them
	Quiet       bool   // log only warnings and errors

	Upstreams    map[string]*Upstream // by name. Resolve adds the providers with a well-known address
	Capture      string               // a [gateway.Mode]
	CaptureWait  time.Duration
	Prompts      string // a [gateway.Prompts]
	KeepEncoding bool
	Retention    Retention

	Attribute  string                // the strategy that attributes answers without citations; empty for none
	Experiment Split                 // or the experiment whose two strategies share the runs
	Strategies []experiment.Strategy // in addition to the built-in ones
	Checkers   map[string]*Checker   // by name, for use in strategies
	Judge      string                // the judge of captured citations: see [ReadChecker]; empty for none

	Publish Publishing

	Mappings []ibid.Mapping // responses of providers of one's own

	Webhooks map[string]*Webhook // by name: the receivers of alerts
	Tenants  map[string]*Tenant  // by name: tenants with settings of their own

	Chat     []ChatModel // the models of POST /v1/chat; empty means every upstream that can be asked
	ChatLate time.Duration
	Memory   int64 // bytes for requests and responses being processed; 0 means half of what there is

	// Secrets must not be on a command line: Resolve reads them from IBID_BOOTSTRAP_TOKEN and IBID_STREAM_KEY.
	BootstrapToken string
	StreamKey      string

	paths     map[string]string // by provider of a mapping: the end of the path of its calls
	flagged   upstreamFlag      // upstreams named by flags
	settings  *pflag.FlagSet    // see Settings; nil until it is called
	namedData bool              // Data was set explicitly
}

// Publishing configures whether and how answers are published, and how often cited sources are fetched again.
type Publishing struct {
	Level            string // off, or a level of docs/attribution-v1.md: 1, 2 or 3
	Header           string // the form of Citation-Source: a [manifest.Form]
	Excerpts         string // the sources whose excerpts are published: a [manifest.Excerpts]
	HeaderBuffer     int64  // bytes of a JSON response held until its header is known
	AgentID          string // empty means the host of the public URL with /v1
	Contact          string
	IncidentEndpoint string
	RunIdle          time.Duration // time without a call after which a run has ended; 0 leaves that to its agent
	Recheck          Recheck
	ResolveRedirects bool     // resolve a provider's redirect, once
	Allow            Networks // networks that sources may be in, besides public ones
}

// levelOff is the level of no publishing.
const levelOff = "off"

// number returns the level; 0 means off.
func (p *Publishing) number() int {
	n, _ := strconv.Atoi(p.Level) // "off" is not a number
	return n
}

const (
	minMemory      = 64 << 20
	defaultRunIdle = 15 * time.Minute
	databaseFile   = "ibid.db"
	tokensFile     = "tokens.json" // the guard's copy of the tokens, for when the database is unavailable
	defaultDataDoc = "$XDG_STATE_HOME/ibid, else ~/.local/state/ibid"
	minBootstrap   = 16 // bytes of IBID_BOOTSTRAP_TOKEN
	minStreamKey   = 32 // bytes of IBID_STREAM_KEY
)

// Defaults returns the default configuration.
func Defaults() *Config {
	return &Config{
		Listen:      "127.0.0.1:8080",
		Drain:       30 * time.Second,
		Upstreams:   map[string]*Upstream{},
		Capture:     string(gateway.Strict),
		CaptureWait: gateway.DefaultCaptureWait,
		Prompts:     string(gateway.PromptsLast),
		Retention:   Retention{ByProvider: Ages{}},
		Checkers:    map[string]*Checker{},
		paths:       map[string]string{},
		Webhooks:    map[string]*Webhook{},
		Tenants:     map[string]*Tenant{},
		Publish: Publishing{
			Level:        levelOff,
			Header:       string(manifest.Link),
			HeaderBuffer: gateway.DefaultHeaderBuffer,
			Excerpts:     string(manifest.ExcerptsPublic),
			RunIdle:      defaultRunIdle,
		},
		ChatLate: 10 * time.Second,
		flagged:  upstreamFlag{},
	}
}

// AddListenFlags adds the flags of the listen address.
func (c *Config) AddListenFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Listen, "listen", c.Listen, "`address` to listen on; port 0 picks a free one")
	flags.StringVar(&c.AddressFile, "address-file", c.AddressFile,
		"write the URL to this `file` once it is listening")
}

// JournalDir returns the directory of the journal.
func (c *Config) JournalDir() string { return filepath.Join(c.Data, "journal") }

// AddStoreFlags adds the flags that locate the stored data, for every command that uses the database.
func (c *Config) AddStoreFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Data, "data", c.Data, "`directory` of the journal and the database (default "+defaultDataDoc+")")
	AddFileFlag(flags, &c.File)
	flags.StringVar(&c.DB, "db", c.DB, "the database: an SQLite `file` or postgres://… (default ibid.db in --data)")
}

// AddFileFlag adds the flag of the file with the settings.
func AddFileFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "config", *file, "YAML `file` with the same settings, and more")
}

// AddJudgeFlag adds the flag of the judge of claims.
func AddJudgeFlag(flags *pflag.FlagSet, judge *string) {
	flags.StringVar(judge, "judge", *judge,
		"ask this `MODEL` about claims that words do not settle: ollama:NAME, openai:NAME, openrouter:NAME, "+
			"http://HOST/v1#NAME, or one under checkers in the file of --config")
}

// AddNetFlag adds the flag of the networks that may be connected to besides public ones.
func AddNetFlag(flags *pflag.FlagSet, allow *Networks) {
	flags.Var(allow, "allow-net",
		"allow sources, manifests and keys in this non-public `CIDR`, on any port; repeatable")
}

// AddFlags adds the flags of a server. Settings that few people need are in [Config.Settings].
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	c.AddListenFlags(flags)
	c.AddStoreFlags(flags)
	flags.StringVar(&c.NATS, "nats", c.NATS,
		"`address` of NATS, which connects the nodes: nats://host:4222,…")
	flags.Var(c.flagged, "upstream",
		"an additional upstream, or a known one with another URL: `NAME=URL[,provider=…]`; repeatable")
	flags.StringVar(&c.PublicURL, "public-url", c.PublicURL,
		"the `URL` where others reach it, used in manifests and links; requires a token")
	flags.Var(OneOf(&c.Capture, "mode", "strict", "store", "relaxed"), "capture",
		"when a client gets the end of an answer: strict, store or relaxed")
	flags.Var(OneOf(&c.Prompts, "which", "none", "last", "all"), "prompts",
		"which messages of a request are stored: none, last or all")
	AddOriginFlag(flags, &c.Origins)
	flags.StringVar(&c.TLSCert, "tls-cert", c.TLSCert,
		"PEM `file` with the certificate chain, to serve HTTPS")
	flags.StringVar(&c.TLSKey, "tls-key", c.TLSKey, "PEM `file` with its key")
	flags.StringVar(&c.Attribute, "attribute", c.Attribute,
		"find citations for answers without any, by this `STRATEGY`: balanced, strict or one in the file")
	flags.Var(&c.Experiment, "experiment",
		"the same with two strategies, one per run: `NAME=A,B[,SHARE]`, where SHARE is B's")
	AddJudgeFlag(flags, &c.Judge)
	flags.Var(OneOf(&c.Publish.Level, "LEVEL", levelOff, "1", "2", "3"), "publish",
		"declare the consulted sources in responses, by `LEVEL`: 1 in a header, 2 also in a manifest of each answer, "+
			"3 also signed; or off")
	flags.Var(&c.Publish.Recheck, "recheck",
		"read cited web sources `WHEN`: once after each answer, also again every so often (24h) to report changes, or "+
			"off (default once if only this machine can use ibid without a token and nothing is published, else off)")
	AddNetFlag(flags, &c.Publish.Allow)
	flags.Var(chatFlag{&c.Chat}, "chat",
		"a model of POST /v1/chat, the first being the default: the `NAME[=MODEL]` of an upstream; repeatable; off "+
			"(default all)")
}

// AddOriginFlag adds the flag of the web pages that may make requests.
func AddOriginFlag(flags *pflag.FlagSet, origins *Words) {
	flags.Var(origins, "cors-origin", "a web `origin` whose pages may make requests: https://app.example; repeatable")
}

// Settings returns the settings of the file and of environment variables that have no flag. It returns the same set at
// each call. Set values in it before [Config.Resolve], which reads the file.
func (c *Config) Settings() *pflag.FlagSet {
	if c.settings == nil {
		c.settings = pflag.NewFlagSet("", pflag.ContinueOnError)
		c.addSettings(c.settings)
	}
	return c.settings
}

func (c *Config) addSettings(flags *pflag.FlagSet) {
	p := &c.Publish
	flags.DurationVar(&c.CaptureWait, "capture-wait", c.CaptureWait,
		"hold back the end of an answer for at most this long")
	flags.BoolVar(&c.KeepEncoding, "keep-encoding", c.KeepEncoding,
		"let upstreams compress answers; their end is then not held back")
	flags.Int64Var(&c.Memory, "memory", c.Memory,
		"memory in `bytes` for requests and responses being processed (default half of what there is)")
	flags.DurationVar(&c.Drain, "drain", c.Drain, "how long calls may continue after a signal to stop")
	flags.StringVar(&c.OTLP, "otlp", c.OTLP, "send traces to this `URL` by OTLP over HTTP")
	flags.DurationVar(&c.ChatLate, "chat-late", c.ChatLate,
		"how long a chat stream stays open for citations that arrive after the answer")
	flags.Var(OneOf(&p.Header, "form", string(manifest.Link), string(manifest.List)), "citation-header",
		"the `form` of Citation-Source: link, or list (RFC 9651)")
	AddExcerptsFlag(flags, &p.Excerpts)
	flags.Int64Var(&p.HeaderBuffer, "header-buffer", p.HeaderBuffer,
		"hold up to this many `bytes` of a JSON answer until its sources are known")
	flags.StringVar(&p.AgentID, "agent-id", p.AgentID,
		"the agent's `name` in manifests: agent.example/v1 (default the publishing host with /v1)")
	flags.StringVar(&p.Contact, "contact", p.Contact, "a published `address` for disputes")
	flags.StringVar(&p.IncidentEndpoint, "incident-endpoint", p.IncidentEndpoint,
		"a published `URL` where verifiers may report incidents")
	flags.DurationVar(&p.RunIdle, "run-idle", p.RunIdle, "a run ends after this long without a call")
	flags.BoolVar(&p.ResolveRedirects, "resolve-redirects", p.ResolveRedirects,
		"resolve a provider's redirect to its target, once")
}

// AddExcerptsFlag adds the flag of the sources whose excerpts are published.
func AddExcerptsFlag(flags *pflag.FlagSet, whose *string) {
	flags.Var(OneOf(whose, "WHOSE", string(manifest.ExcerptsPublic), string(manifest.ExcerptsAll),
		string(manifest.ExcerptsNone)), "publish-excerpts",
		"`WHOSE` excerpts manifests include: public for sources with a public URL, all, or none; others are only "+
			"hashed")
}

// Env looks up an environment variable, as os.LookupEnv does.
type Env func(name string) (value string, ok bool)

// first returns the value of the first variable that is not empty.
func (env Env) first(names ...string) string {
	for _, name := range names {
		if value, _ := env(name); value != "" {
			return value
		}
	}
	return ""
}

// Resolve reads the file, fills in defaults and checks everything. Flags that are set take precedence over the file.
// flags may be nil; env provides the secrets and the location of the user's state.
func (c *Config) Resolve(flags *pflag.FlagSet, env Env) error {
	c.BootstrapToken = cmp.Or(c.BootstrapToken, env.first("IBID_BOOTSTRAP_TOKEN"))
	c.StreamKey = cmp.Or(c.StreamKey, env.first("IBID_STREAM_KEY"))
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	if flags == nil {
		c.AddFlags(all)
	} else {
		all.AddFlagSet(flags)
	}
	all.AddFlagSet(c.Settings())
	if err := c.readFile(all); err != nil {
		return err
	}
	if err := c.resolveData(env); err != nil {
		return err
	}
	if err := c.resolveUpstreams(); err != nil {
		return err
	}
	return c.check()
}

// ResolveStore reads from the file what a command that uses the database needs: its location, the retention and the
// strategies. The rest of the file is not checked.
func (c *Config) ResolveStore(flags *pflag.FlagSet, env Env) error {
	if c.File != "" {
		whole, all := Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		whole.AddFlags(all)
		all.AddFlagSet(whole.Settings())
		all.VisitAll(func(f *pflag.Flag) { // ignore all settings of the file but these two
			f.Changed = f.Name != "data" && f.Name != "db" || flags.Changed(f.Name)
		})
		whole.File = c.File
		if err := whole.readFile(all); err != nil {
			return err
		}
		c.Data, c.DB = cmp.Or(c.Data, whole.Data), cmp.Or(c.DB, whole.DB)
		c.Retention, c.Strategies, c.Checkers = whole.Retention, whole.Strategies, whole.Checkers
		if err := c.checkStrategies(); err != nil {
			return err
		}
	}
	return c.resolveData(env)
}

// resolveData determines the data directory and the database in it.
func (c *Config) resolveData(env Env) error {
	if c.namedData = c.Data != ""; !c.namedData {
		state := env.first("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home := env.first("HOME")
			if home == "" {
				return &usageError{errors.New("there is no home directory to keep data in"), "use --data DIR"}
			}
			state = filepath.Join(home, ".local", "state")
		}
		c.Data = filepath.Join(state, "ibid")
	}
	var err error
	if c.Data, err = filepath.Abs(c.Data); err != nil {
		return fmt.Errorf("finding the data directory: %w", err)
	}
	if c.DB == "" {
		c.DB = filepath.Join(c.Data, databaseFile)
	}
	return nil
}

// MakeDatabaseDir creates the directory of an SQLite database if it is the data directory, accessible only to its
// owner. Another directory, named by --db, must exist, as its permissions are its owner's decision.
func (c *Config) MakeDatabaseDir() error {
	switch dir := filepath.Dir(c.DB); {
	case store.IsPostgres(c.DB):
		return nil
	case dir == c.Data:
		return c.makeData()
	}
	return c.checkDatabaseDir()
}

func (c *Config) makeData() error {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("creating the data directory: %w", err)
	}
	return nil
}

// checkDatabaseDir returns an error if the directory of an SQLite database does not exist and will not be created.
func (c *Config) checkDatabaseDir() error {
	dir := filepath.Dir(c.DB)
	if _, err := os.Stat(dir); dir == c.Data || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return Usagef(
		"`install -d -m 700 "+dir+"` creates it; run that as the user of ibid serve",
		"the directory of the database does not exist: %s", dir,
	)
}

// check checks the settings from all sources.
func (c *Config) check() error {
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if c.Upstreams[name].URL == "" {
			return Usagef("use --upstream "+name+"=https://…", "upstream %s has no URL", name)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return listenError(c.Listen, err)
	}
	if c.NATS == "embedded" {
		return Usagef("leave --nats out: one process needs no NATS", "there is no NATS server in ibid any more")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return Usagef("", "--tls-cert and --tls-key need each other")
	}
	if err := c.checkDurations(); err != nil {
		return err
	}
	if c.Memory < 0 || c.Memory > 0 && c.Memory < minMemory {
		return Usagef("", "memory is too small: %d bytes; it needs %d", c.Memory, minMemory)
	}
	for _, secret := range []struct {
		name, value string
		needs       int
	}{{"IBID_BOOTSTRAP_TOKEN", c.BootstrapToken, minBootstrap}, {"IBID_STREAM_KEY", c.StreamKey, minStreamKey}} {
		if n := len(secret.value); n > 0 && n < secret.needs {
			return Usagef(
				"openssl rand -base64 32 creates one", "%s has %d bytes, but needs %d", secret.name, n, secret.needs,
			)
		}
	}
	if c.Publish.number() > 0 {
		if c.PublicURL == "" {
			return Usagef(
				"use --public-url https://ibid.example",
				"publishing needs the URL where everyone reaches ibid",
			)
		}
		if _, err := c.origin(); err != nil {
			return err
		}
	}
	if err := c.checkChat(); err != nil {
		return err
	}
	if err := c.checkWebhooks(); err != nil {
		return err
	}
	if err := c.checkStrategies(); err != nil {
		return err
	}
	if _, err := c.chooseStrategy(); err != nil {
		return err
	}
	for _, u := range []struct{ name, value string }{
		{"incident-endpoint", c.Publish.IncidentEndpoint}, {"public-url", c.PublicURL}, {"otlp", c.OTLP},
	} {
		if u.value == "" {
			continue
		}
		if _, err := ParseWebURL(u.value); err != nil {
			return Usagef("", "%s: %w", u.name, err)
		}
	}
	for _, origin := range c.Origins {
		u, err := ParseWebURL(origin)
		if origin != "*" && (err != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "") {
			return Usagef(
				"an origin is a scheme and a host, such as https://app.example, or *",
				"cors-origin %q is not an origin", origin,
			)
		}
	}
	return nil
}

// checkDurations checks the settings that are durations.
func (c *Config) checkDurations() error {
	for _, s := range []struct {
		name string
		d    time.Duration
		min  time.Duration // smallest value other than zero
		what string
	}{
		{"capture-wait", c.CaptureWait, 0, "negative"},
		{"drain", c.Drain, 0, "negative"},
		{"run-idle", c.Publish.RunIdle, 0, "too short"},
		{"chat-late", c.ChatLate, 0, "negative"},
	} {
		if s.d < 0 || s.d > 0 && s.d < s.min {
			return Usagef("", "%s is %s: %v", s.name, s.what, s.d)
		}
	}
	return nil
}

// origin returns the public URL without a trailing slash. It must be an origin, because manifests have fixed paths.
func (c *Config) origin() (string, error) {
	u, err := ParseWebURL(c.PublicURL)
	if err == nil && (u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		err = errors.New("publishing needs one without path, query and user")
	}
	if err != nil {
		return "", Usagef(
			"the paths of manifests and keys are fixed: /runs/…, /.well-known/…", "public-url: %w", err,
		)
	}
	return (&url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}).String(), nil
}

// listenError returns the error of an invalid listen address.
func listenError(address string, err error) error {
	if e, ok := errors.AsType[*net.AddrError](err); ok {
		err = errors.New(e.Err) // without repeating the address
	}
	return Usagef("an address is HOST:PORT, such as 127.0.0.1:8080", "listen address %q: %w", address, err)
}

// Retention configures how long answers, copies of sources and manifests are kept. Zero means forever.
type Retention struct {
	Default    Age
	ByProvider Ages
	Copies     Age // of fetched sources
	Manifests  Age
}

// Any reports whether anything is ever removed.
func (r *Retention) Any() bool {
	return r.Default > 0 || len(r.ByProvider) > 0 || r.Copies > 0 || r.Manifests > 0
}

// Rules converts the retention for the store.
func (r *Retention) Rules() store.Retention {
	rules := store.Retention{
		Default:    time.Duration(r.Default),
		ByProvider: make(map[string]time.Duration, len(r.ByProvider)),
		Copies:     time.Duration(r.Copies),
		Manifests:  time.Duration(r.Manifests),
	}
	for name, a := range r.ByProvider {
		rules.ByProvider[name] = time.Duration(a)
	}
	return rules
}

// String returns the retention in one line.
func (r *Retention) String() string {
	text := r.Default.String()
	if len(r.ByProvider) > 0 {
		text += ", " + r.ByProvider.String()
	}
	if r.Copies > 0 {
		text += ", copies " + r.Copies.String()
	}
	if r.Manifests > 0 {
		text += ", manifests " + r.Manifests.String()
	}
	return text
}

const unknownProviderHint = "retention is set by an answer's provider, which GET /v1/answers shows, not by the " +
	"upstream"

// unknownProviders returns, in order, the names with a retention that cannot be the provider of an answer. Upstreams
// may define their own providers.
func (c *Config) unknownProviders() []string {
	known := call.ProviderNames()
	for _, u := range c.Upstreams {
		known = append(known, u.Provider)
	}
	names := slices.Sorted(maps.Keys(c.Retention.ByProvider))
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })
}

// usageError is a user's mistake, with a hint.
type usageError struct {
	err  error
	hint string
}

// Usagef returns the error of a user's mistake, with a hint, which may be empty.
func Usagef(hint, format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...), hint}
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Hint returns the hint, or "".
func (e *usageError) Hint() string { return e.hint }
