package main

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// checkLine is the output of ibid check --json and --batch: names stay, and there may be more.
type checkLine struct {
	ID        json.RawMessage    `json:"id,omitempty"` // as the line has it; absent without --batch
	Line      int                `json:"line,omitempty"`
	Label     support.Label      `json:"label"`
	Score     *float64           `json:"score"`
	Missing   []string           `json:"missing"`
	Evidence  []checkEvidence    `json:"evidence"`
	Word      string             `json:"word"` // as a manifest or a page shows it
	By        string             `json:"by"`
	Threshold *float64           `json:"threshold"`
	Verbatim  bool               `json:"verbatim"`
	Changed   bool               `json:"changed"`
	Conflicts []checkConflict    `json:"conflicts"`
	Escalated bool               `json:"escalated"`
	Signals   map[string]float64 `json:"signals,omitempty"`
	Issues    []ibid.Issue       `json:"issues"`
	Error     *checkError        `json:"error,omitempty"`
}

// checkEvidence is a piece of evidence. Offsets are UTF-8 bytes, of the passage, or of the source's text where Source
// is set.
type checkEvidence struct {
	Passage int     `json:"passage"`
	Source  *string `json:"source,omitempty"`
	Page    *int    `json:"page,omitempty"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Text    string  `json:"text"`
}

// checkConflict is a value that differs.
type checkConflict struct {
	Kind     support.ConflictKind `json:"kind"`
	Claim    string               `json:"claim"`
	Evidence string               `json:"evidence"`
	Note     string               `json:"note"`
}

type checkError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// newCheckLine returns what is written of a verdict. Lists are never null.
func newCheckLine(p *support.Pair, v *support.Verdict) *checkLine {
	line := &checkLine{
		Label: v.Label, Score: v.Score, Word: v.Word(), By: v.By, Verbatim: v.Verbatim, Changed: v.Changed,
		Escalated: v.Escalated, Signals: v.Signals, Issues: append([]ibid.Issue{}, v.Issues...),
		Missing: []string{}, Evidence: []checkEvidence{}, Conflicts: conflictsOf(v),
	}
	if v.Threshold > 0 {
		line.Threshold = &v.Threshold
	}
	for i := range v.Missing {
		line.Missing = append(line.Missing, v.Missing[i].Text)
	}
	for _, e := range v.Evidence {
		line.Evidence = append(line.Evidence, checkEvidence{
			Passage: e.Passage, Start: e.Start, End: e.End, Text: p.Text(e),
		})
	}
	if v.Err != nil {
		line.Error = &checkError{"unchecked", v.Err.Error()}
	}
	return line
}

func writeCheckLine(w io.Writer, line *checkLine) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(line); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
