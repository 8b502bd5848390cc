package snapshot

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is an in-memory network for synctest bubbles. Only the dialer differs: a Fetcher uses its connections as usual.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubble runs do with a Fetcher with default limits whose network is an in-memory server.
func bubble(t *testing.T, h http.HandlerFunc, do func(ctx context.Context, f *Fetcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		s := &http.Server{Handler: h}
		var group sync.WaitGroup
		group.Go(func() { _ = s.Serve(p) })
		f := NewFetcher(nil)
		f.transport.DialContext = p.dial
		do(t.Context(), f)
		f.Close()
		s.Close()
		group.Wait()
	})
}

// wait simulates a slow server.
func wait(ctx context.Context, d time.Duration) { _ = sleep(ctx, d) }

// flush flushes w.
func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// The default time limits.
func TestFetchTimes(t *testing.T) {
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		took   time.Duration
		reason string // empty if it is read
	}{
		"header in time": {func(_ http.ResponseWriter, r *http.Request) { wait(r.Context(), 9*time.Second) }, 9 * time.Second, ""},
		"header late":    {func(_ http.ResponseWriter, r *http.Request) { wait(r.Context(), 11*time.Second) }, 10 * time.Second, reasonTimeout},
		"body in time": {func(w http.ResponseWriter, r *http.Request) {
			for range 6 {
				flush(w)
				wait(r.Context(), 4*time.Second)
				_, _ = io.WriteString(w, "x")
			}
		}, 24 * time.Second, ""},
		"body idle": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "x")
			flush(w)
			wait(r.Context(), time.Minute)
		}, 5 * time.Second, reasonTimeout},
		"drip": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "x")
				flush(w)
				wait(r.Context(), time.Second)
			}
		}, 30 * time.Second, reasonTimeout},
		"slow redirects": {func(w http.ResponseWriter, r *http.Request) {
			wait(r.Context(), 8*time.Second)
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, 30 * time.Second, reasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, c.serve, func(ctx context.Context, f *Fetcher) {
				begin := time.Now()
				_, err := f.Fetch(ctx, &FetchRequest{URL: "http://example.com/"})
				took := time.Since(begin)
				if took < c.took || took > c.took+time.Second {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				ferr, _ := errors.AsType[*FetchError](err)
				if c.reason == "" && err != nil || c.reason != "" && (ferr == nil || ferr.Kind != Unreachable || ferr.Reason != c.reason) {
					t.Errorf("got %v, want %q", err, c.reason)
				}
			})
		})
	}
}

// Retry-After is honoured, in seconds and as a date, for all pages of the server.
func TestFetchRetryAfter(t *testing.T) {
	for _, as := range []func() string{
		func() string { return "12" },
		func() string { return time.Now().Add(12 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		tries := 0
		bubble(t, func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries == 1 && r.URL.Path == "/" {
				w.Header().Set("Retry-After", as())
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}, func(ctx context.Context, f *Fetcher) {
			begin := time.Now()
			var group sync.WaitGroup
			group.Go(func() {
				if _, err := f.Fetch(ctx, &FetchRequest{URL: "http://example.com/"}); err != nil {
					t.Error(err)
				}
			})
			<-time.After(time.Second)
			if _, err := f.Fetch(ctx, &FetchRequest{URL: "http://example.com/other"}); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took < 12*time.Second || took > 13*time.Second {
				t.Errorf("another page was requested after %v", took)
			}
			group.Wait()
			if took := time.Since(begin); took > 13*time.Second || tries != 3 {
				t.Errorf("it took %v and %d requests", took, tries)
			}
			// Other hosts are not affected.
			begin = time.Now()
			if _, err := f.Fetch(ctx, &FetchRequest{URL: "http://example.net/"}); err != nil || time.Since(begin) > 0 {
				t.Errorf("another host: %v after %v", err, time.Since(begin))
			}
		})
	}
}

// Without a Retry-After the pauses grow.
func TestFetchBackoff(t *testing.T) {
	var at []time.Time
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		at = append(at, time.Now())
		w.WriteHeader(http.StatusBadGateway)
	}, func(ctx context.Context, f *Fetcher) {
		_, err := f.Fetch(ctx, &FetchRequest{URL: "http://example.com/"})
		if err == nil || len(at) != 3 {
			t.Fatalf("%v after %d requests", err, len(at))
		}
		first, second := at[1].Sub(at[0]), at[2].Sub(at[1])
		if first < 500*time.Millisecond || first > 750*time.Millisecond || second < time.Second || second > 1500*time.Millisecond {
			t.Errorf("the pauses were %v and %v", first, second)
		}
	})
}

// A robots.txt is cached for a day, even a missing one, and a failure for some minutes.
func TestFetchRobotsAge(t *testing.T) {
	for status, life := range map[int]time.Duration{200: robotsLife, 404: robotsLife, 502: robotsRetryLife} {
		asked := 0
		bubble(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				asked++
				w.WriteHeader(status)
			}
		}, func(ctx context.Context, f *Fetcher) {
			begin := time.Now()
			for range 2 {
				_, _ = f.Fetch(ctx, &FetchRequest{URL: "http://example.com/", Scheduled: true})
			}
			once := asked
			<-time.After(life - time.Since(begin) - time.Second)
			_, _ = f.Fetch(ctx, &FetchRequest{URL: "http://example.com/", Scheduled: true})
			if asked != once {
				t.Errorf("%d: it was read again too early", status)
			}
			<-time.After(5 * time.Second)
			_, _ = f.Fetch(ctx, &FetchRequest{URL: "http://example.com/", Scheduled: true})
			if asked != 2*once {
				t.Errorf("%d: after %v it was read %d times, before %d", status, life, asked, once)
			}
		})
	}
}

// A waiting request leaves the queue when its context ends, and the queue is unchanged.
func TestFetchLeavesQueue(t *testing.T) {
	bubble(t, func(_ http.ResponseWriter, r *http.Request) { wait(r.Context(), 9*time.Second) }, func(ctx context.Context, f *Fetcher) {
		var group sync.WaitGroup
		for _, path := range []string{"a", "b"} {
			group.Go(func() {
				if _, err := f.Fetch(ctx, &FetchRequest{URL: "http://example.com/" + path}); err != nil {
					t.Error(err)
				}
			})
		}
		<-time.After(time.Second)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		begin := time.Now()
		_, err := f.Fetch(short, &FetchRequest{URL: "http://example.com/c"})
		if ferr, ok := errors.AsType[*FetchError](err); !ok || ferr.Reason != reasonTimeout || time.Since(begin) != time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		group.Wait()
		f.hosts.mu.Lock()
		defer f.hosts.mu.Unlock()
		if one := f.hosts.all["example.com"]; one.users != 0 || one.places.taken != 0 || f.all.taken != 0 {
			t.Errorf("left: %d users, %d and %d places", one.users, one.places.taken, f.all.taken)
		}
	})
}

// A panic during a fetch is an error.
func TestFetchPanic(t *testing.T) {
	f := NewFetcher(nil)
	f.copies = panicking{}
	_, err := f.Fetch(t.Context(), &FetchRequest{URL: "http://example.com/"})
	if ferr, ok := errors.AsType[*FetchError](err); !ok || ferr.Reason != reasonProtocol {
		t.Errorf("%v", err)
	}
	f.Close()
}

type panicking struct{}

func (panicking) Latest(context.Context, string) (*Snapshot, error) { panic("oh") }
func (panicking) Keep(context.Context, *Snapshot) error             { return nil }

// A negative limit has its documented meaning or means the default: never that nothing can be fetched.
func TestFetchLimitsNegative(t *testing.T) {
	d := FetchLimits{}.orDefaults()
	got := FetchLimits{
		Bytes: -1, Compressed: -1, Redirects: -1, Connect: -1, Header: -1, Idle: -1, Total: -1, PerHost: -1, Gap: -1, Parallel: -1,
		Retries: -1, Backoff: -1, RetryAfter: -1,
	}.orDefaults()
	want := FetchLimits{
		Bytes: d.Bytes, Compressed: d.Compressed, Connect: d.Connect, Header: d.Header, Idle: d.Idle, Total: d.Total, Parallel: d.Parallel,
	}
	if got != want || d.Bytes != 8<<20 || d.Idle != 5*time.Second {
		t.Errorf("%+v", got)
	}
}
