package snapshot_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// How fast documents become text, in bytes of the document.
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
