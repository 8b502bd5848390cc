package ibid_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid"
)

// checkKept compares the documents of a before and after storing it (writing a bare document and reading it again), and
// compares their JSON with that of encoding/json.
func checkKept(t *testing.T, a *ibid.Answer) {
	t.Helper()
	data, err := a.Document(&ibid.DocumentOptions{Bare: true, Raw: true}).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var kept ibid.Answer
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	for i := range a.Sources {
		if got, want := kept.Sources[i].Key(), a.Sources[i].Key(); got != want || kept.Sources[i].GlobalID != a.Sources[i].GlobalID {
			t.Errorf("source %d: key %s, global id %s; want %s, %s", i, got, kept.Sources[i].GlobalID, want, a.Sources[i].GlobalID)
		}
	}
	for _, unit := range []ibid.Unit{ibid.UTF8, ibid.CodePoint, ibid.UTF16} {
		for _, style := range []ibid.Style{ibid.StyleMarkdown, ibid.StylePlain, ibid.StyleHTML, ibid.StyleFootnotes, ibid.StyleLaTeX} {
			opts := &ibid.DocumentOptions{Unit: unit, Style: style, Raw: true, ByID: unit == ibid.UTF16}
			first, second := a.Document(opts), kept.Document(opts)
			want := plainJSON(t, first)
			if got := plainJSON(t, second); !bytes.Equal(want, got) {
				t.Fatalf("%s, %s: different documents (-before +after):\n%s", unit, style, cmp.Diff(string(want), string(got)))
			}
			if got, err := first.JSON(); err != nil || !bytes.Equal(want, got) {
				t.Fatalf("%s, %s: not what encoding/json writes, %v:\n%s", unit, style, err, cmp.Diff(string(want), string(got)))
			}
		}
	}
}

// plainJSON returns the JSON of a document by encoding/json.
func plainJSON(t *testing.T, d *ibid.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// A stored answer yields the same documents: vectors.
func TestKeptVectors(t *testing.T) {
	for _, file := range vectorFiles(t) {
		t.Run(file, func(t *testing.T) {
			v := readVector(t, file)
			for _, data := range append(v.streams, v.body) {
				if a, _ := ibid.Decode(data, &v.options.decode); a != nil {
					checkKept(t, a)
				}
			}
		})
	}
}

// A stored answer yields the same documents: recordings.
func TestKeptCorpus(t *testing.T) {
	for _, r := range readRecordings(t) {
		t.Run(r.path, func(t *testing.T) {
			t.Parallel()
			if a, _ := ibid.Decode(r.body, &ibid.DecodeOptions{Request: r.request}); a != nil {
				checkKept(t, a)
			}
		})
	}
}
