package ibid

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/ibidhq/ibid/internal/text"
)

// UnmarshalJSON reads an answer document, version 1, in any unit: see [Document.Answer]. A document that only a lenient
// parser accepts, because of a duplicate name or an invalid string, is read with the issue loose-json.
func (a *Answer) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var d Document
	strict := json2.Unmarshal(data, &d, json2.MatchCaseInsensitiveNames(true))
	if strict != nil {
		d = Document{}
		if err := json.Unmarshal(data, &d); err != nil {
			return fmt.Errorf("reading answer document: %w", err)
		}
		if isOfProvider(strict) {
			strict = nil
		}
	}
	read, err := d.Answer()
	if err != nil {
		return err
	}
	if *a = *read; strict != nil {
		a.Issues = append(slices.Clip(a.Issues), Issue{Code: "loose-json", Detail: text.Line(strict.Error(), 200)})
	}
	return nil
}

// isOfProvider reports whether the syntax error is in JSON that a document repeats as the provider sent it.
func isOfProvider(err error) bool {
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return false
	}
	at := strings.ToLower(string(wrong.JSONPointer))
	_, activity, _ := strings.Cut(at, "/activities/")
	return strings.Contains(at, "/provider_metadata/") || strings.Contains(activity, "/input") ||
		strings.Contains(activity, "/output")
}

// Answer converts d back to an answer. What [Answer.MarshalJSON] omits is lost, and so is what an answer has no field
// for (input, answer_id, cited_text, numbers).
//
// It returns an error if the version is not 1, if text_sha256 does not match the text, if offsets are not a span of the
// text or do not match the row's cited_text, or if a row names a source that does not exist. The error names the part,
// citation or source. If the unit is missing, it is UTF-8. Other requirements of [Answer.Check] are not checked.
//
// The answer may share memory with d.
func (d *Document) Answer() (*Answer, error) {
	a, err := d.answer()
	if err != nil {
		return nil, fmt.Errorf("reading answer document: %w", err)
	}
	return a, nil
}

func (d *Document) answer() (*Answer, error) {
	if err := d.checkHead(); err != nil {
		return nil, err
	}
	a := &Answer{
		ID:        orZero(d.ID),
		Provider:  orZero(d.Provider),
		Format:    orZero(d.Format),
		Model:     orZero(d.Model),
		Created:   orZero(d.CreatedAt),
		Text:      d.Text,
		Complete:  d.Complete,
		Finish:    orZero(d.Finish),
		Error:     d.Error,
		Metadata:  d.Metadata,
		Queries:   nonEmpty(d.Queries),
		ToolCalls: nonEmpty(d.ToolCalls),
		Display:   nonEmpty(d.Display),
		Issues:    nonEmpty(d.Issues),
	}
	r := documentReader{
		document: d,
		answer:   a,
		offsets:  NewOffsets(d.Text),
		index:    make(map[string]int, len(d.Sources)),
	}
	for _, read := range []func() error{r.parts, r.activities, r.sources, r.citations} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	for i, other := range d.Alternatives {
		if other == nil {
			return nil, fmt.Errorf("alternative %d is null", i+1)
		}
		b, err := other.answer()
		if err != nil {
			return nil, fmt.Errorf("alternative %d: %w", i+1, err)
		}
		a.Alternatives = append(a.Alternatives, b)
	}
	return a, nil
}

func (d *Document) checkHead() error {
	switch {
	case d.Version == 0:
		return errors.New("no version: not an answer document")
	case d.Version != documentVersion:
		return fmt.Errorf("version %d: only version %d can be read", d.Version, documentVersion)
	}
	switch d.Unit {
	case "", UTF8, CodePoint, UTF16:
	default:
		return fmt.Errorf("unit %q: neither %s nor %s nor %s", d.Unit, UTF8, CodePoint, UTF16)
	}
	if d.TextSHA256 == "" {
		return nil
	}
	if got := sumText(d.Text); !strings.EqualFold(got, d.TextSHA256) {
		return fmt.Errorf("text_sha256 is %.64s, but the text's is %s: the text was changed", d.TextSHA256, got)
	}
	return nil
}

// documentReader holds what the parts of an answer are read from.
type documentReader struct {
	document *Document
	answer   *Answer
	offsets  *Offsets
	index    map[string]int // in answer.Sources, by source id
}

// span converts offsets of the document.
func (r *documentReader) span(start, end int) (Span, error) {
	s, ok := r.offsets.Span(r.document.Unit, start, end)
	if !ok {
		return s, fmt.Errorf("%d to %d is not a span of the text in %s", start, end, cmp.Or(r.document.Unit, UTF8))
	}
	return s, nil
}

// maybeSpan converts offsets that may both be null.
func (r *documentReader) maybeSpan(start, end *int) (s Span, ok bool, err error) {
	switch {
	case start == nil && end == nil:
		return s, false, nil
	case start == nil || end == nil:
		return s, false, errors.New("one of start and end is null")
	}
	s, err = r.span(*start, *end)
	return s, err == nil, err
}

func (r *documentReader) parts() error {
	for i, p := range r.document.Parts {
		s, err := r.span(p.TextStart, p.TextEnd)
		if err != nil {
			return fmt.Errorf("part %d: %w", i+1, err)
		}
		r.answer.Parts = append(r.answer.Parts, Part{s, p.Kind, p.Message, p.Content})
	}
	return nil
}

func (r *documentReader) activities() error {
	for i := range r.document.Activities {
		d := &r.document.Activities[i]
		at, err := r.span(d.TextStart, d.TextStart)
		if err != nil {
			return fmt.Errorf("activity %d: %w", i+1, err)
		}
		r.answer.Activities = append(r.answer.Activities, Activity{
			Kind: d.Kind, At: at.Start, Text: orZero(d.Text), ID: orZero(d.ID), Name: orZero(d.Name),
			Server: d.Server, Input: orAbsent(d.Input), Output: orAbsent(d.Output), Error: orZero(d.Error),
		})
	}
	return nil
}

// orAbsent returns raw, or nil if it is null.
func orAbsent(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (r *documentReader) sources() error {
	for i := range r.document.Sources {
		d := &r.document.Sources[i]
		if _, taken := r.index[d.ID]; taken {
			return fmt.Errorf("source %d: the id %q is taken", i+1, d.ID)
		}
		r.index[d.ID] = i
		s := Source{
			ID:          d.ID,
			GlobalID:    d.GlobalID,
			Kind:        d.Kind,
			Title:       orZero(d.Title),
			URL:         orZero(d.URL),
			OriginalURL: orZero(d.OriginalURL),
			Filename:    orZero(d.Filename),
			Site:        orZero(d.Site),
			Authors:     nonEmpty(d.Authors),
			PublishedAt: orZero(d.PublishedAt),
			RetrievedAt: orZero(d.RetrievedAt),
			License:     orZero(d.License),
			Content:     orZero(d.Content),
			Score:       d.Score,
			ScoreOrigin: orZero(d.ScoreOrigin),
		}
		if id, ok := strings.CutPrefix(d.Key, globalKey); ok && s.GlobalID == "" {
			s.GlobalID = id // so that the source keeps its key
		}
		for _, c := range d.Chunks {
			s.Chunks = append(s.Chunks, Chunk{orZero(c.ID), orZero(c.Content), c.Score, c.Locator})
		}
		r.answer.Sources = append(r.answer.Sources, s)
	}
	return nil
}

// citations joins the rows of each group into one citation.
func (r *documentReader) citations() error {
	rows := make([]*DocumentCitation, len(r.document.Citations))
	for i := range rows {
		rows[i] = &r.document.Citations[i]
	}
	slices.SortStableFunc(rows, func(x, y *DocumentCitation) int { return cmp.Compare(x.Group, y.Group) })
	a := r.answer
	for i, row := range rows {
		c, err := r.citation(row)
		if err != nil {
			return fmt.Errorf("citation %s: %w", cmp.Or(row.ID, fmt.Sprintf("of group %d", row.Group)), err)
		}
		if i == 0 || row.Group < 1 || row.Group != rows[i-1].Group {
			a.Citations = append(a.Citations, c)
			continue
		}
		former := &a.Citations[len(a.Citations)-1]
		if former.ID != c.ID || former.Span != c.Span || former.Anchor != c.Anchor {
			return fmt.Errorf(
				"citation %s: it is in group %d with %s, but at another place", row.ID, row.Group, former.ID,
			)
		}
		former.Refs = append(former.Refs, c.Refs...)
	}
	slices.SortStableFunc(a.Citations, func(x, y Citation) int { return compareCitations(&x, &y) })
	sortRefs(a)
	assignIDs(a, (*Source).Key)
	return nil
}

func (r *documentReader) citation(row *DocumentCitation) (Citation, error) {
	c := Citation{
		ID:            row.ID,
		Covers:        row.Covers,
		ClaimInferred: row.ClaimInferred,
		Anchor:        row.Anchor,
		Origin:        cmp.Or(row.Origin, OriginProvider),
		Support:       row.Support,
		Verification:  row.Verification,
	}
	if _, known := r.index[row.SourceID]; !known {
		return c, fmt.Errorf("there is no source %q", row.SourceID)
	}
	c.Refs = []Ref{{Source: row.SourceID, Quote: orZero(row.Quote), Locator: row.Locator, Confidence: row.Confidence}}
	var placed bool
	var err error
	if c.Span, placed, err = r.maybeSpan(row.TextStart, row.TextEnd); err != nil {
		return c, err
	}
	if c.Claim, _, err = r.maybeSpan(row.ClaimStart, row.ClaimEnd); err != nil {
		return c, fmt.Errorf("claim: %w", err)
	}
	if placed && row.CitedText != nil && *row.CitedText != r.answer.Text[c.Span.Start:c.Span.End] {
		return c, fmt.Errorf(
			"%d to %d in %s are not the words of cited_text", *row.TextStart, *row.TextEnd,
			cmp.Or(r.document.Unit, UTF8),
		)
	}
	return c, settleRow(&c, placed)
}

// settleRow fills in what a document written by other software may omit.
func settleRow(c *Citation, placed bool) error {
	switch {
	case c.Anchor == "" && placed:
		c.Anchor = AnchorUnverified
	case c.Anchor == "":
		c.Anchor = AnchorNone
	case c.Placed() != placed:
		return fmt.Errorf("the anchor %s does not match the offsets", c.Anchor)
	}
	if c.Covers == "" {
		c.Covers = CoversClaim
		if placed && c.Span.Len() == 0 {
			c.Covers = CoversPoint
		}
	}
	return nil
}

// orZero returns *p, or the zero value if p is nil.
func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// nonEmpty returns l, or nil if it is empty.
func nonEmpty[T any](l []T) []T {
	if len(l) == 0 {
		return nil
	}
	return l
}
