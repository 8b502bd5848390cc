package markdown

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/ibidhq/ibid/internal/halt"
)

// Document is a parsed text: GitHub's markdown, with footnote marks and math. It is immutable, except that one call of
// HTML or LaTeX may edit its tree.
type Document struct {
	Text    string
	End     int     // end of the text, without white space
	Lines   []Span  // inline content by line, without indentation, prefixes and trailing space; in order
	Blocks  []Block // the children of the document; in order
	Solids  []Solid // in order, not nested
	Phrases []Span  // outermost runs of emphasis or strikethrough, including delimiters; in order

	tree   *tree
	labels map[string]bool // labels of reference definitions, normalised
	math   []Span          // the solids that are math in the text, not in code
}

// Solid is a stretch of text into which nothing may be inserted: a link, an image, a code span, a bare URL, a tag,
// math.
type Solid struct {
	Span
	Kind SolidKind
}

// SolidKind is the kind of a [Solid], as far as it matters.
type SolidKind uint8

// The kinds of solids.
const (
	otherSolid SolidKind = iota
	CodeSolid
	BareSolid // a bare URL or mail address: whatever follows it without a space becomes part of it
	MathSolid
)

// Block is a child of the document.
type Block struct {
	Start    int    // start of its first line
	Raw      bool   // it is code or HTML
	FirstRaw int    // start of the first code or HTML inside, or -1
	Closer   string // what would close it if the text ends inside it; else empty
	End      int    // end of its text, without white space
	Filled   int    // index of the last block up to this one that has lines or is or contains code or HTML, or -1
	Last     int    // index of the last block that no blank line separates from it, excluding one with a Closer

	node ast.Node
}

// Parse parses txt.
func Parse(txt string) *Document { return ParseUntil(nil, txt) }

// ParseUntil is [Parse] as work that h may end, and so is what is done with the document.
func ParseUntil(h *halt.Halt, txt string) *Document {
	d := &Document{Text: txt, End: len(strings.TrimRight(txt, " \t\r\n\v\f")), labels: map[string]bool{}}
	pc := parser.NewContext()
	d.tree = parseTree(h, txt, shallow(txt), false, pc)
	for _, ref := range pc.References() {
		d.labels[util.ToLinkReference(ref.Label())] = true
	}
	b := treeReader{Document: d, tree: d.tree}
	for n := b.root.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() != ast.KindLinkReferenceDefinition {
			b.top(n)
		}
	}
	b.walk(b.root, false)
	slices.SortFunc(d.Lines, byStart)
	b.measure()
	slices.SortFunc(b.raws, byStart)
	slices.SortFunc(d.Phrases, byStart)
	d.Solids = outermost(b.solids)
	b.scan()
	d.Solids = outermost(append(d.Solids, b.found...))
	for _, s := range d.Solids {
		if s.Kind == MathSolid && d.isContent(s.Start) && d.isContent(s.End-1) {
			d.math = append(d.math, s.Span)
		}
	}
	return d
}

// HasLabel reports whether the document defines label, so that [label] is a link.
func (d *Document) HasLabel(label string) bool {
	return len(d.labels) > 0 && d.labels[util.ToLinkReference([]byte(label))]
}

// Closer returns what must follow the text to close the block it ends in, usually "".
func (d *Document) Closer() string {
	if d == nil || len(d.Blocks) == 0 {
		return ""
	}
	return d.Blocks[len(d.Blocks)-1].Closer
}

func byStart(a, b Span) int { return cmp.Compare(a.Start, b.Start) }

// LinesBefore returns how many lines of content start before at.
func (d *Document) LinesBefore(at int) int {
	return sort.Search(len(d.Lines), func(i int) bool { return d.Lines[i].Start >= at })
}

// LineAt returns the line of content that contains at or ends there.
func (d *Document) LineAt(at int) (Span, bool) {
	if i := d.LinesBefore(at); i > 0 && at <= d.Lines[i-1].End {
		return d.Lines[i-1], true
	}
	return Span{}, false
}

// isContent reports whether the byte at at is in a line of content.
func (d *Document) isContent(at int) bool {
	i := d.LinesBefore(at + 1)
	return i > 0 && at < d.Lines[i-1].End
}

// BlocksBefore returns how many blocks start at or before at.
func (d *Document) BlocksBefore(at int) int {
	return sort.Search(len(d.Blocks), func(i int) bool { return d.Blocks[i].Start > at })
}

// SolidBefore returns the last solid that starts before at.
func (d *Document) SolidBefore(at int) (Solid, bool) {
	if n := sort.Search(len(d.Solids), func(i int) bool { return d.Solids[i].Start >= at }); n > 0 {
		return d.Solids[n-1], true
	}
	return Solid{}, false
}

// SolidAround returns the solid that contains at, excluding its edges.
func (d *Document) SolidAround(at int) (Solid, bool) {
	s, ok := d.SolidBefore(at)
	return s, ok && at < s.End
}

// SolidAt returns the solid that starts at at.
func (d *Document) SolidAt(at int) (Solid, bool) {
	s, ok := d.SolidBefore(at + 1)
	return s, ok && s.Start == at
}

// PhraseAround returns the phrase that contains at, excluding its edges.
func (d *Document) PhraseAround(at int) (Span, bool) {
	n := sort.Search(len(d.Phrases), func(i int) bool { return d.Phrases[i].Start >= at })
	if n > 0 && at < d.Phrases[n-1].End {
		return d.Phrases[n-1], true
	}
	return Span{}, false
}

// tree is the result of a goldmark parse, with the positions that goldmark's nodes lack.
type tree struct {
	text   string // as shown
	source []byte // as parsed; of the same length
	root   ast.Node
	at     map[ast.Node]Span // positions of inline nodes, including delimiters
	solids []Solid           // in the order found
	boxes  []Span            // task boxes
	tag    string            // the open HTML element whose content is not prose
	tagAt  int
	halt   *halt.Halt
	bounds
}

// parseTree parses source. If notes is set, footnotes are supported.
func parseTree(h *halt.Halt, txt string, source []byte, notes bool, pc parser.Context) *tree {
	t := &tree{text: txt, source: source, at: map[ast.Node]Span{}, halt: h, bounds: newBounds(len(source))}
	var inline []util.PrioritizedValue
	add := func(p parser.InlineParser, priority int) {
		bounded := &inlineParser{InlineParser: p, to: t, bare: priority == bareLinks}
		if c, ok := p.(parser.CloseBlocker); ok { // it resets its state at the end of a block
			inline = append(inline, util.Prioritized(struct {
				*inlineParser
				parser.CloseBlocker
			}{bounded, c}, priority))
			return
		}
		inline = append(inline, util.Prioritized(bounded, priority))
	}
	add(extension.NewTaskCheckBoxParser(), 0)
	add(parser.NewCodeSpanParser(), 100)
	add(parser.NewLinkParser(), 200)
	add(parser.NewAutoLinkParser(), 300)
	add(parser.NewRawHTMLParser(), 400)
	add(parser.NewEmphasisParser(), 500)
	add(extension.NewStrikethroughParser(), 500)
	if strings.Contains(txt, "://") || strings.Contains(txt, "www.") || strings.Contains(txt, "@") {
		add(extension.NewLinkifyParser(), bareLinks) // costs a quarter of the time
	}
	blocks := parser.DefaultBlockParsers()
	transformers := []util.PrioritizedValue{util.Prioritized(cellCode{h}, 0)}
	if notes {
		blocks = append(blocks, util.Prioritized(extension.NewFootnoteBlockParser(), 999))
		add(extension.NewFootnoteParser(), 101)
		transformers = append(transformers, util.Prioritized(extension.NewFootnoteASTTransformer(), 999))
	}
	t.root = parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithParagraphTransformers(
			util.Prioritized(definitions{}, 100),
			util.Prioritized(newTables(&t.bounds), 200),
		),
		parser.WithInlineParsers(inline...),
		parser.WithASTTransformers(transformers...),
	).Parse(haltedReader{text.NewReader(source), h}, parser.WithContext(boundedContext{pc, &t.bounds}))
	return t
}

// bareLinks is the priority of goldmark's parser for bare URLs.
const bareLinks = 999

// inlineParser is one of goldmark's parsers, within bounds. It records the extent of each construct: goldmark's tree
// has only the start of some.
type inlineParser struct {
	parser.InlineParser
	to   *tree
	bare bool
}

func (p *inlineParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	p.to.halt.Check()
	line, before := block.PeekLine()
	p.to.enter(parent)
	if p.to.refuses(line, before.Start, p.to.source) {
		if line[0] != '`' {
			return nil
		}
		n := backquotes(line)
		block.Advance(n)
		return ast.NewTextSegment(before.WithStop(before.Start + n))
	}
	n := p.InlineParser.Parse(parent, &boundedReader{block, &p.to.bounds}, pc)
	p.to.spend(line, before.Start, n)
	if n != nil {
		_, after := block.Position()
		p.to.record(n, Span{before.Start, after.Start}, p.bare)
	}
	return n
}

// record records an inline node with extent s.
func (t *tree) record(n ast.Node, s Span, bare bool) {
	for s.End > s.Start && IsSpace(t.source[min(s.End, len(t.source))-1]) {
		s.End--
	}
	kind := otherSolid
	switch n := n.(type) {
	case *ast.Link, *ast.Image:
		s.Start = n.Pos()
	case *ast.CodeSpan:
		kind = CodeSolid
	case *ast.AutoLink:
		if bare {
			kind = BareSolid
			s.Start = s.End - len(n.Label(t.source))
		}
	case *ast.RawHTML:
		name, closing := tagName(t.text[s.Start:s.End]) // elements of noProse are solid with their content
		switch {
		case closing && name != "" && name == t.tag:
			t.solids = append(t.solids, Solid{Span{t.tagAt, s.End}, CodeSolid})
			t.tag = ""
		case !closing && t.tag == "" && noProse[name]:
			t.tag, t.tagAt = name, s.Start
		}
	case *east.FootnoteLink:
	case *east.TaskCheckBox:
		t.boxes = append(t.boxes, s)
		return
	default:
		return
	}
	if 0 <= s.Start && s.Start < s.End {
		t.at[n] = s
		t.solids = append(t.solids, Solid{s, kind})
	}
}

// noProse are the HTML elements whose content is not prose.
var noProse = map[string]bool{
	"a": true, "button": true, "code": true, "kbd": true, "math": true, "pre": true, "samp": true, "script": true,
	"style": true, "svg": true, "textarea": true, "title": true,
}

// tagName returns the name of the HTML tag at the start of s.
func tagName(s string) (name string, closing bool) {
	name, closing = strings.CutPrefix(strings.TrimPrefix(s, "<"), "/")
	end := strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 || !isAlnum(byte(r)) })
	return strings.ToLower(name[:max(0, end)]), closing
}

// extent returns the extent of the inline node n, including delimiters.
func (t *tree) extent(n ast.Node) (Span, bool) {
	if s, ok := t.at[n]; ok {
		return s, true
	}
	level := 1
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
	first, ok1 := t.extent(n.FirstChild())
	last, ok2 := t.extent(n.LastChild())
	if !ok1 || !ok2 {
		return Span{}, false
	}
	s := Span{first.Start, last.End}
	if n.Kind() == east.KindStrikethrough &&
		strings.HasSuffix(t.text[:s.Start], "~~") && strings.HasPrefix(t.text[s.End:], "~~") {
		level = 2
	}
	s = Span{s.Start - level, s.End + level}
	if s.Start < 0 || s.End > len(t.text) || !IsDelimiter(t.text[s.End-1]) {
		return Span{}, false
	}
	t.at[n] = s
	return s, true
}

// treeReader converts a tree to a [Document].
type treeReader struct {
	*Document
	*tree
	raws  []Span  // code and HTML blocks at any depth
	found []Solid // by scan
	// where the run of characters ends that scan last took for a URL
	runEnd int
}

// top adds a child of the document.
func (b *treeReader) top(n ast.Node) {
	last := 0
	if len(b.Blocks) > 0 {
		last = b.Blocks[len(b.Blocks)-1].Start
	}
	pos := min(max(startOf(n), last), len(b.source))
	start := strings.LastIndexByte(b.Text[:pos], '\n') + 1
	blk := Block{Start: max(start, last), Raw: n.IsRaw(), FirstRaw: -1, node: n}
	if blk.Raw && n.NextSibling() == nil { // definitions cannot follow an unterminated block
		blk.Closer = closerOf(n, b.Text[blk.Start:])
	}
	b.Blocks = append(b.Blocks, blk)
}

// measure sets End, Filled and Last of all blocks. It finds each of them once, however many citations end there.
func (b *treeReader) measure() {
	end, lines := len(b.Text), len(b.Lines)
	for i := len(b.Blocks) - 1; i >= 0; i-- {
		blk := &b.Blocks[i]
		blk.End = blk.Start + len(strings.TrimRight(b.Text[blk.Start:end], " \t\r\n\v\f"))
		before := b.LinesBefore(blk.Start)
		if blk.Filled = -1; blk.Raw || blk.FirstRaw >= 0 || before < lines {
			blk.Filled = i
		}
		lines = before
		if blk.Last = i; i+1 < len(b.Blocks) && b.Blocks[i+1].Closer == "" {
			gap := strings.TrimRight(b.Text[blk.End:end], " \t\r")
			if !strings.HasSuffix(gap, "\n\n") && !strings.HasSuffix(b.Text[blk.End:end], "\n\r\n") {
				blk.Last = b.Blocks[i+1].Last
			}
		}
		end = blk.Start
	}
	for i := 1; i < len(b.Blocks); i++ {
		if b.Blocks[i].Filled < 0 {
			b.Blocks[i].Filled = b.Blocks[i-1].Filled
		}
	}
}

// startOf returns where a block starts, or a negative number if goldmark does not know.
func startOf(n ast.Node) int {
	pos := n.Pos()
	if n.Kind() == east.KindTable && n.FirstChild() != nil {
		pos = n.FirstChild().Pos() // a table made from the end of a paragraph has the paragraph's position
	}
	if l := n.Lines(); pos < 0 && l != nil && l.Len() > 0 {
		pos = l.At(0).Start
	}
	return pos
}

// closerOf returns what closes n, the last block of a text, if the text ends inside it. txt is the text of n.
func closerOf(n ast.Node, txt string) string {
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		var f Fence
		for line := range strings.Lines(strings.TrimRight(txt, " \t\r\n")) {
			indent := len(line) - len(strings.TrimLeft(line, " "))
			if indent < 4 && (!f.Open() || strings.IndexByte(">\t", line[indent]) < 0) {
				f.Line(line)
			}
		}
		if f.Open() {
			return "\n" + f.run
		}
	case *ast.HTMLBlock:
		closer := [...]string{
			ast.HTMLBlockType1: "</pre></script></style></textarea>", ast.HTMLBlockType2: "-->",
			ast.HTMLBlockType3: "?>", ast.HTMLBlockType4: ">", ast.HTMLBlockType5: "]]>",
			ast.HTMLBlockType6: "", ast.HTMLBlockType7: "", // a blank line closes them
		}[n.HTMLBlockType]
		closed := strings.Contains(txt, closer)
		if n.HTMLBlockType == ast.HTMLBlockType1 {
			i := strings.LastIndex(txt, "</")
			closed = i >= 0 && (n.HasClosure() || strings.ContainsRune(txt[i:], '>'))
		}
		if closer != "" && !closed {
			return "\n" + closer
		}
	}
	return ""
}

// walk collects the content lines, the raw blocks and the phrases below n.
func (b *treeReader) walk(n ast.Node, inPhrase bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.halt.Check()
		if c.Type() == ast.TypeInline {
			if _, solid := b.at[c]; solid {
				continue
			}
			s, ok := b.extent(c)
			phrase := ok && c.FirstChild() != nil
			if phrase && !inPhrase {
				b.Phrases = append(b.Phrases, s)
			}
			b.walk(c, inPhrase || phrase)
			continue
		}
		l := c.Lines()
		switch {
		case c.Kind() == ast.KindLinkReferenceDefinition:
		case c.IsRaw():
			b.raw(c, l)
		case l != nil:
			for i := range l.Len() {
				b.line(Span{l.At(i).Start, l.At(i).Stop})
			}
		}
		b.walk(c, false)
	}
}

// raw adds a code or HTML block.
func (b *treeReader) raw(n ast.Node, l *text.Segments) {
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
	if i := b.BlocksBefore(s.Start); i > 0 && (b.Blocks[i-1].FirstRaw < 0 || s.Start < b.Blocks[i-1].FirstRaw) {
		b.Blocks[i-1].FirstRaw = s.Start
	}
}

// line adds a line of inline content.
func (b *treeReader) line(s Span) {
	s = b.trim(s)
	if EndsInEscape(b.Text[s.Start:s.End]) {
		s.End-- // a hard break, or a backslash that would escape a character added after it
	}
	i, _ := slices.BinarySearchFunc(b.boxes, s.Start, func(box Span, at int) int { return box.Start - at })
	for ; i < len(b.boxes) && b.boxes[i].Start < s.End; i++ {
		s.Start = max(s.Start, min(s.End, b.boxes[i].End))
	}
	content := b.Text[s.Start:s.End]
	if i := strings.Index(content, "]:"); i > 2 && strings.HasPrefix(content, "[^") &&
		!strings.ContainsAny(content[2:i], "[] ") {
		s.Start += i + 2 // the label of a footnote
	}
	s = b.trim(s)
	content = b.Text[s.Start:s.End]
	// If something followed, a lone * would become a list, and a lone [a]: a definition.
	if strings.Trim(content, "*_~") != "" && (content[0] != '[' || !strings.HasSuffix(content, "]:")) {
		b.Lines = append(b.Lines, s)
	}
}

// trim returns s without the white space at its ends.
func (d *Document) trim(s Span) Span {
	for s.End > s.Start && IsSpace(d.Text[s.End-1]) {
		s.End--
	}
	for s.Start < s.End && IsSpace(d.Text[s.Start]) {
		s.Start++
	}
	return s
}

// outermost sorts solids, drops nested ones and merges overlapping ones.
func outermost(all []Solid) []Solid {
	slices.SortFunc(all, func(a, b Solid) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	out := all[:0]
	for _, s := range all {
		if n := len(out); n > 0 && s.Start < out[n-1].End {
			if s.End > out[n-1].End {
				out[n-1].End, out[n-1].Kind = s.End, otherSolid
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// scan finds what chat interfaces treat as solid but CommonMark does not: math, footnote marks, and URLs that GFM does
// not link because of their form or place.
func (b *treeReader) scan() {
	raw, held := 0, 0 // indexes of the first raw block and solid that end after at
	for at := 0; ; {
		n := strings.IndexAny(b.Text[at:], "\\$[:@")
		if n < 0 {
			break
		}
		at += n
		b.halt.Check()
		for ; raw < len(b.raws) && b.raws[raw].End <= at; raw++ {
		}
		for ; held < len(b.Solids) && b.Solids[held].End <= at; held++ {
		}
		s, kind := Span{at, at}, otherSolid
		rest := b.Text[at:]
		inRaw := raw < len(b.raws) && b.raws[raw].Start <= at
		inSolid := held < len(b.Solids) && b.Solids[held].Start <= at
		switch {
		case inRaw:
			at = b.raws[raw].End
			continue
		case inSolid:
			at = b.Solids[held].End
			continue
		case rest[0] == '\\' || rest[0] == '$':
			n, _ = math(rest, true)
			one := rest[0] == '$' && !strings.HasPrefix(rest, "$$")
			if raw < len(b.raws) && b.raws[raw].Start < at+n ||
				one && held < len(b.Solids) && b.Solids[held].Start < at+n {
				n = 0
			}
			if s.End += n; n == 0 && !one {
				at = min(at+2, len(b.Text)) // an escape, or signs that open nothing
				continue
			}
			kind = MathSolid
		case strings.HasPrefix(rest, "[^"):
			s.End += b.footnoteLen(at)
		case strings.HasPrefix(rest, "://"):
			s, kind = b.address(at), BareSolid
		case rest[0] == '@':
			s, kind = b.mailbox(at), BareSolid
		}
		if s.Start < s.End {
			b.found = append(b.found, Solid{s, kind})
		}
		at = max(at+1, s.End)
	}
	for at := 0; ; {
		n := strings.Index(b.Text[at:], "www.")
		if n < 0 {
			return
		}
		at += n
		end := at
		for end < len(b.Text) && b.Text[end] > ' ' && b.Text[end] < 0x7F &&
			strings.IndexByte("<>\"`|*()[]", b.Text[end]) < 0 {
			end++
		}
		host := strings.TrimRight(b.Text[at:end], ".,;:!?'_~")
		b.found = append(b.found, Solid{Span{at, at + len(host)}, BareSolid})
		at = end
	}
}

// footnoteLen returns the length of the footnote mark at at, including the colon if it starts a definition, or 0.
func (b *treeReader) footnoteLen(at int) int {
	rest := b.Text[at:]
	n := strings.IndexAny(rest[1:], "[]\n") + 2
	if n < 4 || rest[n-1] != ']' {
		return 0
	}
	line := b.Text[max(0, at-8):at]
	if strings.HasPrefix(rest[n:], ":") && strings.Trim(line[strings.LastIndexByte(line, '\n')+1:], " >") == "" {
		n++
	}
	return n
}

// address returns the extent of the URL whose "://" is at at. It ends where the run of characters does that URLs may
// have.
func (b *treeReader) address(at int) Span {
	s := Span{at, at}
	for s.Start > 0 && at-s.Start < 16 && isAlnum(b.Text[s.Start-1]) {
		s.Start--
	}
	end := max(at+len("://"), b.runEnd)
	for end < len(b.Text) && b.Text[end] > ' ' && b.Text[end] < 0x7F && strings.IndexByte("<>\"`|*", b.Text[end]) < 0 {
		end++
	}
	b.runEnd = end
	url := strings.TrimRight(b.Text[at:end], ".,;:!?'_~)]")
	if s.Start == at || len(url) <= len("://") {
		return Span{at, at}
	}
	return Span{s.Start, at + len(url)}
}

// mailbox returns the extent of the mail address whose @ is at at.
func (b *treeReader) mailbox(at int) Span {
	start, end := at, at+1
	for start > 0 && at-start < 64 &&
		(isAlnum(b.Text[start-1]) || strings.IndexByte("._+-!#%&'/=?", b.Text[start-1]) >= 0) {
		start--
	}
	for end < len(b.Text) && (isAlnum(b.Text[end]) || strings.IndexByte("._-", b.Text[end]) >= 0) {
		end++
	}
	host := strings.TrimRight(b.Text[at+1:end], ".")
	if start == at || !strings.Contains(host, ".") {
		return Span{at, at}
	}
	return Span{start, at + 1 + len(host)}
}

// Leaf is a block that contains no other blocks.
type Leaf struct {
	Span  // from its first character to its last; exact for ParagraphLeaf only
	Kind  LeafKind
	Opens bool // the first leaf of a list item
}

// LeafKind is the kind of a [Leaf].
type LeafKind uint8

// The kinds of leaves.
const (
	OtherLeaf     LeafKind = iota // a heading, a rule, HTML
	ParagraphLeaf                 // also the text of a list item
	TableLeaf
	CodeLeaf
)

// Leaves returns the leaves of the document, at any depth, in order.
func (d *Document) Leaves() []Leaf {
	var out []Leaf
	opens := false
	// The only possible error is that of the function, which returns none.
	_ = ast.Walk(d.tree.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		leaf := Leaf{Opens: opens}
		switch {
		case n.Kind() == ast.KindListItem:
			opens = entering
			return ast.WalkContinue, nil
		case !entering || n.Kind() == ast.KindLinkReferenceDefinition:
			return ast.WalkContinue, nil
		case n.Kind() == ast.KindParagraph, n.Kind() == ast.KindTextBlock:
			leaf.Kind = ParagraphLeaf
		case n.Kind() == east.KindTable:
			leaf.Kind = TableLeaf
		case n.Kind() == ast.KindCodeBlock, n.Kind() == ast.KindFencedCodeBlock:
			leaf.Kind = CodeLeaf
		case n.HasChildren() && n.FirstChild().Type() == ast.TypeBlock:
			return ast.WalkContinue, nil
		case n == d.tree.root:
			return ast.WalkStop, nil
		}
		opens = false
		last := 0
		if len(out) > 0 {
			last = out[len(out)-1].End
		}
		leaf.Start = max(last, startOf(n))
		leaf.End = leaf.Start
		if leaf.Kind == TableLeaf && n.LastChild() != nil && n.LastChild().LastChild() != nil {
			n = n.LastChild().LastChild() // only cells have positions
		}
		if l := n.Lines(); l != nil && l.Len() > 0 {
			leaf.End = max(leaf.Start, l.At(l.Len()-1).Stop)
		}
		if leaf.Kind == ParagraphLeaf {
			leaf.Span = d.trim(leaf.Span)
		}
		out = append(out, leaf)
		return ast.WalkSkipChildren, nil
	})
	return out
}
