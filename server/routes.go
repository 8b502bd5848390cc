package server

import (
	"slices"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/mcp"
	"github.com/ibidhq/ibid/page"
	"github.com/ibidhq/ibid/store"
)

// Routes returns all that a server answers but the pages for people, as data: the handlers cannot be called. What the
// gateway and MCP serve is described here, because they have no tables.
func Routes() []httpx.Route {
	return slices.Concat(api.Routes(), chat.Routes(), page.Routes(), []httpx.Route{
		{
			Method: "POST", Pattern: "/{upstream}/{path...}", Scope: store.ScopeProxy,
			Doc: "Calls a provider, whose name comes before its own path. Request, response and errors are the " +
				"provider's; the headers Ibid-Answer and Ibid-Run say what the answer is kept as. Other methods " +
				"pass too.",
			Body: []string{"application/json", ""}, MaxBody: -1,
			Media: []string{"application/json", "text/event-stream"},
			Problems: []string{
				gateway.CodeNotFound, gateway.CodeTooMany, gateway.CodeUpstream, gateway.CodeUpstreamSlow,
			},
		},
		{
			Method: "POST", Pattern: "/mcp",
			Doc:  "Speaks the Model Context Protocol over streamable HTTP. Each tool has a scope of its own.",
			Body: []string{"application/json"}, MaxBody: mcp.MaxMessage,
			Media: []string{"application/json", "text/event-stream"}, Status: []int{200, 202},
		},
	})
}
