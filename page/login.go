package page

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

// loginBody is what the page shows that asks for a token.
type loginBody struct {
	Next  string // where to go then
	Wrong string // what was wrong with the last one; empty: nothing was sent
}

// showLogin asks for a token.
func (p *Page) showLogin(w http.ResponseWriter, r *request) error {
	return p.page(w, r, "login", &view{Title: "Sign in", Body: loginBody{Next: localPath(r.URL.Query().Get("next"))}})
}

// login takes a token, and keeps it in a cookie of this site alone.
func (p *Page) login(w http.ResponseWriter, r *request) error {
	if err := gateway.OwnPage(r.Request); err != nil {
		return err
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	secret, next := strings.TrimSpace(r.PostForm.Get("token")), localPath(r.PostForm.Get("next"))
	asked := r.Clone(r.Context())
	asked.Header = http.Header{"Authorization": {"Bearer " + secret}}
	if _, err := p.o.Guard.API(asked, store.ScopeRead); err != nil {
		problem := gateway.ProblemOf(err)
		if problem.Status != http.StatusUnauthorized && problem.Status != http.StatusForbidden {
			return err
		}
		body := loginBody{Next: next, Wrong: problem.Detail}
		return p.show(
			w, r,
			&shown{name: "login", status: http.StatusUnprocessableEntity, view: &view{Title: "Sign in", Body: body}},
		)
	}
	http.SetCookie(w, gateway.SessionOf(secret, p.secure(r)))
	http.Redirect(w, r.Request, next, http.StatusSeeOther)
	return nil
}

// logout forgets the token.
func (p *Page) logout(w http.ResponseWriter, r *request) error {
	if err := gateway.OwnPage(r.Request); err != nil {
		return err
	}
	http.SetCookie(w, gateway.SessionOf("", p.secure(r)))
	http.Redirect(w, r.Request, "/ui/login", http.StatusSeeOther)
	return nil
}

// loginURL returns where a token is asked for before the page at u is shown.
func loginURL(u *url.URL) string {
	next := u.RequestURI()
	if next == "/" {
		return "/ui/login"
	}
	return "/ui/login?next=" + url.QueryEscape(next)
}

// localPath returns a path of this page, whatever it is given: an address elsewhere would make the page a way there.
func localPath(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") ||
		strings.ContainsAny(s, "\\\r\n\t") {
		return "/"
	}
	return s
}
