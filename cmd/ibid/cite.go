package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
)

// asJSON is the value of --as that --json stands for.
const asJSON = "json"

// citeFlags are the flags of ibid cite.
type citeFlags struct {
	as, style, marker, format, unit string
	request, documents              string
	json, noList, raw               bool
}

func newCite(w world) *cobra.Command {
	f := &citeFlags{}
	c := &cobra.Command{
		Use:   "cite [FILE...|-]",
		Short: "Show what a provider answered, with citations and sources",
		Long: `Reads what LLM providers answered: response bodies and recorded streams, also
compressed with gzip, deflate, br or zstd. - is standard input, and so is no file
at all. A stream that arrives there is shown while it does.

Which provider it was is recognised. Any other JSON or text is shown as it is.

Some formats name their documents only in the request, or not at all: --request
is the body of the request, --documents a JSON array of the documents that were
given to the model: strings, flat objects, or objects of "id" and "data".

--as markdown, the default, plain, html, footnotes and latex write the text with
its citations, and the sources below it. On a terminal the default is plain.
--as json writes the answer document, one line for each input. --as bibtex, ris,
csl-json, apa, mla and chicago write one bibliography of what all inputs cite.
--as openai, langchain and llamaindex write answers in the shapes of these
programs, one line for each input.

Work goes on past an input that cannot be read, or that holds a provider's error;
with --json its line has the member error. The exit code is then 2. An answer
that breaks off is shown as far as it goes, and is no error.

Formats:
` + columns(ibid.Formats()),
		Example: `  curl -sN https://api.example/v1/… | ibid cite
  ibid cite answer.json --as html >answer.html
  ibid cite chat.sse --request request.json
  ibid cite --json *.json | jq -r '.sources[].url'
  ibid cite --as bibtex *.json >sources.bib`,
		RunE: func(c *cobra.Command, names []string) error {
			job, err := newCiteJob(f, names, w)
			if err != nil {
				return err
			}
			for _, name := range idleFlags(c, f) {
				hint(w.err, fmt.Sprintf("--%s has no effect without --json", name))
			}
			return job.run()
		},
	}
	f.add(c)
	return c
}

// citeForms returns what --as can say.
func citeForms() []string {
	return slices.Concat(text.Strings(ibid.Styles()), []string{asJSON}, text.Strings(biblio.Formats()), text.Strings(export.Formats()))
}

func (f *citeFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	addChoice(c, server.OneOf(&f.as, "FORM", citeForms()...), "as",
		"what to write: `FORM` is markdown, plain, html, footnotes, latex, json, bibtex, ris, csl-json, apa, mla, "+
			"chicago, openai, langchain or llamaindex")
	flags.BoolVar(&f.json, "json", false, "the same as --as json")
	addChoice(c, server.OneOf(&f.style, "STYLE", text.Strings(ibid.Styles())...), "style",
		"`STYLE` of cited_text in JSON: markdown (default), plain, html, footnotes or latex")
	addChoice(c, server.OneOf(&f.marker, "KIND", "number", "id"), "marker",
		"`KIND` of the marks in the text: number (default), or id of the source")
	addChoice(c, server.OneOf(&f.unit, "UNIT", text.Strings(ibid.Units())...), "unit",
		"`UNIT` of the offsets: utf-8 (bytes, the default of JSON), code-point (that of openai and langchain) or "+
			"utf-16")
	addChoice(c, server.OneOf(&f.format, "FORMAT", ibid.Formats()...), "format",
		"`FORMAT` of the input, where it is recognised wrongly")
	flags.StringVar(&f.request, "request", "", "the request that the response answers, as a JSON `FILE`")
	flags.StringVar(&f.documents, "documents", "", "the documents that were given to the model, as a JSON `FILE`")
	flags.BoolVar(&f.noList, "no-list", false, "leave out the list of sources below the text")
	flags.BoolVar(&f.raw, "raw", false, "add provider_metadata to JSON")
	alternatives(flags, "as", "json")
	complete(c)
}

// form returns what to write.
func (f *citeFlags) form(terminal bool) (string, error) {
	switch {
	case f.json && f.as != "" && f.as != asJSON:
		return "", &usageError{
			fmt.Errorf("--json and --as %s contradict each other", f.as), "leave out one of them",
		}
	case f.json:
		return asJSON, nil
	case f.as != "":
		return f.as, nil
	case terminal:
		return string(ibid.StylePlain), nil
	default:
		return string(ibid.StyleMarkdown), nil
	}
}

// idleFlags returns the flags that were given on the command line, or by variables, and change nothing.
func idleFlags(c *cobra.Command, f *citeFlags) []string {
	if f.json || f.as == asJSON {
		return nil
	}
	return slices.DeleteFunc([]string{"style", "unit", "raw"}, func(name string) bool {
		return !c.Flags().Changed(name) || name == "unit" && counts(f.as)
	})
}

// counts reports whether an export has offsets.
func counts(form string) bool {
	return form == string(export.OpenAI) || form == string(export.LangChain)
}

// newCiteJob reads what goes with the responses.
func newCiteJob(f *citeFlags, names []string, w world) (*citeJob, error) {
	form, err := f.form(isTerminal(w.out))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = []string{stdinName}
		if isTerminal(w.in) {
			return nil, &usageError{
				errors.New("no input: standard input is a terminal"),
				"name a file, or pipe a response into ibid cite; to type one: ibid cite -",
			}
		}
	}
	stdins := 0
	for _, name := range append([]string{f.request, f.documents}, names...) {
		if name == stdinName {
			stdins++
		}
	}
	switch {
	case stdins > 1:
		return nil, &usageError{errors.New("- is named more than once"), "standard input can be read only once"}
	case f.request != "" && len(names) > 1:
		return nil, &usageError{
			errors.New("--request belongs to one response, and several are named"), "call ibid cite once for each pair",
		}
	}
	job := &citeJob{world: w, names: names, form: form, flags: f}
	job.options.Format = f.format
	if f.request != "" {
		if job.options.Request, err = readRequest(f.request, w.in); err != nil {
			return nil, err
		}
	}
	if f.documents != "" {
		if job.options.Documents, err = readDocuments(f.documents, w.in); err != nil {
			return nil, err
		}
	}
	return job, nil
}

// columns lists words for a help text.
func columns(words []string) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i%3 == 2 || i == len(words)-1:
			b.WriteString("  " + word + "\n")
		default:
			fmt.Fprintf(&b, "  %-22s", word)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// citeJob is one call of ibid cite: from names to what is written.
type citeJob struct {
	world
	flags   *citeFlags
	form    string // a value of --as
	names   []string
	options ibid.DecodeOptions
	target  output
	failed  bool // some input could not be read
}

// output writes answers in the form that --as names.
type output interface {
	// begin returns what shows an answer while it arrives; nil if the form needs all of it.
	begin(name string) *liveView
	// write writes one input's answer. An answer of which bad is not nil may hold nothing else.
	write(r *reading) error
	// close writes what the form has at its end.
	close() error
}

// reading is what came of one input.
type reading struct {
	name   string
	answer *ibid.Answer
	bad    error // why it counts as failed; nil: it does not
	shown  bool  // it was shown while it arrived
}

func (job *citeJob) run() error {
	job.target = job.newOutput()
	bar := newProgress(job.names, job.world)
	words := job.err
	job.err = bar.words(words)
	err := job.citeAll(bar)
	bar.end()
	job.err = words
	if err == nil {
		err = job.target.close()
	}
	if err != nil {
		return fmt.Errorf("write standard output: %w", bare(err))
	}
	if job.failed {
		return errReported
	}
	return nil
}

func (job *citeJob) newOutput() output {
	switch {
	case job.form == asJSON:
		return &jsonOutput{w: job.out, flags: job.flags}
	case slices.Contains(biblio.Formats(), biblio.Format(job.form)):
		return &listOutput{world: job.world, format: biblio.Format(job.form)}
	case slices.Contains(export.Formats(), export.Format(job.form)):
		return &exportOutput{w: job.out, format: export.Format(job.form), unit: ibid.Unit(job.flags.unit)}
	default:
		return &textOutput{w: job.out, flags: job.flags, style: ibid.Style(job.form), several: len(job.names) > 1}
	}
}

// citeAll reads all inputs. Only what cannot be written ends it early.
func (job *citeJob) citeAll(bar *progress) error {
	for _, name := range job.names {
		in, err := openInput(name, job.in, bar.watch)
		r := &reading{name: name, answer: &ibid.Answer{}, bad: err}
		if err == nil {
			err = job.read(in, r)
			in.Close()
			if err != nil {
				return err
			}
		}
		if err := job.target.write(r); err != nil {
			return err
		}
		job.comment(r)
	}
	return nil
}

// read reads one input. The error is that of writing what was shown meanwhile.
func (job *citeJob) read(in *input, r *reading) error {
	decoder := ibid.Decoder{Options: job.options}
	var sink io.Writer = &decoder
	var view *liveView
	if in.live {
		view = job.target.begin(r.name)
	}
	if view != nil {
		decoder.OnEvent = view.event
		sink = io.MultiWriter(view, &decoder)
	}
	_, readErr := io.Copy(sink, in)
	_ = decoder.Close() // never fails
	answer, decodeErr := decoder.Answer()
	if answer.Format == ibid.Generic && errors.Is(readErr, io.ErrUnexpectedEOF) {
		answer.Complete = false // text alone does not tell that it breaks off
	}
	r.answer = answer
	if errors.Is(readErr, errUnpacked) {
		r.answer = &ibid.Answer{} // what was unpacked up to the limit is as large as the limit
	}
	r.bad = judge(answer, readErr, decodeErr, job.options.Format)
	if view == nil {
		return nil
	}
	var err error
	r.shown, err = view.end()
	return err
}

// judge says why an answer counts as failed. What merely breaks off does not.
func judge(a *ibid.Answer, readErr, decodeErr error, format string) error {
	switch {
	case readErr != nil && !errors.Is(readErr, io.ErrUnexpectedEOF):
		return bare(readErr)
	case a.Error != nil:
		return a.Error
	case errors.Is(decodeErr, ibid.ErrTruncated):
		return nil
	case decodeErr != nil:
		return decodeErr
	case format != "" && format != ibid.Generic && api.IsBlank(a):
		return fmt.Errorf("decode as %s: %w", format, errNothing)
	}
	return nil
}

// comment tells people what the output does not.
func (job *citeJob) comment(r *reading) {
	if r.bad != nil {
		job.failed = true
		say(job.err, "read %s: %v", r.name, r.bad)
		hint(job.err, explain(r.bad).hint)
		return
	}
	a := r.answer
	if !a.Complete {
		say(job.err, "%s: the answer breaks off; what could be read of it is shown", r.name)
	}
	if job.form == asJSON {
		return
	}
	var notes []string
	if a.Text == "" {
		notes = append(notes, "the answer has no text")
	}
	if n := len(a.ToolCalls); a.Text == "" && n > 0 {
		notes = append(notes, "it calls "+a.ToolCalls[n-1].Name)
	}
	if n := len(a.Alternatives); n > 0 {
		notes = append(notes, plural(n, "more candidate"))
	}
	if n := len(a.Issues); n > 0 && a.Complete {
		notes = append(notes, plural(n, "issue"))
	}
	if len(notes) > 0 {
		say(job.err, "%s: %s (--json tells more)", r.name, strings.Join(notes, ", "))
	}
}

// textOutput writes the text of answers with markers, and their sources below.
type textOutput struct {
	w       io.Writer
	flags   *citeFlags
	style   ibid.Style
	several bool // each answer has a line with the name of its input above it
	count   int  // answers so far
}

func (o *textOutput) write(r *reading) error {
	if r.shown || isNoAnswer(r) {
		return nil
	}
	if err := o.header(r.name); err != nil {
		return err
	}
	return writeLine(o.w, r.answer.Render(o.options()))
}

// isNoAnswer reports whether nothing of an input can be shown: it is empty, or the page of some server.
func isNoAnswer(r *reading) bool {
	page := r.bad != nil && r.answer.Format == ibid.Generic
	return page || r.answer.Text == "" && len(r.answer.Sources) == 0
}

// options says how to render the answer whose header was written last.
func (o *textOutput) options() *ibid.RenderOptions {
	opts := &ibid.RenderOptions{Style: o.style, ByID: o.flags.marker == "id", List: !o.flags.noList}
	if o.several {
		opts.IDPrefix = strconv.Itoa(o.count) + "-"
	}
	return opts
}

// header writes the name of an input above its answer, if there are several. In HTML and LaTeX it is a comment.
func (o *textOutput) header(name string) error {
	o.count++
	if !o.several {
		return nil
	}
	line := "==> " + oneLine(name) + " <=="
	if o.style == ibid.StyleHTML {
		line = "<!-- " + strings.NewReplacer("<", "", ">", "", "--", "- -").Replace(line) + " -->"
	}
	if o.style == ibid.StyleLaTeX {
		line = "% " + line
	}
	if o.count > 1 {
		line = "\n" + line
	}
	return writeLine(o.w, line)
}

func (*textOutput) close() error { return nil }

// writeLine writes text and ends the line.
func writeLine(w io.Writer, text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// liveView shows a stream while it arrives. A body that comes in one piece is not shown by it: once all of it is there,
// it can be rendered better.
type liveView struct {
	out     *textOutput
	name    string
	framing frame.Splitter
	held    []ibid.Event // until it is known that this is a stream, and text has come
	live    ibid.Live
	streams bool // by its framing
	texted  bool // text came
	shown   bool // and was shown
	err     error
}

// begin returns a view for the styles that can be written as the text comes: their beginning does not depend on the
// end.
func (o *textOutput) begin(name string) *liveView {
	prefixed := o.several && o.style == ibid.StyleFootnotes // Live cannot keep the labels of several answers apart
	if o.style == ibid.StyleHTML || o.style == ibid.StyleLaTeX || prefixed {
		return nil
	}
	opts := o.options()
	v := &liveView{out: o, name: name}
	v.framing.MaxDocument = 1 // only its Kind is of interest: it need not hold documents
	v.live = ibid.Live{W: o.w, Style: opts.Style, ByID: opts.ByID, List: opts.List}
	return v
}

// Write looks at bytes of the input until it is known how they are framed. It must see them before the decoder does. It
// fails when what is shown cannot be written.
func (v *liveView) Write(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	if !v.streams {
		_, _ = v.framing.Write(p) // never fails
		v.streams = slices.Contains([]frame.Kind{frame.SSE, frame.Lines, frame.Array, frame.AWS}, v.framing.Kind())
	}
	return len(p), nil
}

// event shows what the decoder found out.
func (v *liveView) event(e ibid.Event) {
	if v.err != nil {
		return
	}
	if v.shown {
		v.show(e)
		return
	}
	v.held = append(v.held, e)
	v.texted = v.texted || e.Kind == ibid.EventText && e.Candidate == 0
	if !v.streams || !v.texted {
		return
	}
	v.shown = true
	v.err = v.out.header(v.name)
	for _, held := range v.held {
		v.show(held)
	}
	v.held = nil
}

func (v *liveView) show(e ibid.Event) {
	if v.err == nil {
		v.live.Event(e)
		v.err = v.live.Err()
	}
}

// end writes what was held back, and the sources. It reports whether the answer was shown.
func (v *liveView) end() (shown bool, err error) {
	if v.err != nil || !v.shown {
		return v.shown, v.err
	}
	return true, v.live.Close()
}

// jsonOutput writes answer documents, one a line.
type jsonOutput struct {
	w     io.Writer
	flags *citeFlags
}

func (*jsonOutput) begin(string) *liveView { return nil }

func (o *jsonOutput) write(r *reading) error {
	document := r.answer.Document(&ibid.DocumentOptions{
		Unit:  ibid.Unit(o.flags.unit),
		Style: ibid.Style(o.flags.style),
		ByID:  o.flags.marker == "id",
		Raw:   o.flags.raw,
		Input: r.name,
	})
	if r.bad != nil && document.Error == nil {
		document.Error = &ibid.ProviderError{Code: explain(r.bad).code, Message: r.bad.Error()}
	}
	line, err := document.JSON()
	if err != nil {
		return err
	}
	_, err = o.w.Write(append(line, '\n'))
	return err
}

func (*jsonOutput) close() error { return nil }

// listOutput writes one bibliography of what all inputs cite, each source once.
type listOutput struct {
	world
	format  biblio.Format
	entries []biblio.Entry
	known   map[string]bool // by Source.Key
}

func (*listOutput) begin(string) *liveView { return nil }

func (o *listOutput) write(r *reading) error {
	if o.known == nil {
		o.known = map[string]bool{}
	}
	for _, entry := range biblio.Cited(r.answer) {
		key := entry.Source.Key()
		if o.known[key] {
			continue
		}
		o.known[key] = !isBare(&entry.Source)
		o.entries = append(o.entries, entry)
	}
	return nil
}

// isBare reports whether nothing is known of a source but its id. All such share a key, and none is another.
func isBare(s *ibid.Source) bool {
	return s.URL == "" && s.GlobalID == "" && s.Content == "" && s.Title == "" && s.Filename == ""
}

func (o *listOutput) close() error {
	if len(o.entries) == 0 {
		say(o.err, "nothing is cited, so the bibliography is empty")
	}
	return biblio.Write(o.out, o.format, o.entries, nil)
}

// exportOutput writes answers in the shape of another program, one a line.
type exportOutput struct {
	w      io.Writer
	format export.Format
	unit   ibid.Unit // empty: the one that program expects
}

func (*exportOutput) begin(string) *liveView { return nil }

func (o *exportOutput) write(r *reading) error {
	if isNoAnswer(r) {
		return nil
	}
	return export.Write(o.w, o.format, r.answer, &export.Options{Unit: o.unit})
}

func (*exportOutput) close() error { return nil }
