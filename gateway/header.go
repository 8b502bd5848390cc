package gateway

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// removeHopByHop removes the headers that are about one connection. Those of a request that ask for trailers or for
// another protocol have to be read before.
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
	delete(h, "Http2-Settings")
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

// isUpgrade reports whether a request asks for a tunnel: for another protocol, which only a GET does where an answer
// would be captured. Another HTTP or TLS is about the connection: a server may ignore that (RFC 9110, section 7.8), and
// clients offer it with every call.
func isUpgrade(r *http.Request, captured bool) bool {
	protocols := r.Header["Upgrade"]
	if len(protocols) == 0 || !hasToken(r.Header["Connection"], "upgrade") {
		return false
	}
	if hasToken(protocols, "websocket") {
		return r.Method == http.MethodGet
	}
	return !captured && !hasToken(protocols, "h2c") && !hasToken(protocols, "TLS/1.0")
}

// isOurs reports whether only ibid may say a header of a response.
func isOurs(name string) bool { return strings.HasPrefix(name, "Ibid-") }

// isOfHost reports whether a header is about the upstream's host and port: a browser would take its word for ibid's.
func isOfHost(name string) bool {
	return name == "Alt-Svc" || name == "Strict-Transport-Security" || name == "Clear-Site-Data"
}

// saidByUpstream returns what an upstream may say in a header of its response: nothing of what is ours or its host's to
// say.
func saidByUpstream(name string, values []string) []string {
	switch {
	case isOurs(name), isOfHost(name):
		return nil
	case name == "Set-Cookie" && slices.ContainsFunc(values, isSession):
		return slices.DeleteFunc(slices.Clone(values), isSession)
	}
	return values
}

const (
	// corsPrefix begins the headers that say to a browser which pages may call. Where ibid says so itself (see
	// [Guard.CORS]), the upstream does not: its word would be of another host, and a browser takes one only.
	corsPrefix  = "Access-Control-"
	corsExposed = corsPrefix + "Expose-Headers"
)

// passHeader puts an upstream's header into the response to the client. What is there already was put there by whoever
// serves the gateway (CORS) and stays; lists have both. cors says that what pages may do is ibid's to say.
func passHeader(to, from http.Header, cors bool) {
	before := len(to) > 0
	for name, values := range from {
		if values = saidByUpstream(name, values); len(values) == 0 {
			continue
		}
		if before {
			had, ok := to[name]
			switch {
			case ok && name == corsExposed:
				values = []string{strings.Join(append(slices.Clip(had), values...), ", ")}
			case ok && name == "Vary":
				values = append(slices.Clip(had), values...)
			case ok, cors && strings.HasPrefix(name, corsPrefix):
				continue
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
