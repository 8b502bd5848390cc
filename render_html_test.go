package ibid

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRenderHTML(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"marker", "③«It rained». Yes", `<p>It rained.<sup class="ibid"><span title="c.pdf">1</span></sup> Yes</p>`},
		{"several", "③«①«It rained».»", `<p>It rained.<sup class="ibid"><a href="https://a.example/x" title="Alpha — a.example" rel="noopener noreferrer nofollow">1</a>,<span title="c.pdf">2</span></sup></p>`},
		{"own paragraph", "```\n③«x»\n```", "<pre><code>x\n</code></pre>\n" + `<p><sup class="ibid"><span title="c.pdf">1</span></sup></p>`},
		{"raw HTML", "a <img src=x onerror=alert(1)> b\n\n<script>alert(1)</script>", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"},
		{"script link", "[a](javascript:alert(1)) [b](JaVaScRiPt&#58;alert(1))", "<p><span>a</span> <span>b</span></p>"},
		{"relative link", "[a](/logout)", "<p><span>a</span></p>"},
		{"data image", "![a](data:image/png;base64,x)", "<p><span>a</span></p>"},
		{"image loads nothing", "![a *b*](https://i.example/p.png)", `<p><a href="https://i.example/p.png" rel="noopener noreferrer nofollow">a <em>b</em></a></p>`},
		{"image in a link", "[![a](https://i.example/p.png)](https://l.example)", `<p><a href="https://l.example" rel="noopener noreferrer nofollow">a</a></p>`},
		{"link title", `[a](https://l.example "x" y") [b](https://l.example 'x"y')`, `<p>[a](<a href="https://l.example" rel="noopener noreferrer nofollow">https://l.example</a> &quot;x&quot; y&quot;) <a href="https://l.example" rel="noopener noreferrer nofollow" title="x&#34;y">b</a></p>`},
		{"addresses", "<https://a.example> me@b.example www.c.example", `<p><a href="https://a.example" rel="noopener noreferrer nofollow">https://a.example</a> <a href="mailto:me@b.example" rel="noopener noreferrer nofollow">me@b.example</a> <a href="http://www.c.example" rel="noopener noreferrer nofollow">www.c.example</a></p>`},
		{"math", "$a_1*b$ and \\(c<d\\) and $$e*f*g$$ and \\[h\\]", `<p><span class="math inline">\(a_1*b\)</span> and <span class="math inline">\(c&lt;d\)</span> and <span class="math display">\[e*f*g\]</span> and <span class="math display">\[h\]</span></p>`},
		{"footnote unused", "Rain\n\n[^1]: note", "<p>Rain</p>\n<p>[^1]: note</p>"},
		{"math in a definition", "[a][b]\n\n[b]: https://l.example '$x$'", `<p><a href="https://l.example" rel="noopener noreferrer nofollow" title="$x$">a</a></p>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := annotated(tt.text).Render(&RenderOptions{Style: StyleHTML})
			if diff := cmp.Diff(tt.want+"\n", got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkHTML(t, got)
		})
	}
}

func TestRenderHTMLHostileSource(t *testing.T) {
	a := annotated("«It» rained.")
	a.Sources[0].Title = `"><script>alert(1)</script>`
	a.Sources[0].URL = `https://a.example/"onmouseover="x`
	a.Sources[0].Site = "\u202Eevil"
	want := `<p>It<sup class="ibid"><a href="https://a.example/%22onmouseover=%22x" title="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt; — evil" rel="noopener noreferrer nofollow">1</a></sup> rained.</p>` + "\n"
	if diff := cmp.Diff(want, a.Render(&RenderOptions{Style: StyleHTML})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRenderHTMLDeepNesting(t *testing.T) {
	const deepest = 64
	a := &Answer{Text: strings.Repeat(">", 100_000)}
	got := a.Render(&RenderOptions{Style: StyleHTML})
	if n := strings.Count(got, "<blockquote>"); n != deepest {
		t.Errorf("%d quotes, want %d", n, deepest)
	}
	if n := strings.Count(got, "&gt;"); n != 100_000-deepest {
		t.Errorf("%d marks as text, want %d", n, 100_000-deepest)
	}
}
