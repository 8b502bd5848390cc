package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/internal/text"
)

// Shells complete the statuses that docs/verify.md lists as possible failures.
func TestIncidentStatuses(t *testing.T) {
	doc := testenv.Must(os.ReadFile("../../docs/verify.md"))(t)
	var want []string
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || !strings.HasPrefix(line, "| `") || !strings.Contains(cells[1], "failure") && (!strings.HasPrefix(line, "| `differs`") || cells[1] != "warning") {
			continue
		}
		for _, word := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(cells[0], -1) {
			if strings.HasPrefix(word[1], "upstream-") && word[1] != "upstream-invalid" {
				continue // all three are on one line
			}
			want = append(want, word[1])
		}
	}
	got := text.Strings(incidentStatuses())
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-docs +completed\n%s", diff)
	}
}
