package markdown

import (
	"bytes"
	"cmp"
	"html"
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/ibidhq/ibid/internal/halt"
	shown "github.com/ibidhq/ibid/internal/text"
)

// Edits are changes to a document when it is written as HTML or LaTeX.
type Edits struct {
	Cuts  []Span // ranges to remove: whole constructs within a line; in order
	Marks []Mark // marks to insert; in order
}

// Mark is a place to insert something that is not markdown.
type Mark struct {
	At         int  // outside solids
	Standalone bool // as a paragraph between two blocks
	Space      bool // with a space before it
}

// inserted is a node for a mark, or for math.
type inserted struct {
	ast.BaseInline
	mark  int // index in Edits.Marks; -1 for math
	space bool
	math  Span
}

var kindInserted = ast.NewNodeKind("Inserted")

// Kind implements ast.Node.
func (*inserted) Kind() ast.NodeKind { return kindInserted }

// Dump implements ast.Node.
func (n *inserted) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// edit returns the tree with edits applied. Math is masked before parsing, so that nothing in it is read as markdown.
// It returns false if a mark has no place. The tree can be edited only once.
func (d *Document) edit(e Edits, notes bool) (*tree, bool) {
	t := d.tree
	source := slices.Clone(t.source)
	if !notes {
		// mask what looks like a footnote definition: as a link definition it would not be shown
		at := 0
		for line := range bytes.Lines(source) {
			mark := bytes.TrimLeft(line, " >\t")
			if bytes.HasPrefix(mark, []byte("[^")) && bytes.Contains(mark, []byte("]:")) {
				source[at+len(line)-len(mark)] = 'x'
			}
			at += len(line)
		}
	}
	for _, m := range d.math {
		for i := m.Start; i < m.End; i++ {
			source[i] = 'x'
		}
		source[m.Start], source[m.End-1] = '$', '$'
	}
	blocks := d.Blocks
	if notes || len(d.math) > 0 || !bytes.Equal(source, d.tree.source) {
		t = parseTree(t.halt, d.Text, source, notes, parser.NewContext())
		b := treeReader{Document: &Document{Text: d.Text}, tree: t}
		for n := t.root.FirstChild(); n != nil; n = n.NextSibling() {
			if n.Kind() != ast.KindLinkReferenceDefinition && n.Kind() != east.KindFootnoteList {
				b.top(n)
			}
		}
		b.walk(t.root, false)
		blocks = b.Blocks
	}
	ed := editor{tree: t, cuts: e.Cuts}
	for i, m := range e.Marks {
		if m.Standalone {
			ed.insertBlock(blocks, m, i)
			continue
		}
		ed.insert = append(ed.insert, insertion{m.At, &inserted{mark: i, space: m.Space}})
	}
	for _, m := range d.math {
		ed.cuts = append(ed.cuts, m)
		ed.insert = append(ed.insert, insertion{m.Start, &inserted{mark: -1, math: m}})
	}
	slices.SortStableFunc(ed.cuts, byStart)
	slices.SortStableFunc(ed.insert, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	ed.leaves(t.root)
	slices.SortStableFunc(ed.blocks, func(a, b leaf) int { return cmp.Compare(a.Start, b.Start) })
	for _, b := range ed.blocks {
		ed.cut(b.node, b.End)
		ed.insertBelow(b.node, b.End)
	}
	return t, len(ed.insert) == 0
}

// editor removes ranges from a tree and inserts nodes.
type editor struct {
	*tree
	cuts   []Span
	insert []insertion
	blocks []leaf
}

type insertion struct {
	at   int
	node *inserted
}

// leaf is a block with inline content.
type leaf struct {
	Span
	node ast.Node
}

// leaves collects the blocks with inline content below n.
func (e *editor) leaves(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		e.halt.Check()
		if c.Type() == ast.TypeInline || c.IsRaw() {
			continue
		}
		if l := c.Lines(); l != nil && l.Len() > 0 && c.Kind() != ast.KindLinkReferenceDefinition {
			e.blocks = append(e.blocks, leaf{Span{l.At(0).Start, l.At(l.Len() - 1).Stop}, c})
		}
		e.leaves(c)
	}
}

// insertBlock inserts a mark between two blocks, as a paragraph.
func (e *editor) insertBlock(blocks []Block, m Mark, index int) {
	p := ast.NewParagraph()
	p.AppendChild(p, &inserted{mark: index})
	if i := sort.Search(len(blocks), func(i int) bool { return blocks[i].Start >= m.At }); i < len(blocks) {
		e.root.InsertBefore(e.root, blocks[i].node, p)
		return
	}
	if last := e.root.LastChild(); last != nil && last.Kind() == east.KindFootnoteList {
		e.root.InsertBefore(e.root, last, p)
		return
	}
	e.root.AppendChild(e.root, p)
}

// cut removes the cuts that begin before limit from the inline content of parent.
func (e *editor) cut(parent ast.Node, limit int) {
	for c := parent.FirstChild(); c != nil; {
		next := c.NextSibling()
		at, ok := e.extent(c)
		for ok && len(e.cuts) > 0 && e.cuts[0].End <= at.Start {
			e.cuts = e.cuts[1:]
		}
		if len(e.cuts) == 0 || e.cuts[0].Start >= limit {
			return
		}
		s := e.cuts[0]
		t, isText := c.(*ast.Text)
		switch {
		case !ok || at.Start >= s.End || at.End <= s.Start:
		case isText:
			if at.Start < s.Start {
				left := ast.NewTextSegment(text.NewSegment(at.Start, s.Start))
				parent.InsertBefore(parent, c, left)
			}
			t.Segment = text.NewSegment(min(s.End, at.End), at.End)
			if s.End < at.End {
				next = c // another cut may follow
			}
		case s.Start <= at.Start && at.End <= s.End:
			parent.RemoveChild(parent, c)
		default:
			e.cut(c, min(limit, at.End))
		}
		c = next
	}
}

// insertBelow inserts the nodes up to limit into the inline content of parent.
func (e *editor) insertBelow(parent ast.Node, limit int) {
	for c := parent.FirstChild(); c != nil && len(e.insert) > 0; c = c.NextSibling() {
		s, ok := e.extent(c)
		if !ok {
			continue
		}
		for len(e.insert) > 0 && e.insert[0].at <= min(s.Start, limit) {
			parent.InsertBefore(parent, c, e.next())
		}
		t, isText := c.(*ast.Text)
		for isText && len(e.insert) > 0 && e.insert[0].at <= min(s.End, limit) &&
			(e.insert[0].at < s.End || t.SoftLineBreak() || t.HardLineBreak()) {
			at := e.insert[0].at
			parent.InsertBefore(parent, c, ast.NewTextSegment(text.NewSegment(t.Segment.Start, at)))
			parent.InsertBefore(parent, c, e.next())
			t.Segment = text.NewSegment(at, s.End)
		}
		if k := c.Kind(); k == ast.KindEmphasis || k == east.KindStrikethrough {
			e.insertBelow(c, min(s.End-1, limit))
		}
	}
	for len(e.insert) > 0 && e.insert[0].at <= limit {
		parent.AppendChild(parent, e.next())
	}
}

func (e *editor) next() ast.Node {
	n := e.insert[0].node
	e.insert = e.insert[1:]
	return n
}

// HTML holds the options of [Document.HTML].
type HTML struct {
	Edits
	// Prefix is the prefix of footnote ids. If empty, footnotes are not supported and their definitions are text.
	Prefix string
	// Mark returns the HTML of the mark with that index.
	Mark func(index int) string
	// Edges, in ascending order, divide the visible text into stretches. The strings that Around returns are put before
	// and after each stretch with a non-empty In, within one element or around inline math as a whole.
	Edges  []Edge
	Around func(in []int) (before, after string)
}

// Edge is the beginning of a stretch of text, which ends at the next edge. In lists what contains the stretch.
type Edge struct {
	At int
	In []int
}

// HTML returns the document as safe HTML: raw HTML is shown as text, links lead only to URLs that [SafeURL] accepts,
// and images are links, so that displaying it loads nothing. It returns false if a mark has no place.
func (d *Document) HTML(o *HTML) (string, bool) {
	t, ok := d.edit(o.Edits, o.Prefix != "")
	if !ok {
		return "", false
	}
	w := &htmlWriter{HTML: o, text: d.Text, source: []byte(d.Text), halt: t.halt}
	r := renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(w, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(
			extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(extension.NewTaskCheckBoxHTMLRenderer(), 500),
		util.Prioritized(extension.NewFootnoteHTMLRenderer(extension.WithFootnoteIDPrefix(o.Prefix)), 500),
		util.Prioritized(ghtml.NewRenderer(), 1000),
	))
	if r.Render(w, w.source, t.root) != nil { // cannot fail, as the writer does not
		return "<pre>" + html.EscapeString(d.Text) + "</pre>\n", true
	}
	w.turn(nil)
	return w.String(), true
}

// htmlWriter renders nodes with text and nodes that could be unsafe. Goldmark renders the others into it.
type htmlWriter struct {
	*HTML
	bytes.Buffer
	text   string
	source []byte // the same
	in     []int  // In of the text to write next
	open   []int  // In of the open stretch
	after  string // the string that closes it
	halt   *halt.Halt
}

// Available implements util.BufWriter.
func (*htmlWriter) Available() int { return 0 }

// Buffered implements util.BufWriter.
func (*htmlWriter) Buffered() int { return 0 }

// Flush implements util.BufWriter.
func (*htmlWriter) Flush() error { return nil }

// Write implements util.BufWriter.
func (w *htmlWriter) Write(p []byte) (int, error) {
	w.halt.Check()
	if len(p) > 0 {
		w.turn(w.in)
	}
	return w.Buffer.Write(p)
}

// WriteString implements util.BufWriter.
func (w *htmlWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// WriteByte implements util.BufWriter.
func (w *htmlWriter) WriteByte(c byte) error {
	_, err := w.Write([]byte{c})
	return err
}

// WriteRune implements util.BufWriter.
func (w *htmlWriter) WriteRune(r rune) (int, error) { return w.WriteString(string(r)) }

// turn closes the open stretch and opens one with in, if they differ.
func (w *htmlWriter) turn(in []int) {
	if slices.Equal(w.open, in) {
		return
	}
	if len(w.open) > 0 {
		w.Buffer.WriteString(w.after)
	}
	if w.open = in; len(in) > 0 {
		before, after := w.Around(slices.Clone(in))
		w.Buffer.WriteString(before)
		w.after = after
	}
}

// RegisterFuncs implements renderer.NodeRenderer. The output is the same as goldmark's.
func (w *htmlWriter) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	entering := func(write func(n ast.Node)) renderer.NodeRendererFunc {
		return func(_ util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
			if entering {
				write(n)
			}
			return ast.WalkSkipChildren, nil
		}
	}
	both := func(_ util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		w.link(n, entering)
		return ast.WalkContinue, nil
	}
	reg.Register(kindInserted, entering(w.inserted))
	reg.Register(ast.KindText, entering(w.textNode))
	reg.Register(ast.KindCodeSpan, entering(w.codeSpan))
	reg.Register(ast.KindCodeBlock, entering(w.codeBlock))
	reg.Register(ast.KindFencedCodeBlock, entering(w.codeBlock))
	reg.Register(ast.KindRawHTML, entering(w.rawHTML))
	reg.Register(ast.KindHTMLBlock, entering(w.rawHTML))
	reg.Register(ast.KindAutoLink, entering(w.autoLink))
	reg.Register(ast.KindLink, both)
	reg.Register(ast.KindImage, both)
}

// inserted writes a mark or math.
func (w *htmlWriter) inserted(n ast.Node) {
	ins, ok := n.(*inserted)
	if !ok {
		return
	}
	if ins.mark < 0 {
		w.in = w.inAt(ins.math.Start)
		class, begin, end, body := formula(w.text[ins.math.Start:ins.math.End])
		body = html.EscapeString(body)
		_, _ = w.WriteString(`<span class="math ` + class + `">` + begin + body + end + `</span>`)
		w.in = nil
		return
	}
	if ins.space {
		w.in = w.inAt(w.Marks[ins.mark].At)
		_ = w.WriteByte(' ')
		w.in = nil
	}
	_, _ = w.WriteString(w.Mark(ins.mark))
}

// formula returns math without its delimiters, and the delimiters that page scripts expect.
func formula(math string) (class, begin, end, body string) {
	n := 2
	switch {
	case strings.HasPrefix(math, "$$"), strings.HasPrefix(math, `\[`):
		return "display", `\[`, `\]`, math[n : len(math)-n]
	case math[0] == '$':
		n = 1
	}
	return "inline", `\(`, `\)`, math[n : len(math)-n]
}

// inAt returns In of the stretch that contains at.
func (w *htmlWriter) inAt(at int) []int {
	if i := w.edgeBefore(at + 1); i >= 0 {
		return w.Edges[i].In
	}
	return nil
}

func (w *htmlWriter) edgeBefore(at int) int {
	return sort.Search(len(w.Edges), func(i int) bool { return w.Edges[i].At >= at }) - 1
}

// write passes text[s.Start:s.Stop] to piece in pieces, each within one stretch. The function cut returns the first
// place from an edge on where a piece can end.
func (w *htmlWriter) write(s text.Segment, cut func(from, at int) int, piece func([]byte)) {
	_, _ = w.WriteString(strings.Repeat(" ", s.Padding)) // the rest of a tab
	i := w.edgeBefore(s.Start + 1)
	for from := s.Start; from < s.Stop; i++ {
		to := s.Stop
		if i+1 < len(w.Edges) && w.Edges[i+1].At < to {
			to = min(cut(from, max(from, w.Edges[i+1].At)), to)
		}
		if to > from {
			if i >= 0 {
				w.in = w.Edges[i].In
			}
			piece([]byte(w.text[from:to]))
			from = to
		}
	}
	w.in = nil
}

// raw writes s without resolving escapes and entities.
func (w *htmlWriter) raw(s text.Segment) {
	w.write(s, func(_, at int) int { return at }, func(p []byte) { ghtml.DefaultWriter.RawWrite(w, p) })
}

// escaped writes s with the escapes of package html, which differ from goldmark's.
func (w *htmlWriter) escaped(s text.Segment) {
	w.write(s, func(_, at int) int { return at }, func(p []byte) {
		_, _ = w.WriteString(html.EscapeString(string(p)))
	})
}

// lineBreak writes the line break at at as the given byte.
func (w *htmlWriter) lineBreak(at int, as byte) {
	w.in = w.inAt(at)
	_ = w.WriteByte(as)
	w.in = nil
}

func (w *htmlWriter) textNode(n ast.Node) {
	t, ok := n.(*ast.Text)
	switch {
	case !ok:
		return
	case t.IsRaw():
		w.raw(t.Segment)
		return
	}
	s := t.Segment
	w.write(s, func(from, at int) int { return from + afterAtom(w.text[from:s.Stop], at-from) },
		func(p []byte) { ghtml.DefaultWriter.Write(w, p) })
	switch {
	case t.HardLineBreak():
		_, _ = w.WriteString("<br>\n")
	case t.SoftLineBreak():
		w.lineBreak(s.Stop, '\n')
	}
}

func (w *htmlWriter) codeSpan(n ast.Node) {
	_, _ = w.WriteString("<code>")
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		t, ok := child.(*ast.Text)
		switch {
		case !ok:
		case t.Segment.Stop > t.Segment.Start && w.text[t.Segment.Stop-1] == '\n':
			w.raw(t.Segment.WithStop(t.Segment.Stop - 1))
			w.lineBreak(t.Segment.Stop-1, ' ')
		default:
			w.raw(t.Segment)
		}
	}
	_, _ = w.WriteString("</code>")
}

func (w *htmlWriter) codeBlock(n ast.Node) {
	_, _ = w.WriteString("<pre><code")
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		if language := f.Language(w.source); language != nil {
			_, _ = w.WriteString(` class="language-`)
			ghtml.DefaultWriter.Write(w, language)
			_ = w.WriteByte('"')
		}
	}
	_ = w.WriteByte('>')
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		w.raw(s)
		if s.ForceNewline && s.Padding+s.Stop-s.Start > 0 && (s.Stop == s.Start || w.text[s.Stop-1] != '\n') {
			_ = w.WriteByte('\n')
		}
	}
	_, _ = w.WriteString("</code></pre>\n")
}

// rawHTML shows raw HTML as text.
func (w *htmlWriter) rawHTML(n ast.Node) {
	switch n := n.(type) {
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			w.escaped(n.Segments.At(i))
		}
	case *ast.HTMLBlock:
		_, _ = w.WriteString("<p>")
		for i := range n.Lines().Len() {
			w.escaped(n.Lines().At(i))
		}
		if n.HasClosure() {
			w.escaped(n.ClosureLine)
		}
		_, _ = w.WriteString("</p>\n")
	}
}

// link writes the start or end tag of a link. An image becomes a link around its description or, inside another link,
// only its description.
func (w *htmlWriter) link(n ast.Node, start bool) {
	switch n := n.(type) {
	case *ast.Link:
		w.linkTag(string(n.Destination), string(n.Title), start)
	case *ast.Image:
		if !inLink(n) {
			w.linkTag(string(n.Destination), string(n.Title), start)
		}
	}
}

// inLink reports whether n is in a link or in the description of an image.
func inLink(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if k := p.Kind(); k == ast.KindLink || k == ast.KindImage {
			return true
		}
	}
	return false
}

func (w *htmlWriter) autoLink(n ast.Node) {
	link, ok := n.(*ast.AutoLink)
	if !ok {
		return
	}
	url := autoLinkURL(link, w.source)
	w.linkTag(url, "", true)
	label := link.Label(w.source)
	start := link.Pos() // start of the label, or of the character before it
	if start < 0 || !strings.HasPrefix(w.text[start:], string(label)) {
		start++
	}
	w.escaped(text.NewSegment(start, start+len(label)))
	w.linkTag(url, "", false)
}

// autoLinkURL returns the URL of an autolink.
func autoLinkURL(n *ast.AutoLink, source []byte) string {
	url := string(n.URL(source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(url), "mailto:") {
		url = "mailto:" + url
	}
	return url
}

// linkTag writes the start or end tag of a link to a markdown destination, or of a span if it is not safe.
func (w *htmlWriter) linkTag(destination, title string, start bool) {
	tag, url := "a", SafeURL(unescape(destination))
	if url == "" {
		tag = "span"
	}
	if !start {
		_, _ = w.WriteString("</" + tag + ">")
		return
	}
	if url != "" {
		tag += ` href="` + html.EscapeString(url) + `" rel="noopener noreferrer nofollow"`
	}
	if title = shown.Line(unescape(title), MaxTitle); title != "" {
		tag += ` title="` + html.EscapeString(title) + `"`
	}
	_, _ = w.WriteString("<" + tag + ">")
}

// MaxTitle is the maximum number of runes of a title to show.
const MaxTitle = 200

// afterAtom returns the first place from at on where s can be cut without splitting an escape or an entity.
func afterAtom(s string, at int) int {
	for at > 0 && at < len(s) {
		if EndsInEscape(s[:at]) && isPunct(s[at]) {
			at++
			continue
		}
		to := at + EntityEnd(s, at)
		if to == at {
			return at
		}
		at = to
	}
	return at
}

// unescape resolves escapes and entities in inline markdown text.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 1
		switch {
		case s[i] == '\\' && i+1 < len(s) && isPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			n = max(1, strings.IndexByte(s[i:min(len(s), i+40)], ';')+1)
			b.WriteString(html.UnescapeString(s[i : i+n]))
		default:
			b.WriteByte(s[i])
		}
		i += n
	}
	return b.String()
}
