package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/biblio"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/text"
)

// runInside runs the program inside the test.
func runInside(t *testing.T, stdin io.Reader, args ...string) (exit int, stdout, stderr string) {
	t.Helper()
	var out, words bytes.Buffer
	w := world{stdin, &out, &words, func(string) (string, bool) { return "", false }}
	exit = run(t.Context(), args, w)
	return exit, out.String(), words.String()
}

// Every recording is cited without an error, in every form.
func TestCiteRecordings(t *testing.T) {
	dir := filepath.Join(testenv.Shared(t), "corpus")
	n := 0
	for _, name := range recordings(t, dir) {
		n++
		args := []string{"cite", name}
		request := strings.TrimSuffix(name, filepath.Ext(name)) + ".request.json"
		if _, err := os.Stat(request); err == nil {
			args = append(args, "--request", request)
		}
		exit, stdout, stderr := runInside(t, nil, append(args, "--json", "--raw")...)
		if exit != 0 {
			t.Errorf("%s: exit code %d: %s", name, exit, stderr)
			continue
		}
		if err := checkDocument(stdout); err != nil || strings.Count(stdout, "\n") != 1 {
			t.Errorf("%s: %v", name, err)
		}
		for _, form := range append(text.Strings(ibid.Styles()), text.Strings(biblio.Formats())...) {
			if exit, _, stderr := runInside(t, nil, append(args, "--as", form)...); exit != 0 {
				t.Errorf("%s: --as %s: exit code %d: %s", name, form, exit, stderr)
			}
		}
		body := testenv.Must(os.ReadFile(name))(t)
		slow := iotest.HalfReader(bytes.NewReader(body))
		if exit, _, stderr := runInside(t, slow, append(slices.Clone(args[:1]), args[2:]...)...); exit != 0 {
			t.Errorf("%s, from a pipe: exit code %d: %s", name, exit, stderr)
		}
	}
	if n < 100 {
		t.Errorf("only %d recordings in %s", n, dir)
	}
}

// All of them together are as many lines.
func TestCiteRecordingsTogether(t *testing.T) {
	names := recordings(t, filepath.Join(testenv.Shared(t), "corpus"))
	exit, stdout, stderr := runInside(t, nil, append([]string{"cite", "--json"}, names...)...)
	if exit != 0 {
		t.Errorf("exit code %d: %s", exit, stderr)
	}
	i := 0
	for line := range strings.Lines(stdout) {
		if err := checkDocument(line); err != nil {
			t.Errorf("%s: %v", names[i], err)
		}
		if !strings.Contains(line, fmt.Sprintf(`"input":%q`, names[i])) {
			t.Errorf("line %d is not that of %s", i+1, names[i])
		}
		i++
	}
	if i != len(names) {
		t.Errorf("%d lines of %d inputs", i, len(names))
	}
}

func recordings(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	testenv.OK(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Dir(name) == dir || strings.HasSuffix(name, ".request.json") {
			return err
		}
		names = append(names, name)
		return nil
	}))
	return names
}

const liveEvents = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[]}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Otters hold hands.\n\nThey sleep on their backs, "}}

|event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"wrapped in kelp."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}

event: message_stop
data: {"type":"message_stop"}

`

// failing is a writer that fails with an error.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWriteErrors(t *testing.T) {
	for _, form := range []string{"markdown", "html", "json", "bibtex"} {
		for _, test := range []struct {
			err  error
			exit int
			want string
		}{
			{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, exitPipe, ""},
			{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}, exitUnknown, "ibid: write standard output: no space left on device\n"},
		} {
			var words bytes.Buffer
			w := world{strings.NewReader(strings.ReplaceAll(liveEvents, "|", "")), failing{test.err}, &words, func(string) (string, bool) { return "", false }}
			exit := run(t.Context(), []string{"cite", "--as", form}, w)
			if form == "bibtex" {
				words.Reset() // also reports that nothing is cited
				test.want = ""
			}
			if exit != test.exit || words.String() != test.want {
				t.Errorf("--as %s, %v: exit code %d, %q; want %d, %q", form, test.err, exit, words.String(), test.exit, test.want)
			}
		}
	}
}

// Any input produces one document, and the exit code agrees with its error.
func FuzzCite(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(liveEvents, "|", "")))
	f.Add([]byte(`{"error":{"code":429,"message":"slow down"}}`))
	f.Add([]byte(`{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Add([]byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		exit, stdout, stderr := runInside(t, bytes.NewReader(data), "cite", "--json", "--raw")
		if exit != 0 && exit != exitUnknown {
			t.Errorf("exit code %d", exit)
		}
		if err := checkDocument(stdout); err != nil {
			t.Error(err)
		}
		var document struct{ Error *ibid.ProviderError }
		if err := json.Unmarshal([]byte(stdout), &document); err != nil || (document.Error != nil) != (exit != 0) {
			t.Errorf("exit code %d with the error %v (%v)", exit, document.Error, err)
		}
		if (exit != 0) != strings.Contains(stderr, "ibid: read -: ") {
			t.Errorf("exit code %d with the words %q", exit, stderr)
		}
		for _, form := range []string{"markdown", "plain", "html", "chicago"} {
			if exit, _, _ := runInside(t, bytes.NewReader(data), "cite", "--as", form); exit != 0 && exit != exitUnknown {
				t.Errorf("--as %s: exit code %d", form, exit)
			}
		}
	})
}

func BenchmarkCite(b *testing.B) {
	stream := strings.Replace(liveEvents, "|", "", 1)
	at := strings.Index(stream, "event: content_block_stop")
	delta := stream[strings.LastIndex(stream[:at], "event: content_block_delta"):at]
	stream = stream[:at] + strings.Repeat(delta, 2_000) + stream[at:]
	for _, form := range []string{"json", "markdown"} {
		b.Run(form, func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				w := world{strings.NewReader(stream), io.Discard, io.Discard, func(string) (string, bool) { return "", false }}
				if exit := run(b.Context(), []string{"cite", "--as", form}, w); exit != 0 {
					b.Fatalf("exit code %d", exit)
				}
			}
		})
	}
}
