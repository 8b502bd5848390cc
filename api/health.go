package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// checkFor bounds how long readiness waits for each check.
const checkFor = 2 * time.Second

// alive answers as long as the program does.
func (a *API) alive(w http.ResponseWriter, r *request) error {
	return writeJSON(w, r, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether calls can be captured now, which is what a gateway is ready for. A store or a bus that is away is
// told and changes nothing: calls succeed, and what they answered waits in the journal. A load balancer that took the
// gateway out for it would make an outage of it.
func (a *API) ready(w http.ResponseWriter, r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), checkFor)
	defer cancel()
	status, body := http.StatusOK, readiness{"ready", map[string]string{}}
	check := func(name string, err error, bad string) bool {
		body.Checks[name] = "ok"
		if err != nil {
			body.Status, body.Checks[name] = "degraded", bad
			// The error may name hosts and files, and whoever asks has shown no token.
			a.logger.LogAttrs(
				ctx, slog.LevelWarn, "not all is well", slog.String("check", name), slog.Any("error", err),
			)
		}
		return err == nil
	}
	check("store", a.store.Ping(ctx), "it does not answer")
	check("bus", a.bus.Healthy(), "it reaches no other node; live events are late")
	if a.gateway != nil && !check("journal", a.gateway.Ready(), "answers cannot be captured") {
		status, body.Status = http.StatusServiceUnavailable, "not ready"
		w.Header().Set("Retry-After", "2")
	}
	return writeJSON(w, r, status, body)
}

// readiness is the answer to the question whether a gateway is ready.
type readiness struct {
	Status string            `json:"status"` // ready, degraded, not ready
	Checks map[string]string `json:"checks"`
}

// index lists the endpoints.
func (a *API) index(w http.ResponseWriter, r *request) error {
	text := fmt.Sprintf(`ibid %s

Put a provider's name before its own path, and use its SDK as ever:
  POST /openai/v1/responses     POST /gemini/v1beta/models/…     POST /cohere/v2/chat     POST /anthropic/v1/messages

What was answered, with citations:
  GET  /v1/answers              GET /v1/answers/ID               GET /v1/sources?url=
  GET  /v1/conversations        GET /v1/conversations/ID
  GET  /v1/runs                 GET /v1/runs/ID                  GET /v1/runs/ID/events
  GET  /v1/runs/ID/summary      what each sentence of a run's answer rests on
  POST /v1/runs                 POST /v1/runs/ID/steps           POST /v1/runs/ID/finish
  POST /v1/traces               the spans of an agent, by OTLP/HTTP
  POST /v1/feedback             GET /v1/feedback
  POST /v1/decode               a provider's response in, its answer document out
  POST /v1/chat                 asks a provider: server-sent events, or ?stream=ui for useChat

Whether it is so:
  POST /v1/verify               a URL, a manifest or a response in, a report out
  GET  /v1/incidents            GET /v1/answers?verification=failed
  GET  /v1/sources/versions?url=                                 GET /v1/copies/HASH
  GET  /v1/answers/ID/manifest  GET /v1/runs/ID/manifest

  GET  /                        the page                         POST /mcp: tools for agents
  GET  /healthz                 GET /readyz                      GET /metrics

https://github.com/ibidhq/ibid/blob/main/docs/http.md
`, a.version)
	write(w, r, http.StatusOK, "text/plain; charset=utf-8", []byte(text))
	return nil
}
