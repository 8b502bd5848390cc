package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/snapshot"
)

// article makes a page as sites have them: 20 KB, a third of it visible.
func article(seed uint64) string {
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
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" + text(6) +
		"</title>\n<link rel=\"canonical\" href=\"https://site.example/a/b\">\n<link rel=\"stylesheet\" href=\"/static/css/main.4f3a2b.css\">\n<meta property=\"og:title\" content=\"" + text(5) + "\">\n" +
		"<script type=\"application/ld+json\">{\"@type\":\"NewsArticle\",\"headline\":\"x\",\"datePublished\":\"2026-04-28\"}</script>\n<style>" +
		strings.Repeat(".c1{margin:0;padding:4px 8px;color:#333}\n", 20) + "</style>\n<script>window.dataLayer=window.dataLayer||[];" + strings.Repeat("function g(a,b){return a<b?a:b};", 30) + "</script>\n</head>\n<body class=\"page article\">\n")
	b.WriteString("<header class=\"site-header\"><nav aria-label=\"Main\"><ul class=\"nav nav--main\">")
	for i := range 15 {
		fmt.Fprintf(&b, "<li class=\"nav__item\"><a class=\"nav__link\" href=\"/section/%d\" data-track=\"nav-%d\">%s</a></li>\n", i, i, text(2))
	}
	b.WriteString("</ul></nav><button class=\"menu\" type=\"button\" aria-expanded=\"false\"><svg viewBox=\"0 0 24 24\" width=\"24\"><path d=\"M3 18h18v-2H3v2zm0-5h18v-2H3v2z\"/></svg></button></header>\n<main id=\"content\"><article>\n<h1>" + text(8) + "</h1>\n")
	for i := range 24 {
		if i%6 == 0 {
			fmt.Fprintf(&b, "<h2 id=\"s%d\">%s</h2>\n", i, text(5))
		}
		fmt.Fprintf(&b, "<p>%s <a href=\"https://other.example/%d?x=1&amp;y=2\" rel=\"noopener\" target=\"_blank\">%s</a> %s <em>%s</em>, <strong>%s</strong> %s.</p>\n", text(20), i, text(3), text(15), text(2), text(3), text(18))
		if i%8 == 3 {
			fmt.Fprintf(&b, "<figure class=\"image\"><img src=\"/img/%d.jpg\" srcset=\"/img/%d-2x.jpg 2x\" alt=\"%s\" loading=\"lazy\" width=\"640\" height=\"480\"><figcaption>%s</figcaption></figure>\n<ul>\n<li>%s</li>\n<li>%s</li>\n</ul>\n", i, i, text(3), text(8), text(9), text(7))
		}
	}
	b.WriteString("<table class=\"wikitable\"><thead><tr><th scope=\"col\">Year</th><th scope=\"col\">Value</th></tr></thead><tbody>")
	for i := range 12 {
		fmt.Fprintf(&b, "<tr><td>%d</td><td class=\"num\">%d.%d&nbsp;%%</td></tr>\n", 1990+i, r.IntN(99), r.IntN(9))
	}
	b.WriteString("</tbody></table></article></main>\n<footer><p>&copy; 2026 " + text(6) + "</p></footer>\n<script src=\"/static/js/app.9c1.js\" defer></script>\n</body></html>\n")
	return b.String()
}

// ibid-text/1 over pages as they are, in bytes of the pages.
func BenchmarkExtractArticle(b *testing.B) {
	pages := make([][]byte, 16)
	size := 0
	for i := range pages {
		pages[i] = []byte(article(uint64(i)))
		size += len(pages[i])
	}
	b.SetBytes(int64(size / len(pages)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := snapshot.Extract(pages[i%len(pages)], &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"}); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkNormalize(b *testing.B) {
	text, err := snapshot.Extract([]byte(article(1)), &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text.Content)))
	for b.Loop() {
		snapshot.Normalize(text.Content)
	}
}
