package replay

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/call"
)

// defaultFormats are the formats of paths shared by several providers, by the path's end: those of the provider that
// the others copied.
var defaultFormats = []struct{ end, format string }{
	{"/responses", "openai-responses"},
	{"/responses/{id}", "openai-responses"},
	{"/chat/completions", "openai-chat"},
	{"/v2/chat", "cohere-v2"},
}

// route returns what a request's address asks for.
func (s *server) route(r *http.Request) (call.Route, bool) {
	provider, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	found, ok := call.FindRoute(provider, r.Method, r.URL.EscapedPath())
	for i := 0; ok && s.formats[found.Format] == nil; i++ {
		if ok = i < len(defaultFormats); ok && strings.HasSuffix(found.Pattern, defaultFormats[i].end) {
			found.Format = defaultFormats[i].format
		}
	}
	return found, ok
}

// request is a parsed request.
type request struct {
	body        []byte
	model       string
	prompt      string // the last user message
	tool        string // the tool to call; empty to answer
	stream      bool
	array       bool // stream as one JSON array
	failure     int  // respond with this status
	breakOff    bool
	found       []string // addresses of search results in the request, to be cited
	afterTool   bool     // the last message is a tool's result
	unsourced   bool     // answer from memory: there is no search
	errorInside bool
}

// readRequest parses a request to a route.
func readRequest(route *call.Route, body []byte) (*request, error) {
	read, err := call.ReadRequest(route.Format, body)
	if err != nil {
		return nil, err
	}
	n := len(read.Messages)
	if n == 0 || !json.Valid(body) {
		return nil, errors.New("reading the request: it has no messages, or is no JSON")
	}
	r := &request{body: body, model: read.Model, stream: read.Stream || route.Stream, found: found(body)}
	if route.Model != "" {
		r.model = route.Model
	}
	r.prompt, r.afterTool = read.Messages[n-1].Text, read.Messages[n-1].Role == call.RoleTool
	if r.afterTool { // the question precedes the results
		r.prompt = ""
		for _, m := range read.Messages {
			if m.Role != call.RoleTool {
				r.prompt += m.Text + "\n"
			}
		}
		return r, nil
	}
	r.parsePrompt(read.Tools)
	return r, nil
}

// parsePrompt reads the requested behaviour from the prompt.
func (r *request) parsePrompt(tools []string) {
	prompt := strings.ToLower(r.prompt)
	if m := regexp.MustCompile(`\berror ([45]\d\d)\b`).FindStringSubmatch(prompt); m != nil {
		r.failure, _ = strconv.Atoi(m[1]) // matched as digits
	}
	r.errorInside = strings.Contains(prompt, "error in the stream")
	r.breakOff = strings.Contains(prompt, "break off")
	r.unsourced = strings.Contains(prompt, "unless you can search") && len(tools) == 0
	if strings.Contains(prompt, "call a tool") {
		// The provider's own tools need no name, only a type: the first tool with a name is the client's.
		named := slices.IndexFunc(tools, func(tool string) bool {
			return regexp.MustCompile(`"name"\s*:\s*"` + regexp.QuoteMeta(tool) + `"`).Match(r.body)
		})
		r.tool = append(slices.Clone(tools[max(named, 0):]), "look_up")[0]
	}
}

// found returns the addresses of search results in the last message, as Anthropic's have them.
func found(body []byte) []string {
	var said struct {
		Messages []struct {
			Content []struct{ Type, Source string }
		}
	}
	_ = json.Unmarshal(body, &said) // other types are skipped
	var addresses []string
	for i, m := range said.Messages {
		for _, part := range m.Content {
			if i == len(said.Messages)-1 && part.Type == "search_result" {
				addresses = append(addresses, part.Source)
			}
		}
	}
	return addresses
}
