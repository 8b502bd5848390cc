package examples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every relative link of a README leads to a file, and every example has one.
func TestReadmes(t *testing.T) {
	files, err := filepath.Glob("*/README.md")
	if err != nil || len(files) != 8 {
		t.Fatalf("found %q: %v", files, err)
	}
	for _, name := range append(files, "README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(link[1]))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The worked example of internal/wire/README.md is complete: with its file and its line, the stream shown there is
// decoded.
func TestProviderExample(t *testing.T) {
	text, err := os.ReadFile("../internal/wire/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	code := func(language, begins string) string {
		for _, b := range blocks {
			if b[1] == language && strings.HasPrefix(b[2], begins) {
				return b[2]
			}
		}
		t.Fatalf("no block of %q begins with %q", language, begins)
		return ""
	}
	table, err := os.ReadFile("../internal/wire/wire.go")
	if err != nil {
		t.Fatal(err)
	}
	const first = "var formats = [...]format{\n"
	if !strings.Contains(string(table), first) {
		t.Fatal("there is no table of formats")
	}
	dir := t.TempDir()
	replaced := map[string]string{}
	for name, content := range map[string]string{
		"tonbo.go": code("go", "package wire"),
		"wire.go":  strings.Replace(string(table), first, first+code("go", `{"tonbo-answer"`), 1),
	} {
		place, err := filepath.Abs(filepath.Join("..", "internal", "wire", name))
		if err != nil {
			t.Fatal(err)
		}
		replaced[place] = filepath.Join(dir, name)
		if err := os.WriteFile(replaced[place], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "-overlay", filepath.Join(dir, "overlay.json"), "./frameworks")
	cmd.Stdin = strings.NewReader(code("", "data: "))
	want, _, _ := strings.Cut(code("", "Der Fuß"), "(") // the number, without the link that Markdown has
	if got := output(t, cmd); !strings.Contains(got, `"response":"`+want) {
		t.Errorf("no %q in %s", want, got)
	}
}
