package manifest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/trail"
)

// agent is a server with an agent behind the middleware.
type agent struct {
	*manifest.Publisher
	server *httptest.Server
}

// serve starts an agent, over HTTP/2 if http2 is set.
func serve(tb testing.TB, p *manifest.Publisher, http2 bool, answer http.HandlerFunc) *agent {
	tb.Helper()
	mux := http.NewServeMux()
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = http2
	if http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	tb.Cleanup(server.Close)
	p.Origin = server.URL
	p.Now = nil // the agent reads its sources now
	ask, err := p.Middleware(answer)
	if err != nil {
		tb.Fatal(err)
	}
	mux.Handle("/ask", ask)
	mux.Handle("/", p.Handler())
	return &agent{p, server}
}

// served starts an agent of level 3.
func served(tb testing.TB, answer http.HandlerFunc) *agent {
	tb.Helper()
	return serve(tb, publisher(tb, 3), false, answer)
}

// ask asks the agent.
func (a *agent) ask(tb testing.TB) *reply {
	tb.Helper()
	return a.do(tb, "GET", a.server.URL+"/ask")
}

func (a *agent) do(tb testing.TB, method, url string) *reply {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), method, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := a.server.Client().Do(r) //nolint:bodyclose // replyOf does
	if err != nil {
		tb.Fatal(err)
	}
	return replyOf(tb, response)
}

// announced reads the header, or the trailer.
func announced(tb testing.TB, h http.Header) []manifest.Announcement {
	tb.Helper()
	list, err := manifest.ParseHeader(h.Values(manifest.HeaderName))
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

// heron cites a source that it read, and returns its answer.
func heron(ctx context.Context, tb testing.TB) string {
	tb.Helper()
	a := quoted(tb)
	manifest.Read(ctx, &snapshot.Snapshot{URL: page, MediaType: "text/html", Octets: []byte(pageHTML)})
	manifest.Cite(ctx, a, &trail.Trail{ID: "own name", Steps: []trail.Step{{Number: 1, Tool: "search"}, {Number: 2, Answer: a.Text}}})
	return a.Text
}

func TestMiddlewareLevels(t *testing.T) {
	for level := range 4 {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("level %d, http2 %t", level, http2), func(t *testing.T) {
				a := serve(t, publisher(t, level), http2, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, heron(r.Context(), t))
				})
				r := a.ask(t)
				got := body(t, r)
				if string(got) != herons().Text || r.ContentLength != int64(len(got)) || r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
					t.Errorf("%q, %v", got, r.Header)
				}
				list := announced(t, r.Header)
				if level == 0 {
					if len(r.Header.Values(manifest.HeaderName)) != 0 {
						t.Errorf("announced %v", list)
					}
					return
				}
				if len(list) != 1 || list[0].URL != page {
					t.Fatalf("announced %+v", list)
				}
				if level == 1 {
					if list[0].Manifest != "" || list[0].Digest != nil {
						t.Errorf("announced %+v", list)
					}
					return
				}
				a.check(t, list[0], got, level)
			})
		}
	}
}

// check compares a manifest with the member that announces it and the body that it is about.
func (a *agent) check(t *testing.T, one manifest.Announcement, body []byte, level int) *manifest.Manifest {
	t.Helper()
	r := a.do(t, "GET", one.Manifest)
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%d, %v", r.StatusCode, err)
	}
	if sum(b) != "sha256:"+fmt.Sprintf("%x", one.Digest) {
		t.Error("the digest differs")
	}
	m, err := manifest.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if m.Self != one.Manifest || m.Output.Hash != sum(body) {
		t.Errorf("self %s, output %+v", m.Self, m.Output)
	}
	if m.RunID == "own name" || len(m.RunID) != 32 {
		t.Errorf("run %q", m.RunID)
	}
	if s := m.Sources[0]; s.RetrievedBy != manifest.ByPublisher || s.Hash != sum([]byte(pageHTML)) {
		t.Errorf("source %+v", s)
	}
	if got, why := m.Level(r.Header.Get("Signature") != ""); got != level {
		t.Errorf("level %d: %s", got, why)
	}
	if !slices.ContainsFunc(m.Sources, func(s manifest.Source) bool { return s.URL == one.URL }) {
		t.Errorf("the header announces %s, which the manifest does not have", one.URL)
	}
	return m
}

func TestMiddlewareStream(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, how := range []string{"flushed", "large"} {
			t.Run(fmt.Sprintf("%s, http2 %t", how, http2), func(t *testing.T) {
				seen := make(chan struct{})
				a := serve(t, publisher(t, 3), http2, func(w http.ResponseWriter, r *http.Request) {
					text := heron(r.Context(), t)
					if how == "large" {
						text += strings.Repeat(" More words.", manifest.DefaultBuffer/12+1)
					}
					half := len(text) / 2
					_, _ = io.WriteString(w, text[:half])
					if how == "flushed" {
						if err := http.NewResponseController(w).Flush(); err != nil {
							t.Error(err)
						}
						select {
						case <-seen:
						case <-r.Context().Done():
						}
					}
					_, _ = io.WriteString(w, text[half:])
				})
				r := a.ask(t)
				list := announced(t, r.Header)
				if len(list) != 1 || !list[0].More || list[0].Manifest == "" || list[0].URL != "" {
					t.Fatalf("at the start: %+v", list)
				}
				if how == "flushed" {
					if r := a.do(t, "GET", list[0].Manifest); r.StatusCode != 202 || r.Header.Get("Retry-After") == "" {
						t.Errorf("before the end: %d", r.StatusCode)
					}
				}
				close(seen)
				got, err := io.ReadAll(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				end := announced(t, r.Trailer)
				if len(end) != 1 || end[0].URL != page || end[0].Manifest != list[0].Manifest {
					t.Fatalf("at the end: %+v", end)
				}
				a.check(t, end[0], got, 3)
			})
		}
	}
}

// A stream with a length has no trailer; its manifest is at the announced URL.
func TestMiddlewareStreamWithALength(t *testing.T) {
	a := served(t, func(w http.ResponseWriter, r *http.Request) {
		text := heron(r.Context(), t)
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, text)
	})
	r := a.ask(t)
	got := body(t, r)
	if len(r.Trailer) != 0 || r.Header.Get("Trailer") != "" || r.ContentLength != int64(len(got)) {
		t.Errorf("trailer %v, header %v", r.Trailer, r.Header)
	}
	list := announced(t, r.Header)
	m, err := a.wait(t, list[0].Manifest)
	if err != nil || m.Output.Hash != sum(got) {
		t.Errorf("%v, %v", m, err)
	}
}

// wait reads a manifest as soon as it exists.
func (a *agent) wait(tb testing.TB, url string) (*manifest.Manifest, error) {
	tb.Helper()
	for {
		r := a.do(tb, "GET", url)
		b := body(tb, r)
		if r.StatusCode == 200 {
			return manifest.Parse(b)
		}
		if r.StatusCode != 202 {
			return nil, errors.New(r.Status)
		}
	}
}

// Event streams and compressed bodies are bound by their text.
func TestMiddlewareBindsTheTextWhereTheBodyIsNot(t *testing.T) {
	for _, header := range [][2]string{{"Content-Type", "text/event-stream"}, {"Content-Encoding", "br"}} {
		a := served(t, func(w http.ResponseWriter, r *http.Request) {
			text := heron(r.Context(), t)
			w.Header().Set(header[0], header[1])
			_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
		})
		r := a.ask(t)
		a.check(t, announced(t, r.Header)[0], []byte(herons().Text), 3)
	}
}

func TestMiddlewareLeavesOtherResponsesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		method  string
		handler http.HandlerFunc
		status  int
		body    string
	}{
		"no citations":  {"GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }, 200, "hello"},
		"nothing sent":  {"GET", func(http.ResponseWriter, *http.Request) {}, 200, ""},
		"no content":    {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, 204, ""},
		"an error":      {"GET", func(w http.ResponseWriter, r *http.Request) { heron(r.Context(), t); http.Error(w, "no", 500) }, 500, "no\n"},
		"HEAD":          {"HEAD", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, heron(r.Context(), t)) }, 200, ""},
		"early hints":   {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(201) }, 201, ""},
		"its own error": {"GET", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, 404, "404 page not found\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a := served(t, c.handler)
			r := a.do(t, c.method, a.server.URL+"/ask")
			if got := body(t, r); r.StatusCode != c.status || string(got) != c.body {
				t.Errorf("%d %q", r.StatusCode, got)
			}
			if list := r.Header.Values(manifest.HeaderName); len(list) != 0 {
				t.Errorf("announced %v", list)
			}
		})
	}
}

// Headers set after the status are not sent, and the agent's own trailers are.
func TestMiddlewareKeepsHeadersApart(t *testing.T) {
	a := served(t, func(w http.ResponseWriter, r *http.Request) {
		text := heron(r.Context(), t)
		w.Header().Set("X-Early", "1")
		w.WriteHeader(201)
		w.Header().Set("X-Late", "1")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
		_, _ = io.WriteString(w, text)
	})
	r := a.ask(t)
	got := body(t, r)
	if r.StatusCode != 201 || r.Header.Get("X-Early") != "1" || r.Header.Get("X-Late") != "" || r.Trailer.Get("X-Sum") != "42" {
		t.Errorf("%d, %v, %v", r.StatusCode, r.Header, r.Trailer)
	}
	a.check(t, announced(t, r.Header)[0], got, 3)
}

// Errors with a manifest do not affect the client.
func TestMiddlewareErrorsBreakNothing(t *testing.T) {
	p := publisher(t, 3)
	told := make(chan error, 9)
	p.OnError = func(_ context.Context, err error) { told <- err }
	a := serve(t, p, false, func(w http.ResponseWriter, r *http.Request) {
		text := heron(r.Context(), t)
		if r.URL.RawQuery == "stream" {
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, text)
	})
	for _, key := range p.Keys.List() {
		if err := p.Keys.Revoke(key.ID, noon(), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, query := range []string{"", "?stream"} {
		r := a.do(t, "GET", a.server.URL+"/ask"+query)
		if got := body(t, r); string(got) != herons().Text || r.StatusCode != 200 {
			t.Errorf("%d %q", r.StatusCode, got)
		}
		header := r.Header
		if query != "" {
			url := announced(t, r.Header)[0].Manifest
			if _, err := a.wait(t, url); err == nil || err.Error() != "404 Not Found" {
				t.Errorf("a manifest that never comes: %v", err)
			}
			header = r.Trailer
		}
		if list := announced(t, header); len(list) != 1 || list[0].URL != page || list[0].Manifest != "" {
			t.Errorf("announced %+v", list)
		}
		if err := <-told; err == nil {
			t.Error("no error was reported")
		}
	}
}

// A stream without citations was announced, so it has a manifest, without claims.
func TestMiddlewareStreamWithoutCitations(t *testing.T) {
	a := served(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "hello")
	})
	r := a.ask(t)
	got := body(t, r)
	m, err := a.wait(t, announced(t, r.Header)[0].Manifest)
	if err != nil || len(m.Claims) != 0 || m.Output.Hash != sum(got) {
		t.Errorf("%+v, %v", m, err)
	}
	if len(r.Trailer.Values(manifest.HeaderName)) != 0 {
		t.Errorf("trailer %v", r.Trailer)
	}
}

func TestMiddlewareForgetsAnAgentThatPanics(t *testing.T) {
	p := publisher(t, 3)
	url := make(chan string, 1)
	a := serve(t, p, false, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-url
		panic(http.ErrAbortHandler)
	})
	r := a.ask(t)
	at := announced(t, r.Header)[0].Manifest
	url <- at
	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("the response ended well")
	}
	if _, err := a.wait(t, at); err == nil || err.Error() != "404 Not Found" {
		t.Errorf("got %v", err)
	}
}

// The manifest is built even if the client disconnects.
func TestMiddlewareOutlivesItsClient(t *testing.T) {
	p := publisher(t, 3)
	a := serve(t, p, false, func(w http.ResponseWriter, r *http.Request) {
		heron(r.Context(), t)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server.URL+"/ask", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	at := announced(t, r.Header)[0].Manifest
	cancel()
	r.Body.Close()
	if m, err := a.wait(t, at); err != nil || len(m.Claims) != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestMiddlewareController(t *testing.T) {
	a := served(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := errors.Join(rc.SetWriteDeadline(time.Now().Add(time.Minute)), rc.SetReadDeadline(time.Now().Add(time.Minute)), rc.EnableFullDuplex()); err != nil {
			t.Error(err)
		}
		if r.URL.RawQuery != "hijack" {
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Own: 1\r\n\r\nmine")
	})
	a.ask(t)
	r := a.do(t, "GET", a.server.URL+"/ask?hijack")
	if got := body(t, r); string(got) != "mine" || r.Header.Get("X-Own") != "1" {
		t.Errorf("%q, %v", got, r.Header)
	}
}

// HTTP/1.0 has no trailers.
func TestMiddlewareHTTP10(t *testing.T) {
	a := served(t, func(w http.ResponseWriter, r *http.Request) {
		text := heron(r.Context(), t)
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, text)
	})
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", a.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "GET /ask HTTP/1.0\r\nHost: x\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil) //nolint:bodyclose // replyOf does
	if err != nil {
		t.Fatal(err)
	}
	r := replyOf(t, response)
	got := body(t, r)
	if r.Header.Get("Trailer") != "" || len(announced(t, r.Header)) != 1 || !bytes.Equal(got, []byte(herons().Text)) {
		t.Errorf("%q, %v", got, r.Header)
	}
}

func TestCiteWithoutMiddleware(t *testing.T) {
	manifest.Cite(t.Context(), herons(), nil)
	manifest.Read(t.Context(), snap(page, pageHTML))
	manifest.Read(t.Context(), nil)
}
