package wire

import (
	"encoding/base64"
	"strconv"
	"testing"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/testenv"
)

func TestDetect(t *testing.T) {
	for _, c := range testenv.Cases(t, "testdata/tables/detect.txt", 2) {
		event, data := splitEvent(c[1])
		if got := Detect(event, scan.Value(data)); got != c[0] {
			t.Errorf("Detect(%s) = %q, want %q", c[1], got, c[0])
		}
	}
}

// Which documents a parser recognises.
func TestParserRecognises(t *testing.T) {
	for _, c := range testenv.Cases(t, "testdata/tables/recognised.txt", 3) {
		p, err := New(c[0], quiet())
		if err != nil {
			t.Fatal(err)
		}
		event, data := splitEvent(c[2])
		if got := strconv.FormatBool(p.Parse(event, scan.Value(data))); got != c[1] {
			t.Errorf("%s: Parse(%s) = %s, want %s", c[0], c[2], got, c[1])
		}
	}
}

// fuzzEvent feeds one event three times: as it is, again, so that it may match what was learned, and inside the bytes
// of a chunk.
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

// quiet returns a configuration that discards the operations.
func quiet() *Config { return &Config{Emit: func(*Op) {}, Keep: anything} }

func anything(int) bool { return true }
