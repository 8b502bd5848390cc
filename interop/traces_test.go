package interop

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A program traced with OpenTelemetry's SDK gets its run's trail, with a token in the exporter's headers.
func TestTracesFromSDK(t *testing.T) {
	ctx := t.Context()
	s := testenv.Must(store.Open(ctx, filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer s.Close()
	secret := testenv.Must(s.NewToken(ctx, &store.Token{Tenant: "t", Scopes: []string{store.ScopeWrite}}))(t)
	b := testenv.Must(bus.Open(ctx, "", nil))(t)
	defer b.Close()
	a := testenv.Must(api.New(&api.Options{Store: s, Bus: b, Guard: gateway.NewGuard(&gateway.GuardOptions{Store: s})}))(t)
	defer a.Close()
	server := httptest.NewServer(a)
	defer server.Close()

	export := func(token string, batch int) (run string, err error) {
		exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(server.URL+"/v1/traces"),
			otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithHeaders(map[string]string{"Authorization": "Bearer " + token}))
		if err != nil {
			return "", err
		}
		failed := &failures{SpanExporter: exporter}
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(failed, sdktrace.WithMaxExportBatchSize(batch)))
		run = traceAgent(ctx, provider.Tracer("agent"))
		return run, errors.Join(provider.Shutdown(ctx), failed.err)
	}
	for _, batch := range []int{1, 512} { // spans may come before their parents, alone or with them
		run := testenv.Must(export(secret, batch))(t)
		trail := testenv.Must(s.Trail(ctx, "t", run))(t)
		type step struct {
			Tool, Question, Answer, Error string
			After                         []int
			Used                          []string
		}
		got := []step{}
		for _, from := range trail.Steps {
			to := step{Tool: from.Tool, Question: from.Question, Answer: from.Answer, Error: from.Error, After: from.After}
			for _, source := range from.Sources {
				if source.Used {
					to.Used = append(to.Used, source.DocumentID)
				}
			}
			got = append(got, to)
		}
		want := []step{
			{Tool: "archive", Question: "mill", After: []int{}, Used: []string{"mill.txt"}},
			{Tool: "clock", Error: "no hands", After: []int{1}},
			{Question: "When?", Answer: "In 1820 [mill.txt].", After: []int{2}, Used: []string{"mill.txt"}},
		}
		testenv.Equal(t, fmt.Sprintf("batches of %d", batch), want, got)
		if trail.Agent != "guide" || trail.Question != "When was the mill built?" || trail.Answer != "In 1820 [mill.txt]." || trail.Finished.IsZero() {
			t.Errorf("batches of %d: %+v", batch, trail)
		}
	}
	if _, err := export("wrong", 512); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("with a wrong token: %v", err)
	}
}

// failures collects an exporter's errors, which the SDK would only log.
type failures struct {
	sdktrace.SpanExporter

	err error
}

func (f *failures) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := f.SpanExporter.ExportSpans(ctx, spans)
	f.err = errors.Join(f.err, err)
	return err
}

// traceAgent traces a simulated agent and returns the id of its trace.
func traceAgent(ctx context.Context, tracer trace.Tracer) string {
	ctx, agent := tracer.Start(ctx, "invoke_agent guide", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", "guide"),
		attribute.String("input.value", "When was the mill built?")))
	_, find := tracer.Start(ctx, "find", trace.WithAttributes(
		attribute.String("openinference.span.kind", "RETRIEVER"), attribute.String("gen_ai.data_source.id", "archive"),
		attribute.String("input.value", "mill"),
		attribute.String("retrieval.documents.0.document.id", "mill.txt"), attribute.Float64("retrieval.documents.0.document.score", 0.9),
		attribute.String("retrieval.documents.0.document.content", "The mill was built in 1820 by the monks of the valley."),
		attribute.Int("retrieval.documents.1.document.id", 2),
		attribute.String("retrieval.documents.1.document.content", "The bridge was rebuilt after the flood of 1988.")))
	_, plain := tracer.Start(ctx, "GET /archive", trace.WithSpanKind(trace.SpanKindClient))
	plain.End()
	find.End()
	_, clock := tracer.Start(ctx, "execute_tool clock", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", "clock")))
	clock.RecordError(errors.New("no hands"))
	clock.SetStatus(codes.Error, "no hands")
	clock.End()
	_, chat := tracer.Start(ctx, "chat m", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", "m"),
		attribute.String("gen_ai.input.messages", `[{"role":"system","parts":[{"type":"text","content":"The mill was built in 1820 by the monks of the valley."}]},{"role":"user","parts":[{"type":"text","content":"When?"}]}]`),
		attribute.String("gen_ai.output.messages", `[{"role":"assistant","parts":[{"type":"text","content":"In 1820 [mill.txt]."}]}]`)))
	chat.End()
	agent.End()
	return agent.SpanContext().TraceID().String()
}
