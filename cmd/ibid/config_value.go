package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/gateway"
)

// span is a time as people say how long they keep things: Go's durations, and days: 30d, 720h. Zero is for ever.
type span time.Duration

const day = 24 * time.Hour

// String returns the time in the largest unit that makes it whole.
func (s span) String() string {
	switch d := time.Duration(s); {
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

// Type returns what the help calls the value.
func (s *span) Type() string { return "time" }

// Set reads a time.
func (s *span) Set(text string) error {
	if text == "forever" {
		*s = 0
		return nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil && n > 0 && n <= int64(maxSpan/day) {
			*s = span(time.Duration(n) * day)
			return nil
		}
		return errSpan
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errSpan
	}
	*s = span(d)
	return nil
}

// maxSpan is what a time.Duration can hold, in whole years.
const maxSpan = 290 * 365 * day

var errSpan = errors.New("must be a time such as 720h, 30d or forever")

// spanMap is the value of a flag that says a time for each of several names: gemini=24h.
type spanMap map[string]span

// String returns what was said.
func (m spanMap) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+"="+m[name].String())
	}
	return strings.Join(all, ",")
}

// Type returns what the help calls the value.
func (m spanMap) Type() string { return "NAME=TIME" }

// Set adds names, separated by commas.
func (m spanMap) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return errors.New("must be NAME=TIME, such as gemini=24h")
		}
		var s span
		if err := s.Set(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m[name] = s
	}
	return nil
}

// wordList is the value of a flag that may be given several times. In a variable, its words are separated by spaces.
type wordList []string

// String returns what was said.
func (l *wordList) String() string { return strings.Join(*l, " ") }

// Type returns what the help calls the value.
func (l *wordList) Type() string { return "words" }

// Set adds words.
func (l *wordList) Set(text string) error {
	*l = append(*l, strings.Fields(text)...)
	return nil
}

// upstreamFlag is the value of --upstream.
type upstreamFlag map[string]*upstreamSetting

// String returns what was said.
func (f upstreamFlag) String() string { return strings.Join(slices.Sorted(maps.Keys(f)), " ") }

// Type returns what the help calls the value.
func (f upstreamFlag) Type() string { return "NAME=URL[,provider=…]" }

// Set adds upstreams: one, or in a variable of the environment several, separated by spaces.
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
		u, err := upstreamURL(address)
		if err != nil {
			return err
		}
		provider, isProvider := strings.CutPrefix(option, "provider=")
		if option != "" && (!isProvider || provider == "") {
			return fmt.Errorf("unknown option %q: there is only provider=NAME", option)
		}
		f[name] = &upstreamSetting{name: name, url: u, provider: provider}
	}
	return nil
}

// checkUpstreamName says why a name cannot be an upstream's.
func checkUpstreamName(name string) error {
	bad := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' }
	switch {
	case name == "" || strings.ContainsFunc(name, bad):
		return fmt.Errorf("%q cannot be a name: it has lower-case letters, digits, - and _", name)
	case slices.Contains(gateway.Reserved(), name):
		return fmt.Errorf("the name %s is taken: /%s is ibid's own", name, name)
	}
	return nil
}

// upstreamURL parses the URL of an upstream.
func upstreamURL(s string) (*url.URL, error) {
	u, err := webURL(s)
	if err != nil {
		return nil, err
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of an upstream has no user, query or fragment: keys are the clients'")
	}
	return u, nil
}
