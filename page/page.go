package page

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

const (
	// askStore bounds how long one page may take the store.
	askStore = httpx.StoreTime
	// maxPathID is how long an id in a path can be, in bytes. There are none longer.
	maxPathID = 512
	// maxAsked is how many bytes an address or a key has that is asked for.
	maxAsked = 4 << 10
)

// Options are what a Page shows.
type Options struct {
	Store   *store.Store     // needed
	Guard   *gateway.Guard   // needed
	API     *api.API         // needed: it makes the summaries of runs, within its bounds
	Gateway *gateway.Gateway // what it captured and did not store yet is shown too; nil: there is none
	Bus     *bus.Bus         // answers appear while they arrive; nil: when they have
	Chat    *chat.Chat       // questions can be asked on the page; nil: they cannot
	// Verifies says that readers may have something verified. The API does it, as it does by POST /v1/verify.
	Verifies bool
	// Strategies are those that can be compared.
	Strategies []experiment.Strategy
	Logger     *slog.Logger // nil: nothing is logged
	Version    string       // of the program
	// PublicURL is where others reach the page: https://ibid.example. If it is https the page's cookies are never sent
	// without, also where a proxy ends TLS. Empty: where each request came.
	PublicURL string
}

// Page answers the paths /, /ibid.js, /favicon.ico and those below /ui/. Its methods may be called at the same time.
type Page struct {
	o        Options
	log      *slog.Logger
	views    map[string]*template.Template // by the name of the file in templates/
	assets   map[string]asset              // by their path below /ui/assets/, and ibid.js
	mux      *http.ServeMux
	closing  context.Context // what Close ends
	close    context.CancelFunc
	captured httpx.Reader
	bounds   *bounds
	arriving arriving // answers that were asked for on a page and have not ended
}

// New returns a page.
func New(o *Options) (*Page, error) {
	if o == nil || o.Store == nil || o.Guard == nil || o.API == nil {
		return nil, errors.New("make the page: it needs a store, a guard and the API")
	}
	p := &Page{o: *o, log: o.Logger, mux: http.NewServeMux(), bounds: newBounds()}
	p.captured = httpx.Reader{Store: o.Store, Gateway: o.Gateway, Logger: o.Logger}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if p.assets, err = readAssets(); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	if p.views, err = readViews(p.assets); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	p.closing, p.close = context.WithCancel(context.Background())
	for pattern, e := range p.routes() {
		p.mux.Handle(pattern, p.serve(e))
	}
	p.mux.Handle("/", p.serve(endpoint{open: true, handle: p.elsewhere}))
	return p, nil
}

// Close ends the streams that are open, which would hold up a server that shuts down: hand it to
// http.Server.RegisterOnShutdown.
func (p *Page) Close() { p.close() }

// ServeHTTP answers the paths of the page. Other paths get a page that says so.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// request is a request with who makes it.
type request struct {
	*http.Request

	who gateway.Identity
}

// handler answers a request of somebody who may make it. An error is shown as a page, so that nothing must have been
// written before.
type handler func(w http.ResponseWriter, r *request) error

// endpoint is one method of one path.
type endpoint struct {
	open   bool   // to everybody
	public bool   // and to pages of other sites: it is the same everywhere, and says nothing of what is here
	scope  string // else what it asks of its callers; empty: read
	handle handler
}

// routes returns the endpoints by pattern.
func (p *Page) routes() map[string]endpoint {
	return map[string]endpoint{
		"GET /ui/login":            {open: true, handle: p.showLogin},
		"POST /ui/login":           {open: true, handle: p.login},
		"POST /ui/logout":          {open: true, handle: p.logout},
		"GET /ui/assets/{name...}": {open: true, handle: p.asset},
		"GET /ibid.js":             {open: true, public: true, handle: p.element},
		"GET /favicon.ico":         {open: true, handle: p.icon},

		"GET /{$}":       {handle: p.overview},
		"GET /ui/search": {handle: p.search},

		"GET /ui/conversations":             {handle: p.conversations},
		"GET /ui/conversations/{id}":        {handle: p.conversation},
		"GET /ui/conversations/{id}/export": {handle: p.exportConversation},
		"GET /ui/ask":                       {handle: p.showAsk},
		"POST /ui/ask":                      {scope: store.ScopeProxy, handle: p.ask},

		"GET /ui/answers/{id}":             {handle: p.answer},
		"GET /ui/answers/{id}/live":        {handle: p.liveAnswer},
		"GET /ui/answers/{id}/export":      {handle: p.exportAnswer},
		"GET /ui/answers/{id}/display/{n}": {handle: p.display},
		"GET /ui/answers/{id}/sources/{n}": {handle: p.showPanel},
		"GET /ui/copies/{hash}":            {handle: p.saveCopy},
		"GET /ui/feedback":                 {handle: p.showFeedback},
		"POST /ui/feedback":                {scope: store.ScopeWrite, handle: p.giveFeedback},

		"GET /ui/runs":             {handle: p.runs},
		"GET /ui/runs/{id}":        {handle: p.run},
		"GET /ui/runs/{id}/export": {handle: p.exportRun},
		"GET /ui/runs/{id}/live":   {handle: p.liveRun},

		"GET /ui/sources":        {handle: p.sources},
		"GET /ui/incidents":      {handle: p.incidents},
		"GET /ui/incidents/{id}": {handle: p.incident},
		"GET /ui/verify":         {handle: p.showVerify},
		"POST /ui/verify":        {scope: store.ScopeVerify, handle: p.verify},
		"GET /ui/experiments":    {handle: p.experiments},
	}
}

// serve answers the requests for one endpoint.
func (p *Page) serve(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		setHeaders(w.Header())
		r := &request{Request: hr}
		err := p.admit(r, e)
		if err == nil {
			err = e.handle(w, r)
		}
		if err != nil {
			p.fail(w, r, err) //nolint:contextcheck // the request has it
		}
	})
}

// admit says who makes a request, and that they may.
func (p *Page) admit(r *request, e endpoint) error {
	if e.public {
		return nil
	}
	if e.open {
		return p.o.Guard.Local(r.Request)
	}
	scope := e.scope
	if scope == "" {
		scope = store.ScopeRead
	}
	var err error
	r.who, err = p.o.Guard.Page(r.Request, scope)
	return err
}

// fail shows what went wrong. Who has no token is sent to where one is asked for.
func (p *Page) fail(w http.ResponseWriter, r *request, err error) {
	problem := gateway.ProblemOf(err)
	if gateway.IsInternal(err) && r.Context().Err() == nil {
		p.log.LogAttrs(
			r.Context(), slog.LevelError, "a page could not be made", slog.String("path", r.URL.Path),
			slog.Any("error", err),
		)
	}
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	wantsEvents := strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream")
	if problem.Status == http.StatusUnauthorized && isRead && !wantsEvents {
		http.Redirect(w, r.Request, loginURL(r.URL), http.StatusSeeOther)
		return
	}
	v := &view{Title: http.StatusText(problem.Status), Body: problemBody{Detail: problem.Detail, Hint: problem.Hint}}
	if problem.Status == http.StatusUnauthorized {
		v.Title, v.Body = "Not signed in", problemBody{
			Detail: "This needs an access token: you did not sign in, or what you signed in with is not valid any " +
				"more.",
			Hint: "Nothing was done. Sign in and send it again: your browser may still have what you entered, " +
				"a page back.",
			Login: loginURL(cameFrom(r)),
		}
	}
	for name, values := range problem.Header {
		w.Header()[name] = slices.Clone(values)
	}
	if err := p.show(w, r, "error", problem.Status, v); err != nil {
		http.Error(w, problem.Detail, problem.Status)
	}
}

// problemBody is what the page of an error says.
type problemBody struct {
	Detail, Hint string
	Login        string // where to sign in; empty: that would not help
}

// cameFrom returns the page of ours that a form was sent from, as far as that is known.
func cameFrom(r *request) *url.URL {
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return &url.URL{Path: localPath(from.Path), RawQuery: from.RawQuery}
	}
	return &url.URL{Path: "/"}
}

// elsewhere answers for paths that are not there, and for methods that a path does not have: the pattern of all paths
// takes them from http.ServeMux.
func (p *Page) elsewhere(w http.ResponseWriter, r *request) error {
	var allowed []string
	asked := *r.Request
	for _, asked.Method = range []string{http.MethodGet, http.MethodPost} {
		if _, pattern := p.mux.Handler(&asked); pattern != "/" {
			allowed = append(allowed, asked.Method)
		}
	}
	if len(allowed) == 0 {
		return p.nowhere(w, r)
	}
	if allowed[0] == http.MethodGet {
		allowed = slices.Insert(allowed, 1, http.MethodHead)
	}
	return &gateway.Problem{
		Status: http.StatusMethodNotAllowed,
		Code:   gateway.CodeMethod,
		Detail: "This address is not for " + label(r.Method) + ".",
		Header: http.Header{"Allow": {strings.Join(allowed, ", ")}},
	}
}

// nowhere answers for what is not there.
func (p *Page) nowhere(http.ResponseWriter, *request) error {
	return &gateway.Problem{
		Status: http.StatusNotFound,
		Code:   gateway.CodeNotFound,
		Detail: "There is no such page.",
		Hint:   "It may have been deleted, or be somebody else's.",
	}
}

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
		return p.refuse(w, r, "login", &view{Title: "Sign in", Body: body})
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

// baseURL returns the address of this server: the one that others have, else the one under which its reader reached it.
func (p *Page) baseURL(r *request) string {
	switch {
	case p.o.PublicURL != "":
		return strings.TrimRight(p.o.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// secure reports whether a reader's browser reaches the page by https, also where a proxy ends TLS.
func (p *Page) secure(r *request) bool {
	return r.TLS != nil || strings.HasPrefix(p.o.PublicURL, "https:")
}

// mayWrite reports whether who makes a request may say what is wrong.
func (r *request) mayWrite() bool { return r.who.May(store.ScopeWrite) || r.who.Token == "" }

// asked returns a parameter of a request as it can be looked for: databases keep neither NUL nor what is no text.
func (r *request) asked(name string) string { return clean(r.URL.Query().Get(name)) }

func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text.Head(s, maxPathID), "")))
}

// askedLong returns an address, a key or a list of these that is asked for. One that is too long is refused: without it
// the answer would be another.
func askedLong(s string) (string, error) {
	if len(s) > maxAsked {
		return "", httpx.BadRequest(
			"What is asked for is too long.",
			"An address may have "+strconv.Itoa(maxAsked)+" bytes.",
		)
	}
	return s, nil
}

// number returns a parameter that counts something from 1; 0: it is not there. Anything else is not there either: links
// that somebody mended by hand still show the page.
func (r *request) number(name string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// pathID returns the id in a path. What cannot be one is not found, like any id that is not there.
func (r *request) pathID() (string, error) {
	id := r.PathValue("id")
	if id == "" || len(id) > maxPathID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return "", store.ErrNotFound
	}
	return id, nil
}

// pathNumber returns which of so many, from 1, a path names; 0: none. There is one way to write each.
func (r *request) pathNumber(of int) int {
	named := r.PathValue("n")
	if n, err := strconv.Atoi(named); err == nil && n >= 1 && n <= of && strconv.Itoa(n) == named {
		return n
	}
	return 0
}
