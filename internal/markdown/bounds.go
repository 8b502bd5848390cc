package markdown

import (
	"bytes"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/ibidhq/ibid/internal/halt"
)

// Goldmark's time is quadratic in some shapes of text, and so is the output of some shapes of markdown. Here both are
// bounded, by what a text costs and never by its length: what is over a bound is text, as typed.

// The bounds of one text. What depends on its length is per byte.
const (
	// deepest is the maximum number of quotes and lists that may start on one line, deepestIndent that of columns
	// before one.
	deepest       = 64
	deepestIndent = 2 * deepest
	// Quotes and lists that start on one line, after the second. As many again that stay open in a blank line that
	// follows another one: goldmark keeps a record of each until the outermost ends.
	nestingFloor, nestingPer = 16 << 10, 1.0 / 16
	// Bytes and delimiters that goldmark may read again to find out that they begin nothing.
	workFloor, workPer = 128 << 10, 16
	// Bytes of the destinations and titles that reference links may repeat: as in cmark, at least 100 KB, else the
	// length of the text.
	referenceFloor = 100_000
	// Empty cells of tables, most of which nobody typed: rows are filled up to the width of the header.
	cellFloor, cellPer = 20_000, 1.0 / 32
	// Footnotes, and marks that refer to them. Beyond, they are text.
	maxNotes, maxNoteMarks = 500, 1000
)

// bounds are what is left of the bounds while a text is parsed, and what they need to know of the block being parsed.
type bounds struct {
	work       int
	cells      int
	references int
	capped     bool // a reference link remained text

	block      ast.Node            // whose inline content is parsed
	runs       map[int]int         // start of the last run of backquotes in block, by length; nil if not looked for
	brackets   []int               // where the brackets begin that may still become links
	delimiters []*parser.Delimiter // copies of those that may still open emphasis
}

func newBounds(size int) bounds {
	return bounds{
		work: workFloor + workPer*size, cells: cellFloor + int(cellPer*float64(size)),
		references: max(referenceFloor, size),
	}
}

// enter begins a block.
func (b *bounds) enter(block ast.Node) {
	if b.block != block {
		b.block, b.runs, b.brackets, b.delimiters = block, nil, b.brackets[:0], b.delimiters[:0]
	}
}

// refuses reports whether a construct that begins with line at offset at must remain text.
func (b *bounds) refuses(line []byte, at int, source []byte) bool {
	switch line[0] {
	case '[', ']', '!', '<', '*', '_', '~':
		return b.work < 0
	case '`':
		if b.runs == nil {
			b.findRuns(source)
		}
		return b.runs[backquotes(line)] <= at
	}
	return false
}

// backquotes returns the length of the run of backquotes at the start of line.
func backquotes(line []byte) int { return len(line) - len(bytes.TrimLeft(line, "`")) }

// findRuns finds the runs of backquotes in the block: for one that no other of its length follows, goldmark would read
// the rest of the block.
func (b *bounds) findRuns(source []byte) {
	b.runs = map[int]int{}
	for i := range b.block.Lines().Len() {
		s := b.block.Lines().At(i)
		for at := s.Start; at < s.Stop; at++ {
			if source[at] != '`' {
				continue
			}
			start := at
			for at < s.Stop && source[at] == '`' {
				at++
			}
			b.runs[at-start] = start
		}
	}
}

// spend deducts the work for a construct that began with line at offset at. n is nil if there was none.
func (b *bounds) spend(line []byte, at int, n ast.Node) {
	switch d, _ := n.(*parser.Delimiter); {
	case d != nil:
		b.match(d)
	case line[0] == '[' && n != nil, line[0] == '!' && n != nil:
		b.brackets = append(b.brackets, at)
	case line[0] == ']' && len(b.brackets) > 0:
		last := len(b.brackets) - 1
		b.work -= at - b.brackets[last]
		b.brackets = b.brackets[:last]
		if n == nil && len(line) > 1 && line[1] == '(' { // it has read what could have been a destination
			end := bytes.IndexAny(line[2:], " \t\r\n")
			if end < 0 || len(line) > 2 && line[2] == '<' {
				end = len(line)
			}
			b.work -= end
		}
	}
}

// match matches a delimiter with the preceding ones as goldmark does at the end of a block, to find out what that
// costs.
func (b *bounds) match(d *parser.Delimiter) {
	const perDelimiter = 4 // as much work as that many bytes: in a long block each is far from the next in memory
	closer := *d
	for closer.CanClose && closer.Length > 0 {
		i, n := len(b.delimiters)-1, 0
		for ; i >= 0 && n == 0; i-- {
			b.work -= perDelimiter
			if o := b.delimiters[i]; o.CanOpen && o.Processor.CanOpenCloser(o, &closer) {
				n = o.CalcComsumption(&closer)
			}
		}
		if n == 0 {
			break
		}
		opener := b.delimiters[i+1]
		opener.ConsumeCharacters(n)
		closer.ConsumeCharacters(n)
		b.delimiters = b.delimiters[:i+1]
		if opener.Length > 0 {
			b.delimiters = append(b.delimiters, opener)
		}
	}
	if closer.Length > 0 && closer.CanOpen {
		b.delimiters = append(b.delimiters, &closer)
	}
}

// haltedReader is goldmark's reader of a text, whose blocks it reads line by line.
type haltedReader struct {
	text.Reader

	halt *halt.Halt
}

// Value implements [text.Reader]. Tables are read with it.
func (r haltedReader) Value(s text.Segment) []byte {
	r.halt.Check()
	return r.Reader.Value(s)
}

// AdvanceLine implements [text.Reader].
func (r haltedReader) AdvanceLine() {
	r.halt.Check()
	r.Reader.AdvanceLine()
}

// boundedReader is goldmark's reader of a block with the operations that cost too much replaced.
type boundedReader struct {
	text.Reader
	*bounds
}

// Value returns the text of a segment. Goldmark's method looks for its line from the end of the block.
func (r *boundedReader) Value(s text.Segment) []byte {
	lines := r.block.Lines()
	i := max(0, sort.Search(lines.Len(), func(i int) bool { return lines.At(i).Start > s.Start })-1)
	out := make([]byte, 0, s.Stop-s.Start+1)
	for from := s.Start; i < lines.Len(); i++ {
		line := lines.At(i)
		out = line.ConcatPadding(out)
		if to := min(s.Stop, line.Stop); from < to {
			out = append(out, r.Source()[from:to]...)
		}
		if line.Stop > s.Stop {
			break
		}
		if i+1 < lines.Len() {
			from = lines.At(i + 1).Start
		}
	}
	return out
}

// Match matches a tag, whose attributes may extend over the rest of the block.
func (r *boundedReader) Match(tag *regexp.Regexp) bool {
	const perRune = 4 // as much work as that many bytes elsewhere
	line, at := r.Position()
	counter := &runeCounter{Reader: r.Reader}
	match := tag.FindReaderIndex(counter)
	r.SetPosition(line, at)
	if match == nil {
		r.work -= perRune * counter.read
		return false
	}
	r.Advance(match[1])
	return true
}

type runeCounter struct {
	text.Reader
	read int
}

// ReadRune implements [io.RuneReader].
func (r *runeCounter) ReadRune() (rune, int, error) {
	r.read++
	return r.Reader.ReadRune()
}

// boundedContext is goldmark's context, except that references are defined only while their size is within bounds.
type boundedContext struct {
	parser.Context
	*bounds
}

// Reference implements [parser.Context].
func (c boundedContext) Reference(label string) (parser.Reference, bool) {
	ref, ok := c.Context.Reference(label)
	if !ok {
		return ref, false
	}
	if c.references -= len(ref.Destination()) + len(ref.Title()); c.references < 0 {
		c.capped = true
		return nil, false
	}
	return ref, true
}

// CapsReferences reports whether reference links of txt remain text because they would repeat too much.
func CapsReferences(h *halt.Halt, txt string) bool {
	if !strings.Contains(txt, "]:") {
		return false
	}
	longest := 0
	for line := range strings.Lines(txt) {
		longest = max(longest, len(line))
	}
	return longest*strings.Count(txt, "]") > referenceFloor && ParseUntil(h, txt).tree.capped
}

// definitions reads link reference definitions as goldmark does, but of a long paragraph only some lines at a time: its
// time is quadratic in the number of definitions.
type definitions struct{}

// Transform implements [parser.ParagraphTransformer].
func (definitions) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	const most = 128 // lines
	goldmark := parser.LinkReferenceParagraphTransformer
	begins := func(s text.Segment) bool {
		return bytes.HasPrefix(bytes.TrimLeft(reader.Source()[s.Start:s.Stop], " "), []byte("["))
	}
	all := slices.Clone(node.Lines().Sliced(0, node.Lines().Len()))
	if len(all) <= most || !begins(all[0]) {
		goldmark.Transform(node, reader, pc)
		return
	}
	lines := func(some []text.Segment) *text.Segments {
		out := text.NewSegments()
		out.AppendAll(some)
		return out
	}
	parent := node.Parent()
	for from, some := 0, most; ; {
		end := min(len(all), from+some)
		for end < len(all) && !begins(all[end]) { // it may continue a definition
			end++
		}
		part := ast.NewParagraph()
		part.SetLines(lines(all[from:end]))
		parent.InsertBefore(parent, node, part)
		goldmark.Transform(part, reader, pc)
		read := end - from
		if part.Parent() != nil {
			read -= part.Lines().Len()
			parent.RemoveChild(parent, part)
		}
		switch from += read; {
		case from == len(all):
			parent.RemoveChild(parent, node)
			return
		case read > 0:
			some = most
		case end == len(all):
			node.SetLines(lines(all[from:]))
			return
		default:
			some *= 2
		}
	}
}

// tables makes tables of paragraphs as goldmark does, unless they would have too many cells that nobody filled.
type tables struct {
	parser.ParagraphTransformer
	*bounds
}

func newTables(b *bounds) tables { return tables{extension.NewTableParagraphTransformer(), b} }

// Transform implements [parser.ParagraphTransformer].
func (t tables) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	columns, empty := 0, 0
	for i := range node.Lines().Len() {
		line := bytes.TrimSpace(reader.Value(node.Lines().At(i)))
		filled := 0
		for cell := range bytes.SplitSeq(line, []byte("|")) {
			if len(bytes.TrimSpace(cell)) > 0 {
				filled++
			}
		}
		switch {
		case columns > 0:
			empty += max(0, columns-filled)
		case i > 0 && bytes.IndexByte(line, '-') >= 0 && len(bytes.Trim(line, "|:- \t")) == 0:
			columns = filled
		}
	}
	if empty <= t.cells {
		t.cells -= empty
		t.ParagraphTransformer.Transform(node, reader, pc)
	}
}

// cellCode removes the backslash of \| in code in the cells of tables, where it does not end the cell. Goldmark's own
// transformer compares all such cells with each other.
type cellCode struct{ halt *halt.Halt }

// Transform implements [parser.ASTTransformer].
func (t cellCode) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	escaped := []byte(`\|`)
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		t.halt.Check()
		switch {
		case !entering:
		case n.Kind() == ast.KindCodeSpan:
			for p := n.Parent(); p.Type() == ast.TypeInline || p.Kind() == east.KindTableCell; p = p.Parent() {
				if p.Kind() != east.KindTableCell {
					continue
				}
				for c := n.FirstChild(); c != nil; c = c.NextSibling() {
					code, ok := c.(*ast.Text)
					if !ok {
						continue
					}
					s := code.Segment
					if i := bytes.Index(reader.Source()[s.Start:s.Stop], escaped); i >= 0 {
						code.Segment = s.WithStop(s.Start + i)
						n.InsertAfter(n, code, ast.NewRawTextSegment(s.WithStart(s.Start+i+1)))
					}
				}
				break
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
}

// shallow returns txt with what nests too deep turned into text: each line from there on. Offsets do not change.
func shallow(txt string) []byte {
	const some = 2 // marks on one line that are not counted
	left := nestingFloor + int(nestingPer*float64(len(txt)))
	leftBlank := left
	open, blank := 0, false // at most as many quotes and lists are open; the line before is blank
	source := []byte(txt)
	at := 0
	for line := range strings.Lines(txt) {
		if strings.Trim(line, " \t\r\n") == "" {
			if blank {
				leftBlank -= open
			}
			if blank = true; leftBlank < 0 && open > 0 {
				source[at], open = 'x', 0
			}
			at += len(line)
			continue
		}
		marks, columns := 0, 0
		lead := len(line) - len(strings.TrimLeft(line, ">-+*. \t)0123456789"))
		for i := range lead {
			switch c := line[i]; {
			case c == '\t':
				columns += 4
			case c == ' ':
				columns++
			case c == '>', i+1 < len(line) && strings.IndexByte("-+*.)", c) >= 0 && IsSpace(line[i+1]):
				if marks++; marks > some {
					left--
				}
			}
			if marks > deepest || marks > some && left < 0 || marks > 0 && columns > deepestIndent {
				source[at+i] = 'x'
				break
			}
		}
		open, blank = min(open, columns/2)+marks, false
		at += len(line)
	}
	return source
}

// HasFootnotes reports whether txt defines footnotes and uses each of them: goldmark drops unused ones with their
// words. It is false if there are too many: goldmark compares each mark with all footnotes, and a footnote repeats its
// marks.
func HasFootnotes(txt string) bool {
	const begin = "[^"
	defined, used := map[string]bool{}, map[string]int{}
	for line := range strings.SplitSeq(txt, "\n") {
		label, _, ok := strings.Cut(strings.TrimLeft(line, " >\t"), "]:")
		if ok && strings.HasPrefix(label, begin) {
			defined[label[len(begin):]] = true
			used[label[len(begin):]]--
		}
		if len(defined) > maxNotes {
			return false
		}
	}
	if len(defined) == 0 {
		return false
	}
	marks := 0
	for rest := txt; ; {
		i := strings.Index(rest, begin)
		if i < 0 {
			break
		}
		rest = rest[i+len(begin):]
		if label, _, ok := strings.Cut(rest[:min(len(rest), maxLine)], "]"); ok {
			used[label]++
			marks++
		}
	}
	for label := range defined {
		if used[label] < 1 {
			return false
		}
	}
	return marks <= maxNoteMarks
}
