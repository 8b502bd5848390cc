package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid/gateway"
)

// reply remembers what was answered.
type reply struct {
	http.ResponseWriter

	status int // 0: nothing yet
}

func (w *reply) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *reply) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// setHeaders sets what every answer has. What providers sent is shown to nobody as a page of this origin.
func setHeaders(h http.Header, id string) {
	h.Set("X-Request-Id", id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
}

func newRequestID() string { return "req_" + strings.ToLower(rand.Text()[:16]) }

// fail answers with a problem, and logs what the client is not told.
func (a *API) fail(ctx context.Context, w *reply, r *request, err error) {
	if ctx.Err() != nil && w.status == 0 {
		w.status = 499 // nobody is there to read it; the log says so as others do
		return
	}
	p := gateway.ProblemOf(err)
	if gateway.IsInternal(err) || p.Status == http.StatusServiceUnavailable {
		a.logger.LogAttrs(ctx, slog.LevelError, "a request was not answered",
			slog.String("request", r.id), slog.String("method", r.Method), slog.Any("error", err))
	}
	if w.status != 0 { // the answer has begun: all that is left is to break it off, so that nobody takes it for whole
		panic(http.ErrAbortHandler)
	}
	writeError(w, r, err)
}

// writeError answers with a problem, or in the form that the path's specification wants.
func writeError(w http.ResponseWriter, r *request, err error) {
	if r.route == tracesPath {
		writeStatus(w, r, gateway.ProblemOf(err))
		return
	}
	gateway.WriteProblem(w, r.Request, err)
}

// finish logs how a request was answered. It is deferred: a panic ends the request and not the program.
func (a *API) finish(ctx context.Context, w *reply, r *request) {
	p := recover()
	if err, _ := p.(error); p != nil && !errors.Is(err, http.ErrAbortHandler) {
		a.logger.LogAttrs(
			ctx, slog.LevelError, "a request made the program panic",
			slog.String(
				"request", r.id,
			),
			slog.String("panic", fmt.Sprint(p)),
			slog.String("stack", string(debug.Stack())),
		)
		if w.status == 0 {
			writeError(w, r, errPanic)
			p = nil
		}
	}
	a.metrics.count(r.route, r.Method, w.status)
	a.logger.LogAttrs(
		ctx, slog.LevelDebug, "request",
		slog.String(
			"request", r.id,
		),
		slog.String("method", r.Method), slog.String("route", r.route), slog.String("tenant", r.who.Tenant),
		slog.String("token", r.who.Token), slog.Int("status", w.status),
		slog.Duration("duration", time.Since(r.begun)),
	)
	if p != nil {
		panic(http.ErrAbortHandler) // what was begun must not look whole
	}
}

var errPanic = errors.New("panic")

// writeJSON answers with v, on one line, without escapes that only HTML needs.
func writeJSON(w http.ResponseWriter, r *request, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	write(w, r, status, "application/json", body)
	return nil
}

// encode returns v as a line of JSON, without escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("write the answer as JSON: %w", err)
	}
	return b.Bytes(), nil
}

// writeTagged is write with an ETag; a client that has the same already gets a 304.
func writeTagged(w http.ResponseWriter, r *request, mediaType string, body []byte) {
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	if isTagIn(r.Header.Values("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	write(w, r, http.StatusOK, mediaType, body)
}

func isTagIn(headers []string, tag string) bool {
	for _, header := range headers {
		for given := range strings.SplitSeq(header, ",") {
			given = strings.TrimPrefix(strings.TrimSpace(given), "W/")
			if given == tag || given == "*" {
				return true
			}
		}
	}
	return false
}

func write(w http.ResponseWriter, r *request, status int, mediaType string, body []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // who left does not read it
	}
}
