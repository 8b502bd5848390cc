package call

import (
	"net/url"
	"slices"
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

// rule says what a path is answered with that ends with a pattern: whole segments, of which {model}, {id} and the like
// stand for one, or for what comes in it before a colon.
type rule struct {
	// providers are those whose path it is. A provider whose name is in no rule has those of "other"; where that is not
	// the first name, the path alone tells that the first is asked.
	providers string
	pattern   string // for POST, unless it begins with GET
	format    string // of the answer; empty: it is to be recognised
}

// noAnswer is the format of paths that are answered with something else than a model's text.
const noAnswer = "-"

// rules are tried in their order. The paths are those of the providers' SDKs and references. Their neighbours whose
// answers hold no text of a model are not among them: counting tokens, batches and jobs, cancelling, embeddings, files.
var rules = []rule{
	{"other perplexity", "/async/chat/completions", noAnswer}, // a job
	{"gemini vertex", "/openai/chat/completions", "openai-chat"},
	{"gemini vertex", "/endpoints/openapi/chat/completions", "openai-chat"},
	{"cohere", "/compatibility/v1/chat/completions", "openai-chat"},
	{"azure", "/deployments/{model}/chat/completions", ""}, // from the caller's own data or not: the path does not say
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

// ruled are the providers that have rules of their own.
const ruled = "openai gemini vertex cohere anthropic perplexity xai openrouter mistral bedrock azure"

// FindRoute returns what a call's method and path tell, and whether it is a call whose answer has citations to keep.
//
// The path is the one that the upstream sees, without its query, escaped as it was sent. Only its end counts, in whole
// segments, because a base URL may have a path of its own. With the name of one of [Providers], or vertex, the
// provider's own paths count; with any other name, and none, those by which one of them, or who copies it, can be told.
// A path that another writes as one of these, and that some servers read as it, is that one: nobody gets around what is
// done about answers by writing %63ompletions. For paths as SDKs write them it allocates nothing.
func FindRoute(provider, method, path string) (Route, bool) {
	r, ok := findRoute(provider, method, path)
	if !ok && isOdd(path) {
		if r, ok = findRoute(provider, method, usual(path)); !ok { // a slash may be escaped because it divides nothing
			r, ok = findRoute(provider, method, usual(unescape(path)))
		}
	}
	return r, ok
}

// isOdd reports whether a path may be another one in some server's reading.
func isOdd(path string) bool {
	return strings.ContainsAny(path, `%;\`) || strings.Contains(path, "//") || strings.Contains(path, "/.")
}

// usual returns a path as lenient servers read it: without parameters of segments, empty segments, dots and needless
// escapes.
func usual(path string) string {
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

func findRoute(provider, method, path string) (Route, bool) {
	path = strings.TrimSuffix(path, "/")
	who := provider
	if !hasField(ruled, provider) {
		who = "other"
	}
	for i := range rules {
		pattern, get := strings.CutPrefix(rules[i].pattern, "GET ")
		if get != (method == "GET") || !get && method != "POST" {
			continue
		}
		param, ok := matchEnd(path, pattern)
		if !ok || !hasField(rules[i].providers, who) {
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
			r.Provider = "vertex" // and what the path names is no model
		case strings.Contains(pattern, "{model}"):
			r.Model = unescape(param)
		}
		if strings.HasSuffix(pattern, "awPredict") { // a model of somebody else, who answers in a format of its own
			if r.Provider = ""; strings.Contains(path, "/publishers/anthropic/") {
				r.Format = "anthropic-messages"
			}
			if r.Model == "count-tokens" { // so Anthropic's SDKs spell counting
				return Route{}, false
			}
		}
		return r, true
	}
	return Route{}, false
}

// hasField reports whether name is one of the words of list.
func hasField(list, name string) bool {
	for word := range strings.FieldsSeq(list) {
		if word == name {
			return true
		}
	}
	return false
}

// matchEnd reports whether a path ends with a pattern, and returns what stands there for the pattern's parameter, which
// is not nothing.
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

// cutSuffix is [strings.CutSuffix], but for upper and lower case, which some servers take for the same.
func cutSuffix(s, suffix string) (before string, found bool) {
	at := len(s) - len(suffix)
	if at < 0 || !strings.EqualFold(s[at:], suffix) {
		return s, false
	}
	return s[:at], true
}

// unescape returns a segment as it was meant, or as it stands where its escapes are none.
func unescape(segment string) string {
	if plain, err := url.PathUnescape(segment); err == nil {
		return plain
	}
	return segment
}

// completeAlone are the formats whose answers name all their sources themselves.
var completeAlone = []string{
	"openai-responses", "openai-chat", "azure-chat", "xai-responses", "xai-chat", "perplexity-chat", "openrouter-chat",
}

// ReadsRequest reports whether answers of a format can only be decoded in full with their request: it has the documents
// that they refer to. So it may be of a format that is yet to be recognised.
func ReadsRequest(format string) bool { return !slices.Contains(completeAlone, format) }
