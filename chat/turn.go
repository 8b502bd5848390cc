package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/store"
)

// MaxTurn is how many bytes of text, sources and citations a turn holds for its followers. The followers of a larger
// one are told where the answer is stored; the call goes on.
const MaxTurn = 8 << 20

// Turn is a question and its answer as it arrives. Its methods may be called concurrently.
type Turn struct {
	AnswerID     string // under which the answer is stored; empty if it is not
	Run          string
	Conversation string // empty if it belongs to none

	tenant   string
	upstream string // that was asked
	model    string // that was asked for
	prompt   []store.Message
	follows  *string // as in [store.Call]
	asked    time.Time
	stop     func()        // aborts the call
	leave    func()        // frees the slot of its tenant: owned by turns
	form     form          // that the client chose
	begun    chan struct{} // closed when the provider has begun to answer, or failed to
	done     chan struct{} // closed when nothing more follows
	known    bool          // its answer has begun, so that its id is known: guarded by turns

	idle *idleTimer

	numberOnce sync.Once
	numbers    ibid.Numbering // of the conversation, before this answer

	mu       sync.Mutex
	wake     chan struct{} // closed at the next change; nil if no one waits
	refused  error         // why there is no answer: set before begun is closed
	draft    draft
	queries  []string
	rewrites []rewrite
	marks    marks
	acts     []activity
	size     int
	large    bool // it holds no more: MaxTurn

	answer *ibid.Answer     // nil until it has ended
	status uimessage.Status // of its citations
	late   *ibid.Answer     // with late citations; nil if there are none
	failed *ibid.ProviderError
	cut    error // a problem: the answer was larger than ibid reads, or than there was memory for
	ended  bool
}

// rewrite is a correction of a part's text by the provider, and the text before it.
type rewrite struct {
	text  string
	parts []ibid.Part
	event ibid.Event
	shift int // by how much the text has grown
}

// activity is the current state of one of the answer's activities.
type activity struct {
	ibid.Activity // without its Text

	text    []byte // of reasoning, or of the JSON of an input
	version int
}

// addActivity records what is new about an activity.
func (t *Turn) addActivity(ev *ibid.Event) {
	switch {
	case ev.Index > len(t.acts) || ev.Index == len(t.acts) && ev.Activity == nil:
		return
	case ev.Index == len(t.acts):
		t.acts = append(t.acts, activity{})
		t.size += 256
	}
	a := &t.acts[ev.Index]
	a.version++
	a.text = append(a.text, ev.Text...)
	t.size += len(ev.Text)
	if ev.Activity != nil {
		t.size += len(ev.Activity.Input) - len(a.Input) + len(ev.Activity.Output) - len(a.Output)
		at := a.At // a correction may have moved it
		if a.Activity = *ev.Activity; a.version > 1 {
			a.At = at
		}
	}
}

// marks are the latest versions of an answer's sources and citations, and the order in which they were sent.
type marks struct {
	at       map[markKey]int // place in list
	list     []mark
	mentions []mention
}

type markKey struct {
	kind ibid.EventKind
	key  string
}

type mark struct {
	event   ibid.Event
	version int
}

// fits reports whether the latest version of a mark can be sent after that many bytes of text.
func (m *mark) fits(text int) bool {
	c := m.event.Citation
	return c == nil || !c.Placed() || c.Span.End <= text && c.Claim.End <= text
}

// mention records that a source or citation was sent, and after how many bytes of text.
type mention struct{ at, version, text int }

// add records a source or citation that was sent after so much text, or a new version of it.
func (m *marks) add(ev *ibid.Event, text int) {
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
	m.mentions = append(m.mentions, mention{at, m.list[at].version, text})
}

// event records an event.
func (t *Turn) event(ev ibid.Event) {
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
		switch {
		case ev.Part == nil:
		case ev.Corrected:
			t.correct(&ev)
		default:
			t.size += 64
			t.draft.parts = append(t.draft.parts, *ev.Part)
		}
	case ibid.EventSource, ibid.EventCitation:
		t.size += weight(&ev)
		t.marks.add(&ev, t.draft.text.Len())
	case ibid.EventActivity:
		t.addActivity(&ev)
	case ibid.EventQuery:
		t.size += len(ev.Query)
		t.queries = append(t.queries, ev.Query)
	default:
		return // the answer has it
	}
	t.large = t.size > MaxTurn
	t.changed()
}

// weight returns the approximate size of an event in bytes.
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

// correct replaces the text of a part, and keeps the old text for followers who are behind.
func (t *Turn) correct(ev *ibid.Event) {
	old := rewrite{text: t.draft.text.String(), parts: slices.Clone(t.draft.parts), event: *ev}
	var ok bool
	if old.shift, ok = t.draft.correct(ev); ok {
		for i := range t.acts {
			switch a := &t.acts[i]; {
			case a.At >= ev.Part.End-old.shift:
				a.At += old.shift
			case a.At > ev.Part.Start:
				a.At = ev.Part.End
			}
		}
		t.rewrites = append(t.rewrites, old)
		t.size += len(old.text) + len(ev.Text)
	}
}

// changed wakes all followers.
func (t *Turn) changed() {
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// update changes the turn and wakes all followers.
func (t *Turn) update(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
	t.changed()
}

// Done is closed when nothing more follows: the answer has ended, and late citations are no longer awaited.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Answer returns what is known of the answer: all of it once Done is closed. It must not be changed.
func (t *Turn) Answer() *ibid.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a := cmp.Or(t.late, t.answer); a != nil {
		return a
	}
	a := &ibid.Answer{Text: t.draft.text.String(), Parts: slices.Clone(t.draft.parts), Queries: slices.Clone(t.queries)}
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

// Err returns why the answer is not complete, as far as is known; nil if it is, or has not ended.
func (t *Turn) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused == nil && t.failed != nil {
		return t.failed
	}
	return t.refused
}

// MaxTurns is how many turns a tenant may have open on one node.
const MaxTurns = 256

// turnKey identifies a turn: by its conversation, or by its answer.
type turnKey struct{ tenant, id string }

// turns are the turns that have not ended.
type turns struct {
	mu     sync.Mutex
	by     map[turnKey][]*Turn // those that have begun are in the order in which they did
	open   httpx.Quota         // of each tenant
	closed bool
}

// add registers a turn.
func (l *turns) add(t *Turn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return gateway.Unavailable("ibid is shutting down")
	}
	var ok bool
	if t.leave, ok = l.open.Take(t.tenant); !ok {
		return gateway.TooMany(2*time.Second, fmt.Sprintf("%d questions are being answered already", MaxTurns),
			"wait for one of them, or end it: DELETE /v1/chat/{id}/stream")
	}
	if l.by == nil {
		l.by = map[turnKey][]*Turn{}
	}
	if t.Conversation != "" {
		l.addName(t, t.Conversation)
	}
	return nil
}

func (l *turns) addName(t *Turn, id string) {
	key := turnKey{t.tenant, id}
	l.by[key] = append(l.by[key], t)
}

func (l *turns) removeName(t *Turn, id string) {
	key := turnKey{t.tenant, id}
	l.by[key] = slices.DeleteFunc(l.by[key], func(other *Turn) bool { return other == t })
	if len(l.by[key]) == 0 {
		delete(l.by, key)
	}
}

// markBegun makes a turn the current one of its conversation, and registers its answer's id.
func (l *turns) markBegun(t *Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.known = true
	l.addName(t, t.AnswerID)
	if t.Conversation != "" {
		l.removeName(t, t.Conversation)
		l.addName(t, t.Conversation)
	}
}

// end removes a turn that has ended.
func (l *turns) end(t *Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.leave()
	l.removeName(t, t.Conversation)
	l.removeName(t, t.AnswerID)
}

// find returns the turn of a conversation or an answer: if there are several, the one that began last, or if none has
// begun the newest. It returns nil if there is none.
func (l *turns) find(tenant, id string) *Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.by[turnKey{tenant, id}]
	for _, t := range slices.Backward(list) {
		if t.known {
			return t
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// Pending returns the calls of a conversation that are being answered, as they will be stored but without their
// answers, in the order in which they were asked. A call whose answer has not begun has no AnswerID.
func (c *Chat) Pending(tenant, conversation string) []*store.Call {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	var list []*store.Call
	for _, t := range c.turns.by[turnKey{tenant, conversation}] {
		if t.Conversation != conversation { // it is listed by its answer
			continue
		}
		call := &store.Call{
			Tenant: tenant, Conversation: conversation, Prompt: t.prompt, Started: t.asked, Follows: t.follows,
		}
		if t.known {
			call.AnswerID = t.AnswerID
		}
		list = append(list, call)
	}
	slices.SortStableFunc(list, func(a, b *store.Call) int { return a.Started.Compare(b.Started) })
	return list
}

// all returns the turns of a conversation or an answer.
func (l *turns) all(tenant, id string) []*Turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.by[turnKey{tenant, id}])
}

// close makes add fail.
func (l *turns) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// follower is a position in a turn. The zero value, with the turn set, is its beginning in its current state: text and
// marks once each, however often they changed before.
type follower struct {
	t *Turn

	text, parts, rewrites, mentions int // how much of each was sent
	acts                            []sentActivity
	answered, late                  bool
}

// sentActivity is how much of an activity was sent.
type sentActivity struct{ version, text int }

// newFollower returns a follower at the beginning.
func (t *Turn) newFollower() *follower {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &follower{t: t, rewrites: len(t.rewrites)}
}

// news is what a turn has for a follower, in the order of the fields. Sources and citations are in between the pieces
// of text after which they were sent, so that a mark can be placed where a citation arrives.
type news struct {
	events []ibid.Event
	answer *ibid.Answer // the answer has ended
	late   *ibid.Answer // citations came later
	status uimessage.Status
	failed *ibid.ProviderError
	ended  bool // nothing more follows
	idle   bool // there was nothing new for a while
}

// next waits for news. It returns idle news after pingEvery without any, and the error of ctx.
func (f *follower) next(ctx context.Context) (*news, error) {
	var timer *time.Timer
	for {
		n, wake := f.collect()
		if n != nil {
			return n, nil
		}
		if timer == nil {
			timer = time.NewTimer(pingEvery)
			defer timer.Stop()
		}
		select {
		case <-wake:
		case <-timer.C:
			return &news{idle: true}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// collect returns the news, or a channel that is closed when there are any.
func (f *follower) collect() (*news, <-chan struct{}) {
	t := f.t
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &news{}
	if t.large { // followers are sent nothing more
		n.ended, n.failed = true, &ibid.ProviderError{
			Code:    gateway.CodeTooLarge,
			Message: "the answer is too long to be sent here; when it has ended it is at /v1/answers/" + t.AnswerID,
		}
		return n, nil
	}
	for i := range f.acts { // before text, which ends reasoning
		n.events = f.appendActivity(n.events, i)
	}
	for f.rewrites < len(t.rewrites) {
		r := &t.rewrites[f.rewrites]
		f.rewrites++
		n.events = f.appendText(n.events, r.text, r.parts, nil)
		n.events = append(n.events, r.event)
		f.text += r.shift
	}
	text := t.draft.text.String()
	sent := map[int]bool{}
	for _, s := range t.marks.mentions[f.mentions:] {
		m := &t.marks.list[s.at]
		if sent[s.at] || m.version != s.version && !m.fits(s.text) {
			continue
		}
		sent[s.at] = true
		n.events = f.appendText(n.events, text[:min(s.text, len(text))], t.draft.parts, t.acts)
		n.events = append(n.events, m.event)
	}
	f.mentions = len(t.marks.mentions)
	n.events = f.appendText(n.events, text, t.draft.parts, t.acts)
	if t.answer != nil && !f.answered {
		f.answered = true
		n.answer, n.status = t.answer, t.status
	}
	if t.late != nil && !f.late {
		f.late = true
		n.late = t.late
	}
	if t.ended {
		n.failed, n.ended = t.failed, true
	}
	if len(n.events) > 0 || n.answer != nil || n.late != nil || n.ended {
		return n, nil
	}
	if t.wake == nil {
		t.wake = make(chan struct{})
	}
	return nil, t.wake
}

// appendActivity appends what is new about an activity: one already sent, or the next.
func (f *follower) appendActivity(events []ibid.Event, i int) []ibid.Event {
	a := &f.t.acts[i]
	if i == len(f.acts) {
		f.acts = append(f.acts, sentActivity{})
	}
	sent := &f.acts[i]
	if sent.version == a.version {
		return events
	}
	known := a.Activity
	ev := ibid.Event{Kind: ibid.EventActivity, Index: i, Activity: &known, Text: string(a.text[sent.text:])}
	*sent = sentActivity{a.version, len(a.text)}
	return append(events, ev)
}

// appendText appends what is new in a text, with its parts and the activities within it.
func (f *follower) appendText(events []ibid.Event, text string, parts []ibid.Part, acts []activity) []ibid.Event {
	for {
		end := len(text)
		if next := len(f.acts); next < len(acts) {
			if acts[next].At <= f.text {
				events = f.appendActivity(events, next)
				continue
			}
			end = min(end, acts[next].At)
		}
		if f.parts < len(parts) {
			end = min(end, max(parts[f.parts].Start, f.text))
		}
		if f.text < end {
			events = append(events, ibid.Event{Kind: ibid.EventText, Text: text[f.text:end], At: f.text})
			f.text = end
			continue
		}
		if f.parts >= len(parts) || parts[f.parts].Start > len(text) {
			return events
		}
		part := parts[f.parts]
		part.End = part.Start
		f.parts++
		events = append(events, ibid.Event{Kind: ibid.EventPart, Part: &part})
	}
}
