// Package otel turns OpenTelemetry traces of agents into trails, and trails into traces. It has all that ibid knows of
// OTLP and of the conventions for spans: OpenInference, OpenTelemetry's GenAI, OpenLLMetry and Langfuse. docs/traces.md
// lists the attributes.
//
// [ReadSpans] makes steps of the spans of one request, [Arrange] makes a run of all the steps that have arrived, [Read]
// does both, [Write] is the way back.
//
// Input is not trusted: a request is bounded before it is parsed, a span that is wrong is counted and left out, and
// nothing panics.
package otel
