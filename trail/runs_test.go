package trail_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

// runCase is a run with what each sentence of its answer is known to rest on.
type runCase struct {
	Shape     string
	Question  string
	Documents []struct {
		ID, Title, Text string
		Passages        []string // instead of Text, where the document was retrieved in pieces
	}
	Steps []struct {
		ID, Kind  string
		Documents []string // ids of the documents it had
		Inputs    []string // ids of the steps that it builds on
		Output    string
	}
	Answer   string
	Expected []struct {
		Sentence string
		Steps    []string // that concluded it
		Document string   // empty if no source says it
		Quote    string   // the words of the document that do
		Differs  string   // the document's value, if the sentence has another
	}
}

func (c *runCase) trail() *trail.Trail {
	t := &trail.Trail{Question: c.Question, Answer: c.Answer}
	for i, from := range c.Steps {
		s := trail.Step{Number: i + 1, After: c.numbers(from.Inputs), Tool: from.Kind, Answer: from.Output}
		var results []trail.Result
		for _, d := range c.Documents {
			if !slices.Contains(from.Documents, d.ID) {
				continue
			}
			if d.Passages == nil {
				results = append(results, trail.Result{DocumentID: d.ID, Title: d.Title, Content: d.Text})
			}
			for n, text := range d.Passages {
				results = append(results, trail.Result{DocumentID: d.ID, Title: d.Title, Content: text, ChunkIndex: new(n)})
			}
		}
		s.Enhance(results)
		t.Steps = append(t.Steps, s)
	}
	return t
}

func (c *runCase) numbers(ids []string) []int {
	numbers := []int{}
	for i := range c.Steps {
		if slices.Contains(ids, c.Steps[i].ID) {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// tally counts what was found right about sentences.
type tally struct{ steps, stepsOf, passages, passagesOf, without, withoutOf, differs, differsOf int }

func (n *tally) String() string {
	return fmt.Sprintf("step right %s, passage right %s, no source right %s, differs right %s", share(n.steps, n.stepsOf),
		share(n.passages, n.passagesOf), share(n.without, n.withoutOf), share(n.differs, n.differsOf))
}

func share(n, of int) string {
	return fmt.Sprintf("%d/%d (%.0f %%)", n, of, 100*float64(n)/float64(max(1, of)))
}

// TestRuns measures what [trail.Trail.Link] finds in the runs of testdata/runs.json, or of the file that IBID_RUNS
// names: which step concluded each sentence, which passage it rests on, and which sentences have no source.
//
//	go test ./trail -run TestRuns -v
func TestRuns(t *testing.T) {
	name := "testdata/runs.json"
	if other := os.Getenv("IBID_RUNS"); other != "" {
		name = other
	}
	data := testenv.Must(os.ReadFile(name))(t)
	var suite []runCase
	if err := json.Unmarshal(data, &suite); err != nil || len(suite) == 0 {
		t.Fatalf("%d runs, %v", len(suite), err)
	}
	all, byShape := &tally{}, map[string]*tally{}
	for i := range suite {
		c := &suite[i]
		if byShape[c.Shape] == nil {
			byShape[c.Shape] = &tally{}
		}
		run := c.trail()
		links := testenv.Must(run.Link(t.Context(), nil, nil))(t)
		for k := range c.Expected {
			want := &c.Expected[k]
			at := slices.IndexFunc(links.Sentences, func(s trail.Sentence) bool {
				return strings.TrimSpace(s.Text) == strings.TrimSpace(want.Sentence)
			})
			if at < 0 {
				t.Errorf("run %d: %q is not a sentence of the answer", i+1, want.Sentence)
				continue
			}
			got := &links.Sentences[at]
			wrong := ""
			for _, n := range []*tally{all, byShape[c.Shape]} {
				wrong = n.count(c.numbers(want.Steps), want.Document, want.Quote, want.Differs, got)
			}
			if wrong != "" {
				t.Logf("%s, run %d: %q: %s", c.Shape, i+1, got.Text, wrong)
			}
		}
	}
	for _, shape := range slices.Sorted(maps.Keys(byShape)) {
		t.Logf("%s: %s", shape, byShape[shape])
	}
	t.Logf("%d runs: %s", len(suite), all)
	for _, s := range [][2]int{{all.steps, all.stepsOf}, {all.passages, all.passagesOf}, {all.without, all.withoutOf}} {
		if 10*s[0] < 9*s[1] {
			t.Errorf("%s of the sentences are right, want nine of ten", share(s[0], s[1]))
		}
	}
}

// count counts one sentence, and returns what is wrong.
func (n *tally) count(steps []int, document, quote, differs string, got *trail.Sentence) string {
	var wrong []string
	count := func(right, of *int, is bool, format string, args ...any) {
		if *of++; is {
			*right++
		} else {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	var on []string
	for i := range got.Passages {
		p := &got.Passages[i]
		score := "none"
		if p.Score != nil {
			score = fmt.Sprintf("%.2f", *p.Score)
		}
		on = append(on, fmt.Sprintf("%s (steps %v, via %v, score %s)", p.DocumentID, p.Steps, p.Via, score))
	}
	if len(steps) > 0 {
		count(&n.steps, &n.stepsOf, slices.Equal(steps, got.Steps), "steps %v, want %v", got.Steps, steps)
	}
	if document == "" {
		count(&n.without, &n.withoutOf, len(got.Passages) == 0, "on %q, want no source", on)
		return strings.Join(wrong, "; ")
	}
	count(&n.passages, &n.passagesOf, slices.ContainsFunc(got.Passages, func(p trail.Link) bool {
		return p.DocumentID == document && strings.Contains(squeezed(p.Text()), squeezed(quote))
	}), "on %q, want %s", on, document)
	if value := got.Differs(); value != "" || differs != "" {
		count(&n.differs, &n.differsOf, differs != "" && strings.Contains(value, differs), "differs %q, want %q", value, differs)
	}
	return strings.Join(wrong, "; ")
}

func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }
