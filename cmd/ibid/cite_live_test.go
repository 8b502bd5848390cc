package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

// Text is shown as it arrives.
func TestCiteLive(t *testing.T) {
	for _, form := range []string{"markdown", "plain"} {
		in, send := io.Pipe()
		receive, out := io.Pipe()
		exit := make(chan int)
		go func() {
			w := world{in, out, io.Discard, func(string) (string, bool) { return "", false }}
			code := run(t.Context(), []string{"cite", "--as", form}, w)
			out.Close()
			exit <- code
		}()
		hung := time.AfterFunc(time.Minute, func() { receive.CloseWithError(errors.New("nothing was shown while the stream went on")) })
		first, rest, _ := strings.Cut(liveEvents, "|")
		testenv.Must(io.WriteString(send, first))(t)
		const early = "Otters hold hands.\n"
		got := make([]byte, len(early))
		if _, err := io.ReadFull(receive, got); err != nil || string(got) != early {
			t.Errorf("%s: at first: %q, %v; want %q", form, got, err, early)
		}
		hung.Stop()
		go func() {
			io.WriteString(send, rest)
			send.Close()
		}()
		late, err := io.ReadAll(receive)
		if want := "They sleep on their backs, wrapped in kelp."; err != nil || !strings.Contains(string(late), want) {
			t.Errorf("%s: then: %q, %v; want %q in it", form, late, err, want)
		}
		if code := <-exit; code != 0 {
			t.Errorf("%s: exit code %d", form, code)
		}
	}
}

// A stream that is not shown on a terminal is written as one in a file is.
func TestCiteSaved(t *testing.T) {
	dir := t.TempDir()
	stream := strings.Repeat(`data: {"object":"chat.completion.chunk","citations":["https://a.example/1"],`+
		`"choices":[{"index":0,"delta":{"content":"word [1] "}}]}`+"\n\n", 1000) + "data: [DONE]\n\n"
	recorded := filepath.Join(dir, "stream.sse")
	if err := os.WriteFile(recorded, []byte(stream), 0o600); err != nil {
		t.Fatal(err)
	}
	cite := func(name string) string {
		out := testenv.Must(os.Create(filepath.Join(dir, "out")))(t)
		defer out.Close()
		w := world{strings.NewReader(stream), out, io.Discard, func(string) (string, bool) { return "", false }}
		if code := run(t.Context(), []string{"cite", name}, w); code != 0 {
			t.Errorf("%s: exit code %d", name, code)
		}
		return string(testenv.Must(os.ReadFile(out.Name()))(t))
	}
	if file, stdin := cite(recorded), cite("-"); file != stdin || len(file) < len(stream)/10 {
		t.Errorf("%d bytes of the file, %d of standard input", len(file), len(stdin))
	}
}
