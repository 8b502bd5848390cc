package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// What the operator hears of, and what is allowed: the members webhooks and tenants of the file.

// Webhook is an endpoint that is told of alerts, by its name: see [watch.Webhook].
type Webhook struct {
	URL        hookURL              `yaml:"url"`
	SecretEnv  string               `yaml:"secret_env"`  // the environment variable with what signs
	SecretFile string               `yaml:"secret_file"` // or the file
	Kinds      oneOrMore[alertKind] `yaml:"kinds"`       // none: all
	Tenant     string               `yaml:"tenant"`      // empty: everybody's
}

// hookURL is an address of the web, which may have a query.
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

// host returns what may be shown of the address: its path may be a secret.
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
	return setFromNode(node, func(word string) error {
		*k = alertKind(word)
		if !slices.Contains(store.AlertKinds(), store.AlertKind(word)) {
			return fmt.Errorf("must be one of %s", strings.Join(text.Strings(store.AlertKinds()), ", "))
		}
		return nil
	})
}

// checkWebhooks finds endpoints that cannot be told of anything.
func (c *Config) checkWebhooks() error {
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks)) {
		h := c.Webhooks[name]
		if err := checkName(name); err != nil {
			return usagef("", "webhooks: %w", err)
		}
		switch {
		case h == nil || h.URL == "":
			return usagef("webhooks: {"+name+": {url: https://…, secret_env: …}}", "webhook %s has no url", name)
		case (h.SecretEnv == "") == (h.SecretFile == ""):
			return usagef(
				"secret_env names an environment variable, secret_file a file; receivers check signatures with it",
				"webhook %s needs one of secret_env and secret_file", name,
			)
		}
	}
	return nil
}

// webhooks returns the endpoints with their secrets, in the order of their names.
func (c *Config) webhooks(env Env) ([]watch.Webhook, error) {
	var list []watch.Webhook
	for _, name := range slices.Sorted(maps.Keys(c.Webhooks)) {
		h := c.Webhooks[name]
		secret, where := "", h.SecretFile
		if h.SecretEnv != "" {
			secret, where = env.first([]string{h.SecretEnv}), h.SecretEnv
		} else {
			content, err := os.ReadFile(h.SecretFile)
			if err != nil {
				return nil, fmt.Errorf("webhook %s: reading its secret: %w", name, err)
			}
			secret = string(content)
		}
		key, err := watch.ReadWebhookSecret(secret)
		if err != nil {
			return nil, usagef(
				"echo whsec_$(openssl rand -base64 32) makes one", "webhook %s: the secret in %s: %w", name, where, err,
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

// openAlerts makes what tells of alerts.
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

// webhookLines says whom alerts are told.
func (k *check) webhookLines() {
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
		err = nil // it says which
	}
}
