package examples

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Python with the standard library runs; with the SDKs, which may be missing here, it is compiled, and the addresses in it are the
// gateway's.
func (p programs) testPython(t *testing.T) {
	python := tool(t, "python3", "python3")
	gateway := p.gateway(t)
	cmd := exec.CommandContext(t.Context(), python, "python/plain.py", herons)
	cmd.Env = append(os.Environ(), "IBID_URL="+gateway)
	compare(t, output(t, cmd), `'The colony at Lake Tonbo has 41 nests this year.' [1]
'It began with a single pair in 1968, after the mill had closed.' [2]
'When the water is low, the birds fish on the northern shore.' [1]
'When the water is low, the birds fish on the northern shore.' [3]
[1] Heron census at Lake Tonbo
[2] The lake and its birds
[3] Water levels, station 7
`)
	files, err := filepath.Glob("*/*.py")
	if err != nil || len(files) < 4 {
		t.Fatalf("found only %q: %v", files, err)
	}
	compile := exec.CommandContext(t.Context(), python, append([]string{"-m", "py_compile"}, files...)...)
	compile.Env = append(os.Environ(), "PYTHONPYCACHEPREFIX="+t.TempDir())
	output(t, compile)
	// What the SDK appends to its base URL.
	for file, path := range map[string]string{
		"python/openai_sdk.py": "/responses",
		"python/google_sdk.py": "/v1beta/models/gemini-3-flash:generateContent",
	} {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		base := regexp.MustCompile(`base_url=IBID \+ "([^"]*)"`).FindSubmatch(code)
		if base == nil {
			t.Errorf("%s has no base URL", file)
			continue
		}
		res := post(t, gateway+string(base[1])+path, `{"model":"gpt-5","input":"`+herons+`","contents":[{"role":"user","parts":[{"text":"`+herons+`"}]}]}`)
		if res.status != http.StatusOK || res.header.Get("Ibid-Answer") == "" {
			t.Errorf("%s: %s%s is answered with %d: %s", file, base[1], path, res.status, res.body)
		}
	}
}

// The page without a build, opened in Chromium.
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
	modules := webModules(t)
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

// drive asks in a page at another origin than ibid's, and returns what a reader then sees.
func (p programs) drive(t *testing.T, site, selector string) string {
	t.Helper()
	modules := webModules(t)
	node, chromium := tool(t, "node", "nodejs"), tool(t, "chromium", "chromium")
	address := site + "/?ibid=" + url.QueryEscape(p.gateway(t, "--cors-origin", site))
	return output(t, exec.CommandContext(t.Context(), node, "drive_test.mjs", modules, chromium, address, herons, selector))
}

// webModules returns the packages that interop/web has, or ends the test.
func webModules(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "interop", "web", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		missing(t, "the packages of interop/web/package.json are missing: make interop installs them")
	}
	return dir
}
