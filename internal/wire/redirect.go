package wire

import (
	"net/url"
	"strings"
)

// IsRedirect reports whether an address is one of a provider's own that leads to the source and says nothing of it:
// Google's grounding answers cite such, and they stop working after a while.
func IsRedirect(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && strings.EqualFold(u.Host, "vertexaisearch.cloud.google.com") &&
		strings.HasPrefix(u.Path, "/grounding-api-redirect/") && len(u.Path) > len("/grounding-api-redirect/")
}
