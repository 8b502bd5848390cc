package support

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
)

// conflictsOf calls Conflicts, which fails only if its context ends.
func conflictsOf(tb testing.TB, texts []Passage, o *ConflictOptions) ([]Conflict, []ibid.Issue) {
	tb.Helper()
	found, issues, err := Conflicts(tb.Context(), texts, o)
	if err != nil {
		tb.Fatal(err)
	}
	return found, issues
}

func TestConflictNamesBothSides(t *testing.T) {
	texts := passages(
		"About bridges. The Verrin Bridge is 1,420 m long. It opened in 1980.",
		"Tea is a drink.",
		"The length of the Verrin Bridge is 1,510 m, the guide says. The Verrin Bridge was opened in 1983.",
	)
	found, issues := conflictsOf(t, texts, nil)
	if len(issues) != 0 {
		t.Errorf("issues %v", issues)
	}
	var notes []string
	for _, f := range found {
		notes = append(notes, f.Note)
		for _, side := range []Excerpt{f.A, f.B} {
			text := texts[side.Passage].Text
			if text[side.Span.Start:side.Span.End] != side.Text || side.Value.Start < side.Span.Start || side.Value.End > side.Span.End {
				t.Errorf("%s: %+v is not in its passage", f.Note, side)
			}
		}
		if f.A.Passage != 0 || f.B.Passage != 2 || len(f.About) == 0 {
			t.Errorf("%s: passages %d and %d, about %q", f.Note, f.A.Passage, f.B.Passage, f.About)
		}
	}
	want := []string{"possible conflict: number: 1,420 m, 1,510 m", "possible conflict: date: 1980, 1983"}
	testenv.Equal(t, "", want, notes)
}

func TestNoConflicts(t *testing.T) {
	for about, in := range map[string][]Passage{
		"within a passage": passages("The Verrin Bridge is 1,420 m long. The Verrin Bridge is 1,510 m long."),
		"of plans":         passages("The Verrin Bridge is 1,420 m long.", "The planned length of the Verrin Bridge is 1,510 m."),
	} {
		if found, _ := conflictsOf(t, in, nil); len(found) != 0 {
			t.Errorf("%s: found %v", about, found)
		}
	}
}

// The sentences of one passage are not compared with each other, and cost no more than reading them.
func TestConflictsOfLongPassages(t *testing.T) {
	long := strings.Repeat("Herons eat fish. ", 8<<10)
	start := time.Now()
	found, issues := conflictsOf(t, passages(long, "The Verrin Bridge is 1,420 m long."), nil)
	if took := time.Since(start); len(found) != 0 || len(issues) != 0 || took > time.Minute {
		t.Errorf("%v: %d conflicts, issues %v", took, len(found), issues)
	}
}

func TestConflictLimits(t *testing.T) {
	var texts []Passage
	for i := range 60 {
		texts = append(texts, Passage{Text: fmt.Sprintf("The Verrin Bridge is %d m long.", 1000+200*i)})
	}
	found, issues := conflictsOf(t, texts, nil)
	if len(found) != maxConflicts || len(issues) != 1 || issues[0].Code != IssueConflictsTruncated {
		t.Errorf("%d conflicts, issues %v", len(found), issues)
	}
	found, issues = conflictsOf(t, texts, &ConflictOptions{MaxPairs: 100})
	if len(found) == 0 || len(issues) != 1 || !strings.Contains(issues[0].Detail, "100 pairs") {
		t.Errorf("%d conflicts, issues %v", len(found), issues)
	}
	long := passages(strings.Repeat("x ", maxConflictText/2), "The Verrin Bridge is 1,420 m long.", "The Verrin Bridge is 1,510 m long.")
	found, issues = conflictsOf(t, long, nil)
	if len(found) != 0 || len(issues) != 1 {
		t.Errorf("%d conflicts, issues %v", len(found), issues)
	}
	if found, issues := conflictsOf(t, nil, nil); found != nil || issues != nil {
		t.Errorf("of nothing: %v, %v", found, issues)
	}
}

func BenchmarkConflicts(b *testing.B) {
	var texts []Passage
	for i, d := range readCases(b, "distractors.txt")[0] {
		texts = append(texts, Passage{Text: strings.Repeat(d+" ", 10) + fmt.Sprintf("The Verrin Bridge is %d m long.", 1000+10*i)})
	}
	for b.Loop() {
		conflictsOf(b, texts, nil)
	}
}

// The end of the context ends the work on long texts, wherever it is.
func TestContextEndsWork(t *testing.T) {
	var texts []Passage
	var docs []Document
	for i := range 4000 {
		text := strings.Repeat(fmt.Sprintf("In %d the station counted %d nests of herons at the northern shore. ", 1500+i%500, i), 12)
		texts, docs = append(texts, Passage{Text: text}), append(docs, Document{Text: text})
	}
	for name, work := range map[string]func(context.Context) error{
		"conflicts": func(ctx context.Context) error {
			_, _, err := Conflicts(ctx, texts, &ConflictOptions{MaxPairs: 1 << 30})
			return err
		},
		"relevance": func(ctx context.Context) error {
			_, err := Relevance(ctx, "How many nests were counted?", texts)
			return err
		},
		"attribution": func(ctx context.Context) error {
			_, err := Attribute(ctx, &ibid.Answer{Text: "The station counted 7 nests of herons."}, docs, nil)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := work(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
