package support

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ibidhq/ibid"
)

// Label is a [Checker]'s judgement on a claim and its passages.
type Label string

// The labels. The zero Label means the same as [Unjudged]. Words alone never say more than Differs: whether a passage
// means what a claim says, or denies it, is for a judge.
const (
	Supported    Label = "supported"    // the passages say it, word for word or nearly so, or a judge says that they do
	Differs      Label = "differs"      // they say it, but for one detail: see [Verdict.Differences]
	Unjudged     Label = "unjudged"     // they were read, and nobody has judged what they mean
	Unsupported  Label = "unsupported"  // a judge says that they do not say it, or not all of it
	Contradicted Label = "contradicted" // a judge says that they deny it
	Unchecked    Label = "unchecked"    // there was nothing to read
)

// Passage is a text that may support a claim.
type Passage struct {
	ID       string // for the caller; not read
	Text     string // UTF-8; invalid bytes are read as word boundaries
	Language string // BCP 47; detected if empty
}

// Pair is one claim and the passages to check it against, taken together.
type Pair struct {
	Claim string
	// Context is the text that precedes the claim: the answer up to it, or the question. A checker may use it to
	// resolve what the claim refers to. It is never evidence.
	Context  string
	Passages []Passage
	// Others are passages of the answer's other sources. They support nothing: see [RightSource].
	Others []Passage
}

// Span is a piece of evidence: a byte range in one passage of a [Pair].
type Span struct {
	Passage int // index in Pair.Passages
	ibid.Span
}

// Text returns the text of a piece of evidence, or "" if the pair has no such place.
func (p *Pair) Text(s Span) string {
	if s.Passage < 0 || s.Passage >= len(p.Passages) {
		return ""
	}
	return textAt(p.Passages[s.Passage].Text, s.Span)
}

// OtherText returns the text of a span of p.Others, as [Verdict.WrongSource] is, or "" if there is no such place.
func (p *Pair) OtherText(s Span) string {
	if s.Passage < 0 || s.Passage >= len(p.Others) {
		return ""
	}
	return textAt(p.Others[s.Passage].Text, s.Span)
}

// textAt returns the text of a span, or "" if the span is out of range. Spans from checkers are sliced only here.
func textAt(text string, s ibid.Span) string {
	if s.Start < 0 || s.End < s.Start || s.End > len(text) {
		return ""
	}
	return text[s.Start:s.End]
}

// shifted returns s moved by n bytes.
func shifted(s ibid.Span, n int) ibid.Span { return ibid.Span{Start: s.Start + n, End: s.End + n} }

// TermKind is the kind of a [Term].
type TermKind string

// The kinds of a term.
const (
	TermWord   TermKind = "word"
	TermNumber TermKind = "number"
	TermDate   TermKind = "date"
	TermName   TermKind = "name"
)

// Term is a part of a claim that its evidence lacks.
type Term struct {
	Text string // as written in the claim
	Kind TermKind
	Span ibid.Span // in Pair.Claim
}

// Verdict is the judgement of a [Checker] on one [Pair].
type Verdict struct {
	Label Label
	// Closeness is how near the passages are to the claim, in [0, 1]: a number to rank and select passages by, not the
	// probability that the claim is true. Nil if the checker has none.
	Closeness *float64
	Evidence  []Span // where the passages are nearest to the claim, best first
	Missing   []Term // the terms of the claim that the evidence lacks, rarest first
	// Differences are the details in which the claim differs: A is the claim's side, B the evidence's. With labels
	// other than [Differs] they only annotate a judge's verdict.
	Differences []Conflict
	// WrongSource is where Pair.Others says the claim, if the passages do not; nil if nowhere, or if it was not looked
	// for.
	WrongSource *Span
	Verbatim    bool // the evidence contains the claim word for word
	// Signals are the parts of the closeness by name, to explain it. The names belong to the checker.
	Signals   map[string]float64
	By        string       // the checker, as ID@Version
	Escalated bool         // a judge was asked, or its verdict was cached
	Err       error        // why this pair could not be judged; the label is then always [Unjudged]
	Issues    []ibid.Issue // irregularities: claim-truncated, language-unmeasured …
}

func (v *Verdict) note(code, format string, args ...any) {
	v.Issues = append(v.Issues, ibid.Issue{Code: code, Detail: fmt.Sprintf(format, args...)})
}

// CloseEnough is the closeness from which on passages that nobody judged may be taken for a claim's source.
const CloseEnough = 0.6

// IsClose reports whether the passages may be taken for the claim's source: the claim is supported, or they are close
// to it and nobody says otherwise.
func (v *Verdict) IsClose() bool {
	return v.Label == Supported || v.Label == Unjudged && v.Closeness != nil && *v.Closeness >= CloseEnough
}

// Word returns the word that a manifest, a page or a report shows for v: supported-verbatim, supported-lexical,
// supported-NAME for another checker, differs, unjudged, unsupported-NAME, contradicted-NAME or unchecked.
func (v *Verdict) Word() string {
	name, _, _ := strings.Cut(v.By, "@")
	switch v.Label {
	case Supported:
		if v.Verbatim {
			return "supported-verbatim"
		}
		return "supported-" + cmp.Or(name, lexicalID)
	case Unsupported, Contradicted:
		return string(v.Label) + "-" + cmp.Or(name, "judge")
	default:
		return string(cmp.Or(v.Label, Unjudged))
	}
}

// Checker checks whether passages support claims.
type Checker interface {
	// Check returns one verdict per pair, in the same order. A problem with one pair is reported in its Verdict.Err;
	// the error is for failures that leave all of them without a verdict, such as a cancelled context.
	Check(ctx context.Context, in []Pair) ([]Verdict, error)
	// Info describes the checker. It does not change.
	Info() Info
}

// CheckPairs has a checker judge pairs, unless there are none. It fails if the checker returns a different number of
// verdicts than there are pairs.
func CheckPairs(ctx context.Context, c Checker, pairs []Pair) ([]Verdict, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	verdicts, err := c.Check(ctx, pairs)
	if err == nil && len(verdicts) != len(pairs) {
		err = fmt.Errorf("checker %s returned %d verdicts for %d pairs", c.Info().By(), len(verdicts), len(pairs))
	}
	return verdicts, err
}

// Info describes a [Checker].
type Info struct {
	ID, Version string
	Params      string   // a hash of everything else that the verdicts depend on
	Languages   []string // BCP 47 of the languages that it was measured in; empty if unknown
}

// By returns ID@Version, as in [Verdict.By].
func (i Info) By() string { return i.ID + "@" + i.Version }

// Report is a verdict as JSON. The member names are those of `ibid check --json` and will not change. Lists are never
// null.
type Report struct {
	Label       Label              `json:"label"`
	Closeness   *float64           `json:"closeness"`
	Differences []ReportDifference `json:"differences"`
	Missing     []string           `json:"missing"`
	Evidence    []ReportEvidence   `json:"evidence"`
	Word        string             `json:"word"` // as shown in a manifest or on a page
	By          string             `json:"by"`
	Verbatim    bool               `json:"verbatim"`
	// WrongSource is where another source says the claim and its own does not; Passage is an index in the others.
	WrongSource *ReportEvidence `json:"wrong_source,omitempty"`
}

// ReportEvidence is a piece of evidence. Offsets are UTF-8 bytes in the passage, or in the source's text if Source is
// set.
type ReportEvidence struct {
	Passage int     `json:"passage"`
	Source  *string `json:"source,omitempty"`
	Page    *int    `json:"page,omitempty"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Text    string  `json:"text"`
}

// ReportDifference is a detail in which a claim differs from its evidence: the words of both, and a line to display.
type ReportDifference struct {
	Kind     ConflictKind `json:"kind"`
	Claim    string       `json:"claim"`
	Evidence string       `json:"evidence"`
	Note     string       `json:"note"`
}

// Report returns the verdict on p in its JSON form.
func (v *Verdict) Report(p *Pair) *Report {
	r := &Report{
		Label: cmp.Or(v.Label, Unjudged), Closeness: v.Closeness, Differences: v.ReportDifferences(),
		Missing: v.MissingWords(), Evidence: []ReportEvidence{}, Word: v.Word(), By: v.By, Verbatim: v.Verbatim,
	}
	if e := v.WrongSource; e != nil {
		r.WrongSource = &ReportEvidence{Passage: e.Passage, Start: e.Start, End: e.End, Text: p.OtherText(*e)}
	}
	for _, e := range v.Evidence {
		r.Evidence = append(r.Evidence, ReportEvidence{Passage: e.Passage, Start: e.Start, End: e.End, Text: p.Text(e)})
	}
	return r
}

// MissingWords returns the texts of v.Missing. The list is never nil.
func (v *Verdict) MissingWords() []string {
	all := []string{}
	for i := range v.Missing {
		all = append(all, v.Missing[i].Text)
	}
	return all
}

// ReportDifferences returns v.Differences in their JSON form. The list is never nil.
func (v *Verdict) ReportDifferences() []ReportDifference {
	all := []ReportDifference{}
	for i := range v.Differences {
		c := &v.Differences[i]
		all = append(all, ReportDifference{c.Kind, c.A.ValueText(), c.B.ValueText(), c.Note})
	}
	return all
}
