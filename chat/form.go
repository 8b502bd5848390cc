package chat

import (
	"io"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
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

var formNames = []string{formEvents, formUI, formOpenAI, formNo}

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

// begin begins the response, unless it has begun. docs/http.md says what each header is for.
func (f form) begin(w *httpx.Reply) *httpx.Stream {
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform") // nothing on the way may compress it, and so hold it back
	if f.name == formUI {
		h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	}
	return w.Events(writeTime)
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
