package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

// retention is how old answers may get: those of some providers, and the others.
type retention struct {
	standard   age
	byProvider map[string]age
	copies     age // of what was read of sources
	manifests  age
}

// any reports whether anything is ever removed.
func (r *retention) any() bool {
	return r.standard > 0 || len(r.byProvider) > 0 || r.copies > 0 || r.manifests > 0
}

// rules returns it as the store has it.
func (r *retention) rules() store.Retention {
	return store.Retention{
		Default: time.Duration(
			r.standard,
		),
		ByProvider: r.durations(),
		Copies:     time.Duration(r.copies),
		Manifests:  time.Duration(r.manifests),
	}
}

// durations returns the times by provider.
func (r *retention) durations() map[string]time.Duration {
	all := make(map[string]time.Duration, len(r.byProvider))
	for name, a := range r.byProvider {
		all[name] = time.Duration(a)
	}
	return all
}

// String returns what was said.
func (r *retention) String() string {
	text := r.standard.String()
	if len(r.byProvider) > 0 {
		text += ", " + ageMap(r.byProvider).String()
	}
	if r.copies > 0 {
		text += ", copies " + r.copies.String()
	}
	if r.manifests > 0 {
		text += ", manifests " + r.manifests.String()
	}
	return text
}

const strangerHint = "retention goes by an answer's provider, which GET /v1/answers shows, and not by the upstream"

// strangers returns the names that no answer can have for its provider, in order: upstreams may name providers of their
// own.
func (r *retention) strangers(upstreams map[string]*upstreamSetting) []string {
	known := call.ProviderNames()
	for _, u := range upstreams {
		known = append(known, u.provider)
	}
	names := slices.Sorted(maps.Keys(r.byProvider))
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(known, name) })
}

// retention reads the member retention.
func (f *configFile) retention(c *config, node ast.Node) {
	for _, e := range f.mapping(node) {
		a := f.age(e)
		switch e.key {
		case "default":
			c.keep.standard = a
		case "copies":
			c.keep.copies = a
		case "manifests":
			c.keep.manifests = a
		default:
			f.keep(c, e.key, a, e.value.GetToken())
		}
	}
}

// upstreamRetention reads the member retention of an upstream. Answers are kept by their provider, which must be known.
func (f *configFile) upstreamRetention(c *config, u *upstreamSetting, e entry) {
	a := f.age(e)
	if _, known := call.FindProvider(u.name); known && u.provider == "" {
		u.provider = u.name
	}
	if u.provider == "" {
		_ = f.fail(e.at, "retention goes by provider, and upstream "+u.name+" names none",
			// it is kept in f
			"add provider: NAME to the upstream, or say retention: {NAME: "+a.String()+"} at the top of the file")
		return
	}
	u.kept = true
	f.keep(c, u.provider, a, e.value.GetToken())
}

// keep notes how old the answers of a provider may get. That can be said twice, but not twice differently.
func (f *configFile) keep(c *config, provider string, a age, at *token.Token) {
	if before, said := c.keep.byProvider[provider]; said && before != a {
		_ = f.fail(
			at, fmt.Sprintf("retention of provider %s is %s here and %s at %s", provider, a, before, f.kept[provider]),
			"all answers of a provider are kept for the same time, whatever the upstream",
		) // it is kept in f
		return
	}
	c.keep.byProvider[provider] = a
	f.kept[provider] = f.place(at)
}

// age reads a value that is a time.
func (f *configFile) age(e entry) age {
	var a age
	if err := a.Set(f.text(e)); err != nil && f.err == nil {
		f.bad(e, "%v", err)
	}
	return a
}

// age is how old an answer may get, as people say it: Go's durations, and days: 30d, 720h. Zero is for ever.
type age time.Duration

const day = 24 * time.Hour

// String returns the time in the largest unit that makes it whole.
func (a age) String() string {
	switch d := time.Duration(a); {
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
func (a *age) Type() string { return "time" }

// Set reads a time.
func (a *age) Set(text string) error {
	if text == "forever" {
		*a = 0
		return nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil && n > 0 && n <= int64(maxAge/day) {
			*a = age(time.Duration(n) * day)
			return nil
		}
		return errAge
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errAge
	}
	*a = age(d)
	return nil
}

// maxAge is what a time.Duration can hold, in whole years.
const maxAge = 290 * 365 * day

var errAge = errors.New("must be a time such as 720h, 30d or forever")

// ageMap is the value of a flag that says a time for each of several names: gemini=24h.
type ageMap map[string]age

// String returns what was said.
func (m ageMap) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+"="+m[name].String())
	}
	return strings.Join(all, ",")
}

// Type returns what the help calls the value.
func (m ageMap) Type() string { return "NAME=TIME" }

// Set adds names, separated by commas.
func (m ageMap) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return errors.New("must be NAME=TIME, such as gemini=24h")
		}
		var a age
		if err := a.Set(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m[name] = a
	}
	return nil
}
