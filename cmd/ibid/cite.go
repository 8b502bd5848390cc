package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
)

// asJSON is the value of --as that --json stands for.
const asJSON = "json"

// citeFlags are the flags of ibid cite.
type citeFlags struct {
	as, style, marker, format, unit string
	request, documents              string
	resume                          string
	json, noList, raw, lines        bool
}

func newCite(w world) *cobra.Command {
	f := &citeFlags{}
	c := &cobra.Command{
		Use:   "cite [FILE...|-]",
		Short: "Show what a provider answered, with citations and sources",
		Long: `Reads what LLM providers answered: response bodies and recorded streams, also
compressed with gzip, deflate, br or zstd. - is standard input, and so is no file
at all. A stream that arrives there is shown while it does. What curl -i printed may
stand before a body; an HTTP status from 300 on is an error, whatever the body says.

Which provider it was is recognised. Any other JSON or text is shown as it is.

Some formats name their documents only in the request, or not at all: --request
is its body, --documents a JSON array of the documents that the model was given:
strings, flat objects, or objects of "id" and "data".

--as markdown, the default, plain, html, footnotes and latex write the text with
its citations, and the sources below it. On a terminal the default is plain.
--as json writes the answer document; openai, langchain and llamaindex write it in
the shapes of these programs; one line for each input. --as bibtex, ris, csl-json,
apa, mla and chicago write one bibliography of what all inputs cite.

Of an archive (.tar, also .tar.gz and .tar.zst) each file is an input, named
ARCHIVE:NAME; with --lines so is each line of JSON lines (.jsonl or .ndjson, also
.gz and .zst, and standard input), named FILE:LINE. With --json all cores work on
them, and memory does not grow with their number. --resume FILE writes to a file,
and goes on behind its last whole line if the same call was broken off.

An input that cannot be read, or that holds a provider's error, does not end the
work; with --json its line has the member error. The exit code is then 2. An answer
that breaks off is shown as far as it goes, and is no error.

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
			f.hintIdle(c, w)
			return job.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.lines, "lines", false, "each line of JSON lines is a response of its own, not part of a stream")
	withoutVariable(flags, "lines")
	addResumeFlag(flags, &f.resume)
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
		"`KIND` of the marks in the text: number (default), or id of the source")
	flags.Var(server.OneOf(&f.unit, "UNIT", text.Strings(ibid.Units())...), "unit",
		"`UNIT` of the offsets: utf-8 (bytes, the default of JSON), code-point (that of openai and langchain) or "+
			"utf-16")
	flags.Var(server.OneOf(&f.format, "FORMAT", ibid.Formats()...), "format",
		"`FORMAT` of the input, where it is recognised wrongly")
	flags.StringVar(&f.request, "request", "", "the request that the response answers, as a JSON `FILE`")
	flags.StringVar(&f.documents, "documents", "", "the documents that were given to the model, as a JSON `FILE`")
	flags.BoolVar(&f.noList, "no-list", false, "leave out the list of sources below the text")
	flags.BoolVar(&f.raw, "raw", false, "add provider_metadata to JSON")
	alternatives(flags, "as", "json")
}

// formOf returns the form that --as or --json asks for; empty: neither was given.
func formOf(as string, asJSONToo bool) (string, error) {
	switch {
	case !asJSONToo:
		return as, nil
	case as != "" && as != asJSON:
		return "", usagef("leave out one of them", "--json and --as %s contradict each other", as)
	}
	return asJSON, nil
}

// documentOptions returns how the answer document of an input is wanted.
func (f *citeFlags) documentOptions(name string) *ibid.DocumentOptions {
	return &ibid.DocumentOptions{
		Unit: ibid.Unit(f.unit), Style: ibid.Style(f.style), ByID: f.marker == "id", Raw: f.raw, Input: name,
	}
}

// hintIdle says which flags were given on the command line, or by variables, and change nothing.
func (f *citeFlags) hintIdle(c *cobra.Command, w world) {
	hasOffsets := f.as == string(export.OpenAI) || f.as == string(export.LangChain)
	for _, name := range []string{"style", "unit", "raw"} {
		if !f.json && f.as != asJSON && c.Flags().Changed(name) && (name != "unit" || !hasOffsets) {
			hint(w.err, "--"+name+" has no effect without --json")
		}
	}
}

// newCiteJob reads what goes with the responses.
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
				"name a file, or pipe a response into ibid cite; to type one: ibid cite -",
				"no input: standard input is a terminal",
			)
		}
	}
	if err := onceStdin(append([]string{f.request, f.documents}, names...)); err != nil {
		return nil, err
	}
	job := &citeJob{world: w, form: form, flags: f}
	job.feed = feed{names: names, lines: f.lines, stdin: w.in}
	if err := checkResume(f.resume, form == asJSON); err != nil {
		return nil, err
	}
	if f.request != "" && (len(names) > 1 || job.feed.many()) {
		return nil, usagef(
			"call ibid cite once for each pair", "--request belongs to one response, and several are named",
		)
	}
	job.options.Format = f.format
	if f.request != "" {
		job.options.Request, err = readSidecar(f.request, w.in)
		if err == nil && !json.Valid(job.options.Request) {
			err = usagef("--request wants the body of the request: what curl sends with --data", "it is not JSON")
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

// columns lists words for a help text.
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
