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
	// Data is a JSON string that begins at At of the answer's text; empty: the answer is still on its way
	LiveText     = "text"
	LiveSource   = "source"   // Data is a source of an answer document, with index 0: its number is not known yet
	LiveCitation = "citation" // Data is a LiveCitations; At is where its span ends
)

// LiveCitations are the rows of one citation, as they are known while its answer arrives: those of an answer document,
// but without id, group and index.
type LiveCitations struct {
	Key       string                  `json:"key"`       // later rows of the same key replace these
	Withdrawn bool                    `json:"withdrawn"` // the citation is taken back: there are no rows
	Citations []ibid.DocumentCitation `json:"citations"`
}

const (
	// liveEvery is how far apart the deltas of one answer are.
	liveEvery = 100 * time.Millisecond
	// maxLiveText is how many bytes of text go into one delta: with six bytes of JSON each they still fit into a
	// message.
	maxLiveText = 8 << 10
	// maxLivePending is how many deltas of one answer wait for the next moment; more are dropped.
	maxLivePending = 256
)

// live tells those who listen to the run what becomes known of one answer, and those who come later what they missed.
type live struct {
	e *exchange

	mu      sync.Mutex
	pending []bus.Live
	text    []byte // joined, at the end of pending
	at      int    // where text begins
	last    time.Time
	timer   *time.Timer // nil: nothing happened yet
	waiting bool        // timer runs
	soon    bool        // for what is pending, else for listeners that come
	closed  bool

	soFar  soFar
	joined uint64    // who joined up to this one was told what there was, or is being told; 0: nobody listens
	retold time.Time // when the last telling began
	retell retelling
}

// begin has those who listen told that the answer is on its way, also while nothing of it comes.
func (l *live) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.schedule()
}

// event takes what the tee found. It runs in the copy loop.
func (l *live) event(ev ibid.Event) {
	if ev.Candidate != 0 || ev.Kind != ibid.EventText && ev.Kind != ibid.EventSource && ev.Kind != ibid.EventCitation {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.look()
	at := l.soFar.keep(&ev)
	if l.joined != 0 {
		switch {
		case ev.Kind == ibid.EventText:
			l.addText(ev.Text, ev.At)
		case l.isPutOff(ev.Kind, at):
		case ev.Kind == ibid.EventSource:
			l.endText()
			l.addSource(ev.Source)
		default:
			l.endText()
			l.addCitation(ev.Key, ev.Citation, ev.Withdrawn)
		}
		if time.Since(l.last) >= liveEvery {
			l.flush()
		}
	}
	l.schedule()
}

// close says what is left. The stored event follows it.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	for range maxLivePending / maxLiveAgain { // the answer has the rest of what was put off
		l.flush()
	}
}

func (l *live) tick() {
	defer l.e.survive()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.waiting = false
	l.look()
	if l.joined != 0 && time.Since(l.last) >= liveAlive {
		l.sayAlive()
	}
	l.flush()
	l.schedule()
}

// schedule has tick called when what is pending may go, or else to see who has come: the answer may pause for long.
func (l *live) schedule() {
	wait, soon := liveLook, len(l.pending) > 0 || len(l.text) > 0 || l.retell.on
	if l.waiting && (l.soon || !soon) {
		return
	}
	if soon {
		wait = max(0, liveEvery-time.Since(l.last))
	}
	l.waiting, l.soon = true, soon
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.tick)
	} else {
		l.timer.Reset(wait)
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
	d := (&ibid.Answer{Sources: []ibid.Source{*s}}).Document(nil)
	if len(d.Sources) == 1 {
		d.Sources[0].Index = 0
		l.add(LiveSource, l.at, d.Sources[0])
	}
}

func (l *live) addCitation(key string, c *ibid.Citation, withdrawn bool) {
	said := LiveCitations{Key: key, Withdrawn: withdrawn, Citations: []ibid.DocumentCitation{}}
	at := l.at
	if c != nil && !withdrawn && len(l.pending) < maxLivePending {
		said.Citations = l.soFar.rows(c)
		if c.Placed() {
			at = c.Span.End
		}
	}
	l.add(LiveCitation, at, said)
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
	l.pending = append(
		l.pending, bus.Live{Kind: kind, AnswerID: l.e.answerID, Step: l.e.labels.step.Number, At: at, Data: b},
	)
}

// flush tells what is pending, and prepares the next part of what is told again.
func (l *live) flush() {
	l.endText()
	if len(l.pending) > 0 {
		l.last = time.Now()
	}
	for _, m := range l.pending {
		l.e.g.options.Bus.Tell(l.e.tenant, l.e.labels.run, m)
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	l.tellAgain()
}
