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

// Chat is a request in no provider's words. Model and a message of the user are required.
type Chat struct {
	Model string
	// Messages are oldest first. System messages become the instructions where a provider has a place for them. Tools'
	// messages are left out, for they answer calls that no Message can name, and so is what follows the user's newest.
	Messages []Message
	// Documents are what to answer from: their ID, Title, URL, Content and what else describes them, in Raw too. Only
	// cohere, anthropic and mistral take any.
	Documents []wire.Source
	// Tools are JSON values. Two are in no provider's words, and are put into them: {"type":"web_search"}, and
	// {"type":"file_search","stores":["…"]} with the names that the provider has for them and, where it can, its
	// "filter". All others are passed on as they are, save that anthropic is asked to cite the pages that its web_fetch
	// fetches.
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

// NewBody returns a request's body that lets go of its bytes at its end: a transport keeps the request as long as the
// response. Closing it does nothing.
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
	said, err := c.messagesToSend()
	switch {
	case err != nil:
	case !slices.Contains([]string{"", CitationsFast, CitationsAccurate, CitationsOff}, c.Citations):
		err = fmt.Errorf("citations %q: not one of fast, accurate, off", c.Citations)
	case len(c.Documents) == 0, provider == "cohere", provider == "anthropic":
	case provider != "mistral", len(c.Tools) > 0: // its conversations take no documents
		err = ErrDocuments
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
	if b.Body, err = wire.Encode(body); err != nil {
		return nil, fmt.Errorf("building a request for %s: %w", provider, err)
	}
	return &b, nil
}

// requestFor returns the path and the body of a request, whose tools are in the provider's words.
func (c *Chat) requestFor(provider string, said []Message) (path string, body any, err error) {
	switch provider {
	case "gemini":
		for segment := range strings.SplitSeq(c.Model, "/") {
			if segment == "" || segment == "." || segment == ".." { // they would lead to another path
				return "", nil, fmt.Errorf("model %.100q: it is not the name of one", c.Model)
			}
		}
		// A name with a slash says itself what kind of model it is.
		kind, name, ok := strings.Cut(c.Model, "/")
		if !ok {
			kind, name = "models", c.Model
		}
		path := "/v1beta/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
		if c.Stream {
			return path + ":streamGenerateContent?alt=sse", c.gemini(said), nil
		}
		return path + ":generateContent", c.gemini(said), nil
	case "openai":
		b := c.body()
		b.Input, b.Include, b.Store = roleContents(said), c.included(), new(bool)
		return "/v1/responses", b, nil
	case "xai":
		b := c.body()
		if b.Input, b.Store = roleContents(said), new(bool); c.Citations == CitationsOff {
			b.Include = []string{"no_inline_citations"} // the sources it found come all the same
		}
		return "/v1/responses", b, nil
	case "cohere":
		return "/v2/chat", c.cohere(said), nil
	case "anthropic":
		body, err := c.anthropic(said)
		return "/v1/messages", body, err
	case "perplexity":
		if c.ofSonar() {
			return "/chat/completions", c.chat(alternating(said)), nil
		}
		b := c.body()
		b.Input = roleContents(said)
		return "/v1/responses", b, nil
	case "openrouter":
		return "/api/v1/chat/completions", c.chat(said), nil
	case "mistral":
		if len(c.Tools) == 0 {
			b, err := c.mistralChat(said)
			return "/v1/chat/completions", b, err
		}
		system, rest := instructions(said)
		b := c.body()
		b.Instructions, b.Store = system, new(bool)
		for _, m := range rest {
			b.Inputs = append(b.Inputs, mistralEntry{"entry", "message.input", m.Role, m.Text})
		}
		return "/v1/conversations", b, nil
	}
	return "", nil, errors.New("ibid cannot write its requests")
}

// messagesToSend returns the messages up to the user's newest, without those of tools and those that say nothing.
func (c *Chat) messagesToSend() ([]Message, error) {
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

// maxTokens is the longest answer asked for where the API demands a number: what every model can write.
const maxTokens = 4096

// requestBody is the body of every request that is written, but for Gemini's: each API has some of the members.
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
	Logprobs     bool              `json:"logprobs,omitempty"`
	TopLogprobs  int               `json:"top_logprobs,omitempty"`
	Stream       *bool             `json:"stream,omitempty"` // false: the API wants it always
	Store        *bool             `json:"store,omitempty"`  // false: the provider need not keep what ibid does
	Temperature  *float64          `json:"temperature,omitempty"`
}

// body returns what most requests have.
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

func (c *Chat) chat(said []Message) requestBody {
	b := c.body()
	b.Messages = roleContents(said)
	return b
}

type cohereDocument struct {
	ID   string          `json:"id,omitempty"`
	Data json.RawMessage `json:"data"`
}

// documentData are the names that Cohere recommends for what a model shall read of a document, and those of ours that
// [wire.ReadDocuments] knows.
type documentData struct {
	Title       string   `json:"title,omitempty"`
	URL         string   `json:"url,omitempty"`
	Filename    string   `json:"filename,omitempty"`
	Authors     []string `json:"authors,omitempty"`
	PublishedAt string   `json:"published_at,omitempty"`
	Text        string   `json:"text,omitempty"`
}

func (c *Chat) cohere(said []Message) any {
	b := c.chat(said)
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
	Context   string          `json:"context,omitempty"` // is read by the model and never cited
	Citations map[string]bool `json:"citations,omitempty"`
}

type textSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// anthropic puts the documents before the user's newest words, as Anthropic recommends. Their places there are what its
// citations count, so none may be left out.
func (c *Chat) anthropic(said []Message) (any, error) {
	system, rest := instructions(said)
	messages := roleContents(rest)
	b := c.body()
	b.MaxTokens, b.System, b.Messages = maxTokens, system, messages
	if len(c.Documents) == 0 {
		return b, nil
	}
	var blocks []anthropicContent
	for i := range c.Documents {
		s := &c.Documents[i]
		if s.Content == "" {
			return nil, fmt.Errorf("document %d: no content", i)
		}
		about := About(s) // which the model reads and never cites
		if s.URL != "" {
			about = slices.Insert(about, 0, s.URL)
		}
		blocks = append(blocks, anthropicContent{
			Type: "document", Title: cmp.Or(s.Title, s.Filename), Context: strings.Join(about, "\n"),
			Source:    &textSource{"text", "text/plain", s.Content},
			Citations: map[string]bool{"enabled": c.Citations != CitationsOff},
		})
	}
	newest := &messages[len(messages)-1]
	newest.Content = append(blocks, anthropicContent{Type: "text", Text: rest[len(rest)-1].Text})
	return b, nil
}

type mistralEntry struct {
	Object  string `json:"object"`
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content string `json:"content"`
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
	const tool, id = "documents", "documents" // an id has nine letters or digits
	call := mistralCall{ID: id, Type: "function"}
	call.Function.Name, call.Function.Arguments = tool, "{}"
	all := make([]mistralMessage, 0, len(said)+2)
	for _, m := range roleContents(said) {
		all = append(all, mistralMessage{roleContent: m})
	}
	all = append(all,
		mistralMessage{roleContent: roleContent{RoleAssistant, ""}, Calls: []mistralCall{call}},
		mistralMessage{roleContent: roleContent{RoleTool, string(content)}, CallID: id, Name: tool})
	b.Messages = all
	return b, nil
}

// documentMember is what a document says of itself beyond the fields of a source.
type documentMember struct {
	name  string
	value scan.Value
}

// otherMembers returns what the Raw of a document, as [wire.ReadDocuments] reads it, says beyond its other fields. One
// without a text is its content whole, and there is nothing beyond.
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

// About returns what is known of a document besides its title, its address and its content, as lines for a model to
// read.
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

// withOthers writes an object of ours, which can be written, with what else a document says of itself behind its own
// members.
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
