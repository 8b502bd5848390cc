package store_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// An answer of every provider comes back as it was: the same document, in any unit and style.
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

// What is written by hand is what encoding/json would write.
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
			return // a time that JSON cannot say
		}
		if _, err := store.DecodeCall(encoded); err != nil {
			t.Errorf("%s\nbecame\n%s: %v", record, encoded, err)
		}
	})
}
