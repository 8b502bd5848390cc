package ibid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"slices"
	"time"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/internal/halt"
)

// documentVersion is the version of the answer document that this package writes and reads.
const documentVersion = 1

// Document is the answer document, version 1: an [Answer] as flat JSON with offsets in the unit its reader needs. What
// is absent is null; an empty list is []. Fields may be added within version 1; none is renamed or removed.
//
// [Answer.Document] makes one. It may share memory with the answer, so neither should be modified.
type Document struct {
	Version   int            `json:"version"`
	Input     string         `json:"input,omitempty"` // the file it was read from
	AnswerID  *string        `json:"answer_id"`       // assigned by a gateway
	ID        *string        `json:"id"`              // the provider's own
	Provider  *string        `json:"provider"`
	Format    *string        `json:"format"`
	Model     *string        `json:"model"`
	CreatedAt *time.Time     `json:"created_at"`
	Complete  bool           `json:"complete"`
	Finish    *Finish        `json:"finish"`
	Error     *ProviderError `json:"error"`

	Text         string           `json:"text"`
	TextSHA256   string           `json:"text_sha256"` // hexadecimal
	Unit         Unit             `json:"unit"`        // of all offsets below except those in locators
	Parts        []DocumentPart   `json:"parts"`
	CitedText    string           `json:"cited_text"` // the text with markers
	HasCitations bool             `json:"has_citations"`
	Sources      []DocumentSource `json:"sources"`
	// sorted by text_end, text_start, index and arrival; those without a place last
	Citations []DocumentCitation `json:"citations"`

	Activities   []DocumentActivity `json:"activities,omitempty"` // reasoning and tool calls, in order
	Queries      []string           `json:"queries"`
	ToolCalls    []ToolCall         `json:"tool_calls"`
	Display      []Display          `json:"display_requirements"`
	Alternatives []*Document        `json:"alternatives"`
	Issues       []Issue            `json:"issues"`

	Metadata map[string]json.RawMessage `json:"provider_metadata,omitempty"` // Answer.Metadata, if asked for
}

// DocumentPart is a [Part] in a [Document].
type DocumentPart struct {
	TextStart int      `json:"text_start"`
	TextEnd   int      `json:"text_end"`
	Kind      PartKind `json:"kind"`
	Message   int      `json:"message"`
	Content   int      `json:"content"`
}

// DocumentSource is a [Source] in a [Document].
type DocumentSource struct {
	Index       int             `json:"index"`               // the number shown for it
	ID          string          `json:"id"`                  // unique in the document
	Key         string          `json:"key"`                 // identifies the source across documents: see [Source.Key]
	GlobalID    string          `json:"global_id,omitempty"` // Source.GlobalID, unless the key is made from it
	Kind        SourceKind      `json:"kind"`
	Title       *string         `json:"title"`
	URL         *string         `json:"url"`
	OriginalURL *string         `json:"original_url"`
	Filename    *string         `json:"filename"`
	Site        *string         `json:"site"`
	Authors     []string        `json:"authors"` // null, not [], if unknown
	PublishedAt *string         `json:"published_at"`
	RetrievedAt *time.Time      `json:"retrieved_at"`
	License     *string         `json:"license"`
	Content     *string         `json:"content"`
	Chunks      []DocumentChunk `json:"chunks"`
	Score       *float64        `json:"score"`
	ScoreOrigin *ScoreOrigin    `json:"score_origin"` // null if and only if the score is null
	Cited       bool            `json:"cited"`
}

// DocumentChunk is a [Chunk] in a [Document].
type DocumentChunk struct {
	ID      *string  `json:"id"`
	Content *string  `json:"content"`
	Score   *float64 `json:"score"`
	Locator *Locator `json:"locator"`
}

// DocumentCitation is a row of a [Document]: one [Ref] of one [Citation]. Rows of one citation share their group.
type DocumentCitation struct {
	ID            string        `json:"id"`    // of the citation
	Group         int           `json:"group"` // number of the citation in the answer, from 1
	Index         int           `json:"index"` // of the source
	SourceID      string        `json:"source_id"`
	SourceTitle   *string       `json:"source_title"`
	SourceURL     *string       `json:"source_url"`
	TextStart     *int          `json:"text_start"` // null if the citation has no place
	TextEnd       *int          `json:"text_end"`
	CitedText     *string       `json:"cited_text"` // the words from text_start to text_end
	ClaimStart    *int          `json:"claim_start"`
	ClaimEnd      *int          `json:"claim_end"`
	ClaimInferred bool          `json:"claim_inferred"`
	Quote         *string       `json:"quote"`
	Locator       *Locator      `json:"locator"`
	Confidence    *float64      `json:"confidence"`
	Covers        Covers        `json:"covers"`
	Anchor        Anchor        `json:"anchor"`
	Origin        Origin        `json:"origin"`
	Support       *Support      `json:"support"`
	Verification  *Verification `json:"verification"`
}

// DocumentActivity is an [Activity] in a [Document].
type DocumentActivity struct {
	Kind      ActivityKind    `json:"kind"`
	TextStart int             `json:"text_start"` // where in the text it happened
	Text      *string         `json:"text"`       // null unless it is reasoning
	ID        *string         `json:"id"`         // null, like the name, unless it is a tool call
	Name      *string         `json:"name"`
	Server    bool            `json:"server"` // the provider ran the tool
	Input     json.RawMessage `json:"input"`  // any JSON
	Output    json.RawMessage `json:"output"` // any JSON
	Error     *string         `json:"error"`
}

// DocumentOptions controls how a [Document] is made. With nil or the zero value, offsets are in UTF-8 bytes and
// cited_text is Markdown with sources numbered from 1.
type DocumentOptions struct {
	Unit  Unit  // of the offsets; an unknown unit means UTF8
	Style Style // of cited_text
	ByID  bool  // markers in cited_text show source ids instead of numbers
	// Numbering assigns the numbers of the sources and is extended by new ones. If nil, numbers begin at 1.
	Numbering *Numbering
	Numbers   Numbers // which numbers the sources get
	Raw       bool    // include provider_metadata
	Bare      bool    // leave cited_text empty: rendering it is most of the work. For storing an answer
	Input     string  // the field input
	AnswerID  string  // the field answer_id; null if empty
	// Context, if not nil, ends Document soon after it has ended itself: the document is then empty, or complete.
	Context context.Context //nolint:containedctx // options of one call

	halt *halt.Halt
}

// Document returns a as an answer document. Its size, and the time to make it, grow with the length of the text plus
// that of all spans. If a violates what [Answer.Check] checks, nothing is made up: an invalid span becomes null, as
// does a score that is not a finite number, and the index of a source that does not exist is 0.
func (a *Answer) Document(opts *DocumentOptions) *Document {
	var o DocumentOptions
	if opts != nil {
		o = *opts
	}
	if o.Context == nil {
		return a.document(&o)
	}
	d := &Document{}
	_ = halt.Do(o.Context, func(h *halt.Halt) {
		o.halt = h
		d = a.document(&o)
	})
	return d
}

func (a *Answer) document(o *DocumentOptions) *Document {
	if o.Unit != CodePoint && o.Unit != UTF16 {
		o.Unit = UTF8
	}
	if o.Numbering == nil {
		o.Numbering = &Numbering{}
	}
	w := documentWriter{answer: a, halt: o.halt, unit: o.Unit, offsets: NewOffsets(a.Text), index: a.sourceIndexes()}
	w.numbers, w.cited = o.Numbering.number(a, true, o.Numbers)
	answerID := o.AnswerID
	d := &Document{
		Version:      documentVersion,
		Input:        o.Input,
		AnswerID:     nullable(&answerID),
		ID:           nullable(&a.ID),
		Provider:     nullable(&a.Provider),
		Format:       nullable(&a.Format),
		Model:        nullable(&a.Model),
		CreatedAt:    instant(a.Created),
		Complete:     a.Complete,
		Finish:       nullable(&a.Finish),
		Error:        a.Error,
		Text:         a.Text,
		TextSHA256:   sumText(a.Text),
		Unit:         o.Unit,
		Parts:        w.parts(),
		HasCitations: len(a.Citations) > 0,
		Sources:      w.sources(),
		Citations:    w.citations(),
		Activities:   w.activities(),
		Queries:      notNil(a.Queries),
		ToolCalls:    notNil(a.ToolCalls),
		Display:      notNil(a.Display),
		Issues:       notNil(a.Issues),
		Alternatives: make([]*Document, 0, len(a.Alternatives)),
	}
	if !o.Bare {
		d.CitedText = a.render(&RenderOptions{
			halt: o.halt, Style: o.Style, ByID: o.ByID, Numbering: o.Numbering, Numbers: o.Numbers,
		})
	}
	if o.Raw {
		d.Metadata = a.Metadata
	}
	o.Input, o.AnswerID = "", ""
	for _, other := range a.Alternatives {
		if other != nil {
			d.Alternatives = append(d.Alternatives, other.document(o))
		}
	}
	return d
}

// documentJSON writes a nil list as null, and tolerates whatever an answer built by hand may hold.
var documentJSON = json2.JoinOptions(
	json2.FormatNilSliceAsNull(true), json2.Deterministic(true),
	jsontext.EscapeForJS(true), jsontext.PreserveRawStrings(true), // leave provider_metadata as the provider sent it
	jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true),
)

// JSON returns d on one line, without a trailing newline. Unlike [json.Marshal] it does not escape <, > and &.
func (d *Document) JSON() ([]byte, error) { return d.AppendJSON(nil) }

// AppendJSON appends d to b as [Document.JSON] returns it. On error it returns b unchanged.
func (d *Document) AppendJSON(b []byte) ([]byte, error) { return d.appendJSON(b) }

// AppendCompact is like AppendJSON but omits most members that are null, false, zero or empty. Reading it yields the
// same document. Use it to store many documents.
func (d *Document) AppendCompact(b []byte) ([]byte, error) {
	return d.withoutEmpty().appendJSON(b, json2.OmitZeroStructFields(true))
}

// withoutEmpty returns a copy in which lists that are usually empty are nil if they are.
func (d *Document) withoutEmpty() *Document {
	c := *d
	c.Queries, c.ToolCalls, c.Display = nonEmpty(d.Queries), nonEmpty(d.ToolCalls), nonEmpty(d.Display)
	c.Issues, c.Alternatives, c.Sources = nonEmpty(d.Issues), nil, slices.Clone(d.Sources)
	for i := range c.Sources {
		c.Sources[i].Chunks = nonEmpty(c.Sources[i].Chunks)
	}
	for _, other := range d.Alternatives {
		c.Alternatives = append(c.Alternatives, other.withoutEmpty())
	}
	return &c
}

func (d *Document) appendJSON(b []byte, more ...json2.Options) ([]byte, error) {
	data, err := json2.Marshal(d, append(more, documentJSON)...)
	if err != nil {
		return b, err
	}
	return append(b, data...), nil
}

// MarshalJSON returns a as an answer document with offsets in UTF-8 bytes; [Answer.Document] supports other units and
// styles. It omits [Answer.Metadata] and [Source.Raw].
func (a Answer) MarshalJSON() ([]byte, error) { return a.Document(nil).JSON() }

// MarshalJSON writes null for an unknown time.
func (v Verification) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Status    string     `json:"status"`
		CheckedAt *time.Time `json:"checked_at"`
	}{v.Status, instant(v.CheckedAt)})
}

// documentWriter holds what the parts of a document are made from.
type documentWriter struct {
	answer  *Answer
	halt    *halt.Halt
	unit    Unit
	offsets *Offsets
	index   map[string]int // in answer.Sources, by source id
	numbers []int          // by source index
	cited   []bool         // by source index
}

func (w *documentWriter) parts() []DocumentPart {
	parts := make([]DocumentPart, 0, len(w.answer.Parts))
	for _, p := range w.answer.Parts {
		start, end := w.offsets.In(w.unit, p.Span)
		parts = append(parts, DocumentPart{start, end, p.Kind, p.Message, p.Content})
	}
	return parts
}

func (w *documentWriter) activities() []DocumentActivity {
	var list []DocumentActivity
	for i := range w.answer.Activities {
		a := &w.answer.Activities[i]
		at, _ := w.offsets.In(w.unit, Span{a.At, a.At})
		list = append(list, DocumentActivity{
			Kind: a.Kind, TextStart: max(at, 0), Text: nullable(&a.Text), ID: nullable(&a.ID), Name: nullable(&a.Name),
			Server: a.Server, Input: a.Input, Output: a.Output, Error: nullable(&a.Error),
		})
	}
	return list
}

func (w *documentWriter) sources() []DocumentSource {
	sources := make([]DocumentSource, 0, len(w.answer.Sources))
	for i := range w.answer.Sources {
		s := &w.answer.Sources[i]
		d := DocumentSource{
			Index:       w.numbers[i],
			ID:          s.ID,
			Key:         s.Key(),
			Kind:        s.Kind,
			Title:       nullable(&s.Title),
			URL:         nullable(&s.URL),
			OriginalURL: nullable(&s.OriginalURL),
			Filename:    nullable(&s.Filename),
			Site:        nullable(&s.Site),
			PublishedAt: nullable(&s.PublishedAt),
			RetrievedAt: instant(s.RetrievedAt),
			License:     nullable(&s.License),
			Content:     nullable(&s.Content),
			Chunks:      make([]DocumentChunk, 0, len(s.Chunks)),
			Score:       finite(s.Score),
			Cited:       w.cited[i],
		}
		if s.GlobalID != "" && d.Key != globalKey+s.GlobalID {
			d.GlobalID = s.GlobalID
		}
		if len(s.Authors) > 0 {
			d.Authors = s.Authors
		}
		if d.Score != nil {
			d.ScoreOrigin = nullable(&s.ScoreOrigin)
		}
		for k := range s.Chunks {
			c := &s.Chunks[k]
			id, content := nullable(&c.ID), nullable(&c.Content)
			d.Chunks = append(d.Chunks, DocumentChunk{id, content, finite(c.Score), c.Locator})
		}
		sources = append(sources, d)
	}
	return sources
}

func (w *documentWriter) citations() []DocumentCitation {
	rows := make([]DocumentCitation, 0, len(w.answer.Citations))
	for i := range w.answer.Citations {
		w.halt.Check()
		c := &w.answer.Citations[i]
		row := w.citation(c)
		row.Group = i + 1
		for k := range c.Refs {
			row.Index = 0
			var source *Source
			if at, known := w.index[c.Refs[k].Source]; known {
				source, row.Index = &w.answer.Sources[at], w.numbers[at]
			}
			row.refer(&c.Refs[k], source)
			rows = append(rows, row)
		}
	}
	if !slices.IsSortedFunc(rows, compareRows) { // rows are expensive to move
		slices.SortStableFunc(rows, compareRows)
	}
	return rows
}

// refer fills in the columns of a ref and of its source, which is nil if it does not exist.
func (row *DocumentCitation) refer(ref *Ref, s *Source) {
	row.SourceID, row.Quote, row.Locator = ref.Source, nullable(&ref.Quote), ref.Locator
	row.Confidence = finite(ref.Confidence)
	row.SourceTitle, row.SourceURL = nil, nil
	if s != nil {
		row.SourceTitle, row.SourceURL = nullable(&s.Title), nullable(&s.URL)
	}
}

// CitationRows returns the document rows of one citation, with offsets in UTF-8 bytes, but without id, group and index,
// which depend on the whole answer. So a may be an answer that is still arriving, and need not contain c.
func (a *Answer) CitationRows(c *Citation) []DocumentCitation {
	w := documentWriter{answer: a, unit: UTF8, offsets: NewOffsets(a.Text)}
	row := w.citation(c)
	row.ID = ""
	rows := make([]DocumentCitation, 0, len(c.Refs))
	for k := range c.Refs {
		row.refer(&c.Refs[k], a.Source(c.Refs[k].Source))
		rows = append(rows, row)
	}
	return rows
}

// citation returns the columns that all rows of c have in common.
func (w *documentWriter) citation(c *Citation) DocumentCitation {
	row := DocumentCitation{
		ID:            c.ID,
		ClaimInferred: c.ClaimInferred,
		Covers:        c.Covers,
		Anchor:        c.Anchor,
		Origin:        c.Origin,
		Verification:  c.Verification,
	}
	if c.Placed() {
		if row.TextStart, row.TextEnd = w.span(c.Span); row.TextStart != nil {
			words := w.answer.Text[c.Span.Start:c.Span.End]
			row.CitedText = &words
		}
	}
	switch {
	case c.Claim == Span{}:
	case c.Claim == c.Span && row.TextStart != nil:
		row.ClaimStart, row.ClaimEnd = row.TextStart, row.TextEnd
	default:
		row.ClaimStart, row.ClaimEnd = w.span(c.Claim)
	}
	if s := c.Support; s != nil {
		row.Support = &Support{s.Label, finite(s.Score), s.By}
	}
	return row
}

// span returns the offsets of s, nil if it is not a span of the text.
func (w *documentWriter) span(s Span) (start, end *int) {
	from, to := w.offsets.In(w.unit, s)
	if from < 0 {
		return nil, nil
	}
	both := [2]int{from, to} // one allocation
	return &both[0], &both[1]
}

// compareRows orders rows by end, start and index, with those without a place last.
func compareRows(x, y DocumentCitation) int {
	if x.TextEnd != nil && y.TextEnd != nil {
		return cmp.Or(
			cmp.Compare(*x.TextEnd, *y.TextEnd), cmp.Compare(*x.TextStart, *y.TextStart), cmp.Compare(x.Index, y.Index),
		)
	}
	switch {
	case x.TextEnd != nil:
		return -1
	case y.TextEnd != nil:
		return 1
	default:
		return cmp.Compare(x.Index, y.Index)
	}
}

// sumText returns the SHA-256 of text in hexadecimal.
func sumText(text string) string {
	h := sha256.New()
	_, _ = io.WriteString(h, text) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}

// nullable returns v, or nil if it points to the zero value, which means absent.
func nullable[T comparable](v *T) *T {
	var zero T
	if *v == zero {
		return nil
	}
	return v
}

// finite returns f, or nil if JSON cannot represent it.
func finite(f *float64) *float64 {
	if f == nil || !isFinite(*f) {
		return nil
	}
	return f
}

// instant returns a pointer to t, or nil if t is unknown or RFC 3339 cannot represent it.
func instant(t time.Time) *time.Time {
	t = t.UTC()
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return nil
	}
	return &t
}

// notNil returns l, or an empty list if it is nil.
func notNil[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
