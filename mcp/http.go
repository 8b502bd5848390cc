package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
	body = bytes.Trim(body, " \t\r\n")
	if len(body) == 0 {
		return httpx.BadRequest("the body is empty", "send one JSON-RPC message")
	}
	msg, body, invalid := readMessage(body)
	if invalid != nil {
		return httpx.BadRequest(invalid.Message, "send one JSON-RPC message in each request")
	}
	if !m.requests.TryAcquire(1) { // only now, so that slow or idle senders do not block others
		return gateway.Unavailable(fmt.Sprintf("%d requests are already being served", MaxRequests))
	}
	defer m.requests.Release(1)
	r = r.WithContext(withCaller(r.Context(), who))
	r.Body = io.NopCloser(bytes.NewReader(body))
	out := &answer{ResponseWriter: w}
	next.ServeHTTP(out, r)
	return out.end(msg)
}

// answer is the response to a message. The SDK refuses messages in plain text, which is held: see end.
type answer struct {
	http.ResponseWriter

	refusal int // the status of the held text; 0 if the response is not a refusal
	held    []byte
}

// Unwrap returns the client's writer, so that it can be flushed.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader holds a refusal back.
func (a *answer) WriteHeader(status int) {
	if status >= 400 && strings.HasPrefix(a.Header().Get("Content-Type"), "text/plain") {
		a.refusal = status
		return
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes p, which holds at most one message, with the id that the client sent.
func (a *answer) Write(p []byte) (int, error) {
	if a.refusal != 0 {
		a.held = append(a.held, p...)
		return len(p), nil
	}
	if _, err := a.ResponseWriter.Write(restore(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end answers a message that the SDK refused: a call of what does not exist with an error of the protocol, as over
// stdio, and anything else, such as a missing Accept, with a problem, which it returns.
func (a *answer) end(msg jsonrpc.Message) error {
	if a.refusal == 0 {
		return nil
	}
	text := strings.TrimSpace(string(a.held))
	if call, ok := msg.(*jsonrpc.Request); ok && call.IsCall() {
		var why *jsonrpc.Error
		if _, ok := strings.CutPrefix(text, "JSON RPC not handled: "); ok {
			detail := fmt.Sprintf("method not found: %q", call.Method)
			why = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: cut(detail)}
		} else if detail, ok := strings.CutPrefix(text, "invalid request: "); ok {
			why = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: cut(detail)}
		}
		if why != nil {
			body, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: call.ID, Error: why})
			if err == nil {
				a.Header().Set("Content-Type", "application/json")
				_, _ = a.ResponseWriter.Write(restore(body)) // the client may have left
			}
			return err
		}
	}
	code := gateway.CodeBadRequest
	switch {
	case a.refusal == http.StatusUnsupportedMediaType:
		code = gateway.CodeMediaType
	case a.refusal >= 500:
		return fmt.Errorf("serve an MCP message: %s", text)
	}
	return gateway.NewProblem(code, cut(text), "see docs/mcp.md")
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
