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

// live publishes what becomes known of one answer while it arrives, and on request all that was known before.
type live struct {
	e    *exchange
	stop func() // ends the requests

	mu      sync.Mutex
	pending []bus.Live
	text    []byte // joined, at the end of pending
	at      int    // where text begins
	last    time.Time
	timer   *time.Timer
	closed  bool

	soFar    soFar
	wanted   bool      // a replay is to begin
	replayed time.Time // when the last one began
	replay   replay
}

// start begins to answer requests, and says from time to time that the answer is on its way.
func (l *live) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(liveFirst, l.tick)
	l.stop = l.e.g.options.Bus.OnReplay(l.e.tenant, l.e.labels.run, l.requestReplay)
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
	idle := len(l.pending) == 0 && len(l.text) == 0 && !l.replay.on
	at := l.soFar.keep(&ev)
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
	switch since := time.Since(l.last); {
	case since >= liveEvery:
		l.flush()
		l.schedule()
	case idle:
		l.timer.Reset(liveEvery - since)
	}
}

// close says what is left. The stored event follows it.
func (l *live) close() {
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.timer.Stop()
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
	if l.wanted && time.Since(l.replayed) >= liveAgain {
		l.startReplay()
	}
	if len(l.pending) == 0 && len(l.text) == 0 && !l.replay.on && time.Since(l.last) >= liveAlive {
		l.sayAlive()
	}
	l.flush()
	l.schedule()
}

// schedule has tick called when what is pending may go, a replay may begin, or it is time to say that the answer is
// still on its way.
func (l *live) schedule() {
	wait := liveAlive
	switch {
	case l.replay.on || len(l.pending) > 0:
		wait = liveEvery
	case l.wanted:
		wait = max(0, liveAgain-time.Since(l.replayed))
	}
	l.timer.Reset(wait)
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

// flush publishes what is pending, and prepares the next part of a replay.
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
	l.continueReplay()
}
