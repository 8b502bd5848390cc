package snapshot_test

import (
	"fmt"
	"strings"
)

// hostileByStructure returns files whose structure is made to be read again and again, or to hold too much: their
// tables of objects, trees of pages, fonts, resources, encryption and images.
func hostileByStructure() []hostile {
	const many = 100_000
	text := stream("", "BT /F1 10 Tf (a) Tj ET")
	show := stream("", "BT /F1 10 Tf "+strings.Repeat("(abcdefgh) Tj ", 20_000)+"ET")
	packed := func(s string) string { return stream("/Filter/FlateDecode", deflated(s)) }
	numbered := func(n int, form string) string { // form has %d for a number from 10
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i+10)
		}
		return b.String()
	}
	page := onePage(helvetica, text)
	end := func(more string) string { return strings.Replace(page, "xref\n", more+"\nxref\n", 1) }
	composite := func(parts string) string { return "<</Type/Font/Subtype/Type0/DescendantFonts[<<" + parts + ">>]>>" }
	cmap := func(s string) string {
		return withObject("<</Type/Font/Subtype/Type0/ToUnicode 6 0 R>>", show, "", packed(s))
	}
	catalog := "<</Type/Catalog/Pages 2 0 R>>"
	return []hostile{
		// Tables and updates.
		{"tables that name each other", page + numbered(20_000, "xref\n0 1\ntrailer<</Prev %d/Root 1 0 R>>\nstartxref\n9\n%%%%EOF\n")},
		{"a table that names itself", end("") + fmt.Sprintf("xref\n0 1\ntrailer<</Prev %d>>\nstartxref\n%d\n%%%%EOF", len(page), len(page))},
		{"a table of everything", end("xref\n0 99999999\n" + strings.Repeat("0000000009 00000 n \n", many) + "trailer<</Size 99999999/Root 1 0 R>>")},
		{"streams of tables in a ring", end(numbered(20_000, "%d 0 obj<</Type/XRef/Prev 9/W[1 8 8]/Index[0 99999999]/Root 1 0 R/Length 0>>stream\n\nendstream endobj\n"))},
		{"a stream of tables with wide fields", end("9 0 obj" + stream("/Type/XRef/W[2147483647 2147483647 2147483647]/Size 2147483647/Filter/FlateDecode", deflated(strings.Repeat("\x00", 32<<20))) + "endobj")},
		{"updates by thousands", page + strings.Repeat("3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R>>endobj\n4 0 obj"+text+"endobj\nxref\n0 1\ntrailer<</Root 1 0 R>>\nstartxref\n9\n%%EOF\n", 10_000)},
		{"one object many times", end(strings.Repeat("7 0 obj<</A["+strings.Repeat("7 0 R ", 20)+"]>>endobj\n", 40_000))},
		{"many generations", end(strings.ReplaceAll(numbered(many, "7 % obj<<>>endobj\n"), "%", "65535") + numbered(many, "7 %d obj<<>>endobj\n"))},
		// Streams of objects.
		{"streams of objects in each other", end(numbered(300, "%d 0 obj<</Type/ObjStm/N 100/First 4/Extends 9 0 R/Length 30>>stream\n10 0 11 0<</Type/ObjStm>>      \nendstream endobj\n") + "9 0 obj<</Type/ObjStm/Extends 10 0 R/N 1/First 9/Length 1>>stream\n \nendstream endobj")},
		{"a stream of objects in a stream of objects", end("9 0 obj" + stream("/Type/ObjStm/N 1/First 5/Filter/FlateDecode", deflated("10 0 "+stream("/Type/ObjStm/N 1/First 5", "11 0 <</Type/Page>>"))) + "endobj")},
		{"a stream of more objects than bytes", end("9 0 obj" + stream("/Type/ObjStm/N 2147483647/First 2147483647", "1 2 3") + "endobj")},
		{"streams of objects that unpack much", end(numbered(60, "%d 0 obj"+strings.ReplaceAll(stream("/Type/ObjStm/N 9/First 99/Filter/FlateDecode", deflated(strings.Repeat("1 0 ", 2<<20))), "%", "%%")+"endobj\n"))},
		// Trees.
		{"pages by themselves through others", pdf(catalog, "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 9>>", "<</Type/Pages/Kids[4 0 R 2 0 R]>>", "<</Type/Pages/Kids[3 0 R 3 0 R 2 0 R]>>")},
		{"a deep tree of pages", pdf(catalog, "<</Type/Pages/Kids[10 0 R]>>") + numbered(many, "%[1]d 0 obj<</Type/Pages/Kids[") + "]>>endobj"},
		{"a chain of pages", chained(many)},
		{"parents in a ring", pdf(catalog, "<</Type/Pages/Kids[3 0 R]/Parent 3 0 R>>", "<</Type/Page/Parent 2 0 R/Contents 4 0 R>>", text)},
		{"a page many times", strings.Replace(page, "/Kids[3 0 R]", "/Kids["+strings.Repeat("3 0 R ", many)+"]", 1)},
		{"a count of pages that is huge", strings.Replace(page, "/Count 1", "/Count 2147483647", 1)},
		{"contents many times", strings.Replace(page, "/Contents 4 0 R", "/Contents["+strings.Repeat("4 0 R ", many)+"]", 1)},
		{"contents in arrays in arrays", strings.Replace(page, "/Contents 4 0 R", "/Contents"+strings.Repeat("[", 10_000)+"4 0 R"+strings.Repeat("]", 10_000), 1)},
		// Resources and fonts.
		{"resources of many names", strings.Replace(page, "/Font<<", "/Font<<"+numbered(many, "/N%d 5 0 R"), 1)},
		{"many pages that inherit many resources", strings.Replace(strings.Replace(page, "/Font<<", "/Font<<"+numbered(10_000, "/N%d 5 0 R"), 1), "/Kids[3 0 R]", "/Kids["+strings.Repeat("<</Type/Page/Parent 2 0 R/Contents 4 0 R>>", 10_000)+"]", 1)},
		{"a million widths", onePage("<</Type/Font/Subtype/TrueType/FirstChar 0/LastChar 2147483647/Widths["+strings.Repeat("500 ", 1_000_000)+"]>>", show)},
		{"a million widths of code points", onePage(composite("/W[0["+strings.Repeat("500 ", 1_000_000)+"]]"), show)},
		{"widths in widths", onePage(composite("/W"+strings.Repeat("[0 ", many)+strings.Repeat("]", many)), show)},
		{"fonts of fonts", onePage("<</Type/Font/Subtype/Type0/DescendantFonts[5 0 R]/ToUnicode 5 0 R>>", show)},
		{"a name of 10 MB", strings.ReplaceAll(page, "/F1", "/"+strings.Repeat("F", 10<<20))},
		{"escaped names", strings.ReplaceAll(page, "/F1", "/"+strings.Repeat("#46", 1<<20))},
		{"a font of 10 MB that is not embedded", onePage(strings.Replace(helvetica, "Helvetica", strings.Repeat("H", 10<<20), 1), show)},
		{"a forest of differences", onePage("<</Type/Font/Subtype/Type1/Encoding<</Differences["+strings.Repeat("0/a 255/b 99999999/c -1/d ", many)+"]>>>>", show)},
		// Maps of codes.
		{"a map of ranges over everything", cmap(strings.Repeat("<00000000> <ffffffff> <0041> ", many) + "endbfrange")},
		{"a map of many arrays", cmap("beginbfrange " + strings.Repeat("<0000> <ffff> ["+strings.Repeat("<0041>", 99)+"] ", 4000) + "endbfrange")},
		{"a map that uses itself", withObject("<</Type/Font/Subtype/Type0/Encoding 6 0 R/ToUnicode 6 0 R>>", show, "", stream("/UseCMap 6 0 R", "6 0 R usecmap"))},
		{"a map that unpacks much", cmap(strings.Repeat("<0041> <0041> ", 4<<20) + "endbfchar")},
		{"code spaces by thousands", cmap(strings.Repeat("<0000> <ffff> ", many) + "endcodespacerange")},
		// Images and filters that are not text.
		{"an image in JBIG2", withObject(helvetica, stream("", "/X0 Do BT /F1 10 Tf (a) Tj ET"), "/XObject<</X0 6 0 R>>", stream("/Subtype/Image/Width 2147483647/Height 2147483647/Filter/JBIG2Decode/DecodeParms<</JBIG2Globals 6 0 R>>", "\x97JB2\r\n\x1a\n\x01\xff\xff\xff\xff"))},
		{"contents in DCT", onePage(helvetica, stream("/Filter/DCTDecode", "\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03"+strings.Repeat("\xff\xda\x00", 1<<20)))},
		{"contents in CCITT", onePage(helvetica, stream("/Filter/CCITTFaxDecode/DecodeParms<</K -1/Columns 2147483647/Rows 2147483647>>", strings.Repeat("\x00\x01", 1<<20)))},
		{"a thousand filters", onePage(helvetica, stream("/Filter["+strings.Repeat("/FlateDecode", 1000)+"]", deflated("BT (a) Tj ET")))},
		{"filters in a ring", withObject(helvetica, stream("/Filter 6 0 R/DecodeParms 6 0 R", "a"), "", "[6 0 R 6 0 R]")},
		{"an inline image without an end", onePage(helvetica, packed("BI /W 99999 /H 99999 ID "+strings.Repeat("E I", 8<<20)))},
		// Encryption, names and marks.
		{"encryption with bogus keys", strings.Replace(page, "/Root 1 0 R", "/Root 1 0 R/Encrypt<</Filter/Standard/V 5/R 6/Length 99999999/O("+strings.Repeat("x", 1<<20)+")/U()/P -1/CF<</StdCF<</CFM/AESV3/Length -1>>>>>>/ID[()()]", 1)},
		{"encryption by reference to itself", strings.Replace(page, "/Root 1 0 R", "/Root 1 0 R/Encrypt 9 0 R", 1) + "9 0 obj 9 0 R endobj"},
		{"metadata that is itself", strings.Replace(page, "/Root 1 0 R", "/Root 1 0 R/Info 9 0 R", 1) + "9 0 obj<</Title 9 0 R/Author 9 0 R>>endobj"},
		{"a title of 10 MB", strings.Replace(page, "/Root 1 0 R", "/Root 1 0 R/Info<</Title("+strings.Repeat("t", 10<<20)+")>>", 1)},
		{"marks in marks", onePage(helvetica, packed(strings.Repeat("/Span<</ActualText(a)>>BDC ", many)+"BT /F1 9 Tf (a) Tj ET"+strings.Repeat(" EMC", many)))},
		{"states in states", onePage(helvetica, packed(strings.Repeat("q 1 0 0 1 9 9 cm ", many*5)+"BT /F1 9 Tf (a) Tj ET"))},
		{"an annotation that is everything", strings.Replace(page, "/Contents 4 0 R", "/Contents 4 0 R/Annots["+strings.Repeat("3 0 R ", many)+"]", 1)},
	}
}

// chained returns a file of n pages, each of which is the only one below another.
func chained(n int) string {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>"}
	for i := range n {
		objects = append(objects, fmt.Sprintf("<</Type/Pages/Kids[%d 0 R]>>", i+3))
	}
	return pdf(objects...)
}
