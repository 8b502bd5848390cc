package chat

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/internal/wire"
)

// tellOpenAI tells a talk as the chunks of a chat completion. Its last one has all citations.
type tellOpenAI struct {
	w    io.Writer
	said wire.Completion
	unit ibid.Unit

	buf   bytes.Buffer
	sent  strings.Builder
	whole *ibid.Answer // nil: the answer has not ended
	err   error
}

func (o *tellOpenAI) start() error {
	o.said.Created = time.Now().Unix()
	o.buf.WriteString(": listening\n\n")
	return o.flush()
}

func (o *tellOpenAI) event(ev ibid.Event) {
	if ev.Kind == ibid.EventText {
		o.sent.WriteString(ev.Text)
		o.chunk(ev.Text, false)
	}
}

func (o *tellOpenAI) chunk(delta string, last bool) {
	data, err := o.said.Chunk(delta, last)
	if err != nil {
		o.err = err
		return
	}
	frame(&o.buf, "", data)
}

func (o *tellOpenAI) flush() error {
	if o.err != nil {
		return o.err
	}
	return send(o.w, &o.buf)
}

// answer keeps the answer: there is only one last chunk.
func (o *tellOpenAI) answer(a *ibid.Answer, _ uimessage.Status) error {
	o.whole = a
	return nil
}

func (o *tellOpenAI) late(a *ibid.Answer) error { return o.answer(a, uimessage.Final) }

// fail tells the error in place of the last chunk, where OpenAI does.
func (o *tellOpenAI) fail(e *ibid.ProviderError) error {
	o.whole = nil
	data, err := encode(map[string]any{"error": e})
	if err != nil {
		return err
	}
	frame(&o.buf, "", data)
	return o.flush()
}

func (o *tellOpenAI) ping() error {
	o.buf.WriteString(": ping\n\n")
	return o.flush()
}

func (o *tellOpenAI) close() error {
	if o.whole != nil {
		o.finish(o.whole)
		o.chunk("", true)
	}
	frame(&o.buf, "", []byte("[DONE]"))
	return o.flush()
}

// finish takes what the last chunk says.
func (o *tellOpenAI) finish(a *ibid.Answer) {
	o.said.Model, o.said.Finish = cmp.Or(a.Model, o.said.Model), string(a.Finish)
	d := uimessage.InText(a, o.sent.String()).Document(&ibid.DocumentOptions{Unit: o.unit, Bare: true})
	sources := map[string]*ibid.DocumentSource{}
	for i := range d.Sources {
		sources[d.Sources[i].ID] = &d.Sources[i]
	}
	for i := range d.Citations {
		row := &d.Citations[i]
		s := sources[row.SourceID]
		if s == nil {
			continue
		}
		note := wire.Annotation{URL: text(s.URL), Title: text(s.Title), FileID: s.ID, Filename: cmp.Or(text(s.Filename), text(s.Title))}
		if row.TextStart != nil {
			note.Start, note.End = *row.TextStart, *row.TextEnd
		}
		o.said.Annotations = append(o.said.Annotations, note)
	}
}

// text returns what s says, if it says anything.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
