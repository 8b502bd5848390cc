package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// Arbitrary strings are stored unchanged, found by their value, and not confused with others.
func (suite) Hostile(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	huge := strings.Repeat("very long ", 100_000)
	odd := []string{
		"nul\x00 inside", "bad\xff\xfe utf-8", "'; DROP TABLE calls; --", `back\slash "quotes" \u0000 \\u0000`, "\u202eright to left", huge, "%s ? $1 :name",
	}
	var calls []*store.Call
	for n, text := range odd {
		c := call(n, strings.ToValidUTF8(text, "\uFFFD"), fmt.Sprintf("s%d.example", n))
		c.Tenant, c.Agent, c.Run, c.Conversation, c.Upstream, c.Route = text, text, text, text, text, text
		c.Step.Tool, c.Prompt, c.Answer.ID, c.Answer.Provider = text, []store.Message{{Role: text, Text: text}}, c.Answer.Text, c.Answer.Text
		c.Answer.Sources[0].Title, c.Answer.Sources[0].URL = c.Answer.Text, "https://x.example/?"+c.Answer.Text
		c.Answer.Sources = append(c.Answer.Sources, ibid.Source{ID: c.Answer.Text, GlobalID: c.Answer.Text, Kind: ibid.File, Content: c.Answer.Text})
		c.Answer.Error = &ibid.ProviderError{Code: c.Answer.Text, Message: c.Answer.Text}
		c.Answer.Metadata = map[string]json.RawMessage{
			c.Answer.Text: json.RawMessage(`{"a":"\u0000","a":1e999999,"deep":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`),
		}
		calls = append(calls, c)
	}
	put(t, s, calls...)
	put(t, s, calls...)
	for _, c := range calls {
		about := fmt.Sprintf("%.20q", c.Tenant)
		got, err := s.Call(t.Context(), c.Tenant, c.AnswerID)
		if err != nil {
			t.Errorf("%s: %v", about, err)
			continue
		}
		want := testenv.Must(c.Encode())(t)
		if b, err := got.Encode(); err != nil || string(b) != string(want) {
			t.Errorf("%s: it is not what was stored, %v", about, err)
		}
		talk, err := s.Conversation(t.Context(), c.Tenant, c.Conversation, nil)
		if err != nil || len(talk.Calls) != 1 || talk.ID != c.Conversation {
			t.Errorf("%s: conversation: %v", about, err)
			continue
		}
		for i := range c.Answer.Sources {
			if key := c.Answer.Sources[i].Key(); talk.Numbering[key] != i+1 {
				t.Errorf("%s: source %.40q has number %d", about, key, talk.Numbering[key])
			}
		}
		for _, q := range []store.Query{{Run: c.Run}, {Conversation: c.Conversation}, {Source: c.Answer.Sources[0].URL}, {Source: c.Answer.Sources[1].Key()}} {
			if page, err := s.Calls(t.Context(), c.Tenant, &q); err != nil || len(page.Items) != 1 {
				t.Errorf("%s: by %.60q: %v", about, fmt.Sprint(q), err)
			}
		}
		if page, err := s.Sources(t.Context(), c.Tenant, &store.SourceQuery{ID: c.Answer.Text}); err != nil || len(page.Items) != 1 {
			t.Errorf("%s: by its id: %v", about, err)
		}
		if events, err := s.Events(t.Context(), c.Tenant, c.Run, 0, 0); err != nil || len(events) != 1 || !json.Valid(events[0].Data) {
			t.Errorf("%s: events %v, %v", about, events, err)
		}
	}
	if _, err := s.Call(t.Context(), "nul\uFFFD inside", "ans_0000"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a tenant whose name only looks the same: %v", err)
	}
}

// Many writers at once, also to the same runs and conversations, lose nothing and leave no gaps in numbers.
func (suite) Concurrent(t *testing.T, dsn string) {
	t.Helper()
	const writers, each = 4, 25
	stores := []*store.Store{open(t, dsn), open(t, dsn)} // like two processes
	var wg sync.WaitGroup
	errs := make(chan error, writers*each)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				a := call(w*each+i, "Together.", fmt.Sprintf("s%d.example", i%5))
				b := call(1000+w*each+i, "Together.", fmt.Sprintf("s%d.example", i%3))
				a.Run, b.Run, a.Conversation, b.Conversation = "one", "two", "talk", "talk"
				if w%2 == 0 {
					a, b = b, a
				}
				if err := stores[w%2].Put(t.Context(), []*store.Call{a, b}); err != nil {
					errs <- err
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	for _, run := range []string{"one", "two"} {
		events, err := stores[0].Events(t.Context(), store.DefaultTenant, run, 0, 500)
		if err != nil || len(events) != writers*each {
			t.Fatalf("%d events, %v", len(events), err)
		}
		for i, e := range events {
			if e.Seq != int64(i+1) || i > 0 && e.ID <= events[i-1].ID {
				t.Errorf("event %d: %d, id %d", i+1, e.Seq, e.ID)
			}
		}
	}
	talk, err := stores[1].Conversation(t.Context(), store.DefaultTenant, "talk", nil)
	if err != nil || talk.Answers != 2*writers*each || len(talk.Numbering) != 5 {
		t.Fatalf("conversation: %d answers, %v, %v", talk.Answers, talk.Numbering, err)
	}
	taken := map[int]bool{}
	for _, n := range talk.Numbering {
		taken[n] = true
	}
	for n := 1; n <= 5; n++ {
		if !taken[n] {
			t.Errorf("nothing has number %d: %v", n, talk.Numbering)
		}
	}
}

func (suite) Reopen(t *testing.T, dsn string) {
	t.Helper()
	first := open(t, dsn)
	put(t, first, call(1, "Kept.", "a.example"))
	testenv.OK(t, first.Close())
	if err := first.Put(t.Context(), []*store.Call{call(2, "After Close.")}); !store.IsTemporary(err) {
		t.Errorf("after Close: %v", err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s, err := store.Open(context.Background(), dsn, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_0001"); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// A store that a newer version has changed is left alone.
	db := raw(t, dsn)
	testenv.Must(db.Exec("INSERT INTO ibid_version (version_id, is_applied) VALUES (99, 1 = 1)"))(t)
	if _, err := store.Open(t.Context(), dsn, nil); !errors.Is(err, store.ErrNewer) || store.IsTemporary(err) {
		t.Errorf("a newer store: %v", err)
	}
}

// If a batch contains a call that cannot be stored, nothing of it is stored, and the error is not temporary.
func (suite) Poison(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	nobodys, empty := call(2, "Nobody's."), call(3, "")
	nobodys.Tenant, empty.Answer = "", nil
	for _, bad := range []*store.Call{nobodys, empty} {
		err := s.Put(t.Context(), []*store.Call{call(1, "Good."), bad})
		if err == nil || store.IsTemporary(err) {
			t.Errorf("%v", err)
		}
	}
	if got := ids(t, s, store.Query{}); len(got) != 0 {
		t.Errorf("stored: %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, []*store.Call{call(1, "Good.")}); !errors.Is(err, context.Canceled) || !store.IsTemporary(err) {
		t.Errorf("cancelled: %v", err)
	}
	put(t, s, call(1, "Good."))
	put(t, s)
}

// An answer of every provider is returned as it was: with the same document, in any unit and style.
func TestEncodeVectors(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(testenv.Root(t), "testdata", "*", "*.txtar"))
	if err != nil || len(names) < 100 {
		t.Fatalf("%d vectors, %v", len(names), err)
	}
	read := 0
	for _, name := range names {
		archive := testenv.Must(txtar.ParseFile(name))(t)
		for _, file := range archive.Files {
			answer, _ := ibid.Decode(file.Data, nil)
			if answer == nil || answer.Format == ibid.Generic {
				continue
			}
			read++
			c := call(1, "")
			c.Answer = answer
			record, err := c.Encode()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if bytes.ContainsRune(record, '\n') {
				t.Errorf("%s: the record has a line break", name)
			}
			got, err := store.DecodeCall(record)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, o := range []ibid.DocumentOptions{
				{Raw: true}, {Unit: ibid.CodePoint, Style: ibid.StyleHTML}, {Unit: ibid.UTF16, Style: ibid.StyleFootnotes, Numbering: &ibid.Numbering{"x": 7}},
			} {
				p := o
				if o.Numbering != nil {
					p.Numbering = &ibid.Numbering{"x": 7}
				}
				want := testenv.Must(answer.Document(&o).JSON())(t)
				have := testenv.Must(got.Answer.Document(&p).JSON())(t)
				diff(t, name, string(have), string(want))
			}
			got.Answer = answer
			diff(t, name+": the call", shown(t, got), shown(t, c))
		}
	}
	if read < 100 {
		t.Errorf("only %d responses in the vectors", read)
	}
}

// The hand-written encoding equals that of encoding/json.
func TestEncodeCall(t *testing.T) {
	odd := "\x00\x01\t\n\r\b\f\"\\/<>&'\x7f\xff \xe2\x80 é \u2028 \u2029 \uFFFD 🐦"
	for _, c := range []*store.Call{
		{AnswerID: "a", Tenant: "t", Started: noon()},
		{
			AnswerID: odd, Tenant: "t\n\"\\", Upstream: "é🐦", Route: odd, Conversation: odd, Run: "\n", Agent: odd, Status: -1,
			Step: store.Step{Number: 3, Tool: odd, After: []int{}}, Prompt: []store.Message{{Role: odd, Text: ""}, {Role: "", Text: odd}},
			Started: noon().Add(123456789).In(time.FixedZone("x", 3600)), FirstByte: 1, Duration: -2, Bytes: 1 << 60, Refetch: true, Of: odd,
			Publish: true, Body: &store.CallBody{Hash: odd, MediaType: odd},
		},
		{Body: &store.CallBody{}},
		{Step: store.Step{Number: -1, After: []int{1, -2, 3}}, Prompt: []store.Message{}},
	} {
		type message struct {
			Role string `json:"role"`
			Text string `json:"text"`
		}
		var prompt []message
		for _, m := range c.Prompt {
			prompt = append(prompt, message(m))
		}
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		testenv.OK(t, enc.Encode(struct {
			AnswerID     string        `json:"answer_id"`
			Tenant       string        `json:"tenant"`
			Upstream     string        `json:"upstream"`
			Route        string        `json:"route"`
			Conversation string        `json:"conversation,omitempty"`
			Run          string        `json:"run,omitempty"`
			Agent        string        `json:"agent,omitempty"`
			Step         store.Step    `json:"step"`
			Prompt       []message     `json:"prompt,omitempty"`
			Status       int           `json:"status"`
			Started      time.Time     `json:"started"`
			FirstByte    time.Duration `json:"first_byte_ns"`
			Duration     time.Duration `json:"duration_ns"`
			Bytes        int64         `json:"bytes"`
			Refetch      bool          `json:"refetch,omitempty"`
			Of           string        `json:"of,omitempty"`

			Publish bool            `json:"publish,omitempty"`
			Body    *store.CallBody `json:"body,omitempty"`
		}{
			c.AnswerID, c.Tenant, c.Upstream, c.Route, c.Conversation, c.Run, c.Agent, c.Step, prompt, c.Status, c.Started.UTC(),
			c.FirstByte, c.Duration, c.Bytes, c.Refetch, c.Of, c.Publish, c.Body,
		}))
		c.Answer = &ibid.Answer{}
		record := testenv.Must(c.Encode())(t)
		got, _, _ := strings.Cut(string(record), `,"document":`)
		diff(t, "call", got, `{"call":`+strings.TrimSpace(want.String()))
	}
	for _, year := range []int{-1, 10_000} {
		c := call(1, "")
		c.Started = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if _, err := c.Encode(); err == nil {
			t.Errorf("the year %d is taken", year)
		}
	}
}

func TestDecodeCallRefuses(t *testing.T) {
	for _, record := range []string{
		"", "null", "{}", "[]", `{"call":{}}`, `{"call":{},"document":null}`, `{"call":{},"document":{}}`, `{"call":1,"document":{"version":1}}`,
		`{"call":{},"document":{"version":2}}`, `{"call":{},"document":{"version":1,"text":"a","text_sha256":"00"}}`,
		`{"call":{},"document":{"version":1},"sum":"00000000"}`,
	} {
		if c, err := store.DecodeCall([]byte(record)); err == nil || store.IsTemporary(nil) {
			t.Errorf("%s: %+v", record, c)
		}
	}
}

func FuzzDecodeCall(f *testing.F) {
	record := testenv.Must(call(1, "Bees dance.", "bees.example").Encode())(f)
	f.Add(record)
	f.Fuzz(func(t *testing.T, record []byte) {
		c, err := store.DecodeCall(record)
		if err != nil {
			return
		}
		fresh := *c
		again := store.Call{
			AnswerID: fresh.AnswerID, Tenant: fresh.Tenant, Upstream: fresh.Upstream, Route: fresh.Route, Started: fresh.Started, Answer: fresh.Answer,
		}
		encoded, err := again.Encode()
		if err != nil {
			return // a time that JSON cannot represent
		}
		if _, err := store.DecodeCall(encoded); err != nil {
			t.Errorf("%s\nbecame\n%s: %v", record, encoded, err)
		}
	})
}
