package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/gateway"
)

const (
	// defaultRunIdle is after how long without a call a run is taken to have ended.
	defaultRunIdle = 15 * time.Minute
	// minRecheck is how often the sources may be read again at most.
	minRecheck = time.Second
)

// attributionSetting says whether and how answers are published.
type attributionSetting struct {
	level    choice // off, or one of the levels of docs/attribution-v1.md
	header   choice // the form of Citation-Source
	buffer   int64  // bytes of a JSON response that are held for its header
	agentID  string // empty: the host of the public URL and /v1
	contact  string
	endpoint string        // where others are to report incidents; empty: nowhere
	runIdle  time.Duration // without a call, after which a run has ended
	recheck  time.Duration // how often cited sources are read again; 0: never
	resolve  bool          // addresses that only redirect are resolved once
	allow    prefixList    // networks that sources may be in, besides the public ones
}

// levelOff is the word for no attribution.
const levelOff = "off"

func newAttributionSetting() attributionSetting {
	return attributionSetting{
		level:  choice{value: levelOff, words: []string{levelOff, "1", "2", "3"}, kind: "level"},
		header: choice{value: "link", words: []string{"link", "list"}, kind: "form"},
	}
}

// addFlags gives serve the flags of attribution.
func (a *attributionSetting) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	addChoice(
		cmd, &a.level, "attribution",
		"say in responses what was consulted: 1 the sources, 2 with a manifest of each answer, 3 signed; or off",
	)
	addChoice(cmd, &a.header, "citation-header", "how Citation-Source is written: link, or list as RFC 9651 has it")
	flags.Int64Var(
		&a.buffer, "header-buffer", gateway.DefaultHeaderBuffer,
		"hold up to so many `bytes` of a JSON answer until its sources are known",
	)
	flags.StringVar(
		&a.agentID, "agent-id", "",
		"the `name` in manifests: agent.example/v1 (default the host of --public-url and /v1)",
	)
	flags.StringVar(&a.contact, "contact", "", "an `address` for disputes, told to everybody")
	flags.StringVar(
		&a.endpoint, "incident-endpoint", "", "a `URL` to which verifiers may report incidents, told to everybody",
	)
	flags.DurationVar(&a.runIdle, "run-idle", defaultRunIdle, "a run has ended when it had no call for so long")
	flags.DurationVar(&a.recheck, "recheck", 0, "read cited sources again this often, and say what changed; 0 is never")
	flags.BoolVar(&a.resolve, "resolve-redirects", false, "ask a provider's redirect for the address behind it, once")
	a.addNetFlag(cmd)
}

// addNetFlag gives a command that fetches what data names the flag of where it may.
func (a *attributionSetting) addNetFlag(cmd *cobra.Command) {
	cmd.Flags().
		Var(&a.allow, "allow-net", "a `CIDR` that sources, manifests and keys may be in though it is not public, on any port; repeatable")
}

// number returns the level; 0: off.
func (a *attributionSetting) number() int {
	n, _ := strconv.Atoi(a.level.value) // "off" is none
	return n
}

// check finds what cannot work with the public URL.
func (a *attributionSetting) check(publicURL string) error {
	for _, d := range []struct {
		name string
		d    time.Duration
		min  time.Duration
	}{{"run-idle", a.runIdle, 0}, {"recheck", a.recheck, minRecheck}} {
		if d.d < 0 || d.d > 0 && d.d < d.min {
			return &usageError{fmt.Errorf("%s is too short: %v", d.name, d.d), ""}
		}
	}
	if a.endpoint != "" {
		if _, err := webURL(a.endpoint); err != nil {
			return &usageError{fmt.Errorf("incident-endpoint: %w", err), ""}
		}
	}
	if a.number() == 0 {
		return nil
	}
	if publicURL == "" {
		return &usageError{
			errors.New(
				"attribution needs an address under which everybody reaches ibid",
			),
			"--public-url https://ibid.example says it",
		}
	}
	_, err := originOf(publicURL)
	return err
}

// originOf returns a public URL without the slash at its end. It has to be an origin: manifests have fixed paths under
// it.
func originOf(publicURL string) (string, error) {
	u, err := webURL(publicURL)
	if err == nil && (u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		err = errors.New("attribution needs one without path, query and user")
	}
	if err != nil {
		return "", &usageError{
			fmt.Errorf("public-url: %w", err), "the paths of manifests and keys are fixed: /runs/…, /.well-known/…",
		}
	}
	return (&url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}).String(), nil
}

// prefixList is the value of a flag that takes networks, several times. In a variable they are separated by spaces.
type prefixList []netip.Prefix

// String returns what was said.
func (l *prefixList) String() string {
	words := make([]string, len(*l))
	for i, p := range *l {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

// Type returns what the help calls the value.
func (l *prefixList) Type() string { return "CIDR" }

// Set adds networks. An address alone is a network of one.
func (l *prefixList) Set(text string) error {
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		p, err := netip.ParsePrefix(one)
		if err != nil {
			address, err := netip.ParseAddr(one)
			if err != nil {
				return fmt.Errorf("%q is no network, such as 10.0.0.0/8", one)
			}
			p = netip.PrefixFrom(address, address.BitLen())
		}
		*l = append(*l, p.Masked())
	}
	return nil
}
