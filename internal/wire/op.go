package wire

// Op is one neutral operation. An Op and everything it points to is valid only during the call that receives it.
type Op struct {
	Kind    opKind
	Part    Part     // Text, Final, PartEnd, Reasoning, Markers, Finish and those of tools (its Candidate)
	Text    []byte   // Text, Final, Reasoning, ToolInput: unescaped UTF-8; lone surrogates arrive as three-byte WTF-8
	ASCII   bool     // Text: Text is known to be ASCII
	Server  bool     // Tool: the provider runs it
	Hidden  bool     // Tool: it is not listed among the answer's tool calls
	Name    string   // Head, Query, Finish, Withdraw, Meta, Tool…, Display, Issue: see Kind
	Cut     bool     // Final: the document breaks off in Text, which may be only the beginning
	Open    bool     // End: only the end of the input confirms it, since the next document may continue
	More    string   // the second word of Head, Tool, ToolOutput, Display, Issue, Error
	Raw     []byte   // Meta, Issue, ToolReady, ToolOutput: the provider's JSON
	Source  *Source  // SourceOp
	Cite    *Cite    // CiteOp
	Markers *Markers // MarkersOp
}

// opKind determines which fields of an [Op] count.
type opKind uint8

// The operations. A parser may send them in any order; the fold of package ibid sorts out what belongs together.
const (
	Text       opKind = iota + 1 // Text was added to the visible text of Part
	Final                        // Text is the whole visible text of Part, as the provider repeats it at the end
	PartBegin                    // Part begins, still without text
	PartEnd                      // Part is closed: its block citations now have their span
	SourceOp                     // Source was named; the same Key again adds what was missing, and its chunk
	CiteOp                       // a citation; the same non-empty Key again replaces the former
	Withdraw                     // the citation with key Name is withdrawn
	MarkersOp                    // [n]-like marks in the text of Part.Candidate stand for Markers.Sources
	Query                        // Name is a search query the model ran
	Reasoning                    // Text was added to the model's reasoning; Part distinguishes its pieces
	Tool                         // a tool call: Name is its id, More the tool's name
	ToolInput                    // Text was added to the JSON that is the input of the call Name
	ToolReady                    // the input of the call Name is Raw or, without Raw, what ToolInput added
	ToolOutput                   // the call Name returned Raw, or failed for the reason More
	Display                      // the provider requires something to be shown: Name is the kind, More the HTML
	// Head sets a field of the answer: Name is the field (HeadID, HeadModel, HeadCreated, HeadProvider, HeadFormat),
	// More its value; empty values are ignored
	Head
	// Finish means that candidate Part.Candidate ended for reason Name (finishStop …); it does not end the response
	Finish
	End   // the format's end mark was seen: the response is complete
	Error // the provider answered with an error: Name is its code, More its message
	Issue // something odd: Name is the code, More the detail, Raw the JSON it is about
	// Meta is other metadata of the provider: Name is its name, Raw its JSON; the last one of a name counts
	Meta
)

// The fields that a Head operation may set.
const (
	HeadID       = "id"
	HeadModel    = "model"
	HeadCreated  = "created" // RFC 3339, or a decimal Unix time in seconds
	HeadProvider = "provider"
	HeadFormat   = "format"
)

// The reasons of a Finish operation.
const (
	finishStop    = "stop"
	finishLength  = "length"
	finishTool    = "tool"
	finishRefusal = "refusal"
	finishFilter  = "filter"
	finishError   = "error"
)

// Part identifies one run of visible text: a content part of a message of a candidate. The zero value is the first.
type Part struct {
	Candidate int // which alternative answer
	Message   int // which message (OpenAI: output item) of it
	Content   int // which content part of the message
	Kind      partKind
}

// partKind is what a part's text is to the reader.
type partKind uint8

// The kinds of part.
const (
	AnswerPart partKind = iota
	CommentaryPart
	RefusalPart
)

// Source is one thing an answer draws on, as a provider describes it.
type Source struct {
	Key string // identifies it in citations; unique in the response
	ID  string // the id shown to users; if empty, made from Kind and a counter
	// GlobalID is the provider's id if it means the same source in every answer (an OpenAI file id); empty for
	// positional ids such as doc:0.
	GlobalID string
	// Label is what marks in the answer's text call it by, without brackets: "1", "doc-a". If no source of the list has
	// one, they count the list from 1.
	Label       string
	Kind        string // kindWeb …
	Title       string
	URL         string // as it should be opened
	OriginalURL string // as the provider sent it, if URL differs
	Filename    string
	Site        string
	Authors     []string
	PublishedAt string // as sent
	License     string
	Content     string // what the provider sent of its text
	ChunkID     string
	Score       *float64
	Locator     Locator
	Raw         []byte // the provider's JSON for it
}

// The kinds of source.
const (
	kindWeb      = "web"
	kindFile     = "file"
	kindDocument = "document"
	kindTool     = "tool"
	kindMap      = "map"
	kindImage    = "image"
)

// Locator is a place in a source. Zero fields are unknown.
type Locator struct {
	Page      int    // 1-based
	LastPage  int    // inclusive; 0 if there is only Page
	Chunk     string // the provider's chunk id or index
	Block     *int   // 0-based content block
	LastBlock *int   // inclusive
	CharStart *int   // in the provider's unit, half-open
	CharEnd   *int
}

// Cite is one citation in the provider's own units.
type Cite struct {
	Key  string // identifies it for replacement and withdrawal; if empty, it is never replaced
	Part Part   // the part whose text Start and End count
	// Base is where offset 0 is.
	Base  Base
	Unit  Unit
	Start int
	End   int // exclusive: inclusive providers are normalised by their parser
	// Shifts are added to Start and End, in the same unit: the first is what the provider most likely means, the others
	// are tried in order if the text there is not Quote. Empty means 0 alone.
	Shifts []int
	Covers Covers
	// Sentence means that End is only a bound: the citation covers the first sentence from Start on.
	Sentence bool
	Quote    string // the answer's own words, if the provider repeats them
	URL      string // for Link: the address the visible link must contain
	Origin   string // OriginMarker, or empty if the provider sent it
	Refs     []Ref
}

// OriginMarker is the origin of citations that were read from the text.
const OriginMarker = "marker"

// Ref points from a citation to one source.
type Ref struct {
	Source     string // Source.Key
	Quote      string // the source's words
	Locator    Locator
	Confidence *float64
}

// Base is where a citation's offsets count from.
type Base uint8

// The bases.
const (
	PartBase    Base = iota // the start of Cite.Part
	AnswerBase              // the start of the candidate's whole visible text
	MessageBase             // the start of the first part of Cite.Part's message
)

// Unit is what a citation's offsets count.
type Unit uint8

// The units. Block and Here carry no offsets.
const (
	Bytes Unit = iota
	CodePoints
	UTF16
	Block   // the whole of Cite.Part, known when the part is closed
	Here    // the end of the candidate's text so far: a point
	Nowhere // the provider gave no place
)

// Covers is what a citation's span is.
type Covers uint8

// What a span may cover.
const (
	Claim     Covers = iota // the words the source supports
	Link                    // a visible link or mark standing for the citation: renderers replace it
	Point                   // a place after the words the source supports; Start == End
	BlockSpan               // a whole block of text
)

// Markers describes the list that marks in the visible text refer to: the provider's, or one of the prompt.
type Markers struct {
	Style MarkerStyle
	// Links means that links in the text whose address is that of a source are its citations: nothing else places them.
	Links bool
	// Refs are the list, in order. A mark calls one by the Label of its source, if any source has one, else by its
	// number from 1. One without a Source points to nothing.
	Refs []Ref
	// Names means that the ids, file names and titles of sources in brackets are marks, and links to their addresses.
	Names bool
	// Round means that numbers in parentheses are marks: (1).
	Round bool
}

// MarkerStyle is the shape of an inline marker.
type MarkerStyle uint8

// The marker shapes.
const (
	bracketNumber MarkerStyle = iota // [1], and all the others
	DocNumber                        // [doc1] only
)

// The codes of issues that parsers find. docs/answer.md describes them for readers.
const (
	// IssueUnknownType is an item, annotation or event of an unknown type; its JSON is kept.
	IssueUnknownType    = "unknown-type"
	IssueBadNumber      = "bad-number"                  // an offset or index that is not a non-negative integer
	IssueWrongType      = "wrong-type"                  // a member of the wrong JSON type
	IssueChunkIndex     = "chunk-index-out-of-range"    // a citation names a chunk past the list
	IssueDocumentIndex  = "document-index-out-of-range" // a citation names a document past those given
	IssueNotRepeated    = "citation-not-repeated"       // a later list lacks what a former one cited; kept
	IssueSourceless     = "citation-without-source"     // a citation names no source at all; left out
	IssueDuplicateEvent = "duplicate-event"             // an event came twice; the second was left out
	IssueSourceFailed   = "source-not-retrieved"        // the provider could not read a source (detail: why)
	IssueLimit          = "limit-reached"               // more of something than is kept (detail: of what)
	// IssueUnread is a member that looks like sources or citations and is not read; its JSON is kept.
	IssueUnread = "unread-sources"
)
