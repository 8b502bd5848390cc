package main

import (
	"io"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
)

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
