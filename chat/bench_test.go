package chat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/internal/testenv"
)

// BenchmarkFirstToken measures the time from a question to the first words of its answer, from the upstream itself and
// in each form.
func BenchmarkFirstToken(b *testing.B) {
	upstream := replay.New(nil)
	direct := httptest.NewServer(upstream)
	b.Cleanup(direct.Close)
	w := newWorld(b, &setup{upstream: upstream})
	for _, by := range []struct{ name, url, body, words string }{
		{"upstream", direct.URL + "/v1/responses", `{"model":"heron-1","stream":true,"input":[{"role":"user","content":"` + herons + `"}]}`, "The colony"},
		{"events", w.URL + "/v1/chat", question("openai", herons), "The colony"},
		{"ui", w.URL + "/v1/chat?stream=ui", question("openai", herons), "The colony"},
	} {
		b.Run("by="+by.name, func(b *testing.B) {
			var first time.Duration
			n := 0
			for b.Loop() {
				begun := time.Now()
				res, err := http.Post(by.url, "application/json", strings.NewReader(by.body))
				testenv.OK(b, err)
				var got strings.Builder
				buf := make([]byte, 4096)
				for !strings.Contains(got.String(), by.words) {
					k, err := res.Body.Read(buf)
					got.Write(buf[:k])
					if err != nil && !strings.Contains(got.String(), by.words) {
						b.Fatalf("%v after %s", err, &got)
					}
				}
				first += time.Since(begun)
				n++
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			b.ReportMetric(float64(first.Microseconds())/float64(n), "first-µs")
		})
	}
}
