package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/support"
)

// attributeFlags are the flags of ibid attribute.
type attributeFlags struct {
	cite        citeFlags // what to write, and the provider's request and documents
	sources     []string
	threshold   server.Threshold
	perSentence int
	cited       bool
	explain     bool
	allow       server.Networks // networks that may be connected to besides the public ones
	judge       judgeFlags
}

func newAttribute(w world) *cobra.Command {
	f := &attributeFlags{threshold: support.Balanced}
	c := &cobra.Command{
		Use:   "attribute ANSWER --source PATH|URL...",
		Short: "Find citations for an answer that has none",
		Long: `Reads an answer and the sources it may be based on, finds the passages that
support each sentence, and shows the answer with these citations, as ibid cite
does. - is standard input, for the answer or for one source.

The answer is a provider's response, an answer document of ibid, plain text or
Markdown. Sources are text, Markdown, HTML, PDF (its text layer), or JSON lines
of documents; a directory stands for all such files in and below it. Pages are
fetched from public addresses at ports 80 and 443 only, unless --allow-net names
another network.

Marks such as [1] in the answer cite the sources in their order, or by their ids
and titles, and so do links to their addresses, unless the answer has sources of
its own.

For each other sentence the nearest passages are checked, and those at least as close as
the threshold are cited as "origin": "inferred", with the source's words, their
place and the closeness. Existing citations stay, and their sentences are skipped
unless --cited includes them. Headings, images, questions, code and phrases such
as "I hope this helps" get no citations.

Sentences that make a statement but have no citation are listed on standard error,
and in the member attribution of JSON. --explain adds the passages considered for
each sentence, how close they are, the words they lack, and the values that differ.

Exit codes: 0 done, even if nothing was found; 2 if the answer, a source or a line
of a source could not be read.`,
		Example: `  ibid attribute answer.md --source notes/
  ibid attribute response.json --source paper.pdf --source page.html --as html
  ibid attribute answer.txt --source docs/*.md --threshold strict --explain
  curl -s https://api.example/… | ibid attribute - --source docs.jsonl --json`,
		Args: wants(many, "there is no answer",
			"ibid attribute ANSWER --source PATH; - reads the answer from standard input"),
		RunE: func(c *cobra.Command, args []string) error {
			// The first argument is the answer; any others are sources, from a shell pattern.
			names := slices.Concat(f.sources, args[1:])
			if len(f.sources) == 0 {
				return usagef("--source PATH names a file, a directory or a page", "there are no sources")
			}
			if f.perSentence < 1 {
				return usagef("the default is 2", "--per-sentence %d is less than 1", f.perSentence)
			}
			f.cite.config = f.judge.file
			cite, err := newCiteJob(&f.cite, args[:1], w)
			if err != nil {
				return err
			}
			if err := onceStdin(append(names, args[0], f.cite.request, f.cite.documents)); err != nil {
				return err
			}
			checker, done, err := f.judge.build(f.judge.file, w)
			if err != nil {
				return err
			}
			defer done()
			f.cite.hintIdle(c, w)
			job := &attributeJob{world: w, flags: f, cite: cite, answer: args[0], sources: names}
			return job.run(c.Context(), &support.AttributeOptions{
				Threshold: float64(f.threshold), PerSentence: f.perSentence, Cited: f.cited, Checker: checker,
				Compare: checker == nil, // a judge would be paid for it
			})
		},
	}
	flags := c.Flags()
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "sources" { // an alias
			name = "source"
		}
		return pflag.NormalizedName(name)
	})
	flags.StringArrayVar(&f.sources, "source", nil,
		"the `PATH` of a file or directory of sources, or the URL of a page; repeatable, more may follow as arguments")
	flags.Var(&f.threshold, "threshold",
		"the lowest closeness of a citation: balanced (0.35), strict (0.5) or a `NUMBER` above 0 and at most 1")
	flags.IntVar(&f.perSentence, "per-sentence", support.DefaultPerSentence,
		"the largest `NUMBER` of passages cited for one sentence")
	flags.BoolVar(&f.cited, "cited", false, "also find sources for sentences that have a citation")
	flags.BoolVar(&f.explain, "explain", false, "list the passages considered for each sentence")
	f.cite.add(flags)
	server.AddNetFlag(flags, &f.allow)
	f.judge.add(flags, nil)
	return c
}

// attributeJob is one call of ibid attribute.
type attributeJob struct {
	world
	flags   *attributeFlags
	cite    *citeJob // what to write, and the provider's request and documents
	answer  string   // its name
	sources []string
	failed  bool         // a source, or a part of one, could not be read
	issues  []ibid.Issue // of the sources
}

func (job *attributeJob) run(ctx context.Context, o *support.AttributeOptions) error {
	answer, err := readAnswer(job.answer, job.cite.options, job.world)
	if err != nil {
		return err
	}
	docs, err := job.readSources(ctx)
	if err != nil {
		return err
	}
	found, err := api.Attribute(ctx, answer, docs, o)
	if err != nil {
		return usagef(checkHint(err.Error()), "%w", err)
	}
	if job.cite.form == asJSON {
		err = job.writeJSON(found, docs)
	} else {
		out := job.cite.newOutput()
		err = out.write(&reading{name: job.answer, answer: found.Answer})
		if list, ok := out.(*listOutput); ok && err == nil {
			err = list.close()
		}
	}
	if err != nil {
		return fmt.Errorf("write standard output: %w", bare(err))
	}
	job.comment(found, docs)
	if job.failed {
		return errReported
	}
	return nil
}

// maxUncited limits the sentences without a source that are listed for people.
const maxUncited = 20

// writeJSON writes the answer document with the member attribution.
func (job *attributeJob) writeJSON(found *support.Attribution, docs []support.Document) error {
	f := &job.flags.cite
	line, err := found.Answer.Document(f.documentOptions(job.answer)).JSON()
	if err != nil {
		return err
	}
	member, err := json.Marshal(found.Report(docs, &support.AttributionReportOptions{
		Unit: ibid.Unit(f.unit), Explain: job.flags.explain, Issues: job.issues,
	}))
	if err != nil {
		return err
	}
	line = append(line[:len(line)-1], `,"attribution":`...)
	_, err = job.out.Write(append(append(line, member...), "}\n"...))
	return err
}

// comment reports what the output does not contain.
func (job *attributeJob) comment(found *support.Attribution, docs []support.Document) {
	if job.flags.explain && job.cite.form != asJSON {
		for i := range found.Sentences {
			s := &found.Sentences[i]
			say(job.err, "sentence %d: %s", i+1, found.Answer.Text[s.Span.Start:s.Span.End])
			if s.Skipped != "" {
				say(job.err, "  skipped: %s", s.Skipped)
				continue
			}
			if len(s.Candidates) == 0 {
				say(job.err, "  no passage shares a word with it")
			}
			for k := range s.Candidates {
				say(job.err, "%s", explainOne(&s.Candidates[k], docs))
			}
		}
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
		var counts []string
		for _, reason := range slices.Sorted(maps.Keys(found.LeftOut)) {
			counts = append(counts, fmt.Sprintf("%d %s", found.LeftOut[reason], reason))
		}
		say(job.err, "left out: %s", strings.Join(counts, ", "))
	}
	switch {
	case said == 0:
		say(job.err, "no sentence of the answer makes a statement")
	case len(without) > 0:
		say(job.err, "%d of %s without a source:", len(without), plural(said, "sentence"))
		for _, words := range without[:min(len(without), maxUncited)] {
			say(job.err, "no source: %s", words)
		}
		if more := len(without) - maxUncited; more > 0 {
			say(job.err, "and %d more; --json lists all", more)
		}
	}
}

// explainOne returns a line about a candidate passage.
func explainOne(c *support.Candidate, docs []support.Document) string {
	d := &docs[c.Document]
	var b strings.Builder
	b.WriteString("  ")
	if c.Source != "" {
		b.WriteString("cited: ")
	}
	if c.Verdict.Closeness != nil {
		fmt.Fprintf(&b, "%.2f ", *c.Verdict.Closeness)
	}
	fmt.Fprintf(&b, "%s by %s", c.Verdict.Label, d.Source.ID)
	if page := d.Passages[c.Passage].Page; page > 0 {
		fmt.Fprintf(&b, " p. %d", page)
	}
	fmt.Fprintf(&b, ", passage %d, relevance %.2f", c.Passage, c.Relevance)
	if lacks := c.Verdict.MissingWords(); len(lacks) > 0 {
		b.WriteString("; it lacks: " + strings.Join(lacks[:min(len(lacks), 8)], ", "))
	}
	for _, d := range c.Verdict.ReportDifferences() {
		b.WriteString("; differs: " + differenceWords(&d))
	}
	return b.String()
}

// Limits of the sources read in one call.
const (
	maxSourceFiles = 10_000
	maxSourceBytes = 512 << 20
)

// readAnswer reads an answer: an answer document of ibid, or any input of ibid cite.
func readAnswer(name string, o ibid.DecodeOptions, w world) (*ibid.Answer, error) {
	bad := func(err error) error { return usagef(explain(err).hint, "read %s: %w", name, err) }
	in, err := openInput(&item{name: name}, w.in, nil)
	if err != nil {
		return nil, bad(err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxUnpacked+1))
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, bad(bare(err))
	case len(data) > maxUnpacked:
		return nil, bad(errLarge)
	}
	if api.IsDocument(data) {
		a := &ibid.Answer{}
		if err := json.Unmarshal(data, a); err != nil {
			return nil, bad(fmt.Errorf("read the answer document: %w", err))
		}
		return a, nil
	}
	o.Status = in.status
	a, decodeErr := ibid.Decode(data, &o)
	if err := judge(a, err, decodeErr, o.Format); err != nil {
		return nil, bad(err)
	}
	if !a.Complete {
		say(w.err, "%s: the answer is truncated; what could be read is used", name)
	}
	return a, nil
}

// sourceFile is a file to read as a source.
type sourceFile struct {
	name  string
	found bool // from a directory, where files that are not text are skipped
}

// readSources reads all sources. It reports those that cannot be read and uses the others.
func (job *attributeJob) readSources(ctx context.Context) ([]support.Document, error) {
	files, err := job.listSources()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	bar := newProgress(names, false, job.world)
	defer bar.over(&job.err)()
	fetcher := newPageFetcher(job.flags.allow)
	defer func() { _ = fetcher.Close() }() // only reads
	var docs []support.Document
	var skipped []string
	total := 0
	for _, f := range files {
		found, called, size, err := readSource(ctx, f.name, fetcher, job.in, bar.watch)
		total += size
		switch {
		case total > maxSourceBytes:
			return nil, usagef("name fewer files", "the sources have more than %d MiB", maxSourceBytes>>20)
		case err != nil && f.found && (errors.Is(err, snapshot.ErrUnsupported) || errors.Is(err, snapshot.ErrEmpty)):
			reason := strings.TrimPrefix(err.Error(), snapshot.ErrUnsupported.Error()+": ")
			skipped = append(skipped, fmt.Sprintf("%s (%s)", f.name, reason))
			job.issues = append(job.issues, ibid.Issue{Code: "passed-over", Detail: f.name + ": " + reason})
		case err != nil:
			job.unread(f.name, err)
			hint(job.err, sourceHint(err))
		}
		name := f.name
		switch {
		case isURL(name):
			name = called
		case len(found) == 1 && found[0].Source.Kind == ibid.File:
			found[0].Source.ID = called
		}
		for i := range found {
			d := &found[i]
			issues, failed := sayTextIssues(job.err, name, d.Text)
			job.issues, job.failed = append(job.issues, issues...), job.failed || failed
			passages := d.Text.Passages(nil)
			docs = append(docs, support.Document{Source: d.Source, Text: d.Text.Content, Passages: passages})
		}
	}
	if len(skipped) > 0 {
		text := strings.Join(skipped[:min(len(skipped), maxSkipped)], ", ")
		if more := len(skipped) - maxSkipped; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		say(job.err, "skipped %s in directories: %s", plural(len(skipped), "file"), text)
	}
	if len(docs) == 0 {
		return nil, usagef("sources are text, Markdown, HTML, PDF or JSON lines", "no source could be read")
	}
	return docs, nil
}

// maxSkipped limits the skipped files that are named for people.
const maxSkipped = 3

// unread reports that a source could not be read.
func (job *attributeJob) unread(name string, err error) {
	job.failed = true
	job.issues = append(job.issues, ibid.Issue{Code: "unreadable", Detail: fmt.Sprintf("%s: %v", name, err)})
	say(job.err, "read %s: %v", name, err)
}

// listSources returns the files that the names refer to.
func (job *attributeJob) listSources() ([]sourceFile, error) {
	var files []sourceFile
	for _, name := range job.sources {
		info, err := os.Stat(name)
		if name == stdinName || isURL(name) || err != nil || !info.IsDir() {
			files = append(files, sourceFile{name: name})
			continue
		}
		err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				job.unread(path, bare(err))
				return nil
			case strings.HasPrefix(d.Name(), ".") && path != name && d.IsDir():
				return filepath.SkipDir
			case d.Type().IsRegular() && !strings.HasPrefix(d.Name(), "."):
				files = append(files, sourceFile{name: path, found: true})
			}
			if len(files) > maxSourceFiles {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, bare(err))
		}
	}
	if len(files) > maxSourceFiles {
		return nil, usagef("name fewer directories", "the sources have more than %d files", maxSourceFiles)
	}
	return files, nil
}
