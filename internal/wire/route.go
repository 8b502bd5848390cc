package wire

import (
	"net/url"
	"strings"
)

// Route is what a call's method and path tell of its answer.
type Route struct {
	// Pattern is the rule that the path's end matched, such as /model/{model}/converse. There are few, none holds
	// anything of the caller's, so it can name a metric.
	Pattern  string
	Provider string // who answers; empty: the path does not tell and nobody said
	Format   string // of the answer; empty: it is to be recognised
	Model    string // the model, deployment or endpoint that the path names, unescaped; empty: the body names it
	Stream   bool   // the path asks for a stream; where it is false the body may
	Get      bool   // the call asks for an earlier answer, again
	ID       string // the provider's id of that answer, unescaped; empty unless Get
}

// FindRoute returns what a call's method and path tell, and whether it is a call whose answer has citations to keep.
//
// The path is the one that the upstream sees, without its query, escaped as it was sent. Only its end counts, in whole
// segments, because a base URL may have a path of its own. With the name of one of [Providers], or vertex, the
// provider's own paths count; with any other name, and none, those by which one of them, or who copies it, can be told.
//
// Neighbours of these paths whose answers hold no text of a model are not found: counting tokens, batches and jobs,
// cancelling, embeddings, files. The paths are those of the providers' SDKs and references.
func FindRoute(provider, method, path string) (Route, bool) {
	c := call{path: strings.TrimSuffix(path, "/"), post: method == "POST", get: method == "GET"}
	c.route.Provider = provider
	if !c.post && !c.get || !c.findIn(provider) {
		return Route{}, false
	}
	return c.route, true
}

// call is a call on its way through the rules. The rules are code, not a table, so that a call that matches none, or
// any, allocates nothing.
type call struct {
	path      string
	post, get bool
	route     Route
}

func (c *call) findIn(provider string) bool {
	switch provider {
	case "openai":
		return c.responses("openai-responses") || c.is("/chat/completions", "openai-chat")
	case "gemini", "vertex":
		return c.gemini() || c.vertex()
	case "cohere":
		return c.is("/v2/chat", "cohere-v2") || c.is("/v1/chat", "cohere-v1") ||
			c.is("/compatibility/v1/chat/completions", "openai-chat")
	case "anthropic":
		return c.is("/v1/messages", "anthropic-messages")
	case "perplexity":
		return c.perplexity()
	case "xai":
		return c.responses("xai-responses") || c.is("/chat/completions", "xai-chat") ||
			c.is("/v1/messages", "anthropic-messages")
	case "openrouter":
		return c.is("/chat/completions", "openrouter-chat") || c.is("/responses", "openai-responses") ||
			c.is("/v1/messages", "anthropic-messages")
	case "mistral":
		return c.mistral()
	case "bedrock":
		return c.bedrock()
	case "azure":
		return c.azure()
	default:
		return c.unknown()
	}
}

// responses finds the Responses API: a new answer, or an earlier one again.
func (c *call) responses(format string) bool {
	return c.is("/responses", format) || c.again("/responses/{id}", format)
}

// gemini finds the paths of the Gemini API, under any version, and those of models at Vertex AI.
func (c *call) gemini() bool {
	switch {
	case c.model("/{model}:generateContent"):
		c.route.Format = "gemini-generate"
	case c.model("/{model}:streamGenerateContent"):
		c.route.Format, c.route.Stream = "gemini-generate", true
	case c.model("/models/{model}:rawPredict"):
		c.partner()
		return c.route.Model != "count-tokens" // so Anthropic's SDKs spell counting
	case c.model("/models/{model}:streamRawPredict"):
		c.partner()
		c.route.Stream = true
	default:
		return c.interactions() || c.is("/openai/chat/completions", "openai-chat") ||
			c.is("/endpoints/openapi/chat/completions", "openai-chat")
	}
	return true
}

// partner notes that a model at Vertex AI is somebody else's, and answers in that one's format.
func (c *call) partner() {
	c.route.Provider = ""
	if strings.Contains(c.path, "/publishers/anthropic/") {
		c.route.Format = "anthropic-messages"
	}
}

func (c *call) interactions() bool {
	return c.is("/interactions", "gemini-interactions") || c.again("/interactions/{id}", "gemini-interactions")
}

// vertex finds the Answer API of Vertex AI Search.
func (c *call) vertex() bool {
	switch {
	case c.model("/servingConfigs/{model}:answer"):
	case c.model("/servingConfigs/{model}:streamAnswer"):
		c.route.Stream = true
	default:
		return false
	}
	c.route.Provider, c.route.Format, c.route.Model = "vertex", "vertex-search", "" // what it names is no model
	return true
}

// perplexity finds Sonar's chat and the agents that follow it. An asynchronous chat is a job, not an answer.
func (c *call) perplexity() bool {
	if strings.HasSuffix(c.path, "/async/chat/completions") {
		return false
	}
	return c.is("/chat/completions", "perplexity-chat") || c.is("/v1/agent", "openai-responses") ||
		c.responses("openai-responses")
}

func (c *call) mistral() bool {
	return c.is("/chat/completions", "mistral-chat") || c.is("/agents/completions", "mistral-chat") ||
		c.is(
			"/conversations", "mistral-conversations",
		) || c.in("/conversations/{id}/restart", "mistral-conversations") ||
		c.in("/conversations/{id}", "mistral-conversations")
}

// bedrock finds the paths of the runtime and of knowledge bases. What InvokeModel answers is the model's own format.
func (c *call) bedrock() bool {
	switch {
	case c.model("/model/{model}/converse"):
		c.route.Format = "bedrock-converse"
	case c.model("/model/{model}/converse-stream"):
		c.route.Format, c.route.Stream = "bedrock-converse", true
	case c.model("/model/{model}/invoke"):
	case c.model("/model/{model}/invoke-with-response-stream"):
		c.route.Stream = true
	case c.is("/retrieveAndGenerate", "bedrock-rag"):
	case c.is("/retrieveAndGenerateStream", "bedrock-rag"):
		c.route.Stream = true
	default:
		return c.is("/chat/completions", "") || c.responses("") || c.is("/v1/messages", "anthropic-messages")
	}
	return true
}

// azure finds the paths of Azure OpenAI, old (a deployment in the path) and new, and of models of others there. Whether
// a chat answers from the caller's own data, which is a format of its own, its path does not say.
func (c *call) azure() bool {
	return c.model("/deployments/{model}/chat/completions") || c.model("/deployments/{model}/extensions/chat/completions") ||
		c.is("/chat/completions", "") ||
		c.responses("openai-responses") ||
		c.is("/v1/messages", "anthropic-messages")
}

// unknown finds what can be told without knowing who is asked. Only a path that is one provider's alone says the
// provider, and only one whose answers are all alike says the format.
func (c *call) unknown() bool {
	if strings.HasSuffix(c.path, "/async/chat/completions") {
		return false
	}
	switch {
	case c.is("/chat/completions", ""), c.responses(""), c.is("/v1/messages", "anthropic-messages"),
		c.is("/v2/chat", ""), c.is("/v1/chat", ""), c.is("/agents/completions", ""), c.vertex():
		return true
	case c.gemini():
		if strings.HasPrefix(c.route.Format, "gemini-") {
			c.named("gemini")
		}
		return true
	case c.bedrock():
		c.named("bedrock")
		return true
	}
	return false
}

// named takes the provider that the path tells, unless the caller knew one.
func (c *call) named(provider string) {
	if c.route.Provider == "" {
		c.route.Provider = provider
	}
}

// is reports whether the call asks for a new answer at a path that ends with pattern.
func (c *call) is(pattern, format string) bool {
	if !c.post || !c.ends(pattern) {
		return false
	}
	c.route.Pattern, c.route.Format = pattern, format
	return true
}

// in is is, for a pattern with a parameter that says nothing of the answer.
func (c *call) in(pattern, format string) bool {
	if _, ok := c.param(pattern); !ok || !c.post {
		return false
	}
	c.route.Pattern, c.route.Format = pattern, format
	return true
}

// model is is, for a pattern whose parameter is the model.
func (c *call) model(pattern string) bool {
	if !c.post {
		return false
	}
	model, ok := c.param(pattern)
	if ok {
		c.route.Pattern, c.route.Model = pattern, unescape(model)
	}
	return ok
}

// again reports whether the call asks for an earlier answer, whose id is the pattern's parameter.
func (c *call) again(pattern, format string) bool {
	if !c.get {
		return false
	}
	id, ok := c.param(pattern)
	if ok {
		c.route.Pattern, c.route.Format, c.route.Get, c.route.ID = pattern, format, true, unescape(id)
	}
	return ok
}

// ends reports whether the path ends with these whole segments; a pattern begins with a slash.
func (c *call) ends(pattern string) bool { return strings.HasSuffix(c.path, pattern) }

// param returns what stands in the path's end for the one parameter of a pattern: one segment, or what comes in it
// before a colon, and not nothing.
func (c *call) param(pattern string) (string, bool) {
	open, end := strings.IndexByte(pattern, '{'), strings.IndexByte(pattern, '}')
	rest, ok := cutEnd(c.path, pattern[end+1:])
	if !ok {
		return "", false
	}
	i := strings.LastIndexByte(rest, '/') + 1
	return rest[i:], i < len(rest) && strings.HasSuffix(rest[:i], pattern[:open])
}

// cutEnd is [strings.CutSuffix], for an end that may begin with an escaped colon.
func cutEnd(path, end string) (string, bool) {
	if rest, ok := strings.CutSuffix(path, end); ok || end == "" || end[0] != ':' {
		return rest, ok
	}
	rest, ok := strings.CutSuffix(path, end[1:])
	if !ok || len(rest) < len("%3A") || !strings.EqualFold(rest[len(rest)-len("%3A"):], "%3A") {
		return "", false
	}
	return rest[:len(rest)-len("%3A")], true
}

// unescape returns a segment as it was meant, or as it stands where its escapes are none.
func unescape(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}

// ReadsRequest reports whether answers of a format can only be decoded in full with their request: it has the documents
// that they refer to. So it may be of a format that is yet to be recognised.
func ReadsRequest(format string) bool {
	switch format {
	case "openai-responses", "openai-chat", "azure-chat", "xai-responses", "xai-chat", "perplexity-chat",
		"openrouter-chat":
		return false
	}
	return true
}
