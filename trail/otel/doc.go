// Package otel converts OpenTelemetry traces of agents to trails, and trails to traces. It contains everything that
// ibid knows about OTLP and the conventions for spans: OpenInference, OpenTelemetry's GenAI, OpenLLMetry and Langfuse.
// docs/traces.md lists the attributes.
//
// [ReadSpans] makes steps from the spans of one request, [Arrange] makes a run from all the steps that have arrived,
// [Read] does both, and [Write] is the reverse.
//
// Input is not trusted: requests are bounded before they are parsed, invalid spans are counted and left out, and
// nothing panics.
package otel
