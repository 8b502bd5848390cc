package wire

import (
	"strconv"
	"strings"
	"testing"
)

// openAIFormat returns the format that a recording of the manifest must be recognised as, or "" for those of other
// parsers.
func openAIFormat(provider, api string) string {
	responses := strings.HasPrefix(api, "openai-responses")
	switch {
	case responses && provider == "xai":
		return "xai-responses"
	case responses:
		return "openai-responses"
	case !strings.HasPrefix(api, "openai-chat"):
		return ""
	case provider == "groq", provider == "deepseek":
		return "openai-chat"
	}
	return provider + "-chat"
}

func TestDetectOpenAIRecordings(t *testing.T) {
	mine := map[string]bool{}
	for _, f := range formats {
		if strings.HasSuffix(f.name, "-responses") || strings.HasSuffix(f.name, "-chat") {
			mine[f.name] = true
		}
	}
	for _, r := range recordings(t, func(string, string) bool { return true }) {
		provider, _, _ := strings.Cut(r.path, "/")
		want := openAIFormat(provider, r.api)
		got := ""
		for i := 0; got == "" && i < min(len(r.data), 16); i++ {
			got = Detect(r.events[i], r.data[i])
		}
		if got != want && (want != "" || mine[got]) {
			t.Errorf("%s: recognised as %q, want %q", r.path, got, want)
		}
	}
}

// TestOpenAIRecordings holds the number of citations that is said to that of the manifest. The manifest counts annotations
// and, where the text is marked with numbers, the marks: those are for package ibid to find, so that here the lists count
// that the marks stand for.
func TestOpenAIRecordings(t *testing.T) {
	for _, r := range recordings(t, func(provider, api string) bool { return openAIFormat(provider, api) != "" }) {
		provider, _, _ := strings.Cut(r.path, "/")
		t.Run(strings.ReplaceAll(r.path, "/", ":"), func(t *testing.T) {
			lines := record(t, openAIFormat(provider, r.api), r.request, r.docs...)
			keys := map[string]bool{}
			for _, l := range lines {
				if rest, ok := strings.CutPrefix(l, "cite "); ok {
					keys[strings.Fields(rest)[0]] = true
				}
			}
			want, _ := strconv.Atoi(r.cites)
			if provider == "perplexity" {
				if countPrefix(lines, "markers 0 1,2") != 1 {
					t.Error("the list that marks stand for was not said once")
				}
				want = 0
			}
			if len(keys) != want {
				t.Errorf("%d citations, want %d", len(keys), want)
			}
			if n := countPrefix(lines, "text "); n == 0 {
				t.Error("no text")
			}
			if n := countPrefix(lines, "issue "); n > 0 {
				t.Errorf("%d issues", n)
			}
			if countPrefix(lines, "end") == 0 && !strings.HasSuffix(r.docs[len(r.docs)-1], "[DONE]") {
				t.Error("no end")
			}
			if countPrefix(lines, "finish 0 stop") == 0 {
				t.Error("did not stop")
			}
			if t.Failed() || testing.Verbose() {
				for _, l := range lines {
					if !strings.HasPrefix(l, "text ") {
						t.Log(shorten(l))
					}
				}
			}
		})
	}
}
