package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/server"
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
	checker     checkerFlags
}

func newAttribute(w world) *cobra.Command {
	f := &attributeFlags{threshold: support.Balanced}
	c := &cobra.Command{
		Use:   "attribute ANSWER --source PATH|URL...",
		Short: "Find citations for an answer that has none",
		Long: `Reads an answer and the sources it may rest on, finds for each sentence the
passages that support it, and shows the answer with these citations, as ibid
cite does. - is standard input, for the answer or for one source.

The answer is a provider's response, an answer document of ibid, plain text or
Markdown. Sources are text, Markdown, HTML, PDF (its text layer), or JSON lines
of documents; of a directory, all such files in it and below. Pages are fetched
from public addresses at ports 80 and 443 only, unless --allow-net names another.

For each sentence the nearest passages are checked, and those with at least the
threshold are cited, as "origin": "inferred", with the words of the source, their
place and the score. Citations that the answer has already stay, and their
sentences are left alone, unless --cited asks for all. Headings, images, questions,
code and phrases such as "I hope this helps" cite nothing.

Sentences that say something and have no citation are listed on standard error,
and in the member attribution of JSON. --explain adds the passages considered for
each sentence, their scores, the words they lack, and the values that differ.

Exit codes: 0 done, also if nothing was found; 2 if the answer, or a source or a
line of one, could not be read.`,
		Example: `  ibid attribute answer.md --source notes/
  ibid attribute response.json --source paper.pdf --source page.html --as html
  ibid attribute answer.txt --source docs/*.md --threshold strict --explain
  curl -s https://api.example/… | ibid attribute - --source docs.jsonl --json`,
		Args: wants(many, "there is no answer",
			"ibid attribute ANSWER --source PATH; - reads the answer from standard input"),
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
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "sources" { // an alias
			name = "source"
		}
		return pflag.NormalizedName(name)
	})
	flags.StringArrayVar(
		&f.sources,
		"source",
		nil,
		"a file or directory of sources, or the URL of a page, as a `PATH`; repeatable, and more may follow as "+
			"arguments",
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
	f.checker.add(c, nil)
	complete(c)
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
			errors.New("there are no sources"), "--source PATH names a file, a directory or a page",
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
	// what is supported is for it to say; the threshold says what is cited
	checker, err := f.checker.build(f.checker.file, 0, w)
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
	cite := citeJob{world: job.world, flags: &job.flags.cite, form: job.form, feed: feed{names: []string{job.answer}}}
	out := cite.newOutput()
	if err := out.write(&reading{name: job.answer, answer: found.Answer}); err != nil {
		return err
	}
	return out.close()
}

// maxUncited is how many sentences without a source are listed for people.
const maxUncited = 20

// attributionJSON is the member attribution of the answer document that ibid attribute writes. Offsets are in the
// document's unit.
type attributionJSON struct {
	By           string         `json:"by"`
	Threshold    float64        `json:"threshold"`
	UncitedShare *float64       `json:"uncited_share"` // null: no sentence says anything
	Uncited      []sentenceJSON `json:"uncited"`
	// how many sentences the share leaves out, by why
	LeftOut map[support.SkipReason]int `json:"left_out"`
	// of the sources: what of them could not be read, or was odd
	Issues    []ibid.Issue    `json:"issues"`
	Sentences *[]sentenceJSON `json:"sentences,omitempty"` // with --explain
}

type sentenceJSON struct {
	Start      int              `json:"text_start"`
	End        int              `json:"text_end"`
	Text       string           `json:"text"`
	Skipped    *string          `json:"skipped"`
	Citations  int              `json:"citations"`
	Candidates *[]candidateJSON `json:"candidates,omitempty"`
}

type candidateJSON struct {
	Source    string                   `json:"source"` // the id of the document
	Title     *string                  `json:"title"`
	Passage   int                      `json:"passage"`
	Page      *int                     `json:"page"`
	Relevance float64                  `json:"relevance"`
	Score     *float64                 `json:"score"`
	Label     support.Label            `json:"label"`
	Evidence  *string                  `json:"evidence"`
	Missing   []string                 `json:"missing"`
	Changed   bool                     `json:"changed"`
	Conflicts []support.ReportConflict `json:"conflicts"`
	Cited     bool                     `json:"cited"`
}

// writeJSON writes the answer document with the member attribution.
func (job *attributeJob) writeJSON(found *support.Attribution, docs []support.Document) error {
	f := &job.flags.cite
	line, err := found.Answer.Document(f.documentOptions(job.answer)).JSON()
	if err != nil {
		return err
	}
	report := attributionJSON{
		By:           found.By,
		Threshold:    found.Threshold,
		UncitedShare: found.Uncited,
		Uncited:      []sentenceJSON{},
		LeftOut:      found.LeftOut,
		Issues:       append([]ibid.Issue{}, job.issues...),
	}
	offsets := ibid.NewOffsets(found.Answer.Text)
	sentences := []sentenceJSON{}
	for i := range found.Sentences {
		s := &found.Sentences[i]
		out := sentenceJSON{Text: found.Answer.Text[s.Span.Start:s.Span.End], Citations: s.Cited}
		out.Start, out.End = offsets.In(ibid.Unit(f.unit), s.Span)
		if s.Skipped != "" {
			out.Skipped = (*string)(&s.Skipped)
		}
		if s.Uncited() {
			report.Uncited = append(report.Uncited, out)
		}
		if job.flags.explain {
			out.Candidates = &[]candidateJSON{}
			for k := range s.Candidates {
				*out.Candidates = append(*out.Candidates, newCandidate(&s.Candidates[k], docs))
			}
			sentences = append(sentences, out)
		}
	}
	if job.flags.explain {
		report.Sentences = &sentences
	}
	member, err := json.Marshal(report)
	if err != nil {
		return err
	}
	line = append(line[:len(line)-1], `,"attribution":`...)
	_, err = job.out.Write(append(append(line, member...), "}\n"...))
	return err
}

func newCandidate(c *support.Candidate, docs []support.Document) candidateJSON {
	d := &docs[c.Document]
	out := candidateJSON{
		Source:    d.Source.ID,
		Passage:   c.Passage,
		Relevance: c.Relevance,
		Score:     c.Verdict.Score,
		Label:     c.Verdict.Label,
		Missing:   c.Verdict.MissingWords(),
		Changed:   c.Verdict.Changed,
		Conflicts: c.Verdict.ReportConflicts(),
		Cited:     c.Source != "",
	}
	if d.Source.Title != "" {
		out.Title = &d.Source.Title
	}
	if page := d.Passages[c.Passage].Page; page > 0 {
		out.Page = &page
	}
	if c.Evidence.Len() > 0 {
		words := d.Text[c.Evidence.Start:c.Evidence.End]
		out.Evidence = &words
	}
	return out
}

// comment tells people what the output does not.
func (job *attributeJob) comment(found *support.Attribution, docs []support.Document) {
	if job.flags.explain && job.form != asJSON {
		job.explainAll(found, docs)
	}
	var without []string
	said := 0
	for i := range found.Sentences {
		s := &found.Sentences[i]
		if s.Says() {
			said++
		}
		if s.Uncited() {
			without = append(without, found.Answer.Text[s.Span.Start:s.Span.End])
		}
	}
	if len(found.LeftOut) > 0 {
		say(job.err, "left out: %s", leftOut(found.LeftOut))
	}
	switch {
	case said == 0:
		say(job.err, "the answer has no sentence that says something")
	case len(without) > 0:
		say(job.err, "%d of %s without a source:", len(without), plural(said, "sentence"))
		for _, words := range without[:min(len(without), maxUncited)] {
			say(job.err, "no source: %s", words)
		}
		if more := len(without) - maxUncited; more > 0 {
			say(job.err, "and %d more: --json lists all", more)
		}
	}
}

// leftOut says which sentences need no source, and how many: "2 heading, 1 short".
func leftOut(counts map[support.SkipReason]int) string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	return strings.Join(all, ", ")
}

// explainAll says for each sentence what was considered.
func (job *attributeJob) explainAll(found *support.Attribution, docs []support.Document) {
	for i := range found.Sentences {
		s := &found.Sentences[i]
		say(job.err, "sentence %d: %s", i+1, found.Answer.Text[s.Span.Start:s.Span.End])
		if s.Skipped != "" {
			say(job.err, "  skipped: %s", s.Skipped)
			continue
		}
		if len(s.Candidates) == 0 {
			say(job.err, "  no passage has a word of it")
		}
		for k := range s.Candidates {
			say(job.err, "%s", explainOne(&s.Candidates[k], docs))
		}
	}
}

// explainOne returns a line about a passage.
func explainOne(c *support.Candidate, docs []support.Document) string {
	d := &docs[c.Document]
	var b strings.Builder
	b.WriteString("  ")
	if c.Source != "" {
		b.WriteString("cited: ")
	}
	if c.Verdict.Score != nil {
		fmt.Fprintf(&b, "%.2f ", *c.Verdict.Score)
	}
	fmt.Fprintf(&b, "%s by %s", c.Verdict.Label, d.Source.ID)
	if page := d.Passages[c.Passage].Page; page > 0 {
		fmt.Fprintf(&b, " p. %d", page)
	}
	fmt.Fprintf(&b, ", passage %d, relevance %.2f", c.Passage, c.Relevance)
	if lacks := c.Verdict.MissingWords(); len(lacks) > 0 {
		b.WriteString("; it lacks: " + strings.Join(lacks[:min(len(lacks), 8)], ", "))
	}
	for _, conflict := range c.Verdict.ReportConflicts() {
		b.WriteString("; changed: " + conflictWords(&conflict))
	}
	return b.String()
}
