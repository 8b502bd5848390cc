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
	Method  string // empty: GET. GET answers HEAD too
	Pattern string // a path as [http.ServeMux] has it, without method and host
	Access  Access
	Scope   string // that the caller's token needs; empty: any valid token will do
	Tenant  Tenant
	Params  []Param // the query parameters that there are; another one is an error
	// Request and Response are zero values of what the JSON bodies are, or of the items of a list; nil: there is no
	// body, or it has another media type.
	Request, Response any
	List              string // the member of the response that holds the items of a list; empty: it is none

	// What only the description of the API needs, [Route.Doc] in any case: docs/http.md says more.
	Doc     string   // what it does: a sentence, by which it is listed, and what a caller must know besides
	Body    []string // media types of the request's body, besides that of Request; "": the body may be left out
	Many    bool     // the request's body may also be a list of what Request is
	MaxBody int64    // how many bytes the body may have; 0: [MaxJSON], -1: no limit of ours
	Example string   // of the request's body, as JSON
	Media   []string // media types of the response besides that of Response; "": an empty body
	Status  []int    // of responses that are not problems; nil: 200
	// Problems are the codes of those that only this route has; [Route.Codes] knows them all.
	Problems []string
	// Sentences says that problems are a sentence of plain text to front-ends that show the body to their users.
	Sentences bool

	Handle Handler
	Fail   func(w *Reply, r *Request, err error) // answers with an error; nil: as the mux does
}

// Codes returns the codes of all problems that a route may answer with, each once.
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

// Access says what a route asks of its callers.
type Access int

// The sorts of access.
const (
	ByToken  Access = iota // an access token with the route's scope: [gateway.Guard.API]
	ByCookie               // the same, or the session of a browser: [gateway.Guard.Page]
	ByStream               // the same, or a stream token for the run {id}: [gateway.Guard.Stream]
	Open                   // nothing, but no foreign web page may call: [gateway.Guard.Local]. Parameters are not read
	Public                 // nothing: it is the same for everybody. The handler sets all headers, and reads parameters
)

// Tenant says whose rows a route reads and writes.
type Tenant int

// The tenant rules.
const (
	OwnTenant Tenant = iota // those of the caller's tenant; what is another tenant's is a 404
	AnyTenant               // for callers of the tenant default those of all tenants, else their own
	NoTenant                // none
	Published               // those that their tenants have published
)

// Handler answers a request of somebody who may make it. An error becomes a problem ([gateway.ProblemOf]). Once the
// response has begun, an error breaks it off.
type Handler func(w *Reply, r *Request) error

// Request is a request with what is known of it.
type Request struct {
	*http.Request

	ID     string // for the log; in the response it is X-Request-Id
	Path   string // the pattern of the route; "/" where no route has the path
	Who    gateway.Identity
	Params Params

	begun time.Time
}

// Options are the options of [NewMux].
type Options struct {
	Guard  *gateway.Guard    // needed
	Logger *slog.Logger      // nil: nothing is logged
	Header map[string]string // of all responses but those of public routes; nil: those for programs
	// ForPeople says that the routes are pages: links that somebody mended by hand still show them, so that query
	// parameters are the handlers' to read, and no page of another site reads them, whatever the guard allows.
	ForPeople bool
	// NotFound is the problem of a path that no route has; nil: one that says so.
	NotFound error
	// Fail answers with an error where nothing has been written; nil: [gateway.WriteProblem] does.
	Fail func(w *Reply, r *Request, err error)
	// Count is told how each request was answered; nil: nobody is.
	Count func(path, method string, status int)
}

// headers returns the headers of responses to programs: what providers sent is shown to nobody as a page of ibid's
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

// Mux answers requests by routes.
type Mux struct {
	o   Options
	mux *http.ServeMux
}

// NewMux returns a mux. Routes with the same pattern must agree in whether they are public.
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

// ServeHTTP answers a request. A path that no route has is a 404, also one with dots or with two slashes in a row,
// which an [http.ServeMux] would redirect.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath() + "/"
	if path[0] != '/' || strings.Contains(strings.TrimSuffix(path, "/"), "//") || strings.Contains(path, "/./") ||
		strings.Contains(path, "/../") {
		m.serve("/", nil).ServeHTTP(w, r)
		return
	}
	m.mux.ServeHTTP(w, r)
}

// serve answers the requests for one pattern; without methods, those for no pattern at all.
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
		err := m.admit(r, methods, route) //nolint:contextcheck // the request has it
		if err == nil {
			err = route.Handle(w, r)
		}
		if err != nil {
			m.fail(hr.Context(), w, r, err, fail)
		}
	})
}

// admit says who makes a request and what its parameters are, and refuses it if its path does not have the method.
func (m *Mux) admit(r *Request, methods map[string]*Route, rt *Route) (err error) {
	switch {
	case methods == nil:
		// What is not there is nobody's secret, but a foreign web page need not know what answers here.
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
	case Open: // who scrapes or probes may say what they like
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

// statusGone is logged for a caller who left before there was a response.
const statusGone = 499

// ErrGone says that the reader of a response has left, or may read no more: it is broken off, and nobody is told.
var ErrGone = errors.New("the reader is gone")

// fail answers with an error, and logs what the client is not told.
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
		panic(http.ErrAbortHandler) // what was begun must not look whole
	}
	fail(w, r, err)
}

var errPanic = errors.New("panic")

// finish logs how a request was answered. It is deferred: a panic ends the request and not the program.
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

// JSON returns the route with a handler that answers with what f returns, as JSON. The context of f ends after
// [StoreTime]; its errors are taken for the store's ([StoreError]).
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

// List returns the route with a handler that answers with a page of a list, as JSON: {name: […], "next_cursor": …}.
// The store has been asked by read, after everything that was captured before has arrived there; show returns what is
// shown of an item.
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

// ByQuery returns what reads a list that takes the parameters of [Params.Query].
func ByQuery[T any](
	read func(ctx context.Context, tenant string, q *store.Query) (*store.Page[T], error),
) func(context.Context, *Request) (*store.Page[T], error) {
	return func(ctx context.Context, r *Request) (*store.Page[T], error) {
		return read(ctx, r.Who.Tenant, r.Params.Query())
	}
}

// Same shows an item of a list as it is.
func Same[T any](_ *Request, item *T) T { return *item }

// listBody is a page of a list as JSON.
type listBody[B any] struct {
	name  string
	items []B
	next  *string // the cursor of the page that follows; null: there is none
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
