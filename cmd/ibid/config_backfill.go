package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/watch"
)

// backfillRules returns the rules for second calls, in the order of the upstreams' names.
func (c *config) backfillRules(w world) []watch.Rule {
	var rules []watch.Rule
	for _, name := range slices.Sorted(maps.Keys(c.settings)) {
		u := c.settings[name]
		for _, b := range u.backfill {
			rule := watch.Rule{
				Upstream: name, Route: b.route, Provider: cmp.Or(b.provider, u.provider, name), Model: b.model, Tools: b.tools,
				Messages: b.messages, Timeout: b.timeout,
			}
			env := []string{cmp.Or(b.keyEnv, u.keyEnv)}
			if other := c.settings[rule.Provider]; rule.Provider != u.provider && other != nil {
				rule.URL = other.url
				env[0] = cmp.Or(b.keyEnv, other.keyEnv)
			}
			if p, known := wire.FindProvider(rule.Provider); known {
				env = append(env, p.KeyEnv...)
			}
			rule.Key = func() string { return firstEnv(w, env) }
			rules = append(rules, rule)
		}
	}
	return rules
}

// firstEnv returns the value of the first variable that has one.
func firstEnv(w world, names []string) string {
	for _, name := range names {
		if value, _ := w.env(name); name != "" && value != "" {
			return value
		}
	}
	return ""
}
