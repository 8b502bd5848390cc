package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibidhq/ibid/server"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// attributeFlags are the flags of ibid attribute.
type attributeFlags struct {
	cite        citeFlags // what to write, and what goes with a provider's response
	sources     []string
	threshold   server.Threshold
	perSentence int
	cited       bool
	explain     bool
	allow       server.Networks // only the networks that may be reached
	checker     *server.Checker
}

func newAttribute(w world) *cobra.Command {
	f := &attributeFlags{checker: server.NewChecker(), threshold: support.Balanced}
	c := &cobra.Command{
		Use:   "attribute ANSWER --sources PATH|URL...",
		Short: "Find citations for an answer that has none",
		Long: `Reads an answer and the sources it may rest on, finds for each sentence the
passages that support it, and shows the answer with these citations, as ibid
cite does. - is standard input, for the answer or for one source.

The answer is a provider's response, an answer document of ibid, plain text or
Markdown. Sources are text, Markdown, HTML, PDF (its text layer), or JSON lines
of documents; of a directory, all such files in it and below. Pages are fetched
from public addresses at ports 80 and 443 only, unless --allow-net names another
network.

Each sentence is compared with all passages; the nearest are checked, and those
with at least the threshold are cited. Such citations say "origin": "inferred",
with the words of the source, their place and the score. Citations that the
answer has already stay, and their sentences are left alone, unless --cited asks
for all. Headings, images, questions, code and phrases such as "I hope this
helps" cite nothing.

Sentences that say something and have no citation are listed on standard error,
and in the member attribution of JSON. --explain adds which passages were
considered for each sentence, their scores, the words they lack, and the values
that the sentence gives otherwise.

Exit codes: 0 done, also if nothing was found; 2 if the answer, or a source or a
line of one, could not be read.`,
		Example: `  ibid attribute answer.md --sources notes/
  ibid attribute response.json --sources paper.pdf --sources page.html --as html
  ibid attribute answer.txt --sources docs/*.md --threshold strict --explain
  curl -s https://api.example/… | ibid attribute - --sources docs.jsonl --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{
					errors.New("there is no answer"),
					"ibid attribute ANSWER --sources PATH; - reads the answer from standard input",
				}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			job, err := newAttributeJob(c, f, args, w)
			if err != nil {
				return err
			}
			return job.run(c.Context())
		},
	}
	f.add(c)
	return c
}

func (f *attributeFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(
		&f.sources,
		"sources",
		nil,
		"a file or directory of sources, or the URL of a page, as a `PATH`; repeatable, and more may follow as arguments",
	)
	flags.Var(
		&f.threshold, "threshold",
		"the least score of a citation: balanced (0.5), strict (0.7) or a `NUMBER` above 0 and at most 1",
	)
	flags.IntVar(
		&f.perSentence, "per-sentence", support.DefaultPerSentence,
		"the `NUMBER` of passages that one sentence cites at most",
	)
	flags.BoolVar(&f.cited, "cited", false, "look for sources of sentences that have a citation, too")
	flags.BoolVar(&f.explain, "explain", false, "say for each sentence which passages were considered")
	f.cite.add(c)
	server.AddNetFlag(c.Flags(), &f.allow)
	f.checker.AddFlags(c.Flags())
	wrapFlags(c)
}

// attributeJob is one call of ibid attribute.
type attributeJob struct {
	world
	flags   *attributeFlags
	form    string // a value of --as
	answer  string // its name
	sources []string
	decode  ibid.DecodeOptions
	options support.AttributeOptions
	failed  bool         // some source, or a part of it, could not be read
	issues  []ibid.Issue // of the sources
}

func newAttributeJob(c *cobra.Command, f *attributeFlags, args []string, w world) (*attributeJob, error) {
	// The first argument is the answer; others are sources that a shell made of a pattern.
	names := slices.Concat(f.sources, args[1:])
	if len(f.sources) == 0 {
		return nil, &usageError{
			errors.New("there are no sources"), "--sources PATH names a file, a directory or a page",
		}
	}
	if f.perSentence < 1 {
		return nil, &usageError{fmt.Errorf("--per-sentence %d is less than 1", f.perSentence), "leave it out for 2"}
	}
	cite, err := newCiteJob(&f.cite, args[:1], w)
	if err != nil {
		return nil, err
	}
	if err := onceStdin(append(names, args[0], f.cite.request, f.cite.documents)); err != nil {
		return nil, err
	}
	checker, err := buildChecker(f.checker, 0, w) // what is supported is for it to say; the threshold says what is cited
	if err != nil {
		return nil, err
	}
	for _, name := range idleFlags(c, &f.cite) {
		hint(w.err, fmt.Sprintf("--%s has no effect without --json", name))
	}
	return &attributeJob{
		world:   w,
		flags:   f,
		form:    cite.form,
		answer:  args[0],
		sources: names,
		decode:  cite.options,
		options: support.AttributeOptions{
			Threshold:   float64(f.threshold),
			PerSentence: f.perSentence,
			Cited:       f.cited,
			Checker:     checker,
		},
	}, nil
}

// onceStdin refuses names of which more than one is standard input.
func onceStdin(names []string) error {
	n := 0
	for _, name := range names {
		if name == stdinName {
			n++
		}
	}
	if n > 1 {
		return &usageError{errors.New("- is named more than once"), "standard input can be read only once"}
	}
	return nil
}

func (job *attributeJob) run(ctx context.Context) error {
	answer, err := job.readAnswer()
	if err != nil {
		return &usageError{fmt.Errorf("read %s: %w", job.answer, err), explain(err).hint}
	}
	docs, err := job.readSources(ctx)
	if err != nil {
		return err
	}
	found, err := support.Attribute(ctx, answer, docs, &job.options)
	if err != nil {
		return &usageError{err, checkHint(err)}
	}
	if err := job.write(found, docs); err != nil {
		return fmt.Errorf("write standard output: %w", bare(err))
	}
	job.comment(found, docs)
	if job.failed {
		return errReported
	}
	return nil
}

// write writes the cited answer.
func (job *attributeJob) write(found *support.Attribution, docs []support.Document) error {
	if job.form == asJSON {
		return job.writeJSON(found, docs)
	}
	cite := citeJob{world: job.world, flags: &job.flags.cite, form: job.form, names: []string{job.answer}}
	out := cite.newOutput()
	if err := out.write(&reading{name: job.answer, answer: found.Answer}); err != nil {
		return err
	}
	return out.close()
}
