package watch_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/watch"
)

// redirecting is an address as Google's grounding answers have them.
const redirecting = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"

// everywhere resolves all names to one address of this machine, 127.0.0.77.
func everywhere(t *testing.T) *net.Resolver {
	t.Helper()
	conn := testenv.Must(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Header, m.Additionals = dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, nil
			if q.Type == dnsmessage.TypeA {
				h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 77}}}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// grounding is all of the web: redirects, and the page that they lead to. It counts who asks for a redirect.
func grounding(t *testing.T) (*snapshot.Fetcher, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	l, err := net.Listen("tcp", "127.0.0.77:443")
	if err != nil {
		t.Skipf("this machine does not let tests listen on port 443: %v", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/grounding-api-redirect/good"):
			asked.Add(1)
			http.Redirect(w, r, "https://harbour.example/tides", http.StatusFound)
		case r.Host == "harbour.example":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, tidePage)
		default:
			http.NotFound(w, r)
		}
	}))
	server.Listener.Close()
	server.Listener = l
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return fetcher(t, snapshot.FetchOptions{Resolver: everywhere(t), TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}}), &asked
}

// An address that only redirects is resolved once, if that is wanted; the answer and its manifests have both. What cannot be
// resolved stays, and what goes wrong with it keeps nobody else waiting.
func TestPublishingRedirects(t *testing.T) {
	f, asked := grounding(t)
	s := newStore(t)
	h := publishes(t, s, 3)
	odd := cites(t, "ans_odd", "odd", redirecting+"good")
	put(t, s, published(cites(t, "ans_1", "run_1", redirecting+"good", redirecting+"lost"), odd)...)
	var kept atomic.Int32
	start(t, h.publishing(t, func(o *watch.PublishingOptions) {
		o.Fetcher = f
		o.Resolve = func(ctx context.Context, c *store.Call) error {
			if c.AnswerID == "ans_odd" {
				panic("a mistake")
			}
			kept.Add(1)
			c.Of, c.AnswerID = c.AnswerID, "ans_later"
			return s.Put(ctx, []*store.Call{c})
		}
	}).Run)
	for _, id := range []string{"ans_1", ""} {
		m := h.served(t, h.path(t, "run_1", id))
		if len(m.Sources) != 2 || m.Supersedes != "" {
			t.Fatalf("%+v", m)
		}
		got := []string{m.Sources[0].URL, m.Sources[0].OriginalURL, m.Sources[0].Unavailable, m.Sources[1].URL, m.Sources[1].Unavailable}
		want := []string{"https://harbour.example/tides", redirecting + "good", "", redirecting + "lost", "gone"}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	call := testenv.Must(s.Call(t.Context(), store.DefaultTenant, "ans_1"))(t)
	if got := call.Answer.Sources[0]; got.URL != "https://harbour.example/tides" || got.OriginalURL != redirecting+"good" {
		t.Errorf("stored: %+v", got)
	}
	until(t, "the mistake is caught", func() bool { return strings.Contains(h.log.String(), "a mistake of ours was caught") })
	if kept.Load() != 1 || len(told(t, s, "run_1", store.EventBackfill)) != 1 {
		t.Errorf("kept %d times", kept.Load())
	}
	if n := asked.Load(); n > 4 { // the odd one's are asked each time it is tried
		t.Errorf("the redirect was asked %d times", n)
	}
	if pins, err := s.Pins(t.Context(), store.DefaultTenant, "https://harbour.example/tides"); err != nil || len(pins) != 2 {
		t.Errorf("%d pins, %v", len(pins), err)
	}
}

// Where nobody wants it, an address is published as it is, with where it leads.
func TestPublishingRedirectsUnresolved(t *testing.T) {
	f, _ := grounding(t)
	s := newStore(t)
	h := publishes(t, s, 3)
	put(t, s, published(cites(t, "ans_1", "run_1", redirecting+"good"))...)
	start(t, h.publishing(t, func(o *watch.PublishingOptions) { o.Fetcher = f }).Run)
	m := h.served(t, h.path(t, "run_1", "ans_1"))
	if got := m.Sources[0]; got.URL != redirecting+"good" || got.FinalURL != "https://harbour.example/tides" || got.OriginalURL != "" {
		t.Errorf("%+v", got)
	}
}
