package chat

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/internal/wire"
)

// form is how a turn is sent.
type form struct {
	name string
	unit ibid.Unit
}

// The names of the forms, the values of the parameter stream.
const (
	formEvents = "events" // ibid's own events: the default
	formUI     = "ui"     // the AI SDK's UI message stream: the default for useChat
	formOpenAI = "openai" // chunks of a chat completion
	formNo     = "no"     // one answer document, at the end
)

var formNames = []string{formEvents, formUI, formOpenAI, formNo}

// encoder sends a turn in one form. What its methods write is sent when they return.
type encoder interface {
	Start() error
	// Event adds an event; it is sent with the next Flush.
	Event(ev ibid.Event)
	Flush() error
	Answer(ctx context.Context, a *ibid.Answer, status uimessage.Status) error
	// late is Answer for citations that came later.
	late(ctx context.Context, a *ibid.Answer) error
	// fail sends why the answer is not complete, after the answer.
	fail(e *ibid.ProviderError) error
	Ping() error
	Close() error
}

// encoder returns an encoder that writes the turn to w.
func (f form) encoder(t *Turn, numbers func() *ibid.Numbering, w io.Writer) encoder {
	switch f.name {
	case formUI:
		return &uiEncoder{uimessage.Writer{W: w, MessageID: t.AnswerID}, numbers}
	case formOpenAI:
		return &openAIEncoder{w: w, completion: wire.Completion{ID: t.AnswerID, Model: t.model}, unit: f.unit}
	}
	return &eventEncoder{w: w, id: t.AnswerID, unit: f.unit, numbers: numbers}
}

// beginResponse begins the response, unless it has begun. docs/http.md explains the headers.
func (f form) beginResponse(w *httpx.Reply) *httpx.Stream {
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform") // no proxy may compress, and so delay it
	if f.name == formUI {
		h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	}
	return w.Events(writeTime)
}

// uiEncoder sends a turn as a UI message stream.
type uiEncoder struct {
	uimessage.Writer
	numbers func() *ibid.Numbering // asks the store, once a number is needed
}

func (u *uiEncoder) Event(ev ibid.Event) {
	if ev.Kind == ibid.EventCitation {
		u.number()
	}
	u.Writer.Event(ev)
}

func (u *uiEncoder) number() {
	if u.Numbering == nil {
		u.Numbering = u.numbers()
	}
}

func (u *uiEncoder) Answer(_ context.Context, a *ibid.Answer, status uimessage.Status) error {
	u.number()
	return u.Writer.Answer(a, status)
}

func (u *uiEncoder) late(_ context.Context, a *ibid.Answer) error {
	return u.Late(a, uimessage.StatusOf(a))
}

func (u *uiEncoder) fail(e *ibid.ProviderError) error {
	if e.Code == CodeEnded {
		return u.Abort()
	}
	return u.Fail(e.Message)
}

// eventEncoder sends a turn as the events of docs/chat.md.
type eventEncoder struct {
	w       io.Writer
	id      string
	unit    ibid.Unit
	numbers func() *ibid.Numbering

	buf      []byte // events to be sent
	draft    draft
	units    int // length of the text in that unit
	sources  []ibid.Source
	at       map[string]int // index of each source
	offsets  *ibid.Offsets  // over the text; nil if it was corrected
	numbered *ibid.Numbering
	lastSent *ibid.Answer // the answer as last sent
}

type textData struct {
	At   int    `json:"at"`
	Text string `json:"text"`
}

type partData struct {
	At        int           `json:"at"`
	Kind      ibid.PartKind `json:"kind"`
	Message   int           `json:"message"`
	Content   int           `json:"content"`
	Corrected bool          `json:"corrected,omitempty"`
	Text      *string       `json:"text,omitempty"` // of a part that was corrected
}

type sourceData struct {
	Source ibid.DocumentSource `json:"source"`
}

type citationData struct {
	At       int                   `json:"at"`
	Citation gateway.LiveCitations `json:"citation"`
}

func (e *eventEncoder) Start() error { return comment(e.w, "listening") }

func (e *eventEncoder) Flush() error { return send(e.w, &e.buf) }

// send writes and empties the buffer.
func send(w io.Writer, buf *[]byte) error {
	if len(*buf) == 0 {
		return nil
	}
	_, err := w.Write(*buf)
	*buf = (*buf)[:0]
	return err
}

func comment(w io.Writer, words string) error {
	_, err := io.WriteString(w, ": "+words+"\n\n")
	return err
}

func (e *eventEncoder) addEvent(name string, v any) {
	data, err := httpx.Encode(v)
	if err != nil { // not a number, which Document leaves out
		return
	}
	e.buf = httpx.AppendEvent(e.buf, "", name, data)
}

func (e *eventEncoder) Event(ev ibid.Event) {
	switch ev.Kind {
	case ibid.EventText:
		e.addEvent("text", textData{e.units, ev.Text})
		e.draft.text.WriteString(ev.Text)
		_, n := ibid.NewOffsets(ev.Text).In(e.unit, ibid.Span{End: len(ev.Text)})
		e.units += n
	case ibid.EventPart:
		e.part(&ev)
	case ibid.EventSource:
		e.source(ev.Source)
	case ibid.EventCitation:
		e.citation(&ev)
	default:
	}
}

func (e *eventEncoder) part(ev *ibid.Event) {
	d := partData{At: e.units, Kind: ev.Part.Kind, Message: ev.Part.Message, Content: ev.Part.Content}
	if ev.Corrected {
		e.draft.correct(ev)
		e.offsets = nil
		_, e.units = e.places().In(e.unit, ibid.Span{End: e.draft.text.Len()})
		d.At, _ = e.places().In(e.unit, ibid.Span{Start: ev.Part.Start, End: ev.Part.Start})
		d.Corrected, d.Text = true, &ev.Text
	} else {
		e.draft.parts = append(e.draft.parts, *ev.Part)
	}
	e.addEvent("part", d)
}

func (e *eventEncoder) places() *ibid.Offsets {
	if e.offsets == nil {
		e.offsets = &ibid.Offsets{}
	}
	return e.offsets.Grow(e.draft.text.String())
}

func (e *eventEncoder) source(s *ibid.Source) {
	brief := ibid.Source{ID: s.ID, Title: s.Title, URL: s.URL}
	if at, ok := e.at[s.ID]; ok {
		e.sources[at] = brief
	} else {
		if e.at == nil {
			e.at = map[string]int{}
		}
		e.at[s.ID] = len(e.sources)
		e.sources = append(e.sources, brief)
	}
	d := (&ibid.Answer{Sources: []ibid.Source{*s}}).Document(&ibid.DocumentOptions{Bare: true})
	d.Sources[0].Index = 0 // it has none yet
	e.addEvent("source", sourceData{d.Sources[0]})
}

func (e *eventEncoder) citation(ev *ibid.Event) {
	sent := gateway.LiveCitations{Key: ev.Key, Withdrawn: ev.Withdrawn, Citations: []ibid.DocumentCitation{}}
	at := e.units
	if c := ev.Citation; c != nil && !ev.Withdrawn {
		known := ibid.Answer{Text: e.draft.text.String()}
		for i := range c.Refs {
			if k, ok := e.at[c.Refs[i].Source]; ok &&
				!slices.ContainsFunc(known.Sources, func(s ibid.Source) bool { return s.ID == c.Refs[i].Source }) {
				known.Sources = append(known.Sources, e.sources[k])
			}
		}
		sent.Citations = known.CitationRows(c)
		for i := range sent.Citations { // their offsets are in bytes
			row := &sent.Citations[i]
			for _, span := range [...][2]**int{{&row.TextStart, &row.TextEnd}, {&row.ClaimStart, &row.ClaimEnd}} {
				if *span[0] != nil && *span[1] != nil {
					start, end := e.places().In(e.unit, ibid.Span{Start: **span[0], End: **span[1]})
					*span[0], *span[1] = &start, &end
				}
			}
		}
		if c.Placed() {
			_, at = e.places().In(e.unit, c.Span)
		}
	}
	e.addEvent("citation", citationData{at, sent})
}

func (e *eventEncoder) Answer(ctx context.Context, a *ibid.Answer, _ uimessage.Status) error {
	if e.numbered == nil {
		e.numbered = e.numbers()
	}
	e.lastSent = a
	d := a.Document(&ibid.DocumentOptions{Unit: e.unit, AnswerID: e.id, Numbering: e.numbered, Context: ctx})
	if ctx.Err() != nil {
		return httpx.WorkError(ctx, nil)
	}
	e.addEvent("answer", d)
	return e.Flush()
}

func (e *eventEncoder) late(ctx context.Context, a *ibid.Answer) error {
	if a == e.lastSent {
		return nil // nothing was found
	}
	return e.Answer(ctx, a, uimessage.Final)
}

func (e *eventEncoder) fail(failed *ibid.ProviderError) error {
	e.addEvent("error", failed)
	return e.Flush()
}

func (e *eventEncoder) Ping() error { return comment(e.w, "heartbeat") }

func (e *eventEncoder) Close() error { return e.Flush() }

// openAIEncoder sends a turn as the chunks of a chat completion. The last chunk has all citations.
type openAIEncoder struct {
	w          io.Writer
	completion wire.Completion
	unit       ibid.Unit

	buf     []byte
	sent    strings.Builder
	message int          // message of the current part
	last    int          // message of the last text sent
	space   string       // white space at the beginning of a message, held back until its length is known
	whole   *ibid.Answer // nil until the answer has ended
	err     error
}

func (o *openAIEncoder) Start() error {
	o.completion.Created = time.Now().Unix()
	return comment(o.w, "listening")
}

func (o *openAIEncoder) Event(ev ibid.Event) {
	switch {
	case ev.Kind == ibid.EventPart && !ev.Corrected && ev.Part != nil:
		o.message = ev.Part.Message
	case ev.Kind == ibid.EventText:
		o.text(ev.Text)
	}
}

// text sends text, after a blank line if it begins another message: see [export.Parted].
func (o *openAIEncoder) text(words string) {
	if o.sent.Len() > 0 && o.message != o.last {
		o.space += words
		if strings.Trim(o.space, " \t\r\n") == "" {
			return // more space may follow
		}
		words = o.takeSpace()
	}
	o.last = o.message
	o.send(words)
}

// takeSpace returns the space held back, preceded by the line breaks that are missing for a blank line.
func (o *openAIEncoder) takeSpace() string {
	words := text.BlankLine(o.sent.String(), o.space) + o.space
	o.space = ""
	return words
}

func (o *openAIEncoder) send(words string) {
	o.sent.WriteString(words)
	o.chunk(words, false)
}

func (o *openAIEncoder) chunk(delta string, last bool) {
	data, err := o.completion.Chunk(delta, last)
	if err != nil {
		o.err = err
		return
	}
	o.buf = httpx.AppendEvent(o.buf, "", "", data)
}

func (o *openAIEncoder) Flush() error {
	if o.err != nil {
		return o.err
	}
	return send(o.w, &o.buf)
}

// Answer keeps the answer, because there is only one last chunk.
func (o *openAIEncoder) Answer(_ context.Context, a *ibid.Answer, _ uimessage.Status) error {
	o.whole = a
	return nil
}

func (o *openAIEncoder) late(ctx context.Context, a *ibid.Answer) error {
	return o.Answer(ctx, a, uimessage.Final)
}

// fail sends the error in place of the last chunk, like OpenAI. Known citations are sent before it.
func (o *openAIEncoder) fail(e *ibid.ProviderError) error {
	if o.whole != nil {
		o.finish(o.whole)
		if len(o.completion.Annotations) > 0 {
			o.chunk("", true)
		}
	}
	o.whole = nil
	data, err := httpx.Encode(map[string]any{"error": e})
	if err != nil {
		return err
	}
	o.buf = httpx.AppendEvent(o.buf, "", "", data)
	return o.Flush()
}

func (o *openAIEncoder) Ping() error { return comment(o.w, "ping") }

func (o *openAIEncoder) Close() error {
	if o.whole != nil {
		o.finish(o.whole)
		o.chunk("", true)
	}
	o.buf = httpx.AppendEvent(o.buf, "", "", []byte("[DONE]"))
	return o.Flush()
}

// finish fills in the data of the last chunk.
func (o *openAIEncoder) finish(a *ibid.Answer) {
	if o.space != "" { // the last message is only space
		o.send(o.takeSpace())
	}
	c := export.Completion(uimessage.InText(export.Parted(a), o.sent.String()), &export.Options{Unit: o.unit})
	o.completion.Model = cmp.Or(c.Model, o.completion.Model)
	o.completion.Finish, o.completion.Annotations = c.Finish, c.Annotations
}

// draft is the text of an arriving answer. The ends of its parts are not kept: each part ends where the next begins.
type draft struct {
	text  strings.Builder
	parts []ibid.Part
}

// correct replaces the text of a part, and returns by how much the text has grown. If there is no such part it does
// nothing, and ok is false.
func (d *draft) correct(ev *ibid.Event) (shift int, ok bool) {
	old := d.text.String()
	at := -1
	for i, p := range d.parts {
		if p.Start == ev.Part.Start && p.Message == ev.Part.Message && p.Content == ev.Part.Content {
			at = i
		}
	}
	if at < 0 || ev.Part.Start > len(old) {
		return 0, false
	}
	end := d.end(at)
	shift = len(ev.Text) - (end - ev.Part.Start)
	d.text = strings.Builder{}
	d.text.WriteString(old[:ev.Part.Start] + ev.Text + old[end:])
	for i := at + 1; i < len(d.parts); i++ {
		d.parts[i].Start += shift
	}
	return shift, true
}

// end returns where a part ends.
func (d *draft) end(part int) int {
	if part+1 < len(d.parts) {
		return d.parts[part+1].Start
	}
	return d.text.Len()
}
