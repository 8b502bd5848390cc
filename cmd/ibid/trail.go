package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

// maxIssues is how many issues of a run are said one by one.
const maxIssues = 20

// trailFlags are the flags of ibid trail.
type trailFlags struct {
	as                                   string
	json, noExcerpts, noInferred, adjust bool
	excerpt, top                         int
	threshold                            float64
}

func newTrail(w world) *cobra.Command {
	f := &trailFlags{}
	c := &cobra.Command{
		Use:   "trail FILE|-",
		Short: "Show which sources each step of an agent's run used",
		Long: `Reads the run of an agent: a JSON object with its steps, a list of steps, or JSON
lines with one step each. - is standard input. docs/trail.md lists the members.

Shown are the sentences of the answer with the steps and passages that each rests
on, the sources that each step used, and the primary sources. A sentence rests on
a passage that is cited for it, that a mark in it names, or that is found to
support it; the latter says "inferred", with the probability of support.

What is odd about the run (steps in a cycle, a score that is none) goes to
standard error. It keeps nothing from being shown.

--as json writes the run with the members source_summary, display, sentences and
uncited_share, prov W3C PROV-JSON, otlp an OpenTelemetry trace request as JSON.`,
		Example: `  ibid trail run.json
  ibid trail --json run.jsonl | jq .display
  ibid trail --adjust --top 5 run.json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{errors.New("ibid trail takes one file"), "to read standard input: ibid trail -"}
			}
			return nil
		},
		RunE: func(c *cobra.Command, names []string) error {
			return runTrail(c.Context(), f, names[0], w)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	addChoice(c, server.OneOf(&f.as, "FORM", "summary", asJSON, "prov", "otlp"), "as",
		"what to write: `FORM` is summary (default), json, prov or otlp")
	flags.BoolVar(&f.json, "json", false, "the same as --as json")
	flags.BoolVar(&f.noExcerpts, "no-excerpts", false, "leave out what the sources say")
	flags.IntVar(&f.excerpt, "excerpt", trail.DefaultExcerpt, "`CHARACTERS` of a source that are shown")
	flags.Float64Var(
		&f.threshold, "threshold", trail.DefaultThreshold, "the `RELEVANCE` that makes a source a primary one",
	)
	flags.IntVar(&f.top, "top", trail.DefaultTop, "how many primary sources there are at most: a `NUMBER`")
	flags.BoolVar(&f.adjust, "adjust", false, "rank sources by relevance times the confidence of the step")
	flags.BoolVar(&f.noInferred, "no-inferred", false, "tie sentences to passages by citations and marks only")
	alternatives(flags, "as", "json")
	return c
}

func (f *trailFlags) check() error {
	switch {
	case f.json && f.as != "" && f.as != asJSON:
		return &usageError{fmt.Errorf("--json and --as %s contradict each other", f.as), "leave out one of them"}
	case f.excerpt < 1:
		return &usageError{
			fmt.Errorf("--excerpt %d: must be 1 or more", f.excerpt), "--no-excerpts leaves out excerpts",
		}
	case f.top < 1:
		return &usageError{fmt.Errorf("--top %d: must be 1 or more", f.top), ""}
	case math.IsNaN(f.threshold) || f.threshold < 0 || f.threshold > 1:
		return &usageError{fmt.Errorf("--threshold %v: must be from 0 to 1", f.threshold), ""}
	}
	return nil
}

func runTrail(ctx context.Context, f *trailFlags, name string, w world) error {
	if err := f.check(); err != nil {
		return err
	}
	t, err := readTrail(name, w.in)
	if err != nil {
		return err
	}
	links, err := t.Link(ctx, nil, &trail.LinkOptions{NoInference: f.noInferred})
	if err != nil {
		return err
	}
	sayIssues(w.err, slices.Concat(t.Check(), links.Issues))
	switch f.as {
	case "prov":
		return writeBytes(w.out)(t.PROV(&trail.PROVOptions{Content: !f.noExcerpts, Linked: true}))
	case "otlp":
		return writeBytes(w.out)(otel.Write(t, otel.JSON, &otel.WriteOptions{NoContent: f.noExcerpts}))
	}
	if !f.noInferred {
		if err := t.Weigh(ctx, nil); err != nil {
			return err
		}
	}
	s := t.Summary(&trail.SummaryOptions{
		Threshold: &f.threshold, Top: f.top, Excerpt: f.excerpt, Adjust: f.adjust, NoExcerpts: f.noExcerpts,
	})
	s.Links = links
	s.Assess(&trail.AssessOptions{Now: time.Now()})
	if f.json || f.as == asJSON {
		return writeBytes(w.out)(s.MarshalJSON())
	}
	return writeTrail(w.out, s, f)
}

// writeBytes returns a function that writes what a marshaller returned, on a line.
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
	t, err := trail.Read(data)
	if err != nil {
		return nil, &usageError{fmt.Errorf("read %s: %w", name, &unnamedError{"read run", err}), trailHint(err)}
	}
	return t, nil
}

func trailHint(err error) string {
	switch {
	case errors.Is(err, trail.ErrEmpty):
		return "did the program that records the run end well?"
	case errors.Is(err, trail.ErrListing):
		return "GET /v1/runs/{run}/summary has the whole run as ibid trail reads it"
	case errors.Is(err, trail.ErrNoRun):
		return "docs/trail.md shows what a run looks like"
	default:
		return ""
	}
}

// sayIssues says what is odd about a run, each thing once.
func sayIssues(w io.Writer, issues []ibid.Issue) {
	seen := make(map[ibid.Issue]bool, len(issues))
	issues = slices.DeleteFunc(issues, func(issue ibid.Issue) bool {
		known := seen[issue]
		seen[issue] = true
		return known
	})
	for i, issue := range issues {
		if i == maxIssues {
			say(w, "and %s more; --json has all of them", plural(len(issues)-i, "issue"))
			return
		}
		say(w, "%s: %s", issue.Code, issue.Detail)
	}
}
