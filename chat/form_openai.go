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
	id   string
	unit ibid.Unit

	buf   bytes.Buffer
	sent  strings.Builder
	whole *ibid.Answer // nil: the answer has not ended
	begun int64
	err   error
}

func (o *tellOpenAI) start() error {
	o.begun = time.Now().Unix()
	o.buf.WriteString(": listening\n\n")
	return o.flush()
}

func (o *tellOpenAI) event(ev ibid.Event) {
	if ev.Kind == ibid.EventText {
		o.sent.WriteString(ev.Text)
		o.chunk(&wire.Completion{ID: o.id, Created: o.begun}, ev.Text, false)
	}
}

func (o *tellOpenAI) chunk(c *wire.Completion, delta string, last bool) {
	data, err := c.Chunk(delta, last)
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

func (o *tellOpenAI) fail(e *ibid.ProviderError) error {
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
		o.chunk(o.completion(o.whole), "", true)
	}
	frame(&o.buf, "", []byte("[DONE]"))
	return o.flush()
}

// completion returns what the last chunk says.
func (o *tellOpenAI) completion(a *ibid.Answer) *wire.Completion {
	c := wire.Completion{ID: o.id, Model: a.Model, Finish: string(a.Finish), Created: o.begun}
	d := uimessage.InText(a, o.sent.String()).Document(&ibid.DocumentOptions{Unit: o.unit, Bare: true})
	files := map[string]*ibid.DocumentSource{}
	for i := range d.Sources {
		files[d.Sources[i].ID] = &d.Sources[i]
	}
	for i := range d.Citations {
		row := &d.Citations[i]
		s := files[row.SourceID]
		if row.TextStart == nil || s == nil {
			continue // an annotation has a place
		}
		note := wire.Annotation{Start: *row.TextStart, End: *row.TextEnd, Title: text(s.Title)}
		if note.URL = text(s.URL); note.URL == "" {
			note.FileID, note.Filename = s.ID, cmp.Or(text(s.Filename), text(s.Title))
		}
		c.Annotations = append(c.Annotations, note)
	}
	return &c
}

// text returns what s says, if it says anything.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
