package api

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
)

// A mistake in ibid ends one request, not the program, and the client is not told what it was.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	a := &API{guard: gateway.NewGuard(nil), logger: slog.New(slog.NewJSONHandler(&log, nil))}
	for name, write := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			server := httptest.NewServer(a.serve("/", map[string]endpoint{"GET": {access: open, handle: func(w http.ResponseWriter, _ *request) error {
				if write {
					_, _ = w.Write(bytes.Repeat([]byte("x"), 10<<10))
				}
				panic("a mistake")
			}}}))
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
