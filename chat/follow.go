package chat

import (
	"context"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/uimessage"
)

// follower is a place in what a talk tells. The zero value of all but its talk is its beginning, as it is known now:
// text and marks once each, however often they changed until then.
type follower struct {
	t *Talk

	text, parts, rewrites, said int // how much of each was told
	answered, late              bool
}

// follow returns a follower at the beginning.
func (t *Talk) follow() *follower {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &follower{t: t, rewrites: len(t.rewrites)}
}

// news is what a talk tells at a time, in the order of the fields.
type news struct {
	events []ibid.Event
	answer *ibid.Answer // the answer has ended
	late   *ibid.Answer // citations came later
	status uimessage.Status
	failed *ibid.ProviderError
	ended  bool // nothing more comes
	idle   bool // there was nothing to tell for a time
}

// next waits for news. It returns idle news when there were none for pingEvery, and the error of ctx.
func (f *follower) next(ctx context.Context) (*news, error) {
	var timer *time.Timer
	for {
		n, wake := f.take()
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

// take returns the news, or a channel that is closed when there are some.
func (f *follower) take() (*news, <-chan struct{}) {
	t := f.t
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &news{}
	if t.large {
		n.failed, n.ended = t.tooLarge(), true
		return n, nil
	}
	for f.rewrites < len(t.rewrites) {
		r := &t.rewrites[f.rewrites]
		f.rewrites++
		n.events = f.tellText(n.events, r.text, r.parts)
		n.events = append(n.events, r.event)
		f.text += r.shift
	}
	n.events = f.tellText(n.events, t.draft.text.String(), t.draft.parts)
	n.events = t.marks.after(f.said, n.events)
	f.said = len(t.marks.said)
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

// tellText appends what is new of a text and its parts.
func (f *follower) tellText(events []ibid.Event, text string, parts []ibid.Part) []ibid.Event {
	for {
		end := len(text)
		if f.parts < len(parts) {
			end = min(end, max(parts[f.parts].Start, f.text))
		}
		if f.text < end {
			events = append(events, ibid.Event{Kind: ibid.EventText, Text: text[f.text:end], At: f.text})
			f.text = end
		}
		if f.parts >= len(parts) {
			return events
		}
		part := parts[f.parts]
		part.End = part.Start
		f.parts++
		events = append(events, ibid.Event{Kind: ibid.EventPart, Part: &part})
	}
}
