package verify

import (
	"strings"

	"github.com/ibidhq/ibid"
)

// Given returns the words that a claim is to be compared with: the quote, or if a provider or a model cites without
// quoting, as with [1], what the model was given of the source. It is empty if neither is known.
func Given(a *ibid.Answer, r *ibid.Ref) string {
	if strings.TrimSpace(r.Quote) != "" {
		return r.Quote
	}
	if s := a.Source(r.Source); s != nil {
		return s.Content
	}
	return ""
}
