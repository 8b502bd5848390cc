package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/watch"
)

// backfillRules returns the rules for second calls, in the order of the upstreams' names.
func (c *config) backfillRules(w world) []watch.Rule {
	var rules []watch.Rule
	for _, name := range slices.Sorted(maps.Keys(c.settings)) {
		u := c.settings[name]
		for _, b := range u.backfill {
			rule := watch.Rule{
				Upstream: name,
				Route:    b.route,
				Provider: cmp.Or(b.provider, u.provider, name),
				Model:    b.model,
				Tools:    b.tools,
				Messages: b.messages,
				Timeout:  b.timeout,
			}
			asked := u
			if rule.Provider != u.provider { // it is asked where its own upstream is, else where everybody does
				asked = &upstreamSetting{name: rule.Provider}
				if other := c.settings[rule.Provider]; other != nil {
					asked, rule.URL = other, other.url
				}
			}
			env := keyVariables(cmp.Or(b.keyEnv, asked.keyEnv), asked, rule.Provider)
			rule.Key = func() string { return firstEnv(w, env) }
			rules = append(rules, rule)
		}
	}
	return rules
}

// keyVariables returns the environment variables that hold the key of calls which ibid itself makes to an upstream: the
// one that was said, else the usual ones of its provider. Those count only where the upstream has the provider's name,
// so that it was put there in its place, or the provider's own address: whoever else speaks the provider's format must
// not get its keys.
func keyVariables(said string, u *upstreamSetting, provider string) []string {
	if said != "" {
		return []string{said}
	}
	p, known := call.FindProvider(provider)
	own := u.url != nil && u.url.Scheme == "https" && call.FindHost(u.url.Host) == provider
	if !known || u.name != provider && !own {
		return nil
	}
	return p.KeyEnv
}

// firstEnv returns the value of the first variable that has one.
func firstEnv(w world, names []string) string {
	for _, name := range names {
		if value, _ := w.env(name); value != "" {
			return value
		}
	}
	return ""
}
