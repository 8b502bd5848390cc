package gateway_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
)

// BenchmarkInside compares a call from inside with the same over a listener.
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

// BenchmarkInsideFirst measures how long the first byte of a stream takes through the gateway, beside the upstream's own.
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
				if err != nil {
					b.Fatal(err)
				}
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
