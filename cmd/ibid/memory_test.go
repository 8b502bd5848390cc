package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/ibidhq/ibid/internal/testenv"
)

// A program that may take 1 GB, as the system enforces, survives what would take several: 40 chats at a time with answers
// of 40 MB, and 32 responses of few bytes that unpack to much. Calls without room are told so, and others go on.
func TestLittleMemory(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("it takes half a minute, and the limits of Linux")
	}
	bomb := bombOf(t, 256<<20)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case bytes.Contains(body, []byte("unpack")):
			w.Header().Set("Content-Encoding", "br")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(bomb)
		case bytes.Contains(body, []byte("much")):
			w.Header().Set("Content-Type", "text/event-stream")
			chunk := fmt.Sprintf("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"i\","+
				"\"output_index\":0,\"content_index\":0,\"delta\":%q}\n\n", strings.Repeat("word ", 8<<10))
			for sent := 0; sent < 40<<20; sent += len(chunk) {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":`+
				`{"role":"assistant","content":"So it is."},"finish_reason":"stop"}]}`)
		}
	}))
	defer up.Close()
	url := startLittle(t, up.URL)
	post := func(path, body string) (status int, said string) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		r := testenv.Must(http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = res.Body.Close() }()
		head, _ := io.ReadAll(io.LimitReader(res.Body, 2000))
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode, string(head)
	}
	const small = `{"model":"m","messages":[{"role":"user","content":"a little"}]}`
	for _, attack := range []struct {
		name, path, body string
		at               int
	}{
		{"chats", "/v1/chat?stream=no", `{"provider":"openai","model":"m","messages":[{"role":"user","content":"much"}]}`, 40},
		{"bombs", "/openai/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"unpack"}]}`, 32},
	} {
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		var example sync.Map
		for range attack.at {
			all.Go(func() {
				status, said := post(attack.path, attack.body)
				example.Store(status, said[:min(len(said), 200)])
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
			})
		}
		var others, passed atomic.Int64
		stop := make(chan struct{})
		var beside sync.WaitGroup
		beside.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(50 * time.Millisecond):
				}
				others.Add(1)
				if status, _ := post("/openai/v1/models", small); status == http.StatusOK {
					passed.Add(1)
				}
			}
		})
		all.Wait()
		close(stop)
		beside.Wait()
		example.Range(func(status, said any) bool {
			t.Logf("%s: %d: %s", attack.name, status, said)
			return true
		})
		t.Logf("%s: statuses %v; %d of %d calls beside them passed", attack.name, statuses, passed.Load(), others.Load())
		for status := range statuses {
			switch status {
			case http.StatusOK, http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
			default:
				said, _ := example.Load(status)
				t.Errorf("%s: status %d: %v", attack.name, status, said)
			}
		}
		if passed.Load() != others.Load() {
			t.Errorf("%s: %d of %d calls beside them passed", attack.name, passed.Load(), others.Load())
		}
		testenv.Until(t, "calls are captured again", func() bool {
			status, _ := post("/openai/v1/chat/completions", small)
			return status == http.StatusOK
		})
	}
}

// bombOf returns a few bytes of Brotli that unpack to an answer of that size.
func bombOf(t *testing.T, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, 3)
	block := []byte(strings.Repeat("a", 1<<20))
	_, err := io.WriteString(w, `{"object":"chat.completion","choices":[{"message":{"content":"`)
	for sent := 0; err == nil && sent < size; sent += len(block) {
		_, err = w.Write(block)
	}
	testenv.OK(t, err)
	testenv.OK(t, w.Close())
	return b.Bytes()
}

// startLittle starts this program with 1 GB, and returns its address.
func startLittle(t *testing.T, upstream string) string {
	t.Helper()
	dir := t.TempDir()
	name, address, log := filepath.Join(dir, "ibid"), filepath.Join(dir, "address"), filepath.Join(dir, "log")
	testenv.OK(t, os.Symlink(testenv.Must(os.Executable())(t), name))
	to := testenv.Must(os.Create(log))(t)
	defer func() { _ = to.Close() }()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", `ulimit -d 1000000; exec "$0" "$@"`, name,
		"serve", "--listen", "127.0.0.1:0", "--address-file", address, "--data", filepath.Join(dir, "data"),
		"--upstream", "openai="+upstream, "--chat", "openai=m")
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=800MiB", "OPENAI_API_KEY=sk-test-0123456789")
	cmd.Stdout, cmd.Stderr = to, to
	testenv.OK(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		select {
		case err := <-ended:
			b, _ := os.ReadFile(log)
			t.Errorf("ibid ended: %v: %s", err, b[:min(len(b), 3000)])
		default:
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
			for line := range strings.Lines(string(status)) {
				if strings.HasPrefix(line, "VmHWM") {
					t.Logf("at its peak: %s", strings.TrimSpace(line))
				}
			}
			cancel()
			<-ended
		}
		cancel()
	})
	url := ""
	testenv.Until(t, "ibid listens", func() bool {
		b, _ := os.ReadFile(address)
		url = strings.TrimSpace(string(b))
		return url != ""
	})
	return url
}
