// Package httpx is the common part of ibid's HTTP interfaces (packages api, chat, mcp and page).
//
// # Routes
//
// A package lists its endpoints as a table of [Route] values and serves them with a [Mux]. A route is data: its method
// and pattern, who may call it, whose rows it accesses, its query parameters, and the types of its JSON bodies. Package
// internal/openapi describes the API from them. The mux implements what is common to all routes: request ids, headers,
// CORS, access control by the [gateway.Guard], parameters, problems, logging, and recovery from panics.
//
//	mux := httpx.NewMux([]httpx.Route{
//		httpx.JSON(httpx.Route{Pattern: "/v1/runs/{id}", Scope: store.ScopeRead}, readRun),
//		{Method: "DELETE", Pattern: "/v1/runs/{id}", Scope: store.ScopeWrite, Handle: deleteRun},
//	}, &httpx.Options{Guard: guard, Logger: logger})
//
// [JSON] and [List] create handlers for routes that return values; others implement a [Handler].
//
// # Reading and writing
//
// A handler returns an error to refuse a request: [gateway.ProblemOf] determines what the client sees, and
// [BadRequest] and [StoreError] create such errors. [Request.Params] contains the parameters, checked
// against the route's. [Bodies] reads request bodies within limits, [ReadJSON] small strict ones. [Reply] writes
// documents with and without an ETag, and [Stream] server-sent events to readers that may be slow.
//
// [Reader] finds captured answers in the gateway's memory or else in the store; lists wait until the store has what was
// captured before them.
package httpx
