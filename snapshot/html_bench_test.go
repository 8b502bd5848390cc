package snapshot_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"text/template"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// article makes a page as sites have them: 20 KB, a third of it visible.
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

// ibid-text/1 over pages as they are, in bytes of the pages.
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
