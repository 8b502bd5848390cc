package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/replay"
)

// key is what the upstream wants to see; it would not, if the gateway touched the headers in which SDKs send it.
const key = "key-of-the-test"

// world is an upstream and a gateway in front of it.
type world struct {
	upstream, gateway string // URLs; the providers' names follow
}

// start builds ibid and starts it. It ends with the test.
func start(t *testing.T) *world {
	t.Helper()
	upstream := httptest.NewServer(withKey(replay.New(nil)))
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	program := filepath.Join(dir, "ibid")
	build := exec.CommandContext(t.Context(), "go", "-C", "..", "build", "-o", program, "./cmd/ibid")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building ibid: %v\n%s", err, out)
	}
	args := []string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data")}
	for _, name := range []string{"openai", "gemini", "anthropic", "cohere"} {
		args = append(args, "--upstream", name+"="+upstream.URL+"/"+name)
	}
	// Not t.Context: that ends before the clean-up, which stops it as a user does.
	cmd := exec.CommandContext(context.Background(), program, args...)
	cmd.Env = environment()
	return &world{upstream: upstream.URL, gateway: run(t, cmd)}
}

// run starts the gateway, and returns the URL that it says it listens at.
func run(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting ibid: %v", err)
	}
	var log strings.Builder
	ended := make(chan struct{})
	url := make(chan string, 1)
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if at, ok := strings.CutPrefix(lines.Text(), "ibid: listening on "); ok {
				url <- at
				continue
			}
			log.WriteString(lines.Text() + "\n")
		}
		_, _ = io.Copy(io.Discard, said) // behind a line that is too long
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("ibid ended: %v", err)
		}
		if t.Failed() {
			t.Logf("ibid's log:\n%s", &log)
		}
	})
	select {
	case at := <-url:
		return at
	case <-ended:
		t.Fatal("ibid did not start")
		return ""
	}
}

// environment is ours without what configures ibid.
func environment() []string {
	var vars []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "IBID_") {
			vars = append(vars, v)
		}
	}
	return vars
}

// withKey refuses calls without the key.
func withKey(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
		if strings.TrimPrefix(in, "Bearer ") != key {
			http.Error(w, `{"error":{"message":"the key did not arrive"}}`, http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// document reads a stored answer from the gateway.
func (w *world) document(t *testing.T, answerID string) *ibid.Document {
	t.Helper()
	if answerID == "" {
		t.Fatal("the response had no Ibid-Answer header")
	}
	var d ibid.Document
	w.get(t, "/v1/answers/"+answerID, &d)
	return &d
}

func (w *world) get(t *testing.T, path string, into any) {
	t.Helper()
	data, err := fetch(t.Context(), w.gateway+path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, data)
	}
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, res.Status, data)
	}
	return data, err
}
