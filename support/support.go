package support

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ibidhq/ibid"
)

// Label is what a [Checker] says of a claim and its passages.
type Label string

// The labels. The zero Label says nothing, as [Unverified] does.
const (
	Supported    Label = "supported"    // the passages say it
	Partial      Label = "partial"      // they say a part of it, or all but a number, date, name or negation
	Unsupported  Label = "unsupported"  // they do not say it; they need not say the contrary
	Contradicted Label = "contradicted" // they say the contrary; never said by rules, only by a configured judge
	Unverified   Label = "unverified"   // the checker abstains, or could not find out
)

// Passage is a text that may support a claim.
type Passage struct {
	ID       string // the caller's; not read
	Text     string // UTF-8; bytes that are not are read as word boundaries
	Language string // BCP 47; empty: recognised
}

// Pair is one claim and the passages that it is to be checked against, taken together.
type Pair struct {
	Claim string
	// Context is what precedes the claim: the words of the answer before it, or the question. A checker may use it to
	// resolve what the claim refers to. It is never evidence.
	Context  string
	Passages []Passage
	// Others are what the other sources of the same answer say. They support nothing: see [RightSource].
	Others []Passage
}

// Span is a piece of evidence: bytes of the text of one passage of a [Pair].
type Span struct {
	Passage int // index in Pair.Passages
	ibid.Span
}

// Text returns the words of a piece of evidence; empty if the pair has no such place.
func (p *Pair) Text(s Span) string {
	if s.Passage < 0 || s.Passage >= len(p.Passages) {
		return ""
	}
	return textAt(p.Passages[s.Passage].Text, s.Span)
}

// OtherText returns what stands in a place of p.Others: see [Verdict.WrongSource]. It is empty if there is no such
// place.
func (p *Pair) OtherText(s Span) string {
	if s.Passage < 0 || s.Passage >= len(p.Others) {
		return ""
	}
	return textAt(p.Others[s.Passage].Text, s.Span)
}

// textAt returns what stands in a span of a text; empty if the text has no such place. What a checker says of a place
// is cut here and nowhere else.
func textAt(text string, s ibid.Span) string {
	if s.Start < 0 || s.End < s.Start || s.End > len(text) {
		return ""
	}
	return text[s.Start:s.End]
}

// shifted returns s counted from n bytes further on.
func shifted(s ibid.Span, n int) ibid.Span { return ibid.Span{Start: s.Start + n, End: s.End + n} }

// TermKind is what a [Term] is.
type TermKind string

// The kinds of a term.
const (
	TermWord   TermKind = "word"
	TermNumber TermKind = "number"
	TermDate   TermKind = "date"
	TermName   TermKind = "name"
)

// Term is a piece of a claim that its evidence lacks.
type Term struct {
	Text string // as it stands in the claim
	Kind TermKind
	Span ibid.Span // in Pair.Claim
}

// Verdict is what a [Checker] says about one [Pair].
type Verdict struct {
	Label Label
	// Score is the probability in [0, 1] that people who read both would call the claim supported; see
	// [Info.Calibrated]. Nil: the checker has none.
	Score    *float64
	Evidence []Span // where in the passages the support stands, best first
	Missing  []Term // what the claim says and the evidence does not, rarest first
	// Conflicts are the differences of value behind Changed: A is the claim's side, B the evidence's.
	Conflicts []Conflict
	// WrongSource is where in Pair.Others the claim is said, if it is not in the passages; nil: nowhere, or nobody
	// looked.
	WrongSource *Span
	Verbatim    bool // the claim's words stand in the evidence as they are
	Changed     bool // a number, date, name or negation of the claim differs from the evidence
	// Signals are the parts of the judgement by name, for people who want to know why. Names belong to the checker, but
	// for [SignalContradiction].
	Signals   map[string]float64
	By        string       // the checker that said it, as ID@Version
	Threshold float64      // the least score of [Supported]; 0: the checker has none
	Escalated bool         // a [Cascade] asked its slow checker
	Err       error        // why this pair could not be judged; the label is [Unverified] then, and never another
	Issues    []ibid.Issue // what was odd: claim-truncated, language-unmeasured …
}

// note adds an issue to a verdict.
func (v *Verdict) note(code, format string, args ...any) {
	v.Issues = append(v.Issues, ibid.Issue{Code: code, Detail: fmt.Sprintf(format, args...)})
}

// Word returns the word with which a manifest, a page or a report shows v: supported-verbatim, supported-lexical,
// supported-NAME of another checker, support-suspect, support-unchecked or unsupported-claim.
//
// It is support-suspect where a part is missing or a value differs, however high the score.
func (v *Verdict) Word() string {
	switch v.Label {
	case Supported:
		switch name, _, _ := strings.Cut(v.By, "@"); {
		case v.Changed:
			return "support-suspect"
		case v.Verbatim:
			return "supported-verbatim"
		case name == "":
			return "supported-" + lexicalID
		default:
			return "supported-" + name
		}
	case Partial:
		return "support-suspect"
	case Unsupported, Contradicted:
		return "unsupported-claim"
	default:
		return "support-unchecked"
	}
}

// Checker says of claims whether passages support them.
type Checker interface {
	// Check returns one verdict per pair, in their order. What goes wrong with one pair stands in its Verdict.Err; the
	// error is for what leaves all of them without a verdict, such as a context that has ended.
	Check(ctx context.Context, in []Pair) ([]Verdict, error)
	// Info describes the checker. It does not change.
	Info() Info
}

// CheckPairs asks a checker about pairs, unless there are none. The error of a checker that gives another number of
// verdicts than there are pairs says so.
func CheckPairs(ctx context.Context, c Checker, pairs []Pair) ([]Verdict, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	verdicts, err := c.Check(ctx, pairs)
	if err == nil && len(verdicts) != len(pairs) {
		err = fmt.Errorf("checker %s gave %d verdicts for %d pairs", c.Info().By(), len(verdicts), len(pairs))
	}
	return verdicts, err
}

// Info describes a [Checker].
type Info struct {
	ID, Version string
	Params      string   // a hash of all that the verdicts depend on besides ID and Version
	Languages   []string // BCP 47 of the languages that its quality was measured in; empty: it does not say
	Calibrated  bool     // its scores are probabilities, measured on labelled pairs
}

// By returns ID@Version, which stands in [Verdict.By].
func (i Info) By() string { return i.ID + "@" + i.Version }

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
