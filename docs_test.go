package ibid_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// Every relative link in a Markdown file leads to a file in the module, and its fragment to a heading there.
func TestLinks(t *testing.T) {
	walkModule(t, ".md", func(name string) {
		for _, target := range parsePage(t, name).links {
			if why := brokenLink(t, name, target); why != "" {
				t.Errorf("%s: link %s: %s", name, target, why)
			}
		}
	})
}

func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{} // by directory
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		is := path.Base(f.path) == "doc.go" && f.syntax.Doc != nil
		documented[f.dir] = documented[f.dir] || is
		if f.syntax.Doc != nil && !is {
			t.Errorf("%s: a package comment outside doc.go", f.path)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no doc.go with a package comment", dir)
		}
	}
}

// The README's Go programs build, and a story in cmd/ibid/testdata runs each of its sh commands. TestReadme in cmd/ibid
// and in examples checks what its programs and other commands print.
func TestReadme(t *testing.T) {
	const name = "README.md"
	stories := readMatches(t, "cmd/ibid/testdata/*.txtar", "cmd/ibid/testdata/*/*.txtar")
	programs := 0
	for _, block := range parsePage(t, name).blocks {
		switch block.language {
		case "go":
			programs++
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(block.code), 0o600); err != nil {
				t.Fatal(err)
			}
			build := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, file)
			if out, err := build.CombinedOutput(); err != nil {
				t.Errorf("%s: this program does not build: %v\n%s\n%s", name, err, out, block.code)
			}
		case "sh":
			for _, command := range ibidCommands(block.code) {
				if !strings.Contains(stories, " "+command+"\n") {
					t.Errorf("%s: no story of cmd/ibid/testdata runs: %s", name, command)
				}
			}
		case "console", "python", "jsx": // run by the other tests
		default:
			t.Errorf("%s: nothing runs blocks of %q:\n%s", name, block.language, block.code)
		}
	}
	if programs == 0 {
		t.Errorf("%s has no program in Go", name)
	}
}

func TestIbidCommands(t *testing.T) {
	got := ibidCommands(`$ curl -s https://api.example/v1 | ibid cite - > out.txt
# a comment that says ibid cite
printed by ibid cite
$ IBID_DB=x.db ibid serve --check && ibid   version 2>/dev/null
$ go install github.com/ibidhq/ibid/cmd/ibid@latest
$ go run ./cmd/ibid demo   # a comment
`)
	if want := []string{"ibid cite -", "ibid serve --check", "ibid version", "ibid demo"}; !slices.Equal(got, want) {
		t.Errorf("ibidCommands = %q, want %q", got, want)
	}
}

func TestSlug(t *testing.T) {
	for heading, want := range map[string]string{
		"Use it":                 "use-it",
		"What `ibid` is, & why?": "what-ibid-is--why",
		"Größe in UTF-8":         "größe-in-utf-8",
	} {
		if got := slug(heading); got != want {
			t.Errorf("slug(%q) = %q, want %q", heading, got, want)
		}
	}
}

// brokenLink returns why a link of a page is broken, or "" if it is not. Links to the web are not checked.
func brokenLink(t *testing.T, page, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" {
		return ""
	}
	file := page
	if u.Path != "" {
		file = path.Join(path.Dir(page), u.Path)
	}
	if u.Host != "" || path.IsAbs(u.Path) || !filepath.IsLocal(filepath.FromSlash(file)) {
		return "not relative, or outside the module"
	}
	if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
		return "no such file"
	}
	if u.Fragment != "" && path.Ext(file) == ".md" && !slices.Contains(parsePage(t, file).anchors, u.Fragment) {
		return fmt.Sprintf("%s has no such heading", file)
	}
	return ""
}

// mdPage holds the parts of a Markdown file that the tests check.
type mdPage struct {
	links   []string  // and images
	anchors []string  // of headings, as on GitHub
	blocks  []mdBlock // fenced
}

type mdBlock struct{ language, code string }

func parsePage(t *testing.T, name string) mdPage {
	t.Helper()
	source, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	var p mdPage
	root := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.Heading:
			p.anchors = append(p.anchors, p.anchor(slug(headingText(n, source))))
		case *ast.FencedCodeBlock:
			p.blocks = append(p.blocks, mdBlock{string(n.Language(source)), string(n.Lines().Value(source))})
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	return p
}

// anchor returns a heading's anchor, unique in its page: the second one with a name gets -1.
func (p *mdPage) anchor(slug string) string {
	unique := slug
	for i := 1; slices.Contains(p.anchors, unique); i++ {
		unique = fmt.Sprintf("%s-%d", slug, i)
	}
	return unique
}

// headingText returns the text below a node without markup.
func headingText(n ast.Node, source []byte) string {
	var b strings.Builder
	for child := n.FirstChild(); child != nil; child = child.NextSibling() {
		if leaf, ok := child.(*ast.Text); ok {
			b.Write(leaf.Value(source))
		} else {
			b.WriteString(headingText(child, source))
		}
	}
	return b.String()
}

// slug returns the anchor of a heading, as on GitHub.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// ibidCommands returns the calls of ibid in a shell block, without redirections. In a block with prompts, only lines
// with a prompt are commands; the rest is output.
func ibidCommands(code string) []string {
	var commands []string
	prompts := strings.HasPrefix(code, "$ ") || strings.Contains(code, "\n$ ")
	for line := range strings.Lines(strings.ReplaceAll(code, "\\\n", " ")) {
		line, prompt := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if prompts && !prompt || strings.HasPrefix(line, "#") {
			continue
		}
		for call := range strings.SplitSeq(strings.ReplaceAll(line, "&&", "|"), "|") {
			if command := ibidCommand(strings.Fields(call)); command != "" {
				commands = append(commands, command)
			}
		}
	}
	return commands
}

// ibidCommand returns a call of ibid as one line, or "" if it calls something else.
func ibidCommand(call []string) string {
	for len(call) > 0 && strings.Contains(call[0], "=") { // variables set for the call
		call = call[1:]
	}
	if len(call) > 2 && strings.Join(call[:3], " ") == "go run ./cmd/ibid" {
		call = append([]string{"ibid"}, call[3:]...)
	}
	if len(call) == 0 || call[0] != "ibid" {
		return ""
	}
	end := slices.IndexFunc(call, func(word string) bool { return strings.ContainsAny(word, "<>#&") })
	if end < 0 {
		end = len(call)
	}
	return strings.Join(call[:end], " ")
}

// flatLines removes indentation, runs of spaces and empty lines.
func flatLines(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if fields := strings.Fields(line); len(fields) > 0 {
			b.WriteString(strings.Join(fields, " ") + "\n")
		}
	}
	return b.String()
}

// readMatches returns the flatLines of all files that match the patterns.
func readMatches(t *testing.T, patterns ...string) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(flatLines(string(file)))
		}
	}
	return b.String()
}
