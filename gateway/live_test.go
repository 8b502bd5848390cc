package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A listener to a run receives the text while it arrives, and its sources and citations, in order.
func TestLive(t *testing.T) {
	s := newStepwise(t, "openai")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	listener := testenv.Must(s.bus.Listen(ctx, store.DefaultTenant, "run-1"))(t)
	defer listener.Close()
	s.call(t, chat, "Ibid-Step", "4")
	parts := chatParts("So ", "it ", "is. ", "Grüße")
	id := s.end(slices.Insert(parts, 4, citedPart(0, 2))...)

	var text, kinds strings.Builder
	var source struct{ Title, URL string }
	var last bus.Live
	var rows []ibid.DocumentCitation
	for last.Kind != "end" {
		select {
		case m := <-listener.C:
			if m.Event != nil {
				t.Errorf("event without relay: %+v", m.Event)
			}
			if m.Live == nil {
				continue
			}
			if last = *m.Live; last.AnswerID != id || last.Step != 4 {
				t.Errorf("delta of %s, step %d", last.AnswerID, last.Step)
			}
			switch last.Kind {
			case gateway.LiveText:
				var s string
				if err := json.Unmarshal(last.Data, &s); err != nil || last.At != text.Len() {
					t.Fatalf("text at %d, expected %d: %v", last.At, text.Len(), err)
				}
				text.WriteString(s)
			case gateway.LiveSource:
				testenv.OK(t, json.Unmarshal(last.Data, &source))
				kinds.WriteString("source ")
			case gateway.LiveCitation:
				var c gateway.LiveCitations
				if err := json.Unmarshal(last.Data, &c); err != nil || len(c.Citations) != 1 || *c.Citations[0].TextEnd != 2 || last.At != 2 {
					t.Fatalf("citation %s: %v", last.Data, err)
				}
				rows = c.Citations
				kinds.WriteString("citation ")
			}
			if text.String() == "So it is. Grüße" && strings.HasPrefix(kinds.String(), "source citation ") {
				last.Kind = "end"
			}
		case <-ctx.Done():
			t.Fatalf("got %q and %s", text.String(), kinds.String())
		}
	}
	testenv.Equal(t, "source", struct{ Title, URL string }{"A", "https://example.com/0"}, source)
	want := s.w.stored(t, id).Answer.Document(nil).Citations // the stored answer has them all, and what is only known at the end
	if diff := cmp.Diff(want, rows, cmpopts.IgnoreFields(ibid.DocumentCitation{}, "ID", "Group", "Index")); diff != "" || rows[0].ID != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := s.w.metric(t, "live_dropped_total"); n != 0 {
		t.Errorf("%v were dropped", n)
	}
}

// The event of a stored answer is sent over the bus once the indexer is done with it.
func TestEvent(t *testing.T) {
	b := openBus(t)
	w := newWorld(t, answerJSON(chatBody("So it is.")), &setup{options: gateway.Options{Bus: b}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	relayed := make(chan error)
	go func() { relayed <- b.Relay(ctx, w.store) }()
	defer func() {
		cancel()
		<-relayed
	}()
	listener := testenv.Must(b.Listen(ctx, store.DefaultTenant, "run-1"))(t)
	defer listener.Close()
	res, _ := w.ask(t, http.Header{"Ibid-Run": {"run-1"}})
	for {
		select {
		case m := <-listener.C:
			if m.Event == nil {
				continue
			}
			if m.Event.Kind != "answer" || !strings.Contains(string(m.Event.Data), res.Header.Get("Ibid-Answer")) {
				t.Errorf("event %s %s", m.Event.Kind, m.Event.Data)
			}
			return
		case <-ctx.Done():
			t.Fatal("no event")
		}
	}
}

// lateReader is a listener that applies deltas as docs/events.md specifies. What arrives waits in heard, so that a slow
// test (under the race detector, say) is not dropped.
type lateReader struct {
	*bus.Listener
	heard   chan bus.Message
	text    string
	sources map[string]string
	cited   map[string][]string
}

// hear listens until the text has arrived, with as many sources and citations.
func (h *lateReader) hear(t *testing.T, text string, sources, citations int) {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for h.text != text || len(h.sources) != sources || len(h.cited) != citations {
		select {
		case m, open := <-h.heard:
			if !open {
				t.Fatal("the listener was dropped")
			}
			if m.Live != nil {
				h.take(t, m.Live)
			}
		case <-late.C:
			t.Fatalf("heard %d bytes of %d, %d of %d sources, %d of %d citations",
				len(h.text), len(text), len(h.sources), sources, len(h.cited), citations)
		}
	}
}

func (h *lateReader) take(t *testing.T, m *bus.Live) {
	t.Helper()
	switch m.Kind {
	case gateway.LiveText:
		var s string
		testenv.OK(t, json.Unmarshal(m.Data, &s))
		if m.At > len(h.text) {
			return // earlier text is still to come
		}
		if known := min(len(s), len(h.text)-m.At); h.text[m.At:m.At+known] != s[:known] {
			t.Fatalf("at %d, %q was %q", m.At, s[:known], h.text[m.At:m.At+known])
		}
		if end := m.At + len(s); end > len(h.text) {
			h.text += s[len(h.text)-m.At:]
		}
	case gateway.LiveSource:
		var s ibid.DocumentSource
		testenv.OK(t, json.Unmarshal(m.Data, &s))
		h.sources[s.ID] = *s.URL + " " + *s.Title
	case gateway.LiveCitation:
		var c gateway.LiveCitations
		testenv.OK(t, json.Unmarshal(m.Data, &c))
		h.cited[c.Key] = nil
		for _, row := range c.Citations {
			h.cited[c.Key] = append(h.cited[c.Key], fmt.Sprint(row.SourceID, *row.TextStart, *row.TextEnd))
		}
	}
}

// stepwise is a gateway whose upstream sends what the test tells it to.
type stepwise struct {
	bus    *bus.Bus
	next   chan string
	w      *world
	answer chan string // its id, once the client has read it; closed when the call has ended
	read   readSoFar   // by the client
}

// readSoFar is what a client has read.
type readSoFar struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends to it.
func (r *readSoFar) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// has reports whether it has s.
func (r *readSoFar) has(s string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.text.Bytes(), []byte(s))
}

func newStepwise(t *testing.T, provider string) *stepwise {
	t.Helper()
	s := &stepwise{bus: openBus(t), next: make(chan string), answer: make(chan string, 1)}
	s.w = newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case <-r.Context().Done():
				return
			case part, more := <-s.next:
				if !more {
					return
				}
				fmt.Fprint(w, part)
				flush(w)
			}
		}
	}, &setup{provider: provider, options: gateway.Options{Bus: s.bus}})
	return s
}

// call makes a call in run-1, and returns when its response has begun.
func (s *stepwise) call(t *testing.T, path string, fields ...string) {
	t.Helper()
	r := s.w.request(t, "POST", path, strings.NewReader(chatRequest))
	r.Header.Set("Ibid-Run", "run-1")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		for range s.answer { // until the call has ended
		}
	})
	begun := make(chan struct{})
	go func() {
		defer close(s.answer)
		res, err := s.w.client.Do(r.WithContext(ctx))
		if err != nil {
			t.Error(err)
			return
		}
		close(begun)
		_, _ = io.Copy(&s.read, res.Body)
		_ = res.Body.Close()
		s.answer <- res.Header.Get("Ibid-Answer")
	}()
	s.next <- ": the upstream is there\n\n"
	<-begun
}

func (s *stepwise) listen(t *testing.T) *lateReader {
	t.Helper()
	l := testenv.Must(s.bus.Listen(t.Context(), store.DefaultTenant, "run-1"))(t)
	t.Cleanup(l.Close)
	heard := make(chan bus.Message, 100*bus.MaxBehind)
	go func() {
		defer close(heard)
		for m := range l.C {
			heard <- m
		}
	}()
	return &lateReader{Listener: l, heard: heard, sources: map[string]string{}, cited: map[string][]string{}}
}

// end makes the upstream send the rest, and returns the answer's id.
func (s *stepwise) end(parts ...string) string {
	for _, part := range parts {
		s.next <- part
	}
	close(s.next)
	return <-s.answer
}

func citedPart(n, end int) string {
	return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation",`+
		`"url_citation":{"start_index":0,"end_index":%d,"url":"https://example.com/%d","title":"A"}}]}}]}`+"\n\n", end, n)
}

// A listener that joins in the middle of an answer receives what was sent before, even while the answer pauses, and
// even if others are listening already; these miss nothing, and what they receive again is what they know.
func TestLiveLate(t *testing.T) {
	s := newStepwise(t, "openai")
	s.call(t, chat)
	early := s.listen(t)
	for said := false; !said; {
		select {
		case m := <-early.heard:
			said = m.Live != nil && m.Live.Kind == gateway.LiveText && string(m.Live.Data) == `""`
		case <-time.After(20 * time.Second):
			t.Fatal("no heartbeat")
		}
	}
	early.Close()
	parts := chatParts("Herons ", "nest ", "in ", "trees. ", "Grüße", " of the end")
	for _, part := range parts[:3] {
		s.next <- part
	}
	s.next <- citedPart(1, 6)
	s.next <- ": and pauses\n\n"
	first := s.listen(t)
	first.hear(t, "Herons nest in ", 1, 0)
	second := s.listen(t)
	s.next <- parts[3]
	s.next <- citedPart(2, 6)
	second.hear(t, "Herons nest in trees. ", 2, 0)
	first.hear(t, "Herons nest in trees. ", 2, 0)
	first.Close()
	second.Close()
	s.next <- parts[4]
	third := s.listen(t)
	third.hear(t, "Herons nest in trees. Grüße", 2, 0)
	s.end(parts[5:]...)
	third.hear(t, "Herons nest in trees. Grüße of the end", 2, 2)
	for key, rows := range third.cited {
		if len(rows) != 1 {
			t.Errorf("citation %s has the rows %q", key, rows)
		}
	}
	if diff := cmp.Diff(first.sources, third.sources); diff != "" {
		t.Errorf("sources (-first +third):\n%s", diff)
	}
	if n := s.w.metric(t, "live_dropped_total"); n != 0 {
		t.Errorf("%v were dropped", n)
	}
}

// An answer with many sources and citations is sent in parts that a listener can take; one that is too long for that,
// from its current place.
func TestLiveLateLimits(t *testing.T) {
	s := newStepwise(t, "openai")
	s.call(t, chat)
	word := strings.Repeat("Grüße ", 2000)
	n := gateway.MaxLiveKept / len(word)
	for range n {
		s.next <- chatParts(word)[0]
	}
	const cited = 200
	for i := range cited {
		s.next <- citedPart(i, 6)
	}
	s.next <- ": and pauses\n\n"
	// Else what is still to be decoded is sent twice, and too much waits to be sent when the end comes.
	testenv.Until(t, "the client has read it", func() bool { return s.read.has(": and pauses\n") })
	first := s.listen(t)
	first.hear(t, strings.Repeat(word, n), cited, 0)
	s.end(chatParts("end")...)
	first.hear(t, strings.Repeat(word, n)+"end", cited, cited)
}
