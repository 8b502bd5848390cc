package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// Results are written in the order of the items, the first before any other starts, with at most so many running at
// once.
func TestInOrder(t *testing.T) {
	const items, atOnce = 1000, 8
	var running, begun atomic.Int64
	var told []int
	numbers := func(context.Context) iter.Seq[int] {
		return func(yield func(int) bool) {
			for i := range items {
				if !yield(i) {
					return
				}
			}
		}
	}
	double := func(_ context.Context, i int) int {
		begun.Add(1)
		if n := running.Add(1); n > atOnce {
			t.Errorf("%d at once", n)
		}
		defer running.Add(-1)
		if i%3 == 0 {
			runtime.Gosched()
		}
		return 2 * i
	}
	err := inOrder(t.Context(), atOnce, numbers, double, func(i, twice int) error {
		if i == 0 && begun.Load() != 1 {
			t.Errorf("%d were started before the first was written", begun.Load())
		}
		if twice != 2*i {
			t.Errorf("%d became %d", i, twice)
		}
		told = append(told, i)
		return nil
	})
	if err != nil || len(told) != items {
		t.Fatalf("%d written, %v", len(told), err)
	}
	for i, n := range told {
		if i != n {
			t.Fatalf("%d was written as number %d", n, i)
		}
	}
	stop := errors.New("enough")
	if err := inOrder(t.Context(), atOnce, numbers, double, func(i, _ int) error {
		if i == 10 {
			return stop
		}
		return nil
	}); !errors.Is(err, stop) {
		t.Errorf("got %v, want %v", err, stop)
	}
}

// heapProbe counts the lines written to it and measures the heap after the first tenth and at the end.
type heapProbe struct {
	of, lines   int
	early, late uint64 // bytes in use
}

func (p *heapProbe) Write(b []byte) (int, error) {
	p.lines += bytes.Count(b, []byte("\n"))
	var m runtime.MemStats
	for at, in := range map[int]*uint64{p.of / 10: &p.early, p.of: &p.late} {
		if p.lines == at {
			runtime.GC()
			runtime.ReadMemStats(&m)
			*in = m.HeapAlloc
		}
	}
	return len(b), nil
}

// Memory does not grow with the number of inputs.
func TestBulkMemory(t *testing.T) {
	const inputs = 5000
	const response = `{"id":"msg_01","type":"message","role":"assistant","content":[{"type":"text","text":"Kelp grows.","citations":[` +
		`{"type":"char_location","cited_text":"Kelp grows.","document_index":0,"document_title":"Kelp","start_char_index":0,"end_char_index":11}]}]}`
	archive := filepath.Join(t.TempDir(), "a.tar")
	f := testenv.Must(os.Create(archive))(t)
	w := tar.NewWriter(f)
	for i := range inputs {
		testenv.OK(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d.json", i), Size: int64(len(response)), Mode: 0o600}))
		testenv.Must(io.WriteString(w, response))(t)
	}
	testenv.OK(t, errors.Join(w.Close(), f.Close()))
	names := fmt.Appendln(nil, filepath.Join(t.TempDir(), "missing.json"))
	for _, test := range []struct {
		args  []string
		stdin string
		exit  int
	}{
		{[]string{"cite", "--json", archive}, "", 0},
		{[]string{"cite", "--json", "--lines", "-"}, strings.Repeat(response+"\n", inputs), 0},
		{[]string{"verify", "--json", "--offline", "--list", "-"}, strings.Repeat(string(names), inputs), exitUnknown},
	} {
		out := &heapProbe{of: inputs}
		exit := run(t.Context(), test.args, world{strings.NewReader(test.stdin), out, io.Discard, func(string) (string, bool) { return "", false }})
		if exit != test.exit || out.lines != inputs {
			t.Fatalf("%q: exit code %d, %d lines", test.args, exit, out.lines)
		}
		t.Logf("%q: %d KB in use after %d inputs, %d KB after %d", test.args[0], out.early>>10, inputs/10, out.late>>10, inputs)
		if out.late > out.early+2<<20 {
			t.Errorf("%q: %d bytes in use after %d inputs, %d after %d", test.args, out.early, inputs/10, out.late, inputs)
		}
	}
}
