package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// loopback is the only address of this machine that tests may reach.
func loopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }

// rude returns limits without politeness, for tests of other things.
func rude() snapshot.FetchLimits {
	return snapshot.FetchLimits{PerHost: -1, Gap: -1, Backoff: -1}
}

// fetcher returns a Fetcher that may reach this machine, and closes it at the end of the test.
func fetcher(tb testing.TB, o snapshot.FetchOptions) *snapshot.Fetcher {
	tb.Helper()
	before := goleak.IgnoreCurrent()
	if o.Allow == nil {
		o.Allow = loopback()
	}
	f := snapshot.NewFetcher(&o)
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("closing: %v", err)
		}
		goleak.VerifyNone(tb, before)
	})
	return f
}

// site is a server on 127.0.0.1.
func site(tb testing.TB, h http.HandlerFunc) *httptest.Server {
	tb.Helper()
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return s
}

// wantError fails unless err is a FetchError of that kind and reason.
func wantError(tb testing.TB, err error, kind snapshot.FetchErrorKind, reason string) *snapshot.FetchError {
	tb.Helper()
	ferr, ok := errors.AsType[*snapshot.FetchError](err)
	if !ok {
		tb.Fatalf("got %v, want a FetchError: %s (%s)", err, kind, reason)
	}
	if ferr.Kind != kind || ferr.Reason != reason {
		tb.Fatalf("got %s (%s), want %s (%s): %v", ferr.Kind, ferr.Reason, kind, reason, err)
	}
	return ferr
}

func packed(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.Bytes()
}

func TestFetch(t *testing.T) {
	var asked http.Header
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			http.Redirect(w, r, "/b#there", http.StatusFound)
		case "/b":
			http.Redirect(w, r, "c?d=e f", http.StatusMovedPermanently)
		default:
			asked = r.Header.Clone()
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("ETag", `"one"`)
			w.Header().Set("Last-Modified", "Sat, 21 Nov 2026 10:00:00 GMT")
			w.Header().Set("X-Once", "1")
			w.Header().Set("Connection", "x-once")
			w.Header().Set("Keep-Alive", "timeout=5")
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Add("Set-Cookie", "secret=1")
			w.Write(packed("<p>Herons nest here.</p>"))
		}
	})
	f := fetcher(t, snapshot.FetchOptions{})
	got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/a"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(http.Header{
		"Accept": {"*/*"}, "Accept-Encoding": {"gzip"}, "User-Agent": {snapshot.DefaultUserAgent},
	}, asked); diff != "" {
		t.Errorf("the request: %s", diff)
	}
	if age := time.Since(got.FetchedAt); age < 0 || age > time.Minute || got.FetchedAt.Location() != time.UTC {
		t.Errorf("fetched at %v", got.FetchedAt)
	}
	got.FetchedAt = time.Time{}
	delete(got.Header, "Date")
	octets := "<p>Herons nest here.</p>"
	if diff := cmp.Diff(&snapshot.Snapshot{
		URL: s.URL + "/a", FinalURL: s.URL + "/c?d=e%20f", Hops: []string{s.URL + "/b"}, Status: 200,
		Header: http.Header{
			"Content-Type": {"text/html; charset=utf-8"}, "Etag": {`"one"`}, "Last-Modified": {"Sat, 21 Nov 2026 10:00:00 GMT"},
			"Content-Encoding": {"gzip"}, "Content-Length": {strconv.Itoa(len(packed(octets)))},
		},
		MediaType: "text/html; charset=utf-8", ETag: `"one"`, LastModified: "Sat, 21 Nov 2026 10:00:00 GMT",
		UserAgent: snapshot.DefaultUserAgent, Octets: []byte(octets), Hash: snapshot.Hash([]byte(octets)),
	}, got); diff != "" {
		t.Error(diff)
	}
	text, err := got.Text()
	if err != nil || text.Content != "Herons nest here." {
		t.Errorf("its text is %v, %v", text, err)
	}
}

// Each status has its kind and reason.
func TestFetchStatus(t *testing.T) {
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		w.WriteHeader(status)
	})
	limits := rude()
	limits.Retries = -1
	f := fetcher(t, snapshot.FetchOptions{Limits: limits})
	for status, want := range map[int]string{
		200: "", 202: "", 203: "", 204: "",
		206: "unreachable protocol", 300: "unreachable protocol", 301: "unreachable protocol", 304: "unreachable protocol", 305: "unreachable protocol",
		400: "unreachable 4xx", 401: "access-denied ", 402: "access-denied ", 403: "access-denied ", 404: "gone ", 407: "access-denied ",
		410: "gone ", 418: "unreachable 4xx", 429: "unreachable 429", 451: "access-denied ",
		500: "unreachable 5xx", 503: "unreachable 5xx", 599: "unreachable 5xx", 600: "unreachable protocol", 999: "unreachable protocol",
	} {
		got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: fmt.Sprintf("%s/%d", s.URL, status)})
		if want == "" {
			if err != nil || got.Status != status || len(got.Octets) != 0 {
				t.Errorf("%d: %v, %v", status, got, err)
			}
			continue
		}
		kind, reason, _ := strings.Cut(want, " ")
		if ferr := wantError(t, err, snapshot.FetchErrorKind(kind), reason); ferr.Status != status {
			t.Errorf("%d: the error has %d", status, ferr.Status)
		}
	}
}

func TestFetchCodings(t *testing.T) {
	const text = "Herons nest in the old mill."
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		coding := r.URL.Query().Get("coding")
		if coding != "" {
			w.Header().Set("Content-Encoding", coding)
		}
		body := []byte(text)
		switch coding {
		case "gzip", "x-gzip":
			body = packed(text)
		case "br":
			var b bytes.Buffer
			z := brotli.NewWriter(&b)
			io.WriteString(z, text)
			z.Close()
			body = b.Bytes()
		}
		switch r.URL.Path {
		case "/cut":
			body = body[:len(body)-8]
		case "/empty":
			body = nil
		case "/chunked":
			w.Write(body[:5])
			http.NewResponseController(w).Flush()
			body = body[5:]
		}
		w.Write(body)
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	for _, path := range []string{"/", "/?coding=gzip", "/?coding=x-gzip", "/?coding=br", "/?coding=identity", "/chunked", "/chunked?coding=gzip"} {
		got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + path})
		if err != nil || string(got.Octets) != text || got.Hash != snapshot.Hash([]byte(text)) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	for _, path := range []string{"/empty", "/empty?coding=gzip"} {
		got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + path})
		if err != nil || len(got.Octets) != 0 {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	for path, reason := range map[string]string{
		"/?coding=rot13": "coding", "/?coding=gzip,gzip": "coding", "/?coding=zstd": "protocol", "/cut?coding=gzip": "connect",
	} {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + path})
		kind := snapshot.Unreachable
		if reason == "coding" {
			kind = snapshot.UnsupportedMedia
		}
		wantError(t, err, kind, reason)
	}
	// Identity accepts none.
	if got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/", Identity: true}); err != nil || string(got.Octets) != text {
		t.Errorf("identity: %v, %v", got, err)
	}
	_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/?coding=gzip", Identity: true})
	wantError(t, err, snapshot.UnsupportedMedia, "coding")
}

func TestFetchRedirects(t *testing.T) {
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		switch {
		case r.URL.Path == "/circle":
			http.Redirect(w, r, "/circle?again", http.StatusTemporaryRedirect)
		case err == nil && n > 0:
			w.Header().Set("Location", strconv.Itoa(n-1))
			w.WriteHeader(http.StatusPermanentRedirect)
		}
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/5"})
	if err != nil || got.FinalURL != s.URL+"/0" || len(got.Hops) != 4 {
		t.Errorf("five: %v, %v", got, err)
	}
	_, err = f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/6"})
	wantError(t, err, snapshot.Unreachable, "redirects")
	_, err = f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/circle"})
	wantError(t, err, snapshot.Unreachable, "redirects")
	_, err = f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/1", NoRedirect: true})
	if ferr := wantError(t, err, snapshot.Unreachable, "redirects"); ferr.Status != http.StatusPermanentRedirect {
		t.Errorf("it says %d", ferr.Status)
	}
	limits := rude()
	limits.Redirects = -1
	none := fetcher(t, snapshot.FetchOptions{Limits: limits})
	_, err = none.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/1"})
	wantError(t, err, snapshot.Unreachable, "redirects")
}

func tlsSite(t *testing.T, h http.HandlerFunc) (*httptest.Server, *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, &tls.Config{RootCAs: roots}
}

func TestFetchTLS(t *testing.T) {
	plain := site(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "not safe") })
	s, roots := tlsSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, plain.URL, http.StatusFound)
			return
		}
		io.WriteString(w, r.Proto)
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude(), TLS: roots})
	got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL})
	if err != nil || string(got.Octets) != "HTTP/2.0" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/down"})
	wantError(t, err, snapshot.Blocked, "downgrade")
	to, err := f.Location(t.Context(), s.URL+"/down")
	if err != nil || to != plain.URL+"/" {
		t.Errorf("Location: %q, %v", to, err)
	}

	strange := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	_, err = strange.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL})
	wantError(t, err, snapshot.Unreachable, "tls")
	_, err = strange.Fetch(t.Context(), &snapshot.FetchRequest{URL: strings.Replace(plain.URL, "http:", "https:", 1)})
	wantError(t, err, snapshot.Unreachable, "tls")
}

func TestLocation(t *testing.T) {
	var asked atomic.Int32
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/":
			w.Header().Set("Location", r.URL.Query().Get("to"))
			w.WriteHeader(http.StatusFound)
			fmt.Fprint(w, "never read")
		case "/gone":
			w.WriteHeader(http.StatusGone)
		}
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	for to, want := range map[string]string{
		"https://Example.com/a%20b?c=d%23#x": "https://example.com/a%20b?c=d%23",
		"https://u:p@example.com:443/":       "https://example.com/",
		"http://127.0.0.2:9/":                "http://127.0.0.2:9/", // the target is not checked
		"/next":                              s.URL + "/next",
	} {
		before := asked.Load()
		got, err := f.Location(t.Context(), s.URL+"/?to="+strings.NewReplacer("%", "%25", "#", "%23", "&", "%26").Replace(to))
		if err != nil || got != want || asked.Load() != before+1 {
			t.Errorf("%s: %q, %v after %d requests, want %q", to, got, err, asked.Load()-before, want)
		}
	}
	for path, want := range map[string][2]string{
		"/?to=ftp://x/":  {"blocked", "scheme"},
		"/?to=file:///x": {"blocked", "scheme"},
		"/?to=":          {"unreachable", "protocol"},
		"/none":          {"unreachable", "redirects"},
		"/gone":          {"gone", ""},
	} {
		_, err := f.Location(t.Context(), s.URL+path)
		wantError(t, err, snapshot.FetchErrorKind(want[0]), want[1])
	}
	_, err := f.Location(t.Context(), "http://127.0.0.2/")
	wantError(t, err, snapshot.Blocked, "network")
}

// Temporary errors are retried, others are not.
func TestFetchRetries(t *testing.T) {
	var asked atomic.Int32
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1))
		want, _ := strconv.Atoi(r.URL.Query().Get("bad"))
		if n > want {
			io.WriteString(w, "at last")
			return
		}
		switch r.URL.Path {
		case "/lost":
			panic(http.ErrAbortHandler)
		case "/short":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "short")
		case "/patience":
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			status, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
			w.WriteHeader(status)
		}
	})
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	for _, c := range []struct {
		path    string
		retries int
		asked   int32
		kind    snapshot.FetchErrorKind
	}{
		{"/503?bad=2", 0, 3, ""},
		{"/429?bad=1", 0, 2, ""},
		{"/short?bad=2", 0, 3, ""},
		{"/503?bad=3", 0, 3, snapshot.Unreachable},
		{"/503?bad=3", 1, 2, snapshot.Unreachable},
		{"/503?bad=3", 9, 3, snapshot.Unreachable},
		{"/503?bad=3", -1, 1, snapshot.Unreachable},
		{"/501?bad=1", 0, 1, snapshot.Unreachable},
		{"/404?bad=1", 0, 1, snapshot.Gone},
		{"/400?bad=1", 0, 1, snapshot.Unreachable},
	} {
		asked.Store(0)
		got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + c.path, Retries: c.retries})
		if asked.Load() != c.asked {
			t.Errorf("%s: %d requests, want %d", c.path, asked.Load(), c.asked)
		}
		if c.kind != "" {
			if ferr, ok := errors.AsType[*snapshot.FetchError](err); !ok || ferr.Kind != c.kind {
				t.Errorf("%s: %v", c.path, err)
			}
		} else if err != nil || string(got.Octets) != "at last" {
			t.Errorf("%s: %v, %v", c.path, got, err)
		}
	}
	// The transport also retries a lost connection if it was used before.
	asked.Store(0)
	if got, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/lost?bad=1"}); err != nil || string(got.Octets) != "at last" {
		t.Errorf("lost: %v, %v", got, err)
	}
	// A minute is too long to wait, and later callers make no request.
	asked.Store(0)
	_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/patience?bad=9"})
	if ferr := wantError(t, err, snapshot.Unreachable, "5xx"); ferr.RetryAfter != time.Minute {
		t.Errorf("it says %v", ferr.RetryAfter)
	}
	_, err = f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL + "/else"})
	if ferr := wantError(t, err, snapshot.Unreachable, "5xx"); ferr.RetryAfter <= 50*time.Second || ferr.Status != http.StatusServiceUnavailable {
		t.Errorf("it says %v, %d", ferr.RetryAfter, ferr.Status)
	}
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}

// Callers of the same address share one request, and none of them can cancel it for the others.
func TestFetchShared(t *testing.T) {
	var asked atomic.Int32
	hold := make(chan struct{})
	here := make(chan struct{}, 9)
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		here <- struct{}{}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		io.WriteString(w, "shared")
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	first, stop := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := f.Fetch(first, &snapshot.FetchRequest{URL: s.URL + "/page"})
		failed <- err
	}()
	<-here
	var group sync.WaitGroup
	joined, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 20 {
		group.Go(func() {
			got, err := f.Fetch(joined, &snapshot.FetchRequest{URL: s.URL + "/./page#part"})
			if err != nil || string(got.Octets) != "shared" {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	patience, impatient := context.WithTimeout(t.Context(), time.Minute)
	defer impatient()
	if !snapshot.WaitWaiters(patience, f, 21) {
		t.Error("not all wait for one response")
	}
	stop()
	err := <-failed
	wantError(t, err, snapshot.Unreachable, "cancelled")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not wrap the context's", err)
	}
	close(hold)
	group.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	// When all callers are gone, the request ends.
	late, stopLate := context.WithTimeout(t.Context(), 0)
	defer stopLate()
	_, err = f.Fetch(late, &snapshot.FetchRequest{URL: s.URL + "/page"})
	if wantError(t, err, snapshot.Unreachable, "timeout"); asked.Load() != 1 {
		t.Error("there was a request without a caller")
	}
}

func TestFetchClosed(t *testing.T) {
	here := make(chan struct{})
	s := site(t, func(_ http.ResponseWriter, r *http.Request) {
		close(here)
		<-r.Context().Done()
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	failed := make(chan error, 1)
	go func() {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL})
		failed <- err
	}()
	<-here
	f.Close()
	wantError(t, <-failed, snapshot.Unreachable, "closed")
	_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL})
	wantError(t, err, snapshot.Unreachable, "closed")
}

func TestFetchUnreachable(t *testing.T) {
	s := site(t, func(http.ResponseWriter, *http.Request) {})
	s.Close()
	limits := rude()
	limits.Retries = -1
	f := fetcher(t, snapshot.FetchOptions{Limits: limits})
	_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL})
	wantError(t, err, snapshot.Unreachable, "connect")
}

// An error shows neither user nor password, wherever they came from.
func TestFetchErrorsAreQuiet(t *testing.T) {
	s := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	})
	f := fetcher(t, snapshot.FetchOptions{Limits: rude()})
	for _, url := range []string{
		"http://u:hunter2@example.com/", "http://u:hunter2@[::1", "ftp://u:hunter2@x/", "http:u:hunter2@x", "http://u:hunter2@x\x00/",
		"http://u:hunter2@x" + strings.Repeat("y", snapshot.MaxURL), "//u:hunter2@example.com/", "u:hunter2@example.com",
		s.URL + "/?to=http://u:hunter2@example.com/", s.URL + "/?to=//u:hunter2@example.com/", s.URL + "/?to=http://u:hunter2@[::1",
	} {
		_, err := f.Fetch(t.Context(), &snapshot.FetchRequest{URL: url})
		ferr := wantError(t, err, snapshot.Blocked, mustReason(t, err))
		said := strings.ReplaceAll(ferr.Error(), s.URL+"/?to="+strings.TrimPrefix(url, s.URL+"/?to="), "") // its own query is the caller's
		if strings.Contains(said, "hunter2") {
			t.Errorf("%.60q: %s", url, said)
		}
	}
}

func mustReason(t *testing.T, err error) string {
	t.Helper()
	ferr, ok := errors.AsType[*snapshot.FetchError](err)
	if !ok {
		t.Fatalf("%v is not a FetchError", err)
	}
	return ferr.Reason
}

// The trailer is kept too, without the fields that are not kept, even after a compressed body.
func TestFetchTrailer(t *testing.T) {
	for _, zipped := range []bool{false, true} {
		s := site(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Trailer", "X-Late")
			var w io.Writer = rw
			if zipped {
				rw.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(rw)
				defer z.Close()
				w = z
			}
			_, _ = io.WriteString(w, "body")
			rw.Header().Set("X-Late", "yes")
			rw.Header().Set(http.TrailerPrefix+"Set-Cookie", "a=b")
		})
		got := testenv.Must(fetcher(t, snapshot.FetchOptions{Limits: rude()}).Fetch(t.Context(), &snapshot.FetchRequest{URL: s.URL}))(t)
		if diff := cmp.Diff(http.Header{"X-Late": {"yes"}}, got.Trailer); diff != "" || string(got.Octets) != "body" {
			t.Errorf("compressed %v: %q, the trailer differs: %s", zipped, got.Octets, diff)
		}
	}
}
