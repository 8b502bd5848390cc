package snapshot

import (
	"errors"
	"time"

	"github.com/ibidhq/ibid"
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
	Bytes     int           // of the document; MaxBytes
	Pages     int           // of a PDF; MaxPages
	Time      time.Duration // for a PDF; MaxTime
	Documents int           // that one file may hold; MaxDocuments
}

// The defaults of [Limits], and what cannot be set.
const (
	MaxBytes     = 32 << 20
	MaxPages     = 2000
	MaxTime      = 20 * time.Second
	MaxDocuments = 100_000
)

// Why a document could not be read: errors of [Extract] and [ReadDocuments] wrap one of these.
var (
	ErrEmpty       = errors.New("it is empty")
	ErrTooLarge    = errors.New("it is too large")
	ErrUnsupported = errors.New("it is no text")
	ErrEncrypted   = errors.New("it is encrypted")
	ErrTooDeep     = errors.New("it is nested too deeply")
	ErrDamaged     = errors.New("it is damaged")
	ErrTimeout     = errors.New("it takes too long to read")
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
