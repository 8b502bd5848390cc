package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// call is what the address of a request says.
type call struct {
	format string
	model  string // empty: the body says it
	id     string // of the response to fetch again
	stream bool
	array  bool // the stream is one JSON array
}

// route says what the address of a request asks for.
func route(r *http.Request) (call, bool) {
	path := r.URL.Path
	provider, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if r.Method == http.MethodGet {
		before, id, ok := strings.Cut(path, "/responses/")
		return call{format: "openai-responses", id: id}, ok && !strings.Contains(id, "/") && id != "" && before != path
	}
	if r.Method != http.MethodPost {
		return call{}, false
	}
	if model, verb, ok := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":"); ok {
		streams := verb == "streamGenerateContent"
		return call{
			format: "gemini-generate",
			model:  model,
			stream: streams,
			array:  streams && r.URL.Query().Get("alt") != "sse",
		}, streams || verb == "generateContent"
	}
	for _, known := range [...]struct{ suffix, provider, format string }{
		{"/conversations", "mistral", "mistral-conversations"},
		{"/responses", "", "openai-responses"},
		{"/chat/completions", "perplexity", "perplexity-chat"},
		{"/chat/completions", "mistral", "mistral-chat"},
		{"/chat/completions", "", "openai-chat"},
		{"/messages", "", "anthropic-messages"},
		{"/v2/chat", "", "cohere-v2"},
	} {
		if strings.HasSuffix(path, known.suffix) && (known.provider == "" || known.provider == provider) {
			return call{format: known.format}, true
		}
	}
	return call{}, false
}

// request is what a request asks for.
type request struct {
	body        []byte
	model       string
	prompt      string // the last words of the user
	tool        string // the tool to call; empty: answer
	stream      bool
	array       bool
	failure     int // answer with this status
	breakOff    bool
	found       []string // addresses of what the sender searched itself and wants to be cited
	afterTool   bool     // the last message holds what a tool returned
	unsourced   bool     // answer from memory: there is nothing to search with
	errorInside bool
}

// merge adds what the address says.
func (r *request) merge(c call) {
	r.stream, r.array = r.stream || c.stream, c.array
	if c.model != "" {
		r.model = c.model
	}
}

// readRequest reads a request of any provider. They differ in names, but all have a list of messages, whose last one
// counts, with texts inside.
func readRequest(body []byte) (*request, error) {
	var read map[string]any
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&read); err != nil {
		return nil, err
	}
	r := &request{body: body}
	r.model, _ = read["model"].(string)
	r.stream, _ = read["stream"].(bool)
	var last any
	for _, name := range []string{"input", "inputs", "messages", "contents"} {
		switch said := read[name].(type) {
		case string:
			last = said
		case []any:
			if len(said) > 0 {
				last = said[len(said)-1]
			}
		}
	}
	if last == nil {
		return nil, errors.New("reading the request: it has no messages")
	}
	r.afterTool = isToolResult(last)
	if r.afterTool { // what was asked stands before the results
		last = read
	}
	r.prompt = strings.Join(texts(nil, last), "\n")
	r.found = found(last)
	r.wish(read)
	return r, nil
}

// errorWish finds the status that a prompt asks for.
func errorWish(prompt string) int {
	m := regexp.MustCompile(`\berror ([45]\d\d)\b`).FindStringSubmatch(prompt)
	if m == nil {
		return 0
	}
	status, _ := strconv.Atoi(m[1]) // three digits
	return status
}

// wish reads what the prompt wants to happen.
func (r *request) wish(read map[string]any) {
	prompt := strings.ToLower(r.prompt)
	if r.afterTool {
		return
	}
	r.failure = errorWish(prompt)
	r.errorInside = strings.Contains(prompt, "error in the stream")
	r.breakOff = strings.Contains(prompt, "break off")
	tools, _ := read["tools"].([]any)
	r.unsourced = strings.Contains(prompt, "unless you can search") && len(tools) == 0
	if strings.Contains(prompt, "call a tool") {
		r.tool = "look_up"
		if names := toolNames(read["tools"]); len(names) > 0 {
			r.tool = names[0]
		}
	}
}

// isToolResult reports whether a message holds what a tool returned.
func isToolResult(message any) bool {
	m, ok := message.(map[string]any)
	if !ok {
		return false
	}
	if role, _ := m["role"].(string); role == "tool" || role == "function" {
		return true
	}
	for _, key := range []string{"type", "functionResponse"} {
		switch said := m[key].(type) {
		case string:
			if strings.HasSuffix(said, "_call_output") || said == "tool_result" {
				return true
			}
		case map[string]any:
			return true
		}
	}
	for _, key := range []string{"content", "parts"} {
		if list, ok := m[key].([]any); ok && len(list) > 0 && isToolResult(list[0]) {
			return true
		}
	}
	return false
}

// texts appends the texts inside a value, but for what tools returned.
func texts(to []string, value any) []string {
	switch v := value.(type) {
	case string:
		return append(to, v)
	case []any:
		for _, part := range v {
			to = texts(to, part)
		}
	case map[string]any:
		if isToolResult(v) {
			return to
		}
		for _, key := range []string{"input", "inputs", "messages", "contents", "content", "parts", "text"} {
			if inside, ok := v[key]; ok {
				to = texts(to, inside)
			}
		}
	}
	return to
}

// found returns the addresses of what a message brings along to be cited.
func found(message any) []string {
	m, _ := message.(map[string]any)
	parts, _ := m["content"].([]any)
	var addresses []string
	for _, one := range parts {
		part, _ := one.(map[string]any)
		if address, ok := part["source"].(string); ok && part["type"] == "search_result" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// toolNames returns the names of the functions in a list of tools.
func toolNames(tools any) []string {
	var names []string
	list, _ := tools.([]any)
	for _, tool := range list {
		t, _ := tool.(map[string]any)
		for _, key := range []string{"functionDeclarations", "function_declarations"} {
			names = append(names, toolNames(t[key])...)
		}
		if f, ok := t["function"].(map[string]any); ok {
			t = f
		}
		if name, ok := t["name"].(string); ok {
			names = append(names, name)
		}
	}
	return names
}
