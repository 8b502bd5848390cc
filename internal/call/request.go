package call

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// Request contains the parts of a request that matter for keeping its answer. All its strings are valid UTF-8.
type Request struct {
	Model    string    // empty if the body has none
	Stream   bool      // the body requests a stream
	Messages []Message // oldest first, after the instructions; the last 4,096
	Tools    []string  // available tools: the name of a function, the type of any other tool; the first 256
	// the body asks the provider to search or to answer from documents, so there can be citations
	Grounded bool
}

// maxMessages and maxTools limit what a [Request] keeps. A body of a few megabytes could contain millions.
const (
	maxMessages = 4096
	maxTools    = 256
)

// Message is the text of one message in a conversation.
type Message struct {
	Role string // RoleSystem, RoleUser, RoleAssistant or RoleTool
	Text string // its visible text; empty only for user messages without text, such as a picture
}

// The roles of a message. The providers' role developer is a system message, model and chatbot are the assistant, and
// function is a tool.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// ReadRequest parses the body of a request. format is the format of its answer as returned by [FindRoute], or empty if
// unknown. The body's members mean the same in all formats; format only adds what no member shows: that some answers
// are always grounded, and that Cohere's are if a tool returned something.
//
// Parsing is tolerant: what is missing, of the wrong type or truncated is omitted. The only error is a body that is not
// a JSON object. The result does not refer to body.
func ReadRequest(format string, body []byte) (*Request, error) {
	doc := scan.Value(bytes.TrimSpace(body))
	if !doc.IsObject() {
		return nil, errors.New("reading a request: not a JSON object")
	}
	r := &requestReader{}
	switch format {
	case "perplexity-chat", "bedrock-rag", "vertex-search":
		r.Grounded = true
	}
	var instructions, history, turns, newest, results scan.Value
	for o := scan.Members(doc); o.Next(); {
		switch string(o.Key) {
		case "model":
			r.Model = plainText(o.Val)
			r.Grounded = r.Grounded || modelSearches(r.Model)
		case "stream":
			r.Stream = o.Val.IsTrue()
		case "response_mode": // Dify's
			r.Stream = o.Val.Str() == "streaming"
		case "system", "instructions", "preamble", "systemInstruction", "system_instruction":
			instructions = o.Val
		case "chat_history":
			history = o.Val
		case "messages", "contents", "input", "inputs":
			if string(o.Key) != "inputs" || !o.Val.IsObject() { // an object has the variables of a Dify app
				turns = o.Val
			}
		case "message", "query":
			newest = o.Val
		case "tool_results":
			results = o.Val
		default:
			r.readOption(string(o.Key), o.Val)
		}
	}
	if system := joinText(instructions, "\n"); system != "" {
		r.addMessage(RoleSystem, system)
	}
	r.readMessages(history)
	r.readMessages(turns)
	if string(newest) != `""` { // required by Cohere v1 besides a tool's results
		r.readMessages(newest)
	}
	for a := scan.Elements(results); a.Next(); {
		r.addMessage(RoleTool, anyText(a.Val.Get("outputs")))
	}
	if strings.HasPrefix(format, "cohere-") {
		r.Grounded = r.Grounded || slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Role == RoleTool })
	}
	r.Messages = r.Messages[max(0, len(r.Messages)-maxMessages):]
	return &r.Request, nil
}

// LastUser returns the last user message, and whether there is one. A tool's result does not count, although some
// formats send it as the user.
func (r *Request) LastUser() (Message, bool) {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == RoleUser {
			return m, true
		}
	}
	return Message{}, false
}

type requestReader struct{ Request }

// readMessages reads a list of messages, or a single one. Parts without a role, as the Interactions API accepts them in
// place of messages, form one user message.
func (r *requestReader) readMessages(v scan.Value) {
	var parts []string
	if !v.IsArray() {
		parts = r.readMessage(parts, v)
	}
	for a := scan.Elements(v); a.Next(); {
		parts = r.readMessage(parts, a.Val)
	}
	if len(parts) > 0 {
		r.addMessage(RoleUser, strings.Join(parts, "\n"))
	}
}

// readMessage reads one message: a string is the user's. The text of a part without a role is appended to parts.
func (r *requestReader) readMessage(parts []string, v scan.Value) []string {
	if v.IsString() {
		r.addMessage(RoleUser, plainText(v))
		return parts
	}
	var kind, role, content, text scan.Value
	for o := scan.Members(v); o.Next(); {
		switch string(o.Key) {
		case "type":
			kind = o.Val
		case "role":
			role = o.Val
		case "content", "parts", "message", "output", "result":
			content = o.Val
		case "text":
			text = o.Val
		}
	}
	if pydanticKind(v) != "" {
		r.readPydantic(v)
		return parts
	}
	if data := v.Get("data"); content == nil && role == nil && data.IsObject() {
		content = data
	}
	if role == nil && content == nil && text != nil {
		if part, ok := visibleText(v); ok {
			parts = append(parts, part)
		}
		return parts
	}
	author := roleOf(string(kind.Bytes()), string(role.Bytes()))
	if author == "" || !v.IsObject() {
		return parts
	}
	between := "\n"
	if author == RoleAssistant {
		between = "" // providers split their answers at citations
	}
	// Tool results come first, as separate messages, because they answer the previous message.
	answered := false
	for a := scan.Elements(content); a.Next(); {
		if result, ok := toolResult(a.Val); ok {
			answered = true
			r.addMessage(RoleTool, result)
		}
		r.Grounded = r.Grounded || hasDocument(a.Val)
	}
	if text := joinText(content, between); text != "" || !answered {
		r.addMessage(author, text)
	}
	return parts
}

// roleOf returns the role of an item with the given type and role, or "" if it is not a message but a call, a thought
// or a reference.
func roleOf(kind, role string) string {
	switch kind {
	case "user_input":
		return RoleUser
	case "model_output", "message.output":
		return RoleAssistant
	case "function_call_output", "custom_tool_call_output", "function.result", "function_result":
		return RoleTool
	case "human", "ai", "tool":
		if role == "" {
			return langChainRole(kind)
		}
	case "", "message", "message.input":
	default:
		return ""
	}
	switch strings.ToLower(role) { // Cohere v1 writes USER and User
	case "system", "developer":
		return RoleSystem
	case "", "user":
		return RoleUser
	case "assistant", "model", "chatbot":
		return RoleAssistant
	case "tool", "function":
		return RoleTool
	}
	return ""
}

// addMessage adds a message; one without text is omitted, unless it is the user's.
func (r *requestReader) addMessage(role, text string) {
	if text == "" && role != RoleUser {
		return
	}
	if len(r.Messages) >= 2*maxMessages {
		r.Messages = append(r.Messages[:0], r.Messages[len(r.Messages)-maxMessages:]...)
	}
	r.Messages = append(r.Messages, Message{role, text})
}

// plainText returns the value of a string as valid UTF-8, or "" if v is not a string.
func plainText(v scan.Value) string { return strings.ToValidUTF8(v.Str(), "\uFFFD") }

// anyText is plainText for any JSON value.
func anyText(v scan.Value) string {
	if v.IsString() {
		return plainText(v)
	}
	return strings.ToValidUTF8(wire.Compact(v), "\uFFFD")
}

// joinText joins the visible text of a message's content: a string, a part, a list of parts, or an object that contains
// one of these.
func joinText(content scan.Value, between string) string {
	if inner := content.Get("parts", "content"); inner != nil {
		content = inner
	}
	if !content.IsArray() {
		text, _ := visibleText(content)
		return text
	}
	var all []string
	for a := scan.Elements(content); a.Next(); {
		if text, ok := visibleText(a.Val); ok && text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, between)
}

// visibleText returns the text of one part of a message, and whether it is text visible to the reader.
func visibleText(part scan.Value) (string, bool) {
	if part.IsString() {
		return plainText(part), true
	}
	switch part.Get("type").Str() {
	case "", "text", "input_text", "output_text":
	default:
		return "", false
	}
	text := part.Get("text")
	return plainText(text), text.IsString() && !part.Get("thought").IsTrue()
}

// toolResult returns a tool's result if a part of a message is one: Anthropic's, Bedrock's, Google's or Cohere's.
func toolResult(part scan.Value) (string, bool) {
	for o := scan.Members(part); o.Next(); {
		switch string(o.Key) {
		case "type":
			if string(o.Val.Bytes()) == "tool_result" {
				return joinText(part.Get("content"), "\n"), true
			}
		case "toolResult":
			return joinText(o.Val.Get("content"), "\n"), true
		case "functionResponse", "function_response":
			return anyText(o.Val.Get("response")), true
		case "document":
			if data := o.Val.Get("data"); data != nil {
				return anyText(data), true
			}
		}
	}
	return "", false
}

// hasDocument reports whether a part of a message is a citable document, or a tool's result with one: Anthropic's and
// Bedrock's documents and search results with citations enabled.
func hasDocument(part scan.Value) bool {
	switch part.Get("type").Str() {
	case "":
		return isCitable(part.Get("document", "searchResult")) || hasCitable(part.Path("toolResult", "content"))
	case "document", "search_result":
		return isCitable(part)
	case "tool_result":
		return hasCitable(part.Get("content"))
	}
	return false
}

func isCitable(document scan.Value) bool { return document.Path("citations", "enabled").IsTrue() }

// hasCitable reports whether a tool's result has a citable part; results are not nested.
func hasCitable(content scan.Value) bool {
	for a := scan.Elements(content); a.Next(); {
		if isCitable(a.Val) || isCitable(a.Val.Get("document")) || isCitable(a.Val.Get("searchResult")) {
			return true
		}
	}
	return false
}

// readOption reads any member of a body except its model and messages.
func (r *requestReader) readOption(name string, v scan.Value) {
	switch name {
	case "toolConfig":
		r.readOption("tools", v.Get("tools"))
	case "tools":
		if v.IsObject() { // Google accepts one in place of a list
			r.readTool(v)
		}
		for a := scan.Elements(v); a.Next(); {
			r.readTool(a.Val)
		}
	case "connectors", "plugins":
		for a := scan.Elements(v); a.Next(); {
			id := plainText(a.Val.Get("id"))
			r.addTool(id)
			r.Grounded = r.Grounded || name == "connectors" || id == "web"
		}
	case "documents", "data_sources", "dataSources":
		a := scan.Elements(v)
		r.Grounded = r.Grounded || a.Next()
	case "web_search_options":
		r.Grounded = r.Grounded || v.IsObject()
	case "search_parameters":
		r.Grounded = r.Grounded || v.IsObject() && string(v.Get("mode").Bytes()) != "off"
	}
}

// readTool reads one tool. Tools that a provider runs itself have a type or a single member with their name; a caller's
// have a name.
func (r *requestReader) readTool(v scan.Value) {
	kind, name := plainText(v.Get("type")), plainText(v.Get("name"))
	if kind != "" && kind != "function" && kind != "custom" {
		r.addTool(kind)
		r.Grounded = r.Grounded || toolSearches(kind)
		return
	}
	if name == "" {
		name = plainText(v.Path("function", "name"))
	}
	if name != "" {
		r.addTool(name)
		return
	}
	for o := scan.Members(v); o.Next(); {
		switch name := string(o.Key); name {
		case "type", "function":
		case "functionDeclarations", "function_declarations":
			for a := scan.Elements(o.Val); a.Next(); {
				r.addTool(plainText(a.Val.Get("name")))
			}
		case "toolSpec":
			r.addTool(plainText(o.Val.Get("name")))
		case "systemTool":
			name = plainText(o.Val.Get("name"))
			fallthrough
		default:
			r.addTool(strings.ToValidUTF8(name, "\uFFFD"))
			r.Grounded = r.Grounded || toolSearches(name)
		}
	}
}

func (r *requestReader) addTool(name string) {
	if name != "" && len(r.Tools) < maxTools {
		r.Tools = append(r.Tools, name)
	}
}

// toolSearches reports whether a tool that a provider runs itself finds sources: web_search in all versions,
// file_search, googleSearchRetrieval, urlContext, google_maps, web_fetch, document_library, nova_grounding. Anthropic's
// tool_search_tool finds tools.
func toolSearches(tool string) bool {
	if strings.HasPrefix(tool, "tool_search") {
		return false
	}
	tool = strings.ToLower(tool)
	for _, word := range []string{"search", "retriev", "url", "maps", "fetch", "document_library", "grounding"} {
		if strings.Contains(tool, word) {
			return true
		}
	}
	return false
}

// modelSearches reports whether a model always searches: OpenAI's search models, Perplexity's, and any of OpenRouter's
// with :online.
func modelSearches(model string) bool {
	return strings.HasSuffix(model, ":online") || strings.Contains(model, "-search-preview") ||
		strings.Contains(model, "-search-api") || strings.Contains(model, "sonar")
}
