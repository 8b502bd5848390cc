package snapshot

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"

	"github.com/ibidhq/ibid"
)

// Bounds of a PDF. Work is counted in tokens, glyphs and so many bytes that are read or written.
const (
	maxPDFWork    = 100_000_000
	maxPDFObjects = 2_000_000
	maxPDFMemory  = 256 << 20 // bytes that its objects, its fonts and its text take, about
	bytesPerWork  = 16
	clockEvery    = 1 << 14 // work between two looks at the clock
)

// pdfFile is a PDF, read without its cross-reference table: all objects are found by going through the file, and of two
// with one number the later counts. So a damaged table, or one that was made to mislead, does nothing.
type pdfFile struct {
	b        []byte
	objects  map[int]any
	trailer  pdfDict
	work     int
	most     int // work
	held     int // bytes of memory
	deadline time.Time
	// why reading ends before its time: the deadline has passed, or it takes too much work or memory
	stop     error
	fonts    map[uintptr]*pdfFont // by their dictionaries, which the objects hold
	names    map[string]string    // of glyphs, to what they say
	standard [256]string
	unread   int // glyphs that nobody says what they mean
}

// readPDF reads the text layer of a PDF.
func readPDF(t *Text, b []byte, o *TextOptions) error {
	f := &pdfFile{
		b: b, objects: map[int]any{}, trailer: pdfDict{}, most: maxPDFWork,
		deadline: time.Now().Add(cmp.Or(o.Time, MaxTime)), fonts: map[uintptr]*pdfFont{},
	}
	if err := f.scan(); err != nil {
		return err
	}
	if f.trailer["Encrypt"] != nil {
		return fmt.Errorf("%w: open it with its password and save it without", ErrEncrypted)
	}
	pages := f.pages()
	if len(pages) == 0 {
		return cmp.Or(f.stop, fmt.Errorf("%w: it has no pages", ErrDamaged))
	}
	t.Pages = len(pages)
	f.facts(t)
	l := layout{hold: f.hold}
	most := cmp.Or(o.Pages, MaxPages)
	read := 0
	for i, page := range pages[:min(len(pages), most)] {
		if f.stop != nil {
			break
		}
		l.page(i + 1)
		f.readPage(page, &l)
		if f.unread > 0 && f.unread*2 > l.glyphs {
			t.issue(IssuePageUnreadable, fmt.Sprintf("page %d: its fonts do not say what their glyphs mean", i+1))
		}
		f.unread, l.glyphs = 0, 0
		read++
	}
	switch {
	case f.stop != nil:
		t.issue(IssuePagesLeftOut, fmt.Sprintf("reading ended on page %d of %d: %v", read, len(pages), f.stop))
	case read < len(pages):
		t.issue(IssuePagesLeftOut, fmt.Sprintf("%d of %d pages were read", read, len(pages)))
	}
	s := l.finish()
	s.finish(t)
	if t.Content == "" {
		t.issue(IssueNoTextLayer, "its pages are pictures, or empty; recognise its text (OCR) first")
	}
	t.titleFromHeading()
	return nil
}

func (t *Text) issue(code, detail string) {
	if len(t.Issues) < maxLineIssues {
		t.Issues = append(t.Issues, ibid.Issue{Code: code, Detail: detail})
	}
}

// titleFromHeading takes the first heading for the title of a document that has none, or one that says how it was made.
func (t *Text) titleFromHeading() {
	low := strings.ToLower(t.Title)
	if low != "" && !strings.HasPrefix(low, "microsoft word") && !strings.HasPrefix(low, "untitled") &&
		low != "about:blank" {
		return
	}
	t.Title = ""
	for _, b := range t.Blocks {
		if b.Kind == Heading && b.Page == 1 {
			first(&t.Title, t.Content[b.Span.Start:b.Span.End])
			return
		}
	}
}

// spend counts work, and reports whether there may be more.
func (f *pdfFile) spend(n int) bool {
	before := f.work / clockEvery
	f.work += n
	if f.work > f.most || f.work/clockEvery != before && time.Now().After(f.deadline) {
		f.stop = cmp.Or(f.stop, ErrTimeout)
	}
	return f.stop == nil
}

// hold counts memory, and reports whether there may be more.
func (f *pdfFile) hold(n int) bool {
	f.held += n
	if f.held > maxPDFMemory && f.stop == nil {
		f.stop = fmt.Errorf("%w: it takes more than %d MB of memory", ErrTooLarge, maxPDFMemory>>20)
	}
	return f.stop == nil
}

// scan finds all objects.
func (f *pdfFile) scan() error {
	for pos := 0; pos < len(f.b); {
		i := bytes.Index(f.b[pos:], []byte("obj"))
		tail := f.b[pos:]
		if i >= 0 {
			tail = f.b[pos : pos+i]
		}
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
		l := pdfLexer{b: f.b, pos: pos, spend: f.spend}
		x := f.readObject(&l)
		pos = l.pos
		f.put(num, x, l.took)
		if len(f.objects) > maxPDFObjects {
			return fmt.Errorf("%w: it has more than %d objects", ErrTooLarge, maxPDFObjects)
		}
		if f.stop != nil {
			return f.stop
		}
	}
	return nil
}

// addTrailer reads a trailer's dictionary. What a later one says counts.
func (f *pdfFile) addTrailer(b []byte) {
	l := pdfLexer{b: b, spend: f.spend}
	if d, ok := l.next().(pdfDict); ok {
		f.mergeTrailer(d)
	}
}

func (f *pdfFile) mergeTrailer(d pdfDict) {
	for _, key := range []string{"Root", "Info", "Encrypt"} {
		if d[key] != nil {
			f.trailer[key] = d[key]
		}
	}
}

// numberBefore reads the number of an object backwards: "12 0 " before "obj".
func (f *pdfFile) numberBefore(at int) (int, bool) {
	i := at
	back := func(is func(byte) bool) int {
		start := i
		for i > 0 && at-i < 40 && is(f.b[i-1]) {
			i--
		}
		return start - i
	}
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	back(isPDFSpace)
	if back(digit) == 0 || back(isPDFSpace) == 0 {
		return 0, false
	}
	end := i
	if n := back(digit); n == 0 || n > 9 {
		return 0, false
	}
	num := 0
	for _, c := range f.b[i:end] {
		num = num*10 + int(c-'0')
	}
	return num, true
}

// readObject reads an object of the file.
func (f *pdfFile) readObject(l *pdfLexer) any {
	x := l.value()
	d, ok := x.(pdfDict)
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
	return &pdfStream{d, f.b[start:l.pos:l.pos]}
}

// streamEnd returns where a stream ends: where its length says, if the word for it stands there, else before the next
// such word.
func (f *pdfFile) streamEnd(d pdfDict, start int) int {
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

// put keeps an object that takes so much memory, and those in it if it holds some.
func (f *pdfFile) put(num int, x any, took int) {
	if d, ok := x.(pdfDict); ok && d["Type"] == pdfName("StructElem") {
		return // there are more of these than of all others, and none is looked at
	}
	if !f.hold(took + sizeOfValue) {
		return
	}
	f.objects[num] = x
	s, ok := x.(*pdfStream)
	if !ok {
		return
	}
	switch s.dict["Type"] {
	case pdfName("XRef"):
		f.mergeTrailer(s.dict)
	case pdfName("ObjStm"):
		f.unpackObjects(s)
	}
}

// unpackObjects keeps the objects that a stream holds.
func (f *pdfFile) unpackObjects(s *pdfStream) {
	data := f.decode(s)
	n, _ := f.resolve(s.dict["N"]).(float64)
	first, _ := f.resolve(s.dict["First"]).(float64)
	head := pdfLexer{b: data, spend: f.spend}
	for range min(int(n), len(data)/2) {
		num, ok := head.next().(float64)
		at, ok2 := head.next().(float64)
		place := int(first) + int(at)
		if !ok || !ok2 || place < 0 || place >= len(data) || num < 0 || len(f.objects) > maxPDFObjects {
			return
		}
		l := pdfLexer{b: data, pos: place, spend: f.spend}
		x := l.value()
		if _, isOp := x.(pdfOp); !isOp {
			f.put(int(num), x, l.took)
		}
	}
}

// resolve follows references.
func (f *pdfFile) resolve(x any) any {
	for range 16 {
		ref, ok := x.(pdfRef)
		if !ok {
			return x
		}
		x = f.objects[int(ref)]
	}
	return nil
}

func (f *pdfFile) dict(x any) pdfDict {
	switch x := f.resolve(x).(type) {
	case pdfDict:
		return x
	case *pdfStream:
		return x.dict
	}
	return nil
}

func (f *pdfFile) array(x any) []any {
	a, _ := f.resolve(x).([]any)
	return a
}

// number returns a number; another one if there is none.
func (f *pdfFile) number(x any, otherwise float64) float64 {
	if n, ok := f.resolve(x).(float64); ok {
		return n
	}
	return otherwise
}

// pdfPage is a page and the resources it inherits.
type pdfPage struct {
	dict      pdfDict
	resources pdfDict
}

// pages returns the pages in their order: as the tree of pages says, or, where it is damaged, by their numbers.
func (f *pdfFile) pages() []pdfPage {
	root := f.dict(f.trailer["Root"])
	if root["Pages"] == nil {
		for _, num := range f.numbers() {
			if d := f.dict(pdfRef(num)); d["Type"] == pdfName("Catalog") {
				root = d
			}
		}
	}
	var pages []pdfPage
	seen := map[pdfRef]bool{}
	f.addPages(&pages, seen, root["Pages"], nil, 0)
	if len(pages) > 0 {
		return pages
	}
	for _, num := range f.numbers() {
		if d := f.dict(pdfRef(num)); d["Type"] == pdfName("Page") {
			pages = append(pages, pdfPage{d, f.dict(d["Resources"])})
		}
	}
	return pages
}

func (f *pdfFile) numbers() []int {
	all := make([]int, 0, len(f.objects))
	for num := range f.objects {
		all = append(all, num)
	}
	slices.Sort(all)
	return all
}

func (f *pdfFile) addPages(pages *[]pdfPage, seen map[pdfRef]bool, x any, inherited pdfDict, depth int) {
	if depth > maxPDFDepth || !f.spend(1) || len(*pages) > maxPDFObjects {
		return
	}
	if ref, ok := x.(pdfRef); ok {
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
		if d["Type"] != pdfName("Pages") {
			*pages = append(*pages, pdfPage{d, inherited})
		}
		return
	}
	for _, kid := range kids {
		f.addPages(pages, seen, kid, inherited, depth+1)
	}
}

// facts reads what the document says of itself.
func (f *pdfFile) facts(t *Text) {
	info := f.dict(f.trailer["Info"])
	say := func(key string) string {
		const most = 2 * maxPeople * maxFact
		s, _ := f.resolve(info[key]).(pdfString)
		return pdfText(s[:min(len(s), most)])
	}
	first(&t.Title, say("Title"))
	for who := range strings.FieldsFuncSeq(say("Author"), func(r rune) bool { return r == ';' }) {
		t.Authors = addPerson(t.Authors, who)
	}
	first(&t.PublishedAt, pdfDate(say("CreationDate")))
	root := f.dict(f.trailer["Root"])
	if lang, ok := f.resolve(root["Lang"]).(pdfString); ok {
		first(&t.Language, pdfText(lang))
	}
}

// pdfText returns a text string: UTF-16 or UTF-8 with a mark, else PDFDocEncoding, which is nearly windows-1252.
func pdfText(s pdfString) string {
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

// utf16BE returns UTF-16 as UTF-8.
func utf16BE(s string) string {
	units := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		units = append(units, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return string(utf16.Decode(units))
}
