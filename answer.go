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

// Answer is a provider's answer: its text, its sources, and which words rest on which source.
//
// It is plain data; a copy shares its slices. ibid never modifies an Answer it has returned; only [Answer.Cite] and
// UnmarshalJSON do, when the caller calls them. Its JSON form is the answer document, version 1, with offsets in UTF-8
// bytes; UnmarshalJSON accepts a document in any unit. See [Document].
type Answer struct {
	ID       string // the provider's own id; empty if it sent none
	Provider string // openai, gemini, …
	Format   string // openai-responses, …: see [Formats]
	Model    string
	Created  time.Time // zero if unknown

	// the visible text: the provider's text fields concatenated, without complete private markers that leaked into them
	Text      string
	Parts     []Part     // how Text is divided, in order
	Sources   []Source   // in order of first use, then the uncited ones
	Citations []Citation // sorted by end, start and arrival; those without a place last

	Activities   []Activity // reasoning and tool calls, in the order they began
	Queries      []string   // searches the model ran
	ToolCalls    []ToolCall // tools the model called
	Display      []Display  // what the provider requires to be shown with the answer
	Alternatives []*Answer  // further candidates of the same response
	Issues       []Issue    // everything unusual about the response

	Complete bool   // the format's end mark was seen: true at a length limit, false for a broken stream
	Finish   Finish // why the answer ended
	Error    *ProviderError

	// Metadata holds what else the provider sent (retrieval scores, unknown items), by name.
	Metadata map[string]json.RawMessage
}

// Part is one run of Answer.Text: one content part of one message. Parts are adjacent and cover the text.
type Part struct {
	Span
	Kind    PartKind
	Message int // 0-based; renderers break between messages
	Content int // the provider's index of the part in its message
}

// PartKind is the role of a part.
type PartKind string

// The kinds of [Part].
const (
	AnswerPart     PartKind = "answer"
	CommentaryPart PartKind = "commentary" // written before the answer proper
	RefusalPart    PartKind = "refusal"
)

// Finish is the reason why an answer ended; empty if unknown.
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

// Activity is something a model did besides writing its answer: reasoning or a tool call.
type Activity struct {
	Kind ActivityKind
	At   int    // length of [Answer.Text] in bytes when it began
	Text string // ReasoningActivity: the reasoning, as far as the provider shows it; never empty

	// The remaining fields belong to a ToolActivity.
	ID     string          // unique in the answer; generated if the provider sends none
	Name   string          // name of the tool
	Server bool            // the provider ran the tool; if false, the client has to
	Input  json.RawMessage // the tool's input; nil if the response broke off before it
	Output json.RawMessage // the tool's output, without what only the provider can read; nil if there is none yet
	Error  string          // why the call failed; empty if it did not
}

// ActivityKind is the kind of an [Activity].
type ActivityKind string

// The kinds of [Activity].
const (
	ReasoningActivity ActivityKind = "reasoning"
	ToolActivity      ActivityKind = "tool"
)

// Source is a source of an answer. It appears once in the answer, however often it is cited.
type Source struct {
	ID   string // unique only within its answer
	Kind SourceKind
	// GlobalID is the provider's id if it identifies the source in every answer (an OpenAI file id); empty for
	// positional ids such as doc:0.
	GlobalID    string
	Title       string
	URL         string // where it can be opened; empty if nowhere
	OriginalURL string // as the provider sent it, if URL is a cleaned form of it
	Filename    string
	Site        string
	Authors     []string
	PublishedAt string // an ISO 8601 date or RFC 3339 time; empty if unknown or not readable as a date
	RetrievedAt time.Time
	License     string
	Content     string   // the part of it that the provider sent (the first chunk's text)
	Chunks      []Chunk  // the retrieved pieces
	Score       *float64 // nil if the provider gave none; never invented
	ScoreOrigin ScoreOrigin
	Raw         json.RawMessage // the provider's JSON for it; nil if it had none of its own
}

// SourceKind is the kind of a [Source].
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

// ScoreOrigin is where a score came from; empty if there is no score.
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

// Locator is a place in a source. Zero fields are unknown.
type Locator struct {
	Page      int    `json:"page,omitzero"`        // 1-based
	Pages     []int  `json:"pages,omitempty"`      // first and last page, if there are several
	Chunk     string `json:"chunk,omitempty"`      // the provider's id or index of the chunk
	Block     *int   `json:"block,omitempty"`      // 0-based content block
	BlockEnd  *int   `json:"block_end,omitempty"`  // exclusive
	CharStart *int   `json:"char_start,omitempty"` // in the provider's unit
	CharEnd   *int   `json:"char_end,omitempty"`   // exclusive
}

// Citation states that a span of the answer rests on sources. It may have no span: then Anchor is [AnchorNone].
type Citation struct {
	ID     string // stable: derived from the citation's content
	Span   Span   // zero when Anchor is AnchorNone
	Covers Covers // what Span is
	// Claim is the statement that the citation supports: Span itself or, for a link or a point, the sentence that it
	// closes.
	Claim         Span
	ClaimInferred bool // Claim was determined by ibid, not given by the provider
	Refs          []Ref
	Anchor        Anchor
	Origin        Origin
	Support       *Support      // nil if not checked
	Verification  *Verification // nil if not checked
}

// Ref points from a citation to one source.
type Ref struct {
	Source     string   // Source.ID
	Quote      string   // the source's words, if the provider sent them
	Locator    *Locator // nil if the provider gave no place in the source
	Confidence *float64
}

// Covers is what a citation's span marks.
type Covers string

// The values of [Covers].
const (
	CoversClaim Covers = "claim" // the words the source supports
	CoversLink  Covers = "link"  // a visible link or mark that represents the citation; rendering replaces it
	CoversPoint Covers = "point" // the place after the words the source supports
	CoversBlock Covers = "block" // a whole block of the answer
)

// Anchor is how a citation's span was found.
type Anchor string

// The values of [Anchor].
const (
	AnchorExact      Anchor = "exact"      // where the provider said, and the text there matches
	AnchorUnitFixed  Anchor = "unit-fixed" // where the provider said, once its offsets are read in another unit
	AnchorMoved      Anchor = "moved"      // elsewhere: where the cited words actually are
	AnchorUnverified Anchor = "unverified" // where the provider said; nothing to check it against
	AnchorNone       Anchor = "none"       // nowhere: the provider gave no place, or one that does not exist
)

// Origin is where a citation came from.
type Origin string

// The origins of a [Citation].
const (
	OriginProvider Origin = "provider"
	OriginMarker   Origin = "marker"   // read from a marker in the text
	OriginInferred Origin = "inferred" // found after the fact
)

// Support is the result of checking whether a citation's sources say what the answer claims.
type Support struct {
	Label string   `json:"label"` // supported, differs, unjudged, unsupported, contradicted, unchecked
	Score *float64 `json:"score"` // how close the sources are to the claim, in [0, 1]; nil if the checker has no number
	By    string   `json:"by"`    // the checker that decided it
}

// Verification is the result of fetching a citation's source again.
type Verification struct {
	Status    string    `json:"status"`
	CheckedAt time.Time `json:"checked_at"`
}

// ToolCall is one call of a tool by the model.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Display is content that a provider's terms require to be shown, unchanged, wherever the answer is shown.
type Display struct {
	Kind string `json:"kind"` // google-search-suggestions
	HTML string `json:"html"` // untrusted: show it in a sandbox only
}

// Issue reports something unusual about a response that could still be read. The codes are listed in docs/answer.md.
type Issue struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// ProviderError is an error that a provider returned instead of an answer, or within one.
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

// Error returns the provider's code and message, or only the message if the code adds nothing.
func (e *ProviderError) Error() string {
	if e.Code == "" || e.Code == wire.UnnamedError || e.Code == htmlPage || e.Code == e.Message {
		return e.Message
	}
	return e.Code + ": " + e.Message
}

// Placed reports whether the citation has a place in the text.
func (c *Citation) Placed() bool { return c.Anchor != AnchorNone }

// Span is a half-open range of UTF-8 bytes of [Answer.Text]. Both ends are always on rune boundaries. A span with Start
// == End is a point. The zero value is the point before the text.
type Span struct{ Start, End int }

// Len returns the number of bytes that s covers.
func (s Span) Len() int { return s.End - s.Start }

// isBoundary reports whether byte i of text, 0 ≤ i ≤ len(text), begins a character or ends the text. Only bytes of a
// valid character are inside one.
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

// Event reports something that became known while a response was read. Which fields are set depends on Kind. The
// receiver may keep what an Event points to; it does not change later.
type Event struct {
	Kind      EventKind
	Candidate int // the alternative it belongs to; 0 is the answer
	// EventText: the added text; a corrected EventPart: the whole text of the part; EventActivity: what was added to
	// the model's reasoning, or to the JSON of a tool's input
	Text      string
	At        int       // where Text begins in the answer's text, in bytes
	Part      *Part     // EventPart: the part that began or was corrected
	Corrected bool      // EventPart: the provider's final text of the part differs from the text sent before
	Source    *Source   // EventSource
	Citation  *Citation // EventCitation: without ID, which is set only in the final answer
	Key       string    // EventCitation: a later event with the same key replaces this one
	Withdrawn bool      // EventCitation: the citation is withdrawn
	Activity  *Activity // EventActivity: what is known so far, without Text; nil if only Text was added
	Index     int       // EventActivity: its index in Answer.Activities
	Query     string    // EventQuery
	Display   *Display  // EventDisplay
	Issue     *Issue    // EventIssue
	Answer    *Answer   // EventAnswer
}

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of event.
const (
	EventText     EventKind = "text"     // text was added to the answer
	EventPart     EventKind = "part"     // a part of the text began, or the provider corrected its text
	EventSource   EventKind = "source"   // a source was named, or more is known about it (same ID replaces)
	EventCitation EventKind = "citation" // a citation became certain, changed (same Key replaces) or was withdrawn
	EventActivity EventKind = "activity" // the model reasons or calls a tool, or more is known about that (same Index)
	EventQuery    EventKind = "query"
	EventDisplay  EventKind = "display"
	EventIssue    EventKind = "issue"
	EventAnswer   EventKind = "answer" // the response ended: the final answer; always the last event
)

// Key identifies the source across answers, while [Source.ID] is unique only in its own. It is the first of these that
// the source has:
//
//   - its kind, a colon and its URL in a normal form: scheme and host in lower case, without user, default port,
//     fragment, or tracking parameters (utm_source, gclid, …). http is https there, and www. before the host and the
//     slash after a path are left out: whoever answers to both answers the same;
//   - "#" and the provider's global id;
//   - "sha256:" and 32 hexadecimal digits of the SHA-256 of its content, or of its title and file name if it has none.
//
// A positional id, such as doc:0, is never part of a key. All sources about which nothing is known have the same key.
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

// globalKey is the prefix of keys made from a global id.
const globalKey = "#"

// appendNormalURL appends a normal form of raw, equal for addresses of the same page. It accepts any string, URL or
// not, and is idempotent.
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
	start := len(b)
	b = append(b, scheme...)
	if strings.HasPrefix(rest, "//") {
		authority, path := rest[2:], ""
		if i := strings.IndexByte(authority, '/'); i >= 0 {
			authority, path = authority[:i], authority[i:]
		}
		b = append(b, "//"...)
		host := lowerASCII(authority[strings.LastIndexByte(authority, '@')+1:])
		bracket := strings.LastIndexByte(host, ']') + 1 // the colons of an IPv6 address are before it
		web := scheme == "http:" || scheme == "https:"
		switch name, port, _ := strings.Cut(host[bracket:], ":"); {
		case port == "", port == "80" && scheme == "http:", port == "443" && scheme == "https:":
			host = host[:bracket] + name
			if scheme == "http:" {
				b = append(b[:start], "https://"...)
			}
		}
		for web && strings.HasPrefix(host, "www.") && strings.Count(host, ".") > 1 {
			host = host[len("www."):]
		}
		b = append(b, host...)
		if web {
			path = strings.TrimRight(path, "/")
		}
		rest = cmp.Or(path, "/")
	}
	b = appendEscaped(b, rest)
	separator := byte('?')
	for param := range strings.SplitSeq(query, "&") {
		if strings.IndexByte(param, '%') >= 0 {
			param = string(appendEscaped(nil, param))
		}
		for { // drop what was added after a second "?"
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

// lowerASCII leaves letters beyond ASCII alone: it does not decide whether they are equal in an internationalised name.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// appendEscaped appends s, escaping whatever is not allowed in a URL and unescaping whatever need not be escaped.
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
		if c == '%' { // a % that escapes nothing is literal
			if octet, err := hex.DecodeString(s[i+1 : min(i+3, len(s))]); err == nil && len(octet) == 1 {
				c = octet[0]
				// unreserved characters mean the same escaped or not (RFC 3986, section 2.3)
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

// isTracking reports whether the query parameter only tells the site where the reader came from.
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

// cleanURL returns raw without the parameter that OpenAI adds: the form of an address for readers.
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

// Cite adds a citation: the words of s rest on the sources of refs. An empty s is a point, the place after the words.
// Each ref names an existing source in a.Sources; the citation's refs are sorted in the order of a.Sources.
//
// The citation is inserted at its place in the order of a.Citations. Its anchor is [AnchorExact] and its origin
// [OriginInferred], because no provider made it; a caller that reads a provider's own format may change the origin. Its
// claim is s; a point has none.
//
// The error says what is wrong with s or refs; a is then unchanged. Cite must not be called while a is being read.
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
	slices.SortStableFunc(c.Refs, a.bySource())
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
			return fmt.Errorf("the confidence in source %q is not a number", ref.Source)
		}
	}
	return nil
}

// badSpan returns why s is not a valid span of text, or "" if it is.
func badSpan(text string, s Span) string {
	switch {
	case s.Start < 0 || s.End > len(text):
		return "the text has " + strconv.Itoa(len(text)) + " bytes"
	case s.End < s.Start:
		return "the end is before the start"
	case !isBoundary(text, s.Start), !isBoundary(text, s.End):
		return "not on a character boundary"
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

// sourceIndexes returns the indexes in a.Sources by source id. If several sources share an id, the first counts.
func (a *Answer) sourceIndexes() map[string]int {
	index := make(map[string]int, len(a.Sources))
	for i := range a.Sources {
		if _, taken := index[a.Sources[i].ID]; !taken {
			index[a.Sources[i].ID] = i
		}
	}
	return index
}

// firstUse returns the indexes in a.Sources of the cited sources, in the order in which citations first use them.
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

// order sorts the citations of a, its sources by first use, and the refs of each citation by source. The sorts are
// stable, so uncited sources follow in the order in which they came. It is idempotent.
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

// bySource returns a function that compares refs by the place of their source in a.Sources; unknown ones come last. The
// index is made once a list has several refs.
func (a *Answer) bySource() func(x, y Ref) int {
	var index map[string]int
	at := func(ref Ref) int {
		if index == nil {
			index = a.sourceIndexes()
		}
		if i, known := index[ref.Source]; known {
			return i
		}
		return len(a.Sources)
	}
	return func(x, y Ref) int { return cmp.Compare(at(x), at(y)) }
}

// sortRefs sorts the refs of each citation by source. It copies a slice before reordering it, as others may share it.
func sortRefs(a *Answer) {
	bySource := a.bySource()
	for i := range a.Citations {
		if c := &a.Citations[i]; !slices.IsSortedFunc(c.Refs, bySource) {
			c.Refs = slices.Clone(c.Refs)
			slices.SortStableFunc(c.Refs, bySource)
		}
	}
}

// assignIDs gives an id to every citation of a that has none. keyOf is [Source.Key] or equivalent.
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
	collisions := map[string]int{} // number of collisions by id
	for i := range a.Citations {
		c := &a.Citations[i]
		if c.ID != "" {
			continue
		}
		c.ID = citationID(a.Text, c, keyOfID)
		for id := c.ID; taken[c.ID]; {
			collisions[id]++
			c.ID = id + "-" + strconv.Itoa(collisions[id]+1)
		}
		taken[c.ID] = true
	}
}

// maxIDWords is how many bytes of a span's text go into an id: longer spans are told apart by their offsets.
const maxIDWords = 256

// citationID returns an id derived from the content of c: its span, the words there, the claim if the provider gave it,
// and each ref's source key, quote and locator. What ibid determined itself (anchor, inferred claim, support) is left
// out, so that ids do not change as ibid improves. keyOf returns the key of the source with an id.
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
