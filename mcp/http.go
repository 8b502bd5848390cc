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
	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/gateway"
)

const (
	// bodyTime is how long a client may take to send a message.
	bodyTime = 2 * time.Minute
	// firstRead is how many bytes of room a message has at first.
	firstRead = 16 << 10
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
	body := &message{bodies: m.bodies}
	defer body.release()
	if err := body.read(w, r); err != nil {
		return err
	}
	if !m.requests.TryAcquire(1) { // only now: who sends slowly, or nothing, is in nobody's way
		return gateway.Unavailable(fmt.Sprintf("%d requests are being served at the moment", MaxRequests))
	}
	defer m.requests.Release(1)
	r = r.WithContext(withCaller(r.Context(), who))
	r.Body = io.NopCloser(bytes.NewReader(body.text))
	next.ServeHTTP(w, r)
	return nil
}

// message is one message, for whose bytes there is room among those of all requests.
type message struct {
	bodies *semaphore.Weighted
	text   []byte
	held   int64
}

// read reads the message. Room is taken as it comes: its length is only a promise.
func (b *message) read(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > MaxMessage {
		return &http.MaxBytesError{Limit: MaxMessage}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return &gateway.Problem{
			Status: http.StatusUnsupportedMediaType,
			Code:   gateway.CodeMediaType,
			Detail: "the message has a Content-Encoding",
			Hint:   "send it as it is",
		}
	}
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Now().Add(bodyTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("read a message: %w", err)
	}
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	if err := b.readAll(http.MaxBytesReader(w, r.Body, MaxMessage)); err != nil {
		return err
	}
	switch start := bytes.TrimLeft(b.text, " \t\r\n"); {
	case len(start) == 0:
		return badMessage("the body is empty", "send one JSON-RPC message")
	case start[0] == '[':
		return badMessage("messages are not taken in batches", "send them one by one")
	}
	return nil
}

func (b *message) readAll(from io.Reader) error {
	for {
		if len(b.text) == cap(b.text) {
			more := int64(min(max(firstRead, 2*cap(b.text)), MaxMessage+1)) // one more, to see that it ends
			if !b.bodies.TryAcquire(more - b.held) {
				return gateway.Unavailable("too much is being read at the same time")
			}
			b.held = more
			b.text = append(make([]byte, 0, more), b.text...)
		}
		n, err := from.Read(b.text[len(b.text):cap(b.text)])
		b.text = b.text[:len(b.text)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return large
		}
		if err != nil {
			return badMessage("the body cannot be read", "send one JSON-RPC message")
		}
	}
}

func (b *message) release() { b.bodies.Release(b.held) }

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
