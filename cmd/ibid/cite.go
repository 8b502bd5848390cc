package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/frame"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/tee"
)

// asJSON is the value of --as that --json is short for.
const asJSON = "json"

// citeFlags are the flags of ibid cite.
type citeFlags struct {
	as, style, marker, format, unit string
	numbers                         string
	request, documents, config      string
	resume                          string
	json, noList, raw, lines        bool
}

func newCite(w world) *cobra.Command {
	f := &citeFlags{}
	c := &cobra.Command{
		Use:   "cite [FILE...|-]",
		Short: "Show a provider's answer with citations and sources",
		Long: `Reads the responses of LLM providers: bodies and recorded streams, optionally
compressed with gzip, deflate, br or zstd. - or no file at all means standard
input; a stream that arrives there is shown live on a terminal, where a citation
that comes long after its words is listed below the text. The body may be preceded
by the status line and header that curl -i prints; an HTTP status of 300 or more is
an error, whatever the body contains.

The provider is detected. Any other JSON or text is shown as it is.

Some formats name their documents only in the request, or not at all: --request
is its body, --documents a JSON array of the documents that the model was given:
strings, flat objects, or objects with "id" and "data". If the provider sends no
citations, marks in the text such as [1] are read as citations of the documents, or
of the passages in the request's prompt. --config names a file whose mappings say
where the responses of providers of your own have their text and sources.

--as markdown, the default, plain, html, footnotes and latex write the text with
its citations, followed by the sources. On a terminal the default is plain.
--as json writes the answer document; openai, langchain and llamaindex write it in
the formats of these programs; all of them one line per input. --as bibtex, ris,
csl-json, apa, mla and chicago write one bibliography of what all inputs cite.

Each file of an archive (.tar, also .tar.gz and .tar.zst) is an input, named
ARCHIVE:NAME; with --lines, so is each line of JSON lines (.jsonl or .ndjson, also
.gz and .zst, and standard input), named FILE:LINE. With --json all cores are used,
and memory does not grow with the number of inputs. --resume FILE writes to a file,
and continues after its last complete line if the same call was interrupted.

An input that cannot be read, or contains a provider's error, does not stop the
others; with --json its line has the member error. The exit code is then 2. A
truncated answer is shown as far as it goes, and is not an error.

Formats:
` + columns(ibid.Formats()),
		Example: `  curl -sN https://api.example/v1/… | ibid cite
  ibid cite answer.json --as html >answer.html
  ibid cite chat.sse --request request.json
  ibid cite --json *.json | jq -r '.sources[].url'
  ibid cite --json recorded.tar.zst --resume answers.jsonl
  ibid cite --as bibtex *.json >sources.bib`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, names []string) error {
			job, err := newCiteJob(f, names, w)
			if err != nil {
				return err
			}
			if f.config != "" && len(job.options.Mappings) == 0 {
				return usagef("docs/providers.md shows one", "%s has no mappings", f.config)
			}
			f.hintIdle(c, w)
			return job.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.lines, "lines", false, "each line of JSON lines is a separate response, not part of a stream")
	withoutVariable(flags, "lines")
	addResumeFlag(flags, &f.resume)
	flags.StringVar(&f.config, "config", "",
		"YAML `file` of ibid serve, whose mappings say where providers of your own have their sources")
	f.add(flags)
	return c
}

func (f *citeFlags) add(flags *pflag.FlagSet) {
	flags.SortFlags = false
	forms := slices.Concat(
		text.Strings(ibid.Styles()), []string{asJSON}, text.Strings(biblio.Formats()), text.Strings(export.Formats()),
	)
	flags.Var(server.OneOf(&f.as, "FORM", forms...), "as",
		"what to write: `FORM` is markdown, plain, html, footnotes, latex, json, bibtex, ris, csl-json, apa, mla, "+
			"chicago, openai, langchain or llamaindex")
	flags.BoolVar(&f.json, "json", false, "the same as --as json")
	flags.Var(server.OneOf(&f.style, "STYLE", text.Strings(ibid.Styles())...), "style",
		"`STYLE` of cited_text in JSON: markdown (default), plain, html, footnotes or latex")
	flags.Var(server.OneOf(&f.marker, "KIND", "number", "id"), "marker",
		"`KIND` of the markers in the text: number (default), or id of the source")
	flags.Var(server.OneOf(&f.numbers, "WHICH", text.Strings(ibid.AllNumbers())...), "numbers",
		"`WHICH` numbers the sources get: used (by first use), or provider (those that the model wrote; the default "+
			"where each cited source has one of its own)")
	flags.Var(server.OneOf(&f.unit, "UNIT", text.Strings(ibid.Units())...), "unit",
		"`UNIT` of the offsets: utf-8 (bytes, the default of JSON), code-point (the default of openai and langchain) "+
			"or utf-16")
	flags.Var(server.OneOf(&f.format, "FORMAT", ibid.Formats()...), "format",
		"`FORMAT` of the input, if detection is wrong")
	flags.StringVar(&f.request, "request", "", "the request that the response answers, as a JSON `FILE`")
	flags.StringVar(&f.documents, "documents", "", "the documents that the model was given, as a JSON `FILE`")
	flags.BoolVar(&f.noList, "no-list", false,
		"leave out the list of sources below the text, also one that the model printed")
	flags.BoolVar(&f.raw, "raw", false, "add provider_metadata to JSON")
	alternatives(flags, "as", "json")
}

// columns formats words in columns for a help text.
func columns(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i%3 == 2 || i == len(words)-1 {
			b.WriteString("  " + word + "\n")
		} else {
			fmt.Fprintf(&b, "  %-22s", word)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// formOf returns the form that --as or --json selects, or "" if neither was given.
func formOf(as string, asJSONToo bool) (string, error) {
	switch {
	case !asJSONToo:
		return as, nil
	case as != "" && as != asJSON:
		return "", usagef("use only one of them", "--json and --as %s contradict each other", as)
	}
	return asJSON, nil
}

// documentOptions returns the options of the answer document of an input.
func (f *citeFlags) documentOptions(name string) *ibid.DocumentOptions {
	return &ibid.DocumentOptions{
		Unit: ibid.Unit(f.unit), Style: ibid.Style(f.style), ByID: f.marker == "id", Raw: f.raw, Input: name,
		Numbers: ibid.Numbers(f.numbers),
	}
}

// hintIdle reports flags, set on the command line or by variables, that have no effect.
func (f *citeFlags) hintIdle(c *cobra.Command, w world) {
	hasOffsets := f.as == string(export.OpenAI) || f.as == string(export.LangChain)
	for _, name := range []string{"style", "unit", "raw"} {
		if !f.json && f.as != asJSON && c.Flags().Changed(name) && (name != "unit" || !hasOffsets) {
			hint(w.err, "--"+name+" has no effect without --json")
		}
	}
}

// citeJob is one call of ibid cite.
type citeJob struct {
	world
	flags   *citeFlags
	form    string // a value of --as
	feed    feed
	options ibid.DecodeOptions
	target  output
	through func(io.Reader) io.Reader // wraps the readers of files
	failed  int                       // inputs that could not be read
	said    int                       // of these, inputs reported individually
	count   int                       // inputs
}

// output writes answers in the form selected by --as.
type output interface {
	// write writes one input's answer, which may be empty if bad is set.
	write(r *reading) error
}

// reading is the result of reading one input.
type reading struct {
	name   string
	answer *ibid.Answer
	bad    error  // why it counts as failed, or nil
	shown  bool   // it was shown live
	line   []byte // its answer document, or nil
	stop   error  // why live output, or the document, cannot be written
}

// newCiteJob checks the flags, and reads the request and documents.
func newCiteJob(f *citeFlags, names []string, w world) (*citeJob, error) {
	form, err := formOf(f.as, f.json)
	switch {
	case err != nil:
		return nil, err
	case form == "" && isTerminal(w.out):
		form = string(ibid.StylePlain)
	case form == "":
		form = string(ibid.StyleMarkdown)
	}
	if len(names) == 0 {
		names = []string{stdinName}
		if isTerminal(w.in) {
			return nil, usagef(
				"name a file, pipe a response into ibid cite, or use ibid cite - to type one",
				"no input: standard input is a terminal",
			)
		}
	}
	if err := onceStdin(append([]string{f.request, f.documents}, names...)); err != nil {
		return nil, err
	}
	job := &citeJob{world: w, form: form, flags: f}
	job.feed = feed{names: names, lines: f.lines, stdin: w.in}
	if f.resume != "" && form != asJSON {
		return nil, errResume
	}
	if f.request != "" && (len(names) > 1 || job.feed.many()) {
		return nil, usagef(
			"call ibid cite once for each pair", "--request applies to one response, but there are several",
		)
	}
	job.options.Format = f.format
	if f.config != "" {
		if job.options.Mappings, err = server.ReadMappings(f.config); err != nil {
			return nil, err
		}
	}
	if f.request != "" {
		job.options.Request, err = readSidecar(f.request, w.in)
		if err == nil && !json.Valid(job.options.Request) {
			err = usagef("--request needs the body of the request, as curl sends with --data", "it is not JSON")
		}
		if err != nil {
			return nil, fmt.Errorf("read request %s: %w", f.request, err)
		}
	}
	if f.documents != "" {
		if job.options.Documents, err = readDocuments(f.documents, w.in); err != nil {
			return nil, err
		}
	}
	return job, nil
}

// run reads all inputs. Only a failure to write ends it early.
func (job *citeJob) run(ctx context.Context) error {
	if name := job.flags.resume; name != "" {
		done, err := resume(name)
		if err != nil {
			return err
		}
		job.out, job.feed.done, job.feed.skip = done, done, done.count
		defer func() { _ = done.Close() }() // every line was written
	}
	job.target = job.newOutput()
	bar := newProgress(job.feed.names, false, job.world)
	end := func() {}
	if bar != nil {
		end = bar.over(&job.err)
		job.through, job.feed.through = bar.watch, bar.watch
	}
	// JSON documents are independent, so all cores are used; other forms are written while they are read.
	atOnce := 1
	if job.form == asJSON {
		atOnce = 4 * runtime.GOMAXPROCS(0)
	}
	err := inOrder(ctx, atOnce, job.feed.items, job.one, func(it *item, r *reading) error {
		defer job.feed.room.Release(it.held)
		if r.stop != nil {
			return r.stop
		}
		job.count++
		if err := job.target.write(r); err != nil {
			return err
		}
		job.comment(it, r)
		return nil
	})
	end()
	if list, ok := job.target.(*listOutput); ok && err == nil {
		err = list.close()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", cmp.Or(job.flags.resume, "standard output"), bare(err))
	}
	if job.feed.err != nil {
		return job.feed.err
	}
	if n := job.failed - job.said; n > 0 {
		say(job.err, "%s of %d could not be read; see the member error", plural(n, "input"), job.count)
	}
	if job.failed > 0 {
		return errReported
	}
	return nil
}

func (job *citeJob) newOutput() output {
	switch {
	case job.form == asJSON:
		return &jsonOutput{w: job.out}
	case slices.Contains(biblio.Formats(), biblio.Format(job.form)):
		return &listOutput{world: job.world, format: biblio.Format(job.form)}
	case slices.Contains(export.Formats(), export.Format(job.form)):
		return &exportOutput{job.out, export.Format(job.form), export.Options{
			Unit: ibid.Unit(job.flags.unit), Numbers: ibid.Numbers(job.flags.numbers),
		}}
	default:
		several := len(job.feed.names) > 1 || job.feed.many()
		return &textOutput{w: job.out, flags: job.flags, style: ibid.Style(job.form), several: several}
	}
}

// one reads one input.
func (job *citeJob) one(_ context.Context, it *item) *reading {
	r := &reading{name: it.name, answer: &ibid.Answer{}, bad: it.err}
	if it.err == nil {
		var in *input
		if in, r.bad = openInput(it, job.feed.stdin, job.through); r.bad == nil {
			r.stop = job.read(in, r)
			in.Close()
		}
	}
	if job.form == asJSON {
		r.line, r.stop = job.flags.document(r)
	}
	return r
}

// read reads one input. Its error is that of writing live output.
func (job *citeJob) read(in *input, r *reading) error {
	decoder := ibid.Decoder{Options: job.options}
	decoder.Options.Status = in.status
	var sink io.Writer = &decoder
	var view *liveView
	if o, ok := job.target.(*textOutput); ok && in.live && !isSaved(o.w) {
		view = o.begin(r.name)
	}
	if view != nil {
		decoder.OnEvent = view.event
		sink = io.MultiWriter(view, &decoder)
	}
	_, readErr := io.Copy(sink, in)
	_ = decoder.Close() // never fails
	answer, decodeErr := decoder.Answer()
	if answer.Format == ibid.Generic && errors.Is(readErr, io.ErrUnexpectedEOF) {
		answer.Complete = false // text alone does not show that it is truncated
	}
	if damage, ok := errors.AsType[*unpackError](readErr); ok {
		issue := ibid.Issue{Code: tee.IssueDamagedEncoding, Detail: damage.Error()}
		answer.Issues = append(answer.Issues, issue)
	}
	r.answer = answer
	if errors.Is(readErr, errUnpacked) {
		r.answer = &ibid.Answer{} // the part that was unpacked is as large as the limit
	}
	r.bad = judge(answer, readErr, decodeErr, job.options.Format)
	if view == nil {
		return nil
	}
	var err error
	r.shown, err = view.end()
	return err
}

// judge returns why an answer counts as failed, or nil. A truncated answer does not.
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

// comment reports what the output does not contain. For items of archives and lines, the JSON output suffices.
func (job *citeJob) comment(it *item, r *reading) {
	if r.bad != nil {
		job.failed++
	}
	if it.data != nil && job.form == asJSON {
		return
	}
	if r.bad != nil {
		job.said++
		say(job.err, "read %s: %v", r.name, r.bad)
		hint(job.err, explain(r.bad).hint)
		return
	}
	a := r.answer
	if !a.Complete {
		say(job.err, "%s: the answer is truncated; what could be read is shown", r.name)
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
		say(job.err, "%s: %s (use --json for more)", r.name, strings.Join(notes, ", "))
	}
}

// textOutput writes the text of answers with markers, and their sources below.
type textOutput struct {
	w       io.Writer
	flags   *citeFlags
	style   ibid.Style
	several bool // each answer has a header with the name of its input
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

// isNoAnswer reports whether there is nothing to show: the input is empty, or some server's web page.
func isNoAnswer(r *reading) bool {
	page := r.bad != nil && r.answer.Format == ibid.Generic
	return page || r.answer.Text == "" && len(r.answer.Sources) == 0
}

// options returns the options to render the answer whose header was written last.
func (o *textOutput) options() *ibid.RenderOptions {
	opts := &ibid.RenderOptions{
		Style: o.style, ByID: o.flags.marker == "id", List: !o.flags.noList, NoList: o.flags.noList,
		Numbers: ibid.Numbers(o.flags.numbers),
	}
	if o.several {
		opts.IDPrefix = strconv.Itoa(o.count) + "-"
	}
	return opts
}

// header writes the name of an input above its answer if there are several. In HTML and LaTeX it is a comment.
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

// writeLine writes text and ends the line.
func writeLine(w io.Writer, text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// liveView shows a stream while it arrives. It does not show a body that comes in one piece, which can be rendered
// better once it is complete.
type liveView struct {
	out     *textOutput
	name    string
	framing frame.Splitter
	held    []ibid.Event // until it is known to be a stream, and text has arrived
	live    ibid.Live
	streams bool // by its framing
	texted  bool // text has arrived
	shown   bool // text has been shown
	err     error
}

// begin returns a view for the styles that can be written incrementally: their beginning does not depend on the end.
func (o *textOutput) begin(name string) *liveView {
	prefixed := o.several && o.style == ibid.StyleFootnotes // Live cannot keep the labels of several answers apart
	if o.style == ibid.StyleHTML || o.style == ibid.StyleLaTeX || prefixed {
		return nil
	}
	opts := o.options()
	v := &liveView{out: o, name: name}
	v.framing.MaxDocument = 1 // only its Kind matters, so documents are not kept
	v.live = ibid.Live{W: o.w, Style: opts.Style, ByID: opts.ByID, List: opts.List, Numbers: opts.Numbers}
	return v
}

// Write looks at the input until its framing is known. It must see the bytes before the decoder does. It fails if
// output cannot be written.
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

// event shows an event of the decoder.
func (v *liveView) event(e ibid.Event) {
	if v.err != nil {
		return
	}
	v.held = append(v.held, e)
	v.texted = v.texted || e.Kind == ibid.EventText && e.Candidate == 0
	if !v.shown && (!v.streams || !v.texted) {
		return
	}
	if !v.shown {
		v.shown = true
		v.err = v.out.header(v.name)
	}
	for i := 0; i < len(v.held) && v.err == nil; i++ {
		v.live.Event(v.held[i])
		v.err = v.live.Err()
	}
	v.held = v.held[:0]
}

// end writes what was held back, and the sources. It reports whether the answer was shown.
func (v *liveView) end() (shown bool, err error) {
	if v.err != nil || !v.shown {
		return v.shown, v.err
	}
	return true, v.live.Close()
}

// jsonOutput writes answer documents, one per line.
type jsonOutput struct {
	w io.Writer
}

func (o *jsonOutput) write(r *reading) error {
	_, err := o.w.Write(r.line)
	return err
}

// document returns the line with an input's answer document.
func (f *citeFlags) document(r *reading) ([]byte, error) {
	document := r.answer.Document(f.documentOptions(r.name))
	if r.bad != nil && document.Error == nil {
		document.Error = &ibid.ProviderError{Code: explain(r.bad).code, Message: r.bad.Error()}
	}
	line, err := document.JSON()
	return append(line, '\n'), err
}

// listOutput writes one bibliography of everything cited, without duplicates.
type listOutput struct {
	world
	format  biblio.Format
	entries []biblio.Entry
	known   map[string]bool // by Source.Key
}

func (o *listOutput) write(r *reading) error {
	if o.known == nil {
		o.known = map[string]bool{}
	}
	for _, entry := range biblio.Cited(r.answer) {
		key := entry.Source.Key()
		if o.known[key] {
			continue
		}
		// Sources with nothing but an id share a key without being the same.
		s := &entry.Source
		o.known[key] = s.URL != "" || s.GlobalID != "" || s.Content != "" || s.Title != "" || s.Filename != ""
		o.entries = append(o.entries, entry)
	}
	return nil
}

// close writes the bibliography.
func (o *listOutput) close() error {
	if len(o.entries) == 0 {
		say(o.err, "nothing is cited, so the bibliography is empty")
	}
	return biblio.Write(o.out, o.format, o.entries, nil)
}

// exportOutput writes answers in another program's format, one per line.
type exportOutput struct {
	w       io.Writer
	format  export.Format
	options export.Options
}

func (o *exportOutput) write(r *reading) error {
	if isNoAnswer(r) {
		return nil
	}
	return export.Write(o.w, o.format, r.answer, &o.options)
}
