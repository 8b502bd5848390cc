package pdf

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
)

// Bounds of a PDF. Work is what takes about 15 ns on a machine of 2024: all that a loop does is paid with spend.
const (
	maxWork    = 90_000_000
	maxObjects = 1_000_000
	maxMemory  = 96 << 20 // approximate bytes for objects, fonts and text
	clockEvery = 1 << 14  // work between two checks of the deadline
	maxInfo    = 100_000  // bytes of a metadata string
)

// The work of parts that are not counted by their steps.
const (
	bytesPerWork  = 8 // copied or searched
	lexedPerWork  = 2 // bytes of tokens
	workOfToken   = 10
	workOfGlyph   = 10
	workOfClasses = 20 // of a glyph in a line with right-to-left text
	workOfLine    = 40
	workOfStream  = 64
	workOfForm    = 64
)

// The reasons why a document could not be read. Errors of [Read] wrap one of these.
var (
	ErrTooLarge  = errors.New("it is too large")
	ErrEncrypted = errors.New("it is encrypted")
	ErrDamaged   = errors.New("it is damaged")
	ErrTimeout   = errors.New("it takes too long to read")
)

// Document is the text layer of a PDF, and its metadata. It is plain data.
type Document struct {
	Title, Author string
	Created       string // in the date format of PDF: D:20260428100000+02'00'
	Language      string
	Pages         int   // number of pages
	Read          int   // number of pages read
	Unreadable    []int // read pages whose fonts do not map glyphs to text; from 1
	Stopped       error // why reading ended on page Read; nil if it did not
	Paragraphs    []Paragraph
}

// Paragraph is one paragraph of text.
type Paragraph struct {
	Text  string
	Kind  Kind
	Level int // of a heading, from 1
	Page  int // on which it begins, from 1
}

// Kind is the role of a paragraph.
type Kind int

// The kinds of a [Paragraph].
const (
	Plain Kind = iota
	Heading
	Item // of a list
)

// file is a PDF, read without its cross-reference table: see the package documentation.
type file struct {
	b        []byte
	objects  map[int]any
	trailer  dict
	work     int
	held     int // bytes of memory
	scratch  []byte
	deadline time.Time
	// why reading ends early: the deadline has passed, or it takes too much work or memory
	stop   error
	ctx    context.Context       //nolint:containedctx // one call's: Read's
	fonts  map[uintptr]*typeface // by the addresses of their dictionaries, which objects keeps alive
	unread int                   // number of glyphs without a known text
	// decompresses every stream: a new one takes 40 KB
	inflater io.ReadCloser
}

// Read reads the text layer of a PDF, at most maxPages pages, for at most maxTime, and until ctx ends. The error is for
// a file that is not a PDF, is encrypted or takes too much; problems with single pages are reported in the Document.
// After [Isolate] it is read in another process.
func Read(ctx context.Context, b []byte, maxPages int, maxTime time.Duration) (*Document, error) {
	if d, err, ok := readIsolated(ctx, b, maxPages, maxTime); ok {
		return d, err
	}
	return newFile(ctx, b, maxTime).read(maxPages)
}

func newFile(ctx context.Context, b []byte, maxTime time.Duration) *file {
	return &file{
		b: b, objects: map[int]any{}, trailer: dict{}, fonts: map[uintptr]*typeface{},
		ctx: ctx, deadline: time.Now().Add(maxTime),
	}
}

func (f *file) read(maxPages int) (*Document, error) {
	if err := f.scan(); err != nil {
		return nil, err
	}
	if f.trailer["Encrypt"] != nil {
		return nil, fmt.Errorf("%w: open it with its password and save it without", ErrEncrypted)
	}
	pages := f.pages()
	if len(pages) == 0 {
		return nil, cmp.Or(f.stop, fmt.Errorf("%w: it has no pages", ErrDamaged))
	}
	info, root := f.dict(f.trailer["Info"]), f.dict(f.trailer["Root"])
	text := func(x any) string {
		s, _ := f.resolve(x).(byteString)
		return decodeText(s[:min(len(s), maxInfo)])
	}
	d := &Document{
		Title: text(info["Title"]), Author: text(info["Author"]), Created: text(info["CreationDate"]),
		Language: text(root["Lang"]), Pages: len(pages),
	}
	l := layout{hold: f.hold, spend: f.spend}
	for i, page := range pages[:min(len(pages), maxPages)] {
		if !f.spend(1) {
			break
		}
		l.page(i + 1)
		f.readPage(page, &l)
		if f.unread > 0 && f.unread*2 > l.glyphs {
			d.Unreadable = append(d.Unreadable, i+1)
		}
		f.unread, l.glyphs = 0, 0
		d.Read++
	}
	d.Stopped = f.stop // the pages before are read all the same
	d.Paragraphs = l.finish()
	return d, nil
}

// spend counts work, and reports whether it is within the limits.
func (f *file) spend(n int) bool {
	before := f.work / clockEvery
	f.work += n
	switch {
	case f.work > maxWork:
		f.stop = cmp.Or(f.stop, ErrTimeout)
	case f.work/clockEvery == before:
	case f.ctx.Err() != nil:
		f.stop = cmp.Or(f.stop, fmt.Errorf("%w: %w", ErrTimeout, f.ctx.Err()))
	case time.Now().After(f.deadline):
		f.stop = cmp.Or(f.stop, ErrTimeout)
	}
	return f.stop == nil
}

// hold counts memory, and reports whether it is within the limit.
func (f *file) hold(n int) bool {
	f.held += n
	if f.held > maxMemory && f.stop == nil {
		f.stop = fmt.Errorf("%w: it takes more than %d MB of memory", ErrTooLarge, maxMemory>>20)
	}
	return f.stop == nil
}

// scan finds all objects.
func (f *file) scan() error {
	for pos := 0; pos < len(f.b); {
		i := bytes.Index(f.b[pos:], []byte("obj"))
		tail := f.b[pos:]
		if i >= 0 {
			tail = f.b[pos : pos+i]
		}
		f.spend(1 + len(tail)/bytesPerWork)
		if k := bytes.LastIndex(tail, []byte("trailer")); k >= 0 {
			f.addTrailer(tail[k+len("trailer"):])
		}
		if i < 0 {
			break
		}
		at := pos + i
		num, ok := f.numberBefore(at)
		pos = at + len("obj")
		if !ok {
			continue
		}
		l := lexer{b: f.b, pos: pos, spend: f.spend}
		x := f.readObject(&l)
		pos = l.pos
		f.addObject(num, x, l.took)
		if len(f.objects) > maxObjects {
			return fmt.Errorf("%w: it has more than %d objects", ErrTooLarge, maxObjects)
		}
		if f.stop != nil {
			return f.stop
		}
	}
	return nil
}

// addTrailer reads a trailer's dictionary. Later ones take precedence.
func (f *file) addTrailer(b []byte) {
	l := lexer{b: b, spend: f.spend}
	if d, ok := l.next().(dict); ok {
		f.mergeTrailer(d)
	}
}

func (f *file) mergeTrailer(d dict) {
	for _, key := range []string{"Root", "Info", "Encrypt"} { // paid: it is short
		if d[key] != nil {
			f.trailer[key] = d[key]
		}
	}
}

// numberBefore reads the number of an object backwards: "12 0 " before "obj".
func (f *file) numberBefore(at int) (int, bool) {
	i := at
	back := func(is func(byte) bool) int {
		start := i
		for i > 0 && at-i < 40 && is(f.b[i-1]) { // paid: 40 bytes
			i--
		}
		return start - i
	}
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	back(isSpace)
	if back(digit) == 0 || back(isSpace) == 0 {
		return 0, false
	}
	end := i
	if n := back(digit); n == 0 || n > 9 {
		return 0, false
	}
	num := 0
	for _, c := range f.b[i:end] { // paid: nine digits
		num = num*10 + int(c-'0')
	}
	return num, true
}

// readObject reads an object of the file.
func (f *file) readObject(l *lexer) any {
	x := l.value()
	d, ok := x.(dict)
	if !ok {
		return x
	}
	l.space()
	if !bytes.HasPrefix(f.b[l.pos:], []byte("stream")) {
		return d
	}
	start := l.pos + len("stream")
	if start < len(f.b) && f.b[start] == '\r' {
		start++
	}
	if start < len(f.b) && f.b[start] == '\n' {
		start++
	}
	l.pos = f.streamEnd(d, start)
	return &stream{d, f.b[start:l.pos:l.pos]}
}

// streamEnd returns the end of a stream: according to its length, if endstream is there, else before the next
// endstream.
func (f *file) streamEnd(d dict, start int) int {
	const mark = "endstream"
	if n, ok := f.resolve(d["Length"]).(float64); ok && n >= 0 && int(n) <= len(f.b)-start {
		end := start + int(n)
		if at := bytes.Index(f.b[end:min(len(f.b), end+len(mark)+4)], []byte(mark)); at >= 0 {
			return end
		}
	}
	if n := bytes.Index(f.b[start:], []byte(mark)); n >= 0 {
		return start + n
	}
	return len(f.b)
}

// addObject stores an object that takes took bytes of memory, and the objects in it if it is an object stream.
func (f *file) addObject(num int, x any, took int) {
	if d, ok := x.(dict); ok && d["Type"] == nameObject("StructElem") {
		return // these are numerous, and not used
	}
	if !f.hold(took + sizeOfObject) {
		return
	}
	f.objects[num] = x
	s, ok := x.(*stream)
	if !ok {
		return
	}
	switch s.dict["Type"] {
	case nameObject("XRef"):
		f.mergeTrailer(s.dict)
	case nameObject("ObjStm"):
		f.unpackObjects(s)
	}
}

// unpackObjects stores the objects in an object stream.
func (f *file) unpackObjects(s *stream) {
	data := f.decode(s)
	n, _ := f.resolve(s.dict["N"]).(float64)
	first, _ := f.resolve(s.dict["First"]).(float64)
	head := lexer{b: data, spend: f.spend}
	for range min(int(n), len(data)/2) {
		num, ok := head.next().(float64)
		at, ok2 := head.next().(float64)
		place := int(first) + int(at)
		if !ok || !ok2 || place < 0 || place >= len(data) || num < 0 || len(f.objects) > maxObjects {
			return
		}
		l := lexer{b: data, pos: place, spend: f.spend}
		x := l.value()
		if _, isOp := x.(operator); !isOp {
			f.addObject(int(num), x, l.took)
		}
	}
}

// resolve follows references.
func (f *file) resolve(x any) any {
	for range 16 { // paid: it is short
		ref, ok := x.(reference)
		if !ok {
			return x
		}
		x = f.objects[int(ref)]
	}
	return nil
}

func (f *file) dict(x any) dict {
	switch x := f.resolve(x).(type) {
	case dict:
		return x
	case *stream:
		return x.dict
	}
	return nil
}

func (f *file) array(x any) []any {
	a, _ := f.resolve(x).([]any)
	return a
}

// number returns a number, or otherwise if x is not one.
func (f *file) number(x any, otherwise float64) float64 {
	if n, ok := f.resolve(x).(float64); ok {
		return n
	}
	return otherwise
}

// pageNode is a page and the resources it inherits.
type pageNode struct {
	dict      dict
	resources dict
}

// pages returns the pages in order: that of the page tree, or, if it is damaged, that of their numbers.
func (f *file) pages() []pageNode {
	root := f.dict(f.trailer["Root"])
	if root["Pages"] == nil {
		for _, num := range slices.Sorted(maps.Keys(f.objects)) {
			if d := f.dict(reference(num)); f.spend(1) && d["Type"] == nameObject("Catalog") {
				root = d
			}
		}
	}
	var pages []pageNode
	seen := map[reference]bool{}
	f.addPages(&pages, seen, root["Pages"], nil, 0)
	if len(pages) > 0 {
		return pages
	}
	for _, num := range slices.Sorted(maps.Keys(f.objects)) {
		if d := f.dict(reference(num)); f.spend(1) && d["Type"] == nameObject("Page") {
			pages = append(pages, pageNode{d, f.dict(d["Resources"])})
		}
	}
	return pages
}

func (f *file) addPages(pages *[]pageNode, seen map[reference]bool, x any, inherited dict, depth int) {
	if depth > maxDepth || !f.spend(1) || len(*pages) > maxObjects {
		return
	}
	if ref, ok := x.(reference); ok {
		if seen[ref] {
			return
		}
		seen[ref] = true
	}
	d := f.dict(x)
	if d == nil {
		return
	}
	if own := f.dict(d["Resources"]); own != nil {
		inherited = own
	}
	kids := f.array(d["Kids"])
	if kids == nil {
		if d["Type"] != nameObject("Pages") {
			*pages = append(*pages, pageNode{d, inherited})
		}
		return
	}
	for _, kid := range kids {
		f.addPages(pages, seen, kid, inherited, depth+1)
	}
}

// decodeText decodes a text string: UTF-16 or UTF-8 with a byte order mark, else PDFDocEncoding, which is nearly
// windows-1252.
func decodeText(s byteString) string {
	switch {
	case strings.HasPrefix(string(s), "\xfe\xff"):
		return utf16BE(string(s[2:]))
	case strings.HasPrefix(string(s), "\xef\xbb\xbf"):
		return string(s[3:])
	}
	out, err := charmap.Windows1252.NewDecoder().String(string(s))
	if err != nil {
		return ""
	}
	return out
}

// utf16BE converts UTF-16 to UTF-8.
func utf16BE(s string) string {
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 { // paid: s was read
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}
