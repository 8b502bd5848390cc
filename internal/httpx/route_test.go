package httpx_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
)

// A panic ends one request, not the program, and its text is not sent to the client.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	for name, write := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			server := httptest.NewServer(httpx.NewMux([]httpx.Route{{
				Pattern: "/", Access: httpx.Open, Handle: func(w *httpx.Reply, _ *httpx.Request) error {
					if write {
						_, _ = w.Write(bytes.Repeat([]byte("x"), 10<<10))
					}
					panic("a mistake")
				},
			}}, &httpx.Options{Guard: gateway.NewGuard(nil), Logger: slog.New(slog.NewJSONHandler(&log, nil))}))
			defer server.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if write && err == nil {
				t.Error("half an answer looks whole")
			}
			if !write && (res.StatusCode != 500 || strings.Contains(string(body), "mistake")) {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			server.Close()
			if !strings.Contains(log.String(), `"panic":"a mistake"`) {
				t.Errorf("it was not logged: %s", &log)
			}
		})
	}
}

// One tenant's use takes nothing from another's quota, and is released.
func TestQuota(t *testing.T) {
	s := httpx.Quota{Most: 2}
	one, ok := s.Take("a")
	two, ok2 := s.Take("a")
	if _, third := s.Take("a"); !ok || !ok2 || third {
		t.Errorf("%v %v %v", ok, ok2, third)
	}
	other, ok := s.Take("b")
	if !ok {
		t.Error("another tenant has to wait")
	}
	one()
	if again, ok := s.Take("a"); !ok {
		t.Error("it was not given back")
	} else {
		again()
	}
	two()
	other()
	if n := s.Total(); n != 0 {
		t.Errorf("%d are open at the end", n)
	}
}
