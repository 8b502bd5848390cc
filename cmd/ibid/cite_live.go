package main

import (
	"io"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/frame"
)

// liveView shows a stream while it arrives. A body that comes in one piece is not shown by it: once all of it is there, it
// can be rendered better.
type liveView struct {
	out       *textOutput
	name      string
	framing   frame.Splitter
	held      []ibid.Event // until it is known that this is a stream
	live      live
	numbering ibid.Numbering
	streams   bool
	shown     bool // text was shown
	err       error
}

// begin returns a view for the styles that can be written as the text comes: their beginning does not depend on the end.
func (o *textOutput) begin(name string) *liveView {
	if o.style != ibid.StyleMarkdown && o.style != ibid.StylePlain || o.flags.marker.value == "id" {
		return nil
	}
	v := &liveView{out: o, name: name}
	v.framing.MaxDocument = 1 // only its Kind is of interest: it need not hold documents
	v.live = live{W: o.w, Style: o.style, Numbering: &v.numbering}
	return v
}

// Write looks at bytes of the input until it is known how they are framed. It must see them before the decoder does. It
// fails when what is shown cannot be written.
func (v *liveView) Write(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	if v.streams {
		return len(p), nil
	}
	_, _ = v.framing.Write(p) // never fails
	kind := v.framing.Kind()
	v.streams = kind == frame.SSE || kind == frame.Lines || kind == frame.Array || kind == frame.AWS
	return len(p), nil
}

// event shows what the decoder found out.
func (v *liveView) event(e ibid.Event) {
	if !v.streams {
		v.held = append(v.held, e)
		return
	}
	for _, held := range v.held {
		v.show(held)
	}
	v.held = nil
	v.show(e)
}

func (v *liveView) show(e ibid.Event) {
	if v.err != nil {
		return
	}
	if e.Kind == ibid.EventText && e.Candidate == 0 && !v.shown {
		v.shown = true
		v.err = v.out.header(v.name)
	}
	if v.err == nil {
		v.err = v.live.Event(e)
	}
}

// end writes what was held back, and the sources. It reports whether the answer was shown.
func (v *liveView) end(a *ibid.Answer) (shown bool, err error) {
	if v.err != nil || !v.shown {
		return v.shown, v.err
	}
	if err := v.live.Close(); err != nil {
		return true, err
	}
	end := "\n"
	if list := v.out.options(); list.List {
		list.Numbering = &v.numbering
		end = "\n\n" + a.SourceList(list)
	}
	return true, writeLine(v.out.w, end)
}

var _ io.Writer = (*liveView)(nil)
