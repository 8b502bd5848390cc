package chat

import (
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/internal/wire"
)

// tellOpenAI tells a talk as the chunks of a chat completion. Its last one has all citations.
type tellOpenAI struct {
	w    io.Writer
	said wire.Completion
	unit ibid.Unit

	buf   []byte
	sent  strings.Builder
	whole *ibid.Answer // nil: the answer has not ended
	err   error
}

func (o *tellOpenAI) start() error {
	o.said.Created = time.Now().Unix()
	return comment(o.w, "listening")
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
	o.buf = httpx.AppendEvent(o.buf, "", "", data)
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

// fail tells the error in place of the last chunk, where OpenAI does. Citations that are known come before it.
func (o *tellOpenAI) fail(e *ibid.ProviderError) error {
	if o.whole != nil {
		o.finish(o.whole)
		if len(o.said.Annotations) > 0 {
			o.chunk("", true)
		}
	}
	o.whole = nil
	data, err := httpx.Encode(map[string]any{"error": e})
	if err != nil {
		return err
	}
	o.buf = httpx.AppendEvent(o.buf, "", "", data)
	return o.flush()
}

func (o *tellOpenAI) ping() error {
	return comment(o.w, "ping")
}

func (o *tellOpenAI) close() error {
	if o.whole != nil {
		o.finish(o.whole)
		o.chunk("", true)
	}
	o.buf = httpx.AppendEvent(o.buf, "", "", []byte("[DONE]"))
	return o.flush()
}

// finish takes what the last chunk says.
func (o *tellOpenAI) finish(a *ibid.Answer) {
	c := export.Completion(uimessage.InText(a, o.sent.String()), &export.Options{Unit: o.unit})
	o.said.Model, o.said.Finish, o.said.Annotations = cmp.Or(c.Model, o.said.Model), c.Finish, c.Annotations
}
