package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// The types of the neutral tools of a [Chat].
const (
	toolWeb   = "web_search"
	toolFiles = "file_search"
)

// neutralTool is a tool in no provider's words.
type neutralTool struct {
	kind   string
	stores []string        // where to search for files, by the provider's names
	filter json.RawMessage // which of them, in the provider's words; nil: all
}

// words returns the chat with its tools in the provider's words.
func (c *Chat) words(provider string) (*Chat, error) {
	worded := *c
	worded.Tools = nil
	for i, raw := range c.Tools {
		if !json.Valid(raw) {
			return nil, errors.New("a tool is not JSON")
		}
		tool, neutral, err := readNeutral(raw)
		switch {
		case err != nil:
			return nil, fmt.Errorf("tool %d: %w", i, err)
		case neutral && tool.kind == toolWeb && provider == "perplexity" && c.ofSonar():
			continue // it always searches
		case neutral:
			if raw, err = tool.words(provider); err != nil {
				return nil, fmt.Errorf("tool %d: %w", i, err)
			}
		case provider == "anthropic" && c.Citations != CitationsOff:
			raw = citing(raw)
		}
		worded.Tools = append(worded.Tools, raw)
	}
	return &worded, nil
}

// citing returns a tool of Anthropic's that fetches pages so that they are cited, which they are on request only. One
// that says itself whether they are, and any other tool, is returned as it is.
func citing(tool json.RawMessage) json.RawMessage {
	v := scan.Value(bytes.TrimSpace(tool))
	if !strings.HasPrefix(v.Get("type").Str(), "web_fetch") || v.Get("citations") != nil {
		return tool
	}
	return slices.Concat(json.RawMessage(v[:len(v)-1]), json.RawMessage(`,"citations":{"enabled":true}}`))
}

// readNeutral reads a tool, and reports whether it is a neutral one: a web search without any detail, or a search in
// stores. The rest is for the provider to understand.
func readNeutral(raw json.RawMessage) (tool neutralTool, neutral bool, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["type"], &tool.kind) != nil {
		return tool, false, nil //nolint:nilerr // it is somebody's own
	}
	delete(members, "type")
	stores, ours := members["stores"]
	if tool.filter = members["filter"]; tool.filter != nil {
		ours = true
	}
	switch {
	case len(members) == 0 && tool.kind == toolWeb:
		return tool, true, nil
	case tool.kind != toolFiles || !ours && len(members) > 0:
		return tool, false, nil
	case json.Unmarshal(stores, &tool.stores) != nil || len(tool.stores) == 0 || slices.Contains(tool.stores, ""):
		return tool, false, errors.New(`file_search: "stores" is not a list of the stores' names`)
	}
	delete(members, "stores")
	delete(members, "filter")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		return tool, false, fmt.Errorf(`file_search: beside "stores" there is only "filter", not %q`, name)
	}
	return tool, true, nil
}

// words returns the tool in the provider's words.
func (t *neutralTool) words(provider string) (json.RawMessage, error) {
	words := t.toolFor(provider)
	if words == nil {
		var have []string
		for _, p := range Providers() {
			if t.toolFor(p.Name) != nil {
				have = append(have, p.Name)
			}
		}
		return nil, fmt.Errorf("%s has no %s; %s have", provider, t.kind, strings.Join(have, ", "))
	}
	if why := t.wrongFilter(provider); why != "" {
		return nil, fmt.Errorf("file_search: %s", why)
	}
	return wire.Encode(words)
}

// toolFor returns the tool as the provider calls it; nil: it has none. OpenRouter's is its own, beside those of the
// models. What Mistral searches are libraries, and what xAI does are collections.
func (t *neutralTool) toolFor(provider string) any {
	switch t.kind + " " + provider {
	case "web_search gemini":
		return geminiTool{Web: &struct{}{}}
	case "web_search openai", "web_search xai", "web_search mistral", "web_search perplexity":
		return typedTool{Type: "web_search"}
	case "web_search openrouter":
		return typedTool{Type: "openrouter:web_search"}
	case "web_search anthropic":
		return typedTool{Type: "web_search_20250305", Name: "web_search"}
	case "file_search gemini":
		var filter string
		_ = json.Unmarshal(t.filter, &filter) // see wrongFilter
		return geminiTool{Files: &geminiFiles{t.stores, filter}}
	case "file_search openai", "file_search xai":
		return typedTool{Type: "file_search", Stores: t.stores, Filters: t.filter}
	case "file_search mistral":
		return typedTool{Type: "document_library", Libraries: t.stores}
	}
	return nil
}

// wrongFilter says what is wrong with the filter of a search in files for a provider; empty: nothing.
func (t *neutralTool) wrongFilter(provider string) string {
	if t.filter == nil {
		return ""
	}
	var text string
	switch provider {
	case "gemini":
		if json.Unmarshal(t.filter, &text) != nil || text == "" {
			return `gemini's "filter" is a string, such as author = "Ann"`
		}
	case "openai":
		if t.filter[0] != '{' {
			return `openai's "filter" is an object, such as {"type":"eq","key":"author","value":"Ann"}`
		}
	default:
		return provider + ` takes no "filter"`
	}
	return ""
}

type typedTool struct {
	Type      string          `json:"type"`
	Name      string          `json:"name,omitempty"`
	Stores    []string        `json:"vector_store_ids,omitempty"`
	Libraries []string        `json:"library_ids,omitempty"`
	Filters   json.RawMessage `json:"filters,omitempty"`
}

type geminiTool struct {
	Web   *struct{}    `json:"googleSearch,omitempty"`
	Files *geminiFiles `json:"fileSearch,omitempty"`
}

type geminiFiles struct {
	Stores []string `json:"fileSearchStoreNames"`
	Filter string   `json:"metadataFilter,omitempty"`
}

// ofSonar reports whether Perplexity's own API of chats is meant, and not that of its agents, where Sonar has another
// name.
func (c *Chat) ofSonar() bool { return strings.HasPrefix(c.Model, "sonar") }

// asked is what providers must be sent for sources where a search of theirs is not what does it.
var asked = map[string]string{
	"cohere":  `"documents": [{"id": "1", "data": {"title": "…", "text": "…"}}]`,
	"bedrock": `{"document": {"name": "…", "source": {…}, "citations": {"enabled": true}}}`,
	"azure":   `"tools": [{"type": "web_search"}]`,
}

// AskForSources returns what a request to a provider must have for the answer to name sources, as members of its JSON:
// the provider's search of the web, or else the documents of the caller. Empty: none is known, or it always searches.
func AskForSources(provider string) string {
	if words := asked[provider]; words != "" || provider == "perplexity" {
		return words
	}
	tool := (&neutralTool{kind: toolWeb}).toolFor(provider)
	if tool == nil {
		return ""
	}
	words, err := wire.Encode(tool)
	if err != nil {
		return ""
	}
	return `"tools": [` + strings.TrimSpace(string(words)) + `]`
}
