package gateway

import (
	"encoding/json"
	"slices"
	"strings"
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
	// maxLiveSources is of how many sources of one answer the citations tell title and address.
	maxLiveSources = 1024
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
	words   strings.Builder // the text from its beginning, as far as it was heard without a gap
	sources []ibid.Source   // as last told
}

// event takes what the tee found. It runs in the copy loop.
func (l *live) event(ev ibid.Event) {
	if ev.Candidate != 0 || !l.e.g.options.Bus.Listens(l.e.tenant, l.e.labels.run) {
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
	defer l.e.survive()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.flush()
	}
}

func (l *live) addText(text string, at int) {
	if at == l.words.Len() {
		l.words.WriteString(text)
	}
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
	l.know(s)
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
	if c := ev.Citation; c != nil && !ev.Withdrawn && len(l.pending) < maxLivePending {
		said.Citations = l.rows(c)
		if c.Placed() {
			at = c.Span.End
		}
	}
	l.add(LiveCitation, at, said)
}

// rows returns the rows of a citation as the document will have them, as far as somebody listened while what they refer to
// came.
func (l *live) rows(c *ibid.Citation) []ibid.DocumentCitation {
	known := ibid.Answer{Text: l.words.String(), Sources: l.sources}
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

// know remembers a source, for the citations that name it.
func (l *live) know(s *ibid.Source) {
	at := slices.IndexFunc(l.sources, func(known ibid.Source) bool { return known.ID == s.ID })
	brief := ibid.Source{ID: s.ID, Title: s.Title, URL: s.URL}
	switch {
	case at >= 0:
		l.sources[at] = brief
	case len(l.sources) < maxLiveSources:
		l.sources = append(l.sources, brief)
	}
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
	l.pending = append(l.pending, bus.Live{Kind: kind, AnswerID: l.e.answerID, Step: l.e.labels.step.Number, At: at, Data: b})
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
		l.e.g.options.Bus.Tell(l.e.tenant, l.e.labels.run, m)
	}
	clear(l.pending)
	l.pending = l.pending[:0]
}
