package examples

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
)

// The programs of the README work as shown, except for their addresses.
func (p programs) testReadme(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	gateway := p.gateway(t)
	code := func(language string) []string {
		var blocks []string
		for _, block := range strings.Split(string(page), "\n```"+language+"\n")[1:] {
			block, _, _ = strings.Cut(block, "\n```\n")
			if language != "jsx" { // it has a gateway of its own
				block = strings.ReplaceAll(block, "http://127.0.0.1:8080", gateway)
			}
			blocks = append(blocks, block+"\n")
		}
		return blocks
	}
	programs := code("go")
	if len(programs) != 2 || len(code("python")) != 1 || len(code("jsx")) != 1 {
		t.Fatal("the README has other programs than a stream and a publisher in Go, one in Python and one in React")
	}
	t.Run("stream", func(t *testing.T) {
		compare(t, output(t, exec.CommandContext(t.Context(), newModule(t, code("sh"), programs[0]))), heronsMarked)
	})
	t.Run("publisher", func(t *testing.T) { p.testReadmePublisher(t, programs[1], string(page)) })
	t.Run("python", func(t *testing.T) { testReadmePython(t, code("python")[0]) })
	t.Run("react", func(t *testing.T) { p.testReadmeReact(t, code("jsx")[0]) })
}

// heronsMarked is the expected answer, with its citations as Markdown.
const heronsMarked = "The colony at Lake Tonbo has 41 nests this year.[1](https://birds.example/tonbo/census) " +
	"It began with a single pair in 1968, after the mill had closed.[2](https://lake.example/history) " +
	"When the water is low, the birds fish on the northern shore.[1](https://birds.example/tonbo/census) [3](https://water.example/levels?station=7) " +
	"Nobody knows why they avoid the island." + `

Sources:

1. [Heron census at Lake Tonbo](https://birds.example/tonbo/census) — birds.example
2. [The lake and its birds](https://lake.example/history) — lake.example
3. [Water levels, station 7](https://water.example/levels?station=7) — water.example
`

// newModule builds a program in a new module created by the README's commands, with this repository as ibid.
func newModule(t *testing.T, shell []string, code string) string {
	t.Helper()
	at := slices.IndexFunc(shell, func(block string) bool { return strings.Contains(block, "go get ") })
	if at < 0 {
		t.Fatal("the README does not say how ibid gets into a module")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	// go get asks a proxy for the latest version; a directory needs none.
	commands := regexp.MustCompile(`go get (\S+)`).ReplaceAllString(
		shell[at], "go mod edit -require $1@v0.0.0 -replace $1='"+root+"'",
	)
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands+"cp '"+root+"/go.sum' .\ngo build -mod=mod -o program .")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	output(t, cmd)
	return filepath.Join(dir, "program")
}

// goProgram builds a program, and returns its path.
func goProgram(t *testing.T, code string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	program := strings.TrimSuffix(source, ".go")
	output(t, exec.CommandContext(t.Context(), "go", "build", "-o", program, source))
	return program
}

// testReadmePublisher runs the publisher and verifies its answer as in the README.
func (p programs) testReadmePublisher(t *testing.T, code, page string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	const shown = "127.0.0.1:8090"
	publisher := exec.CommandContext(t.Context(), goProgram(t, strings.ReplaceAll(code, shown, address)))
	if err := publisher.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Wait() }) // the end of the test's context kills it
	for {
		res, err := http.Get("http://" + address + "/census")
		if err == nil {
			_ = res.Body.Close()
			break
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	_, said, found := strings.Cut(page, "\n$ ibid verify ")
	if !found {
		t.Fatal("the README does not verify what its publisher says")
	}
	said, _, _ = strings.Cut(said, "\n…\n")
	command, want, _ := strings.Cut(strings.ReplaceAll(said, shown, address), "\n")
	got := p.run(t, "ibid", append([]string{"verify"}, strings.Fields(command)...)...)
	if !strings.HasPrefix(got, want+"\n") {
		t.Errorf("ibid verify prints\n%s\nand not\n%s", got, want)
	}
}

// testReadmePython runs the Python program with OpenAI's SDK.
func testReadmePython(t *testing.T, code string) {
	cmd := exec.CommandContext(t.Context(), testenv.Python(t), "-c", code)
	cmd.Env = environment()
	sent, cited, _ := strings.Cut(output(t, cmd), "\n")
	if !strings.Contains(sent, "41 nests this year. ([birds.example](https://birds.example/tonbo/census?utm_source=openai))") {
		t.Errorf("the provider's answer is printed as %q", sent)
	}
	compare(t, cited, heronsMarked+`
The colony at Lake Tonbo has 41 nests this year. <- https://birds.example/tonbo/census
It began with a single pair in 1968, after the mill had closed. <- https://lake.example/history
When the water is low, the birds fish on the northern shore. <- https://birds.example/tonbo/census
When the water is low, the birds fish on the northern shore. <- https://water.example/levels?station=7
`)
}

// testReadmeReact bundles the component and asks a question in Chromium.
func (p programs) testReadmeReact(t *testing.T, code string) {
	modules := testenv.NodeModules(t, "interop/web")
	node, chromium := testenv.Tool(t, "node"), testenv.Tool(t, "chromium")
	dir := t.TempDir()
	site := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(site.Close)
	for name, text := range map[string]string{
		"Chat.jsx": strings.ReplaceAll(code, "http://127.0.0.1:8080", p.gateway(t, "--cors-origin", site.URL)),
		"main.jsx": `import { createRoot } from 'react-dom/client'
import { Chat } from './Chat.jsx'
createRoot(document.getElementById('root')).render(<Chat />)
`,
		"index.html": `<!doctype html><title>Chat</title><div id="root"></div><script type="module" src="/app.js"></script>`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bundle := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "esbuild"), "main.jsx", "--bundle", "--format=esm", "--jsx=automatic",
		"--define:process.env.NODE_ENV=\"production\"", "--outfile=app.js", "--log-level=warning")
	bundle.Dir = dir
	bundle.Env = append(os.Environ(), "NODE_PATH="+modules)
	output(t, bundle)
	compare(t, output(t, exec.CommandContext(t.Context(), node, "drive_test.mjs", modules, chromium, site.URL, herons, "a")), herons+`

The colony at Lake Tonbo has 41 nests this year. 1 It began with a single pair in 1968, after the mill had closed. 2 `+
		`When the water is low, the birds fish on the northern shore. 1 3 Nobody knows why they avoid the island.

Heron census at Lake TonboThe lake and its birdsWater levels, station 7
`)
}
