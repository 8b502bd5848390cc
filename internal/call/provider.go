package call

import (
	"slices"
	"strings"

	"github.com/ibidhq/ibid/internal/wire"
)

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

// anthropicVersion is the only version of the Messages API. Its SDKs send it with every call.
const anthropicVersion = "2023-06-01"

// providers are in the order of the documentation. Addresses, variables and headers are those of the providers' own
// SDKs. Bedrock's key is one of its API keys, which are bearer tokens; its address has a region, so that users of
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

// Providers returns the providers that a gateway knows by name, in the order of the documentation. The caller must not
// change what they point to.
func Providers() []Provider { return slices.Clone(providers) }

// FindProvider returns the provider of that name, and whether there is one.
func FindProvider(name string) (Provider, bool) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}

// ProviderNames returns the names that an answer can have for its provider, in order, as long as nobody says another
// one: those of [Providers] and others whose answers are recognised.
func ProviderNames() []string {
	names := append(wire.Providers(), "generic") // not known whose it is
	for i := range providers {
		names = append(names, providers[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// KeyHeaders returns the canonical names of all headers in which a caller's request may carry its key, whatever the
// provider: each takes one of its own, most take a bearer token as well. A key may also stand in the query, see
// [Provider].KeyQuery.
func KeyHeaders() []string {
	return []string{"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key"}
}

// otelNames are the names of providers in OpenTelemetry's conventions for generative AI, where they differ from ours.
var otelNames = map[string]string{
	"gemini": "gcp.gemini", "vertex": "gcp.vertex_ai", "azure": "azure.ai.openai", "bedrock": "aws.bedrock",
	"xai": "x_ai", "mistral": "mistral_ai",
}

// OTelName returns the name of a provider in OpenTelemetry's conventions for generative AI, the provider's own where
// they have none.
func OTelName(provider string) string {
	if name := otelNames[provider]; name != "" {
		return name
	}
	return provider
}

// hosts are further hosts of providers. Whatever ends with one, after a dot or, in regional names, a hyphen, is one
// too.
var hosts = map[string]string{
	"api.cohere.ai": "cohere", "discoveryengine.googleapis.com": "gemini", "aiplatform.googleapis.com": "gemini",
	"openai.azure.com": "azure", "services.ai.azure.com": "azure", "cognitiveservices.azure.com": "azure",
	"models.ai.azure.com": "azure",
}

// FindHost returns the provider that answers at a host, one of [Providers], and "" for any other host. The host may
// have a port, and is written in lower case. Hosts in regions of a provider's own, and those of a user's resource, are
// found too.
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

// isHost reports whether host is name, or ends with it behind a separator.
func isHost(host, name, separator string) bool {
	before, ok := strings.CutSuffix(host, name)
	return ok && (before == "" || strings.HasSuffix(before, separator))
}
