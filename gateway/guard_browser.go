package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/manifest"
)

const (
	// maxCORSHeaders is how many bytes of header names a page may ask for at once.
	maxCORSHeaders = 4 << 10
	// corsAge is how long, in seconds, a browser may remember a preflight.
	corsAge = "600"
)

// exposed are the response headers that a page of another origin may read.
const exposed = RunHeader + ", " + AnswerHeader + ", " + PolicyHeader + ", " + manifest.HeaderName

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
	if !IsLoopbackHost(r.Host) {
		return NewProblem(CodeForeign, "ibid is not known under the name in the Host header",
			"without access tokens ibid answers only to loopback names such as localhost and 127.0.0.1; "+
				"`ibid token new --name NAME --scope all` makes the first token")
	}
	origin := r.Header.Get("Origin")
	switch {
	case slices.Contains(g.origins, strings.ToLower(origin)): // never empty
		return nil
	case origin == "" && !isCrossSite(r), isSameOrigin(origin, r.Host), r.Header.Get("Sec-Fetch-Site") == "same-origin":
		return nil // the last where the page keeps its origin to itself, by a Referrer-Policy
	}
	return foreignOrigin()
}

// checkOrigin returns the problem of a request that changes something and that a browser sends for a page which is
// neither ours nor allowed by name: one with an origin of its own, as a sandboxed page has (Origin: null), too.
// Programs send neither Origin nor Sec-Fetch-Site, and are not asked.
func (g *Guard) checkOrigin(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return nil
	}
	switch origin := r.Header.Get("Origin"); {
	case origin == "":
		if site := r.Header.Get("Sec-Fetch-Site"); site == "" || site == "same-origin" || site == "none" {
			return nil
		}
	case isSameOrigin(origin, r.Host), origin != "null" && g.allowsOrigin(r, origin):
		return nil
	}
	return foreignOrigin()
}

func foreignOrigin() error {
	return NewProblem(
		CodeForeign, "a web page of another origin may not call ibid", "allow the page's origin by --cors-origin")
}

// IsLoopbackHost reports whether a host, with or without a port, names the machine itself: localhost, a name below it,
// or a loopback address.
func IsLoopbackHost(host string) bool {
	host = strings.ToLower(host)
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.TrimSuffix(name, ".")
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

// SessionCookie names the cookie that holds the access token of somebody who looks at ibid's pages in a browser.
// Over https it is [SecureCookie], which no page of another subdomain, and no page by http, can set.
const (
	SessionCookie = "ibid_session"
	SecureCookie  = "__Host-" + SessionCookie
)

// sessionLife is how long a browser keeps the cookie. The token in it may be revoked before.
const sessionLife = 30 * 24 * time.Hour

// SessionOf returns the cookie that says in all later requests of a browser who makes them, by an access token. An
// empty secret returns the cookie that ends it. No script can read it, and no other site make a browser send it with
// more than a link that somebody follows, which only reads (see [OwnPage]). Secure says that ibid is reached by https:
// then it is sent by https only.
func SessionOf(secret string, secure bool) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // over http a secure cookie would not come back
		Name: SessionCookie, Value: url.PathEscape(secret), Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode,
	}
	if secure {
		c.Name = SecureCookie
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// maxSessions is how many of a request's sessions are tried.
const maxSessions = 4

// sessions returns the tokens in the cookies of a request: programs on other ports of this host, or other hosts of its
// domain, may have set one of the same name, and nothing says which is ours. They are escaped, since a bootstrap token
// may have any characters, and cookies may not.
func sessions(r *http.Request) []string {
	var all []string
	found := r.CookiesNamed(SecureCookie)
	if len(found) == 0 {
		found = r.CookiesNamed(SessionCookie)
	}
	for _, c := range found {
		if secret, err := url.PathUnescape(c.Value); err == nil && secret != "" && len(all) < maxSessions {
			all = append(all, secret)
		}
	}
	return all
}

// isSession reports whether a pair of a Cookie header, or what a Set-Cookie header sets, is the session. Browsers send
// a cookie without a name as its bare value, which may look like another cookie (RFC 6265bis, section 5.7).
func isSession(pair string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(pair, "= \t"), "=")
	name, _, _ = strings.Cut(name, ";")
	name = strings.TrimRight(name, " \t")
	return name == SessionCookie || strings.EqualFold(name, SecureCookie)
}

// removeSession takes the session out of a request that goes to an upstream: a browser sends the cookie to every path
// of this host. Other cookies stay as they are.
func removeSession(h http.Header) {
	values := h["Cookie"]
	if !slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, SessionCookie) }) {
		return
	}
	var kept []string
	for _, value := range values {
		pairs := slices.DeleteFunc(strings.Split(value, ";"), isSession)
		if value = strings.TrimLeft(strings.Join(pairs, ";"), " "); value != "" {
			kept = append(kept, value)
		}
	}
	if h["Cookie"] = kept; len(kept) == 0 {
		delete(h, "Cookie")
	}
}

// Page says who makes a request for one of ibid's pages, and that the scope is theirs: as [Guard.API] does, and also by
// the [SessionCookie], where no header has a token. A method other than GET and HEAD must come from a page of ours: a
// browser sends the cookie by itself, whoever's page makes it.
func (g *Guard) Page(r *http.Request, scope string) (Identity, error) {
	if err := OwnPage(r); err != nil {
		return Identity{}, err
	}
	secrets := sessions(r)
	if secret := bearer(r); secret != "" || len(secrets) == 0 {
		secrets = []string{secret}
	}
	var who Identity
	var err error
	for _, secret := range secrets {
		if who, err = g.admit(r, scope, secret, "Bearer"); err == nil || ProblemOf(err).Code != CodeToken {
			break
		}
	}
	return who, err
}

// OwnPage returns the problem of a request that changes something (any method but GET and HEAD) and that a page makes
// which is not ours, of another subdomain too, which a same-site cookie would let pass. Browsers say whose page it is,
// by Sec-Fetch-Site over https and from loopback names, by Origin always; other programs need not, but with the
// [SessionCookie] they must: then it may be a browser that is too old.
func OwnPage(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	origin := r.Header.Get("Origin")
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		if origin == "" || isSameOrigin(origin, r.Host) {
			return nil
		}
	case "":
		cookie := bearer(r) == "" && len(sessions(r)) > 0
		if origin == "" && !cookie || origin != "" && isSameOrigin(origin, r.Host) {
			return nil
		}
	}
	return NewProblem(CodeForeign, "only a page of ibid itself may do this",
		"a program that is not a browser sends a token as `Authorization: Bearer TOKEN`, and no cookie")
}
