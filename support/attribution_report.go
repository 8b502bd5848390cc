package support

import (
	"cmp"

	"github.com/ibidhq/ibid"
)

// AttributionReport is an attribution as JSON: the member attribution of the answer document that `ibid attribute` and
// POST /v1/attribute return. Offsets have the document's unit. Members may be added, but not renamed.
type AttributionReport struct {
	By           string                `json:"by"`
	Threshold    float64               `json:"threshold"`
	UncitedShare *float64              `json:"uncited_share"` // null if no sentence makes a statement
	Uncited      []AttributionSentence `json:"uncited"`
	Differs      []AttributionDiffers  `json:"differs"` // sentences that a source contradicts, and no source supports
	// the number of sentences not counted in the share, by reason
	LeftOut map[SkipReason]int `json:"left_out"`
	// of the sources: unreadable parts and irregularities
	Issues    []ibid.Issue           `json:"issues"`
	Sentences *[]AttributionSentence `json:"sentences,omitempty"` // all of them, if explained
}

// AttributionSentence is a sentence of an answer.
type AttributionSentence struct {
	Start      int                     `json:"text_start"`
	End        int                     `json:"text_end"`
	Text       string                  `json:"text"`
	Skipped    *string                 `json:"skipped"`   // why no source was looked for
	Citations  int                     `json:"citations"` // how many it has
	Candidates *[]AttributionCandidate `json:"candidates,omitempty"`
}

// AttributionDiffers is a sentence and a passage that contradicts it.
type AttributionDiffers struct {
	Start       int                `json:"text_start"`
	End         int                `json:"text_end"`
	Text        string             `json:"text"`
	Source      string             `json:"source"` // the id of the document
	Title       *string            `json:"title"`
	Label       Label              `json:"label"`
	Evidence    *string            `json:"evidence"`
	Differences []ReportDifference `json:"differences"`
}

// AttributionCandidate is a passage that was considered for a sentence.
type AttributionCandidate struct {
	Source      string             `json:"source"` // the id of the document
	Title       *string            `json:"title"`
	Passage     int                `json:"passage"`
	Page        *int               `json:"page"`
	Relevance   float64            `json:"relevance"`
	Closeness   *float64           `json:"closeness"`
	Label       Label              `json:"label"`
	Evidence    *string            `json:"evidence"`
	Missing     []string           `json:"missing"`
	Differences []ReportDifference `json:"differences"`
	Cited       bool               `json:"cited"`
}

// AttributionReportOptions are the options of [Attribution.Report].
type AttributionReportOptions struct {
	Unit    ibid.Unit    // of offsets; empty means UTF-8
	Explain bool         // includes all sentences with their candidates
	Issues  []ibid.Issue // of the sources
}

// Report returns the attribution as JSON. Docs are the documents of [Attribute]; nil options mean the defaults.
func (a *Attribution) Report(docs []Document, o *AttributionReportOptions) *AttributionReport {
	if o == nil {
		o = &AttributionReportOptions{}
	}
	r := &AttributionReport{
		By:           a.By,
		Threshold:    a.Threshold,
		UncitedShare: a.Uncited,
		Uncited:      []AttributionSentence{},
		Differs:      []AttributionDiffers{},
		LeftOut:      a.LeftOut,
		Issues:       append([]ibid.Issue{}, o.Issues...),
	}
	offsets, unit := ibid.NewOffsets(a.Answer.Text), cmp.Or(o.Unit, ibid.UTF8)
	sentences := []AttributionSentence{}
	for i := range a.Sentences {
		s := &a.Sentences[i]
		out := AttributionSentence{Text: a.Answer.Text[s.Span.Start:s.Span.End], Citations: s.Cited}
		out.Start, out.End = offsets.In(unit, s.Span)
		if s.Skipped != "" {
			out.Skipped = (*string)(&s.Skipped)
		}
		if s.Uncited() {
			r.Uncited = append(r.Uncited, out)
		}
		for _, c := range s.Differing() {
			shown := newCandidate(c, docs)
			r.Differs = append(r.Differs, AttributionDiffers{
				out.Start, out.End, out.Text, shown.Source, shown.Title, shown.Label, shown.Evidence, shown.Differences,
			})
		}
		if o.Explain {
			out.Candidates = &[]AttributionCandidate{}
			for k := range s.Candidates {
				*out.Candidates = append(*out.Candidates, newCandidate(&s.Candidates[k], docs))
			}
			sentences = append(sentences, out)
		}
	}
	if o.Explain {
		r.Sentences = &sentences
	}
	return r
}

func newCandidate(c *Candidate, docs []Document) AttributionCandidate {
	d := &docs[c.Document]
	out := AttributionCandidate{
		Source:      d.Source.ID,
		Passage:     c.Passage,
		Relevance:   c.Relevance,
		Closeness:   c.Verdict.Closeness,
		Label:       c.Verdict.Label,
		Missing:     c.Verdict.MissingWords(),
		Differences: c.Verdict.ReportDifferences(),
		Cited:       c.Source != "",
	}
	if d.Source.Title != "" {
		out.Title = &d.Source.Title
	}
	if c.Passage < len(d.Passages) && d.Passages[c.Passage].Page > 0 {
		out.Page = &d.Passages[c.Passage].Page
	}
	if c.Evidence.Len() > 0 {
		words := d.Text[c.Evidence.Start:c.Evidence.End]
		out.Evidence = &words
	}
	return out
}
