package ibid_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every row of the threat model in SECURITY.md and of the faults in docs/reliability.md names an existing test: a
// function (with its package if the name is ambiguous), a story of a test of stories, or a fault of the cluster tests.
// The fuzz targets in SECURITY.md exist too.
func TestSecurityTable(t *testing.T) {
	packages, faults := map[string][]string{}, "" // packages by the names of their functions
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		ofCluster := filepath.ToSlash(filepath.Dir(path)) == "interop/cluster"
		if !strings.HasSuffix(path, "_test.go") && !ofCluster {
			return nil
		}
		text, err := os.ReadFile(path)
		if ofCluster {
			faults += string(text)
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if dir == "." {
			dir = "ibid"
		}
		for _, m := range function.FindAllSubmatch(text, -1) {
			packages[string(m[1])] = append(packages[string(m[1])], dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	stories := map[string]string{"TestScript": "cmd/ibid/testdata/script", "TestPostgresScript": "cmd/ibid/testdata"}
	name := regexp.MustCompile("`(?:([a-z0-9/]+)\\.)?((?:Test|Fuzz)\\w+)(/[\\w/]+)?`")
	for _, file := range []string{"SECURITY.md", "docs/reliability.md"} {
		doc, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head := regexp.MustCompile(`(?m)^\| (?:--- \| )*--- \|\n`).FindIndex(doc)
		if head == nil {
			t.Fatalf("%s has no table", file)
		}
		table, _, _ := strings.Cut(string(doc[head[1]:]), "\n\n")
		rows := strings.Split(table, "\n")
		if len(rows) < 15 {
			t.Fatalf("the table of %s has %d rows", file, len(rows))
		}
		for _, row := range rows {
			cells := strings.Split(strings.Trim(row, "| "), " | ")
			found := name.FindAllStringSubmatch(cells[len(cells)-1], -1)
			if len(found) == 0 {
				t.Errorf("%s: no test shows %q", file, cells[0])
			}
			for _, m := range found {
				switch in := packages[m[2]]; {
				case len(in) == 0 || m[1] != "" && !slices.Contains(in, m[1]):
					t.Errorf("%s: %q is shown by %s, which does not exist", file, cells[0], m[0])
				case len(in) > 1 && m[1] == "":
					t.Errorf("%s: %q is shown by %s, which is in each of %v", file, cells[0], m[0], in)
				}
				in := stories[m[2]]
				if m[2] == "TestStories" { // in several packages
					in = m[1] + "/testdata/story"
				}
				if m[3] == "" || in == "" && strings.Contains(faults, `"`+m[3][1:]+`"`) {
					continue
				}
				if _, err := os.Stat(filepath.Join(in, m[3]+".txtar")); err != nil {
					t.Errorf("%s: %q is shown by a story that does not exist: %v", file, cells[0], err)
				}
			}
		}
		if _, targets, ok := strings.Cut(string(doc), "\n## Fuzzing\n"); ok {
			for _, m := range name.FindAllStringSubmatch(targets, -1) {
				if !slices.Contains(packages[m[2]], m[1]) {
					t.Errorf("%s: there is no target %s", file, m[0])
				}
			}
		}
	}
}
