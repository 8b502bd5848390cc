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

// BenchmarkRelay compares the gateway, with its capture in the journal, to httputil.ReverseProxy. Client and upstream
// run in the same process and cost the same for both.
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
			_ = http.NewResponseController(w).EnableFullDuplex() // else it would truncate streams: golang/go#40747
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

// processTime returns the process's CPU time, which other processes do not affect.
func processTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	testenv.OK(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkInside compares an in-process call with the same call over a listener.
func BenchmarkInside(b *testing.B) {
	words := strings.Fields(strings.Repeat("so it is and was and will be ", 8))
	for name, upstream := range map[string]http.HandlerFunc{
		"json":   answerJSON(chatBody(strings.Repeat("So it is. ", 80))),
		"stream": answerParts(chatParts(words...)...),
	} {
		w := newTwin(b, upstream, &setup{idle: true, options: gateway.Options{Logger: slog.New(slog.DiscardHandler)}})
		request := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("How? ", 300) + `"}]}`)
		for by, c := range map[string]*http.Client{"inside": w.inside, "listener": w.client} {
			b.Run(name+"/by="+by, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					testenv.OK(b, benchmarkCall(c, w.url+chat, request))
				}
			})
		}
	}
}

// BenchmarkInsideFirst measures the time to a stream's first byte through the gateway and directly from the upstream.
func BenchmarkInsideFirst(b *testing.B) {
	w := newTwin(b, answerParts(chatParts("So ", "it ", "is.")...), &setup{idle: true, options: gateway.Options{Logger: slog.New(slog.DiscardHandler)}})
	straight := &http.Client{Transport: &http.Transport{}}
	b.Cleanup(straight.CloseIdleConnections)
	for by, ask := range map[string]struct {
		c       *http.Client
		address string
	}{"inside": {w.inside, insideURL + chat}, "upstream": {straight, w.upstream.URL + strings.TrimPrefix(chat, "/up")}} {
		b.Run("by="+by, func(b *testing.B) {
			for b.Loop() {
				res, err := ask.c.Post(ask.address, "application/json", strings.NewReader(chatRequest))
				testenv.OK(b, err)
				var first [1]byte
				_, err = io.ReadFull(res.Body, first[:])
				b.StopTimer()
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				b.StartTimer()
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
