package store_test

import (
	"bytes"
	"path/filepath"
	"testing"

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
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
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
				want, err := answer.Document(&o).JSON()
				if err != nil {
					t.Fatal(err)
				}
				have, err := got.Answer.Document(&p).JSON()
				if err != nil {
					t.Fatal(err)
				}
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
	record, err := call(1, "Bees dance.", "bees.example").Encode()
	if err != nil {
		f.Fatal(err)
	}
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
