package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"text/template"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// BenchmarkExtract measures how fast documents are converted to text, in bytes of the document.
func BenchmarkExtract(b *testing.B) {
	var html, md, lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&html, "<section id=s%d class=\"c d\"><h2>Part %d</h2><p>The <b>tower</b> was built in <a href=\"/y/%d\">%d</a> — caf\u00e9, %d metres.</p><ul><li>one<li>two</ul></section>\n", i, i, i, i, i)
		fmt.Fprintf(&md, "## Part %d\n\nThe **tower** was built in [%d](/y) — café, %d metres.\n\n- one\n- two\n\n", i, i, i)
		fmt.Fprintf(&lines, "0 -14 Td (The tower was built in %d, of %d metres, and painted every seven years.) Tj\n", i, i)
	}
	for _, doc := range []struct{ name, mediaType, text string }{
		{"html", "text/html; charset=utf-8", html.String()},
		{"markdown", "text/markdown; charset=utf-8", md.String()},
		{"plain", "text/plain; charset=utf-8", strings.Repeat("The tower was built in 1889, of iron. ", 2000)},
		{"pdf", "application/pdf", onePage(helvetica, stream("/Filter/FlateDecode", deflated("BT /F1 12 Tf 72 700 Td "+lines.String()+"ET")))},
	} {
		b.Run(doc.name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				text := testenv.Must(snapshot.Extract([]byte(doc.text), &snapshot.TextOptions{MediaType: doc.mediaType}))(b)
				size = len(text.Content)
			}
			b.SetBytes(int64(len(doc.text)))
			b.ReportMetric(float64(size)*float64(b.N)/b.Elapsed().Seconds()/1e6, "textMB/s")
		})
	}
}

// BenchmarkFetch compares safe fetching with a plain client that computes the same hash: pages of 20 KB from this
// machine.
func BenchmarkFetch(b *testing.B) {
	page := []byte(strings.Repeat("<p>Herons nest in the old mill.</p>", 20_000/35))
	s := site(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	})
	want := snapshot.Hash(page)
	limits := rude()
	f := fetcher(b, snapshot.FetchOptions{Limits: limits})
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer plain.CloseIdleConnections()
	rivals := map[string]func() string{
		"ibid": func() string {
			got := testenv.Must(f.Fetch(b.Context(), &snapshot.FetchRequest{URL: s.URL + "/page"}))(b)
			return got.Hash
		},
		"plain": func() string {
			resp, err := plain.Get(s.URL + "/page")
			testenv.OK(b, err)
			defer resp.Body.Close()
			octets := testenv.Must(io.ReadAll(resp.Body))(b)
			sum := sha256.Sum256(octets)
			return "sha256:" + hex.EncodeToString(sum[:])
		},
	}
	for _, by := range []string{"plain", "ibid"} {
		b.Run("20KB/by="+by, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				if got := rivals[by](); got != want {
					b.Fatal(got)
				}
			}
		})
	}
}

// article makes a typical page: 20 KB, a third of it visible.
func article(tb testing.TB, seed uint64) []byte {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	words := strings.Fields("the tower was built in 1889 by engineers who did not expect seven million visitors each year however it isn't closed on Mondays " +
		"Köln Straße größer für Übung café naïve Москва башня построена году 東京 塔は 333 メートル العربية برج &amp; &nbsp; &ndash; &#39; &mdash; &quot;so&quot;")
	text := func(n int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	}
	page := testenv.Must(template.New("article.tmpl").Funcs(template.FuncMap{
		"text": text, "intN": r.IntN, "repeat": strings.Repeat,
		"add": func(a, b int) int { return a + b }, "mod": func(a, b int) int { return a % b },
	}).ParseFiles("testdata/article.tmpl"))(tb)
	var b bytes.Buffer
	testenv.OK(tb, page.Execute(&b, nil))
	return b.Bytes()
}

// BenchmarkExtractArticle measures ibid-text/1 on typical pages, in bytes of the pages.
func BenchmarkExtractArticle(b *testing.B) {
	pages := make([][]byte, 16)
	size := 0
	for i := range pages {
		pages[i] = article(b, uint64(i))
		size += len(pages[i])
	}
	b.SetBytes(int64(size / len(pages)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		testenv.Must(snapshot.Extract(pages[i%len(pages)], &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"}))(b)
		i++
	}
}

func BenchmarkNormalize(b *testing.B) {
	text := testenv.Must(snapshot.Extract(article(b, 1), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"}))(b)
	b.SetBytes(int64(len(text.Content)))
	for b.Loop() {
		snapshot.Normalize(text.Content)
	}
}
