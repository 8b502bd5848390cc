package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

// Handler serves clients over streamable HTTP, on any path: each POST is one message, and its response a stream of
// events. There are no sessions, so any node can answer, and a GET, which would listen to one, is a 405.
//
// The guard authenticates callers by access token, as on the API, and rejects foreign hosts and web pages. Any valid
// token may list the tools; each tool requires its own scope when it is called. Errors before a message is read are a
// [gateway.Problem]. A call ends when its client disconnects.
func (m *MCP) Handler(guard *gateway.Guard) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return m.server },
		&sdk.StreamableHTTPOptions{
			Stateless: true, MaxRequestBodyBytes: MaxMessage, PropagateRequestCancellation: true,
			DisableLocalhostProtection: true, // the guard checks the Host
		},
	)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if guard.CORS(w, r) {
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if err := m.admit(w, r, guard, inner); err != nil {
			gateway.WriteProblem(w, r, err)
		}
	})
}

// admit serves a request that is allowed. Its error is a problem; in that case nothing has been written.
func (m *MCP) admit(w http.ResponseWriter, r *http.Request, guard *gateway.Guard, next http.Handler) error {
	who, err := guard.API(r, "")
	if err != nil {
		return err
	}
	if r.Method != http.MethodPost {
		return &gateway.Problem{
			Status: http.StatusMethodNotAllowed,
			Code:   gateway.CodeMethod,
			Detail: "only POST is supported: there are no sessions to listen to or to end",
			Hint:   "point an MCP client for streamable HTTP at this address; see docs/mcp.md",
			Header: http.Header{"Allow": {http.MethodPost}},
		}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return gateway.NewProblem(gateway.CodeMediaType, "the message has a Content-Encoding", "send it uncompressed")
	}
	body, release, err := m.bodies.Read(w, &httpx.Request{Request: r, Who: who}, MaxMessage)
	if err != nil {
		return err
	}
	defer release()
	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case len(start) == 0:
		return httpx.BadRequest("the body is empty", "send one JSON-RPC message")
	case start[0] == '[':
		return httpx.BadRequest("batches are not supported", "send messages one by one")
	}
	if !m.requests.TryAcquire(1) { // only now, so that slow or idle senders do not block others
		return gateway.Unavailable(fmt.Sprintf("%d requests are already being served", MaxRequests))
	}
	defer m.requests.Release(1)
	r = r.WithContext(withCaller(r.Context(), who))
	r.Body = io.NopCloser(bytes.NewReader(body))
	next.ServeHTTP(w, r)
	return nil
}

// caller is the caller of a tool, with the context of the request.
type caller struct {
	who  gateway.Identity
	done context.Context //nolint:containedctx // the SDK keeps the values of a request's context, but not its end
}

type callerKey struct{}

func withCaller(ctx context.Context, who gateway.Identity) context.Context {
	return store.WithReader(context.WithValue(ctx, callerKey{}, &caller{who, ctx}), who.Tenant)
}
