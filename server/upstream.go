package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/watch"
)

// Upstream is a provider as clients reach it: its name is the first segment of the paths to it.
type Upstream struct {
	URL      URL    `yaml:"url"`      // empty means the provider's well-known address
	Provider string `yaml:"provider"` // empty means that it is detected from responses
	// KeyEnv is the environment variable with the key for ibid's own calls; empty means the provider's usual one, if
	// that is allowed.
	KeyEnv    string              `yaml:"key_env"`
	Retention *Age                `yaml:"retention"` // of the provider's answers; nil if not set here
	Backfill  oneOrMore[Backfill] `yaml:"backfill"`  // second calls for answers without citations
	Policies  *Policies           `yaml:"policies"`  // nil for none
}

// Backfill configures a second call for an answer without citations: see [watch.Rule].
type Backfill struct {
	Route    string       `yaml:"route"`
	Provider string       `yaml:"provider"`
	Model    string       `yaml:"model"`
	Tools    toolList     `yaml:"tools"`
	Messages messageCount `yaml:"messages"`
	Timeout  timeout      `yaml:"timeout"`
	KeyEnv   string       `yaml:"key_env"`
}

// ChatModel is a model that POST /v1/chat can ask. In the file it is NAME, NAME=MODEL, or a mapping.
type ChatModel struct {
	Upstream     string   `yaml:"upstream"`
	Model        string   `yaml:"model"`
	Instructions string   `yaml:"instructions"`
	Tools        toolList `yaml:"tools"`
}

// UnmarshalYAML reads a model from a file.
func (m *ChatModel) UnmarshalYAML(node ast.Node) error {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	default:
		return setFromNode(node, func(text string) error {
			var list []ChatModel
			if err := (chatFlag{&list}).Set(text); err != nil {
				return err
			}
			if len(list) != 1 {
				return errors.New("must be NAME or NAME=MODEL, such as openai=gpt-5")
			}
			*m = list[0]
			return nil
		})
	}
	type plain ChatModel // without this method
	if err := decode(node, (*plain)(m)); err != nil {
		return err
	}
	if m.Upstream == "" {
		return mistake(node.GetToken(), "- {upstream: openai, model: gpt-5}", "chat needs an upstream")
	}
	return nil
}

// chatOff disables chat.
const chatOff = "off"

// upstreamProvider returns the provider of an upstream: the configured one, else the known one, or the mapping, of that
// name.
func (c *Config) upstreamProvider(name, provider string) string {
	_, known := call.FindProvider(name)
	if provider == "" && (known || c.maps(name)) {
		return name
	}
	return provider
}

// resolveUpstreams adds the upstreams of flags, which take precedence over the file, and the providers with a
// well-known address.
func (c *Config) resolveUpstreams() error {
	for _, name := range slices.Sorted(maps.Keys(c.flagged)) {
		flag, known := c.flagged[name], c.Upstreams[name]
		if known == nil {
			c.Upstreams[name] = flag
			continue
		}
		if known.Retention != nil && flag.Provider != "" && flag.Provider != known.Provider {
			return Usagef(
				"use the same provider, or leave it out of the flag",
				"upstream %s has provider %s in the flag, but %s in %s, which sets its retention",
				name, flag.Provider, known.Provider, c.File,
			)
		}
		known.URL, known.Provider = flag.URL, cmp.Or(flag.Provider, known.Provider)
	}
	for name, u := range c.Upstreams {
		u.Provider = c.upstreamProvider(name, u.Provider)
	}
	for _, p := range call.Providers() {
		u := c.Upstreams[p.Name]
		if u == nil {
			if p.NeedsURL {
				continue
			}
			u = &Upstream{}
			c.Upstreams[p.Name] = u
		}
		u.Provider = cmp.Or(u.Provider, p.Name)
		if !p.NeedsURL {
			u.URL = cmp.Or(u.URL, URL(p.URL))
		}
	}
	return nil
}

// upstreamNames returns the names of the upstreams in the order of the documentation, followed by others.
func (c *Config) upstreamNames() []string {
	var names []string
	for _, p := range call.Providers() {
		if c.Upstreams[p.Name] != nil {
			names = append(names, p.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// upstreams returns the upstreams ordered by name.
func (c *Config) upstreams() []gateway.Upstream {
	list := make([]gateway.Upstream, 0, len(c.Upstreams))
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		u := c.Upstreams[name]
		list = append(list, gateway.Upstream{
			Name: name, URL: u.URL.parse(), Provider: u.Provider, Path: c.paths[u.Provider],
			Policies: u.Policies.rules(),
		})
	}
	return list
}

// backfillRules returns the rules for second calls, ordered by upstream.
func (c *Config) backfillRules(env Env) []watch.Rule {
	var rules []watch.Rule
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		u := c.Upstreams[name]
		for _, b := range u.Backfill {
			rule := watch.Rule{
				Upstream: name,
				Route:    b.Route,
				Provider: cmp.Or(b.Provider, u.Provider, name),
				Model:    b.Model,
				Tools:    b.Tools,
				Messages: int(b.Messages),
				Timeout:  time.Duration(b.Timeout),
			}
			askedName, asked := name, u
			if rule.Provider != u.Provider { // at its own upstream, else at its well-known address
				askedName, asked = rule.Provider, &Upstream{}
				if other := c.Upstreams[rule.Provider]; other != nil {
					asked, rule.URL = other, other.URL.parse()
				}
			}
			names := keyVariables(cmp.Or(b.KeyEnv, asked.KeyEnv), askedName, asked.URL.parse(), rule.Provider)
			rule.Key = func() string { return env.first(names...) }
			rules = append(rules, rule)
		}
	}
	return rules
}

// keyVariables returns the environment variables with the key for ibid's own calls to an upstream: the configured one,
// else the provider's usual ones. The latter apply only if the upstream has the provider's name, and so replaces it, or
// the provider's own address: a third party that speaks the provider's format must not get its keys.
func keyVariables(said, name string, address *url.URL, provider string) []string {
	if said != "" {
		return []string{said}
	}
	p, known := call.FindProvider(provider)
	own := address != nil && address.Scheme == "https" && call.FindHost(address.Host) == provider
	if !known || name != provider && !own {
		return nil
	}
	return p.KeyEnv
}

// checkChat checks that the models can be asked.
func (c *Config) checkChat() error {
	for _, m := range c.Chat {
		if m.Upstream == chatOff && len(c.Chat) == 1 {
			return nil
		}
		u := c.Upstreams[m.Upstream]
		if u == nil {
			return Usagef("--upstream NAME=URL,provider=… adds one", "chat: there is no upstream %s", m.Upstream)
		}
		if !canAsk(u.Provider) {
			return Usagef(
				"supported are gemini, openai, xai, cohere, anthropic, perplexity, openrouter and mistral",
				"chat: ibid cannot make requests to the provider %q of %s", u.Provider, m.Upstream,
			)
		}
	}
	return nil
}

// canAsk reports whether ibid can make requests to a provider.
func canAsk(provider string) bool {
	probe := call.Chat{Model: "m", Messages: []call.Message{{Role: call.RoleUser, Text: "?"}}}
	_, err := call.BuildRequest(provider, &probe)
	return err == nil
}

// chatProviders returns the providers for chat. The default is every upstream that ibid can make requests to: those
// with a key first, then in the order of the documentation, then by name.
func (c *Config) chatProviders(env Env) []chat.Provider {
	list := c.Chat
	if len(list) == 1 && list[0].Upstream == chatOff {
		return nil
	}
	if len(list) == 0 {
		for _, name := range c.upstreamNames() {
			if u := c.Upstreams[name]; canAsk(u.Provider) {
				m := ChatModel{Upstream: name}
				if p, known := call.FindProvider(u.Provider); known && u.URL == URL(p.URL) {
					m.Model = call.DefaultModel(u.Provider) // another address may serve other models
				}
				list = append(list, m)
			}
		}
	}
	all := make([]chat.Provider, 0, len(list))
	for _, m := range list {
		u := c.Upstreams[m.Upstream]
		variables := keyVariables(u.KeyEnv, m.Upstream, u.URL.parse(), u.Provider)
		all = append(all, chat.Provider{
			Upstream:     m.Upstream,
			Provider:     u.Provider,
			Model:        m.Model,
			Key:          env.first(variables...),
			KeyEnv:       strings.Join(variables, " or "),
			Tools:        []json.RawMessage(m.Tools),
			Instructions: m.Instructions,
		})
	}
	if len(c.Chat) == 0 {
		slices.SortStableFunc(all, func(a, b chat.Provider) int {
			return cmp.Compare(min(len(b.Key), 1), min(len(a.Key), 1))
		})
	}
	return all
}

// AllStrategies returns all strategies: the built-in ones and those of the file.
func (c *Config) AllStrategies() []experiment.Strategy {
	return append(experiment.Builtin(), c.Strategies...)
}

// StrategyHint is the hint for an unknown strategy.
const StrategyHint = "define your own under strategies in the file of --config"

// chooseStrategy returns the function that chooses the strategy of a run; nil if there is none.
func (c *Config) chooseStrategy() (func(run string) *experiment.Strategy, error) {
	list := c.AllStrategies()
	switch {
	case c.Experiment.Name != "" && c.Attribute != "":
		return nil, Usagef(
			"an experiment already names both of its strategies", "--attribute and --experiment contradict each other",
		)
	case c.Experiment.Name != "":
		split := &experiment.Split{Name: c.Experiment.Name, Share: c.Experiment.Share}
		var err error
		if split.A, err = experiment.Find(list, c.Experiment.A); err == nil {
			split.B, err = experiment.Find(list, c.Experiment.B)
		}
		if err == nil {
			err = split.Check()
		}
		if err != nil {
			return nil, Usagef(StrategyHint, "experiment: %w", err)
		}
		return split.Choose, nil
	case c.Attribute != "":
		s, err := experiment.Find(list, c.Attribute)
		if err != nil {
			return nil, Usagef(StrategyHint, "attribute: %w", err)
		}
		return func(string) *experiment.Strategy { return &s }, nil
	}
	return nil, nil //nolint:nilnil // no strategy is not an error
}

// checkStrategies checks that the checkers of strategies exist.
func (c *Config) checkStrategies() error {
	for i := range c.Strategies {
		s := &c.Strategies[i]
		if s.Checker != experiment.CheckerLexical && c.Checkers[s.Checker] == nil {
			return Usagef(
				experiment.CheckerLexical+" is built in; define others under checkers in the file of --config",
				"strategy %s: there is no checker %q", s.ID(), s.Checker,
			)
		}
	}
	return nil
}

// chosenStrategies returns the strategies in use: none, one, or the two of an experiment.
func (c *Config) chosenStrategies() []experiment.Strategy {
	var chosen []experiment.Strategy
	for _, name := range []string{c.Attribute, c.Experiment.A, c.Experiment.B} {
		if s, err := experiment.Find(c.AllStrategies(), name); err == nil {
			chosen = append(chosen, s)
		}
	}
	return chosen
}
