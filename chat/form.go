package chat

import (
	"bytes"
	"io"
	"net/http"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/internal/wire"
)

// form is how a talk is told.
type form struct {
	name string
	unit ibid.Unit
}

// The names of the forms, as the parameter stream has them.
const (
	formEvents = "events" // ibid's own events: the default
	formUI     = "ui"     // the AI SDK's UI message stream: the default for useChat
	formOpenAI = "openai" // chunks of a chat completion
	formNo     = "no"     // one answer document, at the end
)

func formNames() []string { return []string{formEvents, formUI, formOpenAI, formNo} }

// teller tells a talk in one form. What its methods write is sent when they return.
type teller interface {
	start() error
	// event takes an event; it is sent with the next flush.
	event(ev ibid.Event)
	flush() error
	answer(a *ibid.Answer, status uimessage.Status) error
	// late is answer for citations that came later.
	late(a *ibid.Answer) error
	// fail says why the answer is not whole. It comes behind the answer.
	fail(e *ibid.ProviderError) error
	ping() error
	close() error
}

// teller returns what tells the talk to w.
func (f form) teller(t *Talk, numbers func() *ibid.Numbering, w io.Writer) teller {
	switch f.name {
	case formUI:
		return &tellUI{w: uimessage.Writer{W: w, MessageID: t.AnswerID}, numbers: numbers}
	case formOpenAI:
		return &tellOpenAI{w: w, said: wire.Completion{ID: t.AnswerID, Model: t.model}, unit: f.unit}
	}
	return &tellEvents{w: w, id: t.AnswerID, unit: f.unit, numbers: numbers}
}

// setHeaders says what will come. docs/http.md says what each is for.
func (f form) setHeaders(h http.Header) {
	h.Set("Cache-Control", "no-cache, no-transform") // nothing on the way may compress it, and so hold it back
	h.Set("X-Accel-Buffering", "no")                 // nginx would hold events back
	h.Set("Content-Type", "text/event-stream")
	if f.name == formUI {
		h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	}
}

// tellUI tells a talk as a UI message stream.
type tellUI struct {
	w       uimessage.Writer
	numbers func() *ibid.Numbering // asks the store: when a number is needed
}

func (u *tellUI) start() error { return u.w.Start() }

func (u *tellUI) event(ev ibid.Event) {
	if ev.Kind == ibid.EventCitation {
		u.number()
	}
	u.w.Event(ev)
}

func (u *tellUI) number() {
	if u.w.Numbering == nil {
		u.w.Numbering = u.numbers()
	}
}

func (u *tellUI) flush() error { return u.w.Flush() }

func (u *tellUI) answer(a *ibid.Answer, status uimessage.Status) error {
	u.number()
	return u.w.Answer(a, status)
}

func (u *tellUI) late(a *ibid.Answer) error { return u.w.Late(a, uimessage.StatusOf(a)) }

func (u *tellUI) fail(e *ibid.ProviderError) error {
	if e.Code == codeEnded {
		return u.w.Abort()
	}
	return u.w.Fail(e.Message)
}

func (u *tellUI) ping() error { return u.w.Ping() }

func (u *tellUI) close() error { return u.w.Close() }

// frame appends an event of an event stream.
func frame(b *bytes.Buffer, name string, data []byte) {
	if name != "" {
		b.WriteString("event: " + name + "\n")
	}
	b.WriteString("data: ")
	b.Write(data)
	b.WriteString("\n\n")
}

// send writes what is in the buffer.
func send(w io.Writer, b *bytes.Buffer) error {
	if b.Len() == 0 {
		return nil
	}
	_, err := w.Write(b.Bytes())
	b.Reset()
	return err
}
