package experiment_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestFind(t *testing.T) {
	list := append(experiment.Builtin(), experiment.Strategy{Name: "strict", Version: 2})
	for name, want := range map[string]string{"strict": "strict@2", "strict@2": "strict@2", "provider": "provider@1"} {
		s, err := experiment.Find(list, name)
		if err != nil || s.ID() != want {
			t.Errorf("Find(%q) = %s, %v; want %s", name, s.ID(), err, want)
		}
	}
	for _, name := range []string{"", "strict@3", "strict@", "Strict"} {
		if s, err := experiment.Find(list, name); err == nil || !strings.Contains(err.Error(), "balanced@2") {
			t.Errorf("Find(%q) = %s, %v; want an error that lists the strategies", name, s.ID(), err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, s := range experiment.Builtin() {
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", s.ID(), err)
		}
	}
	bad := map[string]func(*experiment.Strategy){
		"a name is up to": func(s *experiment.Strategy) { s.Name = "A B" },
		"versions count":  func(s *experiment.Strategy) { s.Version = 0 },
		"a closeness":     func(s *experiment.Strategy) { s.Threshold = math.NaN() },
		"per_sentence":    func(s *experiment.Strategy) { s.PerSentence = 11 },
		"the scorer":      func(s *experiment.Strategy) { s.Scorer = "magic" },
		"no checker":      func(s *experiment.Strategy) { s.Checker = "" },
	}
	for word, spoil := range bad {
		s := experiment.Builtin()[1]
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("Check: %v; want an error with %q", err, word)
		}
	}
}

// Every run has one side, which only its id decides, and the sides have the requested sizes.
func TestSplit(t *testing.T) {
	list := experiment.Builtin()
	s := &experiment.Split{Name: "e", A: list[1], B: list[2], Share: 0.3}
	testenv.OK(t, s.Check())
	other := *s
	other.Name = "f"
	b, moved := 0, 0
	const runs = 20_000
	for i := range runs {
		run := fmt.Sprintf("run_%d", i)
		side := s.Choose(run).ID()
		if again := s.Choose(run).ID(); again != side {
			t.Fatalf("%s changed sides", run)
		}
		if side == "strict@2" {
			b++
		}
		if other.Choose(run).ID() != side {
			moved++
		}
	}
	if share := float64(b) / runs; math.Abs(share-0.3) > 0.02 {
		t.Errorf("B got %.3f of the runs; want about 0.3", share)
	}
	if share := float64(moved) / runs; math.Abs(share-2*0.3*0.7) > 0.03 {
		t.Errorf("another name moves %.3f of the runs; want about 0.42", share)
	}
	for _, share := range []float64{0, 1} {
		s.Share = share
		if want := []string{"balanced@2", "strict@2"}[int(share)]; s.Choose("x").ID() != want {
			t.Errorf("with a share of %v, Choose = %s; want %s", share, s.Choose("x").ID(), want)
		}
	}
}

func TestSplitCheck(t *testing.T) {
	list := experiment.Builtin()
	for word, s := range map[string]*experiment.Split{
		"no name":        {A: list[0], B: list[1]},
		"from 0 to 1":    {Name: "e", A: list[0], B: list[1], Share: 1.1},
		"both sides":     {Name: "e", A: list[1], B: list[1]},
		"versions count": {Name: "e", A: list[1], B: experiment.Strategy{Name: "x"}},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("Check: %v; want an error with %q", err, word)
		}
	}
}

func TestCompare(t *testing.T) {
	a := []experiment.Outcome{
		{Run: "r1", Strategy: "provider@1", Sentences: 10, Cited: 4, Checked: 4, Supported: 3},
		{Run: "r2", Strategy: "provider@1", Sentences: 6, Cited: 0},
		{Run: "r3", Strategy: "provider@1", Sentences: 8, Cited: 2, Checked: 2, Supported: 1, Judged: 2, Right: 1},
	}
	b := []experiment.Outcome{
		{Run: "r3", Strategy: "balanced@2", Sentences: 8, Cited: 6, Checked: 6, Supported: 5},
		{Run: "r2", Strategy: "balanced@2", Sentences: 6, Cited: 5, Checked: 5, Supported: 5},
		{Run: "r1", Strategy: "balanced@2", Sentences: 10, Cited: 8, Checked: 8, Supported: 7},
	}
	r := experiment.Compare(a, b)
	if !r.Paired || r.A.Strategy != "provider@1" || r.B.Runs != 3 {
		t.Errorf("%+v", r)
	}
	if got, want := *r.Difference.Coverage.Value, 19.0/24-6.0/24; math.Abs(got-want) > 1e-12 {
		t.Errorf("the difference of coverage is %v; want %v", got, want)
	}
	if low := *r.Difference.Coverage.Low; low <= 0 {
		t.Errorf("the interval of coverage begins at %v; every run got better", low)
	}
	if r.Difference.Verified.Value != nil || r.Difference.Feedback.Value != nil {
		t.Errorf("differences of shares that one side lacks: %+v", r.Difference)
	}
	if a[0].Run != "r1" || b[0].Run != "r3" {
		t.Error("Compare changed its input")
	}
	if u := experiment.Compare(a, b[:2]); u.Paired {
		t.Error("different runs were paired")
	}
}
