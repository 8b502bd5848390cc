package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/watch"
)

// minKey is how long a key is at least: what is shorter keeps nobody out, and may be a word.
const minKey = 8

// HideKeys returns words of a provider without the keys in the header of the request that they are about: some repeat
// in an error what they were sent, and their words are kept, and shown to people who have other keys.
func HideKeys(h http.Header, words string) string {
	const hidden = "…"
	for _, name := range call.KeyHeaders() {
		for _, value := range h.Values(name) {
			key := value
			if scheme, rest, ok := strings.Cut(value, " "); ok && scheme != "" {
				key = strings.TrimSpace(rest)
			}
			if len(key) < minKey {
				continue
			}
			for _, secret := range []string{value, key, url.QueryEscape(key)} {
				words = strings.ReplaceAll(words, secret, hidden)
			}
		}
	}
	return words
}

// hideKeys takes the keys of the call out of its answer's error before that is kept.
func (e *exchange) hideKeys(a *ibid.Answer) {
	if a.Error == nil {
		return
	}
	keys := watch.Keys(e.in, e.provider())
	a.Error = &ibid.ProviderError{Code: HideKeys(keys, a.Error.Code), Message: HideKeys(keys, a.Error.Message)}
}
