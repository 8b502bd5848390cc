package main

import (
	"io"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
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

func (*textOutput) close() error { return nil }

// writeLine writes text and ends the line.
func writeLine(w io.Writer, text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
