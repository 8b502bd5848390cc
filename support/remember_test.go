package support

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// counting counts the calls of a checker.
type counting struct {
	Checker

	calls atomic.Int32
}

func (c *counting) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	c.calls.Add(1)
	return c.Checker.Check(ctx, in)
}

// Equal calls are compared once, and whatever a verdict may depend on makes another call.
func TestRemember(t *testing.T) {
	base := func() []Pair {
		return []Pair{
			{Claim: "The mill closed in 1987.", Context: "The mill closed in 1987.", Passages: []Passage{{ID: "a", Text: "The mill closed in 1989."}}},
			{Claim: "Herons nest in trees.", Passages: []Passage{{Text: "Herons nest in colonies in trees."}, {Text: "So it is."}}},
		}
	}
	asked := &counting{Checker: &Lexical{}}
	c := Remember(asked, 100)
	want := testenv.Must((&Lexical{}).Check(t.Context(), base()))(t)
	for range 3 {
		got := testenv.Must(c.Check(t.Context(), base()))(t)
		testenv.Equal(t, "verdicts", want, got)
		got[0].Label, got[1].Issues = "changed", nil // by the caller
	}
	if n := asked.calls.Load(); n != 1 {
		t.Errorf("%d comparisons of equal calls", n)
	}
	for name, change := range map[string]func(in []Pair){
		"claim":    func(in []Pair) { in[0].Claim = "The mill closed in 1989." },
		"context":  func(in []Pair) { in[1].Context = "In the valley herons nest in trees." },
		"text":     func(in []Pair) { in[1].Passages[1].Text = "So it was." },
		"language": func(in []Pair) { in[1].Passages[1].Language = "de" },
		"fewer":    func(in []Pair) { in[1].Passages = in[1].Passages[:1] },
		"moved":    func(in []Pair) { in[0].Passages, in[1].Passages = in[1].Passages, in[0].Passages },
	} {
		in, before := base(), asked.calls.Load()
		change(in)
		got := testenv.Must(c.Check(t.Context(), in))(t)
		testenv.Equal(t, name, testenv.Must((&Lexical{}).Check(t.Context(), in))(t), got)
		if asked.calls.Load() == before {
			t.Errorf("another %s is not compared", name)
		}
	}
}

// What is remembered is bounded, and a call that failed is not.
func TestRememberBounded(t *testing.T) {
	asked := &counting{Checker: &Lexical{}}
	c := Remember(asked, 4)
	call := func(n, pairs int) {
		in := make([]Pair, pairs)
		for i := range in {
			in[i] = Pair{Claim: fmt.Sprint("Heron ", n, " nests ", i), Passages: []Passage{{Text: strings.Repeat("x ", n+1)}}}
		}
		testenv.Must(c.Check(t.Context(), in))(t)
	}
	for _, test := range []struct{ n, pairs, want int }{{1, 2, 1}, {2, 2, 2}, {1, 2, 2}, {3, 2, 3}, {2, 2, 3}, {1, 2, 4}, {4, 5, 5}, {4, 5, 6}} {
		call(test.n, test.pairs)
		if n := int(asked.calls.Load()); n != test.want {
			t.Errorf("after call %d: %d comparisons, want %d", test.n, n, test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := []Pair{{Claim: "a heron nests", Passages: []Passage{{Text: "a heron nests"}}}}
	if _, err := c.Check(ctx, in); err == nil {
		t.Error("no error with a context that has ended")
	}
	if got := testenv.Must(c.Check(t.Context(), in))(t); got[0].Label == "" {
		t.Error("the failure is remembered")
	}
}
