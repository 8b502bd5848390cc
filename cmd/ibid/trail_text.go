package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// trailText writes a summary for people.
type trailText struct {
	strings.Builder

	s     *trail.Summary
	flags *trailFlags
}

func writeTrail(w io.Writer, s *trail.Summary, f *trailFlags) error {
	t := &trailText{s: s, flags: f}
	t.head()
	t.sentences()
	t.steps()
	t.conflicts()
	t.sources("Primary sources", s.Primary)
	t.sources("All sources", s.Sources)
	t.sources("Retrieved, not used", s.Unused)
	_, err := io.WriteString(w, t.String())
	return err
}

func (t *trailText) line(indent int, format string, args ...any) {
	t.WriteString(strings.Repeat(" ", indent) + oneLine(fmt.Sprintf(format, args...)) + "\n")
}

func (t *trailText) head() {
	r := t.s.Run
	if r.Question != "" {
		t.line(0, "%s", r.Question)
	}
	parts := []string{plural(len(t.s.Steps), "step"), plural(len(t.s.Sources), "source")}
	if took := r.Finished.Sub(r.Started); !r.Finished.IsZero() && !r.Started.IsZero() && took >= 0 {
		parts = append(parts, duration(took))
	}
	if u := t.s.Links.Uncited; u != nil {
		parts = append(parts, fmt.Sprintf("%.0f %% of the sentences without sources", *u*100))
	}
	t.line(0, "%s", strings.Join(parts, " · "))
}

func duration(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// sentences writes the answer, and below each sentence what it rests on.
func (t *trailText) sentences() {
	if len(t.s.Links.Sentences) == 0 {
		t.WriteString("\nNo final answer\n")
		return
	}
	t.WriteString("\nAnswer\n")
	for i := range t.s.Links.Sentences {
		s := &t.s.Links.Sentences[i]
		t.line(2, "%s", s.Text)
		for k := range s.Passages {
			t.rest(&s.Passages[k])
		}
		switch {
		case !s.NoSources():
		case len(s.Steps) > 0:
			t.line(4, "no sources used; %s", stepList(s.Steps, "says"))
		default:
			t.line(4, "no sources used")
		}
	}
}

func (t *trailText) rest(r *trail.Rest) {
	var b strings.Builder
	if len(r.Via) > 0 {
		b.WriteString(stepList(r.Via, "") + " → ")
	}
	b.WriteString(r.DocumentID)
	if r.ChunkIndex != nil {
		b.WriteString(", chunk " + strconv.Itoa(*r.ChunkIndex))
	}
	if len(r.Steps) > 0 {
		b.WriteString(" (" + stepList(r.Steps, "") + ")")
	}
	b.WriteString(": " + reasonWord(r.Reason))
	if r.Score != nil {
		fmt.Fprintf(&b, " %.2f", *r.Score)
	}
	t.line(4, "%s", b.String())
	if quote := r.Evidence; quote != "" && !t.flags.noExcerpts {
		t.line(6, "“%s”", trail.Excerpt(quote, t.flags.excerpt))
	}
}

func reasonWord(r trail.LinkReason) string {
	switch r {
	case trail.ReasonCitation:
		return "cited"
	case trail.ReasonMarker:
		return "marked"
	default:
		return string(r)
	}
}

// stepList names steps, and what they do.
func stepList(numbers []int, verb string) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	list, name := strings.Join(words, ", "), "step "
	if len(numbers) > 1 {
		name, verb = "steps ", strings.TrimSuffix(verb, "s")
	}
	if verb != "" && len(numbers) > 1 {
		verb = "say"
	}
	return strings.TrimSpace(name + list + " " + verb)
}

func (t *trailText) steps() {
	t.WriteString("\nSteps\n")
	usage := make(map[int]*trail.StepUsage, len(t.s.Steps))
	for i := range t.s.Steps {
		usage[t.s.Steps[i].Number] = &t.s.Steps[i]
	}
	if len(t.s.Steps) == 0 {
		t.line(2, "none")
	}
	for i := range t.s.Run.Steps {
		s := &t.s.Run.Steps[i]
		t.step(s, usage[s.Number])
	}
}

func (t *trailText) step(s *trail.Step, u *trail.StepUsage) {
	head := strconv.Itoa(s.Number)
	if s.Tool != "" {
		head += "  " + s.Tool
		if s.Question != "" {
			head += ":"
		}
	}
	if s.Question != "" {
		head += "  " + s.Question
	}
	if s.Duration > 0 {
		head += "  (" + duration(s.Duration) + ")"
	}
	t.line(2, "%s", head)
	if s.Answer != "" {
		t.line(5, "%s", trail.Excerpt(s.Answer, trail.DefaultExcerpt))
	}
	if s.Error != "" {
		t.line(5, "failed: %s", s.Error)
	}
	switch {
	case len(u.Documents) > 0:
		t.used(u)
	case u.Retrieved > 0:
		t.line(5, "no sources used, %d retrieved", u.Retrieved)
	default:
		t.line(5, "no sources used")
	}
}

// used names the sources of a step, each with how well it fits and how much of the step rests on it, where that is
// known.
func (t *trailText) used(u *trail.StepUsage) {
	words := slices.Clone(u.Documents)
	for i := range words {
		var known []string
		if f := &u.Best[i]; f.Relevance != nil && f.Origin == ibid.ScoreRank {
			known = append(known, fmt.Sprintf("rank %.2f", *f.Relevance))
		} else if f.Relevance != nil {
			known = append(known, fmt.Sprintf("relevance %.2f", *f.Relevance))
		}
		if usage := u.Best[i].Usage; usage != nil {
			known = append(known, fmt.Sprintf("usage %.2f", *usage))
		}
		if known != nil {
			words[i] += " (" + strings.Join(known, ", ") + ")"
		}
	}
	t.line(5, "used %s", strings.Join(words, ", "))
}

func (t *trailText) sources(title string, all []trail.SummarySource) {
	if len(all) == 0 {
		return
	}
	t.WriteString("\n" + title + "\n")
	for i := range all {
		s := &all[i]
		words := []string{t.relevance(&s.Source), s.DocumentID}
		if s.Title != "" && s.Title != s.DocumentID {
			words = append(words, s.Title)
		}
		if s.URL != "" && s.URL != s.DocumentID {
			words = append(words, s.URL)
		}
		t.line(2, "%s · %s", strings.Join(words, " · "), stepList(s.Steps, ""))
		if title == "Primary sources" {
			for k := range s.Passages {
				if text := s.Passages[k].Excerpt; text != "" {
					t.line(8, "“%s”", text)
				}
			}
		}
	}
}

// relevance writes the score that counts, and says where it was only made of a place in a list.
func (t *trailText) relevance(s *trail.Source) string {
	score := s.Relevance
	if t.flags.adjust {
		score = s.Adjusted
	}
	switch {
	case score == nil:
		return "–"
	case s.Origin == ibid.ScoreRank:
		return fmt.Sprintf("%.2f (rank)", *score)
	default:
		return fmt.Sprintf("%.2f", *score)
	}
}

// conflicts writes where sources seem to say different things.
func (t *trailText) conflicts() {
	if len(t.s.Conflicts) == 0 {
		return
	}
	t.WriteString("\nPossible conflicts\n")
	for i := range t.s.Conflicts {
		c := &t.s.Conflicts[i]
		t.line(2, "%s", c.Note)
		for _, side := range []trail.ConflictSide{c.A, c.B} {
			chunk := ""
			if side.ChunkIndex != nil {
				chunk = ", chunk " + strconv.Itoa(*side.ChunkIndex)
			}
			if t.flags.noExcerpts {
				t.line(4, "%s%s", side.DocumentID, chunk)
			} else {
				t.line(4, "%s%s: “%s”", side.DocumentID, chunk, side.Excerpt)
			}
		}
	}
}
