package page

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// In any drawing each step occurs once, to the right of those that it builds on, inside the drawing and not over
// another.
func TestGraphOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		run := &trail.Trail{}
		for i := range 2 + random.IntN(40) {
			s := trail.Step{Number: i + 1, After: []int{}}
			for range random.IntN(4) {
				s.After = append(s.After, 1+random.IntN(i+3)) // also itself, a later one, and a missing one
			}
			run.Steps = append(run.Steps, s)
		}
		g := drawGraph(run, func(int) string { return "#" })
		if g == nil {
			continue
		}
		if len(g.Nodes) != len(run.Steps) {
			t.Fatalf("%d nodes of %d steps", len(g.Nodes), len(run.Steps))
		}
		for i, a := range g.Nodes {
			if a.X < 0 || a.Y < 0 || a.X+a.Width > g.Width || a.Y+a.Height > g.Height {
				t.Fatalf("step %d is outside: %+v of %d × %d", i+1, a, g.Width, g.Height)
			}
			for k, b := range g.Nodes[:i] {
				if a.X < b.X+b.Width && b.X < a.X+a.Width && a.Y < b.Y+b.Height && b.Y < a.Y+a.Height {
					t.Fatalf("step %d overlaps step %d", i+1, k+1)
				}
			}
		}
		if issues := run.Check(); slices.ContainsFunc(issues, func(i ibid.Issue) bool { return i.Code == "cyclic-after" }) {
			continue
		}
		for i := range run.Steps {
			for _, k := range run.Before(i) {
				if g.Nodes[k].X >= g.Nodes[i].X {
					t.Fatalf("step %d is not to the right of step %d", i+1, k+1)
				}
			}
		}
	}
}

func TestGraphLimits(t *testing.T) {
	run := &trail.Trail{}
	for i := range 1000 {
		run.Steps = append(run.Steps, trail.Step{Number: i + 1, After: []int{max(1, i/2)}})
	}
	g := drawGraph(run, func(int) string { return "#" })
	if g == nil || len(g.Nodes) != maxDrawn || g.Left != 1000-maxDrawn || !strings.HasPrefix(g.Desc, "Step 1 builds on no other. Step 2 builds on 1.") {
		t.Fatalf("%+v", g)
	}
	if got := drawGraph(&trail.Trail{}, nil); got != nil {
		t.Errorf("a drawing of nothing: %+v", got)
	}
}

// A label fits its box: full-width characters count twice.
func TestGraphLabels(t *testing.T) {
	for _, c := range []struct{ tool, question, upper, lower string }{
		{"search", "How many herons nest?", "search", "How many herons…"},
		{"search_everywhere", "nests", "search_everywh…", "nests"},
		{"検索", "とんぼ湖のアオサギについて", "検索", "とんぼ湖のアオ…"},
		{"ウィキペディアの検索", "왜가리 몇 마리", "ウィキペディア…", "왜가리 몇 마리"},
		{"ｓｅａｒｃｈｉｔ", "🦆🦆🦆🦆🦆🦆🦆🦆", "ｓｅａｒｃｈｉ…", "🦆🦆🦆🦆🦆🦆🦆…"},
		{"search 検索", "Herons nest: 巣", "search 検索", "Herons nest: 巣"},
	} {
		g := drawGraph(&trail.Trail{Steps: []trail.Step{
			{Number: 1, Tool: c.tool, Question: c.question}, {Number: 2}, {Number: 3, After: []int{1}},
		}}, func(int) string { return "#" })
		if n := g.Nodes[0]; n.Upper != c.upper || n.Lower != c.lower {
			t.Errorf("%q, %q: labels are %q and %q, want %q and %q", c.tool, c.question, n.Upper, n.Lower, c.upper, c.lower)
		}
	}
}

// The time on the critical path is not shown if the run itself was shorter: one of the two must be wrong.
func TestGraphWaited(t *testing.T) {
	begun := time.Date(2026, 4, 12, 9, 0, 0, 0, time.UTC)
	for run, want := range map[time.Duration]string{0: "5.0 s", 5 * time.Second: "5.0 s", 4 * time.Second: ""} {
		one := &trail.Trail{Started: begun, Steps: []trail.Step{
			{Number: 1, Duration: 2 * time.Second}, {Number: 2, Duration: 3 * time.Second}, {Number: 3, Duration: time.Second, After: []int{1}},
		}}
		if run > 0 {
			one.Finished = begun.Add(run)
		}
		g := drawGraph(one, func(int) string { return "#" })
		if g.Waited != want || g.Nodes[1].Waited != (want != "") {
			t.Errorf("a run of %v: %q, %t", run, g.Waited, g.Nodes[1].Waited)
		}
	}
}
