package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

const (
	// MaxSources is how many sources one call of attribute may have.
	MaxSources = 1000
	// MaxPerSentence is how many passages a sentence may cite at most.
	MaxPerSentence = 10
)

// attributeArgs are the arguments of attribute.
type attributeArgs struct {
	shown

	Answer      string            `json:"answer"`
	Sources     []attributeSource `json:"sources"`
	Threshold   *float64          `json:"threshold"`
	PerSentence *int              `json:"per_sentence"`
}

type attributeSource struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
	Text  string `json:"text"`
}

// attributed is what attribute gives back.
type attributed struct {
	CitedText    string               `json:"cited_text"`
	Citations    []attributedCitation `json:"citations"`
	Uncited      []attributedSentence `json:"uncited"`
	UncitedShare *float64             `json:"uncited_share"`
	By           string               `json:"by"`
	Threshold    float64              `json:"threshold"`
	Document     *ibid.Document       `json:"document"`
}

type attributedCitation struct {
	attributedSentence

	SourceID    string   `json:"source_id"`
	SourceTitle *string  `json:"source_title"`
	SourceURL   *string  `json:"source_url"`
	Quote       *string  `json:"quote"`
	Score       *float64 `json:"score"`
}

type attributedSentence struct {
	Start int    `json:"text_start"`
	End   int    `json:"text_end"`
	Text  string `json:"text"`
}

// attribute finds citations for a text that has none.
func (m *MCP) attribute(ctx context.Context, c *call) (*result, error) {
	var args attributeArgs
	if err := readArgs(c.args, &args); err != nil {
		return nil, err
	}
	show, err := args.check()
	if err != nil {
		return nil, err
	}
	opts := &support.AttributeOptions{
		Checker:  m.checker,
		Progress: func(done, of int) { c.progress(fmt.Sprintf("%d of %s", done, count(of, "sentence"))) },
	}
	if opts.Threshold, err = share("threshold", args.Threshold, support.Balanced); err != nil {
		return nil, err
	}
	if opts.PerSentence, err = number(
		"per_sentence", args.PerSentence, support.DefaultPerSentence, 1, MaxPerSentence,
	); err != nil {
		return nil, err
	}
	docs, err := args.documents()
	if err != nil {
		return nil, err
	}
	found, err := support.Attribute(ctx, args.plain(), docs, opts)
	if err != nil {
		return nil, m.checkerFailed(ctx, err)
	}
	return showAttribution(found, show), nil
}

// documents returns the sources.
func (a *attributeArgs) documents() ([]support.Document, error) {
	switch {
	case strings.TrimSpace(a.Answer) == "":
		return nil, refuse("answer: it is missing or empty", "it is the text whose sentences are to be attributed")
	case len(a.Sources) == 0:
		return nil, refuse(
			"sources: there are none", `they are objects {"id", "title", "url", "text"}, of which text is needed`,
		)
	case len(a.Sources) > MaxSources:
		return nil, refuse(
			fmt.Sprintf("sources: there are more than %d", MaxSources),
			"leave out those that cannot matter, or put pieces of one source together",
		)
	}
	docs := make([]support.Document, len(a.Sources))
	for i, s := range a.Sources {
		if strings.TrimSpace(s.Text) == "" {
			return nil, refuse(
				fmt.Sprintf("sources[%d].text: it is missing or empty", i),
				"it is what the source says; nothing is fetched",
			)
		}
		docs[i] = support.Document{
			Source: ibid.Source{ID: s.ID, Kind: ibid.DocumentKind, Title: s.Title, URL: s.URL},
			Text:   s.Text,
		}
		if s.URL != "" {
			docs[i].Source.Kind = ibid.Web
		}
	}
	return docs, nil
}

// plain returns the text as an answer.
func (a *attributeArgs) plain() *ibid.Answer {
	return &ibid.Answer{
		Provider: ibid.Generic, Format: ibid.Generic, Complete: true, Text: a.Answer,
		Parts: []ibid.Part{{Span: ibid.Span{Start: 0, End: len(a.Answer)}, Kind: ibid.AnswerPart}},
	}
}

func showAttribution(found *support.Attribution, show *showing) *result {
	a := found.Answer
	out := &attributed{
		CitedText: a.Render(
			&ibid.RenderOptions{Style: show.style},
		),
		Citations:    []attributedCitation{},
		Uncited:      []attributedSentence{},
		UncitedShare: found.Uncited,
		By:           found.By,
		Threshold:    found.Threshold,
		Document:     show.documentOf(a, ""),
	}
	offsets := ibid.NewOffsets(a.Text)
	place := func(s ibid.Span) attributedSentence {
		start, end := offsets.In(show.unit, s)
		return attributedSentence{start, end, a.Text[s.Start:s.End]}
	}
	for i := range a.Citations {
		c := &a.Citations[i]
		for _, row := range a.CitationRows(c) {
			out.Citations = append(out.Citations, attributedCitation{
				place(c.Span), row.SourceID, row.SourceTitle, row.SourceURL, row.Quote, row.Confidence,
			})
		}
	}
	var said int
	var without strings.Builder
	for i := range found.Sentences {
		s := &found.Sentences[i]
		if s.Says() {
			said++
		}
		if s.Uncited() {
			out.Uncited = append(out.Uncited, place(s.Span))
			without.WriteString("\n- " + cut(a.Text[s.Span.Start:s.Span.End]))
		}
	}
	text := strings.TrimRight(a.Render(&ibid.RenderOptions{Style: show.style, List: true}), "\n")
	switch n := len(out.Uncited); {
	case said == 0:
		text += "\n\nThe text has no sentence that says something."
	case n > 0:
		text += fmt.Sprintf("\n\nWithout a source: %d of %s.%s", n, count(said, "sentence"), without.String())
	}
	return &result{text, out}
}
