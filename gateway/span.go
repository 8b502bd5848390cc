package gateway

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
)

// traceCall writes the span of a captured call, with the names of OpenTelemetry's conventions for generative AI. Its
// parent is the client's span, if the request names one.
func (e *exchange) traceCall() {
	tracer := e.g.options.Tracer
	if tracer == nil || !e.captured {
		return
	}
	const operation = "chat"
	name := operation
	if e.model != "" {
		name += " " + e.model
	}
	ctx := propagation.TraceContext{}.Extract(e.in.Context(), propagation.HeaderCarrier(e.in.Header))
	_, span := tracer.Start(
		ctx, name, trace.WithTimestamp(e.started), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("gen_ai.operation.name", operation),
			attribute.String("gen_ai.provider.name", call.OTelName(e.provider())),
			attribute.String("server.address", e.up.URL.Hostname()),
			attribute.Int("http.response.status_code", e.status), attribute.String("ibid.upstream", e.up.Name),
			attribute.String("ibid.run", e.labels.run),
		),
	)
	defer span.End()
	if e.model != "" {
		span.SetAttributes(attribute.String("gen_ai.request.model", e.model))
	}
	if e.labels.conversation != "" {
		span.SetAttributes(attribute.String("gen_ai.conversation.id", e.labels.conversation))
	}
	if e.labels.agent != "" {
		span.SetAttributes(attribute.String("gen_ai.agent.name", e.labels.agent))
	}
	if e.status >= 400 {
		span.SetStatus(codes.Error, "")
	}
	if e.answer != nil {
		e.traceAnswer(span, e.answer)
	}
}

func (e *exchange) traceAnswer(span trace.Span, a *ibid.Answer) {
	span.SetAttributes(
		attribute.String("gen_ai.provider.name", call.OTelName(a.Provider)),
		attribute.String("ibid.answer", e.answerID),
		attribute.Int("ibid.citations", len(a.Citations)),
		attribute.Int("ibid.sources", len(a.Sources)),
		attribute.Bool("ibid.complete", a.Complete),
	)
	if a.ID != "" {
		span.SetAttributes(attribute.String("gen_ai.response.id", a.ID))
	}
	if a.Model != "" {
		span.SetAttributes(attribute.String("gen_ai.response.model", a.Model))
	}
	if a.Finish != "" {
		span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(a.Finish)}))
	}
	if a.Error != nil {
		span.SetStatus(codes.Error, "")
	}
}
