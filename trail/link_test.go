package trail_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

// herons is a run of three steps: one reads about nests, one counts, and one puts both together without any source.
func herons() *trail.Trail {
	return &trail.Trail{
		ID: "r1", Question: "Where do grey herons nest, and how many are there?",
		Answer: "# Herons\n\nGrey herons nest in colonies high in tall trees. The census of 2018 counted 24,000 breeding pairs in Germany. I hope this helps!\n\nPenguins like sardines from the Antarctic supermarket.",
		Steps: []trail.Step{
			{Number: 1, After: []int{}, Answer: "They breed together, in colonies that stand high up in the crowns of tall trees.", Sources: []trail.Source{
				{DocumentID: "book", Content: "The grey heron breeds in colonies. Grey herons nest in colonies high in tall trees near water.", Used: true, ChunkIndex: new(4)},
				{DocumentID: "cook", Content: "Boil the potatoes for twenty minutes and add salt.", Retrieved: true},
			}},
			{Number: 2, After: []int{}, Answer: "The census of 2018 counted 24,000 breeding pairs in Germany.", Sources: []trail.Source{
				{DocumentID: "census", Content: "In Germany, the census of 2018 counted 24,000 breeding pairs of the grey heron.", Used: true},
			}},
			{Number: 3, After: []int{1, 2}, Answer: "Herons nest in trees."},
		},
	}
}

type linked struct {
	Text  string
	Steps []int
	On    []string
}

func link(t *testing.T, run *trail.Trail, o *trail.LinkOptions) (*trail.Links, []linked) {
	t.Helper()
	links := testenv.Must(run.Link(t.Context(), nil, o))(t)
	var all []linked
	for _, s := range links.Sentences {
		row := linked{Text: s.Text, Steps: s.Steps}
		for _, p := range s.Passages {
			row.On = append(row.On, fmt.Sprintf("%s %s via %v", p.Reason, p.DocumentID, p.Via))
			if p.Reason == trail.ReasonInferred && p.Differs == "" && run.Final == nil && (p.Score == nil || *p.Score < p.Threshold || p.Threshold == 0 || p.By != links.By) {
				t.Errorf("inferred without score, threshold or checker: %+v", p)
			}
		}
		all = append(all, row)
	}
	return links, all
}

// Sentences without citations rest on the passages that support them, and on the steps that had these.
func TestLinkInfers(t *testing.T) {
	run := herons()
	links, got := link(t, run, nil)
	want := []linked{
		{"Herons", nil, nil},
		{"Grey herons nest in colonies high in tall trees.", []int{1}, []string{"inferred book via []"}},
		{"The census of 2018 counted 24,000 breeding pairs in Germany.", []int{2}, []string{"inferred census via []"}},
		{"I hope this helps!", nil, nil},
		{"Penguins like sardines from the Antarctic supermarket.", nil, nil},
	}
	testenv.Equal(t, "links", want, got)
	if links.Uncited == nil || *links.Uncited != 1./3 {
		t.Errorf("uncited %v, want a third", links.Uncited)
	}
	if s := links.Sentences[4]; !s.NoSources() {
		t.Error("the last sentence should have no sources")
	}
	for _, f := range run.Steps[1].Fed {
		if got := run.Answer[f.Start:f.End]; got != want[2].Text {
			t.Errorf("step 2 fed %q", got)
		}
	}
	if len(run.Steps[2].Fed) != 0 {
		t.Errorf("step 3 fed %v", run.Steps[2].Fed)
	}
}

// If no passage supports a sentence but the answer of a step does, it rests on what that answer rests on.
func TestLinkFollows(t *testing.T) {
	quote := "Zwei Drittel der Paare brüten in Kolonien über hundert Nestern"
	captured := &ibid.Answer{
		Text:    "Two thirds of the breeding pairs live in colonies of more than one hundred nests.",
		Sources: []ibid.Source{{ID: "doc-7", Kind: ibid.DocumentKind, Title: "Zensus", Content: quote + "."}},
	}
	testenv.OK(t, captured.Cite(ibid.Span{End: len(captured.Text) - 1}, ibid.Ref{Source: "doc-7"}))
	captured.Citations[0].Origin = ibid.OriginProvider
	run := &trail.Trail{
		Answer: "Two thirds of the breeding pairs live in colonies of more than one hundred nests.\n\nNothing else is known about migration.",
		Steps: []trail.Step{
			{Number: 1},
			{Number: 2, Answer: "As the census says, two thirds of the breeding pairs live in colonies of more than one hundred nests."},
		},
	}
	run.Steps[0].AddAnswer("ans_1", captured)
	run.Steps = append(run.Steps, trail.Step{Number: 3, After: []int{2, 3, 9}, Answer: "Most pairs live together."})
	run.Answer = "Two thirds of the breeding pairs live in colonies of more than one hundred nests, the census says.\n\nNothing else is known about migration."
	_, got := link(t, run, nil)
	if len(got) != 2 || len(got[0].On) != 1 || !strings.HasPrefix(got[0].On[0], "inferred doc-7 via [") {
		t.Fatalf("links %+v", got)
	}
	testenv.Equal(t, "links", linked{Text: "Nothing else is known about migration."}, got[1])
}

// Every step's answer rests on that of the one before, in a cycle: following them ends.
func TestLinkCycle(t *testing.T) {
	run := &trail.Trail{Answer: "The grey heron nests in colonies of tall trees."}
	for n := range 200 {
		run.Steps = append(run.Steps, trail.Step{Number: n + 1, After: []int{(n+1)%200 + 1}, Answer: "We know that the grey heron nests in colonies of tall trees."})
	}
	links, got := link(t, run, nil)
	if len(got) != 1 || len(got[0].On) != 0 || len(got[0].Steps) == 0 || *links.Uncited != 1 {
		t.Errorf("links %+v, uncited %v", got, *links.Uncited)
	}
}

// The provider's citations take precedence over inference, and are kept even if no step has the source.
func TestLinkCites(t *testing.T) {
	run := herons()
	run.Final = &ibid.Answer{
		Text:    run.Answer,
		Sources: []ibid.Source{{ID: "web:0", Kind: ibid.Web, URL: "https://herons.example/", Title: "Herons"}, {ID: "census", Kind: ibid.DocumentKind}},
	}
	at := func(words string) ibid.Span {
		i := strings.Index(run.Answer, words)
		return ibid.Span{Start: i, End: i + len(words)}
	}
	testenv.OK(t, run.Final.Cite(at("Grey herons nest in colonies"), ibid.Ref{Source: "web:0", Quote: "they nest together"}))
	testenv.OK(t, run.Final.Cite(at("Penguins like sardines"), ibid.Ref{Source: "census"}))
	run.Final.Citations[0].Origin, run.Final.Citations[1].Origin = ibid.OriginProvider, ibid.OriginMarker
	links, got := link(t, run, &trail.LinkOptions{NoInference: true})
	want := []linked{
		{Text: "Herons"},
		{"Grey herons nest in colonies high in tall trees.", nil, []string{"citation https://herons.example/ via []"}},
		{Text: "The census of 2018 counted 24,000 breeding pairs in Germany."},
		{Text: "I hope this helps!"},
		{"Penguins like sardines from the Antarctic supermarket.", []int{2}, []string{"marker census via []"}},
	}
	testenv.Equal(t, "links", want, got)
	if links.By != "" || links.Uncited == nil || *links.Uncited != 1./3 {
		t.Errorf("by %q, uncited %v", links.By, links.Uncited)
	}
}

// A citation at a point belongs to the sentence that ends there, one over several sentences to all of them, and one
// without a place to none.
func TestLinkCitationSpans(t *testing.T) {
	a := &ibid.Answer{Text: "Herons nest in tall trees. They eat small fish. They sleep standing up.", Sources: []ibid.Source{{ID: "a"}, {ID: "b"}, {ID: "c"}}}
	for _, c := range []struct {
		span ibid.Span
		ref  string
	}{{ibid.Span{Start: 26, End: 26}, "a"}, {ibid.Span{Start: 30, End: 60}, "b"}} {
		testenv.OK(t, a.Cite(c.span, ibid.Ref{Source: c.ref}))
	}
	a.Citations = append(a.Citations, ibid.Citation{ID: "c-3", Anchor: ibid.AnchorNone, Covers: ibid.CoversBlock, Refs: []ibid.Ref{{Source: "c"}}})
	r := trail.NewRecorder("r", nil)
	step := r.Begin(nil)
	step.Captured("ans_1", a)
	step.End()
	run := r.FinishAnswer(a)
	_, got := link(t, run, &trail.LinkOptions{NoInference: true})
	want := []linked{
		{"Herons nest in tall trees.", []int{1}, []string{"inferred a via []"}},
		{"They eat small fish.", []int{1}, []string{"inferred b via []"}},
		{"They sleep standing up.", []int{1}, []string{"inferred b via []"}},
	}
	testenv.Equal(t, "links", want, got)
	if run.Final != a || r.FinishAnswer(nil).Final != nil {
		t.Error("the last answer should count")
	}
}

// The caller's threshold replaces the checker's.
func TestLinkThreshold(t *testing.T) {
	links, _ := link(t, herons(), &trail.LinkOptions{Threshold: 0.999, PerSentence: 1})
	for _, s := range links.Sentences {
		if len(s.Passages) > 0 {
			t.Errorf("%q rests on %+v", s.Text, s.Passages)
		}
	}
}

// failing is a checker that always fails.
type failing struct{ support.Lexical }

var errDown = errors.New("the judge is down")

func (failing) Check(context.Context, []support.Pair) ([]support.Verdict, error) { return nil, errDown }

func TestLinkErrors(t *testing.T) {
	run := herons()
	if _, err := run.Link(t.Context(), &failing{}, nil); !errors.Is(err, errDown) {
		t.Errorf("error %v, want the checker's", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run.Link(ctx, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	links, err := (&trail.Trail{}).Link(t.Context(), nil, nil)
	if err != nil || links.Uncited != nil || len(links.Sentences) != 0 {
		t.Errorf("links of nothing: %+v, %v", links, err)
	}
}

// Linking a large run takes proportional time: 10,001 steps with ten sources each, more than are compared.
func TestLinkBig(t *testing.T) {
	run := bigRun(10_001, 10)
	links := testenv.Must(run.Link(t.Context(), nil, nil))(t)
	if n := len(links.Sentences[0].Passages); n == 0 {
		t.Error("nothing was found")
	}
	if len(links.Issues) != 1 || links.Issues[0].Code != "limit-reached" {
		t.Errorf("issues %v, want limit-reached", links.Issues)
	}
}

// bigRun returns a run whose answer rests on one of its steps.
func bigRun(steps, sources int) *trail.Trail {
	run := &trail.Trail{Answer: "The heron of lake 17 nests in the tall alder of the northern shore. Nobody knows why."}
	for n := range steps {
		s := trail.Step{Number: n + 1, Answer: fmt.Sprintf("The heron of lake %d nests in the tall alder of the northern shore.", n)}
		for k := range sources {
			s.Sources = append(s.Sources, trail.Source{DocumentID: fmt.Sprintf("d%d-%d", n, k), Content: fmt.Sprintf("Lake %d, tree %d: herons nest in the tall alder of the northern shore.", n, k), Used: true})
		}
		run.Steps = append(run.Steps, s)
	}
	return run
}

func BenchmarkSummary(b *testing.B) {
	run := bigRun(1000, 10)
	for b.Loop() {
		run.Summary(nil)
	}
}

func BenchmarkLink(b *testing.B) {
	for _, steps := range []int{3, 1000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			run := bigRun(steps, 10)
			for b.Loop() {
				testenv.Must(run.Link(b.Context(), nil, nil))(b)
			}
		})
	}
}

// Input that is made to cost quadratic time does not.
func TestHostileSizes(t *testing.T) {
	const n = 20_000
	run := &trail.Trail{Answer: strings.Repeat("All of it [step 1] [doc]. ", n)}
	for i := range n {
		s := trail.Step{Number: 1 + i/(n/2), Answer: "All of it."}
		if s.Number == 2 {
			s.After = []int{1}
		}
		s.Sources = []trail.Source{{DocumentID: "doc", Content: fmt.Sprint("chunk ", i), Used: true}, {DocumentID: fmt.Sprint(i), Used: true}}
		run.Steps = append(run.Steps, s)
	}
	s := run.Summary(nil)
	if len(s.Sources) != n+1 || len(s.Steps) != 2 {
		t.Errorf("%d sources, %d steps", len(s.Sources), len(s.Steps))
	}
	links, err := run.Link(t.Context(), nil, &trail.LinkOptions{NoInference: true})
	testenv.OK(t, err)
	if got := links.Sentences[0]; len(links.Sentences) != n || len(got.Passages) != 3 || len(run.Steps[n/2-1].Fed) != n {
		t.Errorf("%d sentences, the first on %d passages; the last step 1 fed %d", len(links.Sentences), len(got.Passages), len(run.Steps[n/2-1].Fed))
	}
	run = &trail.Trail{Answer: "All of it [step 1]."}
	run.Steps = []trail.Step{{Number: 1, Sources: s.Run.Steps[0].Sources}}
	for _, x := range s.Run.Steps {
		run.Steps[0].Sources = append(run.Steps[0].Sources, x.Sources...)
	}
	if links, err = run.Link(t.Context(), nil, nil); err != nil || len(links.Sentences[0].Passages) != trail.MaxLinks {
		t.Errorf("%d passages, want %d", len(links.Sentences[0].Passages), trail.MaxLinks)
	}
}
