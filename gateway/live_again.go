package gateway

import (
	"strings"
	"time"

	"github.com/ibidhq/ibid"
)

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

func (s *soFar) empty() bool {
	return s.text.Len() == 0 && len(s.sources) == 0 && len(s.citations) == 0
}

// keep notes what is told, and returns which source or citation it is; -1: there was no room, or it is text.
func (s *soFar) keep(ev *ibid.Event) int {
	switch ev.Kind {
	case ibid.EventText:
		if ev.At == s.text.Len() && ev.At+len(ev.Text) <= maxLiveKept {
			s.text.WriteString(ev.Text)
		}
	case ibid.EventSource:
		return put(&s.sources, &s.sourceAt, ev.Source.ID, *ev.Source)
	case ibid.EventCitation:
		c := liveCitation{ev.Key, ev.Citation}
		if ev.Withdrawn {
			c.citation = nil
		}
		return put(&s.citations, &s.citedAt, ev.Key, c)
	default:
	}
	return -1
}

// put replaces the item of that name, or adds it if there is room, and returns which it is.
func put[T any](items *[]T, at *map[string]int, name string, item T) int {
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

// startReplay begins to send the answer again from its beginning.
func (l *live) startReplay() {
	l.wanted, l.replayed = false, time.Now()
	if l.soFar.empty() {
		l.sayAlive()
		return
	}
	l.flush()
	l.replay = replay{on: true}
	l.continueReplay()
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
