package support_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/support"
)

// keyed judges by what a passage begins with: "yes", "no", "broken"; it stands for a judge that can refute.
type keyed struct{ short bool }

func (k keyed) Info() support.Info { return support.Info{ID: "keyed", Version: "1"} }

func (k keyed) Check(_ context.Context, in []support.Pair) ([]support.Verdict, error) {
	if k.short {
		return nil, nil
	}
	out := make([]support.Verdict, len(in))
	for i := range in {
		score := func(s float64) *float64 { return &s }
		word, _, _ := strings.Cut(in[i].Passages[0].Text, " ")
		switch word {
		case "yes":
			out[i] = support.Verdict{Label: support.Supported, Score: score(.9)}
		case "no":
			out[i] = support.Verdict{Label: support.Contradicted, Score: score(.1)}
		case "hardly":
			out[i] = support.Verdict{Label: support.Contradicted, Signals: map[string]float64{support.SignalContradiction: .45}}
		case "never":
			out[i] = support.Verdict{Label: support.Contradicted, Signals: map[string]float64{support.SignalContradiction: .9}}
		case "broken":
			out[i] = support.Verdict{Label: support.Supported, Score: score(.9), Err: errors.New("no answer")}
		default:
			out[i] = support.Verdict{Label: support.Unsupported, Score: score(.2)}
		}
	}
	return out, nil
}

func passages(texts ...string) []support.Passage {
	out := make([]support.Passage, len(texts))
	for i, text := range texts {
		out[i].Text = text
	}
	return out
}

func TestStancesAreDisputedByTwoSources(t *testing.T) {
	m, err := support.Stances(t.Context(), []string{"a", "b"}, passages("yes it is", "no it is not", "other", "hardly", "broken", "never"), keyed{})
	if err != nil {
		t.Fatal(err)
	}
	want := []support.Stand{support.Supports, support.Refutes, support.Neither, support.Neither, support.Neither, support.Refutes}
	for claim := range m.Cells {
		for i, cell := range m.Cells[claim] {
			if cell.Stand != want[i] {
				t.Errorf("claim %d, passage %d: %s, want %s", claim, i, cell.Stand, want[i])
			}
		}
		if !m.Disputed[claim] {
			t.Errorf("claim %d is not disputed", claim)
		}
	}
	// What is not the probability of supported need not be that of contradicted.
	if r := m.Cells[0][1].Refute; r != nil {
		t.Errorf("refuted with %v, which nobody said", *r)
	}
	for i, want := range map[int]float64{3: .45, 5: .9} {
		if r := m.Cells[0][i].Refute; r == nil || *r != want {
			t.Errorf("passage %d: refuted with %v, want %v", i, r, want)
		}
	}
	if !m.Refuting || m.By != "keyed@1" {
		t.Errorf("refuting %v by %q", m.Refuting, m.By)
	}
	m, err = support.Stances(t.Context(), []string{"a"}, passages("yes", "other", "broken"), keyed{})
	if err != nil || m.Disputed[0] {
		t.Errorf("disputed without a refutation: %v, %v", m.Disputed, err)
	}
}

func TestStancesOfTheDefaultCheckerNeverRefute(t *testing.T) {
	claim := "The Verrin Bridge opened in 1937."
	m, err := support.Stances(t.Context(), []string{claim}, passages("The Verrin Bridge opened in 1937.", "The Verrin Bridge did not open in 1937.", "Tea is a drink."), nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Cells[0][0].Stand != support.Supports || m.Cells[0][2].Stand != support.Neither {
		t.Errorf("stands %s, %s", m.Cells[0][0].Stand, m.Cells[0][2].Stand)
	}
	for i, cell := range m.Cells[0] {
		if cell.Stand == support.Refutes || cell.Refute != nil {
			t.Errorf("passage %d refutes", i)
		}
	}
	if m.Refuting || m.Disputed[0] {
		t.Errorf("refuting %v, disputed %v", m.Refuting, m.Disputed)
	}
}

func TestStancesLimitsAndErrors(t *testing.T) {
	many := make([]string, support.MaxStances/2+1)
	m, err := support.Stances(t.Context(), many, passages("yes", "no"), keyed{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Issues) != 1 || m.Issues[0].Code != support.IssueStancesTruncated {
		t.Errorf("issues %v", m.Issues)
	}
	if last := m.Cells[len(many)-1][1].Stand; last != support.Neither {
		t.Errorf("behind the limit: %s", last)
	}
	if _, err := support.Stances(t.Context(), many[:1], passages("yes"), keyed{short: true}); err == nil {
		t.Error("a checker without verdicts was believed")
	}
	if m, err := support.Stances(t.Context(), many[:2], nil, keyed{}); err != nil || len(m.Cells) != 2 {
		t.Errorf("no passages: %v, %v", m, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := support.Stances(ctx, []string{"The bridge opened."}, passages("The bridge opened."), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
