package ibid

import (
	"fmt"
	"strings"
	"testing"
)

// longAnswer is an answer of about 20 KB with a hundred citations.
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
