package gateway_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

const insideURL = "http://ibid.invalid"

// drip sends a line, and then nothing until its client has gone, of which it tells.
func drip(gone chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "line\n")
		flush(w)
		<-r.Context().Done()
		gone <- struct{}{}
	}
}

// Closing the body and ending the context break off the call, up to the upstream.
func TestInsideLeave(t *testing.T) {
	gone := make(chan struct{}, 1)
	w := newTwin(t, drip(gone), nil)
	for _, path := range []string{captured, streamed} {
		for name, leave := range map[string]func(*http.Response, context.CancelCauseFunc){
			"close":  func(res *http.Response, _ context.CancelCauseFunc) { _ = res.Body.Close() },
			"cancel": func(_ *http.Response, cancel context.CancelCauseFunc) { cancel(errLeft) },
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			r, _ := http.NewRequestWithContext(ctx, "POST", insideURL+path, strings.NewReader("{}"))
			res := testenv.Must(w.gateway.Transport(somebody).RoundTrip(r))(t)
			line := make([]byte, 5)
			if _, err := io.ReadFull(res.Body, line); err != nil || string(line) != "line\n" {
				t.Fatalf("%s: %q, %v", name, line, err)
			}
			leave(res, cancel)
			<-gone
			if n, err := res.Body.Read(line); n != 0 || err == nil || name == "cancel" && !errors.Is(err, errLeft) {
				t.Errorf("%s: then %d, %v", name, n, err)
			}
			_ = res.Body.Close()
			cancel(nil)
		}
	}
}

var errLeft = errors.New("the caller has left")

// An upstream that hears nothing holds neither who calls nor who closes.
func TestInsideHangs(t *testing.T) {
	free, entered := make(chan struct{}), make(chan struct{}, 1)
	w := newTwin(t, nil, &setup{options: gateway.Options{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		entered <- struct{}{}
		<-free
		return nil, errors.New("late")
	})}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-entered
		cancel()
	}()
	r, _ := http.NewRequestWithContext(ctx, "POST", insideURL+captured, strings.NewReader("{}"))
	if _, _, err := w.call(r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := w.metric(t, "in_flight"); n != 1 {
		t.Errorf("%v calls are being served", n)
	}
	close(free)
}

// A mistake of ours breaks off the call and nothing else.
func TestInsidePanic(t *testing.T) {
	w := newTwin(t, nil, &setup{options: gateway.Options{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		panic("a mistake")
	})}})
	_, _, err := w.call(w.request(t, "POST", captured, strings.NewReader("{}")))
	if err == nil {
		t.Error("the call has an answer")
	}
	w.idle(t)
	if !strings.Contains(w.log.String(), "inside_break_test.go") {
		t.Errorf("the log has no stack: %s", w.log)
	}
}

// reader is a body that says whether it was closed.
type reader struct {
	io.Reader
	closed atomic.Int32
}

func (r *reader) Close() error {
	r.closed.Add(1)
	return nil
}

// failing fails when it is read.
type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errLeft }

// The request's body is closed once, whatever becomes of the call, and its own failure is the call's.
func TestInsideBody(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, nil)
	for _, test := range []struct {
		name   string
		body   io.Reader
		length int64
		path   string
		want   string
		err    error // io.ErrUnexpectedEOF: any will do
	}{
		{name: "whole", body: strings.NewReader("{}"), length: 2, path: captured, want: "{}"},
		{name: "of unknown length", body: strings.NewReader("{}"), length: 0, path: captured, want: "{}"},
		{name: "chunked", body: strings.NewReader("{}"), length: -1, path: streamed, want: "{}"},
		{name: "unread", body: strings.NewReader("{}"), length: 2, path: "/nowhere", want: "no upstream"},
		{name: "too short", body: strings.NewReader("{}"), length: 3, path: captured, err: io.ErrUnexpectedEOF},
		{name: "too long", body: strings.NewReader("{}"), length: 1, path: captured, err: io.ErrUnexpectedEOF},
		{name: "failing", body: failing{}, length: -1, path: captured, err: errLeft},
		{name: "failing while it streams", body: failing{}, length: -1, path: streamed, err: errLeft},
	} {
		body := &reader{Reader: test.body}
		r := w.request(t, "POST", test.path, body)
		r.ContentLength = test.length
		_, got, err := w.call(r)
		if errors.Is(test.err, io.ErrUnexpectedEOF) && err != nil {
			err = test.err
		}
		if !errors.Is(err, test.err) || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, %v, want %v", test.name, got, err, test.err)
		}
		w.idle(t)
		if n := body.closed.Load(); n != 1 {
			t.Errorf("%s: the body was closed %d times", test.name, n)
		}
	}
	body := &reader{Reader: strings.NewReader("")}
	if _, _, err := w.call(&http.Request{Body: body}); err == nil || body.closed.Load() != 1 {
		t.Errorf("without a URL: %v, closed %d times", err, body.closed.Load())
	}
}

// call makes a call from inside, and reads its response.
func (w *twin) call(r *http.Request) (status int, body string, err error) {
	res, err := w.gateway.Transport(somebody).RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// idle waits until no call is being served.
func (w *world) idle(tb testing.TB) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); w.metric(tb, "in_flight") > 0; {
		if time.Now().After(deadline) {
			tb.Fatal("calls are being served")
		}
		<-time.After(time.Millisecond)
	}
}

// A caller that does not read is not waited for, nor is one that does not send.
func TestInsideIdle(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, 1<<20)) // more than is held on the way
	}, &setup{options: gateway.Options{Limits: gateway.Limits{Idle: 50 * time.Millisecond, RequestTime: 50 * time.Millisecond}}})
	res := testenv.Must(w.inside.Post(insideURL+captured, "", strings.NewReader("{}")))(t)
	defer res.Body.Close()
	w.idle(t)
	if _, err := io.ReadAll(res.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("who did not read gets %v", err)
	}
	from, _ := io.Pipe()
	defer from.Close() // where an ordinary client's request waits for it
	r := w.request(t, "POST", captured, from)
	r.ContentLength = 7
	if got, _, err := w.call(r); err != nil || got != http.StatusRequestTimeout {
		t.Errorf("who does not send gets %d, %v", got, err)
	}
	w.idle(t)
}

// Nothing changes the protocol: a server may ignore the wish.
func TestInsideUpgrade(t *testing.T) {
	w := newTwin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header["Upgrade"] != nil || r.Header["Connection"] != nil {
			t.Errorf("the upstream is asked for another protocol: %v", r.Header)
		}
		_, _ = io.WriteString(w, "no")
	}, nil)
	r := w.request(t, "GET", streamed, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	if status, _, err := w.call(r); err != nil || status != http.StatusOK {
		t.Errorf("%d, %v", status, err)
	}
}
