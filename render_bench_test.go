package ibid

import (
	"fmt"
	"strings"
	"testing"
)

// longAnswer returns an answer of about 20 KB with a hundred citations.
func longAnswer() *Answer {
	a := &Answer{}
	for i := range 20 {
		a.Sources = append(a.Sources, Source{ID: fmt.Sprint("s", i), Kind: Web, Title: "Title", URL: fmt.Sprintf("https://s%d.example/page", i)})
	}
	var b strings.Builder
	for i := range 100 {
		switch i % 10 {
		case 0:
			b.WriteString("## Heading number " + fmt.Sprint(i) + "\n\n")
		case 3:
			b.WriteString("- a list item with **bold words** and `code` in it\n- another [link](https://x.example/a)\n\n")
		case 6:
			b.WriteString("| a | b |\n|---|---|\n| cell one | cell two |\n\n```go\nfunc main() {}\n```\n\n")
		}
		start := b.Len()
		b.WriteString("The river rises in early spring when the snow of the high valleys melts, and it falls again in late summer.")
		a.Citations = append(a.Citations, Citation{Span: Span{start, b.Len()}, Covers: CoversClaim, Anchor: AnchorExact, Refs: []Ref{{Source: a.Sources[i%20].ID}}})
		b.WriteString(" It is not known for how long this was so before.\n\n")
	}
	a.Text = b.String()
	return a
}

func BenchmarkRender20KB100(b *testing.B) {
	a := longAnswer()
	for _, style := range []Style{StyleMarkdown, StylePlain, StyleHTML, StyleLaTeX} {
		b.Run(string(style), func(b *testing.B) {
			b.SetBytes(int64(len(a.Text)))
			b.ReportAllocs()
			for b.Loop() {
				a.Render(&RenderOptions{Style: style})
			}
		})
	}
}

// BenchmarkRenderPage renders as the page does: HTML with custom markers and claims.
func BenchmarkRenderPage(b *testing.B) {
	a := longAnswer()
	for i := range a.Citations {
		a.Citations[i].Claim = a.Citations[i].Span
	}
	b.SetBytes(int64(len(a.Text)))
	b.ReportAllocs()
	for b.Loop() {
		a.Render(pageOptions())
	}
}

// pageOptions returns options with trivial markers and claims.
func pageOptions() *RenderOptions {
	return &RenderOptions{
		Style:  StyleHTML,
		Marker: func(Marker) string { return "<sup>1</sup>" },
		Cited:  func([]int) (before, after string) { return "<mark>", "</mark>" },
	}
}

// BenchmarkRenderClaims shows that the cost of claims is linear in their number, even if all are nested.
func BenchmarkRenderClaims(b *testing.B) {
	for _, n := range []int{500, 5_000, 50_000} {
		for _, shape := range []string{"row", "nest"} {
			a := &Answer{Text: strings.Repeat("It rained. ", n), Sources: []Source{{ID: "a"}}}
			for i := range n {
				c := Citation{Span: Span{11 * i, 11*i + 10}, Anchor: AnchorExact, Covers: CoversClaim, Refs: []Ref{{Source: "a"}}}
				if c.Claim = c.Span; shape == "nest" {
					c.Claim = Span{5 * i, len(a.Text) - 5*i}
				}
				a.Citations = append(a.Citations, c)
			}
			b.Run(fmt.Sprintf("n=%d/%s", n, shape), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					a.Render(pageOptions())
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/citation")
			})
		}
	}
}
