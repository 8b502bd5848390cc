package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// Alerts and limits: the members webhooks and tenants of the file.

// Webhook is an endpoint that receives alerts: see [watch.Webhook].
type Webhook struct {
	URL        hookURL              `yaml:"url"`
	SecretEnv  string               `yaml:"secret_env"`  // the environment variable with the signing secret
	SecretFile string               `yaml:"secret_file"` // or its file
	Kinds      oneOrMore[alertKind] `yaml:"kinds"`       // empty means all
	Tenant     string               `yaml:"tenant"`      // empty means all tenants
}

// hookURL is a web address, which may have a query.
type hookURL string

// UnmarshalYAML reads an address.
func (u *hookURL) UnmarshalYAML(node ast.Node) error {
	return setFromNode(node, func(text string) error {
		parsed, err := ParseWebURL(text)
		if err == nil && parsed.User != nil {
			err = errors.New("may not have a user: requests are signed")
		}
		*u = hookURL(text)
		return err
	})
}

// host returns the part of the address that may be shown: the path may be a secret.
func (u *hookURL) host() string {
	parsed, err := ParseWebURL(string(*u))
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + parsed.Host
}

// alertKind is a kind of alerts.
type alertKind store.AlertKind

// UnmarshalYAML reads a kind.
func (k *alertKind) UnmarshalYAML(node ast.Node) error {
	return setWord(node, (*store.AlertKind)(k), store.AlertKinds())
}

// setWord sets a value of the file that must be one of words.
func setWord[T ~string](node ast.Node, value *T, words []T) error {
	return setFromNode(node, func(word string) error {
		if *value = T(word); !slices.Contains(words, *value) {
			return fmt.Errorf("must be one of %s", strings.Join(text.Strings(words), ", "))
		}
		return nil
	})
}

// Policies configure what happens to answers: see [gateway.Policies]. The default is a note.
type Policies struct {
	RequireCitations action `yaml:"require-citations"`
	Differs          action `yaml:"differs"`
	Altered          action `yaml:"altered"`
}

// action is what happens to an answer; empty means [gateway.Note].
type action gateway.Action

// UnmarshalYAML reads an action.
func (a *action) UnmarshalYAML(node ast.Node) error {
	return setWord(node, (*gateway.Action)(a), gateway.Actions())
}

// rules converts policies for the gateway; nil stays nil.
func (p *Policies) rules() *gateway.Policies {
	if p == nil {
		return nil
	}
	of := func(a action) gateway.Action { return cmp.Or(gateway.Action(a), gateway.Note) }
	return &gateway.Policies{
		RequireCitations: of(p.RequireCitations), Differs: of(p.Differs), Altered: of(p.Altered),
	}
}

// Tenant is the configuration of a tenant.
type Tenant struct {
	Policies *Policies `yaml:"policies"` // nil means only those of the upstream
	Quota    byteCount `yaml:"quota"`    // of its stored answers; 0 means no limit
}

// byteCount is a number of bytes: 500MB, 10GiB.
type byteCount int64

// UnmarshalYAML reads a number with its unit.
func (b *byteCount) UnmarshalYAML(node ast.Node) error {
	return setFromNode(node, func(text string) error {
		for unit, size := range map[string]float64{
			"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "TiB": 1 << 40, "GB": 1e9, "MB": 1e6, "TB": 1e12,
		} {
			number, ok := strings.CutSuffix(text, unit)
			n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if ok && err == nil && n > 0 && n*size < 1<<62 {
				*b = byteCount(n * size)
				return nil
			}
		}
		return errors.New("must be a number of bytes such as 500MB or 10GiB")
	})
}

// tenants converts the tenants for the gateway.
func (c *Config) tenants() map[string]gateway.Tenant {
	all := make(map[string]gateway.Tenant, len(c.Tenants))
	for name, t := range c.Tenants {
		if t != nil {
			all[name] = gateway.Tenant{Policies: t.Policies.rules(), Quota: int64(t.Quota)}
		}
	}
	return all
}

// checkWebhooks checks the endpoints.
func (c *Config) checkWebhooks() error {
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks)) {
		h := c.Webhooks[name]
		if err := checkName(name); err != nil {
			return Usagef("", "webhooks: %w", err)
		}
		switch {
		case h == nil || h.URL == "":
			return Usagef("webhooks: {"+name+": {url: https://…, secret_env: …}}", "webhook %s has no url", name)
		case (h.SecretEnv == "") == (h.SecretFile == ""):
			return Usagef(
				"secret_env names an environment variable, secret_file a file; receivers check signatures with it",
				"webhook %s needs one of secret_env and secret_file", name,
			)
		}
	}
	return nil
}

// webhooks returns the endpoints with their secrets, ordered by name.
func (c *Config) webhooks(env Env) ([]watch.Webhook, error) {
	var list []watch.Webhook
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks)) {
		h := c.Webhooks[name]
		var secret string
		where := h.SecretFile
		if h.SecretEnv != "" {
			secret, where = env.first(h.SecretEnv), h.SecretEnv
		} else {
			content, err := os.ReadFile(h.SecretFile)
			if err != nil {
				return nil, fmt.Errorf("webhook %s: reading its secret: %w", name, err)
			}
			secret = string(content)
		}
		key, err := watch.ReadWebhookSecret(secret)
		if err != nil {
			return nil, Usagef(
				"use echo whsec_$(openssl rand -base64 32)", "webhook %s: the secret in %s: %w", name, where, err,
			)
		}
		one := watch.Webhook{Name: name, URL: string(h.URL), Secret: key, Tenant: h.Tenant}
		for _, k := range h.Kinds {
			one.Kinds = append(one.Kinds, store.AlertKind(k))
		}
		list = append(list, one)
	}
	return list, nil
}

// openAlerts creates the sender of alerts.
func (s *Server) openAlerts() error {
	webhooks, err := s.config.webhooks(s.options.Env)
	if err != nil {
		return err
	}
	o := &watch.AlertsOptions{
		Store: s.Store, Webhooks: webhooks, Client: s.fetcher.Client(), Logger: s.log, Metrics: s.Metrics,
		Origin: strings.TrimRight(s.config.PublicURL, "/"),
		Away: func(ctx context.Context) error {
			if err := s.Gateway.StoreAway(); err != nil {
				return err
			}
			return s.Store.Ping(ctx)
		},
	}
	if s.publishing.keys != nil {
		o.Keys = s.publishing.keys.List
	}
	s.alerts, err = watch.NewAlerts(o)
	return err
}

// operatorLines reports the webhooks, policies and quotas.
func (k *check) operatorLines() {
	for _, u := range k.config.upstreams() {
		k.policyLine("upstream "+u.Name, u.Policies)
	}
	tenants := k.config.tenants()
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		k.policyLine("tenant "+name, tenants[name].Policies)
		if q := tenants[name].Quota; q > 0 {
			k.line("quota", fmt.Sprintf("tenant %s\t%d bytes of answers", name, q), nil)
		}
	}
	_, err := k.config.webhooks(k.Env)
	for _, name := range slices.Sorted(maps.Keys(k.config.Webhooks)) {
		h := k.config.Webhooks[name]
		what := "all alerts"
		if len(h.Kinds) > 0 {
			what = strings.Join(text.Strings(h.Kinds), ", ")
		}
		if h.Tenant != "" {
			what += " of tenant " + h.Tenant
		}
		k.line("webhook", name+"\t"+h.URL.host()+"\t"+what, err)
		err = nil // reported once: the error names the webhook
	}
}

// policyLine reports the policies of an upstream or a tenant.
func (k *check) policyLine(whose string, p *gateway.Policies) {
	if p != nil {
		k.line("policies", fmt.Sprintf("%s\t%s %s, %s %s, %s %s", whose, gateway.PolicyCitations, p.RequireCitations,
			gateway.PolicyDiffers, p.Differs, gateway.PolicyAltered, p.Altered), nil)
	}
}
