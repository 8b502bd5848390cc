package call

import (
	"encoding/json"
	"strings"
	"testing"
)

// The members that AskForSources returns make ReadRequest report a grounded request.
func TestAskForSources(t *testing.T) {
	for provider, want := range map[string]string{
		"openai": `"tools": [{"type":"web_search"}]`, "gemini": `"tools": [{"googleSearch":{}}]`,
		"anthropic": `"tools": [{"type":"web_search_20250305","name":"web_search"}]`, "openrouter": `"tools": [{"type":"openrouter:web_search"}]`,
		"perplexity": "", "generic": "", "": "",
	} {
		if got := AskForSources(provider); got != want {
			t.Errorf("%s: %s, want %s", provider, got, want)
		}
	}
	for _, p := range Providers() {
		words := AskForSources(p.Name)
		if strings.Contains(words, "…}") { // not to be sent as is
			continue
		}
		if words != "" && !json.Valid([]byte("{"+words+"}")) {
			t.Errorf("%s: %s is no JSON", p.Name, words)
		}
	}
}
