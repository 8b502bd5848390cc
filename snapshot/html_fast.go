package snapshot

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// fastHTML reads a page without building its tree, which would be nine tenths of the work: tag by tag, with the stack
// of open elements that the HTML standard's parser would have. It gives up, and the parser reads the page, wherever
// that stack alone does not tell where text belongs: formatting elements that are closed in another order than they
// were opened, text in a table outside of its cells, templates, mathematics, frames, what browsers mend, and stacks
// near the parser's limit.
type fastHTML struct {
	htmlWalk

	b       []byte
	pos     int
	stack   []openTag
	tables  []int  // places in stack of table, tbody, tr, td, caption … (see isTablePart)
	skipped int    // the length of stack with the outermost element that is not visible; 0: all are
	phase   phase  // how much of the page's head was read
	strict  bool   // the page has the doctype html
	form    bool   // a form was begun and not ended
	failed  bool   // gave up
	tag     tagged // the tag at hand
}

// openTag is an element that is open.
type openTag struct {
	atom    atom.Atom
	name    string // of an element without an atom
	entered bool   // as a visible block
}

// phase is how much of a page's head was read.
type phase uint8

const (
	beforeDoctype phase = iota
	beforeHead
	afterHead
	inBody
)

// maxFastDepth is how many elements may be open. The parser has a limit of 512, and says what it means.
const maxFastDepth = 400

// fast reads a page. False: it has to be parsed; w has nothing of it then.
func (w *htmlWalk) fast(b []byte) bool {
	if bytes.IndexByte(b, 0) >= 0 {
		return false
	}
	f := fastHTML{b: b}
	f.raw = make([]byte, 0, len(b)/2)
	f.kinds = append(f.kinds, htmlKind{kind: Paragraph})
	for f.pos < len(b) && !f.failed {
		f.next()
	}
	if f.failed {
		return false
	}
	f.body()
	*w = f.htmlWalk
	return true
}

// giveUp leaves the page to the parser.
func (f *fastHTML) giveUp() { f.failed = true }

// next reads the text up to the next markup, and that.
func (f *fastHTML) next() {
	start := f.pos
	at := start
	for {
		i := bytes.IndexByte(f.b[at:], '<')
		if i < 0 {
			f.text(f.b[start:])
			f.pos = len(f.b)
			return
		}
		at += i + 1
		if at == len(f.b) {
			f.giveUp()
			return
		}
		if c := f.b[at]; isLetter(c) || c == '/' || c == '!' || c == '?' {
			break
		}
	}
	if f.text(f.b[start : at-1]); f.failed {
		return
	}
	f.pos = at
	switch c := f.b[at]; {
	case isLetter(c):
		if f.scan() {
			f.startTag()
		}
	case c == '/' && at+1 < len(f.b) && isLetter(f.b[at+1]):
		f.pos++
		if f.scan() {
			f.endTag()
		}
	default:
		f.declaration()
	}
}

// declaration reads what is neither text nor tag.
func (f *fastHTML) declaration() {
	rest := f.b[f.pos:]
	if inside, ok := bytes.CutPrefix(rest, []byte("!--")); ok {
		end := bytes.Index(inside, []byte("-->"))
		if end < 0 || bytes.HasPrefix(inside, []byte(">")) || bytes.HasPrefix(inside, []byte("->")) ||
			bytes.Contains(inside[:end], []byte("--!>")) {
			f.giveUp()
			return
		}
		f.pos += len("!--") + end + len("-->")
		return
	}
	end := bytes.IndexByte(rest, '>')
	if end < 0 {
		f.giveUp()
		return
	}
	f.pos += end + 1
	if f.phase == beforeDoctype && len(rest) > 8 && strings.EqualFold(string(rest[:8]), "!doctype") {
		f.phase = beforeHead
		f.strict = strings.EqualFold(string(bytes.TrimLeft(rest[8:end], " \t\r\n\f")), "html")
	}
}

// text reads text.
func (f *fastHTML) text(b []byte) {
	if len(b) == 0 || f.skipped > 0 && !f.inTable() {
		return
	}
	if f.phase < inBody || f.inTable() {
		if len(bytes.TrimLeft(b, " \t\r\n\f")) == 0 {
			return
		}
		if f.body(); f.inTable() {
			f.giveUp() // it would stand before the table
			return
		}
	}
	for {
		i := bytes.IndexByte(b, '&')
		if i < 0 {
			f.raw = append(f.raw, b...)
			return
		}
		f.raw = append(f.raw, b[:i]...)
		n := i + 1
		for n < len(b) && (isLetter(b[n]) || isDigit(b[n]) || b[n] == '#') {
			n++
		}
		if n < len(b) && b[n] == ';' {
			n++
		}
		f.raw = appendEntity(f.raw, b[i:n])
		b = b[n:]
	}
}

// appendEntity appends what a character reference means.
func appendEntity(out, ref []byte) []byte {
	switch string(ref) {
	case "&amp;":
		return append(out, '&')
	case "&nbsp;":
		return append(out, "\u00a0"...)
	case "&lt;":
		return append(out, '<')
	case "&gt;":
		return append(out, '>')
	case "&quot;":
		return append(out, '"')
	case "&#39;", "&#x27;":
		return append(out, '\'')
	}
	return append(out, html.UnescapeString(string(ref))...)
}

// body begins the body, if it has not begun.
func (f *fastHTML) body() {
	if f.phase == inBody {
		return
	}
	f.phase = inBody
	f.stack = append(f.stack[:0], openTag{atom: atom.Html}, openTag{atom: atom.Body, entered: true})
	f.enterBlock(atom.Body)
}

func (f *fastHTML) enterBlock(a atom.Atom) {
	k := f.kindOf(a)
	f.kinds = append(f.kinds, k)
	f.begin(k.kind, k.level, 0)
}

func (f *fastHTML) leaveBlock() {
	f.kinds = f.kinds[:len(f.kinds)-1]
	k := f.kinds[len(f.kinds)-1]
	f.begin(k.kind, k.level, 0)
}

// push opens the element of the tag at hand.
func (f *fastHTML) push() { f.open(f.tag.atom, f.tag.hidden || isUnseen(f.tag.atom)) }

// open opens an element.
func (f *fastHTML) open(a atom.Atom, unseen bool) {
	o := openTag{atom: a}
	if a == 0 {
		o.name = string(f.tag.lower)
	}
	if f.skipped == 0 && !unseen && isBlock(a) {
		o.entered = true
		f.enterBlock(a)
	}
	f.stack = append(f.stack, o)
	if isTablePart(a) {
		f.tables = append(f.tables, len(f.stack)-1)
	}
	if f.skipped == 0 && unseen {
		f.skipped = len(f.stack)
	}
	if len(f.stack) > maxFastDepth {
		f.giveUp()
	}
}

// void opens and closes the element of the tag at hand.
func (f *fastHTML) void() {
	if f.skipped == 0 && !f.tag.hidden && isBlock(f.tag.atom) {
		f.enterBlock(f.tag.atom)
		f.leaveBlock()
	}
}

// closeTo closes the elements from the n-th on. A formatting element that another closes would be opened again.
func (f *fastHTML) closeTo(n int) {
	for i := len(f.stack) - 1; i > n; i-- {
		if isFormatting(f.stack[i].atom) {
			f.giveUp()
			return
		}
	}
	f.closeCell(n)
}

// closeCell closes the elements from the n-th on, which is a cell or a caption: no formatting element outlives that.
func (f *fastHTML) closeCell(n int) {
	for i := len(f.stack) - 1; i >= n; i-- {
		if f.stack[i].entered {
			f.leaveBlock()
		}
	}
	f.stack = f.stack[:n]
	for len(f.tables) > 0 && f.tables[len(f.tables)-1] >= n {
		f.tables = f.tables[:len(f.tables)-1]
	}
	if f.skipped > n {
		f.skipped = 0
	}
}

func (f *fastHTML) top() atom.Atom { return f.stack[len(f.stack)-1].atom }

// part returns the innermost part of a table that is open; 0: there is none.
func (f *fastHTML) part() atom.Atom {
	if len(f.tables) == 0 {
		return 0
	}
	return f.stack[f.tables[len(f.tables)-1]].atom
}

// inTable reports whether what comes stands in a table and in no cell or caption.
func (f *fastHTML) inTable() bool {
	switch f.part() {
	case 0, atom.Td, atom.Th, atom.Caption:
		return false
	default:
		return true
	}
}

// scope is what ends the search for an open element, beside what always does.
type scope uint8

const (
	anyScope scope = iota
	buttonScope
	itemScope
)

// find returns the place of the innermost open element of a kind, if it is in scope; negative: it is not.
func (f *fastHTML) find(s scope, want func(atom.Atom) bool) int {
	for i, o := range slices.Backward(f.stack) {
		a := o.atom
		if want(a) {
			return i
		}
		switch a {
		case atom.Html, atom.Table, atom.Td, atom.Th, atom.Caption, atom.Select:
			return -1
		case atom.Button:
			if s == buttonScope {
				return -1
			}
		case atom.Ol, atom.Ul:
			if s == itemScope {
				return -1
			}
		default:
		}
	}
	return -1
}

func is(want atom.Atom) func(atom.Atom) bool { return func(a atom.Atom) bool { return a == want } }

// closeP closes a paragraph that is open.
func (f *fastHTML) closeP() {
	if i := f.find(buttonScope, is(atom.P)); i >= 0 {
		f.closeTo(i)
	}
}

// closeImplied closes elements whose end tags may be left out, but for one.
func (f *fastHTML) closeImplied(but atom.Atom) {
	i := len(f.stack)
	for ; i > 0; i-- {
		switch a := f.stack[i-1].atom; a {
		case but:
			f.closeTo(i)
			return
		case atom.Dd, atom.Dt, atom.Li, atom.Optgroup, atom.Option, atom.P, atom.Rb, atom.Rp, atom.Rt, atom.Rtc:
		default:
			f.closeTo(i)
			return
		}
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
