package frame_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/frame"
)

func TestWriteAfterClose(t *testing.T) {
	for _, in := range []string{"", "{", "{}", "data: {}", "[{}", "da", event("a", "{}")[:20]} {
		n := 0
		s := frame.Splitter{Emit: func(frame.Frame) { n++ }}
		s.Write([]byte(in))
		s.Close()
		before, kind := n, s.Kind()
		s.Close()
		if took, err := s.Write([]byte("{}\n\ndata: {}\n\n")); took != 14 || err != nil {
			t.Errorf("%q: Write after Close = %d, %v, want 14, nil", in, took, err)
		}
		s.Close()
		if n != before || s.Kind() != kind {
			t.Errorf("%q: after Close %d more frames, Kind %v, was %v", in, n-before, s.Kind(), kind)
		}
	}
}

func TestNoEmit(t *testing.T) {
	for _, in := range []string{"{}", "text", "data: {}\n\n", event("a", "{}")} {
		var s frame.Splitter
		s.Write([]byte(in))
		s.Close()
		if s.Kind() == frame.Unknown {
			t.Errorf("%q: Kind is Unknown", in)
		}
	}
}

func TestKindIsKnownAtOnce(t *testing.T) {
	var s frame.Splitter
	for _, step := range []struct {
		write string
		want  frame.Kind
	}{
		{" ", frame.Unknown}, {"{", frame.JSON}, {"}\n", frame.JSON}, {"{", frame.Lines}, {"}\n", frame.Lines},
	} {
		s.Write([]byte(step.write))
		if s.Kind() != step.want {
			t.Errorf("after %q: Kind = %v, want %v", step.write, s.Kind(), step.want)
		}
	}
}

// A document is emitted with its last byte, not with the first byte of the next.
func TestEmitIsPrompt(t *testing.T) {
	for _, tt := range []struct{ in, ready string }{
		{`{"a":1}`, `{"a":1}`},
		{"[{}", "{}"},
		{"data: 1\n\n", "1"},
		{"data: 2\r\n\r", "2"},
		{"{}\n{\"b\":2}\n", `{"b":2}`},
		{event("a", `{"c":3}`), `{"c":3}`},
		{"plain", "plain"},
	} {
		last := ""
		s := frame.Splitter{Emit: func(f frame.Frame) { last = string(f.Data) }}
		s.Write([]byte(tt.in))
		if last != tt.ready {
			t.Errorf("%q: last frame before Close = %q, want %q", tt.in, last, tt.ready)
		}
	}
}

func TestWholeDocumentsAreNotCopied(t *testing.T) {
	for _, in := range []string{
		`{"a":1}` + "\n" + `{"b":2}` + "\n",
		"[" + `{"a":1},"b"` + "]",
		"event: x\ndata: {}\n\ndata: {}\r\n\r\n",
		event("a", "{}") + event("b", "{}"),
		"{} garbage\n",
		"plain text",
	} {
		p := []byte(in)
		s := frame.Splitter{Emit: func(f frame.Frame) {
			for name, b := range map[string][]byte{"Data": f.Data, "Event": f.Event} {
				if len(b) == 0 {
					continue
				}
				if !bytes.Contains(p, b) || !aliases(p, b) {
					t.Errorf("%q: %s %q is a copy", in, name, b)
				}
				if cap(b) != len(b) {
					t.Errorf("%q: appending to %s %q would overwrite the input", in, name, b)
				}
			}
		}}
		s.Write(p)
		s.Close()
	}
}

// aliases reports whether b lies within p.
func aliases(p, b []byte) bool {
	for i := range p {
		if &p[i] == &b[0] {
			return true
		}
	}
	return false
}

func TestDataIsNilWhereThereIsNone(t *testing.T) {
	for _, in := range []string{"data: [DONE]\n\n", "data: 123456789\n\n", `{"a":123456}`} {
		s := frame.Splitter{MaxDocument: 8, Emit: func(f frame.Frame) {
			if f.Data != nil {
				t.Errorf("%q: Data = %q, want nil", in, f.Data)
			}
		}}
		s.Write([]byte(in))
		s.Close()
	}
}

func TestError(t *testing.T) {
	var got error
	s := frame.Splitter{Emit: func(f frame.Frame) { got = f.Err }}
	s.Write([]byte("\n{\"a\":"))
	s.Close()
	if !errors.Is(got, frame.ErrTruncated) {
		t.Errorf("Err = %v, want ErrTruncated", got)
	}
	if diff := cmp.Diff("reading JSON document at byte 1: the input ended inside it", fmt.Sprint(got)); diff != "" {
		t.Errorf("Err (-want +got):\n%s", diff)
	}
}

// No input allocates more than about twice MaxDocument: the buffer, and the smaller one from which it grew.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 1 << 20
	junk := strings.Repeat("x", 1000)
	for _, in := range []struct{ name, first, again string }{
		{"JSON string", `{"a":"`, junk},
		{"brackets", `{"a":[`, strings.Repeat("[", 1000)},
		{"trailing garbage", "{}", junk},
		{"line", "{}\n{}\n{", junk},
		{"element", `["`, junk},
		{"white space", " ", strings.Repeat(" ", 1000)},
		{"SSE data line", "data: ", junk},
		{"SSE data lines", "data: ", junk + "\ndata: "},
		{"SSE event name", "event: ", junk},
		{"SSE comment", ":", junk},
		{"SSE bare object", ":\n{", junk},
		{"AWS message", prelude(200<<20, 0), junk},
		{"AWS headers", prelude(limit-1, limit-100), junk},
		{"AWS corrupt", event("a", "{}"), junk},
	} {
		t.Run(in.name, func(t *testing.T) {
			s := frame.Splitter{MaxDocument: limit, Emit: func(frame.Frame) {}}
			piece := []byte(in.again)
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			s.Write([]byte(in.first))
			for range 5 * limit / len(piece) {
				s.Write(piece)
			}
			s.Close()
			runtime.ReadMemStats(&now)
			if took := now.TotalAlloc - before.TotalAlloc; took > 2*limit+100_000 {
				t.Errorf("%d bytes allocated for a limit of %d", took, limit)
			}
		})
	}
}

// Inputs on which a backtracking splitter would take hours.
func TestTimeIsLinear(t *testing.T) {
	const n = 1 << 19
	for _, in := range []struct{ name, first, again string }{
		{"nested brackets", `{"a":`, "["},
		{"closing brackets", "{}", "]"},
		{"backslashes", `{"a":"`, `\`},
		{"escaped quotes", `{"a":"`, `\"`},
		{"empty strings", `{`, `""`},
		{"empty documents", "", "{}"},
		{"empty elements", "[{}", ",{}"},
		{"scalars", "[{}", ",1"},
		{"white space", "", " "},
		{"white space behind a bracket", "[", " "},
		{"blank lines", "{}\n{}", "\n"},
		{"CR", "data: 1", "\r"},
		{"LF", "data: 1", "\n"},
		{"CR lines", "data: 1\r\r", "data:\r"},
		{"LF lines", "data: 1\n\n", "data:\n"},
		{"events", "", "data:x\r\r"},
		{"bare objects", ":\n", "{\n"},
	} {
		t.Run(in.name, func(t *testing.T) {
			input := []byte(in.first + strings.Repeat(in.again, n/len(in.again)))
			for _, size := range []int{len(input), 1} {
				var s frame.Splitter
				for piece := range slices.Chunk(input, size) {
					s.Write(piece)
				}
				s.Close()
			}
		})
	}
}

// corpus returns the recorded responses, or skips the test.
func corpus(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("IBID_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	var files []string
	for _, ext := range []string{"json", "sse", "ndjson", "eventstream"} {
		found, err := filepath.Glob(filepath.Join(dir, "corpus", "*", "*."+ext))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Skipf("no recordings in %s: set IBID_SHARED to the directory that holds corpus/", dir)
	}
	return files
}

func TestRecordings(t *testing.T) {
	kinds := map[string][]frame.Kind{
		".json":        {frame.JSON, frame.Array},
		".sse":         {frame.SSE},
		".ndjson":      {frame.Lines},
		".eventstream": {frame.AWS},
	}
	for _, file := range corpus(t) {
		input, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, kind := splitAnyhow(t, input, 0)
		if t.Failed() {
			t.Fatalf("%s: frames depend on the cuts", file)
		}
		if want := kinds[filepath.Ext(file)]; !slices.Contains(want, kind) {
			t.Errorf("%s: Kind = %v, want one of %v", file, kind, want)
		}
		if len(got) == 0 {
			t.Errorf("%s: no documents", file)
		}
		for _, r := range got {
			if r.Why != nil {
				t.Errorf("%s: document at %d: %v", file, r.Offset, r.Why)
			}
		}
	}
}
