package call

import (
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/wire"
)

// Provider describes how to reach a provider.
type Provider struct {
	Name string
	// URL is the base URL to which the path of a call is appended. It contains no part of the API's own path and no
	// trailing slash. It is empty if every user has a different one (NeedsURL).
	URL      string
	NeedsURL bool
	// KeyEnv are the environment variables that usually hold a key, in the order in which the provider's own SDK
	// prefers them.
	KeyEnv []string
	// KeyHeader is the header that carries a key, KeyPrefix what precedes the key there.
	KeyHeader, KeyPrefix string
	// KeyQuery is the query parameter that may carry the key instead of the header; empty if there is none.
	KeyQuery string
	// Header contains the other headers that every request needs, under canonical names, as in an http.Header. It may
	// be nil.
	Header map[string][]string
}

// anthropicVersion is the only version of the Messages API. Its SDKs send it with every call.
const anthropicVersion = "2023-06-01"

// providers are in the order of the documentation. Addresses, variables and headers are those of the providers' own
// SDKs. Bedrock's key is one of its API keys, which are bearer tokens; its address contains a region, so that users of
// another region need their own.
var providers = []Provider{
	withBearer("openai", "https://api.openai.com", "OPENAI_API_KEY"),
	{
		Name: "gemini", URL: "https://generativelanguage.googleapis.com",
		KeyEnv: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}, KeyHeader: "X-Goog-Api-Key", KeyQuery: "key",
	},
	withBearer("cohere", "https://api.cohere.com", "CO_API_KEY", "COHERE_API_KEY"),
	{
		Name: "anthropic", URL: "https://api.anthropic.com",
		KeyEnv: []string{"ANTHROPIC_API_KEY"}, KeyHeader: "X-Api-Key",
		Header: map[string][]string{"Anthropic-Version": {anthropicVersion}},
	},
	withBearer("perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY", "PPLX_API_KEY"),
	withBearer("xai", "https://api.x.ai", "XAI_API_KEY"),
	withBearer("openrouter", "https://openrouter.ai", "OPENROUTER_API_KEY"),
	withBearer("mistral", "https://api.mistral.ai", "MISTRAL_API_KEY"),
	withBearer("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", "AWS_BEARER_TOKEN_BEDROCK"),
	{Name: "azure", NeedsURL: true, KeyEnv: []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"}, KeyHeader: "Api-Key"},
}

func withBearer(name, url string, keyEnv ...string) Provider {
	return Provider{Name: name, URL: url, KeyEnv: keyEnv, KeyHeader: "Authorization", KeyPrefix: "Bearer "}
}

// Providers returns the providers known by name, in the order of the documentation. The caller must not change what
// they point to.
func Providers() []Provider { return slices.Clone(providers) }

// FindProvider returns the provider of that name, and whether there is one.
func FindProvider(name string) (Provider, bool) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}

// models are the models that are asked where nobody named one, as of November 2026: of each provider the small one that
// searches the web, or reads documents, at an everyday price. A provider that has withdrawn one says so in its answer.
var models = map[string]string{
	"openai": "gpt-5-mini", "gemini": "gemini-2.5-flash", "cohere": "command-a-03-2025",
	"anthropic": "claude-haiku-4-5", "perplexity": "sonar", "xai": "grok-4", "openrouter": "openai/gpt-5-mini",
	"mistral": "mistral-medium-latest",
}

// DefaultModel returns the model of a provider that is asked where nobody named one; empty if none is known.
func DefaultModel(provider string) string { return models[provider] }

// ProviderNames returns the names that an answer's provider can have unless configured otherwise, sorted: those of
// [Providers] and others whose answers are recognised.
func ProviderNames() []string {
	names := append(wire.Providers(), "generic") // provider unknown
	for i := range providers {
		names = append(names, providers[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// KeyHeaders returns the canonical names of all headers in which a request may carry its key, for any provider: each
// has one of its own, and most also accept a bearer token. A key may also be in the query, see [Provider].KeyQuery.
func KeyHeaders() []string {
	return []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}
}

// otelNames are the names of providers in OpenTelemetry's conventions for generative AI, where they differ from ours.
var otelNames = map[string]string{
	"gemini": "gcp.gemini", "vertex": "gcp.vertex_ai", "azure": "azure.ai.openai", "bedrock": "aws.bedrock",
	"xai": "x_ai", "mistral": "mistral_ai",
}

// OTelName returns a provider's name in OpenTelemetry's conventions for generative AI, or its own name if they have
// none.
func OTelName(provider string) string {
	if name := otelNames[provider]; name != "" {
		return name
	}
	return provider
}

// hosts are further hosts of providers. A host that ends with one, after a dot or, in regional names, a hyphen, counts
// as well.
var hosts = map[string]string{
	"api.cohere.ai": "cohere", "discoveryengine.googleapis.com": "gemini", "aiplatform.googleapis.com": "gemini",
	"openai.azure.com": "azure", "services.ai.azure.com": "azure", "cognitiveservices.azure.com": "azure",
	"models.ai.azure.com": "azure",
}

// FindHost returns the provider behind a host, one of [Providers], or "". The host may have a port, and must be in
// lower case. Regional hosts of a provider, and those of a user's resource, are recognised too.
func FindHost(host string) string {
	host, _, _ = strings.Cut(host, ":")
	for i := range providers {
		if at := strings.TrimPrefix(providers[i].URL, "https://"); at != "" && isHost(host, at, ".") {
			return providers[i].Name
		}
	}
	for at, name := range hosts {
		if isHost(host, at, ".") || name == "gemini" && isHost(host, at, "-") {
			return name
		}
	}
	if strings.HasPrefix(host, "bedrock-") && isHost(host, "amazonaws.com", ".") {
		return "bedrock"
	}
	return ""
}

// isHost reports whether host is name or ends with it after a separator.
func isHost(host, name, separator string) bool {
	before, ok := strings.CutSuffix(host, name)
	return ok && (before == "" || strings.HasSuffix(before, separator))
}
