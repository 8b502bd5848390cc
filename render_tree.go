package ibid

import (
	"cmp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// solid is a stretch of text into which no marker goes: a link, an image, a code span, a bare address, a tag, math.
type solid struct {
	Span
	kind solidKind
}

// solidKind says what a [solid] is, where that matters.
type solidKind uint8

const (
	otherSolid solidKind = iota
	linkSolid
	codeSolid
	bareSolid // an address that is a link only because it looks like one: whatever follows it without a space joins it
	mathSolid
)

// phrase is an outermost run of emphasis or strikethrough, delimiters included.
type phrase struct {
	Span
	// lastBreak is the end of the last sentence that ends inside while another follows; Start when there is none. A
	// marker up to there stays inside, a later one goes after the closing delimiter.
	lastBreak int
}

// topBlock is a child of the document.
type topBlock struct {
	start    int    // of its first line
	raw      bool   // code or HTML as a whole
	firstRaw int    // start of the first code or HTML inside; -1: none
	closer   string // what would close it, where the text ends inside; else empty
}

// tree is what placing markers needs to know of a text's markdown: where its inline content stands, and what in it is
// solid. It is made of one goldmark parse, GFM with footnotes and math, and holds offsets only.
type tree struct {
	text    string
	lines   []Span // inline content line by line, without indentation, prefixes, trailing space; in order
	blocks  []topBlock
	solids  []solid // in order, none inside another
	phrases []phrase
	math    []Span          // those solids that are math
	labels  map[string]bool // of reference definitions, normalised
	bare    bool            // some address in prose is a link
}

// parseTree reads text.
func parseTree(txt string) *tree {
	source := shallow(txt)
	t := &tree{text: txt, labels: map[string]bool{}}
	b := treeBuilder{tree: t, source: source, at: map[ast.Node]Span{}}
	pc := parser.NewContext()
	b.doc = newParser(&b).Parse(text.NewReader(source), parser.WithContext(pc))
	for _, ref := range pc.References() {
		t.labels[util.ToLinkReference(ref.Label())] = true
	}
	for n := b.doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() != ast.KindLinkReferenceDefinition {
			b.top(n)
		}
	}
	b.walk(b.doc, false)
	slices.SortFunc(t.lines, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortFunc(b.raws, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortFunc(t.phrases, func(a, b phrase) int { return cmp.Compare(a.Start, b.Start) })
	t.solids = outermost(b.solids)
	b.scan()
	t.solids = outermost(append(t.solids, b.found...))
	for _, s := range t.solids {
		if s.kind == mathSolid && t.isContent(s.Span) {
			t.math = append(t.math, s.Span)
		}
	}
	return t
}

// isContent reports whether s starts and ends in lines of content.
func (t *tree) isContent(s Span) bool {
	for _, at := range [...]int{s.Start, s.End - 1} {
		i, _ := slices.BinarySearchFunc(t.lines, at+1, func(l Span, at int) int { return cmp.Compare(l.Start, at) })
		if i == 0 || t.lines[i-1].End <= at {
			return false
		}
	}
	return true
}

// newParser returns a parser for markdown as chat models write it that tells b of every inline construct it reads. It
// is made anew for each text: the constructs reach b through the parser's own parts.
func newParser(b *treeBuilder) parser.Parser {
	inline := func(p parser.InlineParser, bare bool) parser.InlineParser {
		return recordingParser{InlineParser: p, to: b, bare: bare}
	}
	parsers := []util.PrioritizedValue{
		util.Prioritized(inline(extension.NewTaskCheckBoxParser(), false), 0),
		util.Prioritized(inline(parser.NewCodeSpanParser(), false), 100),
		util.Prioritized(inline(newLinkParser(len(b.source)), false), 200),
		util.Prioritized(inline(parser.NewAutoLinkParser(), false), 300),
		util.Prioritized(inline(parser.NewRawHTMLParser(), false), 400),
		util.Prioritized(parser.NewEmphasisParser(), 500),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
	}
	if mayLink(b.source) { // goldmark stops at every space for it, which is a quarter of its work
		parsers = append(parsers, util.Prioritized(inline(newBareLinkParser(), true), 999))
	}
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithParagraphTransformers(
			util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200),
		),
		parser.WithInlineParsers(parsers...),
	)
}

// recordingParser notes from where to where each construct of the parser inside reaches: goldmark's tree keeps only
// where some of them start.
type recordingParser struct {
	parser.InlineParser
	to   *treeBuilder
	bare bool
}

func (p recordingParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	_, before := block.Position()
	n := p.InlineParser.Parse(parent, block, pc)
	if n == nil {
		return nil
	}
	_, after := block.Position()
	p.to.inline(n, Span{before.Start, after.Start}, p.bare)
	return n
}

// CloseBlock hands the end of a block on to the link parser, which keeps state over it.
func (p recordingParser) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if c, ok := p.InlineParser.(parser.CloseBlocker); ok {
		c.CloseBlock(parent, block, pc)
	}
}

// treeBuilder collects a [tree] while goldmark parses.
type treeBuilder struct {
	*tree
	source []byte
	doc    ast.Node
	solids []solid
	raws   []Span            // code and HTML blocks, at any depth
	at     map[ast.Node]Span // where inline nodes with content of their own stand
	tag    string            // the open HTML element whose content is not prose
	tagAt  int
	boxes  []Span  // task boxes
	found  []solid // by scan
}

// inline notes an inline node that stands in s.
func (b *treeBuilder) inline(n ast.Node, s Span, bare bool) {
	for s.End > s.Start && isSpaceByte(b.source[min(s.End, len(b.source))-1]) {
		s.End--
	}
	kind := otherSolid
	switch n := n.(type) {
	case *ast.Link, *ast.Image:
		s.Start, kind = n.Pos(), linkSolid
	case *ast.CodeSpan:
		kind = codeSolid
	case *ast.AutoLink:
		if kind = linkSolid; bare {
			b.bare = true
			kind = bareSolid
			s.Start = s.End - len(n.Label(b.source))
		}
	case *ast.RawHTML:
		b.element(s)
	case *east.TaskCheckBox:
		b.boxes = append(b.boxes, s)
		return
	default:
		return
	}
	if s.Start < 0 || s.Start >= s.End {
		return
	}
	b.at[n] = s
	b.solids = append(b.solids, solid{s, kind})
}

// element joins the tags of HTML elements that hold no prose, so that what stands between them is solid too.
func (b *treeBuilder) element(s Span) {
	name, closing := strings.CutPrefix(string(b.source[s.Start+1:s.End]), "/")
	name = strings.ToLower(name[:max(0, strings.IndexFunc(name, func(r rune) bool { return !isASCIIAlnum(r) }))])
	switch {
	case closing && name != "" && name == b.tag:
		b.solids = append(b.solids, solid{Span{b.tagAt, s.End}, codeSolid})
		b.tag = ""
	case closing || b.tag != "":
	default:
		switch name {
		case "a", "button", "code", "kbd", "math", "pre", "samp", "script", "style", "svg", "textarea", "title":
			b.tag, b.tagAt = name, s.Start
		}
	}
}

// top notes a child of the document.
func (b *treeBuilder) top(n ast.Node) {
	pos := n.Pos()
	if n.Kind() == east.KindTable && n.FirstChild() != nil {
		pos = n.FirstChild().Pos() // a table may have taken the end of a paragraph, and keeps its position
	}
	if l := n.Lines(); pos < 0 && l != nil && l.Len() > 0 {
		pos = l.At(0).Start
	}
	last := 0
	if len(b.blocks) > 0 {
		last = b.blocks[len(b.blocks)-1].start
	}
	pos = min(max(pos, last), len(b.source))
	start := strings.LastIndexByte(b.text[:pos], '\n') + 1
	blk := topBlock{start: max(start, last), raw: n.IsRaw(), firstRaw: -1}
	if blk.raw && n.NextSibling() == nil { // definitions cannot follow what does not end
		blk.closer = closerOf(n, b.text, blk.start)
	}
	b.blocks = append(b.blocks, blk)
}

// closerOf returns what closes the last block n of a text if the text ends inside it.
func closerOf(n ast.Node, txt string, start int) string {
	rest := txt[start:]
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		rest = strings.TrimLeft(rest, " ")
		if rest == "" {
			return ""
		}
		fence := rest[:len(rest)-len(strings.TrimLeft(rest, rest[:1]))]
		lines := strings.Split(strings.TrimRight(rest, " \t\r\n"), "\n")
		final := strings.TrimRight(lines[len(lines)-1], " \t\r")
		indent := len(final) - len(strings.TrimLeft(final, " "))
		final = final[indent:]
		if len(lines) > 1 && indent < 4 && len(final) >= len(fence) && strings.Trim(final, rest[:1]) == "" {
			return ""
		}
		return "\n" + fence
	case *ast.HTMLBlock:
		closer := ""
		switch n.HTMLBlockType {
		case ast.HTMLBlockType1:
			if i := strings.LastIndex(rest, "</"); i < 0 || !n.HasClosure() && !strings.ContainsRune(rest[i:], '>') {
				closer = "</pre></script></style></textarea>"
			}
		case ast.HTMLBlockType2:
			closer = "-->"
		case ast.HTMLBlockType3:
			closer = "?>"
		case ast.HTMLBlockType4:
			closer = ">"
		case ast.HTMLBlockType5:
			closer = "]]>"
		case ast.HTMLBlockType6, ast.HTMLBlockType7: // a blank line closes them
		}
		if closer == "" || strings.Contains(rest, closer) {
			return ""
		}
		return "\n" + closer
	default:
		return ""
	}
}

// walk collects the content lines, the raw blocks and the phrases below n.
func (b *treeBuilder) walk(n ast.Node, inPhrase bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.Type() == ast.TypeInline {
			b.emphasis(c, inPhrase)
			continue
		}
		l := c.Lines()
		switch {
		case c.Kind() == ast.KindLinkReferenceDefinition:
		case c.IsRaw():
			b.raw(c, l)
		case l != nil && l.Len() > 0:
			for i := range l.Len() {
				b.line(Span{l.At(i).Start, l.At(i).Stop})
			}
		}
		b.walk(c, false)
	}
}

// raw notes a code or HTML block.
func (b *treeBuilder) raw(n ast.Node, l *text.Segments) {
	s := Span{n.Pos(), n.Pos()}
	if l != nil && l.Len() > 0 {
		if s.Start < 0 {
			s.Start = l.At(0).Start
		}
		s.End = max(s.Start, l.At(l.Len()-1).Stop)
	}
	if s.Start < 0 {
		return
	}
	b.raws = append(b.raws, s)
	i, _ := slices.BinarySearchFunc(
		b.blocks, s.Start+1,
		func(t topBlock, at int) int { return cmp.Compare(t.start, at) },
	)
	if i > 0 && (b.blocks[i-1].firstRaw < 0 || s.Start < b.blocks[i-1].firstRaw) {
		b.blocks[i-1].firstRaw = s.Start
	}
}

// line notes a line of inline content.
func (b *treeBuilder) line(s Span) {
	s = b.trim(s)
	if oddBackslashes(b.text[s.Start:s.End]) {
		s.End-- // a hard break, or one that would become an escape of the marker's first character
	}
	for _, box := range b.boxes {
		if s.Start <= box.Start && box.Start < s.End {
			s.Start = min(s.End, box.End)
		}
	}
	content := b.text[s.Start:s.End]
	if i := strings.Index(
		content, "]:",
	); i > 2 && strings.HasPrefix(content, "[^") &&
		!strings.ContainsAny(content[2:i], "[] ") {
		s.Start += i + 2 // the label of a footnote
	}
	s = b.trim(s)
	content = b.text[s.Start:s.End]
	// With something after it a lone * would be a list, and a lone [a]: a definition.
	if strings.Trim(content, "*_~") != "" && (content[0] != '[' || !strings.HasSuffix(content, "]:")) {
		b.lines = append(b.lines, s)
	}
}

// trim returns s without the white space at its ends.
func (b *treeBuilder) trim(s Span) Span {
	for s.End > s.Start && isSpaceByte(b.text[s.End-1]) {
		s.End--
	}
	for s.Start < s.End && isSpaceByte(b.text[s.Start]) {
		s.Start++
	}
	return s
}

// emphasis notes the phrases at and below the inline node n.
func (b *treeBuilder) emphasis(n ast.Node, inPhrase bool) {
	if _, ok := b.at[n]; ok {
		return
	}
	if s, ok := b.extent(n); ok && !inPhrase && n.FirstChild() != nil {
		b.phrases = append(b.phrases, phrase{s, b.lastBreak(s)})
		inPhrase = true
	}
	b.walk(n, inPhrase)
}

// extent returns where n stands, delimiters included.
func (b *treeBuilder) extent(n ast.Node) (Span, bool) {
	if s, ok := b.at[n]; ok {
		return s, true
	}
	level := 0
	switch n := n.(type) {
	case *ast.Text:
		return Span{n.Segment.Start, n.Segment.Stop}, true
	case *ast.Emphasis:
		level = n.Level
	case *east.Strikethrough:
	default:
		return Span{}, false
	}
	if n.FirstChild() == nil {
		return Span{}, false
	}
	first, ok1 := b.extent(n.FirstChild())
	last, ok2 := b.extent(n.LastChild())
	if !ok1 || !ok2 {
		return Span{}, false
	}
	s := Span{first.Start, last.End}
	if level == 0 {
		level = 1
		if strings.HasSuffix(b.text[:s.Start], "~~") && strings.HasPrefix(b.text[s.End:], "~~") {
			level = 2
		}
	}
	s = Span{s.Start - level, s.End + level}
	if s.Start < 0 || s.End > len(b.text) || !isDelimiter(b.text[s.End-1]) {
		return Span{}, false
	}
	b.at[n] = s
	return s, true
}

// lastBreak returns the end of the last sentence inside s that another one follows; s.Start if there is none.
func (b *treeBuilder) lastBreak(s Span) int {
	inner := strings.TrimRight(b.text[s.Start:s.End], "*_~ \t\r\n")
	for i := len(inner) - 1; i > 0; i-- {
		switch inner[i] {
		case ' ', '\n', '\t':
			switch inner[i-1] {
			case '.', '!', '?':
				return s.Start + i
			}
		case 0x82: // the last byte of 。 U+3002
			if strings.HasSuffix(inner[:i+1], "。") && i+1 < len(inner) {
				return s.Start + i + 1
			}
		}
	}
	return s.Start
}

// outermost sorts solids and drops those inside another; those that overlap become one.
func outermost(all []solid) []solid {
	slices.SortFunc(all, func(a, b solid) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			if s.End > out[n-1].End {
				out[n-1].End, out[n-1].kind = s.End, otherSolid
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

func isSpaceByte(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isDelimiter(c byte) bool { return c == '*' || c == '_' || c == '~' }

func isASCIIAlnum(r rune) bool {
	return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
}

// oddBackslashes reports whether s ends in an odd number of backslashes: the last one then escapes what follows.
func oddBackslashes(s string) bool {
	return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1
}
