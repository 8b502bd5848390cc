// Package httpx is what the HTTP interfaces of ibid (packages api, chat, mcp and page) have in common.
//
// # Routes
//
// A package lists its endpoints as a table of [Route] values and serves them by a [Mux]. A route is data: method,
// pattern, who may call it, whose rows it reaches, its query parameters, the types of its JSON bodies. Package
// internal/openapi describes the API by them. The mux does
// what is the same for all: request ids, headers, CORS, access by the [gateway.Guard], parameters, problems, the log,
// panics.
//
//	mux := httpx.NewMux([]httpx.Route{
//		httpx.JSON(httpx.Route{Pattern: "/v1/runs/{id}", Scope: store.ScopeRead}, readRun),
//		{Method: "DELETE", Pattern: "/v1/runs/{id}", Scope: store.ScopeWrite, Handle: deleteRun},
//	}, &httpx.Options{Guard: guard, Logger: logger})
//
// [JSON] and [List] make the handlers of routes whose answers are values; others are a [Handler].
//
// # Reading and writing
//
// A handler returns an error to refuse: [gateway.ProblemOf] says what the client is told, and [BadRequest], [TooMany]
// and [StoreError] make such errors. [Request.Params] has the parameters, checked against the route's. [Bodies] reads
// request bodies within bounds, [ReadJSON] small strict ones. [Reply] writes documents with and without an ETag, and
// [Stream] server-sent events to readers that may be slow.
//
// [Reader] finds what was captured: in the gateway's memory, else in the store; lists wait until the store has what was
// captured before them.
package httpx
