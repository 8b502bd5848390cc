package page

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// A bare class may only be styled in one sheet, so that no sheet's rules apply to another's elements of the same class.
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
