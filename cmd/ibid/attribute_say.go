package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// maxUncited is how many sentences without a source are listed for people.
const maxUncited = 20

// attributionJSON is the member attribution of the answer document that ibid attribute writes. Offsets are in the
// document's unit.
type attributionJSON struct {
	By           string         `json:"by"`
	Threshold    float64        `json:"threshold"`
	UncitedShare *float64       `json:"uncited_share"` // null: no sentence says anything
	Uncited      []sentenceJSON `json:"uncited"`
	// of the sources: what of them could not be read, or was odd
	Issues    []ibid.Issue    `json:"issues"`
	Sentences *[]sentenceJSON `json:"sentences,omitempty"` // with --explain
}

type sentenceJSON struct {
	Start      int              `json:"text_start"`
	End        int              `json:"text_end"`
	Text       string           `json:"text"`
	Skipped    *string          `json:"skipped"`
	Citations  int              `json:"citations"`
	Candidates *[]candidateJSON `json:"candidates,omitempty"`
}

type candidateJSON struct {
	Source    string          `json:"source"` // the id of the document
	Title     *string         `json:"title"`
	Passage   int             `json:"passage"`
	Page      *int            `json:"page"`
	Relevance float64         `json:"relevance"`
	Score     *float64        `json:"score"`
	Label     support.Label   `json:"label"`
	Evidence  *string         `json:"evidence"`
	Missing   []string        `json:"missing"`
	Changed   bool            `json:"changed"`
	Conflicts []checkConflict `json:"conflicts"`
	Cited     bool            `json:"cited"`
}

// writeJSON writes the answer document with the member attribution.
func (job *attributeJob) writeJSON(found *support.Attribution, docs []support.Document) error {
	f := &job.flags.cite
	line, err := found.Answer.Document(&ibid.DocumentOptions{
		Unit: ibid.Unit(
			f.unit,
		),
		Style: ibid.Style(f.style),
		ByID:  f.marker == "id",
		Raw:   f.raw,
		Input: job.answer,
	}).JSON()
	if err != nil {
		return err
	}
	report := attributionJSON{
		By:           found.By,
		Threshold:    found.Threshold,
		UncitedShare: found.Uncited,
		Uncited:      []sentenceJSON{},
		Issues:       append([]ibid.Issue{}, job.issues...),
	}
	offsets := ibid.NewOffsets(found.Answer.Text)
	sentences := []sentenceJSON{}
	for i := range found.Sentences {
		s := &found.Sentences[i]
		out := sentenceJSON{Text: found.Answer.Text[s.Span.Start:s.Span.End], Citations: s.Cited}
		out.Start, out.End = offsets.In(ibid.Unit(f.unit), s.Span)
		if s.Skipped != "" {
			out.Skipped = (*string)(&s.Skipped)
		}
		if s.Uncited() {
			report.Uncited = append(report.Uncited, out)
		}
		if job.flags.explain {
			out.Candidates = &[]candidateJSON{}
			for k := range s.Candidates {
				*out.Candidates = append(*out.Candidates, newCandidate(&s.Candidates[k], docs))
			}
			sentences = append(sentences, out)
		}
	}
	if job.flags.explain {
		report.Sentences = &sentences
	}
	member, err := json.Marshal(report)
	if err != nil {
		return err
	}
	line = append(line[:len(line)-1], `,"attribution":`...)
	_, err = job.out.Write(append(append(line, member...), "}\n"...))
	return err
}

func newCandidate(c *support.Candidate, docs []support.Document) candidateJSON {
	d := &docs[c.Document]
	out := candidateJSON{
		Source:    d.Source.ID,
		Passage:   c.Passage,
		Relevance: c.Relevance,
		Score:     c.Verdict.Score,
		Label:     c.Verdict.Label,
		Missing: lacking(
			&c.Verdict,
		),
		Changed:   c.Verdict.Changed,
		Conflicts: conflictsOf(&c.Verdict),
		Cited:     c.Source != "",
	}
	if d.Source.Title != "" {
		out.Title = &d.Source.Title
	}
	if page := d.Passages[c.Passage].Page; page > 0 {
		out.Page = &page
	}
	if c.Evidence.Len() > 0 {
		words := d.Text[c.Evidence.Start:c.Evidence.End]
		out.Evidence = &words
	}
	return out
}

// conflictsOf returns what a claim says otherwise than its evidence. The list is never nil.
func conflictsOf(v *support.Verdict) []checkConflict {
	all := []checkConflict{}
	for i := range v.Conflicts {
		c := &v.Conflicts[i]
		all = append(all, checkConflict{c.Kind, c.A.ValueText(), c.B.ValueText(), c.Note})
	}
	return all
}

func lacking(v *support.Verdict) []string {
	all := []string{}
	for i := range v.Missing {
		all = append(all, v.Missing[i].Text)
	}
	return all
}

// comment tells people what the output does not.
func (job *attributeJob) comment(found *support.Attribution, docs []support.Document) {
	if job.flags.explain && job.form != asJSON {
		job.explainAll(found, docs)
	}
	var without []string
	said := 0
	for i := range found.Sentences {
		s := &found.Sentences[i]
		if s.Says() {
			said++
		}
		if s.Uncited() {
			without = append(without, found.Answer.Text[s.Span.Start:s.Span.End])
		}
	}
	switch {
	case said == 0:
		say(job.err, "the answer has no sentence that says something")
	case len(without) > 0:
		say(job.err, "%d of %s without a source:", len(without), plural(said, "sentence"))
		for _, words := range without[:min(len(without), maxUncited)] {
			say(job.err, "no source: %s", words)
		}
		if more := len(without) - maxUncited; more > 0 {
			say(job.err, "and %d more: --json lists all", more)
		}
	}
}

// explainAll says for each sentence what was considered.
func (job *attributeJob) explainAll(found *support.Attribution, docs []support.Document) {
	for i := range found.Sentences {
		s := &found.Sentences[i]
		say(job.err, "sentence %d: %s", i+1, found.Answer.Text[s.Span.Start:s.Span.End])
		if s.Skipped != "" {
			say(job.err, "  skipped: %s", s.Skipped)
			continue
		}
		if len(s.Candidates) == 0 {
			say(job.err, "  no passage has a word of it")
		}
		for k := range s.Candidates {
			say(job.err, "%s", explainOne(found, s, &s.Candidates[k], docs))
		}
	}
}

// explainOne returns a line about a passage.
func explainOne(
	found *support.Attribution, s *support.SentenceSupport, c *support.Candidate, docs []support.Document,
) string {
	d := &docs[c.Document]
	var b strings.Builder
	b.WriteString("  ")
	if c.Source != "" {
		b.WriteString("cited: ")
	}
	if c.Verdict.Score != nil {
		fmt.Fprintf(&b, "%.2f ", *c.Verdict.Score)
	}
	fmt.Fprintf(&b, "%s by %s", c.Verdict.Label, d.Source.ID)
	if page := d.Passages[c.Passage].Page; page > 0 {
		fmt.Fprintf(&b, " p. %d", page)
	}
	fmt.Fprintf(&b, ", passage %d, relevance %.2f", c.Passage, c.Relevance)
	if lacks := lacking(&c.Verdict); len(lacks) > 0 {
		b.WriteString("; it lacks: " + strings.Join(lacks[:min(len(lacks), 8)], ", "))
	}
	for _, conflict := range conflictsOf(&c.Verdict) {
		b.WriteString("; changed: " + conflict.String())
	}
	return b.String()
}
