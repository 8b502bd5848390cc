package support

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// keyed judges by what a passage begins with: "yes", "no", "broken"; it stands for a judge that can refute.
type keyed struct{ short bool }

func (k keyed) Info() Info { return Info{ID: "keyed", Version: "1"} }

func (k keyed) Check(_ context.Context, in []Pair) ([]Verdict, error) {
	if k.short {
		return nil, nil
	}
	out := make([]Verdict, len(in))
	for i := range in {
		score := func(s float64) *float64 { return &s }
		word, _, _ := strings.Cut(in[i].Passages[0].Text, " ")
		switch word {
		case "yes":
			out[i] = Verdict{Label: Supported, Score: score(.9)}
		case "no":
			out[i] = Verdict{Label: Contradicted, Score: score(.1)}
		case "hardly":
			out[i] = Verdict{Label: Contradicted, Signals: map[string]float64{SignalContradiction: .45}}
		case "never":
			out[i] = Verdict{Label: Contradicted, Signals: map[string]float64{SignalContradiction: .9}}
		case "broken":
			out[i] = Verdict{Label: Supported, Score: score(.9), Err: errors.New("no answer")}
		default:
			out[i] = Verdict{Label: Unsupported, Score: score(.2)}
		}
	}
	return out, nil
}

func TestStancesAreDisputedByTwoSources(t *testing.T) {
	m, err := Stances(t.Context(), []string{"a", "b"}, passages("yes it is", "no it is not", "other", "hardly", "broken", "never"), keyed{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Stand{Supports, Refutes, Neither, Neither, Neither, Refutes}
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
	m, err = Stances(t.Context(), []string{"a"}, passages("yes", "other", "broken"), keyed{})
	if err != nil || m.Disputed[0] {
		t.Errorf("disputed without a refutation: %v, %v", m.Disputed, err)
	}
}

func TestStancesOfTheDefaultCheckerNeverRefute(t *testing.T) {
	claim := "The Verrin Bridge opened in 1937."
	m, err := Stances(t.Context(), []string{claim}, passages("The Verrin Bridge opened in 1937.", "The Verrin Bridge did not open in 1937.", "Tea is a drink."), nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Cells[0][0].Stand != Supports || m.Cells[0][2].Stand != Neither {
		t.Errorf("stands %s, %s", m.Cells[0][0].Stand, m.Cells[0][2].Stand)
	}
	for i, cell := range m.Cells[0] {
		if cell.Stand == Refutes || cell.Refute != nil {
			t.Errorf("passage %d refutes", i)
		}
	}
	if m.Refuting || m.Disputed[0] {
		t.Errorf("refuting %v, disputed %v", m.Refuting, m.Disputed)
	}
}

func TestStancesLimitsAndErrors(t *testing.T) {
	many := make([]string, maxStances/2+1)
	m, err := Stances(t.Context(), many, passages("yes", "no"), keyed{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Issues) != 1 || m.Issues[0].Code != issueStancesTruncated {
		t.Errorf("issues %v", m.Issues)
	}
	if last := m.Cells[len(many)-1][1].Stand; last != Neither {
		t.Errorf("behind the limit: %s", last)
	}
	if _, err := Stances(t.Context(), many[:1], passages("yes"), keyed{short: true}); err == nil {
		t.Error("a checker without verdicts was believed")
	}
	if m, err := Stances(t.Context(), many[:2], nil, keyed{}); err != nil || len(m.Cells) != 2 {
		t.Errorf("no passages: %v, %v", m, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Stances(ctx, []string{"The bridge opened."}, passages("The bridge opened."), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
