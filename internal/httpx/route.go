package httpx

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

// Route is one method of one path.
type Route struct {
	Method  string // default GET, which serves HEAD too
	Pattern string // a path for [http.ServeMux], without method and host
	Access  Access
	Scope   string // the scope that the caller's token needs; if empty, any valid token suffices
	Tenant  Tenant
	Params  []Param // the query parameters; any other is an error
	// Request and Response are zero values of the types of the JSON bodies, or of a list's items. They are nil if there
	// is no body, or if it has another media type.
	Request, Response any
	List              string // the member of the response with the items of a list; empty if it is not a list

	// The rest is only for the description of the API; [Route.Doc] is always needed. docs/http.md says more.
	Doc     string   // what it does: one sentence for the list of endpoints, then what else a caller must know
	Body    []string // media types of the request's body besides that of Request; "" means that the body is optional
	Many    bool     // the request's body may also be a list of Request
	MaxBody int64    // largest body in bytes; 0 means [MaxJSON], -1 no limit here
	Example string   // a request body, as JSON
	Media   []string // media types of the response besides that of Response; "" means an empty body
	Status  []int    // statuses of successful responses; nil means 200
	// Problems are the codes of problems specific to this route; [Route.Codes] returns all.
	Problems []string
	// Stays means that the response may stay open, or wait for other machines. Any other request has [WorkTime] of CPU.
	Stays bool
	// Sentences sends problems as a sentence of plain text, for front-ends that show the body to their users.
	Sentences bool

	Handle Handler
	Fail   func(w *Reply, r *Request, err error) // sends an error; nil means the mux's default
}

// Codes returns the codes of all problems that a route may return, without duplicates.
func (rt *Route) Codes() []string {
	codes := slices.Clone(rt.Problems)
	if rt.Access != Public {
		codes = append(codes, gateway.CodeForeign, gateway.CodeInternal)
	}
	if rt.Access != Public && rt.Access != Open {
		// query parameters are read, and tokens may have to be looked up
		codes = append(codes, gateway.CodeToken, gateway.CodeBadRequest, gateway.CodeUnavailable)
	}
	if rt.Scope != "" {
		codes = append(codes, gateway.CodeScope)
	}
	if strings.Contains(rt.Pattern, "{id}") {
		codes = append(codes, gateway.CodeNotFound)
	}
	if rt.Request != nil || rt.Body != nil {
		codes = append(codes, gateway.CodeBadRequest, gateway.CodeTooLarge, gateway.CodeMediaType)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// Access is what a route requires of its callers.
type Access int

// The kinds of access.
const (
	ByToken  Access = iota // an access token with the route's scope: [gateway.Guard.API]
	ByCookie               // the same, or the session of a browser: [gateway.Guard.Page]
	ByStream               // the same, or a stream token for the run {id}: [gateway.Guard.Stream]
	Open                   // nothing, but foreign web pages may not call: [gateway.Guard.Local]. Parameters are ignored
	Public                 // nothing: it is the same for everyone. The handler sets all headers and parses parameters
)

// Tenant determines whose rows a route reads and writes.
type Tenant int

// The tenant rules.
const (
	OwnTenant Tenant = iota // those of the caller's tenant; others are a 404
	AnyTenant               // all tenants' for callers of the tenant default, else their own
	NoTenant                // none
	Published               // those that tenants have published
)

// Handler serves an admitted request. An error becomes a problem ([gateway.ProblemOf]). Once the response has begun, an
// error aborts it.
type Handler func(w *Reply, r *Request) error

// Request is a request with its route's data.
type Request struct {
	*http.Request

	ID     string // for the log; sent as X-Request-Id
	Path   string // the route's pattern; "/" if no route matches
	Who    gateway.Identity
	Params Params

	begun time.Time
}

// Options are the options of [NewMux].
type Options struct {
	Guard  *gateway.Guard    // required
	Logger *slog.Logger      // nil disables logging
	Header map[string]string // headers of all responses except on public routes; nil means those for programs
	// ForPeople means that the routes are pages: query parameters are left to the handlers, so that links edited by
	// hand still work, and pages of other sites cannot read them, whatever the guard allows.
	ForPeople bool
	// NotFound is the problem for a path without a route; nil means a default.
	NotFound error
	// Fail sends an error if nothing has been written; nil means [gateway.WriteProblem].
	Fail func(w *Reply, r *Request, err error)
	// Count is called with the outcome of each request; it may be nil.
	Count func(path, method string, status int)
}

// headers returns the headers of responses to programs: providers' data must not be displayed as a page of ibid's
// origin, and nothing is cached unless a handler says otherwise.
func headers() map[string]string {
	return map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; sandbox",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Referrer-Policy":              "no-referrer",
		"Cache-Control":                "no-store",
	}
}

// Mux serves requests by routes.
type Mux struct {
	o   Options
	mux *http.ServeMux
}

// NewMux returns a mux. Routes with the same pattern must all be public, or none of them.
func NewMux(routes []Route, o *Options) *Mux {
	m := &Mux{o: *o, mux: http.NewServeMux()}
	if m.o.Logger == nil {
		m.o.Logger = slog.New(slog.DiscardHandler)
	}
	if m.o.Header == nil {
		m.o.Header = headers()
	}
	if m.o.NotFound == nil {
		m.o.NotFound = gateway.NewProblem(gateway.CodeNotFound, "there is no such path", "")
	}
	if m.o.Fail == nil {
		m.o.Fail = func(w *Reply, r *Request, err error) { gateway.WriteProblem(w, r.Request, err) }
	}
	if m.o.Count == nil {
		m.o.Count = func(string, string, int) {}
	}
	byPattern := map[string]map[string]*Route{"/": nil}
	for i := range routes {
		rt := routes[i]
		if rt.Method == "" {
			rt.Method = http.MethodGet
		}
		if byPattern[rt.Pattern] == nil {
			byPattern[rt.Pattern] = map[string]*Route{}
		}
		byPattern[rt.Pattern][rt.Method] = &rt
	}
	for pattern, methods := range byPattern {
		m.mux.Handle(pattern, m.serve(pattern, methods))
	}
	return m
}

// ServeHTTP serves a request. A path without a route is a 404, even with dot segments or double slashes, which an
// [http.ServeMux] would redirect.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath() + "/"
	if path[0] != '/' || strings.Contains(strings.TrimSuffix(path, "/"), "//") || strings.Contains(path, "/./") ||
		strings.Contains(path, "/../") {
		m.serve("/", nil).ServeHTTP(w, r)
		return
	}
	m.mux.ServeHTTP(w, r)
}

// serve returns the handler for one pattern; without methods, for paths that match none.
func (m *Mux) serve(pattern string, methods map[string]*Route) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, hr *http.Request) {
		method := hr.Method
		w := &Reply{ResponseWriter: rw, head: method == http.MethodHead}
		if w.head {
			method = http.MethodGet
		}
		r := &Request{Request: hr, Path: pattern, begun: time.Now()}
		r.ID = "req_" + strings.ToLower(rand.Text()[:16])
		route := methods[method]
		fail := m.o.Fail
		for _, rt := range methods {
			if rt.Fail != nil {
				fail = rt.Fail
			}
		}
		defer m.finish(hr.Context(), w, r, fail)
		if get := methods[http.MethodGet]; get == nil || get.Access != Public {
			w.Header().Set("X-Request-Id", r.ID)
			for name, value := range m.o.Header {
				w.Header().Set(name, value)
			}
			if !m.o.ForPeople && m.o.Guard.CORS(w, hr) {
				return
			}
		}
		err := m.admit(r, methods, route) //nolint:contextcheck // the request has the context
		if err == nil {
			handle := route.Handle
			if !route.Stays {
				handle = bounded(handle, WorkTime) //nolint:contextcheck // the request has the context
			}
			err = handle(w, r)
		}
		if err != nil {
			m.fail(hr.Context(), w, r, err, fail)
		}
	})
}

// admit identifies the caller and parses the parameters, or returns a problem, also if the path lacks the method.
func (m *Mux) admit(r *Request, methods map[string]*Route, rt *Route) (err error) {
	switch {
	case methods == nil:
		// Missing paths are no secret, but a foreign web page need not learn what runs here.
		if err := m.o.Guard.Local(r.Request); err != nil {
			return err
		}
		return m.o.NotFound
	case rt == nil:
		allowed := slices.Sorted(maps.Keys(methods))
		if slices.Contains(allowed, http.MethodGet) {
			allowed = append(allowed, http.MethodHead)
		}
		list := strings.Join(allowed, ", ")
		p := gateway.NewProblem(gateway.CodeMethod, "this path does not have the method", "it has "+list)
		p.Header = http.Header{"Allow": {list}}
		return p
	}
	switch rt.Access {
	case Public:
		return nil
	case Open: // scrapers and probes may send any parameters
		return m.o.Guard.Local(r.Request)
	case ByStream:
		r.Who, err = m.o.Guard.Stream(r.Request, r.PathValue("id"))
	case ByCookie:
		r.Who, err = m.o.Guard.Page(r.Request, rt.Scope)
	case ByToken:
		r.Who, err = m.o.Guard.API(r.Request, rt.Scope)
	}
	if err == nil {
		ctx := store.WithActor(r.Context(), cmp.Or(r.Who.Token, store.ActorNobody))
		r.Request = r.WithContext(store.WithReader(ctx, r.Who.Tenant))
	}
	if err == nil && !m.o.ForPeople {
		r.Params, err = ReadParams(r.URL.RawQuery, rt.Params)
	}
	return err
}

// statusGone is logged for a client that left before there was a response.
const statusGone = 499

// ErrGone reports that the reader of a response has left or may read no more: the response is aborted without logging.
var ErrGone = errors.New("the reader is gone")

// fail sends an error, and logs what the client is not shown.
func (m *Mux) fail(ctx context.Context, w *Reply, r *Request, err error, fail func(*Reply, *Request, error)) {
	if ctx.Err() != nil && w.status == 0 {
		w.status = statusGone
		return
	}
	unavailable := gateway.ProblemOf(err).Status == http.StatusServiceUnavailable
	if !errors.Is(err, ErrGone) && (gateway.IsInternal(err) || unavailable) {
		m.o.Logger.LogAttrs(ctx, slog.LevelError, "a request was not answered",
			slog.String("request", r.ID), slog.String("method", r.Method), slog.Any("error", err))
	}
	if w.status != 0 {
		panic(http.ErrAbortHandler) // a partial response must not look complete
	}
	fail(w, r, err)
}

var errPanic = errors.New("panic")

// finish logs the outcome of a request. It is deferred: a panic ends the request and not the program.
func (m *Mux) finish(ctx context.Context, w *Reply, r *Request, fail func(*Reply, *Request, error)) {
	v := recover()
	if err, _ := v.(error); v != nil && !errors.Is(err, http.ErrAbortHandler) {
		m.o.Logger.LogAttrs(ctx, slog.LevelError, "a request made the program panic",
			slog.String("request", r.ID), slog.String("panic", fmt.Sprint(v)),
			slog.String("stack", string(debug.Stack())))
		if w.status == 0 {
			fail(w, r, errPanic)
			v = nil
		}
	}
	m.o.Count(r.Path, r.Method, w.status)
	m.o.Logger.LogAttrs(ctx, slog.LevelDebug, "request",
		slog.String("request", r.ID), slog.String("method", r.Method), slog.String("route", r.Path),
		slog.String("tenant", r.Who.Tenant), slog.String("token", r.Who.Token), slog.Int("status", w.status),
		slog.Duration("duration", time.Since(r.begun)))
	if v != nil {
		panic(http.ErrAbortHandler)
	}
}

// JSON returns the route with a handler that sends the result of f as JSON. The context of f ends after [StoreTime];
// its errors are treated as the store's ([StoreError]).
func JSON[T any](rt Route, f func(ctx context.Context, r *Request) (T, error)) Route {
	rt.Response = *new(T)
	rt.Handle = func(w *Reply, r *Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), StoreTime)
		defer cancel()
		v, err := f(ctx, r)
		if err != nil {
			return StoreError(r.Method+" "+r.Path, err)
		}
		return w.JSON(http.StatusOK, v)
	}
	return rt
}

// List returns the route with a handler that sends a page of a list as JSON: {name: […], "next_cursor": …}. read
// queries the store, after everything captured before has arrived there; show converts an item for display.
func List[T, B any](
	rt Route, name string, from *Reader, read func(ctx context.Context, r *Request) (*store.Page[T], error),
	show func(r *Request, item *T) B,
) Route {
	route := JSON(rt, func(ctx context.Context, r *Request) (listBody[B], error) {
		from.CatchUp(ctx)
		page, err := read(ctx, r)
		if err != nil {
			return listBody[B]{}, err
		}
		body := listBody[B]{name, make([]B, len(page.Items)), OrNull(page.Next)}
		for i := range page.Items {
			body.items[i] = show(r, &page.Items[i])
		}
		return body, nil
	})
	route.List, route.Response = name, *new(B)
	return route
}

// ByQuery adapts a method of the store to a list with the parameters of [Params.Query].
func ByQuery[T any](
	read func(ctx context.Context, tenant string, q *store.Query) (*store.Page[T], error),
) func(context.Context, *Request) (*store.Page[T], error) {
	return func(ctx context.Context, r *Request) (*store.Page[T], error) {
		return read(ctx, r.Who.Tenant, r.Params.Query())
	}
}

// Same returns an item of a list unchanged.
func Same[T any](_ *Request, item *T) T { return *item }

// listBody is a page of a list as JSON.
type listBody[B any] struct {
	name  string
	items []B
	next  *string // cursor of the next page; null if there is none
}

// MarshalJSON writes the items under the list's name.
func (b listBody[B]) MarshalJSON() ([]byte, error) {
	items, err := Encode(b.items)
	if err != nil {
		return nil, err
	}
	next, err := Encode(b.next)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"`+b.name+`":`), items, []byte(`,"next_cursor":`), next, []byte("}")), nil
}
