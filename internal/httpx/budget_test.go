package httpx

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/ibidhq/ibid/gateway"
)

// What takes too long is a problem, not half a page.
func TestBounded(t *testing.T) {
	serve := func(h Handler) (*httptest.ResponseRecorder, error) {
		rec := httptest.NewRecorder()
		r := &Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)}
		return rec, bounded(h, 50*time.Millisecond)(&Reply{ResponseWriter: rec}, r)
	}
	rec, err := serve(func(w *Reply, r *Request) error {
		for r.Context().Err() == nil { // slow work
		}
		w.Body(http.StatusOK, "text/plain", []byte("half"))
		t.Error("a response has begun after the limit")
		return nil
	})
	if gateway.ProblemOf(err).Status != http.StatusServiceUnavailable || rec.Body.Len() != 0 {
		t.Errorf("too long: %v, body %q", err, rec.Body)
	}
	if rec, err := serve(func(w *Reply, _ *Request) error {
		w.Body(http.StatusOK, "text/plain", []byte("whole"))
		return nil
	}); err != nil || rec.Body.String() != "whole" {
		t.Errorf("in time: %v, body %q", err, rec.Body)
	}
	if _, err := serve(func(*Reply, *Request) error { return ErrGone }); !errors.Is(err, ErrGone) {
		t.Errorf("an error: got %v", err)
	}
}

// A reader that leaves ends the work.
func TestBoundedGone(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	r := &Request{Request: httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)}
	err := bounded(func(_ *Reply, r *Request) error {
		leave()
		<-r.Context().Done()
		return context.Cause(r.Context())
	}, WorkTime)(&Reply{ResponseWriter: httptest.NewRecorder()}, r)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Every handler is bounded, unless its response stays open.
func TestMuxBounds(t *testing.T) {
	bound := map[string]bool{}
	note := func(w *Reply, r *Request) error {
		bound[r.Path] = w.work != nil
		w.Body(http.StatusOK, "text/plain", nil)
		return nil
	}
	m := NewMux([]Route{
		{Pattern: "/work", Access: Public, Handle: note}, {Pattern: "/stream", Access: Public, Stays: true, Handle: note},
	}, &Options{})
	for _, path := range []string{"/work", "/stream"} {
		m.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	if !bound["/work"] || bound["/stream"] {
		t.Errorf("bound: %v", bound)
	}
}

// Work beyond the threads that there are is bounded too.
func TestBoundedWithoutThread(t *testing.T) {
	if !threads.TryAcquire(maxThreads) {
		t.Skip("there is other work")
	}
	defer threads.Release(maxThreads)
	ctx, release := withWorkTime(t.Context(), time.Millisecond)
	defer release()
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrWorkTime) {
		t.Errorf("got %v", context.Cause(ctx))
	}
}
