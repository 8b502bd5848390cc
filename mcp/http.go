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

// Handler answers clients over streamable HTTP, whatever the path: each POST is one message, and its answer a stream of
// events. There are no sessions, so that any node answers, and a GET, which would listen for news of one, is a 405.
//
// The guard says who calls, by an access token as on the API, and keeps foreign hosts and web pages away. Every valid
// token may list the tools; each tool asks for a scope of its own when it is called. What goes wrong before a message
// is read is answered as a [gateway.Problem]. A call ends when its client hangs up.
func (m *MCP) Handler(guard *gateway.Guard) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return m.server },
		&sdk.StreamableHTTPOptions{
			Stateless: true, MaxRequestBodyBytes: MaxMessage, PropagateRequestCancellation: true,
			DisableLocalhostProtection: true, // the guard knows by which names it may be reached
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

// admit has a request answered that may come in. The error is a problem, and nothing was written then.
func (m *MCP) admit(w http.ResponseWriter, r *http.Request, guard *gateway.Guard, next http.Handler) error {
	who, err := guard.API(r, "")
	if err != nil {
		return err
	}
	if r.Method != http.MethodPost {
		return &gateway.Problem{
			Status: http.StatusMethodNotAllowed,
			Code:   gateway.CodeMethod,
			Detail: "MCP is spoken by POST here: there are no sessions to listen to or to end",
			Hint:   "point an MCP client for streamable HTTP at this address; docs/mcp.md says how",
			Header: http.Header{"Allow": {http.MethodPost}},
		}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return gateway.NewProblem(gateway.CodeMediaType, "the message has a Content-Encoding", "send it as it is")
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
		return httpx.BadRequest("messages are not taken in batches", "send them one by one")
	}
	if !m.requests.TryAcquire(1) { // only now: who sends slowly, or nothing, is in nobody's way
		return gateway.Unavailable(fmt.Sprintf("%d requests are being served at the moment", MaxRequests))
	}
	defer m.requests.Release(1)
	r = r.WithContext(withCaller(r.Context(), who))
	r.Body = io.NopCloser(bytes.NewReader(body))
	next.ServeHTTP(w, r)
	return nil
}

// caller is who makes a call, and how long they wait for it.
type caller struct {
	who  gateway.Identity
	done context.Context //nolint:containedctx // the SDK keeps the values of a request's context and drops its end
}

type callerKey struct{}

func withCaller(ctx context.Context, who gateway.Identity) context.Context {
	return store.WithReader(context.WithValue(ctx, callerKey{}, &caller{who, ctx}), who.Tenant)
}
