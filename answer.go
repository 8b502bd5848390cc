package ibid

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/wire"
)

// Answer is what a provider answered: its text, the sources it draws on, and which words rest on which source.
//
// It is plain data; a copy shares its slices. ibid never changes an Answer it has handed out: only [Answer.Cite] and
// UnmarshalJSON change one, when the caller calls them. As JSON it is the answer document, version 1, with offsets in
// UTF-8 bytes; reading takes a document in any unit. See [Document].
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

	Activities   []Activity // what the model did besides writing, in the order in which it began
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

// Activity is one thing that a model did besides writing its answer: it reasoned, or it called a tool.
type Activity struct {
	Kind ActivityKind
	At   int    // how many bytes of [Answer.Text] there were when it began
	Text string // ReasoningActivity: what the model thought, as far as the provider shows it; never empty

	// The rest is of a ToolActivity.
	ID     string          // names the call in its answer; made up where the provider sends none
	Name   string          // the tool's
	Server bool            // the provider ran the tool; else the client has to
	Input  json.RawMessage // what the tool was given; nil: the response broke off before that was said
	Output json.RawMessage // what came of it, without what only the provider can read; nil: nothing did, so far
	Error  string          // why the call failed; empty: it did not
}

// ActivityKind says what an [Activity] is.
type ActivityKind string

// The kinds of [Activity].
const (
	ReasoningActivity ActivityKind = "reasoning"
	ToolActivity      ActivityKind = "tool"
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

// Error returns the provider's code and words; the words alone where the code says nothing, or the same.
func (e *ProviderError) Error() string {
	if e.Code == "" || e.Code == wire.UnnamedError || e.Code == htmlPage || e.Code == e.Message {
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

// isBoundary reports whether byte i of text, 0 ≤ i ≤ len(text), begins a character or ends the text. A byte is inside
// of a character only if that character is valid.
func isBoundary(text string, i int) bool {
	if i == len(text) || utf8.RuneStart(text[i]) {
		return true
	}
	for j := i - 1; j >= 0 && i-j < utf8.UTFMax; j-- {
		if utf8.RuneStart(text[j]) {
			_, size := utf8.DecodeRuneInString(text[j:])
			return j+size <= i
		}
	}
	return true
}

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
	Candidate int // which alternative it belongs to; 0 is the answer
	// EventText: what was added; a corrected EventPart: the part's whole text; EventActivity: what was added to the
	// model's reasoning, or to the JSON of a tool's input
	Text      string
	At        int       // where Text begins in the answer's text, in bytes
	Part      *Part     // EventPart: the part that begins or was corrected
	Corrected bool      // EventPart: the provider's last word on the part differs from the text that was told of it
	Source    *Source   // EventSource
	Citation  *Citation // EventCitation: without its ID, which only the final answer has
	Key       string    // EventCitation: a later event of the same key replaces this one
	Withdrawn bool      // EventCitation: the citation is taken back
	Activity  *Activity // EventActivity: what is known of it, without Text; nil: it only goes on
	Index     int       // EventActivity: its place in Answer.Activities
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
	EventActivity EventKind = "activity" // the model reasons or calls a tool, or more is known of that (same Index)
	EventQuery    EventKind = "query"
	EventDisplay  EventKind = "display"
	EventIssue    EventKind = "issue"
	EventAnswer   EventKind = "answer" // the response has ended: the final answer; always the last event
)

// Key names the source in any answer, where [Source.ID] names it only in its own. It is the first of these that the
// source has:
//
//   - its kind, a colon and its URL in a normal form: scheme and host in lower case, without user, default port,
//     fragment
//     and the parameters that only track readers (utm_source, gclid, …);
//   - "#" and the provider's global id;
//   - "sha256:" and 32 hexadecimal digits of the SHA-256 of its content, or of its title and file name if it has none.
//
// An id that counts places in one response, such as doc:0, is never part of a key. Sources about which nothing is known
// have the same key.
func (s *Source) Key() string {
	if s.URL != "" {
		b := append(append(make([]byte, 0, 256), s.Kind...), ':')
		if key := appendNormalURL(b, s.URL); len(key) > len(b) {
			return string(key)
		}
	}
	if s.GlobalID != "" {
		return globalKey + s.GlobalID
	}
	content := s.Content
	if content == "" {
		content = s.Title + "\x00" + s.Filename
	}
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// globalKey begins the keys that are made of a global id.
const globalKey = "#"

// appendNormalURL appends a form of raw that is the same for addresses of the same page. It takes anything, also what
// is no URL, and of its own results it changes nothing.
func appendNormalURL(b []byte, raw string) []byte {
	rest := strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' })
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	scheme := "" // with its colon
	if i := strings.IndexFunc(rest, func(r rune) bool {
		return !isASCIIAlnum(r) && r != '+' && r != '-' && r != '.'
	}); i > 0 && rest[i] == ':' && rest[0] >= 'A' {
		scheme, rest = lowerASCII(rest[:i+1]), rest[i+1:]
	}
	b = append(b, scheme...)
	if strings.HasPrefix(rest, "//") {
		authority, path := rest[2:], ""
		if i := strings.IndexByte(authority, '/'); i >= 0 {
			authority, path = authority[:i], authority[i:]
		}
		b = append(b, "//"...)
		host := authority[strings.LastIndexByte(authority, '@')+1:]
		bracket := strings.LastIndexByte(host, ']') + 1 // the colons of an IPv6 address are before it
		switch name, port, _ := strings.Cut(host[bracket:], ":"); {
		case port == "", port == "80" && scheme == "http:", port == "443" && scheme == "https:":
			host = host[:bracket] + name
		}
		b = append(b, lowerASCII(host)...)
		if path == "" {
			path = "/"
		}
		rest = path
	}
	b = appendEscaped(b, rest)
	separator := byte('?')
	for param := range strings.SplitSeq(query, "&") {
		if strings.IndexByte(param, '%') >= 0 {
			param = string(appendEscaped(nil, param))
		}
		for { // what was added behind a second "?"
			i := strings.LastIndexByte(param, '?')
			if i < 0 || param[i+1:] != "" && !isTracking(param[i+1:]) {
				break
			}
			param = param[:i]
		}
		if param == "" || isTracking(param) {
			continue
		}
		b = appendEscaped(append(b, separator), param)
		separator = '&'
	}
	return b
}

// lowerASCII lets letters beyond ASCII be: whether they are equal in an internationalised name is not for us to say.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// appendEscaped appends s with everything escaped that may not stand in a URL, and unescaped what need not be escaped.
func appendEscaped(b []byte, s string) []byte {
	const digits = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		from := i
		for i < len(s) && s[i] > ' ' && s[i] < 0x7f && s[i] != '%' {
			i++
		}
		b = append(b, s[from:i]...)
		if i == len(s) {
			break
		}
		c, escape := s[i], true
		if c == '%' { // one that escapes nothing stands for itself
			if octet, err := hex.DecodeString(s[i+1 : min(i+3, len(s))]); err == nil && len(octet) == 1 {
				c = octet[0]
				// what means the same escaped and not escaped (RFC 3986, section 2.3)
				escape = !isASCIIAlnum(rune(c)) && strings.IndexByte("-._~", c) < 0
				i += 2
			}
		}
		if !escape {
			b = append(b, c)
			continue
		}
		b = append(b, '%', digits[c>>4], digits[c&15])
	}
	return b
}

// isTracking reports whether the query parameter tells the site who sent the reader, and nothing of which page is
// meant.
func isTracking(param string) bool {
	name, _, _ := strings.Cut(param, "=")
	if len(name) >= 4 && strings.EqualFold(name[:4], "utm_") {
		return true
	}
	switch lowerASCII(name) {
	case "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "srsltid", "_ga", "_gl", // Google
		"fbclid", "igshid", "igsh", // Meta
		// Microsoft, Yandex, TikTok, X, LinkedIn, Pinterest
		"msclkid", "yclid", "ttclid", "twclid", "li_fat_id", "epik",
		"ref_src", "ref_url", // X
		"mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "vero_id": // newsletters
		return true
	}
	return false
}

// openAITag is the parameter that OpenAI adds to the addresses it cites.
const openAITag = "utm_source=openai"

// cleanURL returns raw without the parameter that OpenAI adds, and unchanged otherwise: the form of an address for
// readers.
func cleanURL(raw string) string {
	for from := 0; ; {
		i := strings.Index(raw[from:], openAITag)
		if i < 0 {
			return raw
		}
		i += from
		end := i + len(openAITag)
		before := i > 0 && (raw[i-1] == '?' || raw[i-1] == '&')
		switch {
		case before && (end == len(raw) || raw[end] == '#'), before && raw[end] == '&' && raw[i-1] == '&':
			raw, from = raw[:i-1]+raw[end:], i-1
		case before && raw[end] == '&':
			raw, from = raw[:i]+raw[end+1:], i
		default:
			from = end
		}
	}
}

// Cite adds a citation by hand: that the words of s rest on the sources of refs. An empty s is a point, the place after
// the words. Each ref names one of a.Sources, which must be there already; in the citation they stand in the order of
// a.Sources.
//
// The citation takes its place in the order of a.Citations. Its anchor is [AnchorExact] and its origin
// [OriginInferred], because no provider said it; a caller who reads a provider's own format may change the origin. Its
// claim is s, a point has none.
//
// The error says which of s and refs is bad; then a is unchanged. Cite changes a, so it must not run beside a reader.
func (a *Answer) Cite(s Span, refs ...Ref) error {
	if err := a.checkCite(s, refs); err != nil {
		return fmt.Errorf("citing bytes %d to %d: %w", s.Start, s.End, err)
	}
	c := Citation{
		Span: s, Covers: CoversClaim, Claim: s,
		Refs: slices.Clone(refs), Anchor: AnchorExact, Origin: OriginInferred,
	}
	if s.Len() == 0 {
		c.Covers, c.Claim = CoversPoint, Span{}
	}
	slices.SortStableFunc(
		c.Refs,
		func(x, y Ref) int { return cmp.Compare(a.sourceIndex(x.Source), a.sourceIndex(y.Source)) },
	)
	c.ID = citationID(a.Text, &c, func(id string) string { return a.Source(id).Key() })
	taken := func(other Citation) bool { return other.ID == c.ID }
	for id, n := c.ID, 2; slices.ContainsFunc(a.Citations, taken); n++ {
		c.ID = id + "-" + strconv.Itoa(n)
	}
	at := len(a.Citations)
	for at > 0 && compareCitations(&a.Citations[at-1], &c) > 0 {
		at--
	}
	a.Citations = slices.Insert(a.Citations, at, c)
	return nil
}

func (a *Answer) checkCite(s Span, refs []Ref) error {
	if why := badSpan(a.Text, s); why != "" {
		return errors.New(why)
	}
	if len(refs) == 0 {
		return errors.New("no source is given")
	}
	for _, ref := range refs {
		if a.Source(ref.Source) == nil {
			return fmt.Errorf("the answer has no source %q", ref.Source)
		}
		if ref.Confidence != nil && !isFinite(*ref.Confidence) {
			return fmt.Errorf("the confidence in source %q is no number", ref.Source)
		}
	}
	return nil
}

// sourceIndex returns the place of the source with the given id in a.Sources, or -1.
func (a *Answer) sourceIndex(id string) int {
	return slices.IndexFunc(a.Sources, func(s Source) bool { return s.ID == id })
}

// badSpan says what keeps s from being a span of text; empty: nothing.
func badSpan(text string, s Span) string {
	switch {
	case s.Start < 0 || s.End > len(text):
		return "the text has " + strconv.Itoa(len(text)) + " bytes"
	case s.End < s.Start:
		return "the end is before the start"
	case !isBoundary(text, s.Start), !isBoundary(text, s.End):
		return "a character is cut"
	default:
		return ""
	}
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// compareCitations orders citations by end and start, those without a place last.
func compareCitations(x, y *Citation) int {
	if x.Placed() && y.Placed() {
		return cmp.Or(cmp.Compare(x.Span.End, y.Span.End), cmp.Compare(x.Span.Start, y.Span.Start))
	}
	switch {
	case x.Placed():
		return -1
	case y.Placed():
		return 1
	default:
		return 0
	}
}

// sourceIndexes returns where the sources stand in a.Sources, by id; of two with one id, where the first does.
func (a *Answer) sourceIndexes() map[string]int {
	index := make(map[string]int, len(a.Sources))
	for i := range a.Sources {
		if _, taken := index[a.Sources[i].ID]; !taken {
			index[a.Sources[i].ID] = i
		}
	}
	return index
}

// firstUse returns the indices in a.Sources of those that are cited, in the order in which the citations use them
// first. Numbers follow it, wherever they are shown.
func (a *Answer) firstUse() []int {
	if len(a.Citations) == 0 {
		return nil
	}
	index := a.sourceIndexes()
	cites, byPlace := a.Citations, func(x, y Citation) int { return compareCitations(&x, &y) }
	if !slices.IsSortedFunc(cites, byPlace) {
		cites = slices.Clone(cites)
		slices.SortStableFunc(cites, byPlace)
	}
	used := make([]int, 0, len(a.Sources))
	for i := range cites {
		for _, ref := range cites[i].Refs {
			if i, known := index[ref.Source]; known {
				used = append(used, i)
				delete(index, ref.Source)
			}
		}
	}
	return used
}

// order puts the citations of a in order, its sources by first use, and the refs of each citation by source. What is
// equal keeps its order, so that sources nobody cites follow in the order in which they came. It is its own fixed
// point.
func order(a *Answer) {
	slices.SortStableFunc(a.Citations, func(x, y Citation) int { return compareCitations(&x, &y) })
	used := a.firstUse()
	sorted := true
	for k, i := range used {
		sorted = sorted && k == i
	}
	if !sorted {
		sources, cited := make([]Source, 0, len(a.Sources)), make([]bool, len(a.Sources))
		for _, i := range used {
			cited[i] = true
			sources = append(sources, a.Sources[i])
		}
		for i := range a.Sources {
			if !cited[i] {
				sources = append(sources, a.Sources[i])
			}
		}
		a.Sources = sources
	}
	sortRefs(a)
}

// sortRefs orders the refs of each citation by source. Refs that are in order already are left alone, others are copied
// first: somebody else may hold them.
func sortRefs(a *Answer) {
	var index map[string]int // made once a citation has several refs
	at := func(ref Ref) int {
		if index == nil {
			index = a.sourceIndexes()
		}
		if i, known := index[ref.Source]; known {
			return i
		}
		return len(a.Sources)
	}
	bySource := func(x, y Ref) int { return cmp.Compare(at(x), at(y)) }
	for i := range a.Citations {
		if c := &a.Citations[i]; !slices.IsSortedFunc(c.Refs, bySource) {
			c.Refs = slices.Clone(c.Refs)
			slices.SortStableFunc(c.Refs, bySource)
		}
	}
}

// assignIDs gives an id to every citation of a that has none. KeyOf is [Source.Key], or as good.
func assignIDs(a *Answer, keyOf func(*Source) string) {
	taken := make(map[string]bool, len(a.Citations))
	for i := range a.Citations {
		taken[a.Citations[i].ID] = true
	}
	sources := make(map[string]*Source, len(a.Sources))
	for i := range a.Sources {
		sources[a.Sources[i].ID] = &a.Sources[i]
	}
	keys := make(map[string]string, len(a.Sources))
	keyOfID := func(id string) string {
		if keys[id] == "" {
			keys[id] = keyOf(sources[id])
		}
		return keys[id]
	}
	again := map[string]int{} // how many times an id was asked for again
	for i := range a.Citations {
		c := &a.Citations[i]
		if c.ID != "" {
			continue
		}
		c.ID = citationID(a.Text, c, keyOfID)
		for id := c.ID; taken[c.ID]; {
			again[id]++
			c.ID = id + "-" + strconv.Itoa(again[id]+1)
		}
		taken[c.ID] = true
	}
}

// maxIDWords bounds how many bytes of a span go into an id: the span's numbers tell longer ones apart.
const maxIDWords = 256

// citationID returns an id made of what c says: where it stands, the words there, the claim if the provider named it,
// and of each ref the source's key, the quote and the place in the source. What ibid found out about it (anchor,
// inferred claim, support) stays out, so that the id survives a better ibid. keyOf gives the key of the source with an
// id.
func citationID(text string, c *Citation, keyOf func(id string) string) string {
	b := make([]byte, 0, 2*maxIDWords)
	field := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	span := func(s Span) {
		b = binary.AppendVarint(b, int64(s.Start))
		b = binary.AppendVarint(b, int64(s.End))
		words := ""
		if badSpan(text, s) == "" {
			words = text[s.Start:min(s.End, s.Start+maxIDWords)]
		}
		field(words)
	}
	field(string(c.Covers))
	if c.Placed() {
		span(c.Span)
	}
	if !c.ClaimInferred && c.Claim != c.Span {
		span(c.Claim)
	}
	for i := range c.Refs {
		ref := &c.Refs[i]
		field(keyOf(ref.Source))
		field(ref.Quote)
		if l := ref.Locator; l != nil {
			field(l.Chunk)
			first, last := 0, 0
			if len(l.Pages) > 0 {
				first, last = l.Pages[0], l.Pages[len(l.Pages)-1]
			}
			for _, n := range []int{
				l.Page, first, last, orNone(l.Block), orNone(l.BlockEnd), orNone(l.CharStart), orNone(l.CharEnd),
			} {
				b = binary.AppendVarint(b, int64(n))
			}
		}
	}
	sum := sha256.Sum256(b)
	return string(hex.AppendEncode([]byte("c-"), sum[:6]))
}

// orNone returns *p, or -1 for nil.
func orNone(p *int) int {
	if p == nil {
		return -1
	}
	return *p
}
