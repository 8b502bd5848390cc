package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

// BenchmarkRelay compares the gateway, with its capture in the journal, to httputil.ReverseProxy. Client and upstream are in the
// same process and cost the same for both.
func BenchmarkRelay(b *testing.B) {
	words := strings.Fields(strings.Repeat("so it is and was and will be ", 8))
	for name, upstream := range map[string]http.HandlerFunc{
		"json":   answerJSON(chatBody(strings.Repeat("So it is. ", 80))),
		"stream": answerParts(chatParts(words...)...),
	} {
		for _, by := range []string{"ibid", "relaxed", "uncaptured", "reverseproxy"} {
			b.Run(name+"/by="+by, func(b *testing.B) { benchmarkRelay(b, upstream, by) })
		}
	}
}

func benchmarkRelay(b *testing.B, upstream http.HandlerFunc, by string) {
	b.Helper()
	s := &setup{idle: true, options: gateway.Options{Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))}} //nolint:sloglint // it formats its lines
	if by == "relaxed" {
		s.options.Capture = gateway.Relaxed
	}
	w := newWorld(b, upstream, s)
	target, path := w.url, chat
	if by == "uncaptured" {
		path = "/up/v1/other"
	}
	if by == "reverseproxy" {
		u, _ := url.Parse(w.upstream.URL)
		reverse := &httputil.ReverseProxy{
			Transport: gateway.NewTransport(nil), FlushInterval: -1,
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
		}
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex() // or it would cut streams off: golang/go#40747
			reverse.ServeHTTP(w, r)
		}))
		defer proxy.Close()
		target, path = proxy.URL, strings.TrimPrefix(chat, "/up")
	}
	request := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("How? ", 300) + `"}]}`)
	b.ReportAllocs()
	b.ResetTimer()
	before := processTime(b)
	defer func() { b.ReportMetric(float64(processTime(b)-before)/float64(b.N), "cpu-ns/op") }()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := benchmarkCall(w.client, target+path, request); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchmarkCall(c *http.Client, address string, request []byte) error {
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(request))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer sk-test")
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %w", res.StatusCode, err)
	}
	return res.Body.Close()
}

// processTime returns how long the process has computed: what others do on the machine does not count.
func processTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	testenv.OK(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
