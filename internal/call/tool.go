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

// The types of the provider-independent tools of a [Chat].
const (
	toolWeb   = "web_search"
	toolFiles = "file_search"
)

// neutralTool is a provider-independent tool.
type neutralTool struct {
	kind   string
	stores []string        // stores to search, by the provider's names
	filter json.RawMessage // filter on files, in the provider's format; nil means all
}

// translate returns the chat with its tools in the provider's format.
func (c *Chat) translate(provider string) (*Chat, error) {
	translated := *c
	translated.Tools = nil
	for i, raw := range c.Tools {
		if !json.Valid(raw) {
			return nil, errors.New("a tool is not JSON")
		}
		tool, neutral, err := readNeutral(raw)
		switch {
		case err != nil:
			return nil, fmt.Errorf("tool %d: %w", i, err)
		case neutral && tool.kind == toolWeb && provider == "perplexity" && c.usesSonar():
			continue // it always searches
		case neutral:
			if raw, err = tool.encode(provider); err != nil {
				return nil, fmt.Errorf("tool %d: %w", i, err)
			}
		case provider == "anthropic" && c.Citations != CitationsOff:
			raw = citing(raw)
		}
		translated.Tools = append(translated.Tools, raw)
	}
	return &translated, nil
}

// citing returns a tool of Anthropic's that fetches pages with citations enabled, as they are off by default. A tool
// that sets them itself, and any other tool, is returned unchanged.
func citing(tool json.RawMessage) json.RawMessage {
	v := scan.Value(bytes.TrimSpace(tool))
	if !strings.HasPrefix(v.Get("type").Str(), "web_fetch") || v.Get("citations") != nil {
		return tool
	}
	return slices.Concat(json.RawMessage(v[:len(v)-1]), json.RawMessage(`,"citations":{"enabled":true}}`))
}

// readNeutral parses a tool and reports whether it is provider-independent: a web search without further members, or a
// search in stores. Others are left to the provider.
func readNeutral(raw json.RawMessage) (tool neutralTool, neutral bool, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["type"], &tool.kind) != nil {
		return tool, false, nil //nolint:nilerr // a provider's own tool
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
		return tool, false, errors.New(`file_search: "stores" must be a list of store names`)
	}
	delete(members, "stores")
	delete(members, "filter")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		return tool, false, fmt.Errorf(`file_search: besides "stores", only "filter" is allowed, not %q`, name)
	}
	return tool, true, nil
}

// encode returns the tool in the provider's format.
func (t *neutralTool) encode(provider string) (json.RawMessage, error) {
	words := t.toolFor(provider)
	if words == nil {
		var have []string
		for _, p := range Providers() {
			if t.toolFor(p.Name) != nil {
				have = append(have, p.Name)
			}
		}
		return nil, fmt.Errorf("%s does not support %s; supported by %s", provider, t.kind, strings.Join(have, ", "))
	}
	if why := t.wrongFilter(provider); why != "" {
		return nil, fmt.Errorf("file_search: %s", why)
	}
	return wire.Encode(words)
}

// toolFor returns the provider's equivalent of the tool, or nil. OpenRouter's is its own, besides those of the models.
// Mistral's stores are libraries, xAI's are collections.
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

// wrongFilter returns what is wrong with a file search's filter for a provider, or "".
func (t *neutralTool) wrongFilter(provider string) string {
	if t.filter == nil {
		return ""
	}
	var text string
	switch provider {
	case "gemini":
		if json.Unmarshal(t.filter, &text) != nil || text == "" {
			return `gemini's "filter" must be a string, such as author = "Ann"`
		}
	case "openai":
		if t.filter[0] != '{' {
			return `openai's "filter" must be an object, such as {"type":"eq","key":"author","value":"Ann"}`
		}
	default:
		return provider + ` does not support "filter"`
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

// usesSonar reports whether the model belongs to Perplexity's chat API, not to its agent API, where Sonar has another
// name.
func (c *Chat) usesSonar() bool { return strings.HasPrefix(c.Model, "sonar") }

// sourceOptions are the members that requests need for sources, for providers without a web search.
var sourceOptions = map[string]string{
	"cohere":  `"documents": [{"id": "1", "data": {"title": "…", "text": "…"}}]`,
	"bedrock": `{"document": {"name": "…", "source": {…}, "citations": {"enabled": true}}}`,
	"azure":   `"tools": [{"type": "web_search"}]`,
}

// AskForSources returns the members of JSON that a request to a provider needs for its answer to name sources: the
// provider's web search, or else the caller's documents. It is empty if none are known or the provider always searches.
func AskForSources(provider string) string {
	if words := sourceOptions[provider]; words != "" || provider == "perplexity" {
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
