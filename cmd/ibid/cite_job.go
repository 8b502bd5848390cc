package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
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
	feed    feed
	options ibid.DecodeOptions
	target  output
	through func(io.Reader) io.Reader // sees what is read of files
	failed  int                       // inputs that could not be read
	said    int                       // of them, those of which people were told
	count   int                       // inputs
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
	bad    error  // why it counts as failed; nil: it does not
	shown  bool   // it was shown while it arrived
	line   []byte // its answer document; nil: none is written
	stop   error  // what was shown meanwhile, or its document, cannot be written
}

// run reads all inputs. Only what cannot be written ends it early.
func (job *citeJob) run(ctx context.Context) error {
	if name := job.flags.resume; name != "" {
		done, err := resume(name)
		if err != nil {
			return err
		}
		job.out, job.feed.done = done, done
		defer func() { _ = done.Close() }() // every line was written
	}
	job.target = job.newOutput()
	bar := newProgress(job.feed.names, false, job.world)
	words := job.err
	job.err, job.through, job.feed.through = bar.words(words), bar.watch, bar.watch
	// Documents do not depend on each other, so that all cores work on them; what is shown is written while it is read.
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
	bar.end()
	job.err = words
	if err == nil {
		err = job.target.close()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", cmp.Or(job.flags.resume, "standard output"), bare(err))
	}
	if job.feed.err != nil {
		return job.feed.err
	}
	if n := job.failed - job.said; n > 0 {
		say(job.err, "%s of %d could not be read; the member error says why", plural(n, "input"), job.count)
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
		return &exportOutput{w: job.out, format: export.Format(job.form), unit: ibid.Unit(job.flags.unit)}
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
		if in, r.bad = it.open(job.feed.stdin, job.through); r.bad == nil {
			r.stop = job.read(in, r)
			in.Close()
		}
	}
	if job.form == asJSON {
		r.line, r.stop = job.flags.document(r)
	}
	return r
}

// read reads one input. The error is that of writing what was shown meanwhile.
func (job *citeJob) read(in *input, r *reading) error {
	decoder := ibid.Decoder{Options: job.options}
	decoder.Options.Status = in.status
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

// comment tells people what the output does not. Of the many in archives and lines only the output tells.
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
