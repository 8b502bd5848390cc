package gateway

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// removeHopByHop removes the headers that are about one connection. Those of a request that ask for trailers or for another
// protocol have to be read before.
func removeHopByHop(h http.Header) {
	if values, ok := h["Connection"]; ok {
		for _, value := range values {
			for name := range strings.SplitSeq(value, ",") {
				if name = textproto.TrimString(name); name != "" {
					h.Del(name)
				}
			}
		}
		delete(h, "Connection")
	}
	delete(h, "Proxy-Connection")
	delete(h, "Keep-Alive")
	delete(h, "Proxy-Authenticate")
	delete(h, "Proxy-Authorization")
	delete(h, "Te")
	delete(h, "Trailer")
	delete(h, "Transfer-Encoding")
	delete(h, "Upgrade")
}

// hasToken reports whether a header that is a list has the token.
func hasToken(values []string, token string) bool {
	for _, value := range values {
		for item := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(textproto.TrimString(item), token) {
				return true
			}
		}
	}
	return false
}

// isUpgrade reports whether a request asks for another protocol.
func isUpgrade(h http.Header) bool {
	return len(h["Upgrade"]) > 0 && hasToken(h["Connection"], "upgrade")
}

// isOurs reports whether only ibid may say a header of a response.
func isOurs(name string) bool { return strings.HasPrefix(name, "Ibid-") }

// passHeader puts an upstream's header into the response to the client. What is there already was put there by whoever
// serves the gateway (CORS) and stays; Vary is a list, and has both.
func passHeader(to, from http.Header) {
	before := len(to) > 0
	for name, values := range from {
		if isOurs(name) {
			continue
		}
		if before {
			if had, ok := to[name]; ok && name != "Vary" {
				continue
			} else if ok {
				values = append(slices.Clip(had), values...)
			}
		}
		to[name] = values
	}
	// The server would make these up.
	if _, ok := to["Content-Type"]; !ok {
		to["Content-Type"] = nil
	}
	if _, ok := to["Date"]; !ok {
		to["Date"] = nil
	}
}
