package call

import (
	"net/url"
	"slices"
	"strings"
)

// Route is what a call's method and path reveal about its answer.
type Route struct {
	// Pattern is the pattern that matched the path's end, such as /model/{model}/converse. There are few of them, and
	// they contain no data of the caller, so they can be used as metric labels.
	Pattern  string
	Provider string // the provider that answers; empty if neither configured nor evident from the path
	Format   string // the answer's format; empty if it must be recognised
	Model    string // the model, deployment or endpoint in the path, unescaped; empty if the body names it
	Stream   bool   // the path requests a stream; if false, the body may
	Get      bool   // the call fetches an earlier answer again
	ID       string // the provider's id of that answer, unescaped; empty unless Get
}

// rule describes the answers to paths that end with a pattern: whole segments, where {model}, {id} and the like match
// one segment, or its part before a colon.
type rule struct {
	// providers are the providers that have this path. A provider without rules of its own has those of "other". If the
	// first name is not "other", the path alone implies that provider.
	providers string
	pattern   string // for POST, unless it begins with GET
	format    string // the answer's format; empty if it must be recognised
}

// noAnswer is the format of paths that return something other than a model's text.
const noAnswer = "-"

// rules are tried in order. The paths are those of the providers' SDKs and references. Neighbouring paths whose answers
// contain no text of a model are not included: counting tokens, batches and jobs, cancelling, embeddings, files.
var rules = []rule{
	{"other perplexity", "/async/chat/completions", noAnswer}, // a job
	{"gemini vertex", "/openai/chat/completions", "openai-chat"},
	{"gemini vertex", "/endpoints/openapi/chat/completions", "openai-chat"},
	{"cohere", "/compatibility/v1/chat/completions", "openai-chat"},
	{"azure", "/deployments/{model}/chat/completions", ""}, // with the caller's own data or without
	{"azure", "/deployments/{model}/extensions/chat/completions", ""},
	{"openai", "/chat/completions", "openai-chat"},
	{"perplexity", "/chat/completions", "perplexity-chat"},
	{"xai", "/chat/completions", "xai-chat"},
	{"openrouter", "/chat/completions", "openrouter-chat"},
	{"mistral", "/chat/completions", "mistral-chat"},
	{"other bedrock azure", "/chat/completions", ""},
	{"mistral", "/agents/completions", "mistral-chat"},
	{"other", "/agents/completions", ""},
	{"openai perplexity openrouter azure", "/responses", "openai-responses"},
	{"openai perplexity azure", "GET /responses/{id}", "openai-responses"},
	{"xai", "/responses", "xai-responses"},
	{"xai", "GET /responses/{id}", "xai-responses"},
	{"other bedrock", "/responses", ""},
	{"other bedrock", "GET /responses/{id}", ""},
	{"perplexity", "/v1/agent", "openai-responses"},
	{"other anthropic xai openrouter bedrock azure", "/v1/messages", "anthropic-messages"},
	{"cohere", "/v2/chat", "cohere-v2"},
	{"cohere", "/v1/chat", "cohere-v1"},
	{"other", "/chat-messages", "dify-chat"},
	{"other", "/completion-messages", "dify-chat"},
	{"other", "/v2/chat", ""},
	{"other", "/v1/chat", ""},
	{"mistral", "/conversations", "mistral-conversations"},
	{"mistral", "/conversations/{id}/restart", "mistral-conversations"},
	{"mistral", "/conversations/{id}", "mistral-conversations"},
	{"vertex gemini other", "/servingConfigs/{model}:answer", "vertex-search"},
	{"vertex gemini other", "/servingConfigs/{model}:streamAnswer", "vertex-search"},
	{"gemini vertex other", "/{model}:generateContent", "gemini-generate"},
	{"gemini vertex other", "/{model}:streamGenerateContent", "gemini-generate"},
	{"gemini vertex other", "/models/{model}:rawPredict", ""},
	{"gemini vertex other", "/models/{model}:streamRawPredict", ""},
	{"gemini vertex other", "/interactions", "gemini-interactions"},
	{"gemini vertex other", "GET /interactions/{id}", "gemini-interactions"},
	{"bedrock other", "/model/{model}/converse", "bedrock-converse"},
	{"bedrock other", "/model/{model}/converse-stream", "bedrock-converse"},
	{"bedrock other", "/model/{model}/invoke", ""}, // the model's own format
	{"bedrock other", "/model/{model}/invoke-with-response-stream", ""},
	{"bedrock other", "/retrieveAndGenerate", "bedrock-rag"},
	{"bedrock other", "/retrieveAndGenerateStream", "bedrock-rag"},
}

// ruled are the providers with rules of their own.
const ruled = "openai gemini vertex cohere anthropic perplexity xai openrouter mistral bedrock azure"

// FindRoute returns what a call's method and path reveal, and whether its answer is one whose citations are kept.
//
// The path is the one sent to the upstream, without its query, escaped as sent. Only its end counts, in whole segments,
// because a base URL may have a path of its own. With the name of one of [Providers], or vertex, that provider's own
// paths count; with any other name, or none, those that identify one of them or an API modelled on it. A path written
// differently that some servers read as one of these counts as that one: policies cannot be evaded by writing
// %63ompletions. FindRoute does not allocate for paths as SDKs write them.
func FindRoute(provider, method, path string) (Route, bool) {
	r, ok := findRoute(provider, method, path)
	if !ok && isAmbiguous(path) {
		if r, ok = findRoute(provider, method, normalise(path)); !ok { // an escaped slash may not be a separator
			r, ok = findRoute(provider, method, normalise(unescape(path)))
		}
	}
	return r, ok
}

// isAmbiguous reports whether some server may read a path as another one.
func isAmbiguous(path string) bool {
	return strings.ContainsAny(path, `%;\`) || strings.Contains(path, "//") || strings.Contains(path, "/.")
}

// normalise returns a path as lenient servers read it: without parameters of segments, empty segments, dot segments and
// needless escapes.
func normalise(path string) string {
	if !strings.HasPrefix(path, "/") {
		return path
	}
	var segments []string
	for segment := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		segment, _, _ = strings.Cut(segment, ";")
		switch segment = unescape(segment); segment {
		case "", ".":
		case "..":
			segments = segments[:max(0, len(segments)-1)]
		default:
			segments = append(segments, url.PathEscape(segment))
		}
	}
	return "/" + strings.Join(segments, "/")
}

// FindOwnRoute is [FindRoute] for a provider of one's own, where POST calls whose path ends with own return answers as
// well. An empty own adds nothing.
func FindOwnRoute(own, provider, method, path string) (Route, bool) {
	if own != "" && method == "POST" {
		for _, p := range [...]string{path, normalise(unescape(path))} {
			if _, ok := cutSuffix(strings.TrimSuffix(p, "/"), own); ok {
				return Route{Pattern: own, Provider: provider}, true
			}
		}
	}
	return FindRoute(provider, method, path)
}

func findRoute(provider, method, path string) (Route, bool) {
	path = strings.TrimSuffix(path, "/")
	name := provider
	if !hasField(ruled, provider) {
		name = "other"
	}
	for i := range rules {
		pattern, get := strings.CutPrefix(rules[i].pattern, "GET ")
		if get != (method == "GET") || !get && method != "POST" {
			continue
		}
		param, ok := matchEnd(path, pattern)
		if !ok || !hasField(rules[i].providers, name) {
			continue
		}
		if rules[i].format == noAnswer {
			return Route{}, false
		}
		r := Route{Pattern: pattern, Provider: provider, Format: rules[i].format, Get: get}
		r.Stream = strings.Contains(pattern, "stream") || strings.Contains(pattern, "Stream")
		if first, _, _ := strings.Cut(rules[i].providers, " "); provider == "" && first != "other" {
			r.Provider = first
		}
		switch {
		case get:
			r.ID = unescape(param)
		case r.Format == "vertex-search":
			r.Provider = "vertex" // what the path names is not a model
		case strings.Contains(pattern, "{model}"):
			r.Model = unescape(param)
		}
		if strings.HasSuffix(pattern, "awPredict") { // a partner's model, which answers in its own format
			if r.Provider = ""; strings.Contains(path, "/publishers/anthropic/") {
				r.Format = "anthropic-messages"
			}
			if r.Model == "count-tokens" { // counting tokens in Anthropic's SDKs
				return Route{}, false
			}
		}
		return r, true
	}
	return Route{}, false
}

// hasField reports whether list contains the word name.
func hasField(list, name string) bool {
	for word := range strings.FieldsSeq(list) {
		if word == name {
			return true
		}
	}
	return false
}

// matchEnd reports whether a path ends with a pattern, and returns the value of the pattern's parameter, which must not
// be empty.
func matchEnd(path, pattern string) (param string, ok bool) {
	open, end := strings.IndexByte(pattern, '{'), strings.IndexByte(pattern, '}')
	if open < 0 {
		_, ok = cutSuffix(path, pattern)
		return "", ok
	}
	after := pattern[end+1:]
	rest, ok := cutSuffix(path, after)
	if !ok && strings.HasPrefix(after, ":") { // the colon may be escaped
		const colon = "%3A"
		rest, ok = cutSuffix(path, after[1:])
		at := len(rest) - len(colon)
		if !ok || at < 0 || !strings.EqualFold(rest[at:], colon) {
			return "", false
		}
		rest = rest[:at]
	}
	i := strings.LastIndexByte(rest, '/') + 1
	if !ok || i == len(rest) {
		return "", false
	}
	_, ok = cutSuffix(rest[:i], pattern[:open])
	return rest[i:], ok
}

// cutSuffix is [strings.CutSuffix] ignoring case, as some servers do.
func cutSuffix(s, suffix string) (before string, found bool) {
	at := len(s) - len(suffix)
	if at < 0 || !strings.EqualFold(s[at:], suffix) {
		return s, false
	}
	return s[:at], true
}

// unescape returns a segment unescaped, or as it is if its escapes are invalid.
func unescape(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}

// completeAlone are the formats whose answers contain all their sources.
var completeAlone = []string{
	"openai-responses", "openai-chat", "azure-chat", "xai-responses", "xai-chat", "perplexity-chat", "openrouter-chat",
}

// ReadsRequest reports whether answers of a format can only be decoded in full together with their request, which has
// the documents that they refer to. It is true for formats that are yet to be recognised.
func ReadsRequest(format string) bool { return !slices.Contains(completeAlone, format) }
