package gateway_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ibidhq/ibid/gateway"
)

// A client that offers to speak HTTP/2, as the JDK's does with every request, makes a call like any other: it is captured,
// whatever HTTP the upstream speaks.
func TestUpgradeOffered(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			var s setup
			if proto == "HTTP/2.0" {
				s.start = func(up *httptest.Server) {
					up.EnableHTTP2 = true
					up.StartTLS()
					s.options.Transport = gateway.NewTransport(&gateway.TransportOptions{
						TLS: up.Client().Transport.(*http.Transport).TLSClientConfig,
					})
				}
			}
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
					if v := r.Header[name]; v != nil {
						t.Errorf("%s reached the upstream: %v", name, v)
					}
				}
				if r.Proto != proto {
					t.Errorf("the upstream speaks %s", r.Proto)
				}
				answerJSON(chatBody("So it is."))(w, r)
			}, &s)
			for _, connection := range []string{"Upgrade, HTTP2-Settings", "Upgrade"} { // the second names not all of its fields
				for _, path := range []string{chat, streamed} {
					c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: "+connection+"\r\nUpgrade: h2c\r\n"+
						"HTTP2-Settings: AAEAAEAAAAIAAAAA\r\nContent-Length: 2\r\n\r\n{}")
					res, body := readRaw(t, bufio.NewReader(c))
					if res.StatusCode != 200 || string(body) != chatBody("So it is.") {
						t.Fatalf("%s: got %d %s", path, res.StatusCode, body)
					}
					if path == chat {
						w.stored(t, res.Header.Get("Ibid-Answer"))
					}
				}
			}
		})
	}
}

// Any other protocol is the upstream's to take, where there is no answer to miss.
func TestUpgradeToAnother(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Upgrade")) }, nil)
	for path, want := range map[string]string{streamed: "irc/6.9", chat: ""} {
		c := w.raw(t, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: irc/6.9\r\nContent-Length: 2\r\n\r\n{}")
		if res, body := readRaw(t, bufio.NewReader(c)); res.StatusCode != 200 || string(body) != want {
			t.Errorf("%s: got %d %q", path, res.StatusCode, body)
		}
	}
}
