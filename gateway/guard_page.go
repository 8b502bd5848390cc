package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// SessionCookie names the cookie that holds the access token of somebody who looks at ibid's pages in a browser.
const SessionCookie = "ibid_session"

// sessionLife is how long a browser keeps the cookie. The token in it may be revoked before.
const sessionLife = 30 * 24 * time.Hour

// SessionOf returns the cookie that says in all later requests of a browser who makes them, by an access token. An
// empty secret returns the cookie that ends it. No script can read it, and no other site make a browser send it with
// more than a link that somebody follows, which only reads (see [OwnPage]). Secure says that ibid is reached by https:
// then it is sent by https only.
func SessionOf(secret string, secure bool) *http.Cookie {
	c := &http.Cookie{
		Name: SessionCookie, Value: url.PathEscape(secret), Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode,
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
	for _, c := range r.CookiesNamed(SessionCookie) {
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
	return strings.TrimRight(name, " \t") == SessionCookie
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
		return nil
	case "":
		cookie := bearer(r) == "" && len(sessions(r)) > 0
		if origin == "" && !cookie || origin != "" && isSameOrigin(origin, r.Host) {
			return nil
		}
	}
	return &Problem{
		Status: http.StatusForbidden, Code: CodeForeign, Detail: "only a page of ibid itself may do this",
		Hint: "a program that is not a browser sends a token as `Authorization: Bearer TOKEN`, and no cookie",
	}
}
