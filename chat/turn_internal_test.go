package chat

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
)

// seen is what a follower was sent, put together.
type seen struct {
	draft   draft
	marks   map[string]ibid.Event
	acts    []activity // At: the length of the text when each was first sent
	answers int
}

func (s *seen) take(t *testing.T, n *news) {
	t.Helper()
	for i := range n.events {
		switch ev := &n.events[i]; {
		case ev.Kind == ibid.EventText:
			if ev.At != s.draft.text.Len() || ev.Text == "" {
				t.Fatalf("text at %d, want %d", ev.At, s.draft.text.Len())
			}
			s.draft.text.WriteString(ev.Text)
		case ev.Kind == ibid.EventPart && ev.Corrected:
			if _, ok := s.draft.correct(ev); !ok {
				t.Fatalf("a correction of a part that was not sent: %+v", ev.Part)
			}
		case ev.Kind == ibid.EventPart:
			if ev.Part.Start != s.draft.text.Len() {
				t.Fatalf("part at %d, want %d", ev.Part.Start, s.draft.text.Len())
			}
			s.draft.parts = append(s.draft.parts, *ev.Part)
		case ev.Kind == ibid.EventSource:
			s.marks["source "+ev.Source.ID] = *ev
		case ev.Kind == ibid.EventActivity:
			s.takeActivity(t, ev)
		default:
			s.marks["citation "+ev.Key] = *ev
		}
	}
	if n.answer != nil {
		s.answers++
	}
}

func (s *seen) takeActivity(t *testing.T, ev *ibid.Event) {
	t.Helper()
	if ev.Index == len(s.acts) && ev.Activity != nil {
		s.acts = append(s.acts, activity{})
		s.acts[ev.Index].At = s.draft.text.Len()
	} else if ev.Index >= len(s.acts) {
		t.Fatalf("activity %d of %d", ev.Index, len(s.acts))
	}
	a := &s.acts[ev.Index]
	a.text = append(a.text, ev.Text...)
	a.Input = ev.Activity.Input
}

// Whenever a follower comes, and however rarely it reads, it is sent the same in the end.
func TestFollowers(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		turn := &Turn{}
		var followers []*follower
		var all []*seen
		for i := range 60 {
			turn.event(randomEvent(r, turn, i))
			if r.IntN(10) == 0 {
				followers, all = append(followers, turn.newFollower()), append(all, &seen{marks: map[string]ibid.Event{}})
			}
			for k, f := range followers {
				if n, _ := f.collect(); r.IntN(3) == 0 && n != nil {
					all[k].take(t, n)
				} else if n != nil { // it did not read: give it back
					followers[k] = turn.newFollower()
					all[k] = &seen{marks: map[string]ibid.Event{}}
				}
			}
		}
		followers, all = append(followers, turn.newFollower()), append(all, &seen{marks: map[string]ibid.Event{}})
		turn.update(func() { turn.answer, turn.ended = &ibid.Answer{}, true })
		want := map[string]ibid.Event{}
		for i := range turn.marks.list {
			ev := turn.marks.list[i].event
			name := "citation " + ev.Key
			if ev.Kind == ibid.EventSource {
				name = "source " + ev.Source.ID
			}
			want[name] = ev
		}
		for k, f := range followers {
			n, _ := f.collect()
			if n == nil || !n.ended {
				t.Fatalf("seed %d: no end", seed)
			}
			all[k].take(t, n)
			if len(all[k].acts) != len(turn.acts) {
				t.Fatalf("seed %d: %d activities, want %d", seed, len(all[k].acts), len(turn.acts))
			}
			for i := range turn.acts {
				got, want := &all[k].acts[i], &turn.acts[i]
				if string(got.text) != string(want.text) || string(got.Input) != string(want.Input) ||
					len(turn.rewrites) == 0 && got.At != want.At {
					t.Fatalf("seed %d: activity %d: %+v, want %+v", seed, i, got, want)
				}
			}
			if got, text := all[k].draft.text.String(), turn.draft.text.String(); got != text {
				t.Fatalf("seed %d: %q, want %q", seed, got, text)
			}
			if diff := cmp.Diff(want, all[k].marks); diff != "" || all[k].answers != 1 || len(all[k].draft.parts) != len(turn.draft.parts) {
				t.Fatalf("seed %d: %d answers\n%s", seed, all[k].answers, diff)
			}
		}
	}
}

func randomEvent(r *rand.Rand, t *Turn, i int) ibid.Event {
	d := &t.draft
	part := func() *ibid.Part {
		return &ibid.Part{Span: ibid.Span{Start: d.text.Len(), End: d.text.Len()}, Kind: ibid.AnswerPart, Message: i}
	}
	switch n := r.IntN(13); {
	case n == 10 && i > 0:
		return ibid.Event{Kind: ibid.EventActivity, Index: len(t.acts), Text: "thinks", Activity: &ibid.Activity{
			Kind: ibid.ReasoningActivity, At: d.text.Len(),
		}}
	case n > 10 && len(t.acts) > 0:
		a := t.acts[r.IntN(len(t.acts))].Activity
		a.Input = []byte(fmt.Sprint(i))
		index := r.IntN(len(t.acts))
		a.At = t.acts[index].At
		return ibid.Event{Kind: ibid.EventActivity, Index: index, Activity: &a, Text: fmt.Sprint(i)}
	case i == 0 || n == 0:
		return ibid.Event{Kind: ibid.EventPart, Part: part()}
	case n == 1 && d.text.Len() > 0:
		p := d.parts[r.IntN(len(d.parts))]
		text := strings.Repeat("é", r.IntN(4))
		p.End = p.Start + len(text)
		return ibid.Event{Kind: ibid.EventPart, Part: &p, Corrected: true, Text: text, At: p.Start}
	case n == 2:
		return ibid.Event{Kind: ibid.EventSource, Source: &ibid.Source{ID: fmt.Sprint(r.IntN(4)), Title: fmt.Sprint(i)}}
	case n <= 4:
		return ibid.Event{Kind: ibid.EventCitation, Key: fmt.Sprint(r.IntN(5)), Withdrawn: r.IntN(3) == 0, Citation: &ibid.Citation{ID: fmt.Sprint(i)}}
	}
	return ibid.Event{Kind: ibid.EventText, Text: strings.Repeat("x", 1+r.IntN(3)), At: d.text.Len()}
}

// If nothing is new for a while, the follower is told so, so that the stream can be kept alive.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := &Turn{}
		f := turn.newFollower()
		begun := time.Now()
		n, err := f.next(t.Context())
		if err != nil || !n.idle || time.Since(begun) != pingEvery {
			t.Errorf("%+v, %v after %v", n, err, time.Since(begun))
		}
		go func() {
			time.Sleep(time.Second) // in a synctest bubble
			turn.event(ibid.Event{Kind: ibid.EventText, Text: "x"})
		}()
		if n, err = f.next(t.Context()); err != nil || len(n.events) != 1 {
			t.Errorf("%+v, %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := f.next(ctx); err == nil {
			t.Error("a client that left is sent something")
		}
	})
}

// A provider may be silent for a while, and for a shorter one without followers. Anything it sends resets the timer.
func TestIdleTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ended := make(chan time.Duration, 1)
		p := newIdleTimer(maxSilence, func() { ended <- time.Since(begun) })
		time.Sleep(maxSilence - time.Second) // in a synctest bubble
		p.hear()
		p.addFollowers(1)
		p.addFollowers(-1)
		time.Sleep(maxSilenceAlone + time.Second)
		p.hear()
		p.addFollowers(-1)
		if got, want := <-ended, maxSilence+2*maxSilenceAlone; got != want {
			t.Errorf("ended after %v, want %v", got, want)
		}
		p.addFollowers(-1)
		p.stop()
		left := newIdleTimer(maxSilence, func() { t.Error("a finished call was ended") })
		left.stop()
		time.Sleep(2 * maxSilence)
	})
}
