package gateway

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/internal/call"
)

// The kinds of live deltas.
const (
	// LiveText is a delta of text: Data is a JSON string that begins at At of the answer's text; empty: the answer is
	// still on its way
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
	mask    *KeyMask
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
	l.mask = NewKeyMask(l.e.keysOf(), l.take)
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
	if !l.mask.Event(ev) {
		l.e.g.metrics.liveDropped.Inc()
	}
	switch since := time.Since(l.last); {
	case since >= liveEvery:
		l.flush()
		l.schedule()
	case idle:
		l.timer.Reset(liveEvery - since)
	}
}

// take takes what may be told.
func (l *live) take(ev ibid.Event) {
	at := l.soFar.record(&ev)
	switch {
	case ev.Kind == ibid.EventText:
		if len(l.text) > 0 && (ev.At != l.at+len(l.text) || len(l.text)+len(ev.Text) > maxLiveText) {
			l.endText()
		}
		if len(l.text) == 0 {
			l.at = ev.At
		}
		l.text = append(l.text, ev.Text...)
	case l.isPutOff(ev.Kind, at):
	case ev.Kind == ibid.EventSource:
		l.endText()
		l.addSource(ev.Source)
	default:
		l.endText()
		l.addCitation(ev.Key, ev.Citation, ev.Withdrawn)
	}
}

// close says what is left. The stored event follows it.
func (l *live) close() {
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.timer.Stop()
	l.mask.End()
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
		l.wanted, l.replayed = false, time.Now()
		if s := &l.soFar; s.text.Len() == 0 && len(s.sources) == 0 && len(s.citations) == 0 {
			l.sayAlive()
		} else {
			l.flush()
			l.replay = replay{on: true}
			l.continueReplay()
		}
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
	if l.mask.keys.In(b) {
		b, _ = call.Mask(l.mask.keys, b)
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

const (
	// liveFirst is after how long it is said for the first time that an answer is on its way of which nothing came.
	liveFirst = time.Second
	// liveAlive is how often it is said of an answer that pauses that it is still on its way.
	liveAlive = 10 * time.Second
	// liveAgain is how far apart replays of one answer are: whoever asks meanwhile waits for the next one.
	liveAgain = 2 * time.Second
	// maxLiveAgain is how many deltas there are at a time in a replay, so that no listener is dropped
	// for them. All that is kept is sent within liveAgain.
	maxLiveAgain = 128
	// maxLiveKept is how many bytes of text of one answer are kept for those who come later: who misses more waits for
	// the answer.
	maxLiveKept = 512 << 10
	// maxLiveItems is how many sources and how many citations of one answer are kept. The rows of citations have no
	// title and address of further sources.
	maxLiveItems = 1024
)

// soFar is what is known of an answer that is still arriving. The zero value is ready to use.
type soFar struct {
	text      strings.Builder // from its beginning, without a gap
	sources   []ibid.Source   // as last told
	citations []liveCitation  // likewise
	sourceAt  map[string]int  // by ID
	citedAt   map[string]int  // by key
}

type liveCitation struct {
	key      string
	citation *ibid.Citation // nil: withdrawn
}

// record notes what is told, and returns which source or citation it is; -1: there was no room, or it is text.
func (s *soFar) record(ev *ibid.Event) int {
	switch ev.Kind {
	case ibid.EventText:
		if ev.At == s.text.Len() && ev.At+len(ev.Text) <= maxLiveKept {
			s.text.WriteString(ev.Text)
		}
	case ibid.EventSource:
		return addOrReplace(&s.sources, &s.sourceAt, ev.Source.ID, *ev.Source)
	case ibid.EventCitation:
		c := liveCitation{ev.Key, ev.Citation}
		if ev.Withdrawn {
			c.citation = nil
		}
		return addOrReplace(&s.citations, &s.citedAt, ev.Key, c)
	default:
	}
	return -1
}

// addOrReplace replaces the item of that name, or adds it if there is room, and returns which it is.
func addOrReplace[T any](items *[]T, at *map[string]int, name string, item T) int {
	i, known := (*at)[name]
	switch {
	case known:
		(*items)[i] = item
		return i
	case len(*items) < maxLiveItems:
		if *at == nil {
			*at = map[string]int{}
		}
		(*at)[name] = len(*items)
		*items = append(*items, item)
		return len(*items) - 1
	}
	return -1
}

// rows returns the rows of a citation as the document will have them.
func (s *soFar) rows(c *ibid.Citation) []ibid.DocumentCitation {
	known := ibid.Answer{Text: s.text.String(), Sources: s.sources}
	rows := known.CitationRows(c)
	if !c.Placed() || c.Span.End <= len(known.Text) {
		return rows
	}
	for i := range rows {
		rows[i].TextStart, rows[i].TextEnd = &c.Span.Start, &c.Span.End
		if c.Claim != (ibid.Span{}) {
			rows[i].ClaimStart, rows[i].ClaimEnd = &c.Claim.Start, &c.Claim.End
		}
	}
	return rows
}

// replay is how far the answer was sent again.
type replay struct {
	on                 bool
	text               bool // the text was
	sources, citations int
}

// isPutOff reports whether the source or citation with that index is told later: because those before it are sent
// again, or because many wait already.
func (l *live) isPutOff(kind ibid.EventKind, i int) bool {
	r := &l.replay
	if !r.on && i >= 0 && len(l.pending) >= maxLiveAgain {
		*r = replay{on: true, text: true, sources: len(l.soFar.sources), citations: len(l.soFar.citations)}
		if kind == ibid.EventSource {
			r.sources = i
		} else {
			r.citations = i
		}
	}
	if kind == ibid.EventSource {
		return r.on && i >= r.sources
	}
	return r.on && i >= r.citations
}

// requestReplay has the answer sent again from its beginning. The bus calls it when somebody begins to listen.
func (l *live) requestReplay() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && !l.wanted {
		l.wanted = true
		l.timer.Reset(max(0, liveAgain-time.Since(l.replayed)))
	}
}

// sayAlive says that the answer is on its way.
func (l *live) sayAlive() { l.add(LiveText, l.soFar.text.Len(), "") }

// continueReplay puts the next part of a replay behind what is pending: the text in one go, because what follows must
// find it there, then the sources, then the citations.
func (l *live) continueReplay() {
	r := &l.replay
	if !r.on {
		return
	}
	if !r.text {
		r.text = true
		l.text, l.at = append(l.text, l.soFar.text.String()...), 0
		l.endText()
	}
	for len(l.pending) < maxLiveAgain {
		switch {
		case r.sources < len(l.soFar.sources):
			l.addSource(&l.soFar.sources[r.sources])
			r.sources++
		case r.citations < len(l.soFar.citations):
			c := &l.soFar.citations[r.citations]
			l.addCitation(c.key, c.citation, c.citation == nil)
			r.citations++
		default:
			r.on = false
			return
		}
	}
}
