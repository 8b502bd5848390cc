package chat

import (
	"cmp"
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

// form is how a turn is told.
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

// teller tells a turn in one form. What its methods write is sent when they return.
type teller interface {
	Start() error
	// Event takes an event; it is sent with the next Flush.
	Event(ev ibid.Event)
	Flush() error
	Answer(a *ibid.Answer, status uimessage.Status) error
	// late is Answer for citations that came later.
	late(a *ibid.Answer) error
	// fail says why the answer is not whole. It comes behind the answer.
	fail(e *ibid.ProviderError) error
	Ping() error
	Close() error
}

// teller returns what tells the turn to w.
func (f form) teller(t *Turn, numbers func() *ibid.Numbering, w io.Writer) teller {
	switch f.name {
	case formUI:
		return &tellUI{uimessage.Writer{W: w, MessageID: t.AnswerID}, numbers}
	case formOpenAI:
		return &tellOpenAI{w: w, said: wire.Completion{ID: t.AnswerID, Model: t.model}, unit: f.unit}
	}
	return &tellEvents{w: w, id: t.AnswerID, unit: f.unit, numbers: numbers}
}

// beginResponse begins the response, unless it has begun. docs/http.md says what each header is for.
func (f form) beginResponse(w *httpx.Reply) *httpx.Stream {
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform") // nothing on the way may compress it, and so hold it back
	if f.name == formUI {
		h.Set("X-Vercel-Ai-Ui-Message-Stream", "v1")
	}
	return w.Events(writeTime)
}

// tellUI tells a turn as a UI message stream.
type tellUI struct {
	uimessage.Writer
	numbers func() *ibid.Numbering // asks the store: when a number is needed
}

func (u *tellUI) Event(ev ibid.Event) {
	if ev.Kind == ibid.EventCitation {
		u.number()
	}
	u.Writer.Event(ev)
}

func (u *tellUI) number() {
	if u.Numbering == nil {
		u.Numbering = u.numbers()
	}
}

func (u *tellUI) Answer(a *ibid.Answer, status uimessage.Status) error {
	u.number()
	return u.Writer.Answer(a, status)
}

func (u *tellUI) late(a *ibid.Answer) error { return u.Late(a, uimessage.StatusOf(a)) }

func (u *tellUI) fail(e *ibid.ProviderError) error {
	if e.Code == CodeEnded {
		return u.Abort()
	}
	return u.Fail(e.Message)
}

// tellEvents tells a turn as events, as docs/chat.md describes them.
type tellEvents struct {
	w       io.Writer
	id      string
	unit    ibid.Unit
	numbers func() *ibid.Numbering

	buf      []byte // events that are to be sent
	draft    draft
	units    int // how many the text has
	sources  []ibid.Source
	at       map[string]int // of sources
	offsets  *ibid.Offsets  // over the text; nil: it has changed
	numbered *ibid.Numbering
	told     *ibid.Answer // as it was told last
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

func (e *tellEvents) Start() error { return comment(e.w, "listening") }

func (e *tellEvents) Flush() error { return send(e.w, &e.buf) }

// send writes what is in the buffer.
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

func (e *tellEvents) addEvent(name string, v any) {
	data, err := httpx.Encode(v)
	if err != nil { // a number that is none; Document leaves them out
		return
	}
	e.buf = httpx.AppendEvent(e.buf, "", name, data)
}

func (e *tellEvents) Event(ev ibid.Event) {
	switch ev.Kind {
	case ibid.EventText:
		e.addEvent("text", textData{e.units, ev.Text})
		e.draft.text.WriteString(ev.Text)
		e.offsets = nil
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

func (e *tellEvents) part(ev *ibid.Event) {
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

func (e *tellEvents) places() *ibid.Offsets {
	if e.offsets == nil {
		e.offsets = ibid.NewOffsets(e.draft.text.String())
	}
	return e.offsets
}

func (e *tellEvents) source(s *ibid.Source) {
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

func (e *tellEvents) citation(ev *ibid.Event) {
	said := gateway.LiveCitations{Key: ev.Key, Withdrawn: ev.Withdrawn, Citations: []ibid.DocumentCitation{}}
	at := e.units
	if c := ev.Citation; c != nil && !ev.Withdrawn {
		known := ibid.Answer{Text: e.draft.text.String()}
		for i := range c.Refs {
			if k, ok := e.at[c.Refs[i].Source]; ok &&
				!slices.ContainsFunc(known.Sources, func(s ibid.Source) bool { return s.ID == c.Refs[i].Source }) {
				known.Sources = append(known.Sources, e.sources[k])
			}
		}
		said.Citations = known.CitationRows(c)
		for i := range said.Citations { // their offsets are in bytes
			row := &said.Citations[i]
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
	e.addEvent("citation", citationData{at, said})
}

func (e *tellEvents) Answer(a *ibid.Answer, _ uimessage.Status) error {
	if e.numbered == nil {
		e.numbered = e.numbers()
	}
	e.told = a
	e.addEvent("answer", a.Document(&ibid.DocumentOptions{Unit: e.unit, AnswerID: e.id, Numbering: e.numbered}))
	return e.Flush()
}

func (e *tellEvents) late(a *ibid.Answer) error {
	if a == e.told {
		return nil // nothing came
	}
	return e.Answer(a, uimessage.Final)
}

func (e *tellEvents) fail(failed *ibid.ProviderError) error {
	e.addEvent("error", failed)
	return e.Flush()
}

func (e *tellEvents) Ping() error { return comment(e.w, "heartbeat") }

func (e *tellEvents) Close() error { return e.Flush() }

// tellOpenAI tells a turn as the chunks of a chat completion. Its last one has all citations.
type tellOpenAI struct {
	w    io.Writer
	said wire.Completion
	unit ibid.Unit

	buf     []byte
	sent    strings.Builder
	message int          // message of the current part
	last    int          // message of the text that was sent last
	space   string       // white space at the beginning of a message, held back until its length is known
	whole   *ibid.Answer // nil: the answer has not ended
	err     error
}

func (o *tellOpenAI) Start() error {
	o.said.Created = time.Now().Unix()
	return comment(o.w, "listening")
}

func (o *tellOpenAI) Event(ev ibid.Event) {
	switch {
	case ev.Kind == ibid.EventPart && !ev.Corrected && ev.Part != nil:
		o.message = ev.Part.Message
	case ev.Kind == ibid.EventText:
		o.text(ev.Text)
	}
}

// text sends text, after a blank line if it begins another message: see [export.Parted].
func (o *tellOpenAI) text(words string) {
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

// takeSpace returns what was held back, with the line breaks that are missing for a blank line before it.
func (o *tellOpenAI) takeSpace() string {
	words := text.BlankLine(o.sent.String(), o.space) + o.space
	o.space = ""
	return words
}

func (o *tellOpenAI) send(words string) {
	o.sent.WriteString(words)
	o.chunk(words, false)
}

func (o *tellOpenAI) chunk(delta string, last bool) {
	data, err := o.said.Chunk(delta, last)
	if err != nil {
		o.err = err
		return
	}
	o.buf = httpx.AppendEvent(o.buf, "", "", data)
}

func (o *tellOpenAI) Flush() error {
	if o.err != nil {
		return o.err
	}
	return send(o.w, &o.buf)
}

// Answer keeps the answer: there is only one last chunk.
func (o *tellOpenAI) Answer(a *ibid.Answer, _ uimessage.Status) error {
	o.whole = a
	return nil
}

func (o *tellOpenAI) late(a *ibid.Answer) error { return o.Answer(a, uimessage.Final) }

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
	return o.Flush()
}

func (o *tellOpenAI) Ping() error { return comment(o.w, "ping") }

func (o *tellOpenAI) Close() error {
	if o.whole != nil {
		o.finish(o.whole)
		o.chunk("", true)
	}
	o.buf = httpx.AppendEvent(o.buf, "", "", []byte("[DONE]"))
	return o.Flush()
}

// finish takes what the last chunk says.
func (o *tellOpenAI) finish(a *ibid.Answer) {
	if o.space != "" { // the last message is nothing but space
		o.send(o.takeSpace())
	}
	c := export.Completion(uimessage.InText(export.Parted(a), o.sent.String()), &export.Options{Unit: o.unit})
	o.said.Model, o.said.Finish, o.said.Annotations = cmp.Or(c.Model, o.said.Model), c.Finish, c.Annotations
}

// draft is the text of an answer while it arrives. The ends of its parts are not kept up: each goes to where the next
// begins.
type draft struct {
	text  strings.Builder
	parts []ibid.Part
}

// correct puts another text in the place of a part's, and returns by how much the text has grown. It reports false, and
// does nothing, where there is no such part.
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
