package uimessage

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

// Writer writes one message as a UI message stream, while its answer arrives: [Writer.Start] once, [Writer.Event] for
// each event and [Writer.Flush] whenever the client should see them, [Writer.Answer] at the answer's end, [Writer.Late]
// for what follows it, [Writer.Fail] if something went wrong, and [Writer.Close]. All but Close, which ends the stream,
// are optional.
//
// Text, reasoning and tool calls are written as they arrive. Sources are written at the answer's end, when they are
// complete, each once. Citations are written while they arrive, all of them each time, but only when there are a
// quarter more than the last time, so that the total is a small multiple of the final size; their numbers, and the fact
// that they have no id, are final only at the end.
//
// A provider may correct text that it has already sent. The client keeps the old text. Citations are then placed where
// their words are in that text, and those whose words it does not have are without a place.
//
// Set the fields before the first call. A Writer is for one message and one goroutine.
type Writer struct {
	W         io.Writer
	MessageID string          // the answer's id
	Numbering *ibid.Numbering // assigns the sources their numbers; nil numbers from 1

	buf     bytes.Buffer
	started bool
	ended   bool         // the texts have ended
	whole   *ibid.Answer // nil until it has ended
	closed  bool
	err     error

	text    strings.Builder // all that was sent
	parts   []textPart
	next    *ibid.Part // begins with the next text; nil if the last one continues
	differs bool       // the provider corrected text that was sent

	sources  []ibid.Source
	sourceAt map[string]int
	cites    []ibid.Citation
	citeAt   map[string]int
	gone     map[int]bool // cites that were withdrawn
	changes  int          // changes of cites since they were last written
	sent     int          // number of them at that time

	acts []writtenActivity // by index in the answer
	open int               // the one that is unfinished reasoning, from 1; 0 if none is

	told map[string]bool // sources that were written
	own  ibid.Numbering
}

// textPart is a text part that has begun. Its span is in the text that was sent.
type textPart struct {
	ibid.Part

	id string
}

// chunk is one frame of the stream. It has the members of a part, and some of its own.
type chunk struct {
	Part

	MessageID      string `json:"messageId,omitempty"`
	Delta          string `json:"delta,omitempty"`
	ToolName       string `json:"toolName,omitempty"`
	InputTextDelta string `json:"inputTextDelta,omitempty"`
}

// writtenActivity is the written state of an activity.
type writtenActivity struct {
	ibid.Activity // as last received

	begun, ready, ended bool
}

// writeChunk adds a frame to the buffer.
func (w *Writer) writeChunk(c *chunk) {
	w.buf.WriteString("data: ")
	w.buf.Write(encode(c))
	w.buf.WriteString("\n\n")
}

// flush writes the buffer. After an error nothing more is written.
func (w *Writer) flush() error {
	if w.err == nil && w.buf.Len() > 0 {
		_, w.err = w.W.Write(w.buf.Bytes())
	}
	w.buf.Reset()
	return w.err
}

// Start writes the beginning of the message, so that the client sees that there is one.
func (w *Writer) Start() error {
	w.writeStart()
	return w.flush()
}

func (w *Writer) writeStart() {
	if !w.started {
		w.started = true
		w.writeChunk(&chunk{Part: Part{Type: "start"}, MessageID: w.MessageID})
		w.writeChunk(&chunk{Part: Part{Type: "start-step"}})
		w.data(documentOf(&ibid.Answer{}, nil), Pending) // so that it always has the same place in the message
	}
}

// Event adds an event of the answer. Events after the answer's end, and of other candidates, are ignored.
func (w *Writer) Event(ev ibid.Event) {
	if ev.Candidate != 0 || w.ended || w.whole != nil {
		return
	}
	w.writeStart()
	switch ev.Kind {
	case ibid.EventText:
		w.addText(ev.Text)
	case ibid.EventPart:
		if ev.Part != nil {
			w.addPart(&ev)
		}
	case ibid.EventActivity:
		w.addActivity(&ev)
	case ibid.EventSource:
		if ev.Source != nil {
			w.addSource(ev.Source)
		}
	case ibid.EventCitation:
		w.addCitation(&ev)
	default: // the answer has it
	}
}

// Flush writes the events added since.
func (w *Writer) Flush() error {
	if w.changes > w.sent/4 && !w.ended && w.whole == nil && !w.differs {
		w.pending()
	}
	return w.flush()
}

func (w *Writer) addText(text string) {
	if text == "" {
		return
	}
	w.endReasoning()
	if w.next != nil || len(w.parts) == 0 {
		w.openText()
	}
	w.writeChunk(&chunk{Part: Part{Type: "text-delta", ID: w.parts[len(w.parts)-1].id}, Delta: text})
	w.text.WriteString(text)
	w.parts[len(w.parts)-1].End = w.text.Len()
}

// openText begins the next text part.
func (w *Writer) openText() {
	p := textPart{Part: ibid.Part{Kind: ibid.AnswerPart}, id: "t" + strconv.Itoa(len(w.parts)+1)}
	if w.next != nil {
		p.Kind, p.Message = w.next.Kind, w.next.Message
	}
	p.Span = ibid.Span{Start: w.text.Len(), End: w.text.Len()}
	w.next = nil
	w.parts = append(w.parts, p)
	w.writeChunk(&chunk{Part: Part{Type: "text-start", ID: p.id}})
}

func (w *Writer) addPart(ev *ibid.Event) {
	if ev.Corrected {
		w.differs = true
		return
	}
	w.next = ev.Part
	if n := len(w.parts); n > 0 && w.parts[n-1].Kind == ev.Part.Kind && w.parts[n-1].Message == ev.Part.Message {
		w.next = nil
	}
}

// addActivity writes what is new about an activity. A call begins when the name of its tool is known.
func (w *Writer) addActivity(ev *ibid.Event) {
	if ev.Index > len(w.acts) || ev.Index == len(w.acts) && ev.Activity == nil {
		return
	}
	if ev.Index == len(w.acts) {
		w.acts = append(w.acts, writtenActivity{})
	}
	a := &w.acts[ev.Index]
	if ev.Activity != nil {
		a.Activity = *ev.Activity
	}
	if w.open != ev.Index+1 {
		w.endReasoning()
	}
	if a.Kind == ibid.ReasoningActivity {
		w.addReasoning(ev.Index, ev.Text)
		return
	}
	if !a.begun && (a.Name != "" || a.Input != nil) {
		a.begun = true
		w.writeChunk(a.chunk("tool-input-start"))
	}
	if a.begun && !a.ready && ev.Text != "" {
		w.writeChunk(&chunk{Part: Part{Type: "tool-input-delta", ToolCallID: a.ID}, InputTextDelta: ev.Text})
	}
	if a.Input != nil && !a.ready {
		a.ready = true
		c := a.chunk("tool-input-available")
		c.Input = a.Input
		w.writeChunk(c)
	}
	switch {
	case a.ended:
	case a.Error != "":
		w.failTool(a, a.Error)
	case a.Output != nil:
		a.ended = true
		w.writeChunk(&chunk{Part: Part{
			Type: "tool-output-available", ToolCallID: a.ID, Output: a.Output, ProviderExecuted: a.Server,
		}})
	}
}

// chunk returns a frame with the call and its tool.
func (a *writtenActivity) chunk(kind string) *chunk {
	return &chunk{
		Part: Part{Type: kind, ToolCallID: a.ID, ProviderExecuted: a.Server}, ToolName: toolName(&a.Activity),
	}
}

func (w *Writer) failTool(a *writtenActivity, words string) {
	a.ended = true
	w.writeChunk(&chunk{Part: Part{
		Type: "tool-output-error", ToolCallID: a.ID, ErrorText: words, ProviderExecuted: a.Server,
	}})
}

func reasoningID(i int) string { return "r" + strconv.Itoa(i+1) }

func (w *Writer) addReasoning(i int, text string) {
	a := &w.acts[i]
	if text == "" || a.ended {
		return
	}
	if !a.begun {
		a.begun = true
		w.open = i + 1
		w.writeChunk(&chunk{Part: Part{Type: "reasoning-start", ID: reasoningID(i)}})
	}
	w.writeChunk(&chunk{Part: Part{Type: "reasoning-delta", ID: reasoningID(i)}, Delta: text})
}

// endReasoning ends unfinished reasoning.
func (w *Writer) endReasoning() {
	if w.open > 0 {
		w.acts[w.open-1].ended = true
		w.writeChunk(&chunk{Part: Part{Type: "reasoning-end", ID: reasoningID(w.open - 1)}})
		w.open = 0
	}
}

// endActivities ends everything unfinished. A call whose input did not arrive is never made.
func (w *Writer) endActivities() {
	w.endReasoning()
	for i := range w.acts {
		a := &w.acts[i]
		if a.Kind != ibid.ToolActivity || a.ready || a.ended {
			continue
		}
		if !a.begun {
			w.writeChunk(a.chunk("tool-input-start"))
		}
		w.failTool(a, brokenCall)
	}
}

func (w *Writer) addSource(s *ibid.Source) {
	if at, ok := w.sourceAt[s.ID]; ok {
		w.sources[at] = *s
		return
	}
	if w.sourceAt == nil {
		w.sourceAt = map[string]int{}
	}
	w.sourceAt[s.ID] = len(w.sources)
	w.sources = append(w.sources, *s)
}

func (w *Writer) addCitation(ev *ibid.Event) {
	w.changes++
	at, known := w.citeAt[ev.Key]
	switch {
	case ev.Withdrawn:
		if known {
			w.gone[at] = true
		}
	case ev.Citation == nil:
	case known:
		delete(w.gone, at)
		w.cites[at] = *ev.Citation
	default:
		if w.citeAt == nil {
			w.citeAt, w.gone = map[string]int{}, map[int]bool{}
		}
		w.citeAt[ev.Key] = len(w.cites)
		w.cites = append(w.cites, *ev.Citation)
	}
}

// pending writes the citations so far.
func (w *Writer) pending() {
	a := ibid.Answer{Text: w.text.String(), Sources: w.sources}
	for i := range w.cites {
		if c := &w.cites[i]; !w.gone[i] && c.Span.End <= len(a.Text) {
			a.Citations = append(a.Citations, *c)
		}
	}
	SortCitations(a.Citations)
	numbers := maps.Clone(*w.numbering())
	w.data(documentOf(&a, &numbers), Pending)
	w.changes, w.sent = 0, len(a.Citations)
}

func (w *Writer) numbering() *ibid.Numbering { return cmp.Or(w.Numbering, &w.own) }

func (w *Writer) data(d *ibid.Document, status Status) {
	w.writeChunk(&chunk{Part: dataPart(w.MessageID, d, status)})
}

// Answer ends the text and writes the rest of the answer: its sources and citations. If there were no events, it writes
// the text too. With status Pending more may follow through [Writer.Late]; until then only the citations are written,
// so that in the end sources are in order, and text parts have all their citations.
func (w *Writer) Answer(a *ibid.Answer, status Status) error {
	if w.ended {
		return w.Late(a, status)
	}
	w.writeStart()
	if w.text.Len() == 0 && len(w.acts) == 0 {
		inOrder(a, func(run *ibid.Part) {
			w.next = run
			w.addText(a.Text[run.Start:run.End])
		}, func(i int) {
			w.addActivity(&ibid.Event{Index: i, Activity: &a.Activities[i], Text: a.Activities[i].Text})
		})
	}
	w.endActivities()
	w.whole = a
	if status != Pending {
		w.endTexts()
	}
	_, d := w.shown(a)
	w.data(d, status)
	return w.flush()
}

// Late writes the citations of an answer again, with those found, or checked, after its end. Its text must be the same.
func (w *Writer) Late(a *ibid.Answer, status Status) error {
	if !w.ended {
		return w.Answer(a, status)
	}
	_, d := w.shown(a)
	w.writeSources(d)
	w.data(d, status)
	return w.flush()
}

// writeSources writes the sources that were not written yet.
func (w *Writer) writeSources(d *ibid.Document) {
	if w.told == nil {
		w.told = map[string]bool{}
	}
	for i := range d.Sources {
		p := sourcePart(&d.Sources[i])
		if w.told[p.SourceID] {
			continue
		}
		w.told[p.SourceID] = true
		w.writeChunk(&chunk{Part: p})
	}
}

// Fail ends the text and writes an error, at which clients stop. The words are shown to the user.
func (w *Writer) Fail(words string) error {
	w.writeStart()
	w.endTexts()
	w.writeChunk(&chunk{Part: Part{Type: "error", ErrorText: cmp.Or(words, "the answer broke off")}})
	return w.flush()
}

// Abort ends the text and reports that the answer was ended on request before it was complete.
func (w *Writer) Abort() error {
	w.writeStart()
	w.endTexts()
	w.writeChunk(&chunk{Part: Part{Type: "abort"}})
	return w.flush()
}

// endTexts ends the text parts, with what is known of their citations, after the sources.
func (w *Writer) endTexts() {
	if w.ended {
		return
	}
	w.ended = true
	w.endActivities()
	var d *ibid.Document
	var offsets *ibid.Offsets
	if w.whole != nil {
		var shown *ibid.Answer
		shown, d = w.shown(w.whole)
		offsets = ibid.NewOffsets(shown.Text)
		w.writeSources(d)
	}
	for i := range w.parts {
		end := Part{Type: "text-end", ID: w.parts[i].id}
		if d != nil {
			end.ProviderMetadata = textMetadata(d, &w.parts[i].Part, offsets)
		}
		w.writeChunk(&chunk{Part: end})
	}
}

// Ping writes a comment, which keeps proxies from closing the stream as idle.
func (w *Writer) Ping() error {
	w.buf.WriteString(": ping\n\n")
	return w.flush()
}

// Close writes the end of the stream. It returns the first error of W.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	w.writeStart()
	w.endTexts()
	w.writeChunk(&chunk{Part: Part{Type: "finish-step"}})
	w.writeChunk(&chunk{Part: Part{Type: "finish"}})
	w.buf.WriteString("data: [DONE]\n\n")
	return w.flush()
}

// SortCitations sorts citations in the order of an answer's.
func SortCitations(list []ibid.Citation) {
	slices.SortStableFunc(list, func(a, b ibid.Citation) int {
		switch {
		case a.Placed() != b.Placed():
			if a.Placed() {
				return -1
			}
			return 1
		case !a.Placed():
			return 0
		}
		return cmp.Or(cmp.Compare(a.Span.End, b.Span.End), cmp.Compare(a.Span.Start, b.Span.Start))
	})
}

// shown returns the answer with the text that was sent, and its document. Its sources have the same numbers as in the
// stored answer, in whatever order they are cited in that text.
func (w *Writer) shown(a *ibid.Answer) (*ibid.Answer, *ibid.Document) {
	b := InText(a, w.text.String())
	if b != a {
		documentOf(a, w.numbering())
		b.Parts = nil
		for i := range w.parts {
			b.Parts = append(b.Parts, w.parts[i].Part)
		}
	}
	return b, documentOf(b, w.numbering())
}

// InText returns the answer with another text in place of its own, which its provider corrected after a client had
// received it. Citations are placed where their words are in that text; one whose words are missing, or are there
// twice, is without a place. The answer itself is not changed, and is returned if it has that text.
func InText(a *ibid.Answer, text string) *ibid.Answer {
	if text == a.Text {
		return a
	}
	move := newMove(a.Text, text)
	b := *a
	b.Text, b.Parts, b.Activities, b.Citations = text, nil, nil, slices.Clone(a.Citations)
	for i := range b.Citations {
		c := &b.Citations[i]
		if !c.Placed() {
			continue
		}
		claim, ok := move.span(c.Claim)
		if !ok || c.Claim == (ibid.Span{}) {
			claim = ibid.Span{}
		}
		c.Claim = claim
		if c.Span, ok = move.span(c.Span); !ok {
			c.Span, c.Claim, c.Anchor = ibid.Span{}, ibid.Span{}, ibid.AnchorNone
		}
	}
	SortCitations(b.Citations)
	return &b
}

// move maps spans of one text to another that differs from it only between a common prefix and a common suffix.
type move struct {
	from, to     string
	before, tail int // bytes of the common prefix and suffix
}

func newMove(from, to string) *move {
	m := &move{from: from, to: to}
	most := min(len(from), len(to))
	for m.before < most && from[m.before] == to[m.before] {
		m.before++
	}
	for m.tail < most-m.before && from[len(from)-1-m.tail] == to[len(to)-1-m.tail] {
		m.tail++
	}
	return m
}

// span returns the place of the words of s in the other text: in a common part, or else at their only occurrence.
func (m *move) span(s ibid.Span) (ibid.Span, bool) {
	shift := len(m.to) - len(m.from)
	switch {
	case s.Start < 0 || s.End < s.Start || s.End > len(m.from):
		return ibid.Span{}, false
	case s.End <= m.before:
		return s, true
	case s.Start >= len(m.from)-m.tail:
		return ibid.Span{Start: s.Start + shift, End: s.End + shift}, true
	case s.Len() == 0:
		return ibid.Span{}, false
	}
	words := m.from[s.Start:s.End]
	at := strings.Index(m.to, words)
	if at < 0 || strings.Contains(m.to[at+1:], words) {
		return ibid.Span{}, false
	}
	return ibid.Span{Start: at, End: at + len(words)}, true
}
