package support

import "cmp"

// Report is a verdict as JSON. Its names are those of `ibid check --json`: they stay. Lists are never null.
type Report struct {
	Label     Label            `json:"label"`
	Score     *float64         `json:"score"`
	Missing   []string         `json:"missing"`
	Evidence  []ReportEvidence `json:"evidence"`
	Word      string           `json:"word"` // as a manifest or a page shows it
	By        string           `json:"by"`
	Threshold *float64         `json:"threshold"`
	Verbatim  bool             `json:"verbatim"`
	Changed   bool             `json:"changed"`
	Conflicts []ReportConflict `json:"conflicts"`
	// WrongSource is where another source says the claim that its own does not; passages count in the others.
	WrongSource *ReportEvidence `json:"wrong_source,omitempty"`
}

// ReportEvidence is a piece of evidence. Offsets are UTF-8 bytes, of the passage, or of the source's text where Source
// is set.
type ReportEvidence struct {
	Passage int     `json:"passage"`
	Source  *string `json:"source,omitempty"`
	Page    *int    `json:"page,omitempty"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Text    string  `json:"text"`
}

// ReportConflict is a value in which a claim differs from its evidence.
type ReportConflict struct {
	Kind     ConflictKind `json:"kind"`
	Claim    string       `json:"claim"`
	Evidence string       `json:"evidence"`
	Note     string       `json:"note"`
}

// Report returns the verdict on p as JSON has it.
func (v *Verdict) Report(p *Pair) *Report {
	r := &Report{
		Label: cmp.Or(v.Label, Unverified), Score: v.Score, Missing: v.MissingWords(), Evidence: []ReportEvidence{},
		Word: v.Word(), By: v.By, Verbatim: v.Verbatim, Changed: v.Changed, Conflicts: v.ReportConflicts(),
	}
	if v.Threshold > 0 {
		r.Threshold = &v.Threshold
	}
	if e := v.WrongSource; e != nil {
		r.WrongSource = &ReportEvidence{Passage: e.Passage, Start: e.Start, End: e.End, Text: p.OtherText(*e)}
	}
	for _, e := range v.Evidence {
		r.Evidence = append(r.Evidence, ReportEvidence{Passage: e.Passage, Start: e.Start, End: e.End, Text: p.Text(e)})
	}
	return r
}

// MissingWords returns what the claim says and the evidence does not. The list is never nil.
func (v *Verdict) MissingWords() []string {
	all := []string{}
	for i := range v.Missing {
		all = append(all, v.Missing[i].Text)
	}
	return all
}

// ReportConflicts returns what the claim says otherwise than its evidence. The list is never nil.
func (v *Verdict) ReportConflicts() []ReportConflict {
	all := []ReportConflict{}
	for i := range v.Conflicts {
		c := &v.Conflicts[i]
		all = append(all, ReportConflict{c.Kind, c.A.ValueText(), c.B.ValueText(), c.Note})
	}
	return all
}
