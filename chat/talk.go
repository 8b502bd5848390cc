package chat

import (
	"cmp"
	"slices"
	"sync"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/uimessage"
)

// MaxTalk is how many bytes of text, sources and citations a talk holds for those who follow it. Whoever follows a
// longer one is told where the answer is kept; the call goes on.
const MaxTalk = 8 << 20

// Talk is a question on its way to its answer. Its methods may be called at the same time.
type Talk struct {
	AnswerID     string // under which the answer is kept
	Run          string
	Conversation string // empty: it is part of none

	tenant string
	model  string        // that was asked for
	stop   func()        // breaks the call off
	form   form          // that the asker chose
	begun  chan struct{} // closed when the provider has begun to answer, or will not
	done   chan struct{} // closed when nothing more comes
	known  bool          // it has begun, and its answer's id is known: talks guard it

	patience *patience

	numberOnce sync.Once
	numbers    ibid.Numbering // of the conversation, before this answer

	mu       sync.Mutex
	wake     chan struct{} // closed at the next change; nil: nobody waits
	refused  error         // why there is no answer: set before begun is closed
	draft    draft
	rewrites []rewrite
	marks    marks
	size     int
	large    bool // it holds no more: MaxTalk

	answer *ibid.Answer     // nil: it has not ended
	status uimessage.Status // of its citations
	late   *ibid.Answer     // with citations that came later; nil: there are none
	failed *ibid.ProviderError
	ended  bool
}

// rewrite is a correction of a part's text by the provider, and what there was before.
type rewrite struct {
	text  string
	parts []ibid.Part
	event ibid.Event
	shift int // by how much the text has grown
}

// marks are the sources and citations of an answer, as last told, and in which order they were.
type marks struct {
	at   map[markKey]int // place in list
	list []mark
	said []said
}

type markKey struct {
	kind ibid.EventKind
	key  string
}

type mark struct {
	event   ibid.Event
	version int
}

type said struct{ at, version int }

// add remembers a source or a citation, or what more is known of it.
func (m *marks) add(ev *ibid.Event) {
	key := markKey{ev.Kind, ev.Key}
	if ev.Kind == ibid.EventSource {
		key.key = ev.Source.ID
	}
	at, known := m.at[key]
	if !known {
		if m.at == nil {
			m.at = map[markKey]int{}
		}
		at = len(m.list)
		m.at[key] = at
		m.list = append(m.list, mark{})
	}
	m.list[at].event = *ev
	m.list[at].version++
	m.said = append(m.said, said{at, m.list[at].version})
}

// after appends what was said from place n on, each source and each citation once.
func (m *marks) after(n int, events []ibid.Event) []ibid.Event {
	for _, s := range m.said[n:] {
		if m.list[s.at].version == s.version {
			events = append(events, m.list[s.at].event)
		}
	}
	return events
}

// event takes what became known.
func (t *Talk) event(ev ibid.Event) {
	if ev.Candidate != 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.large {
		return
	}
	switch ev.Kind {
	case ibid.EventText:
		t.size += len(ev.Text)
		t.draft.text.WriteString(ev.Text)
	case ibid.EventPart:
		t.addPart(&ev)
	case ibid.EventSource, ibid.EventCitation:
		t.size += weight(&ev)
		t.marks.add(&ev)
	default:
		return // the answer tells
	}
	t.large = t.size > MaxTalk
	t.changed()
}

// weight returns about how many bytes an event holds.
func weight(ev *ibid.Event) int {
	const fixed = 512
	n := fixed
	if s := ev.Source; s != nil {
		n += len(s.Content) + len(s.Raw) + len(s.Title) + len(s.URL)
		for i := range s.Chunks {
			n += fixed/4 + len(s.Chunks[i].Content)
		}
	}
	if c := ev.Citation; c != nil {
		for i := range c.Refs {
			n += fixed/4 + len(c.Refs[i].Quote)
		}
	}
	return n
}

func (t *Talk) addPart(ev *ibid.Event) {
	switch {
	case ev.Part == nil:
	case ev.Corrected:
		t.correct(ev)
	default:
		t.size += 64
		t.draft.parts = append(t.draft.parts, *ev.Part)
	}
}

// correct puts another text in the place of a part's, and keeps what was there for those who are behind.
func (t *Talk) correct(ev *ibid.Event) {
	old := rewrite{text: t.draft.text.String(), parts: slices.Clone(t.draft.parts), event: *ev}
	var ok bool
	if old.shift, ok = t.draft.correct(ev); ok {
		t.rewrites = append(t.rewrites, old)
		t.size += len(old.text) + len(ev.Text)
	}
}

// changed wakes whoever follows.
func (t *Talk) changed() {
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// update changes the talk and wakes whoever follows.
func (t *Talk) update(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	t.changed()
}

// Done is closed when nothing more comes: the answer has ended, and nobody waits for citations any more.
func (t *Talk) Done() <-chan struct{} { return t.done }

// Answer returns the answer as far as it is known: whole once Done is closed. It must not be changed.
func (t *Talk) Answer() *ibid.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := cmp.Or(t.late, t.answer); a != nil {
		return a
	}
	a := &ibid.Answer{Text: t.draft.text.String(), Parts: slices.Clone(t.draft.parts)}
	for i := range a.Parts {
		a.Parts[i].End = t.draft.end(i)
	}
	for i := range t.marks.list {
		switch ev := &t.marks.list[i].event; {
		case ev.Kind == ibid.EventSource:
			a.Sources = append(a.Sources, *ev.Source)
		case ev.Citation != nil && !ev.Withdrawn && ev.Citation.Span.End <= len(a.Text):
			a.Citations = append(a.Citations, *ev.Citation)
		}
	}
	uimessage.SortCitations(a.Citations)
	return a
}

// Err returns why the answer is not whole, as far as it is known; nil: it is, or has not ended.
func (t *Talk) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused != nil {
		return t.refused
	}
	if t.failed != nil {
		return t.failed
	}
	return nil
}

// hasBegun reports whether begun is closed.
func (t *Talk) hasBegun() bool {
	select {
	case <-t.begun:
		return true
	default:
		return false
	}
}

// tooLarge says that those who follow hear no more.
func (t *Talk) tooLarge() *ibid.ProviderError {
	return &ibid.ProviderError{
		Code:    gateway.CodeTooLarge,
		Message: "the answer is too long to be told here; when it has ended it is at /v1/answers/" + t.AnswerID,
	}
}
