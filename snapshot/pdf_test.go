package snapshot_test

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/snapshot"
)

// pdf writes a file of objects, numbered from 1, with a cross-reference table that points nowhere: the reader needs none.
func pdf(objects ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	for i, object := range objects {
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	fmt.Fprintf(&b, "xref\n0 1\ntrailer\n<</Size %d/Root 1 0 R>>\nstartxref\n0\n%%%%EOF\n", len(objects)+1)
	return b.String()
}

// stream writes a stream.
func stream(dict, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", dict, len(data), data)
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write([]byte(s)) // into memory
	_ = w.Close()
	return b.String()
}

// onePage writes a document of one page with the font F1.
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
		testenv.Diff(t, test.name, text.Content, test.want)
	}
}

// lzw packs as the format has it.
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

// Fonts whose codes have two bytes, with a map to text; objects in a stream; a title in UTF-16; two pages.
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
	testenv.Diff(t, "blocks", blocksOf(text), want)
	if text.Title != "Zü" || len(text.Authors) != 2 || text.PublishedAt != "2026-04-28" || text.Language != "de" || text.Pages != 2 {
		t.Errorf("facts: %+v", text)
	}
	if text.Profile != snapshot.PDFProfile || text.MediaType != "application/pdf" || text.Blocks[3].Page != 2 {
		t.Errorf("profile %s, type %s, page %d", text.Profile, text.MediaType, text.Blocks[3].Page)
	}
}

// Text that marked content says apart from its glyphs, and forms.
func TestPDFMarkedContent(t *testing.T) {
	file := pdf(
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Contents 4 0 R/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>>>",
		stream("", "BT /F 10 Tf 50 700 Td /Span<</ActualText(office)>>BDC (o\\001) Tj (ce) Tj EMC ( open) Tj ET /X Do"),
		helvetica,
		stream("/Type/XObject/Subtype/Form/Matrix[1 0 0 1 0 -100]/Resources<</Font<</G 5 0 R>>>>", "BT /G 10 Tf 50 700 Td (in a form) Tj ET"),
	)
	text := testenv.Must(snapshot.Extract([]byte(file), nil))(t)
	testenv.Diff(t, "", blocksOf(text), []string{"paragraph: office open", "paragraph: in a form"})
}

// A page that a browser printed. What is read of it is tested in internal/pdf.
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
