package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
)

// What a document breaks off in counts only where it is text to show: the beginning of an address is another address, that
// of a number another number.
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

// With thoughts asked for, the beginning of an answer may be one.
func TestThoughtsAskedFor(t *testing.T) {
	const cut = `{"candidates":[{"content":{"parts":[{"text":"Secret`
	request := `{"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`
	if got := record(t, "gemini-generate", request, cut); got != nil {
		t.Errorf("said %q", got)
	}
	if got := record(t, "gemini-generate", request, cut+` no more"}]}}]}`); len(got) != 1 {
		t.Errorf("of a whole part was said %q", got)
	}
}
