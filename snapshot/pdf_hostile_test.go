package snapshot_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/snapshot"
)

// hostile is a file that was made to keep a reader busy for ever, or to fill its memory.
type hostile struct{ name, pdf string }

// withObject returns a document of one page that has another object, number 6, and what the page's resources say of it.
func withObject(font, content, resources, object string) string {
	file := strings.Replace(onePage(font, content), "/Font<<", resources+"/Font<<", 1)
	return strings.Replace(file, "xref\n", "6 0 obj\n"+object+"\nendobj\nxref\n", 1)
}

// Those that have little in them and say it often.
func hostileByReference() []hostile {
	var forms strings.Builder
	for i := range 10 {
		fmt.Fprintf(&forms, "/X%d 6 0 R", i)
	}
	calls := strings.Repeat("/X0 Do /X1 Do /X2 Do /X3 Do /X4 Do ", 20)
	xobjects := "/XObject<<" + forms.String() + ">>"
	form := func(content string) string { return stream("/Subtype/Form/Filter/FlateDecode", deflated(content)) }
	again := stream("", strings.Repeat("/X0 Do ", 20_000))
	show := stream("", "BT /F1 10 Tf "+strings.Repeat("(abcdefgh) Tj ", 20_000)+"ET")
	fonts := stream("", "BT "+strings.Repeat("/F1 10 Tf ", 20_000)+"(ab) Tj ET")
	ones := "[" + strings.Repeat("1 ", 1<<16) + "]"
	kids := strings.Repeat("<</Type/Pages/Kids 6 0 R>>", 20_000)
	inline := func(font string) string { // read again each time it is chosen
		return strings.Replace(withObject("null", fonts, "", ones), "/F1 5 0 R", "/F1 "+font, 1)
	}
	return []hostile{
		{"forms in forms", withObject(helvetica, stream("", calls), xobjects, stream("/Subtype/Form/Resources<<"+xobjects+">>", calls))},
		{"large forms in forms", withObject(helvetica, stream("", calls), xobjects, form(strings.Repeat(" ", 64<<20-100)+calls))},
		{"a form that is a comment", withObject(helvetica, again, xobjects, stream("/Subtype/Form", "%"+strings.Repeat("a", 1<<22)))},
		{"a form that is a string", withObject(helvetica, again, xobjects, stream("/Subtype/Form", "("+strings.Repeat("a", 1<<22)))},
		{"a form that is an image", withObject(helvetica, again, xobjects, stream("/Subtype/Form", "BI"+strings.Repeat("EI", 1<<21)))},
		{"a form that unpacks to nothing", withObject(helvetica, again, xobjects, stream("/Subtype/Form/Filter/FlateDecode", emptyBlocks(1<<18)))},
		{"a form of many lines", withObject(helvetica, again, xobjects, form("BT /F1 10 Tf "+strings.Repeat("(a) Tj 99 0 Td ", 1<<16)))},
		{"text said apart", withObject(helvetica, stream("", "BT /F1 10 Tf "+strings.Repeat("/Span /P BDC (a) Tj EMC ", 400)+"ET"),
			"/Properties<</P 6 0 R>>", "<</ActualText("+strings.Repeat("word ", 1<<20/5)+")>>")},
		{"a glyph that says much", withObject("<</Type/Font/Subtype/Type1/ToUnicode 6 0 R>>", show, "",
			stream("", "beginbfrange <00> <ff> <"+strings.Repeat("0061", 1<<18)+"> endbfrange"))},
		{"widths by reference", withObject("<</Type/Font/Subtype/Type0/DescendantFonts[<</W["+strings.Repeat("0 6 0 R ", 8000)+"]>>]>>", show, "", ones)},
		{"wide ranges of widths", onePage("<</Type/Font/Subtype/Type0/DescendantFonts[<</W["+strings.Repeat("0 999999 1 ", 2000)+"]>>]>>", show)},
		{"widths read again", inline("<</Type/Font/Subtype/Type1/Widths 6 0 R>>")},
		{"differences read again", inline("<</Type/Font/Subtype/Type1/Encoding<</Differences 6 0 R>>>>")},
		{"pages with the same pages", withObject(helvetica, "null", "", "["+strings.Repeat("2 0 R ", 1<<16)+"]") + "9 0 obj<</Kids[" + kids + "]>>endobj 1 0 obj<</Pages 9 0 R>>endobj"},
		{"objects in one place", packedObjects(400, "("+strings.Repeat("a", 1<<21))},
		{"arrays in one place", packedObjects(400, strings.Repeat("[1 ", 1<<20))},
	}
}

// packedObjects returns a file with a stream of n objects that all begin in one place.
func packedObjects(n int, object string) string {
	var head strings.Builder
	for i := range n {
		fmt.Fprintf(&head, "%d 0 ", i+10)
	}
	return pdf(stream(fmt.Sprintf("/Type/ObjStm/Filter/FlateDecode/N %d/First %d", n, head.Len()), deflated(head.String()+object)))
}

// emptyBlocks returns packed data that says nothing in n bytes.
func emptyBlocks(n int) string {
	return "\x78\x9c" + strings.Repeat("\x00\x00\x00\xff\xff", n/5)
}

// Those that are malformed, or pack much into little.
func hostileByForm() []hostile {
	bomb := deflated(deflated(strings.Repeat("\x00", 8<<20)))
	packed := func(params, content string) string {
		return onePage(helvetica, stream("/Filter/FlateDecode"+params, deflated(content)))
	}
	return []hostile{
		{"references in a ring", pdf("<</Type/Catalog/Pages 2 0 R>>", "3 0 R", "2 0 R")},
		{"pages in a ring", pdf("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 3 0 R]>>", "<</Type/Pages/Kids[2 0 R 3 0 R]>>")},
		{"a length in a ring", pdf("<</Type/Catalog/Pages 2 0 R>>", "<</Length 2 0 R>>stream\nx\nendstream")},
		{"unfinished hexadecimal", "%PDF-1.4\n1 0 obj <" + strings.Repeat("0", 1<<16)},
		{"unfinished strings", "%PDF-1.4\n" + strings.Repeat("1 0 obj (", 1<<14)},
		{"unfinished trailers", "%PDF-1.4\n" + strings.Repeat("1 0 obj 1 trailer(", 1<<15)},
		{"unfinished references", "%PDF-1.4\n" + strings.Repeat("1 0 obj 1 (", 1<<16)},
		{"deep arrays", "%PDF-1.4\n1 0 obj " + strings.Repeat("[", 1<<20)},
		{"deep dictionaries", "%PDF-1.4\n1 0 obj " + strings.Repeat("<</a ", 1<<18)},
		{"streams without an end", "%PDF-1.4\n" + strings.Repeat("1 0 obj<<>>stream\n", 1<<16)},
		{"huge numbers", onePage(helvetica, stream("", "BT /F1 1e300 Tf 1e300 0 0 1e300 1e300 1e300 Tm (x) Tj 99999999999999999999 0 Td (y) Tj ET"))},
		{"object numbers", "%PDF-1.4\n999999999 0 obj<<>>endobj 99999999999999999999 0 obj<<>>endobj"},
		{"a bomb", onePage(helvetica, stream("/Filter[/FlateDecode/FlateDecode]", bomb))},
		{"operands without an operator", packed("", strings.Repeat("[1 1 1] ", 1<<22))},
		{"glyphs without an end", packed("", "BT /F1 10 Tf "+strings.Repeat("("+strings.Repeat("a", 20<<20)+") Tj ", 3))},
		{"base 85", strings.Replace(packed("", strings.Repeat("z", 60<<20)), "/FlateDecode", "[/FlateDecode/ASCII85Decode]", 1)},
		{"a row wider than the data", packed("/DecodeParms<</Predictor 15/Columns 1048576/Colors 16/BitsPerComponent 64>>", "x")},
	}
}

// What reading any file may take: more than the limits say, because of what the collector has not yet found to be free, and of machines
// that are slow.
const (
	maxHostileBytes = 768 << 20 // in use at a time
	maxHostileTime  = time.Minute
)

func TestPDFHostile(t *testing.T) {
	for _, test := range append(hostileByForm(), hostileByReference()...) {
		began := time.Now()
		var err error
		peak := peakOf(func() {
			_, err = snapshot.Extract([]byte(test.pdf), &snapshot.TextOptions{Limits: snapshot.Limits{Time: 300 * time.Millisecond}})
		})
		took := time.Since(began)
		t.Logf("%s: %d bytes, %v, %d MB, %v", test.name, len(test.pdf), took, peak>>20, err)
		if took > maxHostileTime || peak > maxHostileBytes {
			t.Errorf("%s: took %v and %d MB (%v)", test.name, took, peak>>20, err)
		}
	}
}

// A file that holds more than its memory allows is refused, or read as far as that goes, and says so.
func TestPDFMemory(t *testing.T) {
	patient := &snapshot.TextOptions{Limits: snapshot.Limits{Time: 5 * time.Minute}}
	packed := packedObjects(400, "("+strings.Repeat("a", 1<<21))
	if _, err := snapshot.Extract([]byte(packed), patient); !errors.Is(err, snapshot.ErrTooLarge) {
		t.Errorf("many objects: %v, want ErrTooLarge", err)
	}
	page := withObject(helvetica, stream("", "BT /F1 10 Tf "+strings.Repeat("/Span /P BDC (a) Tj EMC ", 100)+"ET"),
		"/Properties<</P 6 0 R>>", "<</ActualText("+strings.Repeat("word ", 1<<20/5)+")>>")
	text, err := snapshot.Extract([]byte(page), patient)
	if err != nil || len(text.Issues) == 0 || text.Issues[0].Code != snapshot.IssuePagesLeftOut || len(text.Content) < 1<<20 || len(text.Content) > 64<<20 {
		t.Errorf("much text: %d bytes, %v, %v", len(text.Content), text.Issues, err)
	}
}

// peakOf returns how many bytes more were in use while do ran than before.
func peakOf(do func()) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, peak := m.HeapAlloc, m.HeapAlloc
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
		select {
		case <-tick.C:
		case <-done:
			return peak - before
		}
	}
}
