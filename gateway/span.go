package gateway

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid"
)

// traceCall writes the span of a captured call, with the names of OpenTelemetry's conventions for generative AI. Its parent
// is the client's span, if the request names one.
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
	_, span := tracer.Start(ctx, name, trace.WithTimestamp(e.started), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", operation),
		attribute.String("gen_ai.provider.name", genAIProvider(e.provider())),
		attribute.String("server.address", e.up.URL.Hostname()),
		attribute.Int("http.response.status_code", e.status),
		attribute.String("ibid.upstream", e.up.Name),
		attribute.String("ibid.run", e.asked.run),
	))
	defer span.End()
	if e.model != "" {
		span.SetAttributes(attribute.String("gen_ai.request.model", e.model))
	}
	if e.asked.conversation != "" {
		span.SetAttributes(attribute.String("gen_ai.conversation.id", e.asked.conversation))
	}
	if e.asked.agent != "" {
		span.SetAttributes(attribute.String("gen_ai.agent.name", e.asked.agent))
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
		attribute.String("gen_ai.provider.name", genAIProvider(a.Provider)),
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

// genAIProvider returns a provider's name in OpenTelemetry's conventions.
func genAIProvider(provider string) string {
	switch provider {
	case "gemini":
		return "gcp.gemini"
	case "vertex":
		return "gcp.vertex_ai"
	case "azure":
		return "azure.ai.openai"
	case "bedrock":
		return "aws.bedrock"
	case "xai":
		return "x_ai"
	case "mistral":
		return "mistral_ai"
	}
	return provider
}
