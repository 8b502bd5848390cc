package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/gateway"
)

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
