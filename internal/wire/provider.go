package wire

// Provider is what one must know to reach a provider.
type Provider struct {
	Name string
	// URL is the base that a call's path is appended to, as its users write the path: it holds no part of the API's own
	// path and no slash at its end. It is empty where every user has another one (NeedsURL).
	URL      string
	NeedsURL bool
	// KeyEnv are the environment variables that usually hold a key; where several are set, the first counts, which is
	// the one that the provider's own SDK prefers.
	KeyEnv []string
	// KeyHeader is the header that carries a key, KeyPrefix what stands before the key there.
	KeyHeader, KeyPrefix string
	// KeyQuery is the query parameter that may carry the key in place of the header; empty: there is none.
	KeyQuery string
	// Header is what every request must have besides: canonical names, as in an http.Header. Nil: nothing.
	Header map[string][]string
}

const (
	authorization    = "Authorization"
	bearer           = "Bearer "
	anthropicVersion = "2023-06-01" // the only one of the Messages API; its SDKs send it with every call
)

// Providers returns the providers that a gateway knows by name, in the order of the documentation. Addresses, variables
// and headers are those of the providers' own SDKs. Bedrock's are for its API keys, which are bearer tokens; its
// address has a region, so that users of another need their own.
func Providers() []Provider {
	return []Provider{
		{
			Name:      "openai",
			URL:       "https://api.openai.com",
			KeyEnv:    []string{"OPENAI_API_KEY"},
			KeyHeader: authorization,
			KeyPrefix: bearer,
		},
		{
			Name:      "gemini",
			URL:       "https://generativelanguage.googleapis.com",
			KeyEnv:    []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"},
			KeyHeader: "X-Goog-Api-Key",
			KeyQuery:  "key",
		},
		{
			Name:      "cohere",
			URL:       "https://api.cohere.com",
			KeyEnv:    []string{"CO_API_KEY", "COHERE_API_KEY"},
			KeyHeader: authorization,
			KeyPrefix: bearer,
		},
		{
			Name:      "anthropic",
			URL:       "https://api.anthropic.com",
			KeyEnv:    []string{"ANTHROPIC_API_KEY"},
			KeyHeader: "X-Api-Key",
			Header:    map[string][]string{"Anthropic-Version": {anthropicVersion}},
		},
		{
			Name:      "perplexity",
			URL:       "https://api.perplexity.ai",
			KeyEnv:    []string{"PERPLEXITY_API_KEY", "PPLX_API_KEY"},
			KeyHeader: authorization,
			KeyPrefix: bearer,
		},
		{
			Name:      "xai",
			URL:       "https://api.x.ai",
			KeyEnv:    []string{"XAI_API_KEY"},
			KeyHeader: authorization,
			KeyPrefix: bearer,
		},
		{
			Name:      "openrouter",
			URL:       "https://openrouter.ai",
			KeyEnv:    []string{"OPENROUTER_API_KEY"},
			KeyHeader: authorization,
			KeyPrefix: bearer,
		},
		{
			Name:      "mistral",
			URL:       "https://api.mistral.ai",
			KeyEnv:    []string{"MISTRAL_API_KEY"},
			KeyHeader: authorization,
			KeyPrefix: bearer,
		},
		{
			Name:      "bedrock",
			URL:       "https://bedrock-runtime.us-east-1.amazonaws.com",
			KeyEnv:    []string{"AWS_BEARER_TOKEN_BEDROCK"},
			KeyHeader: authorization,
			KeyPrefix: bearer,
		},
		{
			Name:      "azure",
			NeedsURL:  true,
			KeyEnv:    []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"},
			KeyHeader: "Api-Key",
		},
	}
}

// FindProvider returns the provider of that name, and whether there is one.
func FindProvider(name string) (Provider, bool) {
	for _, p := range Providers() {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// KeyHeaders returns the canonical names of all headers in which a caller's request may carry its key, whatever the
// provider: each takes one of its own, most take a bearer token as well. A key may also stand in the query, see
// [Provider].KeyQuery.
func KeyHeaders() []string {
	return []string{authorization, "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}
}

// OTelName returns the name of a provider in OpenTelemetry's conventions for generative AI, the provider's own where
// they have none.
func OTelName(provider string) string {
	switch provider {
	case "gemini":
		return "gcp.gemini"
	case "vertex":
		return "gcp.vertex_ai"
	case "azure":
		return "azure.ai.openai"
	case "bedrock":
		return "aws.bedrock"
	case "xai":
		return "x_ai"
	case "mistral":
		return "mistral_ai"
	}
	return provider
}
