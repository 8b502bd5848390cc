package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// lastTraces is how long the last traces may take to be sent.
const lastTraces = 5 * time.Second

// openTraces begins to send traces, if the configuration says where to.
func (d *daemon) openTraces(ctx context.Context) error {
	if d.config.otlp == "" {
		return nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(d.config.otlp))
	if err != nil {
		return fmt.Errorf("preparing traces for %s: %w", redacted(d.config.otlp), err)
	}
	background := context.WithoutCancel(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		d.log.LogAttrs(background, slog.LevelWarn, "traces could not be sent", slog.Any("error", err))
	}))
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "ibid"), attribute.String("service.version", readBuild().Version),
	)))
	d.tracer = provider.Tracer("github.com/ibidhq/ibid")
	d.close = append(d.close, func() error {
		ctx, cancel := context.WithTimeout(background, lastTraces)
		defer cancel()
		return provider.Shutdown(ctx)
	})
	return nil
}
