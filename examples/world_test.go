package examples

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/replay"
)

// programs is the directory with ibid and the Go examples, built under their names.
type programs string

// build builds ibid and the examples.
func build(t *testing.T) programs {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-C", "..", "build", "-o", dir, "./cmd/ibid"},
		{"build", "-o", dir, "./agent", "./frameworks", "./gosdk", "./rag"},
	} {
		if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return programs(dir)
}

// run runs a program to its end and returns its output.
func (p programs) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(string(p), name), args...)
	cmd.Env = environment()
	return output(t, cmd)
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, out, &said)
	}
	return string(out)
}

// serve starts a program that prints its address, and returns its URL. The program ends with the test.
func (p programs) serve(t *testing.T, name string, args ...string) string {
	t.Helper()
	// Not t.Context: it ends before the cleanup, which stops the program as a user would.
	cmd := exec.CommandContext(context.Background(), filepath.Join(string(p), name), args...)
	cmd.Env = environment()
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	var log strings.Builder
	ended := make(chan struct{})
	url := make(chan string, 1)
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if at := listening(lines.Text()); at != "" && len(url) == 0 {
				url <- at
			}
			log.WriteString(lines.Text() + "\n")
		}
		_, _ = io.Copy(io.Discard, said) // after a line that is too long
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		<-ended
		_ = cmd.Wait() // the exit status is irrelevant: an interrupt ends it
		if t.Failed() {
			t.Logf("%s says:\n%s", name, &log)
		}
	})
	select {
	case at := <-url:
		return at
	case <-ended:
		t.Fatalf("%s did not start:\n%s", name, &log)
		return ""
	}
}

// listening returns the URL in a line that reports a program's address, as printed by the examples or logged by ibid
// serve.
func listening(line string) string {
	if _, at, ok := strings.Cut(line, "listening on "); ok {
		return at
	}
	var logged struct{ Msg, URL string }
	if json.Unmarshal([]byte(line), &logged) == nil && logged.Msg == "listening" {
		return logged.URL
	}
	return ""
}

// key is the API key for the simulated providers.
const key = "key-of-the-test"

// environment is the process's environment without ibid's configuration, and with keys.
func environment() []string {
	vars := []string{"OPENAI_API_KEY=" + key, "GEMINI_API_KEY=" + key, "ANTHROPIC_API_KEY=" + key, "CO_API_KEY=" + key}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "IBID_") && !strings.Contains(v, "_API_KEY=") {
			vars = append(vars, v)
		}
	}
	return vars
}

// upstream starts the simulated providers and returns their base URL, to be followed by a name.
func upstream(t *testing.T, o *replay.Options) string {
	t.Helper()
	s := httptest.NewServer(replay.New(o))
	t.Cleanup(s.Close)
	return s.URL
}

// gateway starts ibid serve in front of the simulated providers and returns its URL.
func (p programs) gateway(t *testing.T, args ...string) string {
	t.Helper()
	at := upstream(t, &replay.Options{Delay: 2 * time.Millisecond})
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--prompts", "all"}, args...)
	for _, name := range []string{"openai", "gemini", "anthropic", "cohere"} {
		args = append(args, "--upstream", name+"="+at+"/"+name)
	}
	return p.serve(t, "ibid", append(args, "--chat", "openai=gpt-5")...)
}

// pages serves files as web pages.
func pages(t *testing.T, files map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(s.Close)
	return s.URL
}
