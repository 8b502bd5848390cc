package trail_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/trail"
)

func TestExcerpt(t *testing.T) {
	family := "👩‍👩‍👧‍👦"
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 5, ""},
		{"  short\n", 5, "short"},
		{"exact", 5, "exact"},
		{"exactly", 5, "exac…"},
		{"one two three", 9, "one two…"},
		{"one two, three", 9, "one two…"},
		{"a reallyendlessword", 12, "a reallyend…"},
		{strings.Repeat(family, 5), 3, family + family + "…"},
		{strings.Repeat(family, 3), 3, strings.Repeat(family, 3)},
		{"今日は良い天気です", 5, "今日は良…"},
		{strings.Repeat("word ", 100), 0, strings.TrimSpace(strings.Repeat("word ", 40)) + "…"},
		{"--------------------", 5, "----…"},
		{"\xff\xfe\xfd\xfc\xfb", 3, "\xff\xfe…"},
		{"word", 1, "…"},
	} {
		if got := trail.Excerpt(c.text, c.n); got != c.want {
			t.Errorf("Excerpt(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestSourcesFromContext(t *testing.T) {
	got := trail.SourcesFromContext([]string{"id:doc_123 Artificial intelligence", " ", "Machine learning is", "id: no id", "id:alone"})
	type row struct {
		ID, Text string
		Score    float64
		Origin   ibid.ScoreOrigin
		Rank     int
	}
	var rows []row
	for _, s := range got {
		rows = append(rows, row{s.DocumentID, s.Content, *s.Relevance, s.Origin, s.Rank})
	}
	want := []row{
		{"doc_123", "Artificial intelligence", 1, "rank", 1},
		{"context_2", "Machine learning is", 0.8, "rank", 3},
		{"context_3", "id: no id", 0.7, "rank", 4},
		{"alone", "", 0.6, "rank", 5},
	}
	testenv.Equal(t, "sources", want, rows)
	if many := trail.SourcesFromContext(strings.Split(strings.Repeat("x ", 20), " ")); *many[19].Relevance != 0.3 {
		t.Errorf("the twentieth scores %v, want 0.3", *many[19].Relevance)
	}
}

// Enhance adds search results, or else the context. What the step knows is kept, and the best relevance counts.
func TestEnhance(t *testing.T) {
	s := trail.Step{Context: []string{"id:a Words of a."}, Sources: []trail.Source{{DocumentID: "a", Relevance: new(0.25), Origin: ibid.ScoreOverlap, Used: true}}}
	s.Enhance([]trail.Result{{DocumentID: "a", Title: "A", Score: new(0.9), Content: "Words of a."}, {DocumentID: "b", Score: new(math.NaN())}})
	s.Enhance([]trail.Result{{DocumentID: "b", ChunkIndex: new(2)}})
	s.Enhance(nil)
	if len(s.Sources) != 2 {
		t.Fatalf("%d sources, want 2: %+v", len(s.Sources), s.Sources)
	}
	a, b := s.Sources[0], s.Sources[1]
	if *a.Relevance != 0.9 || a.Origin != ibid.ScoreRetriever || a.Title != "A" || a.Content != "Words of a." || a.Rank != 1 {
		t.Errorf("a is %+v", a)
	}
	if b.Relevance != nil || b.Origin != "" || b.ChunkIndex == nil || *b.ChunkIndex != 2 || b.Rank != 2 {
		t.Errorf("b is %+v", b)
	}
}

// Two texts of one document are two passages, even if they claim the same chunk. A repeated one is not added again, and
// its best relevance counts; a score derived from a position in a list is worse than any other.
func TestPassages(t *testing.T) {
	one, two := trail.Result{DocumentID: "d", Score: new(0.4), Content: "Herons eat fish.", ChunkIndex: new(0)}, trail.Result{DocumentID: "d", Score: new(0.9), Content: "Owls hunt at night.", ChunkIndex: new(0)}
	again := one
	again.Score = new(0.7)
	worse := two
	worse.Score = new(0.1)
	bare := trail.Result{DocumentID: "d", Score: new(0.5), ChunkIndex: new(0)}
	var s trail.Step
	s.Enhance([]trail.Result{one, two, again, worse, bare})
	s.AddSources(trail.Source{DocumentID: "d", ChunkIndex: new(0), Excerpt: "Owls hunt at night.", Relevance: new(1.0), Origin: ibid.ScoreRank, Used: true})
	show := func(all []trail.Source) (rows []string) {
		for _, f := range all {
			rows = append(rows, fmt.Sprintf("%s %.1f %s %q", f.DocumentID, *f.Relevance, f.Origin, f.Excerpt))
		}
		return rows
	}
	want := []string{`d 0.7 retriever "Herons eat fish."`, `d 0.9 retriever "Owls hunt at night."`}
	testenv.Equal(t, "of one step", want, show(s.Sources))

	// The same across steps. Chunk 3 is recognised by its number, then by its words; other words are another passage.
	run := &trail.Trail{Steps: []trail.Step{
		{Number: 1, Sources: []trail.Source{{DocumentID: "d", ChunkIndex: new(3), Relevance: new(0.2), Origin: ibid.ScoreProvider, Used: true}}},
		{Number: 2, Sources: trail.SourcesFromResults([]trail.Result{{DocumentID: "d", Score: new(0.3), Content: "Owls hunt at night.", ChunkIndex: new(3)}})},
		{Number: 3, Sources: trail.SourcesFromResults([]trail.Result{{DocumentID: "d", Score: new(0.1), Content: "Herons eat fish.", ChunkIndex: new(3)}})},
		{Number: 4, Sources: []trail.Source{{DocumentID: "d", ChunkIndex: new(3), Excerpt: "Owls hunt at night.", Relevance: new(0.8), Origin: ibid.ScoreProvider, Used: true}}},
	}}
	var got []string
	for _, p := range run.Summary(nil).Sources[0].Passages {
		got = append(got, fmt.Sprintf("%s, steps %v", show([]trail.Source{p.Source})[0], p.Steps))
	}
	want = []string{`d 0.8 provider "Owls hunt at night.", steps [1 2 4]`, `d 0.1 retriever "Herons eat fish.", steps [3]`}
	testenv.Equal(t, "of a run", want, got)
}

// Measured relevance comes before relevance derived from the position in a list.
func TestMeasuredFirst(t *testing.T) {
	run := &trail.Trail{Steps: []trail.Step{
		{Number: 1, Sources: trail.SourcesFromContext([]string{"Bananas are yellow.", "The tower is 320 m tall."})},
		{Number: 2, Sources: trail.SourcesFromResults([]trail.Result{{DocumentID: "low", Score: new(0.3)}, {DocumentID: "real", Score: new(0.97)}, {DocumentID: "none"}})},
	}}
	ids := func(all []trail.SummarySource) (ids []string) {
		for i := range all {
			ids = append(ids, all[i].DocumentID)
		}
		return ids
	}
	s := run.Summary(nil)
	testenv.Equal(t, "sources", []string{"real", "low", "context_0", "context_1", "none"}, ids(s.Sources))
	testenv.Equal(t, "primary sources", []string{"real", "context_0", "context_1"}, ids(s.Primary))
}

// Each passage of an answer's source is a row, and so is a quote that none of them contains.
func TestSourcesFromAnswer(t *testing.T) {
	a := &ibid.Answer{
		Text: "Herons nest in trees.",
		Sources: []ibid.Source{
			{ID: "web:0", Kind: ibid.Web, URL: "https://a.example/", Chunks: []ibid.Chunk{{Content: "One.", Score: new(0.5)}, {Content: "Two."}}, Score: new(0.5), ScoreOrigin: ibid.ScoreProvider},
			{ID: "doc:0", Kind: ibid.DocumentKind},
			{ID: "file:1", GlobalID: "file-abc", Filename: "a.pdf", RetrievedAt: time.Unix(0, 0)},
		},
	}
	testenv.OK(t, a.Cite(ibid.Span{End: 6}, ibid.Ref{Source: "web:0", Quote: "Two"}, ibid.Ref{Source: "file:1", Quote: "Elsewhere"}))
	type row struct {
		ID, Title, Key, Content, Version string
		Scored, Cited                    bool
		Covers                           bool // some of the answer
	}
	var got []row
	for _, s := range trail.SourcesFromAnswer(a) {
		got = append(got, row{s.DocumentID, s.Title, s.Key, s.Content, s.Version, s.Relevance != nil, s.Cited, *s.Usage > 0 && *s.Usage < 1})
	}
	want := []row{
		{"https://a.example/", "", "web:https://a.example/", "One.", "", true, true, true},
		{"https://a.example/", "", "web:https://a.example/", "Two.", "", false, true, true},
		{"doc:0", "", "", "", "", false, false, false},
		{"file-abc", "a.pdf", "#file-abc", "Elsewhere", "1970-01-01T00:00:00Z", false, true, true},
	}
	testenv.Equal(t, "sources", want, got)
	if trail.SourcesFromAnswer(nil) != nil {
		t.Error("a nil answer has sources")
	}
	var s trail.Step
	s.AddAnswer("ans_1", &ibid.Answer{Text: "First."})
	s.AddAnswer("ans_2", nil)
	s.AddAnswer("ans_1", &ibid.Answer{Text: "Again.", Error: &ibid.ProviderError{Message: "too late"}})
	if len(s.Answers) != 2 || s.Answers[0].Answer.Text != "Again." || s.Answer != "First." || s.Error != "too late" {
		t.Errorf("step %+v", s)
	}
}

func TestGraph(t *testing.T) {
	run := &trail.Trail{Steps: []trail.Step{
		{Number: 1, Duration: 5 * time.Second},
		{Number: 2, After: []int{}, Duration: time.Second},
		{Number: 3, After: []int{6, 2}, Duration: time.Second},
		{Number: 4, After: []int{1, 2, 2}},
		{Number: 5, After: []int{5}},
		{Number: 6, After: []int{4}, Duration: time.Second},
	}}
	testenv.Equal(t, "order", []int{0, 1, 3, 4, 5, 2}, run.Order())
	testenv.Equal(t, "before", []int{1, 5}, run.Before(2))
	path, took := run.CriticalPath()
	if diff := cmp.Diff([]int{0, 3, 5, 2}, path); diff != "" || took != 7*time.Second {
		t.Errorf("critical path of %v (-want +got):\n%s", took, diff)
	}
	run.Steps[0].After = []int{3}
	testenv.Equal(t, "order with a cycle", []int{1, 4, 0, 2, 3, 5}, run.Order())
	if path, took := (&trail.Trail{}).CriticalPath(); path != nil || took != 0 {
		t.Errorf("critical path of nothing: %v, %v", path, took)
	}
}

func TestReadSteps(t *testing.T) {
	steps, err := trail.ReadSteps([]byte(`{"question": "a"}` + "\n" + `{"step_number": 2}`))
	if err != nil || len(steps) != 2 || steps[0].Number != 0 || steps[1].Number != 2 {
		t.Errorf("steps %+v, %v", steps, err)
	}
	if _, err := trail.ReadSteps([]byte(`{"original_question": "Q?"}`)); !errors.Is(err, trail.ErrNoRun) {
		t.Errorf("error %v, want ErrNoRun", err)
	}
	run := trail.Trail{ID: "before"}
	if err := json.Unmarshal([]byte(`{"run_id": "r", "reasoning_steps": 5}`), &run); !errors.Is(err, trail.ErrNoRun) || run.ID != "before" {
		t.Errorf("run %+v, error %v, want ErrNoRun and the run as it was", run, err)
	}
	if err := json.Unmarshal([]byte(`{"run_id": "r", "reasoning_steps": [{}]}`), &run); err != nil || run.ID != "r" || run.Steps[0].Number != 1 {
		t.Errorf("run %+v, %v", run, err)
	}
	var s trail.Step
	if err := json.Unmarshal([]byte(`[{"step_number": 1}, {"step_number": 2}]`), &s); !errors.Is(err, trail.ErrNoRun) {
		t.Errorf("error %v, want ErrNoRun", err)
	}
	if err := json.Unmarshal([]byte(`{"step_number": 7, "x": 1}`), &s); err != nil || s.Number != 7 || string(s.Extra["x"]) != "1" {
		t.Errorf("step %+v, %v", s, err)
	}
}

// No input causes a panic, and what was read is written so that it reads and sums up the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"original_question":"Q?","final_answer":"A [a], [1] and https://a.example/.","reasoning_steps":[{"step_number":1,"after":[2,"3"],"source_attributions":[{"document_id":"a","relevance_score":0.5}],"nested_run":{"reasoning_steps":[]}}]}`))
	f.Add([]byte(`[{"context_used":["id:a b","c"]},{"search_results":["x",{"url":"https://a.example/","score":"NaN"}]}]`))
	f.Add([]byte("{\"run_id\":1,\"answer\":{\"version\":1,\"text\":\"A.\"}}\n{\"step_number\":1e3,\"started_at\":1.5,\"answers\":[{\"answer_id\":\"a\",\"answer\":null}]}\n{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		run, err := trail.Read(b)
		if err != nil {
			if run != nil || !errors.Is(err, trail.ErrNoRun) && !errors.Is(err, trail.ErrEmpty) && !errors.Is(err, trail.ErrLimit) {
				t.Fatalf("trail %v, error %v", run, err)
			}
			return
		}
		stable(t, run)
		prov := testenv.Must(run.PROV(&trail.PROVOptions{Content: true}))(t)
		if problems := checkPROV(prov); len(problems) > 0 {
			t.Fatalf("%v in %s", problems, prov)
		}
		s := run.Summary(&trail.SummaryOptions{Adjust: true, Excerpt: 10})
		links := testenv.Must(run.Link(t.Context(), nil, nil))(t)
		s.Links = links
		for _, x := range links.Sentences {
			if !utf8.ValidString(x.Text) {
				t.Errorf("the sentence %q was cut inside a character", x.Text)
			}
		}
		for _, x := range s.Sources {
			n := 0
			for range prose.Graphemes(x.Excerpt) {
				n++
			}
			if n > 10 {
				t.Errorf("an excerpt of %d characters", n)
			}
		}
		data, err := s.MarshalJSON()
		if err != nil || !json.Valid(data) {
			t.Fatalf("the summary is not JSON: %v", err)
		}
		run.Order()
		run.CriticalPath()
	})
}

// A passage is quoted as its document has it, and its verification is wherever the passage is.
func TestPassageChecked(t *testing.T) {
	long := strings.Repeat("é", trail.MaxQuote+1)
	for _, c := range []struct {
		source trail.Source
		want   string
	}{
		{trail.Source{Content: " All of it … \n", Excerpt: "All…"}, "All of it …"},
		{trail.Source{Excerpt: "… cut on both sides…"}, "cut on both sides"},
		{trail.Source{Excerpt: "... by three dots ..."}, "by three dots"},
		{trail.Source{Content: long}, long[:2*trail.MaxQuote]},
		{trail.Source{}, ""},
	} {
		if got := c.source.Quote(); got != c.want {
			t.Errorf("%+v quotes %q, want %q", c.source, got, c.want)
		}
	}
	run := testenv.Must(trail.Read([]byte(`{"answer": "Herons nest in tall trees.", "steps": [
		{"sources": [{"id": "a", "text": "Herons nest in tall trees.", "verification": {"status": "excerpt-altered", "checked_at": "2026-07-02T00:00:00Z"}},
			{"id": "b", "text": "Ducks do not.", "verification": {"status": "gone", "checked_at": null}}]},
		{"sources": [{"id": "b", "text": "Other words of it.", "verification": {"status": "verified", "checked_at": "2026-07-02T00:00:00Z"}}]}]}`)))(t)
	again := testenv.Must(trail.Read(testenv.Must(json.Marshal(run))(t)))(t)
	if diff := cmp.Diff(run, again); diff != "" {
		t.Error(diff)
	}
	links := testenv.Must(run.Link(t.Context(), nil, nil))(t)
	if v := links.Sentences[0].Passages[0].Verification; v == nil || v.Status != "excerpt-altered" {
		t.Errorf("the passage's verification is %+v", v)
	}
	var got []string
	for _, s := range run.Summary(nil).Sources {
		of := []string{s.DocumentID, "differ"}
		if s.Verification != nil {
			of[1] = s.Verification.Status
		}
		for _, p := range s.Passages {
			of = append(of, p.Verification.Status)
		}
		got = append(got, strings.Join(of, " "))
	}
	if diff := cmp.Diff([]string{"a excerpt-altered excerpt-altered", "b differ gone verified"}, got); diff != "" {
		t.Error(diff)
	}
	// The citation's own takes precedence, if it names only this source.
	final := &ibid.Answer{Text: "Herons nest in tall trees.", Sources: []ibid.Source{{ID: "a"}, {ID: "b"}}}
	testenv.OK(t, final.Cite(ibid.Span{End: len(final.Text)}, ibid.Ref{Source: "a", Quote: "Herons nest in tall trees."}))
	final.Citations[0].Verification = &ibid.Verification{Status: "verified"}
	run.Final = final
	for _, want := range []string{"verified", "excerpt-altered"} {
		links = testenv.Must(run.Link(t.Context(), nil, nil))(t)
		if v := links.Sentences[0].Passages[0].Verification; v == nil || v.Status != want {
			t.Errorf("the cited passage's verification is %+v, want %s", v, want)
		}
		final.Citations[0].Refs = append(final.Citations[0].Refs, ibid.Ref{Source: "b"})
	}
}
