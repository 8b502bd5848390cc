package snapshot

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/pdf"
)

// The ways in which a text is made; see the package's documentation.
const (
	TextProfile = "ibid-text/1"
	PDFProfile  = "ibid-pdf/1" // advisory: programs differ in how they put glyphs together
)

// Text is the visible text of one document, with what the document says of itself. It is plain data.
type Text struct {
	// normalised: NFC, no characters of category Cf, one space for each run of white space, none at the ends
	Content string
	Profile string // TextProfile or PDFProfile
	// what it was read as: text/html, application/pdf, text/markdown, text/plain, …; without parameters
	MediaType string
	Charset   string // what its bytes were decoded as: utf-8, windows-1252, …; empty for a PDF

	Title       string // empty: the document does not say
	Authors     []string
	PublishedAt string // an ISO 8601 date or RFC 3339 time; empty: not said, or not in a form that says a date
	Language    string // a BCP 47 tag
	Site        string
	License     string
	URL         string // where the document says that it is to be found (canonical)

	Blocks []Block      // what Content is made of, in order: they cover it but for single spaces between them
	Pages  int          // of a PDF; 0: it has none
	Issues []ibid.Issue // what was odd, and is no error: see the codes below
}

// The codes of a text's issues.
const (
	IssueNoTextLayer    = "no-text-layer"   // a PDF whose pages have no text: scanned, or drawn
	IssuePageUnreadable = "page-unreadable" // a page of a PDF that could not be read; the others were
	IssuePagesLeftOut   = "pages-left-out"  // a PDF with more pages, or more to read, than the limits allow
	IssueLineUnreadable = "line-unreadable" // a line of JSON lines that is no document; the others were read
	IssueInvalidUTF8    = "invalid-utf8"    // JSON with bytes that are not UTF-8: they are lost
)

// Block is a part of a text that its document sets apart. Content[Span.Start:Span.End] is what it says.
type Block struct {
	Span  ibid.Span
	Kind  BlockKind
	Level int // of a heading, from 1
	Page  int // of a PDF, from 1; 0: there are none
}

// BlockKind says what a block is to the reader.
type BlockKind string

// The kinds of a [Block].
const (
	Heading   BlockKind = "heading"
	Paragraph BlockKind = "paragraph"
	Item      BlockKind = "item" // of a list
	Cell      BlockKind = "cell" // of a table; in Markdown and plain text its row
	Code      BlockKind = "code"
)

// TextOptions says what is known of a document besides its bytes. Nil and the zero value mean: nothing.
type TextOptions struct {
	MediaType string // as a server or a caller says, with parameters; empty: recognised
	URL       string // where it was found; helps to recognise what it is
	Name      string // its file's name; helps to recognise what it is
	Limits
}

// Limits bounds what is read of a document. Zero means the default.
type Limits struct {
	Bytes     int           // of the document; [MaxBytes]
	Pages     int           // of a PDF; 2000
	Time      time.Duration // for a PDF; 20 s
	Documents int           // that one file may hold; 100,000
}

// MaxBytes is how many bytes a document may have, unless [Limits] says another number.
const MaxBytes = 32 << 20

// The other defaults of [Limits].
const (
	maxPages     = 2000
	maxTime      = 20 * time.Second
	maxDocuments = 100_000
)

// Why a document could not be read: errors of [Extract] and [ReadDocuments] wrap one of these.
var (
	ErrEmpty       = errors.New("it is empty")
	ErrTooLarge    = pdf.ErrTooLarge
	ErrUnsupported = errors.New("it is no text")
	ErrEncrypted   = pdf.ErrEncrypted
	ErrTooDeep     = errors.New("it is nested too deeply")
	ErrDamaged     = pdf.ErrDamaged
	ErrTimeout     = pdf.ErrTimeout
)

// Document is one text with what it is known by: a file, or one line of JSON lines.
type Document struct {
	ID    string // of the document in its file: its own id, else the file's name, with #n where a file holds several
	Title string
	URL   string
	Text  *Text
	// Source is the document as a source that an answer may cite: with ID, title, address, authors, dates and licence.
	// Its Content is empty: the text is in Text.
	Source ibid.Source
}

// panicked begins what is said of a reader that failed in a way that it should not.
const panicked = "its reader panicked"

// Extract returns the visible text of a document. What it is comes from the media type, unless that says nothing, and
// from the bytes, the name and the address. A document without any visible text is no error: its Content is empty.
//
// The error wraps one of this package's errors and says what was wrong: bytes that are no text say what they look like.
func Extract(b []byte, o *TextOptions) (t *Text, err error) {
	defer func() {
		if why := recover(); why != nil { // hostile files must not end the program
			t, err = nil, fmt.Errorf("reading the document: %w: %s: %v", ErrDamaged, panicked, why)
		}
	}()
	o = cmp.Or(o, &TextOptions{})
	if most := cmp.Or(o.Bytes, MaxBytes); len(b) > most {
		return nil, fmt.Errorf("reading the document: %w: it has %d bytes, the limit is %d", ErrTooLarge, len(b), most)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, fmt.Errorf("reading the document: %w", ErrEmpty)
	}
	said, params := splitType(o.MediaType)
	mediaType := recognise(b, said, o)
	t = &Text{Profile: TextProfile, MediaType: mediaType}
	if mediaType == typePDF {
		t.Profile = PDFProfile
		if err := readPDF(t, b, o); err != nil {
			return nil, fmt.Errorf("reading the PDF: %w", err)
		}
		return t, nil
	}
	if what := binary(b); what != "" {
		return nil, fmt.Errorf("reading the document: %w: it looks like %s", ErrUnsupported, what)
	}
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "image", "audio", "video", "font", "model", "multipart":
		if !strings.HasSuffix(mediaType, "+xml") {
			return nil, fmt.Errorf("reading the document: %w: its type is %q", ErrUnsupported, mediaType)
		}
	default: // what cannot be known is taken for text: its bytes were looked at
	}
	if mediaType == typeHTML || mediaType == typeXHTML {
		if err := readHTML(t, b, params); err != nil {
			return nil, fmt.Errorf("reading the page: %w", err)
		}
		return t, nil
	}
	if err := readPlain(t, b, params); err != nil {
		return nil, err
	}
	return t, nil
}

// Hash returns how octets are named everywhere: "sha256:" and 64 lower-case hexadecimal digits.
func Hash(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// isoDate returns a date as ISO 8601 or RFC 3339 writes it; empty: s says none.
func isoDate(s string) string {
	s = strings.TrimSpace(s)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05.999Z0700"} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	for _, layout := range []string{
		"2006-01-02", "2006-1-2", "2006/01/02", "2006/1/2", "2006-01-02T15:04:05", "2006-01-02T15:04",
		"2006-01-02 15:04:05", "January 2, 2006", "2 January 2006", time.RFC1123, time.RFC1123Z,
	} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.Format(time.DateOnly)
		}
	}
	for _, layout := range []string{"2006-01", "2006"} {
		if _, err := time.Parse(layout, s); err == nil {
			return s
		}
	}
	return ""
}

// stream is the text of a document before it is normalised, with the places where its blocks begin. Right before each
// of these stands a line break, which composes with nothing: what lies between two of them can be normalised by itself.
type stream struct {
	raw   []byte
	marks []mark
}

// mark is where a block begins in a stream.
type mark struct {
	at    int
	kind  BlockKind
	level int
	page  int
}

// beginBlock ends the block before and begins another.
func (s *stream) beginBlock(kind BlockKind, level, page int) {
	s.raw = append(s.raw, '\n')
	m := mark{len(s.raw), kind, level, page}
	if n := len(s.marks); n > 0 && s.marks[n-1].at+1 == m.at {
		s.marks[n-1] = m // nothing stands in the last one
		return
	}
	s.marks = append(s.marks, m)
}

// finish normalises the stream into t.Content and t.Blocks.
func (s *stream) finish(t *Text) {
	if len(s.marks) == 0 || s.marks[0].at > 0 {
		s.marks = append([]mark{{kind: Paragraph}}, s.marks...)
	}
	n := normalizer{out: make([]byte, 0, len(s.raw))}
	for i, m := range s.marks {
		end := len(s.raw)
		if i+1 < len(s.marks) {
			end = s.marks[i+1].at
		}
		if span := n.add(s.raw[m.at:end]); span.Start < span.End {
			t.Blocks = append(t.Blocks, Block{Span: span, Kind: m.kind, Level: m.level, Page: m.page})
		}
	}
	t.Content = string(n.out)
}

// Normalize returns text as [Text.Content] has it: in Unicode's form NFC, without characters of category Cf and U+FFFD,
// each run of white space one space, none at the ends. A quote that is normalised can be looked for in a Content.
// Normalizing again may change a text in which a character of category Cf stood between a letter and its accent.
func Normalize(text string) string {
	n := normalizer{out: make([]byte, 0, len(text))}
	n.add([]byte(text))
	return string(n.out)
}

// normalizer writes normalised text.
type normalizer struct {
	out   []byte
	space bool // white space stands before what comes next
}

// add appends raw, set apart by a space from what is there, and returns where it stands.
func (n *normalizer) add(raw []byte) ibid.Span {
	n.space = true
	raw = norm.NFC.Bytes(raw)
	start := -1
	for i := 0; i < len(raw); {
		size, keep := n.character(raw[i:])
		if !keep {
			i += size
			continue
		}
		if n.space && len(n.out) > 0 {
			n.out = append(n.out, ' ')
		}
		n.space = false
		if start < 0 {
			start = len(n.out)
		}
		end := i + size
		for end < len(raw) && ' ' < raw[end] && raw[end] < utf8.RuneSelf {
			end++ // with what is as ordinary, all at once
		}
		n.out = append(n.out, raw[i:end]...)
		i = end
	}
	if start < 0 {
		return ibid.Span{}
	}
	return ibid.Span{Start: start, End: len(n.out)}
}

// character returns how many bytes the first character has, and whether it stays. White space it notes.
func (n *normalizer) character(raw []byte) (size int, keep bool) {
	c := raw[0]
	if c < utf8.RuneSelf {
		if c > ' ' || !unicode.IsSpace(rune(c)) {
			return 1, true
		}
		n.space = true
		return 1, false
	}
	r, size := utf8.DecodeRune(raw)
	switch {
	case 0xa0 < r && r < 0x600 && r != 0xad,
		0x3000 < r && r < 0xfeff: // letters of Europe and East Asia, to which nothing below applies
		return size, true
	case unicode.IsSpace(r):
		n.space = true
		return size, false
	default:
		return size, r != utf8.RuneError && !unicode.Is(unicode.Cf, r)
	}
}

// readPDF reads the text layer of a PDF.
func readPDF(t *Text, b []byte, o *TextOptions) error {
	d, err := pdf.Read(b, cmp.Or(o.Pages, maxPages), cmp.Or(o.Time, maxTime))
	if err != nil {
		return err
	}
	t.Pages = d.Pages
	first(&t.Title, d.Title)
	for who := range strings.SplitSeq(d.Author, ";") {
		t.Authors = addPerson(t.Authors, who)
	}
	first(&t.PublishedAt, pdfDate(d.Created))
	first(&t.Language, d.Language)
	issue := func(code, format string, args ...any) {
		if len(t.Issues) < maxLineIssues {
			t.Issues = append(t.Issues, ibid.Issue{Code: code, Detail: fmt.Sprintf(format, args...)})
		}
	}
	for _, page := range d.Unreadable {
		issue(IssuePageUnreadable, "page %d: its fonts do not say what their glyphs mean", page)
	}
	switch {
	case d.Stopped != nil:
		issue(IssuePagesLeftOut, "reading ended on page %d of %d: %v", d.Read, d.Pages, d.Stopped)
	case d.Read < d.Pages:
		issue(IssuePagesLeftOut, "%d of %d pages were read", d.Read, d.Pages)
	}
	s := stream{}
	kinds := map[pdf.Kind]BlockKind{pdf.Plain: Paragraph, pdf.Heading: Heading, pdf.Item: Item}
	for _, p := range d.Paragraphs {
		s.beginBlock(kinds[p.Kind], p.Level, p.Page)
		s.raw = append(s.raw, p.Text...)
	}
	s.finish(t)
	if t.Content == "" {
		issue(IssueNoTextLayer, "its pages are pictures, or empty; recognise its text (OCR) first")
	}
	low := strings.ToLower(t.Title)
	if low == "" || strings.HasPrefix(low, "microsoft word") || strings.HasPrefix(low, "untitled") ||
		low == "about:blank" { // it has no title, or one that says how it was made
		t.Title = ""
		for _, b := range t.Blocks {
			if b.Kind == Heading && b.Page == 1 {
				first(&t.Title, t.Content[b.Span.Start:b.Span.End])
				break
			}
		}
	}
	return nil
}

// pdfDate returns a date of a PDF (D:20260428100000+02'00') as ISO 8601 writes it; empty: s says none.
func pdfDate(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "D:")
	if len(s) >= 8 {
		if at, err := time.Parse("20060102", s[:8]); err == nil {
			return at.Format(time.DateOnly)
		}
	}
	return isoDate(s)
}
