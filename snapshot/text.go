package snapshot

import (
	"bytes"
	"cmp"
	"context"
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

// The profiles by which a text is made; see the package documentation.
const (
	TextProfile  = "ibid-text/2"
	TextProfile1 = "ibid-text/1" // of earlier versions: read on request, so that what they recorded can be compared
	PDFProfile   = "ibid-pdf/1"  // advisory: programs join glyphs differently
)

// Text is the visible text of one document, with its metadata. It is plain data.
type Text struct {
	// normalised: NFC, no characters of category Cf, one space for each run of white space, none at the ends
	Content string
	Profile string // TextProfile, TextProfile1 or PDFProfile
	// the type it was read as: text/html, application/pdf, text/markdown, text/plain, …; without parameters
	MediaType string
	Charset   string // the encoding of its bytes: utf-8, windows-1252, …; empty for a PDF

	Title       string // empty if the document has none
	Authors     []string
	PublishedAt string // an ISO 8601 date or RFC 3339 time; empty if missing or not a date
	Language    string // a BCP 47 tag
	Site        string
	License     string
	URL         string // canonical URL according to the document

	Blocks []Block // the blocks of Content, in order: they cover it except for single spaces between them
	Pages  int     // of a PDF; 0 if it has none
	// what stands in the place of the document, as far as the document itself tells; empty if nothing
	Obstacle Obstacle
	Issues   []ibid.Issue // problems that are not errors: see the codes below
}

// The codes of a text's issues.
const (
	IssueNoTextLayer    = "no-text-layer"   // a PDF whose pages have no text: scanned, or drawn
	IssuePageUnreadable = "page-unreadable" // a page of a PDF that could not be read; the others were
	IssuePagesLeftOut   = "pages-left-out"  // a PDF with more pages, or more to read, than the limits allow
	IssueLineUnreadable = "line-unreadable" // a line of JSON lines that is not a document; the others were read
	IssueInvalidUTF8    = "invalid-utf8"    // JSON with bytes that are not UTF-8, which are lost
)

// Block is a part of a text that its document sets apart. Content[Span.Start:Span.End] is its text.
type Block struct {
	Span  ibid.Span
	Kind  BlockKind
	Level int // of a heading, from 1
	Page  int // of a PDF, from 1; 0 if there are no pages
	// Apart means that it stands beside what is around it, which goes on after it: an advertisement, a caption, the
	// number of a page.
	Apart bool
}

// BlockKind is the role of a block.
type BlockKind string

// The kinds of a [Block].
const (
	Heading   BlockKind = "heading"
	Paragraph BlockKind = "paragraph"
	Item      BlockKind = "item" // of a list
	Cell      BlockKind = "cell" // of a table; in Markdown and plain text its row
	Code      BlockKind = "code"
)

// TextOptions describe a document. Nil and the zero value mean that nothing is known of it.
type TextOptions struct {
	MediaType string // as declared, with parameters; empty means that it is recognised
	URL       string // its address; helps to recognise its type
	Name      string // its file name; helps to recognise its type
	Profile   string // TextProfile1 to read it as earlier versions did; anything else means TextProfile
	// Context, if not nil, ends the reading of a PDF soon after it has ended itself: the error is then [ErrTimeout], or
	// the text has an issue.
	Context context.Context //nolint:containedctx // options of one call
	Limits
}

// Limits bounds the reading of a document. Zero means the default.
type Limits struct {
	Bytes     int           // of the document; [MaxBytes]
	Pages     int           // of a PDF; 2000
	Time      time.Duration // for a PDF; 10 s
	Documents int           // in one file; 100,000
}

// MaxBytes is the default of Limits.Bytes.
const MaxBytes = 32 << 20

// The other defaults of [Limits].
const (
	maxPages     = 2000
	maxTime      = 10 * time.Second
	maxDocuments = 100_000
)

// The reasons why a document could not be read: errors of [Extract] and [ReadDocuments] wrap one of these.
var (
	ErrEmpty       = errors.New("it is empty")
	ErrTooLarge    = pdf.ErrTooLarge
	ErrUnsupported = errors.New("it is not text")
	ErrEncrypted   = pdf.ErrEncrypted
	ErrTooDeep     = errors.New("it is nested too deeply")
	ErrDamaged     = pdf.ErrDamaged
	ErrTimeout     = pdf.ErrTimeout
)

// Document is one text with its names: a file, or one line of JSON lines.
type Document struct {
	ID    string // its own id, else the file's name, with #n if the file holds several
	Title string
	URL   string
	Text  *Text
	// Source is the document as a source that an answer may cite, with id, title, address, authors, dates and licence.
	// Its Content is empty, as the text is in Text.
	Source ibid.Source
}

// panicked begins the message for a reader that panicked.
const panicked = "its reader panicked"

// Extract returns the visible text of a document. Its type is taken from the media type, unless that is a generic one,
// and from the bytes, the name and the address. A document without visible text is not an error: its Content is empty.
//
// The error wraps one of this package's errors and tells what was wrong: for bytes that are not text, what they look
// like.
func Extract(b []byte, o *TextOptions) (t *Text, err error) {
	defer func() {
		if why := recover(); why != nil { // hostile files must not crash the program
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
	if o.Profile == TextProfile1 {
		t.Profile = TextProfile1
	}
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
	default: // unknown types are read as text, as the bytes do not look binary
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
	if t.Profile != TextProfile1 {
		t.Obstacle = (&pageSigns{}).obstacle(t)
	}
	return t, nil
}

// Hash returns the name of octets in all formats: "sha256:" and the SHA-256 in 64 lower-case hexadecimal digits.
func Hash(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// isoDate returns a date in the form of ISO 8601 or RFC 3339, or "" if s is not a date.
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

// stream is the text of a document before normalisation, with the places where its blocks begin. Each of these follows
// a line break, which composes with nothing, so that the text between two of them can be normalised by itself.
type stream struct {
	raw   []byte
	marks []mark
}

// mark is the start of a block in a stream.
type mark struct {
	at    int
	kind  BlockKind
	level int
	page  int
	apart bool
}

// beginBlock ends the previous block and begins another.
func (s *stream) beginBlock(kind BlockKind, level, page int, apart bool) {
	s.raw = append(s.raw, '\n')
	m := mark{len(s.raw), kind, level, page, apart}
	if n := len(s.marks); n > 0 && s.marks[n-1].at+1 == m.at {
		s.marks[n-1] = m // the last one is empty
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
			t.Blocks = append(t.Blocks, Block{
				Span: span, Kind: m.kind, Level: m.level, Page: m.page, Apart: m.apart,
			})
		}
	}
	t.Content = string(n.out)
}

// Normalize returns text in the form of [Text.Content]: in Unicode's form NFC, without characters of category Cf and
// U+FFFD, with each run of white space replaced by one space, and none at the ends. A normalised quote can be searched
// for in a Content. Normalizing again may change a text in which a character of category Cf was between a letter and
// its accent.
func Normalize(text string) string {
	n := normalizer{out: make([]byte, 0, len(text))}
	n.add([]byte(text))
	return string(n.out)
}

// normalizer writes normalised text.
type normalizer struct {
	out   []byte
	space bool // white space precedes what comes next
}

// add appends raw, separated by a space, and returns its place.
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
			end++ // append printable ASCII all at once
		}
		n.out = append(n.out, raw[i:end]...)
		i = end
	}
	if start < 0 {
		return ibid.Span{}
	}
	return ibid.Span{Start: start, End: len(n.out)}
}

// character returns the length of the first character, and whether it stays. It records white space.
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
		0x3000 < r && r < 0xfeff: // letters of Europe and East Asia, to which the rest does not apply
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
	opts := *o
	if opts.Context == nil {
		opts.Context = context.Background()
	}
	d, err := pdf.Read(opts.Context, b, cmp.Or(o.Pages, maxPages), cmp.Or(o.Time, maxTime))
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
		issue(IssuePageUnreadable, "page %d: its fonts do not map glyphs to characters", page)
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
		s.beginBlock(kinds[p.Kind], p.Level, p.Page, false)
		s.raw = append(s.raw, p.Text...)
	}
	s.finish(t)
	t.setFurniture()
	if t.Content == "" {
		issue(IssueNoTextLayer, "its pages are pictures, or empty; recognise its text (OCR) first")
	}
	low := strings.ToLower(t.Title)
	if low == "" || strings.HasPrefix(low, "microsoft word") || strings.HasPrefix(low, "untitled") ||
		low == "about:blank" { // no title, or one set by the program that made it
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

// pdfDate returns a date of a PDF (D:20260428100000+02'00') in the form of ISO 8601, or "" if s is not a date.
func pdfDate(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "D:")
	if len(s) >= 8 {
		if at, err := time.Parse("20060102", s[:8]); err == nil {
			return at.Format(time.DateOnly)
		}
	}
	return isoDate(s)
}
