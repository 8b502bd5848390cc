package interop

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/replay"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/server/servertest"
)

// aiVersions are the versions of npm "ai" that are driven, by their names in web/package.json.
var aiVersions = []string{"ai-5-first", "ai-5", "ai-6", "ai-7"}

// startChat starts ibid so that /v1/chat asks openai, gemini, anthropic and cohere, besides late, whose citations come
// by a second call, and slow, which takes its time.
func startChat(t *testing.T, origins ...string) *world {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", replay.New(&replay.Options{Delay: time.Millisecond}))
	mux.Handle("/slow/", replay.New(&replay.Options{Delay: 20 * time.Millisecond, ChunkSize: 6}))
	w := servertest.Start(t, &servertest.Setup{
		Upstream:  withKey(mux),
		Providers: []string{"openai", "gemini", "anthropic", "cohere", "late", "slow"},
		Configure: func(c *server.Config) {
			c.Origins = origins
			for _, name := range []string{"late", "slow"} {
				c.Upstreams[name].Provider = "openai"
			}
			c.Upstreams["late"].Backfill = []server.Backfill{{
				Route: "POST /v1/responses", Tools: []json.RawMessage{json.RawMessage(`{"type":"web_search"}`)},
			}}
		},
	})
	return &world{upstream: w.Upstream.URL, gateway: w.URL}
}

// The AI SDK's own client reads what /v1/chat writes, in every version that its users have.
func TestChatAISDK(t *testing.T) {
	node := webProgram(t)
	w := startChat(t)
	for _, version := range aiVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), node, "ui_check.mjs", w.gateway, version)
			cmd.Dir = "web"
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// A stock useChat page, bundled by esbuild and opened in Chromium: it asks, sees the answer arrive with its citations, and has them
// again after a reload.
func TestChatReact(t *testing.T) {
	node := webProgram(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		missing(t, "chromium is missing: apt-get install chromium")
	}
	bundle := filepath.Join(t.TempDir(), "ui_app.js")
	build := exec.CommandContext(t.Context(), filepath.Join("node_modules", ".bin", "esbuild"), "ui_app.jsx", "--bundle", "--format=esm", "--jsx=automatic",
		"--define:process.env.NODE_ENV=\"production\"", "--outfile="+bundle)
	build.Dir = "web"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("bundling the page: %v\n%s", err, out)
	}
	script, err := os.ReadFile(bundle)
	if err != nil {
		t.Fatal(err)
	}
	var plain string // the page of docs/chat.md
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ui_app.js" {
			w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			_, _ = w.Write(script)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/plain" {
			_, _ = io.WriteString(w, plain)
			return
		}
		_, _ = io.WriteString(w, `<!doctype html><title>useChat</title><div id="root"></div><script type="module" src="/ui_app.js"></script>`)
	}))
	t.Cleanup(page.Close)
	w := startChat(t, page.URL)
	docs, err := os.ReadFile(filepath.Join("..", "docs", "chat.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, plain, _ = strings.Cut(string(docs), "```html\n")
	plain, _, _ = strings.Cut(plain, "```")
	plain = strings.ReplaceAll(plain, "http://127.0.0.1:8080", w.gateway)
	cmd := exec.CommandContext(t.Context(), node, "ui_browser.mjs", page.URL, w.gateway, chromium)
	cmd.Dir = "web"
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// webProgram returns the path of node. It ends the test where node or the packages are missing.
func webProgram(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is missing: apt-get install nodejs npm, or make interop IBID_INSTALL=1")
	}
	if _, err := os.Stat(filepath.Join("web", "node_modules")); err != nil {
		missing(t, "the packages of web/package.json are missing: make interop installs them")
	}
	return program
}

// missing ends the test: as skipped, or as failed if IBID_REQUIRE says so.
func missing(t *testing.T, what string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("IBID_REQUIRE"), ","), "tools") {
		t.Fatal(what)
	}
	t.Skip(what)
}
