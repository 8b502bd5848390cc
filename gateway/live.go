package gateway

import (
	"encoding/json"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
)

// The kinds of live deltas.
const (
	LiveText     = "text"     // Data is a JSON string that begins at At of the answer's text
	LiveSource   = "source"   // Data is a source of an answer document, with index 0: its number is not known yet
	LiveCitation = "citation" // Data is a LiveCitations; At is where its span ends
)

// LiveCitations are the rows of one citation, as they are known while its answer arrives: those of an answer document, but
// without id, group and index.
type LiveCitations struct {
	Key       string                  `json:"key"`       // later rows of the same key replace these
	Withdrawn bool                    `json:"withdrawn"` // the citation is taken back: there are no rows
	Citations []ibid.DocumentCitation `json:"citations"`
}

const (
	// liveEvery is how far apart the deltas of one answer are.
	liveEvery = 100 * time.Millisecond
	// maxLiveText is how many bytes of text go into one delta.
	maxLiveText = 16 << 10
	// maxLivePending is how many deltas of one answer wait for the next moment; more are dropped.
	maxLivePending = 256
)

// live tells those who listen to the run what becomes known of one answer. Nothing is kept for those who come later: they
// get the whole answer at its end.
type live struct {
	e *exchange

	mu      sync.Mutex
	pending []bus.Live
	text    []byte // joined, at the end of pending
	at      int    // where text begins
	last    time.Time
	timer   *time.Timer // nil: nothing waits
	closed  bool
}

// event takes what the tee found. It runs in the copy loop.
func (l *live) event(ev ibid.Event) {
	if ev.Candidate != 0 || !l.e.g.bus.Listens(l.e.tenant, l.e.asked.run) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch ev.Kind {
	case ibid.EventText:
		l.addText(ev.Text, ev.At)
	case ibid.EventSource:
		l.addSource(ev.Source)
	case ibid.EventCitation:
		l.addCitation(&ev)
	default:
		return
	}
	if l.timer != nil || l.closed {
		return
	}
	if wait := liveEvery - time.Since(l.last); wait > 0 {
		l.timer = time.AfterFunc(wait, l.tick)
		return
	}
	l.flush()
}

// close says what is left. The stored event follows it.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.flush()
}

func (l *live) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.flush()
	}
}

func (l *live) addText(text string, at int) {
	if len(l.text) > 0 && (at != l.at+len(l.text) || len(l.text)+len(text) > maxLiveText) {
		l.endText()
	}
	if len(l.text) == 0 {
		l.at = at
	}
	l.text = append(l.text, text...)
}

// endText puts the joined text behind what is pending.
func (l *live) endText() {
	for text := l.text; len(text) > 0; {
		n := min(len(text), maxLiveText)
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		if n == 0 {
			n = len(text)
		}
		l.add(LiveText, l.at, string(text[:n]))
		l.at, text = l.at+n, text[n:]
	}
	l.text = l.text[:0]
}

func (l *live) addSource(s *ibid.Source) {
	l.endText()
	d := (&ibid.Answer{Sources: []ibid.Source{*s}}).Document(nil)
	if len(d.Sources) == 1 {
		d.Sources[0].Index = 0
		l.add(LiveSource, l.at, d.Sources[0])
	}
}

func (l *live) addCitation(ev *ibid.Event) {
	l.endText()
	said := LiveCitations{Key: ev.Key, Withdrawn: ev.Withdrawn, Citations: []ibid.DocumentCitation{}}
	at := l.at
	if c := ev.Citation; c != nil && !ev.Withdrawn {
		for i := range c.Refs {
			said.Citations = append(said.Citations, citationRow(c, &c.Refs[i]))
		}
		if c.Placed() {
			at = c.Span.End
		}
	}
	l.add(LiveCitation, at, said)
}

func citationRow(c *ibid.Citation, ref *ibid.Ref) ibid.DocumentCitation {
	row := ibid.DocumentCitation{
		SourceID: ref.Source, ClaimInferred: c.ClaimInferred, Locator: ref.Locator, Confidence: ref.Confidence,
		Covers: c.Covers, Anchor: c.Anchor, Origin: c.Origin,
	}
	if ref.Quote != "" {
		row.Quote = &ref.Quote
	}
	if c.Placed() {
		row.TextStart, row.TextEnd = &c.Span.Start, &c.Span.End
		row.ClaimStart, row.ClaimEnd = &c.Claim.Start, &c.Claim.End
	}
	return row
}

func (l *live) add(kind string, at int, data any) {
	if len(l.pending) == maxLivePending {
		l.e.g.metrics.liveDropped.Inc()
		return
	}
	b, err := json.Marshal(data)
	if err != nil {
		l.e.g.metrics.liveDropped.Inc()
		return
	}
	l.pending = append(l.pending, bus.Live{Kind: kind, AnswerID: l.e.answerID, Step: l.e.asked.step.Number, At: at, Data: b})
}

// flush tells what is pending.
func (l *live) flush() {
	l.endText()
	l.timer = nil
	if len(l.pending) == 0 {
		return
	}
	l.last = time.Now()
	for _, m := range l.pending {
		l.e.g.bus.Tell(l.e.tenant, l.e.asked.run, m)
	}
	clear(l.pending)
	l.pending = l.pending[:0]
}
