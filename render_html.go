package ibid

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// html renders the answer as HTML. Markers and math go through goldmark as tokens that no text contains, and are put in
// afterwards: they stand where markdown text stands, and nothing in them is read as markdown.
func (r *rendering) html() string {
	text, tokens := r.tokenText()
	var edges []claimEdge
	if r.Cited != nil {
		edges = claimEdges(r.answer, r.runs)
	}
	deep := tooDeep(text)
	text = escapeAt(text, deep)
	shiftEdges(edges, deep)
	out := r.convertHTML(text, edges, hasFootnotes(r.answer.Text))
	if bytes.Count(out.Bytes(), []byte(tokens.open)) != len(tokens.all) {
		out = r.convertHTML(text, edges, false)
	}
	w := htmlWriter{r: r, marks: out.marks}
	w.Grow(out.Len() + 256*len(r.markers))
	tokens.each(out.String(), w.plain, w.token)
	w.turn(nil)
	if r.List {
		w.WriteString(r.list())
	}
	return w.String()
}

// htmlWriter writes what goldmark made of a text, with what its tokens stand for and what stands around claims.
type htmlWriter struct {
	strings.Builder

	r     *rendering
	inTag bool
	marks []claimMark // those of what was written are gone
	in    []int       // whose claims that lies in which is written next
	open  []int       // whose claims are open
	after string      // what closes them
}

// plain writes what stands at at of goldmark's output.
func (w *htmlWriter) plain(at int, text string) {
	if i := strings.LastIndexAny(text, "<>"); i >= 0 {
		w.inTag = text[i] == '<'
	}
	for ; len(w.marks) > 0 && w.marks[0].at < at+len(text); w.marks = w.marks[1:] {
		m := w.marks[0]
		if n := m.at - at; n > 0 {
			w.turn(w.in)
			w.WriteString(text[:n])
			at, text = m.at, text[n:]
		}
		w.in = m.cites
	}
	w.turn(w.in)
	w.WriteString(text)
}

// turn opens and closes claims so that those of cites are open. They are in order and none is empty.
func (w *htmlWriter) turn(cites []int) {
	if slices.Equal(w.open, cites) {
		return
	}
	if len(w.open) > 0 {
		w.WriteString(w.after)
	}
	w.open = cites
	if len(cites) > 0 {
		before, after := w.r.Cited(slices.Clone(cites))
		w.WriteString(before)
		w.after = after
	}
}

// token writes what the token at at of goldmark's output stands for.
func (w *htmlWriter) token(at int, t token) {
	for ; len(w.marks) > 0 && w.marks[0].at <= at; w.marks = w.marks[1:] {
		w.in = w.marks[0].cites
	}
	switch {
	case w.inTag: // no place leads here; should one, what is in a tag must not end it
		w.WriteString(html.EscapeString(t.math))
	case t.marker == nil:
		w.turn(w.in)
		writeMathHTML(&w.Builder, t.math)
	case w.r.Marker != nil:
		if marker := w.r.Marker(*t.marker); marker != "" {
			w.turn(nil)
			w.WriteString(marker)
		}
	default:
		w.turn(nil)
		w.r.writeMarkerHTML(&w.Builder, t.marker)
	}
}

// convertHTML returns markdown, which lies in claims as edges say, as HTML.
func (r *rendering) convertHTML(text string, edges []claimEdge, footnotes bool) *htmlBuffer {
	extensions := []goldmark.Extender{
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough, extension.TaskList,
	}
	if footnotes {
		extensions = append(extensions, extension.NewFootnote(extension.WithFootnoteIDPrefix(r.prefix+"text-")))
	} else {
		notes := footnoteLines(text)
		text = escapeAt(text, notes)
		edges = slices.Clone(edges)
		shiftEdges(edges, notes)
	}
	out := &htmlBuffer{}
	out.Grow(2 * len(text))
	claims := claimWriter{edges, out}
	renderers := []util.PrioritizedValue{util.Prioritized(safeHTML{claims}, 100)}
	if len(edges) > 0 {
		renderers = append(renderers, util.Prioritized(claims, 100))
	}
	inline := inlineParsers(len(text))
	if r.mayLink() {
		inline = append(inline, util.Prioritized(newBareLinkParser(), 999))
	}
	md := goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithInlineParsers(inline...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		)),
		goldmark.WithExtensions(extensions...),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(renderers...)),
	)
	// only a failing writer could make it fail, and this one cannot
	if err := md.Convert([]byte(text), out); err != nil {
		out.Reset()
		out.marks = nil
		out.WriteString("<pre>" + html.EscapeString(text) + "</pre>\n")
	}
	return out
}

// mayLink reports whether goldmark has to look for addresses in prose: the text has some, or what is cut out of it may
// make some.
func (r *rendering) mayLink() bool {
	return slices.ContainsFunc(r.sections, func(s section) bool {
		return s.places.tree == nil || s.places.bare || len(s.layout.cuts) > 0 && mayLink([]byte(s.places.text))
	})
}

// hasFootnotes reports whether text defines footnotes, each of which it uses: goldmark leaves out the others, words and
// all.
func hasFootnotes(text string) bool {
	found := false
	for line := range strings.SplitSeq(text, "\n") {
		label, _, ok := strings.Cut(strings.TrimLeft(line, " >\t"), "]:")
		if !ok || !strings.HasPrefix(label, "[^") {
			continue
		}
		if strings.Count(text, label+"]") <= strings.Count(text, label+"]:") {
			return false
		}
		found = true
	}
	return found
}

// footnoteLines returns where the definitions of footnotes start, which are to be text: as definitions of addresses
// they would not be shown.
func footnoteLines(text string) []int {
	if !strings.Contains(text, "[^") {
		return nil
	}
	var out []int
	end := 0
	for line := range strings.Lines(text) {
		end += len(line)
		mark := strings.TrimLeft(line, " >\t")
		if strings.HasPrefix(mark, "[^") && strings.Contains(mark, "]:") {
			out = append(out, end-len(mark))
		}
	}
	return out
}

// writeMathHTML writes math as page scripts expect it: in a span of class math, with the delimiters of LaTeX.
func writeMathHTML(b *strings.Builder, math string) {
	class, begin, end, n := "inline", `\(`, `\)`, 2
	switch {
	case strings.HasPrefix(math, "$$"), strings.HasPrefix(math, `\[`):
		class, begin, end = "display", `\[`, `\]`
	case strings.HasPrefix(math, "$"):
		n = 1
	}
	b.WriteString(
		`<span class="math ` + class + `">` + begin + html.EscapeString(math[n:len(math)-n]) + end + `</span>`,
	)
}

// writeMarkerHTML writes a marker. Its links go to the list where there is one, else to the source itself.
func (r *rendering) writeMarkerHTML(b *strings.Builder, m *Marker) {
	b.WriteString(`<sup class="ibid">`)
	for i, it := range m.Items {
		if i > 0 {
			b.WriteByte(',')
		}
		name := sourceName(it.Source)
		title := name
		if d := sourceDetail(it.Source, name, safeURL(it.Source.URL), nil); d != "" {
			title += " — " + d
		}
		label, title := html.EscapeString(r.label(it)), html.EscapeString(title)
		switch url := safeURL(it.Source.URL); {
		case r.List:
			fmt.Fprintf(b, `<a href="#%s" title="%s">%s</a>`, r.sourceAnchor(it.Number), title, label)
		case url != "":
			fmt.Fprintf(
				b, `<a href="%s" title="%s" rel="noopener noreferrer nofollow">%s</a>`, html.EscapeString(url), title,
				label,
			)
		default:
			fmt.Fprintf(b, `<span title="%s">%s</span>`, title, label)
		}
	}
	b.WriteString("</sup>")
}

// sourceAnchor returns the id of a source's line in the list.
func (r *rendering) sourceAnchor(number int) string {
	return r.prefix + "source-" + strconv.Itoa(number)
}

// htmlList writes the list of sources.
func (r *rendering) htmlList(b *strings.Builder, cited, uncited []entry) {
	b.WriteString("<section class=\"ibid-sources\">\n")
	if len(cited)+len(uncited) == 0 {
		b.WriteString("<p>" + r.noSources() + "</p>\n")
	}
	r.writeListHTML(b, listHeading, cited)
	r.writeListHTML(b, uncitedHeading, uncited)
	b.WriteString("</section>\n")
}

func (r *rendering) writeListHTML(b *strings.Builder, heading string, entries []entry) {
	if len(entries) == 0 {
		return
	}
	b.WriteString("<h2>" + heading + "</h2>\n<ol>\n")
	for _, e := range entries {
		fmt.Fprintf(b, `<li value="%d" id="%s">`, e.Number, r.sourceAnchor(e.Number))
		name := "<bdi>" + html.EscapeString(e.name) + "</bdi>"
		if e.url != "" {
			name = fmt.Sprintf(`<a href="%s" rel="noopener noreferrer nofollow">%s</a>`, html.EscapeString(e.url), name)
		}
		b.WriteString(name)
		if e.detail != "" {
			b.WriteString(" — <bdi>" + html.EscapeString(e.detail) + "</bdi>")
		}
		for _, q := range e.quotes {
			b.WriteString("\n<blockquote>" + html.EscapeString(q) + "</blockquote>")
		}
		b.WriteString("</li>\n")
	}
	b.WriteString("</ol>\n")
}

// safeHTML renders the nodes in which markdown could reach outside its text: raw HTML is shown as text, links are links
// only to addresses that [safeURL] takes, and images are links, so that showing an answer loads nothing.
type safeHTML struct{ claims claimWriter }

// RegisterFuncs implements renderer.NodeRenderer.
func (h safeHTML) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindRawHTML, h.raw)
	reg.Register(ast.KindHTMLBlock, h.block)
	reg.Register(ast.KindLink, h.link)
	reg.Register(ast.KindImage, h.image)
	reg.Register(ast.KindAutoLink, h.autoLink)
}

func (h safeHTML) raw(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if raw, ok := n.(*ast.RawHTML); ok && entering {
		for i := range raw.Segments.Len() {
			h.claims.escaped(w, source, raw.Segments.At(i))
		}
	}
	return ast.WalkSkipChildren, nil
}

func (h safeHTML) block(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	raw, ok := n.(*ast.HTMLBlock)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<p>")
	for i := range raw.Lines().Len() {
		h.claims.escaped(w, source, raw.Lines().At(i))
	}
	if raw.HasClosure() {
		h.claims.escaped(w, source, raw.ClosureLine)
	}
	_, _ = w.WriteString("</p>\n")
	return ast.WalkContinue, nil
}

func (safeHTML) link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if link, ok := n.(*ast.Link); ok {
		writeLink(w, string(link.Destination), string(link.Title), entering)
	}
	return ast.WalkContinue, nil
}

// image writes an image as a link around its description, or the description alone inside another link.
func (safeHTML) image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if k := p.Kind(); k == ast.KindLink || k == ast.KindImage {
			return ast.WalkContinue, nil
		}
	}
	if img, ok := n.(*ast.Image); ok {
		writeLink(w, string(img.Destination), string(img.Title), entering)
	}
	return ast.WalkContinue, nil
}

func (h safeHTML) autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	link, ok := n.(*ast.AutoLink)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	url := string(link.URL(source))
	if link.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
		url = "mailto:" + url
	}
	writeLink(w, url, "", true)
	label := link.Label(source)
	start := link.Pos() // of the label, or of the character before it
	if start < 0 || !bytes.HasPrefix(source[start:], label) {
		start++
	}
	h.claims.escaped(w, source, text.NewSegment(start, start+len(label)))
	writeLink(w, url, "", false)
	return ast.WalkContinue, nil
}

// writeLink writes the start or end tag of a link to a markdown destination, or of a span where it is not safe.
func writeLink(w util.BufWriter, destination, title string, start bool) {
	url := safeURL(markdownText(destination))
	name := "a"
	if url == "" {
		name = "span"
	}
	if !start {
		_, _ = w.WriteString("</" + name + ">")
		return
	}
	_, _ = w.WriteString("<" + name)
	if url != "" {
		_, _ = w.WriteString(` href="` + html.EscapeString(url) + `" rel="noopener noreferrer nofollow"`)
	}
	if title = tidy(markdownText(title)); title != "" {
		_, _ = w.WriteString(` title="` + html.EscapeString(title) + `"`)
	}
	_ = w.WriteByte('>')
}
