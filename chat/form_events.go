package chat

import (
	"io"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/uimessage"
)

// The names of the events.
const (
	eventText     = "text"
	eventPart     = "part"
	eventSource   = "source"
	eventCitation = "citation"
	eventAnswer   = "answer"
	eventError    = "error"
)

// tellEvents tells a talk as events, as docs/chat.md describes them.
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

func (e *tellEvents) start() error {
	return comment(e.w, "listening")
}

func (e *tellEvents) flush() error { return send(e.w, &e.buf) }

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

func (e *tellEvents) put(name string, v any) {
	data, err := httpx.Encode(v)
	if err != nil { // a number that is none; Document leaves them out
		return
	}
	e.buf = httpx.AppendEvent(e.buf, "", name, data)
}

func (e *tellEvents) event(ev ibid.Event) {
	switch ev.Kind {
	case ibid.EventText:
		e.put(eventText, textData{e.units, ev.Text})
		e.grow(ev.Text)
	case ibid.EventPart:
		e.part(&ev)
	case ibid.EventSource:
		e.source(ev.Source)
	case ibid.EventCitation:
		e.citation(&ev)
	default:
	}
}

func (e *tellEvents) grow(text string) {
	e.draft.text.WriteString(text)
	e.offsets = nil
	_, n := ibid.NewOffsets(text).In(e.unit, ibid.Span{End: len(text)})
	e.units += n
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
	e.put(eventPart, d)
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
	e.put(eventSource, sourceData{d.Sources[0]})
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
		for i := range said.Citations {
			e.count(&said.Citations[i])
		}
		if c.Placed() {
			_, at = e.places().In(e.unit, c.Span)
		}
	}
	e.put(eventCitation, citationData{at, said})
}

// count gives a row's offsets in the unit.
func (e *tellEvents) count(row *ibid.DocumentCitation) {
	for _, span := range [...][2]**int{{&row.TextStart, &row.TextEnd}, {&row.ClaimStart, &row.ClaimEnd}} {
		if *span[0] == nil || *span[1] == nil {
			continue
		}
		start, end := e.places().In(e.unit, ibid.Span{Start: **span[0], End: **span[1]})
		*span[0], *span[1] = &start, &end
	}
}

func (e *tellEvents) answer(a *ibid.Answer, _ uimessage.Status) error {
	if e.numbered == nil {
		e.numbered = e.numbers()
	}
	e.told = a
	e.put(eventAnswer, a.Document(&ibid.DocumentOptions{Unit: e.unit, AnswerID: e.id, Numbering: e.numbered}))
	return e.flush()
}

func (e *tellEvents) late(a *ibid.Answer) error {
	if a == e.told {
		return nil // nothing came
	}
	return e.answer(a, uimessage.Final)
}

func (e *tellEvents) fail(failed *ibid.ProviderError) error {
	e.put(eventError, failed)
	return e.flush()
}

func (e *tellEvents) ping() error {
	return comment(e.w, "heartbeat")
}

func (e *tellEvents) close() error { return e.flush() }
