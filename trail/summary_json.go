package trail

import (
	"encoding/json"
	"math"
	"slices"
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
	// Conflicts is there if they were looked for.
	Conflicts []Conflict `json:"conflicts,omitzero"`
}

type jsonDocument struct {
	*jsonSource
	OtherIDs []string        `json:"other_ids,omitempty"`
	Passages []jsonPassage   `json:"passages,omitempty"`
	Steps    []int           `json:"steps"`
	Quality  json.RawMessage `json:"quality,omitempty"`
}

// jsonPassage has what differs between the passages of a document.
type jsonPassage struct {
	ChunkIndex *int              `json:"chunk_index"`
	Excerpt    *string           `json:"excerpt"`
	Relevance  *float64          `json:"relevance_score"`
	Origin     *ibid.ScoreOrigin `json:"score_origin"`
	Adjusted   *float64          `json:"adjusted_relevance,omitempty"`
	Overlap    *float64          `json:"overlap,omitempty"`
	Usage      *float64          `json:"usage,omitempty"`
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
	t := s.Run.summed(s.options.NoExcerpts, 0)
	j := &jsonSummary{
		jsonRun: t.json(s.issues()),
		Summary: jsonSources{
			All: jsonDocuments(
				s.Sources, true,
			),
			Primary:   jsonDocuments(s.Primary, false),
			Unused:    jsonDocuments(s.Unused, true),
			Usage:     s.Steps,
			Without:   []int{},
			Conflicts: s.Conflicts,
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

// issues returns those of the run and of its links, each once.
func (s *Summary) issues() []ibid.Issue {
	c := checker{seen: make(map[ibid.Issue]bool)}
	for _, issue := range s.Issues {
		c.add(issue)
	}
	if s.Links != nil {
		for _, issue := range s.Links.Issues {
			c.add(issue)
		}
	}
	return c.issues
}

func jsonDocuments(all []SummarySource, passages bool) []jsonDocument {
	list := make([]jsonDocument, 0, len(all))
	for i := range all {
		d := &all[i]
		j := jsonDocument{jsonSource: d.json(), OtherIDs: d.OtherIDs, Steps: d.Steps}
		if passages {
			j.Quality = d.quality()
		}
		for k := range d.Passages {
			if p := &d.Passages[k]; passages {
				j.Passages = append(j.Passages, jsonPassage{
					ChunkIndex: p.ChunkIndex,
					Excerpt:    orNull(p.Excerpt),
					Relevance:  p.Relevance,
					Origin:     orNull(p.Origin),
					Adjusted:   p.Adjusted,
					Overlap:    jsonNumber(p.Overlap),
					Usage:      jsonNumber(p.Usage),
					Rank:       orNull(p.Rank),
					Locator:    p.Locator,
					Version:    orNull(p.Version),
					Cited:      p.Cited,
					Steps:      p.Steps,
				})
			}
		}
		list = append(list, j)
	}
	return list
}

// summed returns a copy of the run whose steps say whether they used no sources; without what their sources say, if it
// must not be told.
func (t *Trail) summed(noTexts bool, depth int) *Trail {
	c := *t
	if noTexts {
		c.Final = nil
	}
	c.Steps = slices.Clone(t.Steps)
	for i := range c.Steps {
		s := &c.Steps[i]
		s.NoSources = !s.uses(depth)
		if noTexts {
			s.Context, s.Answers = nil, nil
			s.Sources = slices.Clone(s.Sources)
			for k := range s.Sources {
				s.Sources[k].Excerpt, s.Sources[k].Content, s.Sources[k].Extra = "", "", nil
			}
		}
		switch {
		case s.Nested == nil:
		case depth < MaxNested:
			s.Nested = s.Nested.summed(noTexts, depth+1)
		case noTexts:
			s.Nested = nil
		}
	}
	return &c
}

// uses reports whether the step, or a run nested in it, used or cited a source.
func (s *Step) uses(depth int) bool {
	for i := range s.Sources {
		if s.Sources[i].counts() {
			return true
		}
	}
	return s.Nested != nil && depth < MaxNested &&
		slices.ContainsFunc(s.Nested.Steps, func(in Step) bool { return in.uses(depth + 1) })
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
