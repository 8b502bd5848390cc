package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
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

// Who listens to a run gets the text while it arrives, and its sources and citations, in their order.
func TestLive(t *testing.T) {
	b := openBus(t)
	next := make(chan string)
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for part := range next {
			fmt.Fprint(w, part)
			flush(w)
		}
	}, &setup{options: gateway.Options{Bus: b}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	listener := testenv.Must(b.Listen(ctx, store.DefaultTenant, "run-1"))(t)
	defer listener.Close()

	r := w.request(t, "POST", chat, strings.NewReader(chatRequest))
	r.Header.Set("Ibid-Run", "run-1")
	r.Header.Set("Ibid-Step", "4")
	ended := make(chan string)
	go func() {
		res, err := w.client.Do(r)
		if err != nil {
			ended <- err.Error()
			return
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		ended <- res.Header.Get("Ibid-Answer")
	}()
	parts := chatParts("So ", "it ", "is. ", "Grüße")
	cited := `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation",` +
		`"url_citation":{"start_index":0,"end_index":2,"url":"https://example.com/a","title":"A"}}]}}]}` + "\n\n"
	for i, part := range parts {
		if i == 4 {
			next <- cited
		}
		next <- part
	}
	close(next)
	id := <-ended

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
	testenv.Diff(t, "source", source, struct{ Title, URL string }{"A", "https://example.com/a"})
	want := w.stored(t, id).Answer.Document(nil).Citations // the stored one has them all, and what only the whole tells besides
	if diff := cmp.Diff(want, rows, cmpopts.IgnoreFields(ibid.DocumentCitation{}, "ID", "Group", "Index")); diff != "" || rows[0].ID != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if n := w.metric(t, "live_dropped_total"); n != 0 {
		t.Errorf("%v were dropped", n)
	}
}

// The event of a stored answer comes over the bus once the indexer has it.
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
