package verify_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

const (
	benchPages   = 2000
	benchSources = 500 // of one manifest
	benchFetches = 64  // at a time: 16 of each manifest
)

// bulky returns a page of 20 KB with the excerpt in the middle, and with typical markup: a third of it is visible.
func bulky(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!doctype html><html lang=en><head><meta charset=utf-8><title>Bridges, part %d</title><style>%s</style><script>%s</script></head><body>",
		n, strings.Repeat(".c1{margin:0;padding:4px 8px;color:#333}\n", 20), strings.Repeat("function g(a,b){return a<b?a:b};", 30))
	for i := range 70 {
		if i == 35 {
			b.WriteString("<h2>The old bridge</h2><p>" + excerpt + "</p>\n")
		}
		fmt.Fprintf(&b, "<p class=\"text text--%d\">Nothing of note happened in %d, as far as <a class=\"ref\" href=\"https://other.example/%d?x=1&amp;y=2\" rel=\"noopener\" "+
			"target=\"_blank\">anybody</a> knows &mdash; the <em>river</em> was high.</p>\n", i, 1800+i, i)
	}
	b.WriteString("</body></html>")
	return b.String()
}

// bench publishes manifests whose claims cite one page each, and returns their addresses and those of the pages.
func (w *world) bench() (manifests, pages []string) {
	w.t.Helper()
	for first := 0; first < benchPages; first += benchSources {
		m := w.manifest()
		m.Self = w.origin + fmt.Sprintf("/runs/r1/cite/b%d", first)
		source, claim := m.Sources[0], m.Claims[0]
		m.Sources, m.Claims = nil, nil
		for i := first; i < first+benchSources; i++ {
			path, body := fmt.Sprintf("/p/%d", i), bulky(i)
			w.page(path, "text/html; charset=utf-8", body)
			source.ID, source.URL = fmt.Sprintf("p%d", i), w.origin+path
			text, err := snapshot.Extract([]byte(body), nil)
			if err != nil {
				w.t.Fatal(err)
			}
			m0, _ := snapshot.Find(text.Content, &snapshot.Quote{Exact: excerpt})
			length := utf8.RuneCountInString(text.Content)
			source.FinalURL, source.Hash, source.TextHash, source.TextLength = source.URL, snapshot.Hash([]byte(body)), snapshot.Hash([]byte(text.Content)), &length
			c := claim
			cited := claim.Sources[0]
			cited.Source, cited.URL, cited.Hash, cited.ExcerptOffset = source.ID, source.URL, source.Hash, &manifest.Range{m0.Start, m0.End}
			c.ID, c.Sources = source.ID, []manifest.ClaimSource{cited}
			m.Sources, m.Claims, pages = append(m.Sources, source), append(m.Claims, c), append(pages, source.URL)
		}
		for i := range m.Chain {
			m.Chain[i].Sources = pages[first:]
		}
		s := w.sign(m, w.now)
		w.serveSigned(s, strings.TrimPrefix(m.Self, w.origin))
		manifests = append(manifests, s.TargetURI)
	}
	return manifests, pages
}

// BenchmarkVerify verifies signed manifests with 2,000 sources of 20 KB on loopback completely: signatures, fetching,
// texts, excerpts, support. Cold extracts each page's text, warm has them cached by the pages' hashes; both fetch every
// page, four manifests at a time. Plain only fetches and hashes the pages, with the same concurrency. The three take
// turns, and the ratio is plain's time divided by theirs: 1 is as fast.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	manifests, pages := w.bench()
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchFetches}}
	b.Cleanup(plain.CloseIdleConnections)
	verifier := func() *verify.Verifier {
		v := w.verifier()
		v.Limits.Fetches = 2 * benchPages
		return v
	}
	warm := verifier()
	verifyAll(b, warm, manifests)
	var took [3]time.Duration
	for b.Loop() {
		for i, run := range []func(){
			func() { fetchAll(b, plain, pages) },
			func() { verifyAll(b, warm, manifests) },
			func() { verifyAll(b, verifier(), manifests) },
		} {
			start := time.Now()
			run()
			took[i] += time.Since(start)
		}
	}
	for i, name := range []string{"plain", "warm", "cold"} {
		b.ReportMetric(float64(b.N)*benchPages/took[i].Seconds(), name+"-pages/s")
	}
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "warm/plain")
	b.ReportMetric(took[0].Seconds()/took[2].Seconds(), "cold/plain")
}

func verifyAll(b *testing.B, v *verify.Verifier, manifests []string) {
	b.Helper()
	var wg sync.WaitGroup
	for _, m := range manifests {
		wg.Go(func() {
			r, err := v.Manifest(b.Context(), m)
			if err != nil || r.State != verify.Trusted || len(r.Claims) != benchSources {
				b.Error(err, r.State, r.Failure, r.Info)
				return
			}
			for i := range r.Claims {
				if r.Claims[i].Sources[0].Result.Status != verify.Verified {
					b.Error(r.Claims[i].Sources[0].Result)
				}
			}
		})
	}
	wg.Wait()
}

func fetchAll(b *testing.B, client *http.Client, urls []string) {
	b.Helper()
	next := make(chan string)
	var wg sync.WaitGroup
	for range benchFetches {
		wg.Go(func() {
			for url := range next {
				resp, err := client.Get(url)
				if err != nil {
					b.Error(err)
					continue
				}
				h := sha256.New()
				if _, err := io.Copy(h, resp.Body); err != nil {
					b.Error(err)
				}
				resp.Body.Close()
			}
		})
	}
	for _, url := range urls {
		next <- url
	}
	close(next)
	wg.Wait()
}
