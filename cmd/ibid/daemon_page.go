package main

import (
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/page"
)

// people is what people and agents use directly: the page, chat, and the tools of MCP.
type people struct {
	page *page.Page
	chat *chat.Chat   // nil: nobody can be asked
	mcp  http.Handler // nil only before it is made
}

// makePeople makes the page, chat and MCP over what there is.
func (d *daemon) makePeople() error {
	var err error
	if providers := d.config.chatProviders(d.world); len(providers) > 0 {
		d.people.chat, err = chat.New(&chat.Options{
			Gateway: d.gateway, Guard: d.guard, Store: d.store, Bus: d.bus, Providers: providers,
			Late: d.config.chat.late, LateFor: d.comesLate, Logger: d.log, Metrics: d.metrics,
		})
		if err != nil {
			return err
		}
	}
	d.people.mcp = mcp.New(&mcp.Options{
		Store: d.store, Gateway: d.gateway, Verify: d.api.Verify, Version: readBuild().Version, Logger: d.log,
	}).Handler(d.guard)
	d.people.page, err = page.New(&page.Options{
		Store: d.store, Guard: d.guard, API: d.api, Gateway: d.gateway, Bus: d.bus, Chat: d.people.chat, Verifies: true,
		Strategies: d.config.strategyList(), Logger: d.log, Version: readBuild().Version,
		PublicURL: d.config.publicURL,
	})
	return err
}

// comesLate reports whether an answer without citations may get some after it has ended.
func (d *daemon) comesLate(upstream, route, run string) bool {
	return d.backfill != nil && d.backfill.Wants(upstream, route) || d.attribution != nil && d.attribution.Wants(run)
}

// handler returns what answers a request whose path is ibid's own and begins with a segment.
func (d *daemon) handler(first string, r *http.Request) http.Handler {
	switch {
	case first == "ui", first == "ibid.js", first == "favicon.ico", r.URL.Path == "/" && !wantsIndex(r):
		return d.people.page
	case first == demoSitePath:
		return d.demo
	case r.URL.Path == "/mcp":
		return d.people.mcp
	case d.people.chat != nil && (r.URL.Path == "/v1/chat" || strings.HasPrefix(r.URL.Path, "/v1/chat/")):
		return d.people.chat
	}
	return d.api
}

// wantsIndex reports whether a request for / comes from a program that says so: it gets the API's list.
func wantsIndex(r *http.Request) bool {
	accepted := r.Header.Get("Accept")
	return strings.HasPrefix(accepted, "application/json") || strings.HasPrefix(accepted, "text/plain")
}
