package main

import (
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/frame"
)

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
