package snapshot_test

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// pdf returns a file of objects, numbered from 1, with an invalid cross-reference table, which the reader does not
// need.
func pdf(objects ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, object := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	fmt.Fprintf(&b, "xref\n0 1\ntrailer\n<</Size %d/Root 1 0 R>>\nstartxref\n0\n%%%%EOF\n", len(objects)+1)
	return b.String()
}

// stream returns a stream object.
func stream(dict, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", dict, len(data), data)
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s)) // to memory
	_ = w.Close()
	return b.String()
}

// onePage returns a document of one page with the font F1.
func onePage(font, content string) string {
	return pdf(
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1/Resources<</Font<</F1 5 0 R>>>>>>",
		"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>", content, font,
	)
}

const helvetica = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"

func TestPDF(t *testing.T) {
	var packed85 bytes.Buffer
	w := ascii85.NewEncoder(&packed85)
	_, _ = w.Write([]byte("BT /F1 12 Tf (in base 85) Tj ET"))
	_ = w.Close()
	tests := []struct{ name, pdf, want string }{
		{"names of glyphs", onePage("<</Type/Font/Subtype/Type1/Encoding<</Differences[1/ff/fi 65/eacute/uni20AC/u1F9ED/f_l/B.alt]>>>>",
			stream("", "BT /F1 10 Tf (o\\001er, \\002n: ABCDE) Tj ET")), "offer, fin: é€🧭flB"},
		{"deflated", onePage(helvetica, stream("/Filter/FlateDecode", deflated("BT /F1 12 Tf (packed) Tj ET"))), "packed"},
		{"hexadecimal", onePage(helvetica, stream("/Filter[/ASCIIHexDecode]", hex.EncodeToString([]byte("BT /F1 12 Tf (hex) Tj ET"))+">")), "hex"},
		{"base 85", onePage(helvetica, stream("/Filter/A85", packed85.String()+"~>")), "in base 85"},
		{"runs", onePage(helvetica, stream("/Filter/RL", "\x10BT /F1 12 Tf (run\xfes\x05) Tj E\x00T\x80")), "runsss"},
		{"LZW", onePage(helvetica, stream("/Filter/LZW", lzw("BT /F1 12 Tf ("+strings.Repeat("abcabcab ", 300)+") Tj ET"))), strings.TrimSpace(strings.Repeat("abcabcab ", 300))},
		{"a length that is wrong", onePage(helvetica, "<</Length 3>>stream\r\nBT /F1 12 Tf (whole) Tj ET\nendstream"), "whole"},
	}
	for _, row := range testenv.Cases(t, "testdata/pdf_operators.txt", 3) {
		tests = append(tests, struct{ name, pdf, want string }{row[0], onePage(helvetica, stream("", row[1])), row[2]})
	}
	for _, test := range tests {
		text, err := snapshot.Extract([]byte(test.pdf), nil)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		testenv.Equal(t, test.name, test.want, text.Content)
	}
}

// lzw compresses in the PDF variant of LZW.
func lzw(s string) string {
	var out []byte
	bits, held := uint32(0), 0
	put := func(code, width int) {
		bits, held = bits<<width|uint32(code), held+width
		for held >= 8 {
			held -= 8
			out = append(out, byte(bits>>held))
		}
	}
	table, next, width := map[string]int{}, 258, 9
	put(256, width)
	code := func(s string) int {
		if len(s) == 1 {
			return int(s[0])
		}
		return table[s]
	}
	word := s[:1]
	for _, c := range []byte(s[1:]) {
		longer := word + string(c)
		if _, known := table[longer]; known {
			word = longer
			continue
		}
		put(code(word), width)
		table[longer] = next
		if next++; next+1 > 1<<width {
			width++
		}
		if next == 4000 {
			put(256, width)
			table, next, width = map[string]int{}, 258, 9
		}
		word = string(c)
	}
	put(code(word), width)
	put(257, width)
	put(0, 7)
	return string(out)
}

// Fonts with two-byte codes and a map to text, objects in a stream, a title in UTF-16, two pages.
func TestPDFModern(t *testing.T) {
	toUnicode := "1 begincodespacerange <0000> <ffff> endcodespacerange 2 beginbfchar <0001> <00480069> <0002> <D83EDDED> endbfchar " +
		"2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<0058> <0059005A>] endbfrange"
	inside := []string{
		"<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[11 0 R]/ToUnicode 7 0 R>>",
		"<</Type/Font/Subtype/CIDFontType2/DW 500/W[1[900] 16 18 500]>>",
		"<</Title<FEFF005A00FC>/Author(A. One; B. Two)/CreationDate(D:20260428101112+02'00')>>",
	}
	var head, body string
	for i, object := range inside {
		head += fmt.Sprintf("%d %d ", 10+i, len(body))
		body += object + " "
	}
	file := pdf(
		"<</Type/Catalog/Pages 2 0 R/Lang(de)>>", "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
		"<</Type/Page/Parent 2 0 R/Contents[5 0 R 6 0 R]/Resources<</Font<</F 10 0 R>>>>>>",
		"<</Type/Page/Parent 2 0 R/Contents 5 0 R/Resources 9 0 R>>",
		stream("", "BT /F 30 Tf 50 700 Td <00010002> Tj ET"),
		stream("", "BT /F 10 Tf 50 600 Td <001000110012001000110012001000110012001000110012> Tj 0 -12 Td <00200021> Tj ET BT /F 10 Tf 50 560 Td <0010> Tj ET"),
		stream("/Filter/FlateDecode", deflated(toUnicode)),
		stream(fmt.Sprintf("/Type/ObjStm/N 3/First %d/Filter/FlateDecode", len(head)), deflated(head+body)),
		"<</Font<</F 10 0 R>>>>",
	)
	file = strings.Replace(file, "/Root 1 0 R", "/Root 1 0 R/Info 12 0 R", 1)
	text := testenv.Must(snapshot.Extract([]byte(file), nil))(t)
	want := []string{"heading1: Hi🧭", "paragraph: abcabcabcabc XYZ", "paragraph: a", "heading1: Hi🧭"}
	testenv.Equal(t, "blocks", want, blocksOf(text))
	if text.Title != "Zü" || len(text.Authors) != 2 || text.PublishedAt != "2026-04-28" || text.Language != "de" || text.Pages != 2 {
		t.Errorf("facts: %+v", text)
	}
	if text.Profile != snapshot.PDFProfile || text.MediaType != "application/pdf" || text.Blocks[3].Page != 2 {
		t.Errorf("profile %s, type %s, page %d", text.Profile, text.MediaType, text.Blocks[3].Page)
	}
}

// Marked content whose text differs from its glyphs, and forms.
func TestPDFMarkedContent(t *testing.T) {
	file := pdf(
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>>>",
		stream("", "BT /F 10 Tf 50 700 Td /Span<</ActualText(office)>>BDC (o\\001) Tj (ce) Tj EMC ( open) Tj ET /X Do"),
		helvetica,
		stream("/Type/XObject/Subtype/Form/Matrix[1 0 0 1 0 -100]/Resources<</Font<</G 5 0 R>>>>", "BT /G 10 Tf 50 700 Td (in a form) Tj ET"),
	)
	text := testenv.Must(snapshot.Extract([]byte(file), nil))(t)
	testenv.Equal(t, "", []string{"paragraph: office open", "paragraph: in a form"}, blocksOf(text))
}

// A page printed by a browser. Its text is tested in internal/pdf.
func TestPDFOfBrowser(t *testing.T) {
	file := testenv.Must(os.ReadFile("testdata/chromium.pdf"))(t)
	text := testenv.Must(snapshot.Extract(file, nil))(t)
	if text.Title != "Grey herons" || text.Language != "en" || text.Pages != 1 || len(text.Issues) > 0 || len(text.Blocks) != 6 {
		t.Errorf("%+v", text)
	}
}

func TestPDFIssues(t *testing.T) {
	page := onePage(helvetica, stream("", "BT /F1 12 Tf (x) Tj ET"))
	for _, test := range []struct {
		name, pdf string
		want      error
	}{
		{"encrypted", strings.Replace(page, "/Root 1 0 R", "/Root 1 0 R/Encrypt 9 0 R", 1), snapshot.ErrEncrypted},
		{"no pages", "%PDF-1.4\n1 0 obj\n<<>>\nendobj\n", snapshot.ErrDamaged},
		{"only the head", "%PDF-1.4", snapshot.ErrDamaged},
	} {
		if _, err := snapshot.Extract([]byte(test.pdf), nil); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	for _, test := range []struct{ name, pdf, code string }{
		{"a picture", onePage(helvetica, stream("", "0 0 100 100 re f")), snapshot.IssueNoTextLayer},
		{"glyphs without meaning", onePage("<</Type/Font/Subtype/Type0/Encoding/Identity-H>>", stream("", "BT /F1 12 Tf <00010002> Tj ET")), snapshot.IssuePageUnreadable},
	} {
		text, err := snapshot.Extract([]byte(test.pdf), nil)
		if err != nil || len(text.Issues) == 0 || text.Issues[0].Code != test.code {
			t.Errorf("%s: %+v, %v, want the issue %s", test.name, text, err, test.code)
		}
	}
	two := strings.Replace(strings.Replace(page, "Kids[3 0 R]", "Kids[3 0 R 6 0 R]", 1), "xref\n", "6 0 obj\n<</Type/Page/Contents 4 0 R>>\nendobj\nxref\n", 1)
	text, err := snapshot.Extract([]byte(two), &snapshot.TextOptions{Limits: snapshot.Limits{Pages: 1}})
	if err != nil || text.Pages != 2 || text.Issues[0].Code != snapshot.IssuePagesLeftOut {
		t.Errorf("one of two pages: %+v, %v", text, err)
	}
}

// hebrew returns a font with ASCII below 0x80 and the letters of the Hebrew alphabet from there.
func hebrew() (font, toUnicode string) {
	return "<</Type/Font/Subtype/Type1/ToUnicode 6 0 R>>", stream("", "1 begincodespacerange <00> <ff> endcodespacerange "+
		"2 beginbfrange <20> <7e> <0020> <80> <9a> <05D0> endbfrange")
}

// hexOf returns the codes of a text in that font.
func hexOf(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0x5D0 {
			r += 0x80 - 0x5D0
		}
		fmt.Fprintf(&b, "%02x", r)
	}
	return b.String()
}

// reversed returns the letters of a text from the last to the first.
func reversed(s string) string {
	var out string
	for _, r := range s {
		out = string(r) + out
	}
	return out
}

// A page has its glyphs from left to right; right-to-left text is put into reading order.
func TestPDFFromRight(t *testing.T) {
	shalom, olam := "שלום", "עולם"
	for _, test := range []struct{ name, shown, want string }{
		{"words", reversed(shalom + " " + olam + "."), shalom + " " + olam + "."},
		{"a number", reversed(olam) + " 1,204 " + reversed(shalom), shalom + " 1,204 " + olam},
		{"two numbers", "2004 - 1999 " + reversed(shalom), shalom + " 1999 - 2004"},
		{"words from the left in brackets", ".)Ardea cinerea( 1999 " + reversed(shalom+" "+olam+" "+shalom), shalom + " " + olam + " " + shalom + " 1999 (Ardea cinerea)."},
		{"few words of many letters", ".)Ardea cinerea alba( " + reversed("של ים של ים"), "של ים של ים (Ardea cinerea alba)."},
		{"words and a number", "Windows 11 " + reversed(shalom+" "+olam), shalom + " " + olam + " Windows 11"},
		{"brackets among words from the left", "f(x) = y " + reversed(shalom+" "+olam+" "+shalom), shalom + " " + olam + " " + shalom + " f(x) = y"},
		{"in a line from the left", "The words " + reversed(olam) + " 12 " + reversed(shalom) + " mean it.", "The words " + shalom + " 12 " + olam + " mean it."},
		{"none", "Only 12 (twelve) words", "Only 12 (twelve) words"},
	} {
		font, toUnicode := hebrew()
		text := testenv.Must(snapshot.Extract([]byte(withObject(font, stream("", "BT /F1 10 Tf 50 700 Td <"+hexOf(test.shown)+"> Tj ET"), "", toUnicode)), nil))(t)
		testenv.Equal(t, test.name, test.want, text.Content)
	}
}

// Some programs write such text in reading order, each glyph left of the one before.
func TestPDFFromRightInOrder(t *testing.T) {
	var list strings.Builder
	for _, r := range "שלום" {
		fmt.Fprintf(&list, "<%s> 1080 ", hexOf(string(r)))
	}
	font, toUnicode := hebrew()
	text, err := snapshot.Extract([]byte(withObject(font, stream("", "BT /F1 10 Tf 250 700 Td ["+list.String()+"] TJ ET"), "", toUnicode)), nil)
	if err != nil || text.Content != "שלום" {
		t.Errorf("%q, %v", text.Content, err)
	}
}

// hostile is a file that is made to keep a reader busy forever, or to exhaust its memory.
type hostile struct{ name, pdf string }

// withObject returns a document of one page with another object, number 6, and the page's resources for it.
func withObject(font, content, resources, object string) string {
	file := strings.Replace(onePage(font, content), "/Font<<", resources+"/Font<<", 1)
	return strings.Replace(file, "xref\n", "6 0 obj\n"+object+"\nendobj\nxref\n", 1)
}

// hostileByReference returns files that refer to a little content many times.
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
	font, toUnicode := hebrew()
	numbers := withObject(font, stream("/Filter/FlateDecode", deflated("BT /F1 10 Tf "+strings.Repeat("<80"+strings.Repeat("3120", 510)+"80> Tj 0 12 Td ", 9000)+"ET")), "", toUnicode)
	packedLine := withObject(font, stream("/Filter/FlateDecode", deflated("BT /F1 10 Tf <80> Tj ("+strings.Repeat("a", 15<<20)+") Tj ET")), "", toUnicode)
	inline := func(font string) string { // read again each time it is selected
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
		{"short forms in forms", withObject(helvetica, stream("", "/X0 Do /X1 Do /X2 Do /X3 Do"), xobjects, form("BT /F1 9 Tf (a b) Tj ET /X0 Do /X1 Do /X2 Do /X3 Do"))},
		{"many lengths of codes", withObject("<</Type/Font/Subtype/Type0/ToUnicode 6 0 R>>", stream("", "BT /F1 10 Tf ("+strings.Repeat("abcdefgh", 12<<17)+") Tj ET"), "",
			stream("", strings.Repeat("<ff000000> <ffffffff> ", 64)+strings.Repeat("<ff0000> <ffffff> ", 64)+strings.Repeat("<ff00> <ffff> ", 64)+strings.Repeat("<ff> <ff> ", 64)+"endcodespacerange"))},
		{"forms of inline fonts", withObject(helvetica, again, xobjects, form("BT /F1 9 Tf (a) Tj ET"))},
		{"numbers from the right", numbers},
		{"a long line from the right", packedLine},
		{"pages with the same pages", withObject(helvetica, "null", "", "["+strings.Repeat("2 0 R ", 1<<16)+"]") + "9 0 obj<</Kids[" + kids + "]>>endobj 1 0 obj<</Pages 9 0 R>>endobj"},
		{"objects in one place", packedObjects(400, "("+strings.Repeat("a", 1<<21))},
		{"arrays in one place", packedObjects(400, strings.Repeat("[1 ", 1<<20))},
	}
}

// packedObjects returns a file with a stream of n objects that all begin at the same place.
func packedObjects(n int, object string) string {
	var head strings.Builder
	for i := range n {
		fmt.Fprintf(&head, "%d 0 ", i+10)
	}
	return pdf(stream(fmt.Sprintf("/Type/ObjStm/Filter/FlateDecode/N %d/First %d", n, head.Len()), deflated(head.String()+object)))
}

// emptyBlocks returns n bytes of compressed data without content.
func emptyBlocks(n int) string {
	return "\x78\x9c" + strings.Repeat("\x00\x00\x00\xff\xff", n/5)
}

// hostileByForm returns files that are malformed, or compress much into little.
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
		{"a predictor of nothing", packed("/DecodeParms<</Predictor 2>>", "")},
		{"a predictor of nothing in LZW", onePage(helvetica, stream("/Filter/LZW/DecodeParms<</Predictor 2/Columns 9>>", "\x80\x40\x40"))},
		{"a row wider than the data", packed("/DecodeParms<</Predictor 15/Columns 1048576/Colors 16/BitsPerComponent 64>>", "x")},
	}
}

// The bounds for reading any file: on an idle machine no file takes more than 2 s, but others share this one.
const (
	maxHostileBytes = 200 << 20 // in use at a time
	maxHostileTime  = 10 * time.Second
)

func TestPDFHostile(t *testing.T) {
	// Garbage may grow to a share of all that is in use, of which these files are the larger part: a program has none.
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	for _, test := range slices.Concat(hostileByForm(), hostileByReference(), hostileByStructure()) {
		took, peak := time.Hour, uint64(math.MaxUint64)
		var err error
		for range 4 { // the least counts: on a busy machine garbage is collected late
			began := time.Now()
			peak = min(peak, peakOf(func() {
				_, err = snapshot.Extract([]byte(test.pdf), nil)
			}))
			if took = min(took, time.Since(began)); took <= maxHostileTime && peak <= maxHostileBytes {
				break
			}
		}
		t.Logf("%s: %d bytes, %v, %d MB, %v", test.name, len(test.pdf), took, peak>>20, err)
		if took > maxHostileTime || peak > maxHostileBytes {
			t.Errorf("%s: took %v and %d MB (%v)", test.name, took, peak>>20, err)
		}
	}
}

// A file that exceeds the memory limit is refused, or read up to the limit, which is reported.
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

// A file that exceeds the time limit is read up to the limit, which is reported.
func TestPDFTime(t *testing.T) {
	page := onePage(helvetica, stream("", "BT /F1 10 Tf "+strings.Repeat("(a) Tj ", 1<<18)+"ET"))
	text, err := snapshot.Extract([]byte(page), &snapshot.TextOptions{Limits: snapshot.Limits{Time: time.Nanosecond}})
	isCut := err == nil && len(text.Issues) > 0 && text.Issues[0].Code == snapshot.IssuePagesLeftOut
	if !isCut && !errors.Is(err, snapshot.ErrTimeout) {
		t.Errorf("%v, %v", text, err)
	}
	whole, err := snapshot.Extract([]byte(page), &snapshot.TextOptions{Limits: snapshot.Limits{Time: 5 * time.Minute}})
	if err != nil || len(whole.Issues) > 0 || len(whole.Content) < 1<<18 {
		t.Errorf("with time: %v, %v", whole.Issues, err)
	}
}

// peakOf returns by how many bytes do increases memory use at its peak.
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
