package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// suite holds the tests of a store on either engine. Each method is a test, with a database of its own.
type suite struct{}

func TestStore(t *testing.T) {
	engines(t, func(t *testing.T, dsn func(*testing.T) string) {
		t.Helper()
		tests := reflect.ValueOf(suite{})
		for i := range tests.NumMethod() {
			t.Run(tests.Type().Method(i).Name, func(t *testing.T) {
				tests.Method(i).Interface().(func(*testing.T, string))(t, dsn(t))
			})
		}
	})
}

func (suite) Answers(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	testenv.OK(t, s.Ping(t.Context()))
	c := call(1, "Bees dance.", "bees.example", "wasps.example")
	c.Conversation, c.Agent, c.Prompt = "talk", "planner", []store.Message{{Role: "user", Text: "What do bees do?"}}
	c.Answer.Metadata = map[string]json.RawMessage{"odd": json.RawMessage(`{"b":1,"a":1e2,"z":"\u0000"}`)}
	put(t, s, c)
	got := testenv.Must(s.Call(t.Context(), c.Tenant, c.AnswerID))(t)
	c.Step.Number = 1
	diff(t, "by id", shown(t, got), shown(t, c))
	for about, err := range map[string]error{
		"no such id":           second(s.Call(t.Context(), c.Tenant, "ans_0002")),
		"no such conversation": second(s.Conversation(t.Context(), c.Tenant, "other", nil)),
		"no such run":          second(s.Run(t.Context(), c.Tenant, "run_2", nil)),
		"deleting no answer":   s.Delete(t.Context(), c.Tenant, "ans_0002"),
	} {
		if !errors.Is(err, store.ErrNotFound) || store.IsTemporary(err) {
			t.Errorf("%s: %v", about, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The same ids of two tenants are different objects, and neither tenant sees the other's.
func (suite) Tenants(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for _, tenant := range []string{"one", "two"} {
		c := call(1, "Secret of "+tenant+".", tenant+".example", "both.example")
		c.Tenant, c.Conversation, c.Run = tenant, "talk", "run"
		put(t, s, c)
	}
	extra := call(2, "Only two has this.", "extra.example")
	extra.Tenant, extra.Conversation, extra.Run = "two", "talk", "run"
	put(t, s, extra)
	for tenant, want := range map[string]int{"one": 1, "two": 2, "three": 0} {
		page, err := s.Calls(t.Context(), tenant, &store.Query{Text: "only OR secret of"})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("%s: %v, %v: OR is a word like others", tenant, page, err)
		}
		if page, err = s.Calls(t.Context(), tenant, nil); err != nil || len(page.Items) != want {
			t.Errorf("%s has %d answers, %v", tenant, len(page.Items), err)
		}
		if page, err = s.Calls(t.Context(), tenant, &store.Query{Source: "https://both.example/page"}); err != nil || len(page.Items) != min(want, 1) {
			t.Errorf("%s by source: %d, %v", tenant, len(page.Items), err)
		}
		events, err := s.Events(t.Context(), tenant, "run", 0, 0)
		if err != nil || len(events) != want {
			t.Errorf("%s has %d events, %v", tenant, len(events), err)
		}
		for i, e := range events {
			if e.Seq != int64(i+1) || e.Tenant != tenant {
				t.Errorf("%s: event %d is %+v", tenant, i, e)
			}
		}
		run, err := s.Run(t.Context(), tenant, "run", nil)
		if want == 0 {
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s sees the run: %v", tenant, err)
			}
			continue
		}
		if err != nil || len(run.Calls) != want {
			t.Errorf("%s: run %+v, %v", tenant, run, err)
		}
		talk, err := s.Conversation(t.Context(), tenant, "talk", nil)
		if err != nil || talk.Numbering["web:https://"+tenant+".example/page"] != 1 || len(talk.Numbering) != want+1 {
			t.Errorf("%s: conversation %+v, %v", tenant, talk, err)
		}
	}
	if err := s.Delete(t.Context(), "one", "ans_0002"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleting another's: %v", err)
	}
}

// Putting a call again, in the same batch or after a crash, changes nothing.
func (suite) Replay(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	batch := func() []*store.Call {
		var calls []*store.Call
		for n := 1; n <= 70; n++ {
			c := call(n, fmt.Sprintf("Answer %d.", n), fmt.Sprintf("s%d.example", n%7))
			c.Run, c.Conversation = "run", "talk"
			calls = append(calls, c)
		}
		again := *calls[0]
		return append(calls, &again)
	}
	put(t, s, batch()[:40]...)
	put(t, s, batch()...)
	put(t, s, batch()...)
	if n := len(ids(t, s, store.Query{})); n != 70 {
		t.Errorf("%d answers", n)
	}
	events, err := s.Events(t.Context(), store.DefaultTenant, "run", 0, 500)
	if err != nil || len(events) != 70 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has number %d", i, e.Seq)
		}
	}
	run, err := s.Run(t.Context(), store.DefaultTenant, "run", &store.Query{Limit: 70})
	if err != nil || run.Answers != 70 || len(run.Steps) != 70 || run.Steps[69].Number != 70 {
		t.Errorf("run: %d answers, steps %v, %v", run.Answers, run.Steps, err)
	}
	talk, err := s.Conversation(t.Context(), store.DefaultTenant, "talk", nil)
	if err != nil || talk.Answers != 70 || len(talk.Numbering) != 7 {
		t.Errorf("conversation: %d answers, %v, %v", talk.Answers, talk.Numbering, err)
	}
}

func (suite) Search(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	prompt := call(3, "Nothing of interest.")
	prompt.Prompt = []store.Message{{Role: "user", Text: "Erkläre die Straße nach Ærøskøbing"}}
	put(t, s,
		call(1, "The café in Zürich opens at 9:30; naïve readers don't mind."),
		call(2, "東京都の天気は晴れです。サーバーが落ちた。", "wetter.example"),
		prompt,
		call(4, "한국어 문장은 조사가 붙습니다. ภาษาไทยไม่มีช่องว่าง"),
		call(5, strings.Repeat("x", 100)+" GPT-4o says ﬁne print, Ｆｕｌｌ width."),
		call(6, "The café again.", "quoted.example"),
	)
	for query, want := range map[string]string{
		"cafe": "6 1", "CAFÉ": "6 1", "café zurich": "1", "zur": "1", "zur ": "", "zür": "1", "caf zurich": "",
		"9:30": "1", "don't": "1", "naive": "1", "cafe\u0301": "6 1",
		"東京": "2", "京": "2", "東京都": "2", "京東": "", "天気": "2", "サーバー": "2", "です": "2", "。": "", "東 天": "2",
		"한국": "4", "한국어 문장": "4", "문": "4", "ไทย": "4", "tokyo": "",
		"strasse": "", "straße": "3", "ærøsk": "3", "erklare": "3",
		"about wetter": "2", "as said by quoted": "6",
		"gpt-4o": "5", "fine": "5", "full": "5", strings.Repeat("x", 100): "5", strings.Repeat("x", 63): "5", strings.Repeat("y", 100): "",
		"nothing": "3", "": "6 5 4 3 2 1", " ": "", "!!!": "", `"`: "", "cafe AND zurich": "", "cafe NOT zurich": "",
		`cafe" OR "zurich`: "", "cafe*": "6 1", "words:cafe": "", "NEAR(cafe zurich)": "", "^cafe": "6 1", "cafe'); DROP TABLE calls; --": "",
		"cafe & !zurich": "1", "cafe:*": "6 1", `caf\e`: "", "\x00cafe\xff": "6 1", "{cafe}": "6 1", "(cafe": "6 1",
		strings.Repeat("cafe ", 1000): "6 1",
	} {
		if got := strings.Join(ids(t, s, store.Query{Text: query}), " "); got != want {
			t.Errorf("%.40q finds %q, want %q", query, got, want)
		}
	}
	if got := ids(t, s, store.Query{Text: "cafe", Source: "http://quoted.example/"}); len(got) != 0 {
		t.Errorf("text and another source: %q", got)
	}
	if got := ids(t, s, store.Query{Text: "cafe", Source: "https://QUOTED.example:443/page?utm_source=openai#top", Run: "run_6"}); len(got) != 1 {
		t.Errorf("text, source and run: %q", got)
	}
}

// A list does not change while it is paged through and more arrives.
func (suite) Paging(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := 1; n <= 9; n++ {
		put(t, s, call(n, "same words", "same.example"))
	}
	for about, q := range map[string]store.Query{
		"all": {}, "words": {Text: "same"}, "source": {Source: "https://same.example/page"},
	} {
		q.Limit = 4
		var got []string
		for {
			page := testenv.Must(s.Calls(t.Context(), store.DefaultTenant, &q))(t)
			for _, c := range page.Items {
				got = append(got, c.AnswerID[7:])
			}
			late := call(100+len(got), "same words", "same.example")
			late.AnswerID += about
			late.Tenant = store.DefaultTenant
			put(t, s, late)
			if page.Next == "" {
				break
			}
			q.Cursor = page.Next
		}
		if want := []string{"9", "8", "7", "6", "5", "4", "3", "2", "1"}; strings.Join(got[len(got)-9:], "") != strings.Join(want, "") {
			t.Errorf("%s: %q", about, got)
		}
	}
	sources := testenv.Must(s.Sources(t.Context(), store.DefaultTenant, &store.SourceQuery{URL: "https://same.example/page", Limit: 1}))(t)
	runs, err := s.Runs(t.Context(), store.DefaultTenant, &store.Query{Limit: 2})
	if err != nil || len(runs.Items) != 2 || runs.Next == "" {
		t.Fatalf("runs: %+v, %v", runs, err)
	}
	next, err := s.Runs(t.Context(), store.DefaultTenant, &store.Query{Limit: 2, Cursor: runs.Next})
	if err != nil || next.Items[0].ID == runs.Items[1].ID {
		t.Errorf("runs: %+v, %v", next, err)
	}
	for _, cursor := range []string{sources.Next, runs.Next, "!", "AAAA", strings.Repeat("x", 1000)} {
		_, err := s.Calls(t.Context(), store.DefaultTenant, &store.Query{Cursor: cursor})
		if !errors.Is(err, store.ErrCursor) || store.IsTemporary(err) {
			t.Errorf("cursor %.20q: %v", cursor, err)
		}
	}
}

func (suite) Sources(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	one := call(1, "Bees dance.", "bees.example", "wasps.example")
	one.Conversation = "talk"
	two := call(2, "They do.", "bees.example")
	two.Answer.Sources[0].URL = "HTTPS://Bees.example:443/page?utm_source=x"
	three := call(3, "From a file.")
	three.Answer.Sources = []ibid.Source{{ID: "file-1", GlobalID: "file-1", Kind: ibid.File, Title: "a.pdf"}, {ID: "doc_7", Kind: ibid.DocumentKind, Content: "words"}}
	put(t, s, one, two, three)
	page := testenv.Must(s.Sources(t.Context(), store.DefaultTenant, &store.SourceQuery{URL: "https://bees.example/page#here"}))(t)
	const key = "web:https://bees.example/page"
	diff(t, "by URL", page.Items, []store.SourceUse{
		{
			Key: key, URL: two.Answer.Sources[0].URL, Title: "About bees.example", AnswerID: "ans_0002", Run: "run_2", Started: two.Started,
			Citations: []store.SourceCitation{{CitedText: "They do.", Quote: "as said by bees.example"}},
		},
		{
			Key: key, URL: "https://bees.example/page", Title: "About bees.example", AnswerID: "ans_0001", Conversation: "talk", Run: "run_1",
			Started: one.Started, Citations: []store.SourceCitation{{CitedText: "Bees dance.", Quote: "as said by bees.example"}},
		},
	})
	doc := three.Answer.Sources[1]
	for id, want := range map[string]int{
		"file-1": 1, "#file-1": 1, "doc_7": 1, doc.Key(): 1, key: 2, "web:0": 0, "https://bees.example/page": 0, "file-2": 0,
	} {
		if page, err := s.Sources(t.Context(), store.DefaultTenant, &store.SourceQuery{ID: id}); err != nil || len(page.Items) != want {
			t.Errorf("by id %s: %d uses, %v; want %d", id, len(page.Items), err, want)
		}
	}
	if _, err := s.Sources(t.Context(), store.DefaultTenant, nil); err == nil {
		t.Error("of no source")
	}
	if page, err := s.Sources(t.Context(), store.DefaultTenant, &store.SourceQuery{URL: "#"}); err != nil || len(page.Items) != 0 {
		t.Errorf("of no address: %+v, %v", page, err)
	}
}

// Numbers continue over the answers in the order of arrival, and never change.
func (suite) Conversations(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	var calls []*store.Call
	for n, sites := range [][]string{{"b.example", "a.example"}, {"c.example", "a.example"}, {"b.example"}, {"d.example", "c.example"}} {
		c := call(n+1, fmt.Sprintf("Message %d.", n+1), sites...)
		c.Conversation = "talk"
		calls = append(calls, c)
	}
	twin := call(5, "Two that nothing is known of.")
	twin.Conversation = "talk"
	twin.Answer.Sources = []ibid.Source{{ID: "x", Kind: ibid.Tool}, {ID: "y", Kind: ibid.Tool}}
	calls = append(calls, twin)
	want := ibid.Numbering{}
	for _, c := range calls {
		c.Answer.Document(&ibid.DocumentOptions{Numbering: &want})
	}
	put(t, s, calls[0])
	put(t, s, calls[1:4]...)
	put(t, s, calls[4])
	talk := testenv.Must(s.Conversation(t.Context(), store.DefaultTenant, "talk", nil))(t)
	diff(t, "numbering", talk.Numbering, want)
	for i, c := range talk.Calls {
		if c.AnswerID != calls[i].AnswerID {
			t.Errorf("message %d is %s", i, c.AnswerID)
		}
	}
	if !talk.Started.Equal(calls[0].Started) || !talk.Updated.Equal(twin.Ended()) || talk.Answers != 5 {
		t.Errorf("conversation: %+v", talk)
	}
	for _, gone := range []string{"ans_0001", "ans_0002", "ans_0003"} {
		testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, gone))
	}
	later := call(6, "Later.", "e.example", "b.example")
	later.Conversation = "talk"
	put(t, s, later)
	later.Answer.Document(&ibid.DocumentOptions{Numbering: &want})
	talk = testenv.Must(s.Conversation(t.Context(), store.DefaultTenant, "talk", nil))(t)
	diff(t, "numbering after deletion", talk.Numbering, want)
	other := call(7, "Other.", "a.example")
	other.Conversation = "other"
	put(t, s, other)
	page, err := s.Conversations(t.Context(), store.DefaultTenant, nil)
	if err != nil || len(page.Items) != 2 || page.Items[0].ID != "other" || page.Items[1].Answers != 3 || page.Next != "" {
		t.Errorf("conversations: %+v, %v", page, err)
	}
	latest := call(8, "Latest.")
	latest.Conversation = "talk"
	put(t, s, latest)
	first, err := s.Conversations(t.Context(), store.DefaultTenant, &store.Query{Limit: 1})
	if err != nil || len(first.Items) != 1 || first.Items[0].ID != "talk" {
		t.Fatalf("the one with the latest call: %+v, %v", first, err)
	}
	if page, err = s.Conversations(t.Context(), store.DefaultTenant, &store.Query{Cursor: first.Next}); err != nil || len(page.Items) != 1 || page.Items[0].ID != "other" {
		t.Errorf("the others: %+v, %v", page, err)
	}
}

// Each answer is in one entry, wherever the cursor is and whichever part of it was stored last.
func (suite) Entries(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	one := func(n int, conversation, run string) {
		c := call(n, "Text.")
		c.Conversation = conversation
		if run != "" {
			c.Run = run
		}
		put(t, s, c)
	}
	entries := func(limit int) (list []string) {
		for q := (store.Query{Limit: limit}); ; {
			page := testenv.Must(s.Entries(t.Context(), store.DefaultTenant, &q))(t)
			for _, e := range page.Items {
				if e.Run != nil {
					list = append(list, e.Run.ID)
				} else {
					list = append(list, strings.TrimPrefix(e.Call.AnswerID, "ans_000"))
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return list
			}
		}
	}
	one(1, "talk", "")
	one(2, "", "")
	one(3, "other", "")
	one(4, "talk", "loop") // two calls of an agent within a conversation
	one(5, "talk", "loop")
	one(6, "", "agent")
	one(7, "", "agent")
	one(8, "", "")
	testenv.Must(s.Record(t.Context(), store.DefaultTenant, &store.Recording{
		Run: "posted", Trail: &trail.Trail{Answer: "Text."},
	}))(t)
	one(0, "other", "") // it began first and comes last
	for limit := range 4 {
		diff(t, "entries", entries(limit+1), []string{"posted", "8", "agent", "5", "3", "2"})
	}
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, "ans_0005"))
	diff(t, "after a deletion", entries(10), []string{"posted", "8", "agent", "4", "3", "2"})
}

func (suite) Runs(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	var calls []*store.Call
	for n, step := range []store.Step{
		{}, {Tool: "search"}, {Number: 5, After: []int{}}, {Number: 5, Tool: "again"}, {After: []int{2, 5}}, {Number: 3},
	} {
		c := call(n+1, "Step.", "a.example")
		c.Run, c.Step, c.Agent = "run", step, []string{"", "planner"}[n%2]
		calls = append(calls, c)
	}
	put(t, s, calls[:2]...)
	put(t, s, calls[2:]...)
	alone := call(9, "In no run.")
	alone.Run = ""
	put(t, s, alone)
	run := testenv.Must(s.Run(t.Context(), store.DefaultTenant, "run", nil))(t)
	diff(t, "steps", run.Steps, []store.Step{
		{Number: 1, After: []int{}},
		{Number: 2, Tool: "search", After: []int{1}},
		{Number: 3, After: []int{2}},
		{Number: 5, Tool: "again", After: []int{}},
		{Number: 6, After: []int{2, 5}},
	})
	if run.Agent != "planner" || run.Answers != 6 || !run.Started.Equal(calls[0].Started) || !run.Ended.Equal(calls[5].Ended()) {
		t.Errorf("run: %+v", run)
	}
	events, err := s.Events(t.Context(), store.DefaultTenant, "run", 4, 1)
	if err != nil || len(events) != 1 {
		t.Fatalf("events: %v, %v", events, err)
	}
	if e := events[0]; e.Seq != 5 || e.Kind != store.EventAnswer || e.Run != "run" || !e.At.Equal(calls[4].Ended()) {
		t.Errorf("event: %+v", e)
	}
	diff(t, "data", string(events[0].Data), `{"answer_id":"ans_0005","step":6,"tool":null,"conversation":null,"agent":null,"upstream":"openai",`+
		`"provider":"openai","model":"m","complete":true,"finish":"stop","citations":1,"sources":1,"error":null,"refetch":false}`)
	page, err := s.Runs(t.Context(), store.DefaultTenant, nil)
	if err != nil || len(page.Items) != 1 || page.Items[0].Answers != 6 {
		t.Errorf("runs: %+v, %v", page, err)
	}
}

// A conversation and a run are read a page at a time, the latest calls first, and each page from its oldest to its
// latest. An answer that is fetched again keeps its place.
func (suite) ThreadPaging(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := 1; n <= 7; n++ {
		c := call(n, "Words.")
		c.Run, c.Conversation = "run", "talk"
		put(t, s, c)
	}
	again := call(9, "Words, fetched again.")
	again.Refetch, again.Answer.ID = true, "resp_2"
	put(t, s, again)
	var talk, run []string
	for q := (&store.Query{Limit: 3}); ; {
		page := testenv.Must(s.Conversation(t.Context(), store.DefaultTenant, "talk", q))(t)
		for _, c := range page.Calls {
			talk = append(talk, c.AnswerID[7:])
		}
		talk = append(talk, "|")
		if page.Answers != 7 {
			t.Errorf("%d answers", page.Answers)
		}
		if q.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	for q := (&store.Query{Limit: 4}); ; {
		page := testenv.Must(s.Run(t.Context(), store.DefaultTenant, "run", q))(t)
		for _, step := range page.Steps {
			run = append(run, fmt.Sprint(step.Number, step.After))
		}
		if q.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	diff(t, "conversation", strings.Join(talk, ""), "567|234|1|")
	diff(t, "run", strings.Join(run, " "), "4 [3] 5 [4] 6 [5] 7 [6] 1 [] 2 [1] 3 [2]")
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, "ans_0006"))
	left := testenv.Must(s.Run(t.Context(), store.DefaultTenant, "run", nil))(t)
	diff(t, "the step after the one that was deleted", left.Steps[5], store.Step{Number: 7, After: []int{6}})
	for _, cursor := range []string{"!", "bTE", "bTEuMi4z", "bTEuLQ", "YTEuMg"} { // m1, m1.2.3, m1.-, a1.2
		if _, err := s.Run(t.Context(), store.DefaultTenant, "run", &store.Query{Cursor: cursor}); !errors.Is(err, store.ErrCursor) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// A later state of an answer replaces the earlier one, once, and never a worse one.
func (suite) Refetch(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	first := call(1, "Only so far", "a.example")
	first.Conversation, first.Run, first.Answer.Complete = "talk", "run", false
	first.Prompt = []store.Message{{Role: "user", Text: "question"}}
	fetch := func(n int, text string, complete bool, sites ...string) *store.Call {
		c := call(n, text, sites...)
		c.Refetch, c.Run, c.Conversation, c.Answer.ID, c.Answer.Complete = true, "", "", "resp_1", complete
		return c
	}
	whole := fetch(3, "The whole of it.", true, "b.example")
	put(t, s, fetch(2, "Before there was any.", true), first, whole)
	put(t, s, whole, fetch(4, "Cut off", false), fetch(3, "Older", true))
	unknown := fetch(5, "Of nobody", true)
	unknown.Answer.ID = "resp_9"
	put(t, s, unknown)
	if got := ids(t, s, store.Query{}); len(got) != 1 {
		t.Fatalf("answers: %q", got)
	}
	got := testenv.Must(s.Call(t.Context(), store.DefaultTenant, first.AnswerID))(t)
	if got.Answer.Text != "The whole of it." || got.Conversation != "talk" || got.Prompt[0].Text != "question" || got.Refetch || !got.Started.Equal(first.Started) {
		t.Errorf("refetched: %+v", got)
	}
	for query, want := range map[string]int{"whole": 1, "far": 0, "question": 1} {
		if n := len(ids(t, s, store.Query{Text: query})); n != want {
			t.Errorf("%s finds %d", query, n)
		}
	}
	if n := len(ids(t, s, store.Query{Source: "https://a.example/page"})); n != 0 {
		t.Error("found by a source that it no longer has")
	}
	talk, err := s.Conversation(t.Context(), store.DefaultTenant, "talk", nil)
	if err != nil || talk.Answers != 1 {
		t.Fatalf("conversation: %+v, %v", talk, err)
	}
	diff(t, "numbering", talk.Numbering, ibid.Numbering{"web:https://a.example/page": 1, "web:https://b.example/page": 2})
	events, err := s.Events(t.Context(), store.DefaultTenant, "run", 0, 0)
	if err != nil || len(events) != 2 || !strings.Contains(string(events[1].Data), `"refetch":true`) || !strings.Contains(string(events[1].Data), `"ans_0001"`) {
		t.Errorf("events: %+v, %v", events, err)
	}
}

// Citations found for an answer replace it once, however often they are put, wherever the batches of a replayed journal
// begin; and refetching the provider's own answer does not remove them.
func (suite) Backfill(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	batch := func() []*store.Call {
		first, other := call(1, "Bees dance."), call(2, "Bees dance.")
		first.Answer.ID, other.Answer.ID = "", "" // not every provider sets one
		first.Run, other.Run, first.Conversation = "run", "run", "talk"
		found := call(3, "Bees dance.", "bees.example")
		found.Answer.ID, found.Of, found.Run, found.Started, found.Duration = "", first.AnswerID, "", first.Started, time.Hour
		stranger, nobody := call(4, "Bees dance.", "wasps.example"), call(5, "Bees dance.", "wasps.example")
		stranger.Tenant, stranger.Of, nobody.Of = "stranger", first.AnswerID, "ans_9999"
		return []*store.Call{first, other, found, stranger, nobody}
	}
	put(t, s, batch()[:2]...)
	put(t, s, batch()...)
	put(t, s, batch()[2:]...)
	put(t, s, batch()...)
	if got := ids(t, s, store.Query{}); strings.Join(got, " ") != "1 2" {
		t.Errorf("answers: %q", got)
	}
	got, err := s.Call(t.Context(), store.DefaultTenant, "ans_0001")
	if err != nil || len(got.Answer.Citations) != 1 || got.Of != "" || got.Duration != time.Second || got.Conversation != "talk" {
		t.Fatalf("with citations: %+v, %v", got, err)
	}
	if other, err := s.Call(t.Context(), store.DefaultTenant, "ans_0002"); err != nil || len(other.Answer.Citations) != 0 {
		t.Errorf("another answer without an id: %+v, %v", other, err)
	}
	events, err := s.Events(t.Context(), store.DefaultTenant, "run", 0, 0)
	if err != nil || len(events) != 3 {
		t.Fatalf("events: %+v, %v", events, err)
	}
	if e := events[2]; e.Kind != store.EventBackfill || e.Seq != 3 || !e.At.Equal(got.Started.Add(time.Hour)) ||
		!strings.Contains(string(e.Data), `"ans_0001"`) || !strings.Contains(string(e.Data), `"citations":1`) {
		t.Errorf("event: %+v %s", e, e.Data)
	}

	known := call(6, "Owls hunt.")
	cited := call(7, "Owls hunt.", "owls.example")
	cited.Of = known.AnswerID
	again, changed := call(8, "Owls hunt."), call(9, "Owls hunt at night.")
	for _, c := range []*store.Call{cited, again, changed} {
		c.Answer.ID = known.Answer.ID
	}
	again.Refetch, changed.Refetch = true, true
	put(t, s, known, cited, again)
	if got, err = s.Call(t.Context(), store.DefaultTenant, known.AnswerID); err != nil || len(got.Answer.Citations) != 1 {
		t.Errorf("fetched again: %+v, %v", got, err)
	}
	put(t, s, changed)
	if got, err = s.Call(t.Context(), store.DefaultTenant, known.AnswerID); err != nil || got.Answer.Text != changed.Answer.Text {
		t.Errorf("fetched again with another text: %+v, %v", got, err)
	}
}

func (suite) Outbox(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := 1; n <= 3; n++ {
		put(t, s, call(n, "Answer."))
	}
	now := call(4, "Just now.")
	now.Started, now.Duration = time.Now(), 0
	put(t, s, now)
	outbox := func(limit int, old time.Duration) []int64 {
		events := testenv.Must(s.Outbox(t.Context(), limit, old))(t)
		var list []int64
		for _, e := range events {
			list = append(list, e.ID)
		}
		return list
	}
	all := outbox(0, 0)
	if len(all) != 4 || len(outbox(2, 0)) != 2 || len(outbox(0, time.Hour)) != 3 {
		t.Fatalf("outbox: %v", all)
	}
	for range 2 {
		testenv.OK(t, s.Relayed(t.Context(), append(all[:2:2], 99)))
	}
	diff(t, "outbox", outbox(0, 0), all[2:])
	testenv.OK(t, s.Relayed(t.Context(), nil))
}

func (suite) Delete(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	for n := 1; n <= 2; n++ {
		c := call(n, "Delete me.", "a.example")
		c.Run, c.Conversation = "run", "talk"
		put(t, s, c)
	}
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, "ans_0002"))
	for _, q := range []store.Query{{}, {Text: "delete"}, {Source: "https://a.example/page"}, {Run: "run"}, {Conversation: "talk"}} {
		if got := ids(t, s, q); len(got) != 1 {
			t.Errorf("%+v: %q", q, got)
		}
	}
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, "ans_0001"))
	for _, q := range []store.Query{{}, {Text: "delete"}, {Source: "https://a.example/page"}} {
		if got := ids(t, s, q); len(got) != 0 {
			t.Errorf("%+v: %q", q, got)
		}
	}
	if _, err := s.Conversation(t.Context(), store.DefaultTenant, "talk", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the empty conversation: %v", err)
	}
	if _, err := s.Run(t.Context(), store.DefaultTenant, "run", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the empty run: %v", err)
	}
	// The events of the answers are not relayed yet, so they are still there, and numbers continue after them.
	events, err := s.Outbox(t.Context(), 0, 0)
	if err != nil || len(events) != 2 {
		t.Fatalf("outbox: %v, %v", events, err)
	}
	next := call(3, "Next.")
	next.Run = "run"
	put(t, s, next)
	if events, err = s.Events(t.Context(), store.DefaultTenant, "run", 0, 0); err != nil || len(events) != 3 || events[2].Seq != 3 {
		t.Errorf("events: %+v, %v", events, err)
	}
}

func (suite) Prune(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	var calls []*store.Call
	for n := range 700 {
		c := call(n, "Old.", "a.example")
		c.Run, c.Conversation = fmt.Sprint("run", n%10), fmt.Sprint("talk", n%10)
		c.Answer.Provider = []string{"openai", "cohere"}[n%2]
		calls = append(calls, c)
	}
	put(t, s, calls...)
	events := testenv.Must(s.Outbox(t.Context(), 500, 0))(t)
	var relayed []int64
	for _, e := range events { // 500 of 700: those of the first 500 answers
		relayed = append(relayed, e.ID)
	}
	testenv.OK(t, s.Relayed(t.Context(), relayed))
	steps := 0
	r := &store.Retention{
		Default: time.Hour, ByProvider: map[string]time.Duration{"cohere": 0, "other": time.Second}, Now: noon().Add(time.Hour + 690*time.Second),
		Progress: func(store.PruneReport) { steps++ },
	}
	r.DryRun = true
	want := store.PruneReport{Answers: 345}
	report := testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "dry run", report, want)
	r.DryRun = false
	report = testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "the one provider", report, want)
	if n := len(ids(t, s, store.Query{})); n != 355 || steps != 2 {
		t.Errorf("%d answers are left after %d steps", n, steps)
	}
	// The other tenant's, and the rest: only runs with unrelayed events stay.
	r.ByProvider, r.Now = nil, time.Now()
	report = testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "the rest", report, store.PruneReport{Answers: 355, Conversations: 10})
	if events = testenv.Must(s.Outbox(t.Context(), 500, 0))(t); len(events) != 200 {
		t.Fatalf("outbox: %d", len(events))
	}
	relayed = relayed[:0]
	for _, e := range events {
		relayed = append(relayed, e.ID)
	}
	testenv.OK(t, s.Relayed(t.Context(), relayed))
	want = store.PruneReport{Runs: 10, Events: 700}
	r.DryRun = true
	report = testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "dry run of what was waiting", report, want)
	r.DryRun = false
	report = testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "what was waiting", report, want)
	if report, err := s.Prune(t.Context(), &store.Retention{}); err != nil || report != (store.PruneReport{}) {
		t.Errorf("for ever: %+v, %v", report, err)
	}
}

func (suite) Tokens(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	token := &store.Token{Name: "laptop", Scopes: []string{store.ScopeProxy, store.ScopeRead}, Publish: true}
	secret := testenv.Must(s.NewToken(t.Context(), token))(t)
	if !strings.HasPrefix(secret, "ibid_") || len(secret) != 48 || token.Tenant != store.DefaultTenant || !strings.HasPrefix(token.ID, "tok_") {
		t.Errorf("secret of %d bytes, token %+v", len(secret), token)
	}
	got := testenv.Must(s.TokenBySecret(t.Context(), secret))(t)
	diff(t, "by secret", got, token)
	second := &store.Token{Tenant: "other", Scopes: []string{store.ScopeAdmin}}
	testenv.Must(s.NewToken(t.Context(), second))(t)
	all := testenv.Must(s.Tokens(t.Context()))(t)
	diff(t, "all", all, []store.Token{*token, *second})
	for range 2 {
		testenv.OK(t, s.RevokeToken(t.Context(), token.ID))
	}
	for about, secret := range map[string]string{"revoked": secret, "unknown": "ibid_x", "none": "", "odd": "\x00\xff"} {
		if _, err := s.TokenBySecret(t.Context(), secret); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if err := s.RevokeToken(t.Context(), "tok_\x00"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	for about, bad := range map[string]*store.Token{
		"no scope": {}, "another scope": {Scopes: []string{"root"}}, "tenant": {Tenant: "a b", Scopes: store.Scopes()},
		"long tenant": {Tenant: strings.Repeat("x", 129), Scopes: store.Scopes()}, "name": {Name: "\xff", Scopes: store.Scopes()},
	} {
		if _, err := s.NewToken(t.Context(), bad); err == nil {
			t.Errorf("%s is taken", about)
		}
	}
}
