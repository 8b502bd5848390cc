package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every relative link of a README leads to a file, and every example has one.
func TestReadmes(t *testing.T) {
	files, err := filepath.Glob("*/README.md")
	if err != nil || len(files) != 7 {
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
