package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/support"
)

// checkFlags are the flags of ibid check.
type checkFlags struct {
	claim, context, batch string
	sources, others       []string
	json                  bool
	allow                 server.Networks // networks that may be connected to besides the public ones
	judge                 judgeFlags
}

func newCheck(w world) *cobra.Command {
	f := &checkFlags{}
	c := &cobra.Command{
		Use:   "check --claim TEXT --source FILE|URL... | --batch FILE",
		Short: "Check whether sources support a claim",
		Long: `Compares a claim with its sources: text, Markdown, HTML, PDF (its text layer) or
JSON lines of documents, in files or at URLs. It prints what they say of it, the
evidence and its location, and the words that are missing from the evidence:

  supported      they say it, in the same or close words
  differs        they say it, but for one detail; both words are shown
  unjudged       here is the evidence; nobody has judged what it means
  unsupported    a judge says that they do not say it
  contradicted   a judge says that they deny it
  unchecked      there was nothing to read

Words are compared, without a network or a model. The number beside the finding is
how close the evidence is, from 0 to 1: it is not the probability that the claim is
true.

--judge asks a model about all claims that words do not settle, which sends them and
the passages to it. Its verdicts are kept in the user's cache directory. The key is
in the provider's usual variable. docs/support.md has the settings of the file.

Only public addresses are fetched, at ports 80 and 443, unless --allow-net names
another network.

--batch reads JSON lines {"id", "claim", "passages": [...]}, where passages are
strings or objects with text, and context is optional; whole texts are sources
instead, which are cut into passages. It writes one line for each: id, label,
closeness, differences, missing, evidence and more. A line that cannot be read or
checked has the member error. POST /v1/check takes and returns the same.

Exit codes: 0 supported; 1 differs, unsupported or contradicted; 2 unjudged or
unchecked, or the check failed, or a part of a source could not be read. With --batch: 0 if all
lines were checked, else 2.`,
		Example: `  ibid check --claim 'The bridge opened in 1932.' --source bridge.html
  ibid check --claim 'Herons eat fish.' --source birds.pdf --source a.md --json
  ibid check --claim 'Herons eat fish.' --source https://herons.example/food
  ibid check --batch claims.jsonl >verdicts.jsonl
  ibid check --claim 'Herons eat fish.' --source birds.md --judge ollama:bespoke-minicheck`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.validate(c); err != nil {
				return err
			}
			checker, done, err := f.judge.build(f.judge.file, w)
			if err != nil {
				return err
			}
			defer done()
			if checker == nil {
				checker = &support.Lexical{}
			}
			if f.batch != "" {
				return checkBatch(c.Context(), f.batch, checker, w)
			}
			return f.checkOne(c.Context(), checker, w)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.claim, "claim", "", "the claim: one sentence or a few, as `TEXT`")
	flags.StringArrayVar(&f.sources, "source", nil,
		"a `FILE` or the URL of a page to check it against, - for standard input; repeatable")
	flags.StringArrayVar(&f.others, "other", nil,
		"a `FILE` or the URL of another source of the same answer, which is named if it supports the claim and no "+
			"--source does; repeatable")
	flags.StringVar(&f.context, "context", "",
		"`TEXT` that explains what the claim refers to, such as the question; never used as evidence")
	flags.StringVar(&f.batch, "batch", "", "check each line of a `FILE` of JSON lines instead, - for standard input")
	flags.BoolVar(&f.json, "json", false, "write the verdict as one line of JSON; --batch always does")
	server.AddNetFlag(flags, &f.allow)
	f.judge.add(flags, nil)
	return c
}

// validate reports invalid combinations of flags.
func (f *checkFlags) validate(c *cobra.Command) error {
	switch {
	case f.batch == "" && f.claim == "" && !c.Flags().Changed("claim"):
		return usagef("use --claim TEXT, or --batch FILE for many", "there is no claim")
	case f.batch == "" && strings.TrimSpace(f.claim) == "":
		return usagef("use --claim TEXT", "the claim is empty")
	case f.batch != "" && (f.claim != "" || len(f.sources)+len(f.others) > 0 || f.context != ""):
		return usagef(
			"each line of the file has its own claim and passages",
			"--batch cannot be combined with --claim, --source, --other or --context",
		)
	case f.batch == "" && len(f.sources) == 0:
		return usagef("use --source FILE or URL", "there is no source")
	}
	return onceStdin(slices.Concat(f.sources, f.others))
}

// checkOne checks one claim.
func (f *checkFlags) checkOne(ctx context.Context, checker support.Checker, w world) error {
	fetcher := newPageFetcher(f.allow)
	defer func() { _ = fetcher.Close() }() // only reads
	sources, err := readMaterial(ctx, f.sources, fetcher, w)
	if err != nil {
		return err
	}
	others := &material{}
	if len(f.others) > 0 {
		if others, err = readMaterial(ctx, f.others, fetcher, w); err != nil {
			return err
		}
	}
	pair := support.Pair{
		Claim: f.claim, Context: f.context, Passages: sources.passages, Others: others.passages,
	}
	verdicts, err := support.RightSource(checker).Check(ctx, []support.Pair{pair})
	if err != nil {
		return usagef(cmp.Or(explain(err).hint, checkHint(err.Error())), "check the claim: %w", err)
	}
	v := &verdicts[0]
	if f.json {
		line := support.NewClaimVerdict(&pair, v)
		for i, e := range v.Evidence {
			sources.name(&line.Evidence[i], e)
		}
		line.Issues = append(line.Issues, sources.issues...)
		if e := v.WrongSource; e != nil {
			others.name(line.WrongSource, *e)
		}
		err = writeReport(w.out, line)
	} else {
		err = writeVerdict(w.out, v, sources, others)
	}
	if err != nil {
		return fmt.Errorf("write standard output: %w", bare(err))
	}
	if v.Err != nil {
		return usagef(checkHint(v.Err.Error()), "check the claim: %w", v.Err)
	}
	if why := v.WhyUnjudged(); why != nil {
		hint(w.err, checkHint(why.Detail))
	}
	switch {
	case sources.failed, v.Label == support.Unjudged, v.Label == support.Unchecked, v.Label == "":
		return errReported
	case v.Label == support.Supported:
		return nil
	}
	return errNo
}

// checkHint returns the hint for what a checker says of its failure.
func checkHint(text string) string {
	switch {
	case strings.Contains(text, "connection refused"):
		return "is the server running there?"
	case strings.Contains(text, "401"), strings.Contains(text, "403"):
		return "is the key valid for this address?"
	case strings.Contains(text, "404"):
		return "does the URL end before /chat/completions, and does the server have that model?"
	}
	return ""
}

// Limits of the evidence shown to people.
const (
	maxShownEvidence = 3
	maxShownExcerpt  = 400 // characters
	maxShownMissing  = 12
)

// writeVerdict writes a verdict for people.
func writeVerdict(w io.Writer, v *support.Verdict, m, others *material) error {
	var b strings.Builder
	b.WriteString(string(cmp.Or(v.Label, support.Unjudged)))
	if v.Closeness != nil {
		fmt.Fprintf(&b, "  %.2f", *v.Closeness)
	}
	fmt.Fprintf(&b, "  (%s)\n", v.By)
	row := func(name, text string) { fmt.Fprintf(&b, "  %-9s %s\n", name, oneLine(text)) }
	for _, e := range v.Evidence[:min(len(v.Evidence), maxShownEvidence)] {
		from, span := m.find(e)
		row("evidence", from.place()+": "+excerpt(from.text[span.Start:span.End]))
	}
	if more := len(v.Evidence) - maxShownEvidence; more > 0 {
		row("", fmt.Sprintf("and %d more", more))
	}
	if e := v.WrongSource; e != nil {
		from, span := others.find(*e)
		row("wrong-source", "found in "+from.place()+": "+excerpt(from.text[span.Start:span.End]))
	}
	terms := v.MissingWords()
	if more := len(terms) - maxShownMissing; more > 0 {
		terms = append(terms[:maxShownMissing], fmt.Sprintf("and %d more", more))
	}
	if len(terms) > 0 {
		row("missing", strings.Join(terms, ", "))
	}
	for _, d := range v.ReportDifferences() {
		row("differs", differenceWords(&d))
	}
	for _, issue := range v.Issues {
		row("note", issue.Code+": "+issue.Detail)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// differenceWords describes a difference to people.
func differenceWords(d *support.ReportDifference) string {
	if d.Kind == support.ConflictNegation && d.Note != "" { // its values are not words that replace each other
		return strings.TrimPrefix(d.Note, "negation: ")
	}
	return fmt.Sprintf("%s: the claim has %s, the source %s", d.Kind, d.Claim, d.Evidence)
}

// excerpt returns the beginning of a text in quotation marks.
func excerpt(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if head := text.Runes(s, maxShownExcerpt); head != s {
		s = head + "…"
	}
	return "“" + s + "”"
}
