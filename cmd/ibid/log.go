package main

import (
	"io"
	"log/slog"
	"sync"
)

// newLogger returns the logger of a daemon: JSON lines, or text for a person at a terminal. A quiet one says what is
// wrong.
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
