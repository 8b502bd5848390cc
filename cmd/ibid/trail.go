package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

// maxIssues limits the issues of a run that are reported one by one.
const maxIssues = 20

// trailFlags are the flags of ibid trail.
type trailFlags struct {
	as                                   string
	json, noExcerpts, noInferred, adjust bool
	excerpt, top                         int
	threshold                            float64
	judge                                judgeFlags
}

func newTrail(w world) *cobra.Command {
	f := &trailFlags{}
	c := &cobra.Command{
		Use:   "trail FILE|-",
		Short: "Show which sources each step of an agent's run used",
		Long: `Reads the run of an agent: a JSON object with its steps, a list of steps, JSON
lines with one step each, or an OpenTelemetry trace request as JSON. - is standard
input. docs/trail.md lists the members.

It shows the sentences of the answer with the steps and passages that each rests on,
the sources that each step used, and the primary sources. A sentence rests on a
passage that is cited for it, that a marker in it names, or that is found to support
it ("inferred", with the probability). Irregularities of the run, such as steps in a
cycle, are reported on standard error.

--as json adds the members source_summary, display, sentences and uncited_share;
prov is W3C PROV-JSON, otlp an OpenTelemetry trace request as JSON.`,
		Example: `  ibid trail run.json
  ibid trail --json run.jsonl | jq .display
  ibid trail --adjust --top 5 run.json`,
		Args: wants(1, "ibid trail takes one file", "to read standard input: ibid trail -"),
		RunE: func(c *cobra.Command, names []string) error {
			return runTrail(c.Context(), f, names[0], w)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	forms := slices.Concat(
		[]string{"summary", asJSON, "prov", "otlp"}, text.Strings(ibid.Styles()), text.Strings(biblio.Formats()))
	flags.Var(server.OneOf(&f.as, "FORM", forms...), "as",
		"what to write: `FORM` is summary (default), json, prov, otlp, the final answer with its citations ("+
			strings.Join(text.Strings(ibid.Styles()), ", ")+"), or a bibliography of the sources: "+
			strings.Join(text.Strings(biblio.Formats()), ", "))
	flags.BoolVar(&f.json, "json", false, "the same as --as json")
	flags.BoolVar(&f.noExcerpts, "no-excerpts", false, "leave out the text of the sources")
	flags.IntVar(&f.excerpt, "excerpt", trail.DefaultExcerpt, "show at most this many `CHARACTERS` of a source")
	flags.Float64Var(
		&f.threshold, "threshold", trail.DefaultThreshold,
		"the `RELEVANCE` that a source must exceed to be primary, unless the answer rests on it",
	)
	flags.IntVar(&f.top, "top", trail.DefaultTop, "the maximum `NUMBER` of primary sources")
	flags.BoolVar(&f.adjust, "adjust", false, "rank sources by relevance times the confidence of the step")
	flags.BoolVar(&f.noInferred, "no-inferred", false, "link sentences to passages by citations and markers only")
	f.judge.add(flags, nil)
	alternatives(flags, "as", "json")
	withoutVariable(flags, "as", "threshold") // ibid cite and ibid check accept other values
	return c
}

func runTrail(ctx context.Context, f *trailFlags, name string, w world) error {
	as, err := formOf(f.as, f.json)
	switch {
	case err != nil:
		return err
	case f.excerpt < 1:
		return usagef("use --no-excerpts to omit excerpts", "--excerpt %d: must be 1 or more", f.excerpt)
	case f.top < 1:
		return usagef("", "--top %d: must be 1 or more", f.top)
	case math.IsNaN(f.threshold) || f.threshold < 0 || f.threshold > 1:
		return usagef("", "--threshold %v: must be from 0 to 1", f.threshold)
	}
	t, err := readTrail(name, w.in)
	if err != nil {
		return err
	}
	judge, done, err := f.judge.build(f.judge.file, w)
	if err != nil {
		return err
	}
	defer done()
	links, err := t.Link(ctx, judge, &trail.LinkOptions{NoInference: f.noInferred})
	if err != nil {
		return err
	}
	// Report each issue of the run once.
	seen := map[ibid.Issue]bool{}
	issues := slices.DeleteFunc(slices.Concat(t.Check(), links.Issues), func(issue ibid.Issue) bool {
		known := seen[issue]
		seen[issue] = true
		return known
	})
	for _, issue := range issues[:min(len(issues), maxIssues)] {
		say(w.err, "%s: %s", issue.Code, issue.Detail)
	}
	if more := len(issues) - maxIssues; more > 0 {
		say(w.err, "and %s more; --json lists all of them", plural(more, "issue"))
	}
	switch as {
	case "prov":
		return writeBytes(w.out)(t.PROV(&trail.PROVOptions{Content: !f.noExcerpts, Linked: true}))
	case "otlp":
		return writeBytes(w.out)(otel.Write(t, otel.JSON, &otel.WriteOptions{NoContent: f.noExcerpts}))
	}
	if style := ibid.Style(as); slices.Contains(ibid.Styles(), style) {
		out, err := api.FinalText(ctx, t, style, judge, &trail.LinkOptions{NoInference: f.noInferred})
		if err != nil {
			return err
		}
		_, err = w.out.Write(out)
		return err
	}
	if !f.noInferred {
		if err := t.Weigh(ctx, nil); err != nil {
			return err
		}
	}
	if format := biblio.Format(as); slices.Contains(biblio.Formats(), format) {
		return biblio.Write(w.out, format, t.Summary(nil).Bibliography(), nil)
	}
	s := t.Summary(&trail.SummaryOptions{
		Threshold: &f.threshold, Top: f.top, Excerpt: f.excerpt, Adjust: f.adjust, NoExcerpts: f.noExcerpts,
	})
	s.SetLinks(links)
	if err := s.Assess(ctx, &trail.AssessOptions{Now: time.Now()}); err != nil {
		return err
	}
	if as == asJSON {
		return writeBytes(w.out)(s.MarshalJSON())
	}
	text := &trailText{s: s, flags: f}
	text.head()
	text.sentences()
	text.steps()
	text.conflicts()
	text.sources("Primary sources", s.Primary)
	text.sources("All sources", s.Sources)
	text.sources("Retrieved, not used", s.Unused)
	_, err = io.WriteString(w.out, text.String())
	return err
}

// writeBytes returns a function that writes the result of a marshaller as a line.
func writeBytes(w io.Writer) func([]byte, error) error {
	return func(b []byte, err error) error {
		if err != nil {
			return err
		}
		return writeLine(w, string(b))
	}
}

func readTrail(name string, stdin io.Reader) (*trail.Trail, error) {
	data, err := readSidecar(name, stdin)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	t, err := api.ReadTrail(data)
	advice := ""
	switch {
	case err == nil:
		return t, nil
	case errors.Is(err, trail.ErrEmpty):
		advice = "did the program that records the run fail?"
	case errors.Is(err, trail.ErrListing):
		advice = "GET /v1/runs/{run}/summary returns the whole run in a form that ibid trail reads"
	case errors.Is(err, trail.ErrNoRun):
		advice = "docs/trail.md shows what a run looks like"
	}
	return nil, usagef(advice, "read %s: %w", name, &unnamedError{"read run", err})
}

// trailText writes a summary for people.
type trailText struct {
	paper

	s     *trail.Summary
	flags *trailFlags
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
	unknown := 0
	for i := range t.s.Links.Sentences {
		if t.s.Links.Sentences[i].Skipped == trail.SkipUnread {
			unknown++
		}
	}
	if unknown > 0 {
		parts = append(parts, plural(unknown, "sentence")+" not known")
	}
	t.line(0, "%s", strings.Join(parts, " · "))
}

func duration(d time.Duration) string {
	to := 100 * time.Millisecond
	if d < time.Second {
		to = time.Millisecond
	}
	return d.Round(to).String()
}

// sentences writes the answer, each sentence followed by what it rests on.
func (t *trailText) sentences() {
	if len(t.s.Links.Sentences) == 0 {
		t.heading("No final answer")
		return
	}
	t.heading("Answer")
	for i := range t.s.Links.Sentences {
		s := &t.s.Links.Sentences[i]
		t.line(2, "%s", s.Text)
		for k := range s.Passages {
			t.rest(&s.Passages[k])
		}
		switch {
		case s.Skipped == trail.SkipUnread:
			t.line(4, "not known: a result could not be read")
		case !s.NoSources():
		case len(s.Steps) > 0:
			t.line(4, "no sources used; %s", stepList(s.Steps, "says"))
		default:
			t.line(4, "no sources used")
		}
	}
}

func (t *trailText) rest(r *trail.Link) {
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
	switch r.Reason {
	case trail.ReasonCitation:
		b.WriteString(": cited")
	case trail.ReasonMarker:
		b.WriteString(": marked")
	default:
		b.WriteString(": " + string(r.Reason))
	}
	if r.Score != nil {
		fmt.Fprintf(&b, " %.2f", *r.Score)
	}
	switch {
	case r.Differs == "":
	case t.flags.noExcerpts:
		b.WriteString(", differs")
	default:
		b.WriteString(", differs: " + r.Differs)
	}
	if r.Verification != nil {
		b.WriteString(", checked: " + r.Verification.Status)
	}
	t.line(4, "%s", b.String())
	if quote := r.Evidence; quote != "" && !t.flags.noExcerpts {
		t.line(6, "“%s”", trail.Excerpt(quote, t.flags.excerpt))
	}
}

// stepList formats step numbers with a verb.
func stepList(numbers []int, verb string) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	name := "step "
	if len(numbers) > 1 {
		name, verb = "steps ", strings.TrimSuffix(verb, "s")
	}
	return strings.TrimSpace(name + strings.Join(words, ", ") + " " + verb)
}

func (t *trailText) steps() {
	t.heading("Steps")
	usage := make(map[int]*trail.StepUsage, len(t.s.Steps))
	for i := range t.s.Steps {
		usage[t.s.Steps[i].Number] = &t.s.Steps[i]
	}
	if len(t.s.Steps) == 0 {
		t.line(2, "none")
	}
	for i := range t.s.Run.Steps {
		s := &t.s.Run.Steps[i]
		t.step(s, usage[s.Number], 0)
	}
}

// nested writes the steps of a run that a step started.
func (t *trailText) nested(run *trail.Trail, depth int) {
	if depth > trail.MaxNested {
		return
	}
	s := run.Summary(nil)
	usage := make(map[int]*trail.StepUsage, len(s.Steps))
	for i := range s.Steps {
		usage[s.Steps[i].Number] = &s.Steps[i]
	}
	for i := range run.Steps {
		t.step(&run.Steps[i], usage[run.Steps[i].Number], depth)
	}
}

// step writes a step and, below it, those of the run that it started.
func (t *trailText) step(s *trail.Step, u *trail.StepUsage, depth int) {
	at := 4 * depth
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
	t.line(at+2, "%s", head)
	if s.Answer != "" {
		t.line(at+5, "%s", trail.Excerpt(s.Answer, trail.DefaultExcerpt))
	}
	if s.Error != "" {
		t.line(at+5, "failed: %s", s.Error)
	}
	// with relevance and usage, where known
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
	switch {
	case len(words) > 0:
		t.line(at+5, "used %s", strings.Join(words, ", "))
	case u.Retrieved > 0:
		t.line(at+5, "no sources used, %d retrieved", u.Retrieved)
	default:
		t.line(at+5, "no sources used")
	}
	if s.Nested != nil {
		t.nested(s.Nested, depth+1)
	}
}

func (t *trailText) sources(title string, all []trail.SummarySource) {
	if len(all) == 0 {
		return
	}
	t.heading(title)
	for i := range all {
		s := &all[i]
		score, relevance := s.Relevance, "–"
		if t.flags.adjust {
			score = s.Adjusted
		}
		if score != nil {
			relevance = fmt.Sprintf("%.2f", *score)
		}
		if score != nil && s.Origin == ibid.ScoreRank { // derived from the place in a list
			relevance += " (rank)"
		}
		words := []string{relevance, s.DocumentID}
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

// conflicts writes where sources seem to contradict each other.
func (t *trailText) conflicts() {
	if len(t.s.Conflicts) == 0 {
		return
	}
	t.heading("Possible conflicts")
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
