package wire

import (
	"strconv"
	"strings"
	"testing"
)

// citedFormat returns the format that a recording of the manifest must be recognised as, or "" for those of other parsers.
func citedFormat(api string) string {
	switch format := strings.TrimSuffix(api, "-stream"); format {
	case "anthropic-messages", "bedrock-converse", "bedrock-rag", "cohere-v1", "cohere-v2":
		return format
	}
	return ""
}

// TestCitedRecordings holds the number of citations that is said to that of the manifest.
func TestCitedRecordings(t *testing.T) {
	for _, r := range recordings(t, func(_, api string) bool { return citedFormat(api) != "" }) {
		t.Run(strings.ReplaceAll(r.path, "/", ":"), func(t *testing.T) {
			format := citedFormat(r.api)
			got := ""
			for i := 0; got == "" && i < min(len(r.data), 16); i++ {
				got = Detect(r.events[i], r.data[i])
			}
			if got != format {
				t.Errorf("recognised as %q", got)
			}
			lines := record(t, format, r.request, r.docs...)
			keys := map[string]bool{}
			for _, l := range lines {
				if rest, ok := strings.CutPrefix(l, "cite "); ok {
					key, _, _ := strings.Cut(rest, " 0/")
					keys[key] = true
				}
			}
			if want, _ := strconv.Atoi(r.cites); len(keys) != want {
				t.Errorf("%d citations, want %d", len(keys), want)
			}
			if n := countPrefix(lines, "issue "); n > 0 {
				t.Errorf("%d issues", n)
			}
			if countPrefix(lines, "end") == 0 || countPrefix(lines, "finish 0 ") == 0 {
				t.Error("no end")
			}
			if t.Failed() {
				for _, l := range lines {
					if !strings.HasPrefix(l, "text ") {
						t.Log(shorten(l))
					}
				}
			}
		})
	}
}
