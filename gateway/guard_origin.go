package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/manifest"
)

const (
	// maxCORSHeaders is how many bytes of header names a page may ask for at once.
	maxCORSHeaders = 4 << 10
	// corsAge is how long, in seconds, a browser may remember a preflight.
	corsAge = "600"
)

// exposed are the response headers that a page of another origin may read.
const exposed = "Ibid-Run, Ibid-Answer, " + manifest.HeaderName

// CORS tells a browser whether the page may call, by the configured origins, and reports whether it has answered the
// request: that was a preflight, which carries no token and has nothing more to it. Call it first of all.
func (g *Guard) CORS(w http.ResponseWriter, r *http.Request) (done bool) {
	if !g.hasOrigins() {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !g.allowsOrigin(r, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", exposed)
	method := r.Header.Get("Access-Control-Request-Method")
	if r.Method != http.MethodOptions || method == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	// Providers' SDKs send headers of their own, so what is asked for is allowed.
	if names := r.Header.Get("Access-Control-Request-Headers"); names != "" && len(names) <= maxCORSHeaders {
		h.Set("Access-Control-Allow-Headers", names)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", corsAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// hasOrigins reports whether it was configured which pages may call. By a nil Guard nothing was.
func (g *Guard) hasOrigins() bool { return g != nil && (len(g.origins) > 0 || g.anyOrigin) }

// allowsOrigin reports whether a page of that origin was allowed by name, or any is and a token is needed anyway.
func (g *Guard) allowsOrigin(r *http.Request, origin string) bool {
	if slices.Contains(g.origins, strings.ToLower(origin)) {
		return true
	}
	if !g.anyOrigin {
		return false
	}
	needed, err := g.NeedsToken(r.Context())
	return err == nil && needed
}

// foreign returns the problem of a request that a web page may have caused which has nothing to do with ibid.
func (g *Guard) foreign(r *http.Request) error {
	if !g.isOwnHost(r.Host) {
		return &Problem{
			Status: http.StatusForbidden,
			Code:   CodeForeign,
			Detail: "ibid is not known under the name in the Host header",
			Hint:   "without access tokens ibid answers only to loopback names such as localhost and 127.0.0.1; give the name by --public-url, or make a token with `ibid token new`",
		}
	}
	origin := r.Header.Get("Origin")
	switch {
	case slices.Contains(g.origins, strings.ToLower(origin)): // never empty
		return nil
	case origin == "" && !isCrossSite(r), isSameOrigin(origin, r.Host), r.Header.Get("Sec-Fetch-Site") == "same-origin":
		return nil // the last where the page keeps its origin to itself, by a Referrer-Policy
	}
	return &Problem{
		Status: http.StatusForbidden, Code: CodeForeign, Detail: "a web page of another origin may not call ibid",
		Hint: "allow the page's origin by --cors-origin",
	}
}

// isOwnHost reports whether a Host header names this machine, or what it was configured to be called.
func (g *Guard) isOwnHost(host string) bool {
	host = strings.ToLower(host)
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.TrimSuffix(name, ".")
	if slices.Contains(g.hosts, host) || slices.Contains(g.hosts, name) {
		return true
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]"))
	return err == nil && addr.Unmap().IsLoopback()
}

// isSameOrigin reports whether a page's origin is where the request goes. What ends TLS before ibid may have changed
// the scheme, so that it is not compared.
func isSameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}

// isCrossSite reports whether a browser says that a page of another site makes it send this, other than by a link that
// the user follows: a page in a frame of that page is none.
func isCrossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		return false
	}
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	dest := r.Header.Get("Sec-Fetch-Dest")
	return !isRead || r.Header.Get("Sec-Fetch-Mode") != "navigate" || dest != "" && dest != "document"
}
