package snapshot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// The media types with readers of their own; all others are text that is taken unchanged.
const (
	typeHTML     = "text/html"
	typeXHTML    = "application/xhtml+xml"
	typePDF      = "application/pdf"
	typeMarkdown = "text/markdown"
	typePlain    = "text/plain"
	typeJSON     = "application/json"
	typeLines    = "application/jsonl"
	typeXML      = "application/xml"
	typeCSV      = "text/csv"
)

// sniffed is how many bytes are examined to recognise a document.
const sniffed = 4096

// recognise returns the media type to read a document as. The declared type counts unless it is a generic one; but the
// signature of a PDF takes precedence, because servers often mislabel PDFs.
func recognise(b []byte, said string, o *TextOptions) string {
	head := b[:min(len(b), sniffed)]
	if bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-")) && said != typeHTML {
		return typePDF
	}
	switch said {
	case "", "application/octet-stream", "binary/octet-stream", "application/x-download", "application/force-download",
		"unknown/unknown", "*/*":
	case "text/x-markdown", "text/md":
		return typeMarkdown
	default:
		return said
	}
	if t := typesByExtension[extension(o)]; t != "" {
		return t
	}
	return byContent(head, b)
}

// extension returns the extension of the document's name, in lower case with its dot.
func extension(o *TextOptions) string {
	if ext := path.Ext(o.Name); ext != "" {
		return strings.ToLower(ext)
	}
	if u, err := url.Parse(o.URL); err == nil {
		return strings.ToLower(path.Ext(u.Path))
	}
	return ""
}

// typesByExtension maps extensions to media types.
var typesByExtension = map[string]string{
	".html": typeHTML, ".htm": typeHTML, ".xhtml": typeXHTML, ".xht": typeXHTML,
	".md": typeMarkdown, ".markdown": typeMarkdown, ".mdown": typeMarkdown, ".mkd": typeMarkdown,
	".txt": typePlain, ".text": typePlain, ".log": typePlain,
	".json": typeJSON, ".jsonl": typeLines, ".ndjson": typeLines, ".xml": typeXML, ".csv": typeCSV,
}

// byContent recognises a document by its beginning.
func byContent(head, b []byte) string {
	start := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	lower := bytes.ToLower(start[:min(len(start), 512)])
	for _, tag := range []string{
		"<!doctype html", "<html", "<head", "<body", "<title", "<p>", "<div", "<h1", "<meta", "<article", "<main",
	} {
		if bytes.HasPrefix(lower, []byte(tag)) {
			return typeHTML
		}
	}
	switch {
	case bytes.HasPrefix(start, []byte("<?xml")):
		if bytes.Contains(lower, []byte("<html")) || bytes.Contains(lower, []byte("<!doctype html")) {
			return typeXHTML
		}
		return typeXML
	case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("[")):
		if json.Valid(b) {
			return typeJSON
		}
		line, _, _ := bytes.Cut(start, []byte("\n"))
		if json.Valid(line) {
			return typeLines
		}
	case bytes.HasPrefix(start, []byte("# ")),
		bytes.Contains(start, []byte("\n# ")),
		bytes.Contains(start, []byte("\n## ")):
		return typeMarkdown
	}
	return typePlain
}

// binary returns a description of bytes that are not text, or "" if they may be text.
func binary(b []byte) string {
	for _, s := range signatures {
		if len(b) >= s.at && bytes.HasPrefix(b[s.at:], []byte(s.bytes)) {
			return s.name
		}
	}
	if bytes.HasPrefix(b, []byte("PK\x03\x04")) {
		return zipped(b)
	}
	if name, _ := byMark(b); name != "" {
		return ""
	}
	head := b[:min(len(b), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return "binary data"
	}
	control := 0
	for _, c := range head {
		if c < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b {
			control++
		}
	}
	if control*20 > len(head) && (control > 4 || !utf8.Valid(head)) {
		return "binary data"
	}
	return ""
}

// signatures are the file signatures of binary formats.
var signatures = []struct {
	at          int
	bytes, name string
}{
	{0, "\x89PNG\r\n\x1a\n", "a PNG image"},
	{0, "\xff\xd8\xff", "a JPEG image"},
	{0, "GIF87a", "a GIF image"},
	{0, "GIF89a", "a GIF image"},
	{8, "WEBP", "a WebP image"},
	{0, "II*\x00", "a TIFF image"},
	{0, "MM\x00*", "a TIFF image"},
	{0, "\x1f\x8b", "gzip data: unpack it first"},
	{0, "BZh", "bzip2 data: unpack it first"},
	{0, "\xfd7zXZ\x00", "xz data: unpack it first"},
	{0, "\x28\xb5\x2f\xfd", "zstd data: unpack it first"},
	{0, "7z\xbc\xaf\x27\x1c", "a 7z archive"},
	{0, "Rar!\x1a", "a RAR archive"},
	{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.doc, .xls, .ppt): save it as PDF or text"},
	{0, `{\rtf`, "an RTF document: save it as PDF or text"},
	{0, `{\pard`, "an RTF document: save it as PDF or text"}, // without its header, as written by pandoc
	{0, "%!PS", "a PostScript document: save it as PDF"},
	{0, "\x7fELF", "a program"},
	{0, "MZ\x90", "a program"},
	{0, "\x00asm", "a WebAssembly module"},
	{0, "SQLite format 3\x00", "an SQLite database"},
	{0, "OggS", "an Ogg recording"},
	{0, "ID3", "an MP3 recording"},
	{0, "fLaC", "a FLAC recording"},
	{8, "WAVE", "a WAV recording"},
	{4, "ftyp", "an MP4 video, or a HEIC image"},
	{0, "\x1aE\xdf\xa3", "a Matroska or WebM video"},
	{0, "wOFF", "a font"},
	{0, "wOF2", "a font"},
	{0, "PAR1", "a Parquet file"},
}

// zipped describes a ZIP archive by the names of its files.
func zipped(b []byte) string {
	head := b[:min(len(b), 64<<10)]
	for _, kind := range [...]struct{ part, name string }{
		{"word/", "a Word document (.docx): save it as PDF or text"},
		{"xl/", "an Excel workbook (.xlsx): save it as CSV"},
		{"ppt/", "a PowerPoint presentation (.pptx): save it as PDF"},
		{"application/epub+zip", "an EPUB book"},
		{"application/vnd.oasis.opendocument", "an OpenDocument file: save it as PDF or text"},
	} {
		if bytes.Contains(head, []byte(kind.part)) {
			return kind.name
		}
	}
	return "a ZIP archive: unpack it first"
}

// prescanned is how many bytes of a page are searched for a meta element with a charset, according to the HTML
// standard.
const prescanned = 1024

// utf8Name is the name of UTF-8 in the encoding standard.
const utf8Name = "utf-8"

// decode returns a document as UTF-8, and the name of its encoding: that of its byte order mark, its media type or its
// beginning, else UTF-8 if that is likely and valid, else windows-1252.
func decode(
	b []byte, params map[string]string, declares func(head []byte) string, likely bool,
) ([]byte, string, error) {
	name, rest := byMark(b)
	if name == "" {
		name = charsetName(params["charset"])
	}
	if name == "" && declares != nil {
		name = declares(b[:min(len(b), prescanned)])
	}
	switch {
	case name != "":
	case likely && utf8.Valid(rest):
		name = utf8Name
	default:
		name = "windows-1252"
	}
	e, _ := charset.Lookup(name)
	if e == nil || e == encoding.Nop || name == utf8Name {
		return rest, name, nil
	}
	out, err := e.NewDecoder().Bytes(rest) // invalid bytes become U+FFFD
	if err != nil {
		return nil, name, fmt.Errorf("decoding %s: %w: %w", name, ErrDamaged, err)
	}
	return out, name, nil
}

// decodeLikely is decode, except that the bytes are believed more than what is said of them: text outside ASCII is
// hardly ever valid UTF-8 by accident, and text that is said to be UTF-8 and has no valid character outside ASCII, only
// invalid bytes, is not.
func decodeLikely(
	b []byte, params map[string]string, declares func(head []byte) string, likely bool,
) ([]byte, string, error) {
	out, name, err := decode(b, params, declares, likely)
	if mark, _ := byMark(b); mark != "" || err != nil || !hasHighByte(b) {
		return out, name, err
	}
	switch valid := utf8.Valid(b); {
	case valid && (strings.HasPrefix(name, "windows-125") || strings.HasPrefix(name, "iso-8859-")):
		return b, utf8Name, nil
	case !valid && name == utf8Name && !hasCharacter(b):
		return decode(b, map[string]string{"charset": "windows-1252"}, nil, false)
	}
	return out, name, err
}

// hasHighByte reports whether b has bytes outside ASCII.
func hasHighByte(b []byte) bool {
	return slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf })
}

// hasCharacter reports whether b has a valid character of UTF-8 outside ASCII.
func hasCharacter(b []byte) bool {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if n > 1 && r != utf8.RuneError {
			return true
		}
		i += n
	}
	return false
}

// byMark returns the encoding of a byte order mark, and the bytes after it.
func byMark(b []byte) (name string, rest []byte) {
	for _, m := range [...]struct{ mark, name string }{
		{"\xef\xbb\xbf", utf8Name}, {"\xfe\xff", "utf-16be"}, {"\xff\xfe", "utf-16le"},
	} {
		if bytes.HasPrefix(b, []byte(m.mark)) {
			return m.name, b[len(m.mark):]
		}
	}
	return "", b
}

// charsetName returns the standard name of a charset, or "" if it does not know the label.
func charsetName(label string) string {
	_, name := charset.Lookup(label)
	return name
}

// prescan searches for a meta element with a charset.
func prescan(b []byte) string {
	z := html.NewTokenizer(bytes.NewReader(b))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			if tag, more := z.TagName(); more && string(tag) == "meta" {
				if name := metaCharset(z); name != "" {
					return name
				}
			}
		default:
		}
	}
}

// metaCharset returns the charset in the attributes of a meta element. UTF-16 cannot be true, because the element was
// read as ASCII; according to the standard it then means UTF-8.
func metaCharset(z *html.Tokenizer) string {
	var label, content string
	var pragma bool
	for more := true; more; {
		var key, val []byte
		key, val, more = z.TagAttr()
		switch string(key) {
		case "charset":
			label = string(val)
		case "content":
			content = string(val)
		case "http-equiv":
			pragma = strings.EqualFold(string(val), "content-type")
		}
	}
	if label == "" && pragma {
		label = afterCharset(content)
	}
	name := charsetName(label)
	if strings.HasPrefix(name, "utf-16") {
		return utf8Name
	}
	return name
}

// afterCharset returns the value after "charset=" in a media type.
func afterCharset(s string) string {
	i := strings.Index(strings.ToLower(s), "charset")
	if i < 0 {
		return ""
	}
	rest, ok := strings.CutPrefix(strings.TrimLeft(s[i+len("charset"):], " \t\r\n"), "=")
	if !ok {
		return ""
	}
	return firstValue(rest, " \t\r\n;\"'")
}

// firstValue returns the beginning of s, after white space and quotes, up to a character in ends.
func firstValue(s, ends string) string {
	s = strings.TrimLeft(s, " \t\r\n\"'")
	if end := strings.IndexAny(s, ends); end >= 0 {
		s = s[:end]
	}
	return s
}

// declared returns the encoding in an XML declaration.
func declared(b []byte) string {
	head, _, ok := bytes.Cut(b, []byte("?>"))
	if !ok || !bytes.HasPrefix(head, []byte("<?xml")) {
		return ""
	}
	_, after, ok := strings.Cut(string(head), "encoding")
	if !ok {
		return ""
	}
	return charsetName(firstValue(strings.TrimLeft(after, " \t\r\n=\"'"), " \t\r\n\"'"))
}

// splitType splits a media type into its name in lower case and its parameters. If the parameters are invalid, there
// are none. They are nil only if there is no media type.
func splitType(s string) (name string, params map[string]string) {
	if strings.TrimSpace(s) == "" {
		return "", nil
	}
	name, params, err := mime.ParseMediaType(s)
	if err != nil || name == "" {
		name, _, _ = strings.Cut(s, ";")
		name, params = strings.ToLower(strings.TrimSpace(name)), nil
	}
	if params == nil {
		params = map[string]string{}
	}
	return name, params
}
