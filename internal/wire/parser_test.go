package wire

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
)

// detectTest is a document, written as record takes them, and the format it must be recognised as.
type detectTest struct{ doc, want string }

func testDetect(t *testing.T, tests []detectTest) {
	t.Helper()
	for _, tt := range tests {
		event, data := splitEvent(tt.doc)
		if got := Detect(event, scan.Value(data)); got != tt.want {
			t.Errorf("Detect(%s) = %q, want %q", tt.doc, got, tt.want)
		}
	}
}

// testKnows checks which documents a parser says it knows.
func testKnows(t *testing.T, format string, known, unknown []string) {
	t.Helper()
	for _, doc := range slices.Concat(known, unknown) {
		p, err := New(format, &Config{Emit: func(*Op) {}})
		if err != nil {
			t.Fatal(err)
		}
		event, data := splitEvent(doc)
		if got, want := p.Parse(event, scan.Value(data)), slices.Contains(known, doc); got != want {
			t.Errorf("Parse(%s) = %v, want %v", doc, got, want)
		}
	}
}

// recordGiven is record with documents that the caller gave.
func recordGiven(t *testing.T, format string, given []Source, docs ...string) []string {
	t.Helper()
	var lines []string
	p, err := New(format, &Config{Documents: given, Emit: func(op *Op) { lines = append(lines, line(op)) }})
	if err != nil {
		t.Fatal(err)
	}
	lines = nil
	for _, doc := range docs {
		p.Parse(nil, scan.Value(doc))
	}
	p.Close()
	return lines
}

// fuzzEvent feeds one event three times: as it is, as it is again, so that it may match what was learned, and inside the bytes of a chunk.
func fuzzEvent(t *testing.T, format, event, request, doc string) {
	t.Helper()
	c := &Config{Request: scan.Value(request), Emit: func(op *Op) {
		if op.Kind == CiteOp && (len(op.Cite.Refs) == 0 || op.Cite.Start < 0) || op.Kind == SourceOp && op.Source.Key == "" || op.Kind == 0 {
			t.Errorf("impossible operation: %s", line(op))
		}
	}}
	p, err := New(format, c)
	if err != nil {
		t.Fatal(err)
	}
	wrapped := `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(doc)) + `"}`
	for _, data := range []string{doc, doc, wrapped} {
		b := []byte(data)
		Detect([]byte(event), b)
		p.Parse([]byte(event), b)
		clear(b)
	}
	p.Close()
}
