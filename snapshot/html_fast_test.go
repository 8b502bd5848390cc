package snapshot

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// both reads a page without its tree, if that is possible, and with it, and fails if they differ.
func both(tb testing.TB, page string) (fast bool) {
	tb.Helper()
	var a, b htmlWalk
	if fast = a.fast([]byte(page)); !fast {
		return false
	}
	if err := b.parse([]byte(page)); err != nil {
		if strings.Contains(err.Error(), ErrTooLarge.Error()) {
			return true // it guards against trees, of which the other makes none
		}
		tb.Fatalf("read without its tree, but not with it: %v\n%q", err, page)
	}
	var got, want Text
	a.finish(&got)
	a.meta.fill(&got)
	b.finish(&want)
	b.meta.fill(&want)
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Fatalf("with its tree and without (-tree +fast):\n%s\n%q", diff, page)
	}
	return true
}

// soup makes pages of tags and text in any order; rarely well-formed, often nearly so.
type soup struct {
	r    *rand.Rand
	open []string
	n    int
}

func (s *soup) page(size int) string {
	var b strings.Builder
	if s.r.IntN(3) > 0 {
		b.WriteString(s.pick("<!doctype html>", "<!DOCTYPE HTML >", "<!doctype html public 'x'>", "<!-- a --><!doctype html>"))
	}
	if s.r.IntN(2) > 0 {
		b.WriteString(s.pick("<html lang=en>", "<html>", "<html lang='d&amp;e'><head>", "<head>") + s.pick("", "<title>T &amp; t</title>", "<meta name=author content='A&#66;'>", "<script>if (a<b) x()</script>", "<link rel='canonical license' href=http://c/>", "<noscript><p>n</noscript>", "<script type='application/ld+json'>{\"headline\":\"H\"}</script>"))
		b.WriteString(s.pick("</head><body>", "</head>\n<body class=a>", "</head>", "", "<body>"))
	}
	for range size {
		b.WriteString(s.piece())
	}
	return b.String()
}

func (s *soup) pick(all ...string) string { return all[s.r.IntN(len(all))] }

func (s *soup) tag() string {
	return s.pick("p", "p", "div", "div", "span", "b", "i", "a", "em", "h2", "h3", "ul", "ol", "li", "li", "dl", "dt", "dd", "table", "tr", "td",
		"td", "th", "tbody", "thead", "caption", "colgroup", "col", "section", "article", "nav", "form", "button", "select", "option", "optgroup",
		"pre", "blockquote", "br", "hr", "img", "input", "label", "details", "summary", "dialog", "search", "main", "figure", "ruby", "rt", "rp",
		"x-foo", "x-bar", "svg", "path", "title", "font", "code", "center", "strong", "legend", "fieldset", "video", "source", "meta", "link", "address")
}

func (s *soup) piece() string {
	s.n++
	switch s.r.IntN(12) {
	case 0, 1, 2:
		return fmt.Sprintf("%s%d", s.pick("t", " t", "é&amp;", "&nbsp;x", "a < b ", "\n", "&notit;", "&#x41", "🧭", "&lt"), s.n)
	case 3, 4, 5, 6:
		t := s.tag()
		s.open = append(s.open, t)
		return "<" + t + s.pick("", "", "", " class=a", " hidden", " a='>' b=\"<\"", " HIDDEN=x", "/", " href=x/", " rel=license href=y") + ">"
	case 7, 8, 9:
		if len(s.open) == 0 {
			return " "
		}
		t := s.open[len(s.open)-1]
		if s.r.IntN(8) > 0 {
			s.open = s.open[:len(s.open)-1]
		} else {
			t = s.open[s.r.IntN(len(s.open))]
		}
		return "</" + t + s.pick(">", " >", ">")
	case 10:
		return s.pick("<!-- c -->", "<!--x-->", "<script>1</script>", "<style>p{}</style>", "<textarea><p>x</textarea>", "<noscript><b>1</noscript>",
			"<svg viewBox='0 0'><path d=\"M0\"/><g><title>x</title></g></svg>", "<?pi?>", "</>", "</ x>", "<!x>", "<iframe>a</iframe>", "</body>", "</html>", "</br>", "<svg/>")
	default:
		return s.pick("\n", "  ", "<table><tr><td>c</td></tr></table>", "<ul><li>a<li>b</ul>", "<p>para", "</p>", "<a href=x>y</a>", "<b>z</b>")
	}
}

func TestFastHTMLAgrees(t *testing.T) {
	count, pages := 0, 12_000
	if testing.Short() {
		pages = 2_000
	}
	for seed := range pages {
		s := soup{r: rand.New(rand.NewPCG(uint64(seed), 7))}
		if both(t, s.page(1+seed%40)) {
			count++
		}
	}
	if count < pages/10 {
		t.Errorf("only %d of %d pages were read without their trees", count, pages)
	}
	t.Logf("%d of %d pages", count, pages)
}

func FuzzFastHTML(f *testing.F) {
	for seed := range uint64(64) {
		s := soup{r: rand.New(rand.NewPCG(seed, 9))}
		f.Add(s.page(20))
	}
	f.Add("<!doctype html><title>a</title><p>b<table><tr><td>c<b>d</table>e")
	f.Fuzz(func(t *testing.T, page string) { both(t, page) })
}

// What sloppy pages have all the time is read without a tree.
func TestFastHTML(t *testing.T) {
	for name, page := range map[string]string{
		"items not closed":      "<!doctype html><ul><li>a<li>b<ul><li>c</ul><li>d</ul>e",
		"paragraphs not closed": "<!doctype html><p>a<p>b<div>c</div>d",
		"cells not closed":      "<!doctype html><table><tr><td>a<td><b>b<tr><td>c</table>d",
		"end tags without any":  "<!doctype html><div>a</span></section>b</p>c</div></div>d",
		"hidden":                "<div hidden>a<p>b</p></div>c<br hidden>d",
		"script":                "a<script>if (a < b) { '</p>' }</script>b",
		"icon":                  "a<svg><title>t</title><path d='M0 0'/></svg>b",
		"form":                  "<form><label>a<input></label><select><option>b<option>c</select><textarea>d</textarea><button>e</button></form>",
		"custom elements":       "<x-a><x-b>a</x-b></x-a>b",
		"ruby":                  "<ruby>東<rp>(<rt>とう<rp>)</ruby>",
		"facts":                 "<html lang=de><head><title>T</title><meta property=og:title content=O><script type=application/ld+json>{\"headline\":\"x\",\"author\":\"A\"}</script></head><body><a rel=license href=l>x</a>",
	} {
		if !both(t, page) {
			t.Errorf("%s: the parser had to read it", name)
		}
	}
	for name, page := range map[string]string{
		"text in a table":       "<table>a<tr><td>b</table>",
		"hidden table, visible": "<table hidden>a<tr><td>b</table>",
		"misnested":             "<b>a<p>b</b>c",
		"opened again":          "<p><b>a<p>b",
		"mathematics":           "<math><mi>x</math>",
		"template":              "<template>x</template>",
		"frames":                "<frameset><frame></frameset>",
		"old page":              "<p>a<table><tr><td>b</table>",
		"cut in a tag":          "<p>a<div class=",
		"comment without end":   "a<!-- b",
		"script in comment":     "<script><!-- <script> </script> --></script>a",
		"zero":                  "a\x00b",
	} {
		if both(t, page) {
			t.Errorf("%s: it was read without its tree", name)
		}
	}
}
