package ibid

import (
	"encoding/json"
	"time"
)

// Answer is what a provider answered: its text, the sources it draws on, and which words rest on which source.
//
// It is plain data; a copy shares its slices. ibid never changes an Answer it has handed out: only [Answer.Cite] and
// UnmarshalJSON change one, at the caller's word. As JSON it is the answer document, version 1, with offsets in UTF-8
// bytes; reading takes a document in any unit. See [Document].
type Answer struct {
	ID       string // the provider's own id; empty if it sends none
	Provider string // openai, gemini, …
	Format   string // openai-responses, …: see [Formats]
	Model    string
	Created  time.Time // zero: not said

	// the visible text: the provider's text fields joined by nothing, minus complete leaked private markers
	Text      string
	Parts     []Part     // how Text is divided, in order
	Sources   []Source   // by first use; uncited ones follow
	Citations []Citation // by end, start, arrival; those without a place last

	Queries      []string   // searches the model ran
	ToolCalls    []ToolCall // tools the model called
	Display      []Display  // what the provider demands to be shown with the answer
	Alternatives []*Answer  // further candidates of the same response
	Issues       []Issue    // everything that was odd

	Complete bool   // the format's end mark was seen; a length stop is complete, a broken stream is not
	Finish   Finish // why it ended
	Error    *ProviderError

	// Metadata is what the provider sent besides (retrieval scores, unknown items), by name.
	Metadata map[string]json.RawMessage
}

// Part is one run of Answer.Text: one content part of one message. Parts lie side by side and cover the text.
type Part struct {
	Span
	Kind    PartKind
	Message int // 0-based; renderers break between messages
	Content int // the provider's index of the part in its message
}

// PartKind says what a part is to the reader.
type PartKind string

// The kinds of [Part].
const (
	AnswerPart     PartKind = "answer"
	CommentaryPart PartKind = "commentary" // said on the way to the answer
	RefusalPart    PartKind = "refusal"
)

// Finish says why an answer ended. Empty: unknown.
type Finish string

// The reasons why an answer ends.
const (
	FinishStop    Finish = "stop"
	FinishLength  Finish = "length"
	FinishTool    Finish = "tool" // the model waits for a tool's result
	FinishRefusal Finish = "refusal"
	FinishFilter  Finish = "filter" // stopped by a safety or recitation filter
	FinishError   Finish = "error"
)

// Source is one thing an answer draws on. One source appears once in an answer, however often it is cited.
type Source struct {
	ID   string // unique in its answer only
	Kind SourceKind
	// GlobalID is the provider's id where it means the same source in every answer (an OpenAI file id); empty for
	// positional ids such as doc:0.
	GlobalID    string
	Title       string
	URL         string // where it can be opened; empty: nowhere
	OriginalURL string // as the provider sent it, where URL is a cleaned form of it
	Filename    string
	Site        string
	Authors     []string
	PublishedAt string // an ISO 8601 date or RFC 3339 time; empty: not said, or not in a form that says a date
	RetrievedAt time.Time
	License     string
	Content     string   // what the provider sent of it (the first chunk's text)
	Chunks      []Chunk  // the pieces of it that were retrieved
	Score       *float64 // nil: none given; never invented
	ScoreOrigin ScoreOrigin
	Raw         json.RawMessage // the provider's JSON for it; nil: it had none of its own
}

// SourceKind says what a source is.
type SourceKind string

// The kinds of [Source].
const (
	Web          SourceKind = "web"
	File         SourceKind = "file"
	DocumentKind SourceKind = "document" // given by the caller
	Tool         SourceKind = "tool"     // a tool's result
	Map          SourceKind = "map"
	Image        SourceKind = "image"
)

// ScoreOrigin says where a score came from. Empty when there is no score.
type ScoreOrigin string

// The origins of a score.
const (
	ScoreProvider  ScoreOrigin = "provider"
	ScoreRetriever ScoreOrigin = "retriever"
	ScoreRank      ScoreOrigin = "rank"
	ScoreOverlap   ScoreOrigin = "overlap"
)

// Chunk is one retrieved piece of a source.
type Chunk struct {
	ID      string
	Content string
	Score   *float64
	Locator *Locator
}

// Locator says where in a source something stands. Zero fields are unknown.
type Locator struct {
	Page      int    `json:"page,omitzero"`        // 1-based
	Pages     []int  `json:"pages,omitempty"`      // first and last page, where there are several
	Chunk     string `json:"chunk,omitempty"`      // the provider's id or index of the chunk
	Block     *int   `json:"block,omitempty"`      // 0-based content block
	BlockEnd  *int   `json:"block_end,omitempty"`  // exclusive
	CharStart *int   `json:"char_start,omitempty"` // in the provider's unit
	CharEnd   *int   `json:"char_end,omitempty"`   // exclusive
}

// Citation says that a span of the answer rests on sources. It is legal without a span: then Anchor is [AnchorNone].
type Citation struct {
	ID     string // stable: made from what it says
	Span   Span   // zero when Anchor is AnchorNone
	Covers Covers // what Span is
	// Claim is the statement the citation stands for: Span itself, or for a link or a point the sentence that it
	// closes.
	Claim         Span
	ClaimInferred bool // Claim was found by ibid, not said by the provider
	Refs          []Ref
	Anchor        Anchor
	Origin        Origin
	Support       *Support      // nil: not checked
	Verification  *Verification // nil: not checked
}

// Ref points from a citation to one source.
type Ref struct {
	Source     string   // Source.ID
	Quote      string   // the source's words, if the provider sent them
	Locator    *Locator // nil: the provider gave no place in the source
	Confidence *float64
}

// Covers says what a citation's span is.
type Covers string

// What a span covers.
const (
	CoversClaim Covers = "claim" // the words the source supports
	CoversLink  Covers = "link"  // a visible link or mark that stands for the citation; rendering replaces it
	CoversPoint Covers = "point" // the place after the words the source supports
	CoversBlock Covers = "block" // a whole block of the answer
)

// Anchor says how a citation's span was found.
type Anchor string

// The ways a span is anchored.
const (
	AnchorExact      Anchor = "exact"      // where the provider said, and the words there are the ones it meant
	AnchorUnitFixed  Anchor = "unit-fixed" // where the provider said, once its numbers are read in another unit
	AnchorMoved      Anchor = "moved"      // elsewhere: where the words it meant stand
	AnchorUnverified Anchor = "unverified" // where the provider said; nothing to check it against
	AnchorNone       Anchor = "none"       // nowhere: the provider gave no place, or none that exists
)

// Origin says who made a citation.
type Origin string

// The origins of a [Citation].
const (
	OriginProvider Origin = "provider"
	OriginMarker   Origin = "marker"   // read out of a marker in the text
	OriginInferred Origin = "inferred" // found after the fact
)

// Support says whether a citation's sources say what the answer claims.
type Support struct {
	Label string   `json:"label"` // supported, partial, unsupported, contradicted, unverified
	Score *float64 `json:"score"`
	By    string   `json:"by"` // which checker said it
}

// Verification says what came of fetching a citation's source again.
type Verification struct {
	Status    string    `json:"status"`
	CheckedAt time.Time `json:"checked_at"`
}

// ToolCall is one call of a tool by the model.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Display is something that a provider's terms demand to be shown, unchanged, wherever the answer is shown.
type Display struct {
	Kind string `json:"kind"` // google-search-suggestions
	HTML string `json:"html"` // hostile until sandboxed
}

// Issue is something odd about a response that was read all the same. The codes are listed in docs/answer.md.
type Issue struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// ProviderError is an error with which a provider answered.
type ProviderError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Source returns the source with the given id, or nil.
func (a *Answer) Source(id string) *Source {
	for i := range a.Sources {
		if a.Sources[i].ID == id {
			return &a.Sources[i]
		}
	}
	return nil
}

// Error returns the provider's code and words; the words alone where the code says nothing.
func (e *ProviderError) Error() string {
	if e.Code == "" || e.Code == "error" || e.Code == htmlPage {
		return e.Message
	}
	return e.Code + ": " + e.Message
}

// Placed reports whether the citation has a place in the text.
func (c *Citation) Placed() bool { return c.Anchor != AnchorNone }

// Span is a half-open range of UTF-8 bytes of [Answer.Text]. Both ends always stand on rune boundaries. Start == End is
// a point. The zero value is the point before the text.
type Span struct{ Start, End int }

// Len returns the number of bytes that s covers.
func (s Span) Len() int { return s.End - s.Start }

// Unit is what an offset counts.
type Unit string

// The units of a text offset. The zero Unit means [UTF8].
const (
	UTF8      Unit = "utf-8"      // bytes, as Go slices strings
	CodePoint Unit = "code-point" // Unicode code points, as Python slices strings
	UTF16     Unit = "utf-16"     // UTF-16 code units, as JavaScript slices strings
)

// Units returns all units, the default first.
func Units() []Unit { return []Unit{UTF8, CodePoint, UTF16} }

// Event is one thing that became known while a response was read. Which fields count depends on Kind. What an Event
// points to is the receiver's to keep; it does not change later.
type Event struct {
	Kind      EventKind
	Candidate int       // which alternative it belongs to; 0 is the answer
	Text      string    // EventText: what was added; a corrected EventPart: the part's whole text
	At        int       // where Text begins in the answer's text, in bytes
	Part      *Part     // EventPart: the part that begins or was corrected
	Corrected bool      // EventPart: the provider's last word on the part differs from the text that was told of it
	Source    *Source   // EventSource
	Citation  *Citation // EventCitation: without its ID, which only the final answer has
	Key       string    // EventCitation: a later event of the same key replaces this one
	Withdrawn bool      // EventCitation: the citation is taken back
	Query     string    // EventQuery
	Display   *Display  // EventDisplay
	Issue     *Issue    // EventIssue
	Answer    *Answer   // EventAnswer
}

// EventKind says what an [Event] tells.
type EventKind string

// The kinds of event.
const (
	EventText     EventKind = "text"     // text was added to the answer
	EventPart     EventKind = "part"     // a part of the text begins, or its text was corrected by the provider
	EventSource   EventKind = "source"   // a source was named, or more is known of it (same ID replaces)
	EventCitation EventKind = "citation" // a citation is certain, changed (same Key replaces) or withdrawn
	EventQuery    EventKind = "query"
	EventDisplay  EventKind = "display"
	EventIssue    EventKind = "issue"
	EventAnswer   EventKind = "answer" // the response has ended: the final answer; always the last event
)
