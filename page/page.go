package page

import (
	"cmp"
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
	"time"
	"unicode"

	"golang.org/x/sync/semaphore"

	"github.com/ibidhq/ibid/api"
	"github.com/ibidhq/ibid/bus"
	"github.com/ibidhq/ibid/chat"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
)

const (
	// askStore limits how long one page may query the store.
	askStore = httpx.StoreTime
	// maxName is the number of bytes of a name or of search words that are used.
	maxName = 512
	// maxAsked is the maximum size of an address or key in a query, in bytes.
	maxAsked = 4 << 10
)

// Options configure a Page.
type Options struct {
	Store   *store.Store     // required
	Guard   *gateway.Guard   // required
	API     *api.API         // required: it makes the summaries of runs, within its limits
	Gateway *gateway.Gateway // answers it captured but has not stored yet are shown too; nil if there is none
	Bus     *bus.Bus         // nil disables showing answers while they arrive
	Chat    *chat.Chat       // nil disables asking questions
	// Verifies allows readers to verify answers. The API does it, as for POST /v1/verify.
	Verifies bool
	// Recheck has the sources that an answer cites read now, and returns how many will be: none if all were read
	// seconds ago. If it is nil, sources are not read again.
	Recheck func(ctx context.Context, call *store.Call) (int, error)
	// Strategies can be compared with each other.
	Strategies []experiment.Strategy
	Logger     *slog.Logger // nil disables logging
	Version    string       // of the program
	Upstreams  []Upstream   // providers of the gateway, listed for readers who have not made a call yet
	Demo       *Demo        // nil if this is not a demonstration
	// PublicURL is the address at which others reach the page, such as https://ibid.example. If it is https, the page's
	// cookies are only sent over TLS, even if a proxy ends it. If empty, the host of each request is used.
	PublicURL string
}

// Page serves the paths /, /ibid.js, /favicon.ico and those below /ui/. Its methods may be called concurrently.
type Page struct {
	o        Options
	log      *slog.Logger
	views    map[string]*template.Template // by the file's name in templates/
	assets   map[string]asset              // by the path below /ui/assets/, and ibid.js
	mux      *httpx.Mux
	closing  context.Context // canceled by Close
	close    context.CancelFunc
	captured httpx.Reader
	bounds   *bounds
	pasted   pastedAnswers
	arriving arriving // answers asked for on a page that have not ended

	weighings  weighings
	verifyings verifyings
}

// New returns a page.
func New(o *Options) (*Page, error) {
	if o == nil || o.Store == nil || o.Guard == nil || o.API == nil {
		return nil, errors.New("make the page: it needs a store, a guard and the API")
	}
	p := &Page{o: *o, log: o.Logger, bounds: newBounds()}
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
	p.mux = httpx.NewMux(p.routes(), &httpx.Options{
		Guard: o.Guard, Logger: p.log, Header: headers, ForPeople: true, NotFound: errNotFound, Fail: p.fail,
	})
	return p, nil
}

// Close ends the open streams, which would otherwise delay the shutdown of a server: pass it to
// http.Server.RegisterOnShutdown.
func (p *Page) Close() {
	p.close()
	p.verifyings.running.Wait()
}

// ServeHTTP serves the paths of the page. Any other path is answered with an error page.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// Routes returns the routes of a Page as data: the handlers cannot be called. The public ones are for other programs
// and pages, the rest for people.
func Routes() []httpx.Route { return (&Page{}).routes() }

// routes returns the pages, and what they load and send.
func (p *Page) routes() []httpx.Route {
	const read, write = store.ScopeRead, store.ScopeWrite
	routes := []httpx.Route{
		{Pattern: "/ui/login", Handle: p.showLogin},
		{Method: "POST", Pattern: "/ui/login", Handle: p.login},
		{Method: "POST", Pattern: "/ui/logout", Handle: p.logout},
		{Pattern: "/ui/assets/{name...}", Handle: p.asset},
		{Pattern: "/favicon.ico", Handle: p.icon},
		{
			Pattern: "/ibid.js", Access: httpx.Public, Tenant: httpx.NoTenant, Handle: p.element,
			Doc:   "Returns the custom element that shows an answer with its citations in any web page.",
			Media: []string{"text/javascript; charset=utf-8"}, Status: []int{200, 304},
		},

		{Pattern: "/{$}", Scope: read, Handle: p.shows("", p.front)},
		{Pattern: "/ui/overview", Scope: read, Handle: p.shows("overview", p.overview)},
		{Pattern: "/ui/search", Scope: read, Handle: p.shows("search", p.search)},

		{Pattern: "/ui/answers", Scope: read, Handle: p.shows("answers", p.answers)},
		{
			Pattern: "/ui/conversations/{id}", Scope: read,
			Handle: p.shows("answers", p.conversation),
		},
		{Pattern: "/ui/conversations/{id}/export", Scope: read, Handle: p.exportConversation},
		{Pattern: "/ui/ask", Scope: read, Handle: p.shows("ask", p.showAsk)},
		{Method: "POST", Pattern: "/ui/ask", Scope: store.ScopeProxy, Handle: p.ask},
		{Pattern: "/ui/look", Scope: read, Handle: p.shows("look", p.showLook)},
		{Method: "POST", Pattern: "/ui/look", Scope: read, Handle: p.look},

		{Pattern: "/ui/answers/{id}", Scope: read, Handle: p.shows("answers", p.answer)},
		{Method: "POST", Pattern: "/ui/answers/{id}/stop", Scope: store.ScopeProxy, Handle: p.stop},
		{Method: "POST", Pattern: "/ui/answers/{id}/keep", Scope: write, Handle: p.keep},
		{Pattern: "/ui/answers/{id}/live", Scope: read, Handle: p.liveAnswer, Stays: true},
		{Pattern: "/ui/answers/{id}/export", Scope: read, Handle: p.exportAnswer},
		{Pattern: "/ui/answers/{id}/verification", Scope: read, Handle: p.verification},
		{Pattern: "/ui/answers/{id}/display/{n}", Scope: read, Handle: p.display},
		{Pattern: "/ui/answers/{id}/sources/{n}", Scope: read, Handle: p.showPanel},
		{
			Pattern: "/ui/answers/{id}/sources/{n}/copies/{hash}", Scope: read,
			Handle: p.shows("answers", p.showCopy),
		},
		{Method: "POST", Pattern: "/ui/answers/{id}/check", Scope: store.ScopeVerify, Handle: p.check},
		{Pattern: "/ui/copies/{hash}", Scope: read, Handle: p.saveCopy},
		{Pattern: "/ui/feedback", Scope: read, Handle: p.showFeedback, Stays: true},
		{Method: "POST", Pattern: "/ui/feedback", Scope: write, Handle: p.giveFeedback},

		{Pattern: "/ui/runs", Scope: read, Handle: p.shows("runs", p.runs)},
		{Pattern: "/ui/runs/{id}", Scope: read, Handle: p.shows("runs", p.run)},
		{Pattern: "/ui/runs/{id}/export", Scope: read, Handle: p.exportRun},
		{Pattern: "/ui/runs/{id}/live", Scope: read, Handle: p.liveRun, Stays: true},

		{Pattern: "/ui/sources", Scope: read, Handle: p.shows("sources", p.sources)},
		{Pattern: "/ui/alerts", Scope: read, Handle: p.shows("alerts", p.alerts)},
		{Method: "POST", Pattern: "/ui/alerts", Scope: write, Handle: p.seeAlerts},
		{Pattern: "/ui/incidents", Scope: read, Handle: p.shows("incidents", p.incidents)},
		{Pattern: "/ui/incidents/{id}", Scope: read, Handle: p.shows("incidents", p.incident)},
		{Pattern: "/ui/verify", Scope: read, Handle: p.shows("verify", p.showVerify)},
		{Method: "POST", Pattern: "/ui/verify", Scope: store.ScopeVerify, Handle: p.verify},
		{Pattern: "/ui/experiments", Scope: read, Handle: p.shows("experiments", p.experiments)},
	}
	for i := range routes {
		if rt := &routes[i]; rt.Scope != "" {
			rt.Access = httpx.ByCookie
		} else if rt.Access == httpx.ByToken {
			rt.Access, rt.Tenant = httpx.Open, httpx.NoTenant
		}
	}
	return routes
}

// shows returns a handler that shows the view that load returns, under an entry of the navigation unless the view names
// another. The context of load ends after [askStore]; work that takes longer uses the request's own.
func (p *Page) shows(section string, load func(ctx context.Context, r *httpx.Request) (*view, error)) httpx.Handler {
	return func(w *httpx.Reply, r *httpx.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), askStore)
		defer cancel()
		v, err := load(ctx, r)
		if err != nil {
			return err
		}
		v.Section = cmp.Or(v.Section, section)
		return p.show(w, r, v)
	}
}

// fail shows an error. A caller without a token is redirected to the login page.
func (p *Page) fail(w *httpx.Reply, r *httpx.Request, err error) {
	problem := gateway.ProblemOf(err)
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead
	wantsEvents := strings.HasPrefix(r.Header.Get("Accept"), "text/event-stream")
	if problem.Status == http.StatusUnauthorized && isRead && !wantsEvents {
		http.Redirect(w, r.Request, loginURL(r.URL), http.StatusSeeOther)
		return
	}
	v := &view{
		Name: "error", Status: problem.Status, Title: http.StatusText(problem.Status),
		Body: problemBody{Detail: problem.Detail, Hint: problem.Hint},
	}
	switch problem.Status {
	case http.StatusMethodNotAllowed:
		v.Body = problemBody{Detail: "This address is not for " + label(r.Method) + "."}
	case http.StatusUnauthorized:
		v.Title, v.Body = "Not signed in", problemBody{
			Detail: "This needs an access token: you are not signed in, or your token is no longer valid.",
			Hint: "Nothing was done. Sign in and send it again: your browser may still have what you entered, " +
				"a page back.",
			Login: loginURL(cameFrom(r)),
		}
	}
	for name, values := range problem.Header {
		w.Header()[name] = slices.Clone(values)
	}
	if err := p.show(w, r, v); err != nil {
		http.Error(w, problem.Detail, problem.Status)
	}
}

// problemBody is the content of an error page.
type problemBody struct {
	Detail, Hint string
	Login        string // where to sign in; empty if that would not help
}

// cameFrom returns the page of ours that a form was sent from, or "/" if that is not known.
func cameFrom(r *httpx.Request) *url.URL {
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return &url.URL{Path: localPath(from.Path), RawQuery: from.RawQuery}
	}
	return &url.URL{Path: "/"}
}

// errNotFound is the problem of a page that does not exist, or whose subject does not.
var errNotFound = &gateway.Problem{
	Status: http.StatusNotFound,
	Code:   gateway.CodeNotFound,
	Detail: "There is no such page.",
	Hint:   "It may have been deleted, or be somebody else's.",
}

// loginBody is the content of the login page.
type loginBody struct {
	Next  string // where to go after signing in
	Wrong string // what was wrong with the last token; empty if none was sent
}

// showLogin asks for a token.
func (p *Page) showLogin(w *httpx.Reply, r *httpx.Request) error {
	next := localPath(r.URL.Query().Get("next"))
	return p.show(w, r, &view{Name: "login", Title: "Sign in", Body: loginBody{Next: next}})
}

// login accepts a token and keeps it in a cookie of this site alone.
func (p *Page) login(w *httpx.Reply, r *httpx.Request) error {
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
		return p.show(w, r, &view{Name: "login", Status: statusRejected, Title: "Sign in", Body: body})
	}
	http.SetCookie(w, gateway.SessionOf(secret, p.secure(r)))
	http.Redirect(w, r.Request, next, http.StatusSeeOther)
	return nil
}

// logout forgets the token.
func (p *Page) logout(w *httpx.Reply, r *httpx.Request) error {
	if err := gateway.OwnPage(r.Request); err != nil {
		return err
	}
	http.SetCookie(w, gateway.SessionOf("", p.secure(r)))
	http.Redirect(w, r.Request, "/ui/login", http.StatusSeeOther)
	return nil
}

// loginURL returns the address of the login page that leads on to u.
func loginURL(u *url.URL) string {
	next := u.RequestURI()
	if next == "/" {
		return "/ui/login"
	}
	return "/ui/login?next=" + url.QueryEscape(next)
}

// localPath returns s if it is a path of this site, else "/": redirecting to any address would be an open redirect.
func localPath(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") ||
		strings.ContainsAny(s, "\\\r\n\t") {
		return "/"
	}
	return s
}

// baseURL returns the address of this server: the public one, else the one of the request.
func (p *Page) baseURL(r *httpx.Request) string {
	switch {
	case p.o.PublicURL != "":
		return strings.TrimRight(p.o.PublicURL, "/")
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// secure reports whether the reader's browser uses https, also where a proxy ends TLS.
func (p *Page) secure(r *httpx.Request) bool {
	return r.TLS != nil || strings.HasPrefix(p.o.PublicURL, "https:")
}

// mayWrite reports whether the caller may give feedback.
func mayWrite(r *httpx.Request) bool { return r.Who.May(store.ScopeWrite) || r.Who.Token == "" }

// asked returns a query parameter cleaned for a search: databases accept neither NUL nor invalid UTF-8.
func asked(r *httpx.Request, name string) string { return clean(r.URL.Query().Get(name)) }

func clean(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text.Head(s, maxName), "")))
}

// noSuchPage turns the store's error about a cursor into a 400; other errors are returned as they are.
func noSuchPage(err error) error {
	if errors.Is(err, store.ErrCursor) {
		return httpx.BadRequest("There is no such page of this list.", "Begin again with the first.")
	}
	return err
}

// askedLong returns an address, a key or a list of these from a query. One that is too long is an error: cutting it
// would change the answer.
func askedLong(s string) (string, error) {
	if len(s) > maxAsked {
		return "", httpx.BadRequest(
			"What is asked for is too long.",
			"An address may have "+strconv.Itoa(maxAsked)+" bytes.",
		)
	}
	return s, nil
}

// number returns a query parameter that is a number from 1; 0 if it is missing or no such number.
func number(r *httpx.Request, name string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return 0
	}
	return n
}

// pathNumber returns the number from 1 to of that a path names; 0 if it names none. Each has only one spelling.
func pathNumber(r *httpx.Request, of int) int {
	named := r.PathValue("n")
	if n, err := strconv.Atoi(named); err == nil && n >= 1 && n <= of && strconv.Itoa(n) == named {
		return n
	}
	return 0
}

const (
	// maxVerifying is how many verifications a tenant may have the page run at the same time. The API has its own
	// limit, which applies as well.
	maxVerifying = 2
	// maxUploads is how many forms of a tenant with uploads to verify are read at the same time: each may be as large
	// as maxVerified.
	maxUploads = 8
	// maxComparing is how many comparisons of strategies run for a tenant at the same time, maxCompare on how many of
	// the latest stored runs, and compareFor for how long: runs that were not reached by then are left out, and the
	// page says so. `ibid experiment` takes more.
	maxComparing = 1
	maxCompare   = 50
	compareFor   = 20 * time.Second
	// maxReading is how many kept copies are read at the same time: each may be as large as store.MaxCopy.
	maxReading = 2
	// maxMaking is how many conversations are exported at the same time, for all tenants: each may be as large as
	// maxExport, and is in memory several times.
	maxMaking = 2
	// retryAfter is when a caller who hit one of these limits may try again.
	retryAfter = 5 * time.Second
)

// bounds limit what readers can do at the same time: quotas apply to each tenant, semaphores to all together.
type bounds struct {
	verifying httpx.Quota
	uploads   httpx.Quota
	comparing httpx.Quota
	saving    httpx.Quota         // of kept copies
	exports   httpx.Quota         // of conversations
	watching  httpx.Quota         // streams of answers and runs
	reading   *semaphore.Weighted // of kept copies
	exporting *semaphore.Weighted // of conversations
	texts     *snapshot.Texts     // parsed from kept copies
	digests   digests             // of overviews
}

func newBounds() *bounds {
	return &bounds{
		verifying: httpx.Quota{Most: maxVerifying},
		uploads:   httpx.Quota{Most: maxUploads},
		comparing: httpx.Quota{Most: maxComparing},
		saving:    httpx.Quota{Most: maxSaving},
		exports:   httpx.Quota{Most: maxExporting},
		watching:  httpx.Quota{Most: maxLive},
		reading:   semaphore.NewWeighted(maxReading),
		exporting: semaphore.NewWeighted(maxMaking),
		texts:     &snapshot.Texts{},
	}
}

// busy is the error for a request beyond one of these limits.
func busy(detail string) error { return gateway.TooMany(retryAfter, detail, "Try again in a moment.") }
