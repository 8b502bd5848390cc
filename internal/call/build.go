package call

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// Chat is a provider-independent request. Model and a user message are required.
type Chat struct {
	Model string
	// Messages are in order, oldest first. System messages become the instructions if a provider has a place for them.
	// Tool messages are omitted, because they answer calls that a Message cannot name, and so is what follows the last
	// user message.
	Messages []Message
	// Documents are the documents to answer from: their ID, Title, URL, Content and further members, including those in
	// Raw. Only cohere, anthropic and mistral accept them.
	Documents []wire.Source
	// Tools are JSON values. Two are provider-independent and are translated: {"type":"web_search"}, and
	// {"type":"file_search","stores":["…"]} with the provider's names of the stores and, where supported, its "filter".
	// All others are passed on unchanged, except that anthropic is asked to cite the pages fetched by its web_fetch.
	Tools  []json.RawMessage
	Stream bool
	// Citations is CitationsFast …; empty means the provider's default. Only cohere has all of them; anthropic (for
	// documents) and xai (in the text) support CitationsOff. Others ignore it.
	Citations string
	Include   bool // also request the sources that tools found, if a provider sends them only on request
}

// The values of [Chat].Citations.
const (
	CitationsFast     = "fast"     // during generation
	CitationsAccurate = "accurate" // after generation
	CitationsOff      = "off"
)

// Built is a request in a provider's format. The sender adds the key, see [Provider].KeyHeader.
type Built struct {
	Method string
	Path   string              // appended to [Provider].URL; escaped, including any query
	Header map[string][]string // canonical names, as in an http.Header
	Body   []byte
}

// NewBody returns a request body that releases its bytes at its end, because a transport keeps the request as long as
// the response. Close does nothing.
func NewBody(b []byte) io.ReadCloser { return &body{b} }

type body struct{ rest []byte }

func (b *body) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		b.rest = nil
	}
	return n, nil
}

func (b *body) Close() error { return nil }

// ErrDocuments reports that a provider accepts no documents in a request: they must be part of a message.
var ErrDocuments = errors.New("the provider accepts no documents in a request")

// BuildRequest encodes a chat as a request to the provider's API with the best citations: Gemini's generateContent, the
// Responses API of openai and xai, Cohere's chat v2, Anthropic's messages, Perplexity's agents (its Sonar models, which
// ended in September 2026, use its chat), OpenRouter's chat, Mistral's chat (its conversations if there are tools,
// because only they run Mistral's own). It returns an error for other providers, for a chat without a model or a user
// message, for a tool that is not JSON or not supported by the provider, and for documents that it does not accept
// ([ErrDocuments]).
//
// [ReadRequest] returns the same messages, except that several system messages may have become one.
func BuildRequest(provider string, c *Chat) (*Built, error) {
	p, ok := FindProvider(provider)
	if !ok {
		return nil, fmt.Errorf("building a request: unknown provider %q", provider)
	}
	messages, err := c.messagesToSend()
	switch {
	case err != nil:
	case !slices.Contains([]string{"", CitationsFast, CitationsAccurate, CitationsOff}, c.Citations):
		err = fmt.Errorf("citations %q: not one of fast, accurate, off", c.Citations)
	case len(c.Documents) == 0, provider == "cohere", provider == "anthropic":
	case provider != "mistral", len(c.Tools) > 0: // its conversations accept no documents
		err = ErrDocuments
	}
	if err == nil {
		c, err = c.translate(provider)
	}
	var path string
	var body any
	if err == nil {
		path, body, err = c.requestFor(provider, messages)
	}
	if err != nil {
		return nil, fmt.Errorf("building a request for %s: %w", provider, err)
	}
	b := Built{Method: "POST", Path: path, Header: map[string][]string{"Content-Type": {"application/json"}}}
	for name, values := range p.Header {
		b.Header[name] = slices.Clone(values)
	}
	if b.Body, err = wire.Encode(body); err != nil {
		return nil, fmt.Errorf("building a request for %s: %w", provider, err)
	}
	return &b, nil
}

// requestFor returns the path and body of a request whose tools are already in the provider's format.
func (c *Chat) requestFor(provider string, messages []Message) (path string, body any, err error) {
	switch provider {
	case "gemini":
		for segment := range strings.SplitSeq(c.Model, "/") {
			if segment == "" || segment == "." || segment == ".." { // these would change the path
				return "", nil, fmt.Errorf("model %.100q: not a model name", c.Model)
			}
		}
		// A name with a slash includes the kind of model.
		kind, name, ok := strings.Cut(c.Model, "/")
		if !ok {
			kind, name = "models", c.Model
		}
		path := "/v1beta/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
		if c.Stream {
			return path + ":streamGenerateContent?alt=sse", c.gemini(messages), nil
		}
		return path + ":generateContent", c.gemini(messages), nil
	case "openai":
		b := c.body()
		b.Input, b.Include, b.Store = roleContents(messages), c.included(), new(bool)
		return "/v1/responses", b, nil
	case "xai":
		b := c.body()
		if b.Input, b.Store = roleContents(messages), new(bool); c.Citations == CitationsOff {
			b.Include = []string{"no_inline_citations"} // the sources are sent all the same
		}
		return "/v1/responses", b, nil
	case "cohere":
		return "/v2/chat", c.cohere(messages), nil
	case "anthropic":
		body, err := c.anthropic(messages)
		return "/v1/messages", body, err
	case "perplexity":
		if c.usesSonar() {
			return "/chat/completions", c.chat(alternating(messages)), nil
		}
		b := c.body()
		b.Input = roleContents(messages)
		return "/v1/responses", b, nil
	case "openrouter":
		return "/api/v1/chat/completions", c.chat(messages), nil
	case "mistral":
		if len(c.Tools) == 0 {
			b, err := c.mistralChat(messages)
			return "/v1/chat/completions", b, err
		}
		system, rest := instructions(messages)
		b := c.body()
		b.Instructions, b.Store = system, new(bool)
		for _, m := range rest {
			b.Inputs = append(b.Inputs, mistralEntry{"entry", "message.input", m.Role, m.Text})
		}
		return "/v1/conversations", b, nil
	}
	return "", nil, errors.New("its requests are not supported")
}

// messagesToSend returns the messages up to the last user message, without tool messages and empty ones.
func (c *Chat) messagesToSend() ([]Message, error) {
	if c.Model == "" {
		return nil, errors.New("no model")
	}
	var messages []Message
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
		messages = append(messages, m)
		if m.Role == RoleUser {
			newest = len(messages)
		}
	}
	if newest == 0 {
		return nil, errors.New("no message of the user")
	}
	return messages[:newest], nil
}

// Trim returns the last message and up to n before it; all if n is negative. System messages are always kept and do not
// count. The result never begins with an answer whose question is missing, which Perplexity, Bedrock and older models
// of others reject. The last message is kept whatever its role.
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

// instructions joins the system messages, for providers that have a separate place for them, and returns the others.
func instructions(messages []Message) (system string, rest []Message) {
	for _, m := range messages {
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

// alternating joins adjacent messages of the same role: Perplexity rejects two questions, or two answers, in a row.
func alternating(messages []Message) []Message {
	var all []Message
	for _, m := range messages {
		if last := len(all) - 1; last >= 0 && all[last].Role == m.Role {
			all[last].Text += "\n\n" + m.Text
			continue
		}
		all = append(all, m)
	}
	return all
}

// maxTokens is the length requested where the API requires a limit: every model supports it.
const maxTokens = 4096

// requestBody is the body of all requests except Gemini's: each API uses some of the members.
type requestBody struct {
	Model        string            `json:"model"`
	MaxTokens    int               `json:"max_tokens,omitempty"`
	System       string            `json:"system,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Input        []roleContent     `json:"input,omitempty"`
	Inputs       []mistralEntry    `json:"inputs,omitempty"`
	Messages     any               `json:"messages,omitempty"`
	Documents    []cohereDocument  `json:"documents,omitempty"`
	Citations    any               `json:"citation_options,omitempty"`
	Tools        []json.RawMessage `json:"tools,omitempty"`
	Include      []string          `json:"include,omitempty"`
	Format       *askFormat        `json:"response_format,omitempty"`
	Stream       *bool             `json:"stream,omitempty"` // may be false, for APIs that require it
	Store        *bool             `json:"store,omitempty"`  // may be false: the provider need not store what ibid does
	Temperature  *float64          `json:"temperature,omitempty"`
}

// body returns the members common to most requests.
func (c *Chat) body() requestBody {
	b := requestBody{Model: c.Model, Tools: c.Tools}
	if c.Stream {
		b.Stream = &c.Stream
	}
	return b
}

type roleContent struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

func roleContents(messages []Message) []roleContent {
	all := make([]roleContent, 0, len(messages))
	for _, m := range messages {
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

func (c *Chat) gemini(messages []Message) any {
	b := geminiRequest{Tools: c.Tools}
	system, rest := instructions(messages)
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

// included returns the extra output of OpenAI's tools to request: without it, an answer only has the cited sources.
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
			continue // not an object: the provider will reject it
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

func (c *Chat) chat(messages []Message) requestBody {
	b := c.body()
	b.Messages = roleContents(messages)
	return b
}

type cohereDocument struct {
	ID   string          `json:"id,omitempty"`
	Data json.RawMessage `json:"data"`
}

// documentData uses the names that Cohere recommends for documents, and those that [wire.ReadDocuments] reads.
type documentData struct {
	Title       string   `json:"title,omitempty"`
	URL         string   `json:"url,omitempty"`
	Filename    string   `json:"filename,omitempty"`
	Authors     []string `json:"authors,omitempty"`
	PublishedAt string   `json:"published_at,omitempty"`
	Text        string   `json:"text,omitempty"`
}

func (c *Chat) cohere(messages []Message) any {
	b := c.chat(messages)
	if b.Stream = &c.Stream; c.Citations != "" {
		b.Citations = map[string]string{"mode": strings.ToUpper(c.Citations)} // as Cohere's SDKs spell the modes
	}
	for i := range c.Documents {
		s := &c.Documents[i]
		data := withOthers(documentData{s.Title, s.URL, s.Filename, s.Authors, s.PublishedAt, s.Content}, s)
		b.Documents = append(b.Documents, cohereDocument{cmp.Or(s.ID, s.Key), data})
	}
	return b
}

type anthropicContent struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Source    *textSource     `json:"source,omitempty"`
	Title     string          `json:"title,omitempty"`
	Context   string          `json:"context,omitempty"` // read by the model, never cited
	Citations map[string]bool `json:"citations,omitempty"`
}

type textSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// anthropic puts the documents before the last user message, as Anthropic recommends. Its citations refer to them by
// position, so none may be omitted.
func (c *Chat) anthropic(messages []Message) (any, error) {
	system, rest := instructions(messages)
	contents := roleContents(rest)
	b := c.body()
	b.MaxTokens, b.System, b.Messages = maxTokens, system, contents
	if len(c.Documents) == 0 {
		return b, nil
	}
	var blocks []anthropicContent
	for i := range c.Documents {
		s := &c.Documents[i]
		if s.Content == "" {
			return nil, fmt.Errorf("document %d: no content", i)
		}
		about := About(s) // read by the model, never cited
		if s.URL != "" {
			about = slices.Insert(about, 0, s.URL)
		}
		blocks = append(blocks, anthropicContent{
			Type: "document", Title: cmp.Or(s.Title, s.Filename), Context: strings.Join(about, "\n"),
			Source:    &textSource{"text", "text/plain", s.Content},
			Citations: map[string]bool{"enabled": c.Citations != CitationsOff},
		})
	}
	newest := &contents[len(contents)-1]
	newest.Content = append(blocks, anthropicContent{Type: "text", Text: rest[len(rest)-1].Text})
	return b, nil
}

type mistralEntry struct {
	Object  string `json:"object"`
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

// mistralResult is one entry of a tool's result, as in Mistral's guide to citations.
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

// mistralChat sends the documents as a tool's result, which is the only thing that Mistral's references can point to:
// by its keys, which are the documents' positions.
func (c *Chat) mistralChat(messages []Message) (any, error) {
	b := c.chat(messages)
	if len(c.Documents) == 0 {
		return b, nil
	}
	results := map[string]json.RawMessage{}
	for i := range c.Documents {
		s := &c.Documents[i]
		r := mistralResult{
			Title:   cmp.Or(s.Title, s.Filename),
			URL:     s.URL,
			Date:    s.PublishedAt,
			Source:  s.Site,
			Authors: s.Authors,
		}
		if s.Content != "" {
			r.Snippets = []string{s.Content}
		}
		results[strconv.Itoa(i)] = withOthers(r, s)
	}
	content, err := wire.Encode(results)
	if err != nil {
		return nil, err
	}
	const tool, id = "documents", "documents" // an id must have nine letters or digits
	call := mistralCall{ID: id, Type: "function"}
	call.Function.Name, call.Function.Arguments = tool, "{}"
	all := make([]mistralMessage, 0, len(messages)+2)
	for _, m := range roleContents(messages) {
		all = append(all, mistralMessage{roleContent: m})
	}
	all = append(all,
		mistralMessage{roleContent: roleContent{RoleAssistant, ""}, Calls: []mistralCall{call}},
		mistralMessage{roleContent: roleContent{RoleTool, string(content)}, CallID: id, Name: tool})
	b.Messages = all
	return b, nil
}

// documentMember is a member of a document beyond the fields of a source.
type documentMember struct {
	name  string
	value scan.Value
}

// otherMembers returns the members of a document's Raw, as read by [wire.ReadDocuments], beyond the other fields. A
// document without a text is its own content and has none.
func otherMembers(s *wire.Source) []documentMember {
	data := scan.Value(s.Raw)
	if !data.IsObject() || !json.Valid(data) {
		return nil
	}
	if inner := data.Get("data"); !inner.IsNull() {
		data = inner
	}
	content := ""
	for _, name := range []string{"content", "snippet", "text"} {
		if data.Get(name).Text() != "" {
			content = name
		}
	}
	if content == "" {
		return nil
	}
	var rest []documentMember
	for o := scan.Members(data); o.Next(); {
		name, value := string(o.Key), o.Val
		switch name {
		case content, "id", "filename", "file_name", "published_at", "date", "authors":
			continue
		case "title", "url", "author":
			if value.IsString() {
				continue
			}
		}
		if !value.IsNull() {
			rest = append(rest, documentMember{name, value})
		}
	}
	return rest
}

// About returns what is known about a document besides its title, address and content, as lines for a model to read.
func About(s *wire.Source) []string {
	var lines []string
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, strings.Join(strings.Fields(name+": "+value), " "))
		}
	}
	add("authors", strings.Join(s.Authors, ", "))
	add("published_at", s.PublishedAt)
	for _, m := range otherMembers(s) {
		add(m.name, m.value.Text())
	}
	return lines
}

// withOthers encodes object, which must be encodable, with a document's other members appended.
func withOthers(object any, s *wire.Source) json.RawMessage {
	all, _ := wire.Encode(object)
	own := scan.Value(bytes.Clone(all))
	for _, m := range otherMembers(s) {
		name, err := wire.Encode(m.name)
		if err != nil || own.Get(m.name) != nil {
			continue
		}
		all = all[:len(all)-1]
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = slices.Concat(all, name, []byte{':'}, m.value, []byte{'}'})
	}
	return all
}
