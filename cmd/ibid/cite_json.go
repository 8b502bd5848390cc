package main

import (
	"io"

	"github.com/ibidhq/ibid"
)

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
