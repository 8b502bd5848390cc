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
	// LiveText is a delta of text. Data is a JSON string that begins at At of the answer's text; an empty one means
	// that the answer is still arriving.
	LiveText     = "text"
	LiveSource   = "source"   // Data is a source as in an answer document, with index 0: its number is not known yet
	LiveCitation = "citation" // Data is a LiveCitations; At is the end of its span
)

// LiveCitations are the rows of one citation as known while its answer arrives: as in an answer document, but without
// id, group and index.
type LiveCitations struct {
	Key       string                  `json:"key"`       // later rows with the same key replace these
	Withdrawn bool                    `json:"withdrawn"` // the citation was retracted and has no rows
	Citations []ibid.DocumentCitation `json:"citations"`
}

const (
	// liveEvery is the interval between deltas of one answer.
	liveEvery = 100 * time.Millisecond
	// maxLiveText is the most text in one delta, in bytes: even at six bytes of JSON each, it fits into a message.
	maxLiveText = 8 << 10
	// maxLivePending is how many deltas of one answer may wait to be sent; more are dropped.
	maxLivePending = 256
)

// live publishes an answer while it arrives and, on request, replays what was published before.
type live struct {
	e    *exchange
	stop func() // ends replay requests

	mu      sync.Mutex
	mask    *KeyMask
	pending []bus.Live
	text    []byte // collected text, to be appended to pending
	at      int    // offset of text
	last    time.Time
	timer   *time.Timer
	closed  bool

	partial  partial
	wanted   bool      // a replay is requested
	replayed time.Time // start of the last replay
	replay   replay
}

// start begins to accept replay requests and to send heartbeats.
func (l *live) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mask = NewKeyMask(l.e.keysOf(), l.publish)
	l.timer = time.AfterFunc(firstHeartbeat, l.tick)
	l.stop = l.e.g.options.Bus.OnReplay(l.e.tenant, l.e.labels.run, l.requestReplay)
}

// event receives an event from the tee. It runs in the copy loop.
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
	if len(l.pending) == 0 && len(l.text) == 0 {
		return // nobody listens
	}
	switch since := time.Since(l.last); {
	case since >= liveEvery:
		l.flush()
		l.schedule()
	case idle:
		l.timer.Reset(liveEvery - since)
	}
}

// publish receives an event that may be published.
func (l *live) publish(ev ibid.Event) {
	at := l.partial.record(&ev)
	switch {
	case !l.e.g.options.Bus.Listening(l.e.tenant, l.e.labels.run): // who begins to listen gets a replay
	case ev.Kind == ibid.EventText:
		if len(l.text) > 0 && (ev.At != l.at+len(l.text) || len(l.text)+len(ev.Text) > maxLiveText) {
			l.endText()
		}
		if len(l.text) == 0 {
			l.at = ev.At
		}
		l.text = append(l.text, ev.Text...)
	case l.isDeferred(ev.Kind, at):
	case ev.Kind == ibid.EventSource:
		l.endText()
		l.addSource(ev.Source)
	default:
		l.endText()
		l.addCitation(ev.Key, ev.Citation, ev.Withdrawn)
	}
}

// close publishes what is left, before the stored event.
func (l *live) close() {
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.timer.Stop()
	l.mask.End()
	for range maxLivePending / maxReplayPart { // the answer itself contains the rest
		l.flush()
	}
}

func (l *live) tick() {
	defer l.e.recoverPanic()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.wanted && time.Since(l.replayed) >= replayEvery {
		l.wanted, l.replayed = false, time.Now()
		if s := &l.partial; s.text.Len() == 0 && len(s.sources) == 0 && len(s.citations) == 0 {
			l.heartbeat()
		} else {
			l.flush()
			l.replay = replay{on: true}
			l.continueReplay()
		}
	}
	if len(l.pending) == 0 && len(l.text) == 0 && !l.replay.on && time.Since(l.last) >= heartbeatEvery {
		l.heartbeat()
	}
	l.flush()
	l.schedule()
}

// schedule arranges for tick to be called when pending deltas may be sent, a replay may begin, or a heartbeat is due.
func (l *live) schedule() {
	wait := heartbeatEvery
	switch {
	case l.replay.on || len(l.pending) > 0:
		wait = liveEvery
	case l.wanted:
		wait = max(0, replayEvery-time.Since(l.replayed))
	}
	l.timer.Reset(wait)
}

// endText appends the collected text to pending.
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
	row := LiveCitations{Key: key, Withdrawn: withdrawn, Citations: []ibid.DocumentCitation{}}
	at := l.at
	if c != nil && !withdrawn && len(l.pending) < maxLivePending {
		row.Citations = l.partial.rows(c)
		if c.Placed() {
			at = c.Span.End
		}
	}
	l.add(LiveCitation, at, row)
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

// flush publishes what is pending and prepares the next part of a replay.
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
	// firstHeartbeat is when the first heartbeat is sent for an answer of which nothing has arrived.
	firstHeartbeat = time.Second
	// heartbeatEvery is the interval between heartbeats of an answer that pauses.
	heartbeatEvery = 10 * time.Second
	// replayEvery is the interval between replays of one answer: listeners that ask earlier wait for the next one.
	replayEvery = 2 * time.Second
	// maxReplayPart is how many deltas of a replay are sent at once, so that no listener is dropped because of them.
	// Everything kept is sent within replayEvery.
	maxReplayPart = 128
	// maxLiveKept is how many bytes of one answer's text are kept for late listeners; those who missed more wait for
	// the answer.
	maxLiveKept = 512 << 10
	// maxLiveItems is how many sources, and how many citations, of one answer are kept. Rows of citations that refer to
	// further sources have no title or address.
	maxLiveItems = 1024
)

// partial is an answer that is still arriving. The zero value is ready to use.
type partial struct {
	text      strings.Builder // the text without gaps
	sources   []ibid.Source   // their latest state
	citations []liveCitation  // likewise
	sourceAt  map[string]int  // index by ID
	citedAt   map[string]int  // index by key
}

type liveCitation struct {
	key      string
	citation *ibid.Citation // nil if withdrawn
}

// record records an event and returns the index of its source or citation; -1 if there was no room or it is text.
func (s *partial) record(ev *ibid.Event) int {
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

// addOrReplace replaces the item of that name, or adds it if there is room, and returns its index, or -1.
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

// rows returns the rows of a citation as they will be in the document.
func (s *partial) rows(c *ibid.Citation) []ibid.DocumentCitation {
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

// replay is the progress of a replay.
type replay struct {
	on                 bool
	text               bool // the text was sent
	sources, citations int
}

// isDeferred reports whether the source or citation with index i is sent later, because a replay has not reached it yet
// or because too many deltas are pending.
func (l *live) isDeferred(kind ibid.EventKind, i int) bool {
	r := &l.replay
	if !r.on && i >= 0 && len(l.pending) >= maxReplayPart {
		*r = replay{on: true, text: true, sources: len(l.partial.sources), citations: len(l.partial.citations)}
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

// requestReplay requests a replay of the answer. The bus calls it when a listener joins.
func (l *live) requestReplay() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed && !l.wanted {
		l.wanted = true
		l.timer.Reset(max(0, replayEvery-time.Since(l.replayed)))
	}
}

// heartbeat tells listeners that the answer is still arriving.
func (l *live) heartbeat() { l.add(LiveText, l.partial.text.Len(), "") }

// continueReplay appends the next part of a replay to pending: the whole text first, because what follows refers to it,
// then the sources, then the citations.
func (l *live) continueReplay() {
	r := &l.replay
	if !r.on {
		return
	}
	if !r.text {
		r.text = true
		l.text, l.at = append(l.text, l.partial.text.String()...), 0
		l.endText()
	}
	for len(l.pending) < maxReplayPart {
		switch {
		case r.sources < len(l.partial.sources):
			l.addSource(&l.partial.sources[r.sources])
			r.sources++
		case r.citations < len(l.partial.citations):
			c := &l.partial.citations[r.citations]
			l.addCitation(c.key, c.citation, c.citation == nil)
			r.citations++
		default:
			r.on = false
			return
		}
	}
}
