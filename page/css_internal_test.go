package page

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// A class by itself means something in one sheet only: what one says of it must not reach what another calls the same.
func TestSheets(t *testing.T) {
	files, err := fs.Glob(assetFiles, "assets/css/*.css")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	comment, rule, bare := regexp.MustCompile(`(?s)/\*.*?\*/`), regexp.MustCompile(`([^{}]+)\{`), regexp.MustCompile(`^\.[\w-]+$`)
	in := map[string]string{}
	for _, file := range files {
		css, err := fs.ReadFile(assetFiles, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rule.FindAllStringSubmatch(comment.ReplaceAllString(string(css), ""), -1) {
			for selector := range strings.SplitSeq(m[1], ",") {
				selector = strings.TrimSpace(selector)
				if !bare.MatchString(selector) {
					continue
				}
				if other, ok := in[selector]; ok && other != file {
					t.Errorf("%s is in %s and in %s", selector, other, file)
				}
				in[selector] = file
			}
		}
	}
}
