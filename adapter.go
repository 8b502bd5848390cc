package ibid

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Adapter reads the responses of a provider that [Decode] does not know. [Adapt] makes an [Answer] of what it finds,
// which is rendered, stored and checked like any other.
type Adapter interface {
	// Format names the provider and the format, as in [Answer].
	Format() (provider, format string)
	// Sources returns the sources that the response lists, in its order. One without an ID gets one by its place:
	// source:0.
	Sources(response []byte) ([]Source, error)
	// Citations returns the text, and the citations in it. Spans count bytes of the text; [Offsets] converts other
	// units.
	// Only Span and Refs of a citation count: the words, and what they rest on; an empty span is a point behind them.
	Citations(response []byte) (text string, citations []Citation, err error)
}

// Adapt reads a complete response with an adapter. The error is the adapter's, or says what is wrong with what it
// returned: nothing is left out or moved.
func Adapt(adapter Adapter, response []byte) (*Answer, error) {
	provider, format := adapter.Format()
	fail := func(err error) (*Answer, error) { return nil, fmt.Errorf("reading %s: %w", format, err) }
	sources, err := adapter.Sources(response)
	if err != nil {
		return fail(err)
	}
	text, citations, err := adapter.Citations(response)
	if err != nil {
		return fail(err)
	}
	if !utf8.ValidString(text) {
		return fail(errors.New("the text is not UTF-8"))
	}
	a := &Answer{
		Provider: provider, Format: format, Text: text, Complete: true, Finish: FinishStop, Sources: sources,
	}
	if text != "" {
		a.Parts = []Part{{Span: Span{0, len(text)}, Kind: AnswerPart}}
	}
	for i := range a.Sources {
		s := &a.Sources[i]
		if s.ID == "" {
			s.ID = "source:" + strconv.Itoa(i)
		}
		switch {
		case s.Kind != "":
		case s.URL != "":
			s.Kind = Web
		default:
			s.Kind = DocumentKind
		}
		if s.Content != "" && len(s.Chunks) == 0 {
			s.Chunks = []Chunk{{Content: s.Content}}
		}
		if s.Score != nil && s.ScoreOrigin == "" {
			s.ScoreOrigin = ScoreProvider
		}
		s.Raw = bytes.Clone(s.Raw)
	}
	for i := range citations {
		if err := a.Cite(citations[i].Span, citations[i].Refs...); err != nil {
			return fail(err)
		}
	}
	for i := range a.Citations {
		a.Citations[i].Origin = OriginProvider
	}
	if err := a.Check(); err != nil {
		return fail(err)
	}
	return a, nil
}
