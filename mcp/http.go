package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/ibidhq/ibid/gateway"
)

// bodyTime is how long a client may take to send a message.
const bodyTime = 2 * time.Minute

// Handler answers clients over streamable HTTP, whatever the path: each POST is one message, and its answer a stream of events. There
// are no sessions, so that any node answers, and a GET, which would listen for news of one, is a 405.
//
// The guard says who calls, by an access token as on the API, and keeps foreign hosts and web pages away. Every valid token may list
// the tools; each tool asks for a scope of its own when it is called. What goes wrong before a message is read is answered as a
// [gateway.Problem]. A call ends when its client hangs up.
func (m *MCP) Handler(guard *gateway.Guard) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return m.server }, &sdk.StreamableHTTPOptions{
		Stateless: true, MaxRequestBodyBytes: MaxMessage, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // the guard knows by which names it may be reached
	})
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
			Status: http.StatusMethodNotAllowed, Code: gateway.CodeMethod, Detail: "MCP is spoken by POST here: there are no sessions to listen to or to end",
			Hint: "point an MCP client for streamable HTTP at this address; docs/mcp.md says how", Header: http.Header{"Allow": {http.MethodPost}},
		}
	}
	if !m.requests.TryAcquire(1) {
		return gateway.Unavailable(fmt.Sprintf("%d requests are being served at the moment", MaxRequests))
	}
	defer m.requests.Release(1)
	size := r.ContentLength
	if size > MaxMessage {
		return &http.MaxBytesError{Limit: MaxMessage}
	}
	if size < 0 {
		size = MaxMessage
	}
	if !m.bodies.TryAcquire(size) {
		return gateway.Unavailable("too much is being read at the same time")
	}
	defer m.bodies.Release(size)
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	r = r.WithContext(withCaller(r.Context(), who))
	r.Body = io.NopCloser(bytes.NewReader(body))
	next.ServeHTTP(w, r)
	return nil
}

// readBody reads one message.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "" {
		return nil, &gateway.Problem{
			Status: http.StatusUnsupportedMediaType, Code: gateway.CodeMediaType, Detail: "the message has a Content-Encoding", Hint: "send it as it is",
		}
	}
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, large
		}
		return nil, badMessage("the body cannot be read", "send one JSON-RPC message")
	}
	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case len(start) == 0:
		return nil, badMessage("the body is empty", "send one JSON-RPC message")
	case start[0] == '[':
		return nil, badMessage("messages are not taken in batches", "send them one by one")
	}
	return body, nil
}

func badMessage(detail, hint string) error {
	return &gateway.Problem{Status: http.StatusBadRequest, Code: gateway.CodeBadRequest, Detail: detail, Hint: hint}
}

// caller is who makes a call, and how long they wait for it.
type caller struct {
	who  gateway.Identity
	done context.Context //nolint:containedctx // the SDK keeps the values of a request's context and drops its end
}

type callerKey struct{}

func withCaller(ctx context.Context, who gateway.Identity) context.Context {
	return context.WithValue(ctx, callerKey{}, &caller{who, ctx})
}
