package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// A value in which a document breaks off counts only if it is text to show: the beginning of an address or of a number
// is a different one.
func TestBrokenOff(t *testing.T) {
	tests := testenv.Table[struct{ Name, Format, Docs, Want string }](t, "testdata/tables/broken-off.txt")
	for _, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			got := record(t, tt.Format, "", strings.Split(tt.Docs, "\n")...)
			if diff := cmp.Diff(tt.Want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

// If thoughts were requested, the beginning of an answer may be one.
func TestThoughtsRequested(t *testing.T) {
	const cut = `{"candidates":[{"content":{"parts":[{"text":"Secret`
	request := `{"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`
	if got := record(t, "gemini-generate", request, cut); got != nil {
		t.Errorf("operations %q, want none", got)
	}
	if got := record(t, "gemini-generate", request, cut+` no more"}]}}]}`); len(got) != 1 {
		t.Errorf("operations %q for a whole part, want one", got)
	}
}
