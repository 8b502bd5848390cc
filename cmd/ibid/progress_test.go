package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestProgress(t *testing.T) {
	name := filepath.Join(t.TempDir(), "otter.json")
	testenv.OK(t, os.WriteFile(name, []byte("{}"), 0o666))
	many := slices.Repeat([]string{name}, manyInputs+1)
	var terminal bytes.Buffer
	seen, pipe := &cleaner{w: &terminal}, &bytes.Buffer{}
	for _, test := range []struct {
		what  string
		names []string
		w     world
		want  bool
	}{
		{"many files", many, world{out: pipe, err: seen}, true},
		{"a few", many[1:], world{out: pipe, err: seen}, false},
		{"only standard input", []string{stdinName}, world{out: pipe, err: seen}, false},
		{"nobody to see it", many, world{out: pipe, err: pipe}, false},
		{"answers on the terminal", many, world{out: seen, err: seen}, false},
	} {
		p := newProgress(test.names, false, test.w)
		if (p != nil) != test.want {
			t.Errorf("%s: a bar: %t, want %t", test.what, p != nil, test.want)
		}
		data, err := io.ReadAll(p.watch(strings.NewReader("otter")))
		if err != nil || string(data) != "otter" {
			t.Errorf("%s: what is read through it: %q, %v", test.what, data, err)
		}
		end := p.over(&test.w.err)
		say(test.w.err, "otter")
		end()
	}
	if !strings.Contains(terminal.String(), "ibid: otter\n") {
		t.Errorf("the message is not on the terminal: %q", terminal.String())
	}
}
