package server

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibidhq/ibid/gateway"
)

// The types of this file are values of settings. All of them are written as text: in flags by the methods of
// pflag.Value, and identically in the file by UnmarshalYAML.

// Choice is the flag of a setting with a few possible words.
type Choice struct {
	value *string
	words []string
	kind  string
}

// OneOf returns the flag of a setting that is one of words. kind is the name of its value in help texts. The current
// value of the setting is the default.
func OneOf(value *string, kind string, words ...string) *Choice { return &Choice{value, words, kind} }

// Words returns the possible words.
func (c *Choice) Words() []string { return c.words }

// String returns the chosen word.
func (c *Choice) String() string {
	if c.value == nil { // pflag compares with the zero value
		return ""
	}
	return *c.value
}

// Type returns the name of the value in help texts.
func (c *Choice) Type() string { return c.kind }

// Set chooses a word.
func (c *Choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return fmt.Errorf("must be one of %s", strings.Join(c.words, ", "))
	}
	*c.value = word
	return nil
}

// Words is a list of words. As a flag it may be given several times; in an environment variable the words are
// separated by spaces.
type Words []string

// String returns the words.
func (l *Words) String() string { return strings.Join(*l, " ") }

// Type returns the name of the value in help texts.
func (l *Words) Type() string { return "words" }

// Set adds words.
func (l *Words) Set(text string) error {
	*l = append(*l, strings.Fields(text)...)
	return nil
}

// Networks is a list of networks, given like [Words].
type Networks []netip.Prefix

// String returns the networks.
func (l *Networks) String() string {
	words := make([]string, len(*l))
	for i, p := range *l {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}

// Type returns the name of the value in help texts.
func (l *Networks) Type() string { return "CIDR" }

// Set adds networks. A single address is a network of one.
func (l *Networks) Set(text string) error {
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		p, err := netip.ParsePrefix(one)
		if err != nil {
			address, err := netip.ParseAddr(one)
			if err != nil {
				return fmt.Errorf("%q is not a network, such as 10.0.0.0/8", one)
			}
			p = netip.PrefixFrom(address, address.BitLen())
		}
		*l = append(*l, p.Masked())
	}
	return nil
}

const day = 24 * time.Hour

// maxAge is the largest whole number of years in a time.Duration.
const maxAge = 290 * 365 * day

var errAge = errors.New("must be a duration such as 720h, 30d or forever")

// Age is a maximum age: a Go duration, or days such as 30d. Zero is written "forever".
type Age time.Duration

// String returns the time in the largest unit that makes it whole.
func (a *Age) String() string {
	switch d := time.Duration(*a); {
	case d == 0:
		return "forever"
	case d%day == 0:
		return strconv.Itoa(int(d/day)) + "d"
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	default:
		return d.String()
	}
}

// Type returns the name of the value in help texts.
func (a *Age) Type() string { return "time" }

// Set reads a time.
func (a *Age) Set(text string) error {
	if text == "forever" {
		*a = 0
		return nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err != nil || n <= 0 || n > int64(maxAge/day) {
			return errAge
		}
		*a = Age(time.Duration(n) * day)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errAge
	}
	*a = Age(d)
	return nil
}

// UnmarshalYAML reads a time from a file.
func (a *Age) UnmarshalYAML(node ast.Node) error { return setFromNode(node, a.Set) }

// Ages maps names to ages. As a flag it is written NAME=TIME,NAME=TIME.
type Ages map[string]Age

// String returns the ages ordered by name.
func (m Ages) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		a := m[name]
		all = append(all, name+"="+a.String())
	}
	return strings.Join(all, ",")
}

// Type returns the name of the value in help texts.
func (m Ages) Type() string { return "NAME=TIME" }

// Set adds names, separated by commas.
func (m Ages) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return errors.New("must be NAME=TIME, such as gemini=24h")
		}
		var a Age
		if err := a.Set(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m[name] = a
	}
	return nil
}

// Split is an experiment, which attributes each run by one of two strategies. The zero value means none.
type Split struct {
	Name, A, B string
	Share      float64 // the share of runs that get B, from 0 to 1
}

// String returns the experiment as a flag.
func (s *Split) String() string {
	if s.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s=%s,%s,%v", s.Name, s.A, s.B, s.Share)
}

// Type returns the name of the value in help texts.
func (s *Split) Type() string { return "NAME=A,B[,SHARE]" }

// Set reads an experiment.
func (s *Split) Set(text string) error {
	name, rest, ok := strings.Cut(text, "=")
	sides := strings.Split(rest, ",")
	if !ok || name == "" || len(sides) < 2 || len(sides) > 3 {
		return errors.New("must be NAME=A,B or NAME=A,B,SHARE, such as tone=balanced,strict,0.5")
	}
	share := 0.5
	if len(sides) == 3 {
		var err error
		if share, err = strconv.ParseFloat(sides[2], 64); err != nil || !(share >= 0 && share <= 1) {
			return fmt.Errorf("the share of the second strategy must be from 0 to 1, not %q", sides[2])
		}
	}
	*s = Split{name, sides[0], sides[1], share}
	return nil
}

// URL is the address of an upstream: http or https, without user, query and fragment.
type URL string

// Set checks an address.
func (u *URL) Set(text string) error {
	parsed, err := ParseWebURL(text)
	if err != nil {
		return err
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return errors.New("must have no user, query or fragment: clients send their own keys")
	}
	*u = URL(text)
	return nil
}

// UnmarshalYAML reads an address from a file.
func (u *URL) UnmarshalYAML(node ast.Node) error { return setFromNode(node, u.Set) }

// parse returns the address as a URL, or nil if there is none. Set has checked it.
func (u *URL) parse() *url.URL {
	if *u == "" {
		return nil
	}
	parsed, _ := url.Parse(string(*u))
	return parsed
}

// upstreamFlag is the flag --upstream.
type upstreamFlag map[string]*Upstream

func (f upstreamFlag) String() string { return strings.Join(slices.Sorted(maps.Keys(f)), " ") }

func (f upstreamFlag) Type() string { return "NAME=URL[,provider=…]" }

// Set adds upstreams: one, or in an environment variable several, separated by spaces.
func (f upstreamFlag) Set(text string) error {
	for one := range strings.FieldsSeq(text) {
		name, rest, ok := strings.Cut(one, "=")
		if !ok {
			return errors.New("must be NAME=URL, such as local=http://127.0.0.1:11434")
		}
		if err := checkUpstreamName(name); err != nil {
			return err
		}
		address, option, _ := strings.Cut(rest, ",")
		u := &Upstream{}
		if err := u.URL.Set(address); err != nil {
			return err
		}
		provider, isProvider := strings.CutPrefix(option, "provider=")
		if option != "" && (!isProvider || provider == "") {
			return fmt.Errorf("unknown option %q: there is only provider=NAME", option)
		}
		u.Provider = provider
		f[name] = u
	}
	return nil
}

// checkUpstreamName returns an error if a name cannot be that of an upstream.
func checkUpstreamName(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if slices.Contains(gateway.Reserved(), name) {
		return fmt.Errorf("the name %s is taken: /%s is ibid's own", name, name)
	}
	return nil
}

// checkName returns an error if a name is invalid.
func checkName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
	if name == "" || strings.ContainsFunc(name, bad) {
		return fmt.Errorf("%q is not a valid name: use lower-case letters, digits, - and _", name)
	}
	return nil
}

// chatFlag is the flag --chat.
type chatFlag struct{ asked *[]ChatModel }

func (f chatFlag) String() string {
	if f.asked == nil { // pflag compares with the zero value
		return ""
	}
	words := make([]string, len(*f.asked))
	for i, m := range *f.asked {
		if words[i] = m.Upstream; m.Model != "" {
			words[i] += "=" + m.Model
		}
	}
	return strings.Join(words, " ")
}

func (f chatFlag) Type() string { return "NAME[=MODEL]" }

// Set adds models; in an environment variable several are separated by spaces.
func (f chatFlag) Set(text string) error {
	for one := range strings.FieldsSeq(text) {
		name, model, _ := strings.Cut(one, "=")
		if name == "" {
			return errors.New("must be NAME or NAME=MODEL, such as openai=gpt-5")
		}
		*f.asked = append(*f.asked, ChatModel{Upstream: name, Model: model})
	}
	return nil
}

// ParseWebURL parses an http or https URL. The error does not repeat the text, which may contain a secret.
func ParseWebURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("must be a URL that begins with http:// or https://")
	}
	return u, nil
}

// Redacted returns an address, or several separated by commas, without parts that may be secret: user, query and
// fragment.
func Redacted(address string) string {
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
