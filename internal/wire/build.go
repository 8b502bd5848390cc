package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Chat is a request in no provider's words. Model and a message of the user are required.
type Chat struct {
	Model string
	// Messages are oldest first. System messages become the instructions where a provider has a place for them. Tools'
	// messages are left out, for they answer calls that no Message can name, and so is what follows the user's newest.
	Messages []Message
	// Documents are what to answer from: their ID, Title, URL, Content and what else describes them, in Raw too. Only
	// cohere, anthropic and mistral take any.
	Documents []Source
	// Tools are JSON values. Two are in no provider's words, and are put into them: {"type":"web_search"}, and
	// {"type":"file_search","stores":["…"]} with the names that the provider has for them and, where it can, its
	// "filter". All others are passed on as they are.
	Tools  []json.RawMessage
	Stream bool
	// Citations is CitationsFast …; empty: the provider's default. Only cohere has all of them; anthropic (for
	// documents) and xai (in the text) can do without. To the others it says nothing.
	Citations string
	Include   bool // ask for the sources of the tools too, where a provider sends them on request only
}

// The values of [Chat].Citations.
const (
	CitationsFast     = "fast"     // while the answer is written
	CitationsAccurate = "accurate" // after it
	CitationsOff      = "off"
)

// Built is a request in a provider's words. Who sends it adds the key, see [Provider].KeyHeader.
type Built struct {
	Method string
	Path   string              // to append to [Provider].URL, escaped, with its query if there is one
	Header map[string][]string // canonical names, as in an http.Header
	Body   []byte
}

// ErrDocuments says that a provider takes no documents with a request: they belong into a message.
var ErrDocuments = errors.New("the provider takes no documents with a request")

// BuildRequest writes a chat as a request of the provider's API that cites best: Gemini's generateContent, the
// Responses API of openai and xai, Cohere's chat v2, Anthropic's messages, Perplexity's agents (its Sonar models, which
// ended in September 2026: their chat), OpenRouter's chat, Mistral's chat (its conversations where there are tools, for
// only they run Mistral's own). Other providers are an error, and so is a chat without a model or a message of the
// user, a tool that is not JSON or that the provider does not have, and documents that the provider does not take
// ([ErrDocuments]).
//
// [ReadRequest] gives the messages back that were written, save that several system messages may have become one.
func BuildRequest(provider string, c *Chat) (*Built, error) {
	p, ok := FindProvider(provider)
	if !ok {
		return nil, fmt.Errorf("building a request: provider %q: not known", provider)
	}
	said, err := c.said()
	if err == nil {
		err = c.check(provider)
	}
	if err == nil {
		c, err = c.words(provider)
	}
	var path string
	var body any
	if err == nil {
		path, body, err = c.requestFor(provider, said)
	}
	if err != nil {
		return nil, fmt.Errorf("building a request for %s: %w", provider, err)
	}
	b := Built{Method: "POST", Path: path, Header: map[string][]string{"Content-Type": {"application/json"}}}
	for name, values := range p.Header {
		b.Header[name] = slices.Clone(values)
	}
	if b.Body, err = Encode(body); err != nil {
		return nil, fmt.Errorf("building a request for %s: %w", provider, err)
	}
	return &b, nil
}

// check says what a provider cannot do of what is asked.
func (c *Chat) check(provider string) error {
	switch c.Citations {
	case "", CitationsFast, CitationsAccurate, CitationsOff:
	default:
		return fmt.Errorf("citations %q: not one of fast, accurate, off", c.Citations)
	}
	switch provider {
	case "cohere", "anthropic":
		return nil
	case "mistral":
		if len(c.Tools) == 0 { // its conversations take no documents
			return nil
		}
	}
	if len(c.Documents) > 0 {
		return ErrDocuments
	}
	return nil
}

// requestFor returns the path and the body of a request, whose tools are in the provider's words.
func (c *Chat) requestFor(provider string, said []Message) (path string, body any, err error) {
	switch provider {
	case "gemini":
		path, err := c.geminiPath()
		return path, c.gemini(said), err
	case "openai":
		return "/v1/responses", c.responses(said, new(bool), c.included()), nil
	case "xai":
		return "/v1/responses", c.responses(said, new(bool), c.inline()), nil
	case "cohere":
		return "/v2/chat", c.cohere(said), nil
	case "anthropic":
		body, err := c.anthropic(said)
		return "/v1/messages", body, err
	case "perplexity":
		if c.ofSonar() {
			return "/chat/completions", c.chat(alternating(said)), nil
		}
		return "/v1/responses", c.responses(said, nil, nil), nil
	case "openrouter":
		return "/api/v1/chat/completions", c.chat(said), nil
	case "mistral":
		return c.mistral(said)
	}
	return "", nil, errors.New("ibid cannot write its requests")
}

// said returns the messages to send: up to the user's newest, without those of tools and those that say nothing.
func (c *Chat) said() ([]Message, error) {
	if c.Model == "" {
		return nil, errors.New("no model")
	}
	var said []Message
	newest := 0
	for _, m := range c.Messages {
		if m.Text == "" || m.Role == RoleTool {
			continue
		}
		switch m.Role {
		case RoleSystem, RoleUser, RoleAssistant:
		default:
			return nil, fmt.Errorf("role %q: not one of system, user, assistant, tool", m.Role)
		}
		said = append(said, m)
		if m.Role == RoleUser {
			newest = len(said)
		}
	}
	if newest == 0 {
		return nil, errors.New("no message of the user")
	}
	return said[:newest], nil
}

// Trim returns the newest message and the last n before it; a negative n: all. System messages are all kept and not
// counted. It never begins with an answer, whose question would be missing: Perplexity, Bedrock and older models of
// others refuse that. The newest message is kept whatever it is.
func Trim(messages []Message, n int) []Message {
	var spoken []int
	for i, m := range messages {
		if m.Role != RoleSystem {
			spoken = append(spoken, i)
		}
	}
	if len(spoken) == 0 {
		return slices.Clone(messages)
	}
	first, last := 0, len(spoken)-1
	if n >= 0 {
		first = max(0, last-n)
	}
	for first < last && messages[spoken[first]].Role != RoleUser {
		first++
	}
	var kept []Message
	for i, m := range messages {
		if m.Role == RoleSystem || i >= spoken[first] {
			kept = append(kept, m)
		}
	}
	return kept
}

// instructions joins the system messages, for providers that take them apart from the others, and returns the others.
func instructions(said []Message) (system string, rest []Message) {
	for _, m := range said {
		switch {
		case m.Role != RoleSystem:
			rest = append(rest, m)
		case system == "":
			system = m.Text
		default:
			system += "\n\n" + m.Text
		}
	}
	return system, rest
}

// alternating joins neighbours of the same role: Perplexity refuses two questions, or two answers, in a row.
func alternating(said []Message) []Message {
	var all []Message
	for _, m := range said {
		if last := len(all) - 1; last >= 0 && all[last].Role == m.Role {
			all[last].Text += "\n\n" + m.Text
			continue
		}
		all = append(all, m)
	}
	return all
}

// Encode writes JSON as people would: without escapes that only HTML needs, and without a line break at its end.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// geminiPath names the model in the path; a name with a slash says itself what kind of model it is.
func (c *Chat) geminiPath() (string, error) {
	for segment := range strings.SplitSeq(c.Model, "/") {
		if segment == "" || segment == "." || segment == ".." { // they would lead to another path
			return "", fmt.Errorf("model %.100q: it is not the name of one", c.Model)
		}
	}
	kind, name, ok := strings.Cut(c.Model, "/")
	if !ok {
		kind, name = "models", c.Model
	}
	path := "/v1beta/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
	if c.Stream {
		return path + ":streamGenerateContent?alt=sse", nil
	}
	return path + ":generateContent", nil
}
