package page

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
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
	o       Options
	log     *slog.Logger
	views   map[string]*template.Template // by the name of the file in templates/
	assets  map[string]asset              // by their path below /ui/assets/, and ibid.js
	mux     *http.ServeMux
	closing context.Context // what Close ends
	close   context.CancelFunc
	bounds  *bounds
	talks   talks // that were begun on a page and have not ended
}

// New returns a page.
func New(o *Options) (*Page, error) {
	if o == nil || o.Store == nil || o.Guard == nil || o.API == nil {
		return nil, errors.New("make the page: it needs a store, a guard and the API")
	}
	p := &Page{o: *o, log: o.Logger, mux: http.NewServeMux(), bounds: newBounds()}
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

// routes returns the endpoints by pattern. What shows the same sort of thing stands in one file, with its routes.
func (p *Page) routes() map[string]endpoint {
	all := map[string]endpoint{
		"GET /ui/login":            {open: true, handle: p.showLogin},
		"POST /ui/login":           {open: true, handle: p.login},
		"POST /ui/logout":          {open: true, handle: p.logout},
		"GET /ui/assets/{name...}": {open: true, handle: p.asset},
		"GET /ibid.js":             {open: true, public: true, handle: p.element},
		"GET /favicon.ico":         {open: true, handle: p.icon},
	}
	for _, more := range []map[string]endpoint{p.answerRoutes(), p.talkRoutes(), p.stepRoutes(), p.proofRoutes()} {
		maps.Copy(all, more)
	}
	return all
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
	if isRead := r.Method == http.MethodGet ||
		r.Method == http.MethodHead; problem.Status == http.StatusUnauthorized && isRead &&
		!strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream") {
		http.Redirect(w, r.Request, loginURL(r.URL), http.StatusSeeOther)
		return
	}
	v := &view{Title: http.StatusText(problem.Status), Body: problemBody{Detail: problem.Detail, Hint: problem.Hint}}
	if problem.Status == http.StatusUnauthorized {
		v.Title, v.Body = "Not signed in", problemBody{
			Detail: "This needs an access token: you did not sign in, or what you signed in with is not valid any more.",
			Hint:   "Nothing was done. Sign in and send it again: your browser may still have what you entered, a page back.",
			Login:  loginURL(cameFrom(r)),
		}
	}
	for name, values := range problem.Header {
		w.Header()[name] = slices.Clone(values)
	}
	if err := p.show(w, r, &shown{name: "error", status: problem.Status, view: v}); err != nil {
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
		Detail: "This address is not for " + cut(oneLine(r.Method), maxLabel) + ".",
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

// badRequest is the error for a request that cannot be understood.
func badRequest(detail, hint string) error {
	return &gateway.Problem{Status: http.StatusBadRequest, Code: gateway.CodeBadRequest, Detail: detail, Hint: hint}
}
