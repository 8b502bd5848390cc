package gateway

import (
	"net/http"
	"net/url"
	"time"
)

// SessionCookie names the cookie that holds the access token of somebody who looks at ibid's pages in a browser.
const SessionCookie = "ibid_session"

// sessionLife is how long a browser keeps the cookie. The token in it may be revoked before.
const sessionLife = 30 * 24 * time.Hour

// SessionOf returns the cookie that says in all later requests of a browser who makes them, by an access token. An empty secret
// returns the cookie that ends it. No script can read it, and no other site make a browser send it. Secure says that ibid is
// reached by https: then it is sent by https only.
func SessionOf(secret string, secure bool) *http.Cookie {
	c := &http.Cookie{
		Name: SessionCookie, Value: url.PathEscape(secret), Path: "/", MaxAge: int(sessionLife / time.Second),
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c
}

// session returns the token in the cookie of a request; empty: there is none. It is escaped, since a bootstrap token may have
// any characters, and cookies may not.
func session(r *http.Request) string {
	c, err := r.Cookie(SessionCookie)
	if err != nil {
		return ""
	}
	secret, err := url.PathUnescape(c.Value)
	if err != nil {
		return ""
	}
	return secret
}

// Page says who makes a request for one of ibid's pages, and that the scope is theirs: as [Guard.API] does, and also by the
// [SessionCookie], where no header has a token. A method other than GET and HEAD must come from a page of ours: a browser sends the
// cookie by itself, whoever's page makes it.
func (g *Guard) Page(r *http.Request, scope string) (Identity, error) {
	secret := bearer(r)
	ambient := secret == ""
	if ambient {
		secret = session(r)
	}
	if err := ownPage(r, ambient && secret != ""); err != nil {
		return Identity{}, err
	}
	return g.admit(r, scope, secret, "Bearer")
}

// ownPage returns the problem of a request that changes something and that a page makes which is not ours, of another subdomain too,
// which a same-site cookie would let pass. Browsers say whose page it is, by Sec-Fetch-Site over https and from loopback names, by
// Origin always; other programs need not, but with a cookie they must: then it may be a browser that is too old.
func ownPage(r *http.Request, cookie bool) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil
	}
	origin := r.Header.Get("Origin")
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return nil
	case "":
		if origin == "" && !cookie || origin != "" && isSameOrigin(origin, r.Host) {
			return nil
		}
	}
	return &Problem{
		Status: http.StatusForbidden, Code: CodeForeign, Detail: "only a page of ibid itself may do this",
		Hint: "a program that is not a browser sends a token as `Authorization: Bearer TOKEN`, and no cookie",
	}
}
