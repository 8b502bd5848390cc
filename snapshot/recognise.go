package snapshot

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// The media types that are read in different ways; all others are text as it stands.
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

// sniffed is how many bytes are looked at to recognise a document.
const sniffed = 4096

// recognise returns what a document is to be read as. What a server says counts, but for the types that say nothing;
// the bytes of a PDF count more, because servers often send them under another name.
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

// typesByExtension has the media types of names that say one.
var typesByExtension = map[string]string{
	".html": typeHTML, ".htm": typeHTML, ".xhtml": typeXHTML, ".xht": typeXHTML,
	".md": typeMarkdown, ".markdown": typeMarkdown, ".mdown": typeMarkdown, ".mkd": typeMarkdown,
	".txt": typePlain, ".text": typePlain, ".log": typePlain,
	".json": typeJSON, ".jsonl": typeLines, ".ndjson": typeLines, ".xml": typeXML, ".csv": typeCSV,
}

// byContent recognises a document by how it begins.
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

// binary says what bytes that are no text look like; empty: they may be text.
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

// signatures says how files of some kind begin.
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
	{0, `{\pard`, "an RTF document: save it as PDF or text"}, // without its head, as pandoc writes it
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

// zipped says what kind of document a ZIP archive is, by the names of what is in it.
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
