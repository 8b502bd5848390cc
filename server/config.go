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

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/store"
)

// Config is what a server runs with. Start from [Defaults]; the zero value has neither an address nor modes.
type Config struct {
	File string // --config: the YAML file with more settings; empty: none

	Listen      string // HOST:PORT; port 0 takes a free one
	AddressFile string // the file that the URL is written to once the server listens; empty: none
	Data        string // directory of the journal, the keys and the database; empty: below the user's state directory
	DB          string // an SQLite file or postgres://…; empty: ibid.db in Data
	NATS        string // nats://host:4222,…, or [bus.Embedded]
	PublicURL   string // under which others reach the server; empty: nobody was told of one
	TLSCert     string // PEM file; empty: plain HTTP
	TLSKey      string
	Origins     Words // web origins whose pages may call
	Drain       time.Duration
	OTLP        string // URL that traces are sent to; empty: nowhere
	Quiet       bool   // log only what is wrong

	Upstreams    map[string]*Upstream // by name. Resolve adds the providers whose address everybody knows
	Capture      string               // a [gateway.Mode]
	CaptureWait  time.Duration
	Prompts      string // a [gateway.Prompts]
	KeepEncoding bool
	Retention    Retention

	Attribute  string                // the strategy by which answers without citations get some; empty: none
	Experiment Split                 // or the two strategies that share the runs
	Strategies []experiment.Strategy // besides the built-in ones
	Checkers   map[string]*Checker   // by name: what strategies may name

	Publish Publishing

	Webhooks map[string]*Webhook // by name: who is told of alerts
	Tenants  map[string]*Tenant  // by name: those about which something is special

	Chat     []ChatModel // whom POST /v1/chat asks; empty: every upstream that can be asked
	ChatLate time.Duration

	// Secrets do not belong on a command line: Resolve reads them from IBID_BOOTSTRAP_TOKEN and IBID_STREAM_KEY.
	BootstrapToken string
	StreamKey      string

	flagged   upstreamFlag   // upstreams named by flags
	settings  *pflag.FlagSet // see Settings; nil: nobody asked for them
	namedData bool           // somebody said where Data is
}

// Publishing says whether and how answers are published, and how often cited sources are read again.
type Publishing struct {
	Level            string // off, or one of the levels 1, 2 and 3 of docs/attribution-v1.md
	Header           string // the form of Citation-Source: a [manifest.Form]
	Excerpts         string // whose words are published: a [manifest.Excerpts]
	HeaderBuffer     int64  // bytes of a JSON response that are held for its header
	AgentID          string // empty: the host of the public URL and /v1
	Contact          string
	IncidentEndpoint string
	RunIdle          time.Duration // without a call, after which a run has ended; 0: its agent says so
	Recheck          time.Duration // how often cited sources are read again; 0: never
	ResolveRedirects bool          // a provider's redirect is resolved once
	Allow            Networks      // networks that sources may be in, besides the public ones
}

// Level of no publishing.
const levelOff = "off"

// number returns the level; 0: off.
func (p *Publishing) number() int {
	n, _ := strconv.Atoi(p.Level) // "off" is no number
	return n
}

const (
	defaultRunIdle = 15 * time.Minute
	databaseFile   = "ibid.db"
	tokensFile     = "tokens.json" // what the guard knows of tokens when the database cannot be asked
	defaultDataDoc = "$XDG_STATE_HOME/ibid, else ~/.local/state/ibid"
	minRecheck     = time.Second // more often, nobody may have sources read again
	minBootstrap   = 16          // bytes of IBID_BOOTSTRAP_TOKEN
	minStreamKey   = 32          // bytes of IBID_STREAM_KEY
)

// Defaults returns the configuration of a server that was told nothing.
func Defaults() *Config {
	return &Config{
		Listen:      "127.0.0.1:8080",
		NATS:        bus.Embedded,
		Drain:       30 * time.Second,
		Upstreams:   map[string]*Upstream{},
		Capture:     string(gateway.Strict),
		CaptureWait: gateway.DefaultCaptureWait,
		Prompts:     string(gateway.PromptsLast),
		Retention:   Retention{ByProvider: Ages{}},
		Checkers:    map[string]*Checker{},
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

// AddListenFlags adds the flags of where a server listens.
func (c *Config) AddListenFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Listen, "listen", c.Listen, "`address` to listen at; port 0 takes a free one")
	flags.StringVar(&c.AddressFile, "address-file", c.AddressFile,
		"write the URL to this `file` once it listens there")
}

// AddStoreFlags adds the flags of where answers are kept: those of every command that works at the database.
func (c *Config) AddStoreFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Data, "data", c.Data, "`directory` of the journal and the database (default "+defaultDataDoc+")")
	AddFileFlag(flags, &c.File)
	flags.StringVar(&c.DB, "db", c.DB, "the database: an SQLite `file` or postgres://… (default ibid.db in --data)")
}

// AddFileFlag adds the flag of which file has the settings.
func AddFileFlag(flags *pflag.FlagSet, file *string) {
	flags.StringVar(file, "config", *file, "YAML `file` with the same settings, and more")
}

// AddNetFlag adds the flag of which networks may be read besides the public ones.
func AddNetFlag(flags *pflag.FlagSet, allow *Networks) {
	flags.Var(allow, "allow-net",
		"a `CIDR` that sources, manifests and keys may be in though it is not public, on any port; repeatable")
}

// AddFlags adds the flags of a server. What few people set is in [Config.Settings].
func (c *Config) AddFlags(flags *pflag.FlagSet) {
	c.AddListenFlags(flags)
	c.AddStoreFlags(flags)
	flags.StringVar(&c.NATS, "nats", c.NATS,
		"`address` of NATS, which tells nodes about each other: nats://host:4222,…")
	flags.Var(c.flagged, "upstream",
		"an upstream besides the known ones, or one of them elsewhere: `NAME=URL[,provider=…]`; repeatable")
	flags.StringVar(&c.PublicURL, "public-url", c.PublicURL,
		"the `URL` under which others reach it, for which there must be a token; manifests and links say it")
	flags.Var(OneOf(&c.Capture, "mode", "strict", "store", "relaxed"), "capture",
		"when a client sees the end of an answer: strict, store or relaxed")
	flags.Var(OneOf(&c.Prompts, "which", "none", "last", "all"), "prompts",
		"which messages of a request are kept: none, last or all")
	AddOriginFlag(flags, &c.Origins)
	flags.StringVar(&c.TLSCert, "tls-cert", c.TLSCert,
		"PEM `file` with the certificate and those above it: serve HTTPS")
	flags.StringVar(&c.TLSKey, "tls-key", c.TLSKey, "PEM `file` with its key")
	flags.StringVar(&c.Attribute, "attribute", c.Attribute,
		"find citations for answers that came without, by this `STRATEGY`: balanced, strict or one of the file's")
	flags.Var(&c.Experiment, "experiment",
		"the same by two strategies, each run by one: `NAME=A,B[,SHARE]`, the share being B's")
	flags.Var(OneOf(&c.Publish.Level, "LEVEL", levelOff, "1", "2", "3"), "publish",
		"say in responses what was consulted, by `LEVEL`: 1 the sources, 2 with a manifest of each answer, 3 signed; "+
			"or off")
	flags.DurationVar(&c.Publish.Recheck, "recheck", c.Publish.Recheck,
		"read cited sources again this often, and say what changed; 0 is never")
	AddNetFlag(flags, &c.Publish.Allow)
	flags.Var(chatFlag{&c.Chat}, "chat",
		"whom POST /v1/chat asks, the first unless told: the `NAME[=MODEL]` of an upstream; repeatable; "+
			"off (default all)")
}

// AddOriginFlag adds the flag of which web pages may call.
func AddOriginFlag(flags *pflag.FlagSet, origins *Words) {
	flags.Var(origins, "cors-origin", "a web `origin` whose pages may call: https://app.example; repeatable")
}

// Settings returns what the file and environment variables say, and no flag does: the same set at each call. What a
// caller sets in it must be set before [Config.Resolve], which reads the file.
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
		"hold the end of an answer back no longer than this")
	flags.BoolVar(&c.KeepEncoding, "keep-encoding", c.KeepEncoding,
		"let upstreams compress answers, whose end is then not held back")
	flags.DurationVar(&c.Drain, "drain", c.Drain, "when told to stop, let calls go on for so long")
	flags.StringVar(&c.OTLP, "otlp", c.OTLP, "send traces to this `URL` by OTLP over HTTP")
	flags.DurationVar(&c.ChatLate, "chat-late", c.ChatLate,
		"keep a stream of chat open for so long, where citations may come after the answer")
	flags.Var(OneOf(&p.Header, "form", string(manifest.Link), string(manifest.List)), "citation-header",
		"how Citation-Source is written: link, or list as RFC 9651 has it")
	AddExcerptsFlag(flags, &p.Excerpts)
	flags.Int64Var(&p.HeaderBuffer, "header-buffer", p.HeaderBuffer,
		"hold up to so many `bytes` of a JSON answer until its sources are known")
	flags.StringVar(&p.AgentID, "agent-id", p.AgentID,
		"the agent's `name` in manifests: agent.example/v1 (default the host that publishes, and /v1)")
	flags.StringVar(&p.Contact, "contact", p.Contact, "an `address` for disputes, told to everybody")
	flags.StringVar(&p.IncidentEndpoint, "incident-endpoint", p.IncidentEndpoint,
		"a `URL` to which verifiers may report incidents, told to everybody")
	flags.DurationVar(&p.RunIdle, "run-idle", p.RunIdle, "a run has ended when it had no call for so long")
	flags.BoolVar(&p.ResolveRedirects, "resolve-redirects", p.ResolveRedirects,
		"ask a provider's redirect for the address behind it, once")
}

// AddExcerptsFlag adds the flag of whose words are published.
func AddExcerptsFlag(flags *pflag.FlagSet, whose *string) {
	flags.Var(OneOf(whose, "WHOSE", string(manifest.ExcerptsPublic), string(manifest.ExcerptsAll),
		string(manifest.ExcerptsNone)), "publish-excerpts",
		"`WHOSE` words manifests have: public of sources with a public web address, all, or none; of others only "+
			"hashes")
}

// Env looks an environment variable up, as os.LookupEnv does.
type Env func(name string) (value string, ok bool)

// first returns the value of the first variable that has one.
func (env Env) first(names ...string) string {
	for _, name := range names {
		if value, _ := env(name); value != "" {
			return value
		}
	}
	return ""
}

// Resolve reads the file, fills in what nobody said and checks everything. Flags that were set win over the file. Flags
// may be nil; env is asked for the secrets and for where the user's state is kept.
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

// ResolveStore reads from the file what a command needs that works at the database: where that is, the retention and
// the strategies. Whether a server could run with the rest of the file is not asked.
func (c *Config) ResolveStore(flags *pflag.FlagSet, env Env) error {
	if c.File != "" {
		whole, all := Defaults(), pflag.NewFlagSet("", pflag.ContinueOnError)
		whole.AddFlags(all)
		all.AddFlagSet(whole.Settings())
		all.VisitAll(func(f *pflag.Flag) { // of the settings of the file, these two count
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

// resolveData finds the data directory and the database in it.
func (c *Config) resolveData(env Env) error {
	if c.namedData = c.Data != ""; !c.namedData {
		state := env.first("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home := env.first("HOME")
			if home == "" {
				return &usageError{errors.New("there is no home directory to keep data in"), "--data DIR says where"}
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

// MakeDatabaseDir makes the directory of an SQLite database, if that is the data directory, into which nobody else may
// look. Another one, which --db names, has to be there: who may use it is its owner's to say.
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
		return fmt.Errorf("making the data directory: %w", err)
	}
	return nil
}

// checkDatabaseDir says that the directory of an SQLite database is not there, unless it will be made.
func (c *Config) checkDatabaseDir() error {
	dir := filepath.Dir(c.DB)
	if _, err := os.Stat(dir); dir == c.Data || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return Usagef(
		"`install -d -m 700 "+dir+"` makes it; run that as the user whom ibid serve runs as",
		"the directory of the database is not there: %s", dir,
	)
}

// check finds what cannot work, wherever it was said.
func (c *Config) check() error {
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if c.Upstreams[name].URL == "" {
			return Usagef("--upstream "+name+"=https://… says where it is", "upstream %s has no URL", name)
		}
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return listenError(c.Listen, err)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return Usagef("", "--tls-cert and --tls-key need each other")
	}
	for _, s := range []struct {
		name string
		d    time.Duration
		min  time.Duration // of those that are not zero
		what string
	}{
		{"capture-wait", c.CaptureWait, 0, "negative"},
		{"drain", c.Drain, 0, "negative"},
		{"run-idle", c.Publish.RunIdle, 0, "too short"},
		{"recheck", c.Publish.Recheck, minRecheck, "too short"},
		{"chat-late", c.ChatLate, 0, "negative"},
	} {
		if s.d < 0 || s.d > 0 && s.d < s.min {
			return Usagef("", "%s is %s: %v", s.name, s.what, s.d)
		}
	}
	for _, secret := range []struct {
		name, value string
		needs       int
	}{{"IBID_BOOTSTRAP_TOKEN", c.BootstrapToken, minBootstrap}, {"IBID_STREAM_KEY", c.StreamKey, minStreamKey}} {
		if n := len(secret.value); n > 0 && n < secret.needs {
			return Usagef(
				"openssl rand -base64 32 makes one", "%s has %d bytes, it needs %d", secret.name, n, secret.needs,
			)
		}
	}
	if c.Publish.number() > 0 {
		if c.PublicURL == "" {
			return Usagef(
				"--public-url https://ibid.example says it",
				"publishing needs an address under which everybody reaches ibid",
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

// origin returns the public URL without the slash at its end. It has to be an origin: manifests have fixed paths under
// it.
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

// listenError says what is wrong with an address to listen at.
func listenError(address string, err error) error {
	if e, ok := errors.AsType[*net.AddrError](err); ok {
		err = errors.New(e.Err) // it repeats the address
	}
	return Usagef("an address is HOST:PORT, such as 127.0.0.1:8080", "listen address %q: %w", address, err)
}

// Retention says how long answers, copies of sources and manifests are kept. Zero is forever.
type Retention struct {
	Default    Age
	ByProvider Ages
	Copies     Age // of what was read of sources
	Manifests  Age
}

// Any reports whether anything is ever removed.
func (r *Retention) Any() bool {
	return r.Default > 0 || len(r.ByProvider) > 0 || r.Copies > 0 || r.Manifests > 0
}

// Rules returns the retention as the store takes it.
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

const unknownProviderHint = "retention goes by an answer's provider, which GET /v1/answers shows, and not by the " +
	"upstream"

// unknownProviders returns, in order, the names with a retention that no answer can have for its provider. Upstreams
// may name providers of their own.
func (c *Config) unknownProviders() []string {
	known := call.ProviderNames()
	for _, u := range c.Upstreams {
		known = append(known, u.Provider)
	}
	names := slices.Sorted(maps.Keys(c.Retention.ByProvider))
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })
}

// usageError is a mistake of the user's, with what to do about it.
type usageError struct {
	err  error
	hint string
}

// Usagef returns the error of a mistake of the user's, with what to do about it; empty: nothing is known.
func Usagef(hint, format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...), hint}
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Hint says what to do; empty: nothing is known.
func (e *usageError) Hint() string { return e.hint }
