package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// maxTokens is the longest answer asked for where the API demands a number: what every model can write.
const maxTokens = 4096

type roleContent struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

func roleContents(said []Message) []roleContent {
	all := make([]roleContent, 0, len(said))
	for _, m := range said {
		all = append(all, roleContent{m.Role, m.Text})
	}
	return all
}

type textPart struct {
	Text string `json:"text"`
}

type geminiContent struct {
	Role  string     `json:"role,omitempty"`
	Parts []textPart `json:"parts"`
}

type geminiRequest struct {
	System   *geminiContent    `json:"systemInstruction,omitempty"`
	Contents []geminiContent   `json:"contents"`
	Tools    []json.RawMessage `json:"tools,omitempty"`
}

func (c *Chat) gemini(said []Message) any {
	b := geminiRequest{Tools: c.Tools}
	system, rest := instructions(said)
	if system != "" {
		b.System = &geminiContent{Parts: []textPart{{system}}}
	}
	for _, m := range rest {
		role := m.Role
		if role == RoleAssistant {
			role = "model"
		}
		b.Contents = append(b.Contents, geminiContent{role, []textPart{{m.Text}}})
	}
	return b
}

type responsesRequest struct {
	Model   string            `json:"model"`
	Input   []roleContent     `json:"input"`
	Tools   []json.RawMessage `json:"tools,omitempty"`
	Include []string          `json:"include,omitempty"`
	Stream  bool              `json:"stream,omitempty"`
	Store   *bool             `json:"store,omitempty"` // false: the provider need not keep what ibid does
}

func (c *Chat) responses(said []Message, store *bool, include []string) any {
	return responsesRequest{c.Model, roleContents(said), c.Tools, include, c.Stream, store}
}

// included returns what OpenAI's tools find and tell only when asked: without it an answer has the cited sources alone.
func (c *Chat) included() []string {
	if !c.Include {
		return nil
	}
	var files, web bool
	for _, tool := range c.Tools {
		var t struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(tool, &t) != nil {
			continue // no object: for the provider to refuse
		}
		files = files || t.Type == "file_search"
		web = web || strings.HasPrefix(t.Type, "web_search")
	}
	var include []string
	if files {
		include = append(include, "file_search_call.results")
	}
	if web {
		include = append(include, "web_search_call.action.sources")
	}
	return include
}

// inline says to xAI that its links are not to stand in the text; the sources it found come all the same.
func (c *Chat) inline() []string {
	if c.Citations == CitationsOff {
		return []string{"no_inline_citations"}
	}
	return nil
}

type chatRequest struct {
	Model    string            `json:"model"`
	Messages []roleContent     `json:"messages"`
	Tools    []json.RawMessage `json:"tools,omitempty"`
	Stream   bool              `json:"stream,omitempty"`
}

func (c *Chat) chat(said []Message) chatRequest {
	return chatRequest{c.Model, roleContents(said), c.Tools, c.Stream}
}

type cohereRequest struct {
	Model     string            `json:"model"`
	Messages  []roleContent     `json:"messages"`
	Documents []cohereDocument  `json:"documents,omitempty"`
	Citations *cohereCitations  `json:"citation_options,omitempty"`
	Tools     []json.RawMessage `json:"tools,omitempty"`
	Stream    bool              `json:"stream"` // Cohere's reference wants it always
}

type cohereCitations struct {
	Mode string `json:"mode"`
}

type cohereDocument struct {
	ID   string          `json:"id,omitempty"`
	Data json.RawMessage `json:"data"`
}

// documentData are the names that Cohere recommends for what a model shall read of a document, and those of ours that
// [ReadDocuments] knows.
type documentData struct {
	Title       string   `json:"title,omitempty"`
	URL         string   `json:"url,omitempty"`
	Filename    string   `json:"filename,omitempty"`
	Authors     []string `json:"authors,omitempty"`
	PublishedAt string   `json:"published_at,omitempty"`
	Text        string   `json:"text,omitempty"`
}

func (c *Chat) cohere(said []Message) any {
	b := cohereRequest{Model: c.Model, Messages: roleContents(said), Tools: c.Tools, Stream: c.Stream}
	if c.Citations != "" {
		b.Citations = &cohereCitations{strings.ToUpper(c.Citations)} // as Cohere's SDKs spell the modes
	}
	for i := range c.Documents {
		s := &c.Documents[i]
		data := withRest(documentData{s.Title, s.URL, s.Filename, s.Authors, s.PublishedAt, s.Content}, s)
		b.Documents = append(b.Documents, cohereDocument{firstOf(s.ID, s.Key), data})
	}
	return b
}

type anthropicRequest struct {
	Model     string            `json:"model"`
	MaxTokens int               `json:"max_tokens"`
	System    string            `json:"system,omitempty"`
	Messages  []roleContent     `json:"messages"`
	Tools     []json.RawMessage `json:"tools,omitempty"`
	Stream    bool              `json:"stream,omitempty"`
}

type anthropicContent struct {
	Type      string              `json:"type"`
	Text      string              `json:"text,omitempty"`
	Source    *anthropicSource    `json:"source,omitempty"`
	Title     string              `json:"title,omitempty"`
	Context   string              `json:"context,omitempty"` // is read by the model and never cited
	Citations *anthropicCitations `json:"citations,omitempty"`
}

type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type anthropicCitations struct {
	Enabled bool `json:"enabled"`
}

// anthropic puts the documents before the user's newest words, as Anthropic recommends. Their places there are what its
// citations count, so none may be left out.
func (c *Chat) anthropic(said []Message) (any, error) {
	system, rest := instructions(said)
	b := anthropicRequest{c.Model, maxTokens, system, roleContents(rest), c.Tools, c.Stream}
	if len(c.Documents) == 0 {
		return b, nil
	}
	var blocks []anthropicContent
	for i := range c.Documents {
		s := &c.Documents[i]
		if s.Content == "" {
			return nil, fmt.Errorf("document %d: no content", i)
		}
		blocks = append(blocks, anthropicContent{
			Type: "document", Title: firstOf(s.Title, s.Filename), Context: strings.Join(s.context(), "\n"),
			Source:    &anthropicSource{"text", "text/plain", s.Content},
			Citations: &anthropicCitations{c.Citations != CitationsOff},
		})
	}
	newest := &b.Messages[len(b.Messages)-1]
	newest.Content = append(blocks, anthropicContent{Type: "text", Text: rest[len(rest)-1].Text})
	return b, nil
}

type mistralEntry struct {
	Object  string `json:"object"`
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

type conversationRequest struct {
	Model        string            `json:"model"`
	Instructions string            `json:"instructions,omitempty"`
	Inputs       []mistralEntry    `json:"inputs"`
	Tools        []json.RawMessage `json:"tools"`
	Stream       bool              `json:"stream,omitempty"`
	Store        bool              `json:"store"`
}

func (c *Chat) mistral(said []Message) (path string, body any, err error) {
	if len(c.Tools) == 0 {
		b, err := c.mistralChat(said)
		return "/v1/chat/completions", b, err
	}
	system, rest := instructions(said)
	b := conversationRequest{Model: c.Model, Instructions: system, Tools: c.Tools, Stream: c.Stream}
	for _, m := range rest {
		b.Inputs = append(b.Inputs, mistralEntry{"entry", "message.input", m.Role, m.Text})
	}
	return "/v1/conversations", b, nil
}

// mistralResult is one entry of a tool's result in the words of Mistral's guide to citations.
type mistralResult struct {
	Title    string   `json:"title,omitempty"`
	URL      string   `json:"url,omitempty"`
	Snippets []string `json:"snippets,omitempty"`
	Date     string   `json:"date,omitempty"`
	Source   string   `json:"source,omitempty"`
	Authors  []string `json:"authors,omitempty"`
}

type mistralMessage struct {
	roleContent
	Calls  []mistralCall `json:"tool_calls,omitempty"`
	CallID string        `json:"tool_call_id,omitempty"`
	Name   string        `json:"name,omitempty"`
}

type mistralCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// mistralChat gives the documents as what a tool found, which is the only thing that Mistral's references can point to:
// by its keys, which are the documents' places.
func (c *Chat) mistralChat(said []Message) (any, error) {
	b := c.chat(said)
	if len(c.Documents) == 0 {
		return b, nil
	}
	results := map[string]json.RawMessage{}
	for i := range c.Documents {
		s := &c.Documents[i]
		r := mistralResult{
			Title:   firstOf(s.Title, s.Filename),
			URL:     s.URL,
			Date:    s.PublishedAt,
			Source:  s.Site,
			Authors: s.Authors,
		}
		if s.Content != "" {
			r.Snippets = []string{s.Content}
		}
		results[strconv.Itoa(i)] = withRest(r, s)
	}
	content, err := Encode(results)
	if err != nil {
		return nil, err
	}
	const tool, id = "documents", "documents" // an id has nine letters or digits
	call := mistralCall{ID: id, Type: "function"}
	call.Function.Name, call.Function.Arguments = tool, "{}"
	all := make([]mistralMessage, 0, len(said)+2)
	for _, m := range b.Messages {
		all = append(all, mistralMessage{roleContent: m})
	}
	all = append(all,
		mistralMessage{roleContent: roleContent{RoleAssistant, ""}, Calls: []mistralCall{call}},
		mistralMessage{roleContent: roleContent{RoleTool, string(content)}, CallID: id, Name: tool})
	return struct {
		Model    string           `json:"model"`
		Messages []mistralMessage `json:"messages"`
		Stream   bool             `json:"stream,omitempty"`
	}{b.Model, all, b.Stream}, nil
}
