package trail

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/ibidhq/ibid"
)

// jsonSummary is a summary as JSON.
type jsonSummary struct {
	*jsonRun
	Summary   jsonSources    `json:"source_summary"`
	Display   jsonDisplay    `json:"display"`
	Sentences []jsonSentence `json:"sentences"`
	Uncited   *float64       `json:"uncited_share"`
}

type jsonSources struct {
	All     []jsonDocument `json:"all_sources"`
	Primary []jsonDocument `json:"primary_sources"`
	Usage   usageByStep    `json:"source_usage_by_step"`
	Unused  []jsonDocument `json:"unused_sources"`
	Without []int          `json:"steps_without_sources"`
}

type jsonDocument struct {
	*jsonSource
	OtherIDs []string      `json:"other_ids,omitempty"`
	Passages []jsonPassage `json:"passages,omitempty"`
	Steps    []int         `json:"steps"`
}

// jsonPassage has what differs between the passages of a document.
type jsonPassage struct {
	ChunkIndex *int              `json:"chunk_index"`
	Excerpt    *string           `json:"excerpt"`
	Relevance  *float64          `json:"relevance_score"`
	Origin     *ibid.ScoreOrigin `json:"score_origin"`
	Adjusted   *float64          `json:"adjusted_relevance,omitempty"`
	Rank       *int              `json:"retrieval_rank"`
	Locator    *ibid.Locator     `json:"locator,omitempty"`
	Version    *string           `json:"version,omitempty"`
	Cited      bool              `json:"cited"`
	Steps      []int             `json:"steps"`
}

// jsonDisplay is what a page shows. Its names and shape are the contract's: nothing is added.
type jsonDisplay struct {
	Total   int           `json:"total_sources"`
	Primary []jsonPrimary `json:"primary_sources"`
	Steps   breakdown     `json:"step_breakdown"`
}

type jsonPrimary struct {
	DocumentID string   `json:"document_id"`
	Title      string   `json:"title"`
	Relevance  *float64 `json:"relevance"`
	Excerpt    *string  `json:"excerpt"`
}

// MarshalJSON returns the run with what the summary says of it.
func (s *Summary) MarshalJSON() ([]byte, error) {
	t := s.Run
	if s.options.NoExcerpts {
		t = t.withoutTexts(0)
	}
	j := &jsonSummary{
		jsonRun: t.json(s.Issues),
		Summary: jsonSources{
			All: jsonDocuments(s.Sources, true), Primary: jsonDocuments(s.Primary, false), Unused: jsonDocuments(s.Unused, true),
			Usage: s.Steps, Without: []int{},
		},
		Display: jsonDisplay{Total: len(s.Sources), Primary: []jsonPrimary{}, Steps: s.Steps},
	}
	for _, u := range s.Steps {
		if len(u.Documents) == 0 {
			j.Summary.Without = append(j.Summary.Without, u.Number)
		}
	}
	for i := range s.Primary {
		p := &s.Primary[i]
		row := jsonPrimary{DocumentID: p.DocumentID, Title: first(p.Title, p.DocumentID), Excerpt: orNull(p.Excerpt)}
		if score := s.effective(&p.Source); score != nil {
			row.Relevance = new(math.Round(*score*100) / 100)
		}
		j.Display.Primary = append(j.Display.Primary, row)
	}
	if s.Links != nil {
		j.Sentences, j.Uncited = s.Links.json(s.options), s.Links.Uncited
	}
	return marshal(j, t.Extra)
}

func jsonDocuments(all []SummarySource, passages bool) []jsonDocument {
	list := make([]jsonDocument, 0, len(all))
	for i := range all {
		d := &all[i]
		j := jsonDocument{jsonSource: d.json(), OtherIDs: d.OtherIDs, Steps: d.Steps}
		for k := range d.Passages {
			if p := &d.Passages[k]; passages {
				j.Passages = append(j.Passages, jsonPassage{
					ChunkIndex: p.ChunkIndex, Excerpt: orNull(p.Excerpt), Relevance: p.Relevance, Origin: orNull(p.Origin),
					Adjusted: p.Adjusted, Rank: orNull(p.Rank), Locator: p.Locator, Version: orNull(p.Version), Cited: p.Cited, Steps: p.Steps,
				})
			}
		}
		list = append(list, j)
	}
	return list
}

// withoutTexts returns a copy of the run without what its sources say.
func (t *Trail) withoutTexts(depth int) *Trail {
	c := *t
	c.Final = nil
	c.Steps = make([]Step, len(t.Steps))
	for i := range t.Steps {
		s := t.Steps[i]
		s.Context, s.Answers = nil, nil
		s.Sources = make([]Source, len(t.Steps[i].Sources))
		for k := range s.Sources {
			s.Sources[k] = t.Steps[i].Sources[k]
			s.Sources[k].Excerpt, s.Sources[k].Content, s.Sources[k].Extra = "", "", nil
		}
		if s.Nested != nil && depth < MaxNested {
			s.Nested = s.Nested.withoutTexts(depth + 1)
		} else {
			s.Nested = nil
		}
		c.Steps[i] = s
	}
	return &c
}

// usageByStep and breakdown are objects whose members stand in the order of the steps.
type usageByStep []StepUsage

// MarshalJSON returns {"1": […], "2": […]}.
func (u usageByStep) MarshalJSON() ([]byte, error) {
	return ordered(u, func(s *StepUsage) (string, any) { return strconv.Itoa(s.Number), s.Documents })
}

type breakdown []StepUsage

type jsonBreakdown struct {
	Number    int      `json:"step_number"`
	Used      int      `json:"sources_used"`
	Documents []string `json:"document_ids"`
}

// MarshalJSON returns {"step_1": {…}, "step_2": {…}}.
func (b breakdown) MarshalJSON() ([]byte, error) {
	return ordered(b, func(s *StepUsage) (string, any) {
		return "step_" + strconv.Itoa(s.Number), jsonBreakdown{s.Number, len(s.Documents), s.Documents}
	})
}

func ordered(steps []StepUsage, member func(*StepUsage) (string, any)) (json.RawMessage, error) {
	b := []byte{'{'}
	for i := range steps {
		name, v := member(&steps[i])
		value, err := plain(v)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, name)
		b = append(append(b, ':'), value...)
	}
	return append(b, '}'), nil
}
