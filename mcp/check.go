package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// MaxPassages is how many passages one call of check may have.
const MaxPassages = 256

// checkArgs are the arguments of check.
type checkArgs struct {
	Claim    string   `json:"claim"`
	Passages []string `json:"passages"`
	Context  string   `json:"context"`
}

// checked is what check gives back. Its names are those of `ibid check --json`.
type checked struct {
	Label      support.Label     `json:"label"`
	Score      *float64          `json:"score"`
	Calibrated bool              `json:"calibrated"`
	Missing    []string          `json:"missing"`
	Evidence   []checkedEvidence `json:"evidence"`
	Verbatim   bool              `json:"verbatim"`
	Changed    bool              `json:"changed"`
	Conflicts  []checkedConflict `json:"conflicts"`
	Word       string            `json:"word"`
	By         string            `json:"by"`
	Threshold  *float64          `json:"threshold"`
	Issues     []ibid.Issue      `json:"issues"`
}

type checkedEvidence struct {
	Passage int    `json:"passage"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Text    string `json:"text"`
}

type checkedConflict struct {
	Kind     support.ConflictKind `json:"kind"`
	Claim    string               `json:"claim"`
	Evidence string               `json:"evidence"`
	Note     string               `json:"note"`
}

// check says whether passages support a claim.
func (m *MCP) check(ctx context.Context, c *call) (*result, error) {
	var args checkArgs
	if err := readArgs(c.args, &args); err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(args.Claim) == "":
		return nil, refuse("claim: it is missing or empty", "it is one sentence, or a few")
	case len(args.Passages) == 0:
		return nil, refuse(
			"passages: there are none", "they are texts that may support the claim, taken together; nothing is fetched",
		)
	case len(args.Passages) > MaxPassages:
		return nil, refuse(
			fmt.Sprintf("passages: there are more than %d", MaxPassages),
			"the tool attribute finds the right ones in whole texts",
		)
	}
	pair := support.Pair{Claim: args.Claim, Context: args.Context}
	for _, p := range args.Passages {
		pair.Passages = append(pair.Passages, support.Passage{Text: p})
	}
	verdicts, err := m.checker.Check(ctx, []support.Pair{pair})
	if err == nil && verdicts[0].Err != nil {
		err = verdicts[0].Err
	}
	if err != nil {
		return nil, m.checkerFailed(ctx, err)
	}
	out := showVerdict(&pair, &verdicts[0])
	out.Calibrated = m.checker.Info().Calibrated
	return &result{verdictText(out), out}, nil
}

// checkerFailed says that a checker could say nothing. Why may hold addresses that are the operator's, so it goes into
// the log.
func (m *MCP) checkerFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return err
	}
	m.logger.LogAttrs(ctx, slog.LevelError, "a checker failed", slog.Any("error", err))
	return refuse("the checker could not say anything", "try again; ibid's log says why")
}

func showVerdict(p *support.Pair, v *support.Verdict) *checked {
	out := &checked{
		Label: cmp.Or(
			v.Label, support.Unverified,
		),
		Score:     v.Score,
		Verbatim:  v.Verbatim,
		Changed:   v.Changed,
		Word:      v.Word(),
		By:        v.By,
		Missing:   []string{},
		Evidence:  []checkedEvidence{},
		Conflicts: []checkedConflict{},
		Issues:    append([]ibid.Issue{}, v.Issues...),
	}
	if v.Threshold > 0 {
		out.Threshold = &v.Threshold
	}
	for i := range v.Missing {
		out.Missing = append(out.Missing, v.Missing[i].Text)
	}
	for _, e := range v.Evidence {
		out.Evidence = append(
			out.Evidence, checkedEvidence{e.Passage, e.Start, e.End, p.Text(e)},
		)
	}
	for i := range v.Conflicts {
		x := &v.Conflicts[i]
		out.Conflicts = append(out.Conflicts, checkedConflict{x.Kind, x.A.ValueText(), x.B.ValueText(), x.Note})
	}
	return out
}

// verdictText writes a verdict for a model.
func verdictText(v *checked) string {
	var b strings.Builder
	b.WriteString(string(v.Label))
	if v.Score != nil {
		fmt.Fprintf(&b, ", score %.2f", *v.Score)
	}
	if len(v.Missing) > 0 {
		b.WriteString("\nmissing from the passages: " + cut(strings.Join(v.Missing, ", ")))
	}
	for _, c := range v.Conflicts {
		fmt.Fprintf(&b, "\nchanged %s: the claim says %q, the evidence %q", c.Kind, cut(c.Claim), cut(c.Evidence))
	}
	for _, e := range v.Evidence {
		fmt.Fprintf(&b, "\nevidence in passage %d: %q", e.Passage, cut(e.Text))
	}
	for _, i := range v.Issues {
		fmt.Fprintf(&b, "\nissue %s: %s", i.Code, cut(i.Detail))
	}
	return b.String()
}
