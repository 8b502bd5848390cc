package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// newLogger returns the logger of a daemon: JSON lines, or text for a person at a terminal. A quiet one says what is wrong.
func newLogger(w io.Writer, quiet bool) *slog.Logger {
	o := &slog.HandlerOptions{ReplaceAttr: seconds}
	if quiet {
		o.Level = slog.LevelWarn
	}
	inner := w
	if l, ok := w.(*locked); ok {
		inner = l.w
	}
	if isTerminal(inner) {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: o.Level}))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// seconds makes durations numbers of seconds, as metrics have them; slog's own are nanoseconds.
func seconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// locked lets several goroutines write.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// lastTraces is how long traces may take to get away at the end.
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
		d.log.LogAttrs(background, slog.LevelWarn, "traces did not get away", slog.Any("error", err))
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
