package wire

import "strings"

// FindHost returns the provider that answers at a host, one of [Providers], and "" for any other host. The host may
// have a port, and is written in lower case. Hosts in regions of a provider's own, and those of a user's resource, are
// found too.
func FindHost(host string) string {
	host, _, _ = strings.Cut(host, ":")
	for _, p := range Providers() {
		if at := strings.TrimPrefix(p.URL, "https://"); at != "" && isHost(host, at) {
			return p.Name
		}
	}
	switch {
	case isHost(host, "api.cohere.ai"):
		return "cohere"
	case isHost(host, "discoveryengine.googleapis.com"), isHost(host, "aiplatform.googleapis.com"),
		strings.HasSuffix(host, "-aiplatform.googleapis.com"),
		strings.HasSuffix(host, "-discoveryengine.googleapis.com"):
		return "gemini"
	case isHost(host, "openai.azure.com"), isHost(host, "services.ai.azure.com"),
		isHost(host, "cognitiveservices.azure.com"),
		isHost(host, "models.ai.azure.com"):
		return "azure"
	case strings.HasPrefix(host, "bedrock-") && isHost(host, "amazonaws.com"):
		return "bedrock"
	}
	return ""
}

// isHost reports whether host is that one or one below it.
func isHost(host, name string) bool {
	before, ok := strings.CutSuffix(host, name)
	return ok && (before == "" || strings.HasSuffix(before, "."))
}
