package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/export"
)

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
