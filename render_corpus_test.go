package ibid

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// TestRenderCorpus renders every recording and parses the markdown: each marker must be a link, and so in no code and
// no other link; none may be in a word; and the rest of the text and its tree must not change.
func TestRenderCorpus(t *testing.T) {
	dir := filepath.Join(testenv.Shared(t), "corpus")
	manifest, err := os.ReadFile(filepath.Join(dir, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	answers, markers := 0, 0
	for line := range strings.Lines(string(manifest)) {
		path, _, _ := strings.Cut(line, "\t")
		body, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			continue // the head of the table, or a recording kept elsewhere
		}
		t.Run(path, func(t *testing.T) {
			a, err := Decode(body, nil)
			if err != nil {
				t.Fatal(err)
			}
			answers++
			markers += len(newRendering(a, nil).markers)
			checkLinks(t, a)
			checkClaims(t, a)
			isLink := func(c Citation) bool { return c.Covers == CoversLink }
			oneMessage := !slices.ContainsFunc(a.Parts, func(p Part) bool { return p.Message != a.Parts[0].Message })
			if oneMessage && !slices.ContainsFunc(a.Citations, isLink) { // else more than markers is changed
				checkOnlyMarkers(t, a)
				checkText(t, a)
				_, want := outline(a.Text)
				if _, got := outline(withMarkers(a)); !slices.Equal(want, got) {
					t.Errorf("markers changed the tree (-want +got):\n%s", cmp.Diff(want, got))
				}
			}
		})
	}
	t.Logf("%d markers in %d answers", markers, answers)
	if markers == 0 {
		t.Error("no recording has a marker")
	}
}
