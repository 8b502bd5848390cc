package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

// config is what serve and demo run with: the flags, where they leave something open the environment, then the file.
type config struct {
	listen      string
	data        string
	db          string // empty: a file in data
	nats        string
	file        string
	upstreams   upstreamFlag
	publicURL   string
	capture     choice
	captureWait time.Duration
	prompts     choice
	encoding    bool
	origins     wordList
	tlsCert     string
	tlsKey      string
	drain       time.Duration
	otlp        string
	addressFile string
	quiet       bool   // log only what is wrong
	bootstrap   string // IBID_BOOTSTRAP_TOKEN: a secret does not belong on a command line
	streamKey   string // IBID_STREAM_KEY, likewise

	attribute string    // the strategy by which answers without citations get some; empty: none
	split     splitFlag // the experiment that chooses it by the run; empty: there is none

	attribution attributionSetting
	chat        chatSetting

	settings   map[string]*upstreamSetting // by name: what is not a matter of flags
	strategies []experiment.Strategy       // those of the file
	checkers   map[string]*checkerSetting  // those of the file, by name
	keep       retention
}

// upstreamSetting is an upstream as the flags and the file describe it.
type upstreamSetting struct {
	name     string
	url      *url.URL
	provider string
	keyEnv   string
	kept     bool // the file says the retention of its provider
	backfill []*backfillSetting
}

// backfillSetting describes the second call for answers without citations.
type backfillSetting struct {
	route    string
	provider string
	model    string
	tools    []json.RawMessage
	messages int // -1: all; 0: the default
	timeout  time.Duration
	keyEnv   string
}

// newConfig returns the defaults.
func newConfig() *config {
	return &config{
		capture:     choice{value: string(gateway.Strict), words: []string{"strict", "store", "relaxed"}, kind: "mode"},
		prompts:     choice{value: string(gateway.PromptsLast), words: []string{"none", "last", "all"}, kind: "which"},
		attribution: newAttributionSetting(),

		upstreams: upstreamFlag{},
		settings:  map[string]*upstreamSetting{},
		checkers:  map[string]*checkerSetting{},
		keep:      retention{byProvider: map[string]age{}},
	}
}

// addListenFlags gives a command the flags of where it listens.
func (c *config) addListenFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.listen, "listen", "127.0.0.1:8080", "`address` to listen at; port 0 takes a free one")
	flags.StringVar(&c.addressFile, "address-file", "", "write the URL to this `file` once it listens there")
	fileFlag(cmd, "address-file")
}

// addStoreFlags gives a command the flags of where the answers are.
func (c *config) addStoreFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.data, "data", "", "`directory` of the journal and the database (default "+defaultDataDoc+")")
	flags.StringVar(&c.file, "config", "", "YAML `file` with the same settings")
	flags.StringVar(&c.db, "db", "", "the database: an SQLite `file` or postgres://… (default ibid.db in --data)")
	if err := cmd.MarkFlagDirname("data"); err != nil {
		panic(err) // the flag was added above
	}
	fileFlag(cmd, "db", "db", "sqlite")
	fileFlag(cmd, "config", "yaml", "yml")
}

// addFlags gives serve its flags.
func (c *config) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	c.addListenFlags(cmd)
	c.addStoreFlags(cmd)
	flags.StringVar(
		&c.nats, "nats", bus.Embedded,
		"`address` of NATS, which tells nodes about each other: nats://host:4222,…",
	)
	flags.Var(
		c.upstreams, "upstream",
		"an upstream besides the known ones, or one of them elsewhere: `NAME=URL[,provider=…]`; repeatable",
	)
	flags.StringVar(
		&c.publicURL, "public-url", "",
		"the `URL` under which others reach it: for the check of Host, and what manifests say",
	)
	addChoice(cmd, &c.capture, "capture", "when a client sees the end of an answer: strict, store or relaxed")
	flags.DurationVar(
		&c.captureWait, "capture-wait", gateway.DefaultCaptureWait, "hold the end back no longer than this",
	)
	addChoice(cmd, &c.prompts, "prompts", "which messages of a request are kept: none, last or all")
	flags.BoolVar(
		&c.encoding, "keep-encoding", false, "let upstreams compress answers, whose end is then not held back",
	)
	flags.Var(&c.origins, "cors-origin", "a web `origin` whose pages may call: https://app.example; repeatable")
	flags.StringVar(&c.tlsCert, "tls-cert", "", "PEM `file` with the certificate and those above it: serve HTTPS")
	flags.StringVar(&c.tlsKey, "tls-key", "", "PEM `file` with its key")
	flags.DurationVar(&c.drain, "drain", defaultDrain, "when told to stop, let calls go on for so long")
	flags.StringVar(
		&c.attribute, "attribute", "",
		"find citations for answers that came without, by this `STRATEGY`: balanced, strict or one of the file's",
	)
	flags.Var(
		&c.split, "experiment", "the same by two strategies, each run by one: `NAME=A,B[,SHARE]`, the share being B's",
	)
	flags.StringVar(&c.otlp, "otlp", "", "send traces to this `URL` by OTLP over HTTP")
	c.attribution.addFlags(cmd)
	c.chat.addFlags(cmd)
	fileFlag(cmd, "tls-cert", "pem", "crt")
	fileFlag(cmd, "tls-key", "pem", "key")
	complete := func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		for _, p := range call.Providers() {
			names = append(names, p.Name+"="+p.URL)
		}
		return names, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	if err := cmd.RegisterFlagCompletionFunc("upstream", complete); err != nil {
		panic(err) // the flag was added above
	}
}

// fileFlag makes shells complete the names of files.
func fileFlag(cmd *cobra.Command, name string, extensions ...string) {
	if cmd.Flags().Lookup(name) == nil {
		return
	}
	if err := cmd.MarkFlagFilename(name, extensions...); err != nil {
		panic(err) // the flag is there
	}
}

const (
	defaultDrain   = 30 * time.Second
	defaultDataDoc = "$XDG_STATE_HOME/ibid, else ~/.local/state/ibid"
	databaseFile   = "ibid.db"
	minBootstrap   = 16 // bytes
	minStreamKey   = 32
)

// resolve reads the file and fills in what nobody said.
func (c *config) resolve(flags *pflag.FlagSet, w world) error {
	c.bootstrap, _ = w.env("IBID_BOOTSTRAP_TOKEN")
	c.streamKey, _ = w.env("IBID_STREAM_KEY")
	if c.file != "" {
		if err := c.readFile(flags); err != nil {
			return err
		}
	}
	if err := c.resolveData(w); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.upstreams)) {
		flag := c.upstreams[name]
		known := c.settings[name]
		if known == nil {
			c.settings[name] = flag
			continue
		}
		if known.kept && flag.provider != "" && flag.provider != known.provider {
			return &usageError{
				fmt.Errorf(
					"upstream %s is of provider %s by the flag, and of %s in %s, which says its retention", name,
					flag.provider, known.provider, c.file,
				),
				"say the same provider, or leave it out of the flag",
			}
		}
		known.url, known.provider = flag.url, cmp.Or(flag.provider, known.provider)
	}
	c.addKnownUpstreams()
	return c.check()
}

// resolveStore reads from the file what a command needs that works at the database: where that is, and the retention.
// Whether serve could run with the rest, its flags and its variables, is not asked.
func (c *config) resolveStore(flags *pflag.FlagSet, w world) error {
	if c.file != "" {
		if err := c.readStoreFile(flags); err != nil {
			return err
		}
	}
	return c.resolveData(w)
}

func (c *config) readStoreFile(flags *pflag.FlagSet) error {
	all := &cobra.Command{} // the file has settings of serve, too
	whole := newConfig()
	whole.addFlags(all)
	// so they are left alone
	all.Flags().VisitAll(func(f *pflag.Flag) { f.Changed = f.Name != "data" && f.Name != "db" })
	for _, name := range []string{"data", "db"} {
		if f := flags.Lookup(name); f.Changed {
			if err := all.Flags().Set(name, f.Value.String()); err != nil {
				return err
			}
		}
	}
	whole.file = c.file
	if err := whole.readFile(all.Flags()); err != nil {
		return err
	}
	c.data, c.db, c.keep = whole.data, whole.db, whole.keep
	c.strategies, c.checkers = whole.strategies, whole.checkers
	return c.checkStrategies()
}

// resolveData finds the data directory and the database in it.
func (c *config) resolveData(w world) error {
	if c.data == "" {
		state, _ := w.env("XDG_STATE_HOME")
		if !filepath.IsAbs(state) {
			home, _ := w.env("HOME")
			if home == "" {
				return &usageError{errors.New("there is no home directory to keep data in"), "--data DIR says where"}
			}
			state = filepath.Join(home, ".local", "state")
		}
		c.data = filepath.Join(state, "ibid")
	}
	var err error
	if c.data, err = filepath.Abs(c.data); err != nil {
		return fmt.Errorf("finding the data directory: %w", err)
	}
	c.db = cmp.Or(c.db, filepath.Join(c.data, databaseFile))
	return nil
}

// addKnownUpstreams adds the providers whose address everybody knows.
func (c *config) addKnownUpstreams() {
	for _, p := range call.Providers() {
		known := c.settings[p.Name]
		if known == nil {
			if p.NeedsURL {
				continue
			}
			known = &upstreamSetting{name: p.Name}
			c.settings[p.Name] = known
		}
		known.provider = cmp.Or(known.provider, p.Name)
		if known.url == nil && !p.NeedsURL {
			known.url, _ = url.Parse(p.URL) // they are tested
		}
	}
}

// check finds what cannot work, whoever said it.
func (c *config) check() error {
	for _, name := range slices.Sorted(maps.Keys(c.settings)) {
		if c.settings[name].url == nil {
			return &usageError{
				fmt.Errorf("upstream %s has no URL", name),
				fmt.Sprintf("--upstream %s=https://… says where it is", name),
			}
		}
	}
	if _, _, err := net.SplitHostPort(c.listen); err != nil {
		return &usageError{
			fmt.Errorf("listen address %q: %w", c.listen, addressError(err)),
			"an address is HOST:PORT, such as 127.0.0.1:8080",
		}
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return &usageError{errors.New("--tls-cert and --tls-key need each other"), ""}
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"capture-wait", c.captureWait}, {"drain", c.drain}} {
		if d.d < 0 {
			return &usageError{fmt.Errorf("%s is negative: %v", d.name, d.d), ""}
		}
	}
	for _, secret := range []struct {
		name, value string
		needs       int
	}{{"IBID_BOOTSTRAP_TOKEN", c.bootstrap, minBootstrap}, {"IBID_STREAM_KEY", c.streamKey, minStreamKey}} {
		if n := len(secret.value); n > 0 && n < secret.needs {
			return &usageError{
				fmt.Errorf("%s has %d bytes, it needs %d", secret.name, n, secret.needs),
				"openssl rand -base64 32 makes one",
			}
		}
	}
	if err := c.attribution.check(c.publicURL); err != nil {
		return err
	}
	if err := c.checkChat(); err != nil {
		return err
	}
	if err := c.checkStrategies(); err != nil {
		return err
	}
	if _, err := c.chooseStrategy(); err != nil {
		return err
	}
	return c.checkURLs()
}

func (c *config) checkURLs() error {
	for _, u := range []struct{ name, value string }{{"public-url", c.publicURL}, {"otlp", c.otlp}} {
		if u.value == "" {
			continue
		}
		if _, err := webURL(u.value); err != nil {
			return &usageError{fmt.Errorf("%s: %w", u.name, err), ""}
		}
	}
	for _, origin := range c.origins {
		u, err := webURL(origin)
		if origin != "*" && (err != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "") {
			return &usageError{
				fmt.Errorf(
					"cors-origin %q is not an origin", origin,
				),
				"an origin is a scheme and a host, such as https://app.example, or *",
			}
		}
	}
	return nil
}

// addressError drops the address, which the caller says, from what package net says about it.
func addressError(err error) error {
	if address, ok := errors.AsType[*net.AddrError](err); ok {
		return errors.New(address.Err)
	}
	return err
}

// webURL parses a URL of the web. The error says nothing of what may be a secret in it.
func webURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("not a URL that begins with http:// or https://")
	}
	return u, nil
}

// upstreamList returns the upstreams in the order of their names.
func (c *config) upstreamList() []gateway.Upstream {
	list := make([]gateway.Upstream, 0, len(c.settings))
	for _, name := range slices.Sorted(maps.Keys(c.settings)) {
		u := c.settings[name]
		list = append(list, gateway.Upstream{Name: name, URL: u.url, Provider: u.provider})
	}
	return list
}

// hosts returns the names under which clients may reach a server without tokens.
func (c *config) hosts() []string {
	u, err := webURL(c.publicURL)
	if err != nil {
		return nil
	}
	return []string{u.Host}
}

// prepareData makes the data directory, and the database's: nobody else may look into them.
func (c *config) prepareData() error {
	dirs := []string{c.data}
	if !store.IsPostgres(c.db) {
		dirs = append(dirs, filepath.Dir(c.db))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making the data directory: %w", err)
		}
	}
	return nil
}

// redacted returns an address without what may be secret in it.
func redacted(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	list := strings.Split(address, ",")
	for i, one := range list {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil {
			list[i] = "…"
			continue
		}
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		list[i] = u.String()
	}
	return strings.Join(list, ",")
}
