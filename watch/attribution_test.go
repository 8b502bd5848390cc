package watch_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/experiment"
	calls "github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/watch"
)

const (
	tideText = "High water at Ostend is at 03:12 on Friday. The lighthouse keeper owns seven cats."
	tideDoc  = "High water at Ostend is at 03:12 on Friday, low water at 09:30."
)

// attributed returns the result for an answer with tideText and a request; nil if there is none.
func attributed(t *testing.T, request string, retrieved []trail.Source) *store.Call {
	t.Helper()
	chosen := testenv.Must(experiment.Find(experiment.Builtin(), "balanced"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var kept *store.Call
	a, err := watch.NewAttribution(&watch.AttributionOptions{
		Choose: func(string) *experiment.Strategy { return &chosen },
		Store: func(_ context.Context, c *store.Call) error {
			kept = c
			cancel()
			return nil
		},
		Trail: func(_ context.Context, tenant, run string) (*trail.Trail, error) {
			if tenant != "acme" || run != "run_1" {
				t.Errorf("asked for run %s of %s", run, tenant)
			}
			if retrieved == nil {
				cancel() // nothing will be stored, and this is the last step
				return nil, store.ErrNotFound
			}
			return &trail.Trail{Steps: []trail.Step{{Number: 1, Sources: retrieved}}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	call := &store.Call{AnswerID: "ans_1", Tenant: "acme", Run: "run_1", Strategy: chosen.ID(), Answer: &ibid.Answer{Text: tideText, Complete: true}}
	if !a.Offer(watch.Job{Call: call, Format: "openai-chat", Request: []byte(request)}) {
		t.Fatal("the answer was refused")
	}
	testenv.OK(t, a.Run(ctx))
	if len(call.Answer.Citations) > 0 {
		t.Error("the first answer was changed")
	}
	return kept
}

// Sentences are attributed to the model's input, wherever that is in the request, if it supports them.
func TestAttribution(t *testing.T) {
	const question = `{"role":"user","content":"When is high water?"}`
	for name, tt := range map[string]struct {
		request   string
		retrieved []trail.Source
		title     string
	}{
		"a tool's documents": {
			request: `{"model":"m","messages":[` + question + `,{"role":"tool","tool_call_id":"c1","content":"{\"results\":[{\"id\":\"a\",\"title\":\"Tides\",\"text\":\"` + tideDoc + `\"}]}"}]}`,
			title:   "Tides",
		},
		"a tool's words": {
			request: `{"model":"m","messages":[` + question + `,{"role":"tool","tool_call_id":"c1","content":"` + tideDoc + `"}]}`,
			title:   "tool result",
		},
		"a prompt": {
			request: `{"model":"m","messages":[{"role":"system","content":"<doc title=\"Almanac\">` + tideDoc + `</doc>"},` + question + `]}`,
			title:   "Almanac",
		},
		"a step of the run": {
			request:   `{"model":"m","messages":[` + question + `]}`,
			retrieved: []trail.Source{{DocumentID: "d", Title: "Recorded", Content: tideDoc, Retrieved: true}},
			title:     "Recorded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.retrieved == nil {
				tt.retrieved = []trail.Source{}
			}
			c := attributed(t, strings.ReplaceAll(tt.request, `<doc title="`, `<doc title=\"`), tt.retrieved)
			if c == nil {
				t.Fatal("nothing was kept")
			}
			if err := c.Answer.Check(); err != nil {
				t.Error(err)
			}
			if c.AnswerID != "ans_1" || c.Strategy != "balanced@2" || len(c.Answer.Citations) != 1 {
				t.Fatalf("kept %s of %q with %d citations; want ans_1 with 1", c.AnswerID, c.Strategy, len(c.Answer.Citations))
			}
			cite := &c.Answer.Citations[0]
			got := []string{c.Answer.Text[cite.Span.Start:cite.Span.End], string(cite.Origin), c.Answer.Sources[0].Title, cite.Support.Label}
			want := []string{"High water at Ostend is at 03:12 on Friday", "inferred", tt.title, "supported"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	// A citation of a chat's documents has their text, not the object in which Mistral gets them.
	t.Run("a chat's documents, as Mistral gets them", func(t *testing.T) {
		built := testenv.Must(calls.BuildRequest("mistral", &calls.Chat{
			Model: "m", Messages: []calls.Message{{Role: calls.RoleUser, Text: "When is high water?"}},
			Documents: []wire.Source{{Title: "Tides", URL: "https://tide.example/", Content: tideDoc}},
		}))(t)
		c := attributed(t, string(built.Body), []trail.Source{})
		if c == nil {
			t.Fatal("nothing was kept")
		}
		s, ref := &c.Answer.Sources[0], &c.Answer.Citations[0].Refs[0]
		got := []string{s.Title, s.URL, ref.Quote}
		want := []string{"Tides", "https://tide.example/", tideDoc}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nothing was given", func(t *testing.T) {
		if c := attributed(t, `{"model":"m","messages":[`+question+`]}`, nil); c != nil {
			t.Errorf("kept %d citations out of nothing", len(c.Answer.Citations))
		}
	})
}

func TestAttributionRefuses(t *testing.T) {
	list := experiment.Builtin()
	whole := func() *ibid.Answer { return &ibid.Answer{Text: tideText, Complete: true} }
	cited := whole()
	cited.Sources = []ibid.Source{{ID: "s", Kind: ibid.Web, URL: "https://a.example/"}}
	testenv.OK(t, cited.Cite(ibid.Span{Start: 0, End: 10}, ibid.Ref{Source: "s"}))
	broken := whole()
	broken.Complete = false
	for name, tt := range map[string]struct {
		strategy *experiment.Strategy
		answer   *ibid.Answer
		want     bool
	}{
		"no strategy":         {nil, whole(), false},
		"one that adds none":  {&list[0], whole(), false},
		"citations are there": {&list[1], cited, false},
		"broken off":          {&list[1], broken, false},
		"no text":             {&list[1], &ibid.Answer{Complete: true}, false},
		"an answer without":   {&list[1], whole(), true},
	} {
		a := testenv.Must(watch.NewAttribution(&watch.AttributionOptions{
			Choose: func(string) *experiment.Strategy { return tt.strategy },
			Store:  func(context.Context, *store.Call) error { return nil },
		}))(t)
		if got := a.Offer(watch.Job{Call: &store.Call{Answer: tt.answer}}); got != tt.want {
			t.Errorf("%s: Offer = %t; want %t", name, got, tt.want)
		}
	}
	if _, err := watch.NewAttribution(&watch.AttributionOptions{}); err == nil {
		t.Error("an attribution without anything to work with")
	}
}

// Documents of two calls may have the same number, or the same text without a name: their text identifies them.
func TestAttributionNames(t *testing.T) {
	source := func(prompt string, retrieved ...trail.Source) *ibid.Source {
		t.Helper()
		content := testenv.Must(json.Marshal(prompt))(t)
		c := attributed(t, `{"model":"m","messages":[{"role":"user","content":`+string(content)+`}]}`, append([]trail.Source{}, retrieved...))
		if c == nil || len(c.Answer.Sources) != 1 {
			t.Fatalf("kept %+v", c)
		}
		return &c.Answer.Sources[0]
	}
	other := "[1] " + tideDoc + " It is a spring tide.\n\n[2] Nobody fishes there in winter.\n\nQuestion: when?"
	first, second := source("[1] "+tideDoc+"\n\n[2] The harbour has one crane.\n\nQuestion: when?"), source(other)
	if first.ID != "doc:1" || second.ID != "doc:1" || first.GlobalID == "" || first.Key() == second.Key() {
		t.Errorf("two documents are called %+v and %+v", first, second)
	}
	if again := source(other); again.Key() != second.Key() {
		t.Errorf("one document has the keys %s and %s", second.Key(), again.Key())
	}
	// Rows of the run keep their own ids, except those that an earlier answer identified by its key.
	for _, tt := range []struct {
		row  trail.Source
		want string // the id in the trail
	}{
		{trail.Source{DocumentID: "d1", Content: tideDoc, Retrieved: true}, "d1"},
		{trail.Source{DocumentID: "doc:1", Key: first.Key(), Content: tideDoc, Retrieved: true}, first.GlobalID},
		{trail.Source{DocumentID: first.GlobalID, Key: first.Key(), Content: tideDoc, Retrieved: true}, first.GlobalID},
	} {
		got := source("When?", tt.row)
		row := trail.SourcesFromAnswer(&ibid.Answer{Sources: []ibid.Source{*got}})[0]
		if row.DocumentID != tt.want {
			t.Errorf("%s is called %s, want %s", tt.row.DocumentID, row.DocumentID, tt.want)
		}
	}
	// A prompt that repeats what a step retrieved uses the name that the step gave it.
	if got := source("[1] "+tideDoc+"\n\n[2] The harbour has one crane.", trail.Source{DocumentID: "almanac", Content: tideDoc}); got.ID != "almanac" {
		t.Errorf("it is called %s", got.ID)
	}
}

// What a model cites by marks or links stays, and the other sentences are compared with what it was given. A provider
// that cites is left alone.
func TestAttributionMarks(t *testing.T) {
	chosen := testenv.Must(experiment.Find(experiment.Builtin(), "balanced"))(t)
	request := `{"model":"m","messages":[{"role":"system","content":"Answer from these.\n<source id=\"1\" name=\"Cats of the coast\">The lighthouse keeper owns seven cats.</source>\n<source id=\"2\" name=\"Tides\">` + tideDoc + `</source>"},{"role":"user","content":"Cats? High water?"}]}`
	body := `{"id":"c1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"The lighthouse keeper owns seven cats [1]. High water at Ostend is at 03:12 on Friday."}}]}`
	answer := testenv.Must(ibid.Decode([]byte(body), &ibid.DecodeOptions{Request: []byte(request)}))(t)
	if len(answer.Citations) != 1 || answer.Citations[0].Origin != ibid.OriginMarker {
		t.Fatalf("the marks were read as %+v", answer.Citations)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var kept *store.Call
	a := testenv.Must(watch.NewAttribution(&watch.AttributionOptions{
		Choose: func(string) *experiment.Strategy { return &chosen },
		Store:  func(_ context.Context, c *store.Call) error { kept = c; cancel(); return nil },
	}))(t)
	call := &store.Call{AnswerID: "ans_1", Tenant: "acme", Strategy: chosen.ID(), Answer: answer}
	if !a.Offer(watch.Job{Call: call, Format: "openai-chat", Request: []byte(request), Done: func(*store.Call) { cancel() }}) {
		t.Fatal("an answer with marks was refused")
	}
	testenv.OK(t, a.Run(ctx))
	if kept == nil {
		t.Fatal("nothing was kept")
	}
	testenv.OK(t, kept.Answer.Check())
	var origins []string
	for i := range kept.Answer.Citations {
		c := &kept.Answer.Citations[i]
		origins = append(origins, string(c.Origin)+" "+kept.Answer.Source(c.Refs[0].Source).Title)
	}
	if diff := cmp.Diff([]string{"marker Cats of the coast", "inferred Tides"}, origins); diff != "" || len(kept.Answer.Sources) != 2 {
		t.Errorf("%d sources\n%s", len(kept.Answer.Sources), diff)
	}

	own := *answer
	own.Citations = append([]ibid.Citation(nil), answer.Citations...)
	own.Citations[0].Origin = ibid.OriginProvider
	cited := *call
	cited.Answer = &own
	if a.Offer(watch.Job{Call: &cited, Format: "openai-chat", Request: []byte(request)}) {
		t.Error("an answer that its provider cites was accepted")
	}
}
