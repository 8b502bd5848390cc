package main

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/frame"
)

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

// jsonOutput writes answer documents, one a line.
type jsonOutput struct {
	w io.Writer
}

func (o *jsonOutput) write(r *reading) error {
	_, err := o.w.Write(r.line)
	return err
}

// document returns the line of an input's answer document.
func (f *citeFlags) document(r *reading) ([]byte, error) {
	document := r.answer.Document(f.documentOptions(r.name))
	if r.bad != nil && document.Error == nil {
		document.Error = &ibid.ProviderError{Code: explain(r.bad).code, Message: r.bad.Error()}
	}
	line, err := document.JSON()
	return append(line, '\n'), err
}

// listOutput writes one bibliography of what all inputs cite, each source once.
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
		// All sources of which nothing is known but an id share a key, and none is another.
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

// exportOutput writes answers in the shape of another program, one a line.
type exportOutput struct {
	w      io.Writer
	format export.Format
	unit   ibid.Unit // empty: the one that program expects
}

func (o *exportOutput) write(r *reading) error {
	if isNoAnswer(r) {
		return nil
	}
	return export.Write(o.w, o.format, r.answer, &export.Options{Unit: o.unit})
}
