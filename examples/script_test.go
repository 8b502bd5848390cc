package examples

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// The page without a build step, opened in Chromium.
func (p programs) testBrowser(t *testing.T) {
	page, err := os.ReadFile("browser/index.html")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), `<script type="module">`)
	script, _, _ = strings.Cut(strings.TrimSpace(script), "\n</script>")
	if n := strings.Count(script, "\n") + 1; n > 30 {
		t.Errorf("its script has %d lines", n)
	}
	site := pages(t, map[string]string{"/": string(page)})
	compare(t, p.drive(t, site, "#sources li"), `Question 

The colony at Lake Tonbo has 41 nests this year. [1] It began with a single pair in 1968, after the mill had closed. [2] `+
		`When the water is low, the birds fish on the northern shore. [1] [3] Nobody knows why they avoid the island.

Heron census at Lake Tonbo
The lake and its birds
Water levels, station 7
`)
}

// The stock useChat, bundled by esbuild.
func (p programs) testUseChat(t *testing.T) {
	modules := testenv.NodeModules(t, "interop/web")
	dir := t.TempDir()
	bundle := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "esbuild"), "main.tsx", "--bundle", "--format=esm", "--jsx=automatic",
		"--define:process.env.NODE_ENV=\"production\"", "--outfile="+filepath.Join(dir, "app.js"), "--log-level=warning")
	bundle.Dir = "usechat"
	bundle.Env = append(os.Environ(), "NODE_PATH="+modules)
	output(t, bundle)
	page, err := os.ReadFile("usechat/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "index.html"), page, 0o600); err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(site.Close)
	compare(t, p.drive(t, site.URL, "main[data-status=ready] .assistant .chip"), herons+`

The colony at Lake Tonbo has 41 nests this year. 1 It began with a single pair in 1968, after the mill had closed. 2 `+
		`When the water is low, the birds fish on the northern shore. 1 3 Nobody knows why they avoid the island.

Heron census at Lake Tonbo
The lake and its birds
Water levels, station 7
`)
}

// drive asks a question on a page of another origin than ibid's, and returns the visible text.
func (p programs) drive(t *testing.T, site, selector string) string {
	t.Helper()
	modules := testenv.NodeModules(t, "interop/web")
	node, chromium := testenv.Tool(t, "node"), testenv.Tool(t, "chromium")
	address := site + "/?ibid=" + url.QueryEscape(p.gateway(t, "--cors-origin", site))
	return output(t, exec.CommandContext(t.Context(), node, "drive_test.mjs", modules, chromium, address, herons, selector))
}
