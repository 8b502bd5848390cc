package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail/otel"
)

// tracesPath is where OTLP exporters send traces, by the specification.
const tracesPath = "/v1/traces"

// traces records the spans of agents' runs from an OTLP/HTTP trace request. Spans that belong to no run are accepted
// and dropped. Requests may be repeated: each span is stored once.
func (a *API) traces(w *httpx.Reply, r *httpx.Request) error {
	body, release, err := a.bodies.Read(w, r, maxRun)
	if err != nil {
		return err
	}
	defer release()
	spans, err := a.bodies.HoldWork(r.Who, len(body), recordMemory)
	if err != nil {
		return err
	}
	defer spans()
	set, err := otel.ReadSpans(r.Header.Get("Content-Type"), body, nil)
	if errors.Is(err, otel.ErrMediaType) {
		return gateway.NewProblem(
			gateway.CodeMediaType, err.Error(), "OTLP/HTTP has these two; OTLP/gRPC is not served")
	}
	if err != nil {
		return httpx.BadRequest(err.Error(), "")
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	reject := func(spans int, why string) {
		set.Rejected += spans
		set.Reason = cmp.Or(set.Reason, why)
	}
	for _, run := range set.Runs {
		if why := gateway.CheckID(run.ID); why != "" {
			reject(len(run.Steps), "the run "+strconv.Quote(httpx.Said(run.ID))+": "+why)
			continue
		}
		// Data that the store refuses counts as rejected: retrying would not help.
		done, err := a.store.Record(ctx, r.Who.Tenant, &store.Recording{Run: run.ID, Trail: run, Partly: true})
		switch {
		case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrLimit):
			reject(len(run.Steps), err.Error())
		case err != nil:
			return httpx.StoreError("record spans", err)
		case done.Refused > 0:
			reject(done.Refused, "the run "+strconv.Quote(httpx.Said(run.ID))+": "+done.Why)
		}
	}
	if len(set.Runs) > 0 {
		a.o.Bus.Wake()
	}
	// Warnings, as OTLP calls them: nothing was rejected.
	if set.Unread > 0 {
		set.Reason = cmp.Or(set.Reason, fmt.Sprintf(
			"%d spans that look like an agent's were not read, such as %s: docs/traces.md lists the conventions",
			set.Unread, set.Example,
		))
	}
	if set.Partial > 0 {
		set.Reason = cmp.Or(set.Reason, fmt.Sprintf(
			"%d spans were read only in part: %s", set.Partial, set.PartialExample))
	}
	w.Body(http.StatusOK, traceType(r), traceResponse(traceType(r), set.Rejected, set.Reason))
	return nil
}

// traceType returns the media type of the response to a trace request: that of the request, or JSON if it is neither.
func traceType(r *httpx.Request) string {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && mediaType == otel.Protobuf {
		return otel.Protobuf
	}
	return otel.JSON
}

// traceResponse returns an ExportTraceServiceResponse. The protobuf is encoded by hand because OTLP's package would
// pull in gRPC.
func traceResponse(mediaType string, rejected int, reason string) []byte {
	if mediaType == otel.Protobuf {
		if reason == "" {
			return nil
		}
		b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(max(0, rejected)))
		b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), reason)
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
	}
	if reason == "" {
		return []byte("{}")
	}
	type partialSuccess struct {
		Rejected string `json:"rejectedSpans"` // protobuf's JSON encodes 64-bit integers as strings
		Message  string `json:"errorMessage"`
	}
	// encoding strings cannot fail
	b, _ := json.Marshal(map[string]partialSuccess{"partialSuccess": {strconv.Itoa(rejected), reason}})
	return b
}

// writeStatus writes an error of a trace request as OTLP specifies it: a google.rpc.Status in the encoding of the
// request. Of the statuses that [gateway.ProblemOf] returns, exporters retry 429, 502, 503 and 504.
func writeStatus(w *httpx.Reply, r *httpx.Request, err error) {
	p := gateway.ProblemOf(err)
	maps.Copy(w.Header(), p.Header)
	message := p.Error()
	if p.Hint != "" {
		message += "; " + p.Hint
	}
	code, mediaType := statusCodes[p.Status], traceType(r)
	switch {
	case code > 0:
	case p.Status >= http.StatusInternalServerError:
		code = 13 // INTERNAL
	default:
		code = 3 // INVALID_ARGUMENT
	}
	// encoding a number and a string cannot fail
	body, _ := httpx.Encode(struct {
		Code    uint64 `json:"code"`
		Message string `json:"message"`
	}{code, message})
	if mediaType == otel.Protobuf {
		body = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), code)
		body = protowire.AppendString(protowire.AppendTag(body, 2, protowire.BytesType), message)
	}
	w.Body(p.Status, mediaType, body)
}

// statusCodes maps HTTP statuses to the gRPC codes of google.rpc.Status.
var statusCodes = map[int]uint64{
	http.StatusUnauthorized:       16, // UNAUTHENTICATED
	http.StatusForbidden:          7,  // PERMISSION_DENIED
	http.StatusNotFound:           5,  // NOT_FOUND
	http.StatusMethodNotAllowed:   12, // UNIMPLEMENTED
	http.StatusTooManyRequests:    8,  // RESOURCE_EXHAUSTED
	http.StatusServiceUnavailable: 14, // UNAVAILABLE
	http.StatusBadGateway:         14,
	http.StatusGatewayTimeout:     4, // DEADLINE_EXCEEDED
}
