package snapshot_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/ibidhq/ibid/snapshot"
)

// specText extracts the text of a page by a direct implementation of the profile ibid-text/1.
func specText(page []byte) (string, error) {
	const (
		skipped = " head script style template noscript iframe object svg select textarea "
		broken  = ` address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption
figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol option p pre search section summary
table tbody td tfoot th thead tr ul `
	)
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		is := func(list string) bool {
			return n.Type == html.ElementNode && slices.Contains(strings.Fields(list), n.Data)
		}
		hidden := func(a html.Attribute) bool { return a.Key == "hidden" && a.Namespace == "" }
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case is(skipped), slices.ContainsFunc(n.Attr, hidden):
			return
		}
		if is(broken) {
			b.WriteByte('\n')
		}
		for kid := range n.ChildNodes() {
			walk(kid)
		}
		if is(broken) {
			b.WriteByte('\n')
		}
	}
	walk(root)
	return snapshot.Normalize(b.String()), nil
}

// checkPage fails if the text of a page according to ibid-text/1 differs from the profile's, or the current one is not
// in order.
func checkPage(t *testing.T, page string) {
	t.Helper()
	o := &snapshot.TextOptions{MediaType: "text/html; charset=utf-8"}
	text, err := snapshot.Extract([]byte(page), o)
	if err != nil {
		return
	}
	checkText(t, text)
	for _, b := range text.Blocks { // what a page says is found in it
		exact := text.Content[b.Span.Start:b.Span.End]
		if m, ok := text.Searcher().Find(&snapshot.Quote{Exact: exact}); ok && m.How != snapshot.MatchElsewhere {
			t.Fatalf("%q in %q: %+v", exact, text.Content, m)
		}
	}
	o.Profile = snapshot.TextProfile1
	if text, err = snapshot.Extract([]byte(page), o); err != nil {
		return
	}
	checkText(t, text)
	if want, err := specText([]byte(page)); err != nil || text.Content != want {
		t.Fatalf("%q\ngot  %q\nwant %q, %v", page, text.Content, want, err)
	}
}

// soup makes pages of tags and text in random order, rarely well-formed but often nearly so.
type soup struct {
	r    *rand.Rand
	open []string
	n    int
}

func (s *soup) page(size int) string {
	var b strings.Builder
	if s.r.IntN(3) > 0 {
		b.WriteString(s.pick("<!doctype html>", "<!doctype html public 'x'>", "<!-- a --><!doctype html>"))
	}
	if s.r.IntN(2) > 0 {
		b.WriteString(s.pick("<html lang=en>", "<html>", "<html lang='d&amp;e'><head>", "<head>"))
		b.WriteString(s.pick("", "<title>T &amp; t</title>", "<meta name=author content='A&#66;'>",
			"<script>if (a<b) x()</script>", "<link rel='canonical license' href=http://c/>", "<noscript><p>n</noscript>",
			"<script type='application/ld+json'>{\"headline\":\"H\"}</script>"))
		b.WriteString(s.pick("</head><body>", "</head>\n<body class=a>", "</head>", "", "<body>"))
	}
	for range size {
		b.WriteString(s.piece())
	}
	return b.String()
}

func (s *soup) pick(all ...string) string { return all[s.r.IntN(len(all))] }

func (s *soup) tag() string {
	return s.pick(strings.Fields(`p p div div span b i a em h2 h3 ul ol li li dl dt dd table tr td td th tbody thead caption
		colgroup col section article nav form button select option optgroup pre blockquote br hr img input label details
		summary dialog search main figure ruby rt rp x-foo x-bar svg path title font code center strong legend fieldset
		video source meta link address math template object`)...)
}

func (s *soup) piece() string {
	s.n++
	switch s.r.IntN(12) {
	case 0, 1, 2:
		return fmt.Sprintf("%s%d", s.pick("t", " t", "é&amp;", "&nbsp;x", "a < b ", "\n", "&notit;", "&#x41", "🧭", "&lt"), s.n)
	case 3, 4, 5, 6:
		t := s.tag()
		s.open = append(s.open, t)
		return "<" + t + s.pick("", "", "", " class=a", " hidden", " a='>' b=\"<\"", " HIDDEN=x", "/", " href=x/") + ">"
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
		return s.pick("<!-- c -->", "<!--x-->", "<script>1</script>", "<style>p{}</style>", "<textarea><p>x</textarea>",
			"<noscript><b>1</noscript>", "<svg viewBox='0 0'><path d=\"M0\"/><g><title>x</title></g></svg>", "<?pi?>", "</>",
			"</ x>", "<!x>", "<iframe>a</iframe>", "</body>", "</html>", "</br>", "<svg/>")
	default:
		return s.pick("\n", "  ", "<table><tr><td>c</td></tr></table>", "<ul><li>a<li>b</ul>", "<p>para", "</p>",
			"<a href=x>y</a>", "<b>z</b>")
	}
}

func TestHTMLSoup(t *testing.T) {
	for seed := range uint64(2000) {
		s := soup{r: rand.New(rand.NewPCG(seed, 7))}
		checkPage(t, s.page(int(1+seed%40)))
	}
}

func FuzzHTML(f *testing.F) {
	for seed := range uint64(64) {
		s := soup{r: rand.New(rand.NewPCG(seed, 9))}
		f.Add(s.page(20))
	}
	f.Add("<!doctype html><title>a</title><p>b<table><tr><td>c<b>d</table>e")
	f.Fuzz(checkPage)
}
