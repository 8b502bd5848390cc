package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

// A client that stops reading does not hold its call, with any protocol and however little there is to write, nor once
// everything but the end is written.
func TestStill(t *testing.T) {
	for _, path := range []string{captured, streamed} {
		for _, test := range []struct {
			name  string
			h2    bool
			bytes int // total, in writes of 8 KiB
		}{
			{"http1", false, 160 << 10}, {"http2", true, 160 << 10}, {"http1 many", false, 64 << 20}, {"http2 many", true, 64 << 20},
		} {
			t.Run(path+" "+test.name, func(t *testing.T) {
				w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					for range test.bytes / (8 << 10) {
						if _, err := w.Write(make([]byte, 8<<10)); err != nil {
							return
						}
					}
				}, &setup{options: gateway.Options{Limits: gateway.Limits{Idle: 200 * time.Millisecond}}})
				w.sendLittle(t)
				if test.h2 {
					w.openH2(t, path)
				} else {
					c := w.smallWindow(t)
					testenv.Must(io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"))(t)
				}
				testenv.Until(t, "the call is served", func() bool { return w.metric(t, "in_flight") > 0 })
				w.holds(t, 0)
			})
		}
	}
}

// A silent stream is not ended, however long it pauses: the upstream is to send next.
func TestQuiet(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for range 3 {
				_, _ = io.WriteString(w, "data: x\n\n")
				flush(w)
				select {
				case <-time.After(500 * time.Millisecond):
				case <-r.Context().Done():
					return
				}
			}
		}, &setup{options: gateway.Options{Limits: gateway.Limits{Idle: 200 * time.Millisecond}}})
		if h2 {
			w.client = h2c()
			t.Cleanup(w.client.CloseIdleConnections)
		}
		for range 2 { // the connection remains usable
			res, body := w.do(t, w.request(t, "POST", captured, strings.NewReader("{}")))
			if res.StatusCode != 200 || strings.Count(string(body), "x") != 3 {
				t.Errorf("got %d %q", res.StatusCode, body)
			}
		}
	}
}

func h2c() *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: transport}
}

// openH2 makes a call over HTTP/2 and does not read its response.
func (w *world) openH2(tb testing.TB, path string) {
	tb.Helper()
	client := h2c()
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	ctx, cancel := context.WithCancel(context.Background())
	res, err := client.Do(w.request(tb, "POST", path, strings.NewReader("{}")).WithContext(ctx))
	testenv.OK(tb, err)
	tb.Cleanup(func() {
		cancel()
		_ = res.Body.Close()
		client.CloseIdleConnections()
	})
}

// sendLittle puts another server in front of the gateway, whose system buffers few bytes for a client that does not
// read.
func (w *world) sendLittle(tb testing.TB) {
	tb.Helper()
	front := httptest.NewUnstartedServer(nil)
	front.Config = gateway.NewServer("", w.gateway, nil)
	front.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			tb.Error(err)
		}
		return ctx
	}
	front.Start()
	w.url = front.URL
	tb.Cleanup(front.Close)
}

// smallWindow returns a connection to the gateway with a small window.
func (w *world) smallWindow(tb testing.TB) net.Conn {
	tb.Helper()
	u, _ := url.Parse(w.url)
	c := testenv.Must(net.Dial("tcp", u.Host))(tb)
	testenv.OK(tb, c.(*net.TCPConn).SetReadBuffer(4<<10))
	tb.Cleanup(func() { _ = c.Close() })
	return c
}
