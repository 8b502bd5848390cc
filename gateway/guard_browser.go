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
	// maxCORSHeaders is how many bytes of header names a preflight may ask for.
	maxCORSHeaders = 4 << 10
	// corsAge is how many seconds a browser may cache a preflight.
	corsAge = "600"
)

// exposed are the response headers that pages of other origins may read.
const exposed = RunHeader + ", " + AnswerHeader + ", " + PolicyHeader + ", " + manifest.HeaderName

// CORS tells a browser whether the page may call, according to the configured origins. It reports whether it has
// answered the request, which was then a preflight, without a token or anything else to do. Call it before anything
// else.
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
	// Providers' SDKs send headers of their own, so any requested header is allowed.
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

// hasOrigins reports whether origins are configured. A nil Guard has none.
func (g *Guard) hasOrigins() bool { return g != nil && (len(g.origins) > 0 || g.anyOrigin) }

// allowsOrigin reports whether pages of an origin may call: it is configured, or any is and a token is needed anyway.
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

// foreign returns the problem of a request that may have been caused by a web page unrelated to ibid, or nil.
func (g *Guard) foreign(r *http.Request) error {
	if !IsLoopbackHost(r.Host) {
		return NewProblem(CodeForeign, "ibid does not answer to the name in the Host header",
			"without access tokens ibid answers only to loopback names such as localhost and 127.0.0.1; "+
				"`ibid token new --name NAME --scope all` creates the first token")
	}
	origin := r.Header.Get("Origin")
	switch {
	case slices.Contains(g.origins, strings.ToLower(origin)): // no configured origin is empty
		return nil
	case origin == "" && !isCrossSite(r), isSameOrigin(origin, r.Host), r.Header.Get("Sec-Fetch-Site") == "same-origin":
		return nil // the last for pages whose Referrer-Policy hides their origin
	}
	return foreignOrigin()
}

// checkOrigin returns the problem of a request that changes something and that a browser sends for a page which is
// neither ibid's nor of an allowed origin, including pages with an opaque origin, such as sandboxed ones (Origin:
// null). Programs send neither Origin nor Sec-Fetch-Site and pass.
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
		CodeForeign, "a web page of another origin may not call ibid", "allow the page's origin with --cors-origin")
}

// IsLoopbackHost reports whether a host, with or without a port, is the machine itself: localhost, a subdomain of it,
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

// isSameOrigin reports whether a page's origin is the request's host. The scheme is not compared, because a proxy that
// terminates TLS may have changed it.
func isSameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && strings.EqualFold(u.Host, host)
}

// isCrossSite reports whether a browser says that a page of another site caused the request, other than by a link that
// the user follows. A page in a frame of that page does not count as one.
func isCrossSite(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		return false
	}
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	dest := r.Header.Get("Sec-Fetch-Dest")
	return !isRead || r.Header.Get("Sec-Fetch-Mode") != "navigate" || dest != "" && dest != "document"
}

// SessionCookie is the cookie with the access token of a user who views ibid's pages in a browser. Over https it is
// [SecureCookie], which no page of another subdomain and no page over http can set.
const (
	SessionCookie = "ibid_session"
	SecureCookie  = "__Host-" + SessionCookie
)

// sessionLife is how long a browser keeps the cookie. Its token may be revoked earlier.
const sessionLife = 30 * 24 * time.Hour

// SessionOf returns the cookie that identifies a browser's user by an access token in all later requests. An empty
// secret returns the cookie that ends the session. No script can read it, and another site can make a browser send it
// only with a link that the user follows, which only reads (see [OwnPage]). If secure is true, ibid is reached over
// https, and the cookie is sent over https only.
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

// maxSessions is how many session cookies of a request are tried.
const maxSessions = 4

// sessions returns the tokens in a request's cookies: programs on other ports of this host, or other hosts of its
// domain, may have set cookies of the same name, which cannot be told apart from ours. They are escaped, because a
// bootstrap token may contain any characters and a cookie may not.
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

// isSession reports whether a pair of a Cookie header, or the cookie of a Set-Cookie header, is a session. Browsers
// send a cookie without a name as its bare value, which may look like another cookie (RFC 6265bis, section 5.7).
func isSession(pair string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(pair, "= \t"), "=")
	name, _, _ = strings.Cut(name, ";")
	name = strings.TrimRight(name, " \t")
	return name == SessionCookie || strings.EqualFold(name, SecureCookie)
}

// removeSession removes the session from a request to an upstream: a browser sends the cookie to every path of this
// host. Other cookies are kept.
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

// Page returns the identity of a request for one of ibid's pages, which must have the scope. It accepts what
// [Guard.API] accepts and, if no header has a token, the [SessionCookie]. A method other than GET and HEAD must come
// from one of ibid's own pages: a browser sends the cookie for any page.
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

// OwnPage returns the problem of a request that changes something (any method but GET and HEAD) and was made by a page
// other than ibid's own, including one of another subdomain, which a same-site cookie would let pass. Browsers identify
// the page by Sec-Fetch-Site over https and from loopback names, and always by Origin; other programs need not, unless
// they send the [SessionCookie]: then they may be a browser that is too old.
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
