package ibid

import (
	"net/url"
	"strings"

	"github.com/ibidhq/ibid/internal/call"
)

// CallOptions returns what the method and the address of a call tell of its response, and whether it is one that is
// answered with an answer: false for a list of models, an embedding, an upload. Answers that are fetched again count.
//
// The host tells the provider; where it is unknown, a gateway's say, the end of the path decides, and all else is
// recognised from the bytes. Request, Documents and Limits are left for the caller to fill in.
func CallOptions(method string, u *url.URL) (DecodeOptions, bool) {
	provider := call.FindHost(strings.ToLower(u.Host))
	route, ok := call.FindRoute(provider, method, u.EscapedPath())
	if !ok || provider == "" {
		return DecodeOptions{}, ok
	}
	return DecodeOptions{Provider: route.Provider}, true
}
