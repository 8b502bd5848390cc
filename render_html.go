package ibid

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// html renders the answer as HTML. Markers and math go through goldmark as tokens that no text contains, and are put in
// afterwards: they stand where markdown text stands, and nothing in them is read as markdown.
func (r *rendering) html() string {
	text, tokens := r.tokenText()
	out := convertHTML(text, r.prefix, hasFootnotes(r.answer.Text))
	if strings.Count(out, tokens.open) != len(tokens.all) {
		out = convertHTML(text, r.prefix, false)
	}
	var b strings.Builder
	inTag := false
	tokens.each(out, func(plain string) {
		b.WriteString(plain)
		if i := strings.LastIndexAny(plain, "<>"); i >= 0 {
			inTag = plain[i] == '<'
		}
	}, func(t token) {
		switch {
		case inTag: // no place leads here; should one, what is in a tag must not end it
			b.WriteString(html.EscapeString(t.math))
		case t.marker == nil:
			writeMathHTML(&b, t.math)
		case r.Marker != nil:
			b.WriteString(r.Marker(*t.marker))
		default:
			r.writeMarkerHTML(&b, t.marker)
		}
	})
	if r.List {
		b.WriteString(r.list())
	}
	return b.String()
}

// convertHTML returns markdown as HTML.
func convertHTML(text, prefix string, footnotes bool) string {
	extensions := []goldmark.Extender{
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		extension.Strikethrough, extension.Linkify, extension.TaskList,
	}
	if footnotes {
		extensions = append(extensions, extension.NewFootnote(extension.WithFootnoteIDPrefix(prefix+"text-")))
	}
	if !footnotes {
		text = escapeFootnotes(text)
	}
	md := goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(parser.DefaultBlockParsers()...),
			parser.WithInlineParsers(inlineParsers(len(text))...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		)),
		goldmark.WithExtensions(extensions...),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(safeHTML{}, 100))),
	)
	var out bytes.Buffer
	if err := md.Convert([]byte(text), &out); err != nil { // only a failing writer could make it fail, and this one cannot
		return "<pre>" + html.EscapeString(text) + "</pre>\n"
	}
	return out.String()
}

// hasFootnotes reports whether text defines footnotes, each of which it uses: goldmark leaves out the others, words and all.
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

// escapeFootnotes makes text of the definitions of footnotes: as definitions of addresses they would not be shown.
func escapeFootnotes(text string) string {
	if !strings.Contains(text, "[^") {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		mark := strings.TrimLeft(line, " >\t")
		if strings.HasPrefix(mark, "[^") && strings.Contains(mark, "]:") {
			b.WriteString(line[:len(line)-len(mark)] + `\`)
			line = mark
		}
		b.WriteString(line)
	}
	return b.String()
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
	b.WriteString(`<span class="math ` + class + `">` + begin + html.EscapeString(math[n:len(math)-n]) + end + `</span>`)
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
			fmt.Fprintf(b, `<a href="%s" title="%s" rel="noopener noreferrer nofollow">%s</a>`, html.EscapeString(url), title, label)
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
type safeHTML struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (h safeHTML) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindRawHTML, h.raw)
	reg.Register(ast.KindHTMLBlock, h.block)
	reg.Register(ast.KindLink, h.link)
	reg.Register(ast.KindImage, h.image)
	reg.Register(ast.KindAutoLink, h.autoLink)
}

func (safeHTML) raw(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if raw, ok := n.(*ast.RawHTML); ok && entering {
		for i := range raw.Segments.Len() {
			s := raw.Segments.At(i)
			_, _ = w.WriteString(html.EscapeString(string(s.Value(source))))
		}
	}
	return ast.WalkSkipChildren, nil
}

func (safeHTML) block(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	raw, ok := n.(*ast.HTMLBlock)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString("<p>")
	for i := range raw.Lines().Len() {
		s := raw.Lines().At(i)
		_, _ = w.WriteString(html.EscapeString(string(s.Value(source))))
	}
	if raw.HasClosure() {
		_, _ = w.WriteString(html.EscapeString(string(raw.ClosureLine.Value(source))))
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

func (safeHTML) autoLink(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	link, ok := n.(*ast.AutoLink)
	if !ok || !entering {
		return ast.WalkContinue, nil
	}
	url := string(link.URL(source))
	if link.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
		url = "mailto:" + url
	}
	writeLink(w, url, "", true)
	_, _ = w.WriteString(html.EscapeString(string(link.Label(source))))
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
