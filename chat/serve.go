package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

const (
	// MaxRequest is how many bytes the body of a question may have: as many as a call to a provider.
	MaxRequest = 32 << 20
	// maxReading is how many bytes of questions are held at a time: until their answers begin, and longer where they
	// are needed to read those.
	maxReading = 256 << 20
	// readFor is how long a question may take to arrive.
	readFor = 2 * time.Minute
	// writeFor is how long a reader may take to accept what it is told.
	writeFor = 30 * time.Second
	// pingEvery is how often something is sent at least.
	pingEvery = 15 * time.Second
	// askStore bounds how long the numbers of a conversation may take.
	askStore = 2 * time.Second
	// catchUp bounds how long they wait for the answer before to be stored.
	catchUp = 1500 * time.Millisecond
	// headAfter is how long whoever resumes a talk that has not begun waits to hear anything.
	headAfter = time.Second
	// stillEvery is how often it is asked whether a reader's token is still valid, at most.
	stillEvery = 5 * time.Second
)

// endpoint is one method of one path.
type endpoint struct {
	scope  string
	handle func(w *reply, r *http.Request, who gateway.Identity) error
}

// reply remembers whether an answer has begun.
type reply struct {
	http.ResponseWriter

	begun bool
}

func (w *reply) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *reply) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *reply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// serve answers the requests for one path; without methods, those for no path at all.
func (c *Chat) serve(methods map[string]endpoint) http.Handler {
	return http.HandlerFunc(func(hw http.ResponseWriter, r *http.Request) {
		w := &reply{ResponseWriter: hw}
		id := "req_" + strings.ToLower(rand.Text()[:16])
		h := w.Header()
		h.Set("X-Request-Id", id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if c.options.Guard.CORS(w, r) {
			return
		}
		err := c.answer(r.Context(), w, r, methods)
		if err == nil {
			return
		}
		if gateway.IsInternal(err) {
			c.log.LogAttrs(
				r.Context(), slog.LevelError, "a question was not answered", slog.String("request", id),
				slog.Any("error", err),
			)
		}
		if w.begun {
			panic(http.ErrAbortHandler) // what was begun must not look whole
		}
		gateway.WriteProblem(w, r, err)
	})
}

func (c *Chat) answer(ctx context.Context, w *reply, r *http.Request, methods map[string]endpoint) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.log.LogAttrs(ctx, slog.LevelError, "a request made the program panic",
				slog.String("panic", fmt.Sprint(v)), slog.String("stack", string(debug.Stack())))
			err = errors.New("answer a question: panic")
		}
	}()
	if methods == nil {
		return store.ErrNotFound
	}
	method := r.Method
	if _, ok := methods[method]; method == http.MethodHead && !ok {
		method = http.MethodGet
	}
	e, ok := methods[method]
	if !ok {
		list := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		return &gateway.Problem{
			Status: http.StatusMethodNotAllowed, Code: gateway.CodeMethod, Detail: "this path does not have the method",
			Hint: "it has " + list, Header: http.Header{"Allow": {list}},
		}
	}
	who, err := c.options.Guard.API(r, e.scope)
	if err != nil {
		return err
	}
	return e.handle(w, r, who)
}

// ask answers POST /v1/chat.
func (c *Chat) ask(w *reply, r *http.Request, who gateway.Identity) error {
	f, given, err := readForm(r)
	if err != nil {
		return err
	}
	q, isUI, release, err := c.read(w, r)
	if err != nil {
		return err
	}
	if isUI && !given {
		f.name = formUI
	}
	if err := f.settle(); err != nil {
		release()
		return err
	}
	t, err := c.put(r.Context(), who, q, f, release)
	if err != nil {
		return err
	}
	defer t.patience.follow(-1)
	return c.tell(w, r, t, f, who)
}

// read reads the question. Release is to be called when it has been put.
//
//nolint:revive // four results: what was read, how, and until when it counts
func (c *Chat) read(w http.ResponseWriter, r *http.Request) (q *Question, isUI bool, release func(), err error) {
	size := r.ContentLength
	if size < 0 || size > MaxRequest {
		size = MaxRequest
	}
	if !c.reading.TryAcquire(size) {
		return nil, false, nil, gateway.Unavailable("too many large questions are being read")
	}
	defer func() {
		if err != nil {
			c.reading.Release(size)
		}
	}()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readFor)) // a server that has none has its own ways
	data, failed := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err = failed; err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, false, nil, err
		}
		return nil, false, nil, badRequest("the request's body broke off, or did not arrive in time", "")
	}
	_ = control.SetReadDeadline(time.Time{})
	q, isUI, err = readQuestion(data, r.Header)
	if is := int64(len(data)); err == nil && is < size { // it did not say its length
		c.reading.Release(size - is)
		size = is
	}
	return q, isUI, func() { c.reading.Release(size) }, err
}

// readForm reads the query and says which form is wanted, and whether that was said.
func readForm(r *http.Request) (form, bool, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return form{}, false, badRequest(
			"the query string is not properly encoded", "curl --get --data-urlencode encodes",
		)
	}
	for name, all := range values {
		if name != "stream" && name != "unit" {
			return form{}, false, badRequest("there is no such query parameter here", "there is stream, unit")
		}
		if len(all) > 1 {
			return form{}, false, badRequest(name+": it is given more than once", "give it once: "+name+"=…")
		}
	}
	f := form{name: values.Get("stream"), unit: ibid.Unit(values.Get("unit"))}
	if f.name != "" && !slices.Contains(formNames(), f.name) {
		return form{}, false, badRequest(
			"stream: there is no such form",
			"it is one of "+strings.Join(formNames(), ", "),
		)
	}
	if f.unit != "" && !slices.Contains(ibid.Units(), f.unit) {
		return form{}, false, badRequest("unit: there is no such unit", "it is one of utf-8, code-point, utf-16")
	}
	if f.name == "" && wantsJSON(r.Header) {
		f.name = formNo
	}
	return f, f.name != "", nil
}

// settle fills in what was not said.
func (f *form) settle() error {
	if f.name == "" {
		f.name = formEvents
	}
	if f.name == formUI && f.unit != "" && f.unit != ibid.UTF16 {
		return badRequest("unit: with stream=ui it is always utf-16", "leave it out")
	}
	if f.unit != "" {
		return nil
	}
	switch f.name {
	case formUI:
		f.unit = ibid.UTF16
	case formOpenAI:
		f.unit = ibid.CodePoint // what OpenAI's own annotations count
	default:
		f.unit = ibid.UTF8
	}
	return nil
}

// wantsJSON reports whether a request asks for JSON and for nothing else.
func wantsJSON(h http.Header) bool {
	accept, _, _ := strings.Cut(h.Get("Accept"), ";")
	return strings.TrimSpace(accept) == "application/json"
}

// resume answers GET /v1/chat/{id}/stream: the whole answer so far, and what is still to come.
func (c *Chat) resume(w *reply, r *http.Request, who gateway.Identity) error {
	f, given, err := readForm(r)
	if err != nil {
		return err
	}
	t := c.talks.find(who.Tenant, r.PathValue("id"))
	if t == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	unit := f.unit
	if !given {
		f = t.form
		if unit != "" {
			f.unit = unit
		}
	}
	if err := f.settle(); err != nil {
		return err
	}
	t.patience.follow(1)
	defer t.patience.follow(-1)
	if err := t.await(w, r, f); err != nil {
		return err
	}
	switch {
	case t.refused == nil:
		return c.tell(w, r, t, f, who)
	case !w.begun: // whoever asked was told
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	p := gateway.ProblemOf(t.refused)
	to := f.teller(t, nil, &sender{w: w, rc: http.NewResponseController(w)})
	if err := errors.Join(
		to.start(), to.fail(&ibid.ProviderError{Code: p.Code, Message: p.Detail}), to.close(),
	); err != nil {
		return errors.Join(errGone, err)
	}
	return nil
}

// await waits until a talk begins, or will not. Where that lasts, and the form can, it begins the answer and keeps it
// alive.
func (t *Talk) await(w *reply, r *http.Request, f form) error {
	out := &sender{w: w, rc: http.NewResponseController(w)}
	defer out.end()
	timer := time.NewTimer(headAfter)
	defer timer.Stop()
	for {
		select {
		case <-t.begun:
			return nil
		case <-r.Context().Done():
			return r.Context().Err()
		case <-timer.C:
		}
		if f.name == formNo || r.Method == http.MethodHead {
			continue
		}
		if !w.begun {
			f.setHeaders(w.Header())
			w.WriteHeader(http.StatusOK)
		}
		if _, err := io.WriteString(out, ": waiting\n\n"); err != nil {
			return errors.Join(errGone, err)
		}
		timer.Reset(pingEvery)
	}
}

// stop answers DELETE /v1/chat/{id}/stream.
func (c *Chat) stop(w *reply, r *http.Request, who gateway.Identity) error {
	if r.URL.RawQuery != "" {
		return badRequest("there is no such query parameter here", "there is none: it ends what is under way")
	}
	all := c.talks.all(who.Tenant, r.PathValue("id"))
	for _, t := range all {
		t.stop()
	}
	for _, t := range all {
		select {
		case <-t.done:
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// tell tells a talk to whoever asked, from its beginning.
func (c *Chat) tell(w *reply, r *http.Request, t *Talk, f form, who gateway.Identity) error {
	h := w.Header()
	h[gateway.AnswerHeader], h[gateway.RunHeader] = []string{t.AnswerID}, []string{t.Run}
	ctx := r.Context()
	numbers := func() *ibid.Numbering { return c.numbers(ctx, t) }
	t.patience.follow(1)
	defer t.patience.follow(-1)
	if f.name == formNo {
		return c.tellWhole(w, r, t, f, who)
	}
	if !w.begun {
		f.setHeaders(h)
		w.WriteHeader(http.StatusOK)
	}
	if r.Method == http.MethodHead {
		return nil
	}
	out := &sender{w: w, rc: http.NewResponseController(w)}
	defer out.end()
	to := f.teller(t, numbers, out)
	err := to.start()
	from := t.follow()
	var checked time.Time // when the token was last valid: the answer may have begun long after it was asked for
	for ended := false; err == nil && !ended; {
		var n *news
		if n, err = from.next(ctx); err == nil && time.Since(checked) >= c.stillEvery {
			checked, err = time.Now(), c.still(ctx, who)
		}
		if err == nil {
			ended, err = pass(to, n)
		}
	}
	if err != nil { // the reader is gone; the talk goes on
		return errors.Join(errGone, err)
	}
	return nil
}

// errGone says that a reader left, or is to leave, before the end.
var errGone = &gateway.Problem{
	Status: http.StatusServiceUnavailable,
	Code:   gateway.CodeUnavailable,
	Detail: "the stream was broken off",
}

// still returns the problem of a reader whose token is valid no more.
func (c *Chat) still(ctx context.Context, who gateway.Identity) error {
	if c.options.Guard.Still(ctx, who) {
		return nil
	}
	return &gateway.Problem{Status: http.StatusUnauthorized, Code: gateway.CodeToken, Detail: "the token was revoked"}
}

// pass tells news, and reports whether nothing more comes.
func pass(to teller, n *news) (ended bool, err error) {
	if n.idle {
		return false, to.ping()
	}
	for i := range n.events {
		to.event(n.events[i])
	}
	err = to.flush()
	if err == nil && n.answer != nil {
		err = to.answer(n.answer, n.status)
	}
	if err == nil && n.late != nil {
		err = to.late(n.late)
	}
	if err == nil && n.ended && n.failed != nil {
		err = to.fail(n.failed)
	}
	if err == nil && n.ended {
		err = to.close()
	}
	return n.ended, err
}

// tellWhole answers with one document, when nothing more comes.
func (c *Chat) tellWhole(w *reply, r *http.Request, t *Talk, f form, who gateway.Identity) error {
	select {
	case <-t.Done():
	case <-r.Context().Done():
		return r.Context().Err()
	}
	if t.answer == nil {
		return errors.New("put a question: there is no answer")
	}
	if err := c.still(r.Context(), who); err != nil {
		return err
	}
	a := *t.Answer()
	a.Error = cmp.Or(a.Error, t.failed)
	data, err := a.Document(&ibid.DocumentOptions{Unit: f.unit, AnswerID: t.AnswerID, Numbering: c.numbers(r.Context(), t)}).
		JSON()
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(data, '\n')) // who left does not read it
	}
	return nil
}

// number asks which numbers the sources of the talk's conversation have, once.
func (c *Chat) number(ctx context.Context, t *Talk) {
	t.numberOnce.Do(func() {
		if t.Conversation == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askStore)
		defer cancel()
		soon, done := context.WithTimeout(ctx, catchUp)
		_ = c.options.Gateway.CatchUp(soon) // the answer before may just have ended
		done()
		before, err := c.options.Store.Conversation(ctx, t.tenant, t.Conversation, &store.Query{Limit: 1})
		switch {
		case err == nil:
			t.numbers = before.Numbering
		case !errors.Is(err, store.ErrNotFound):
			c.log.LogAttrs(
				ctx, slog.LevelWarn, "sources are numbered anew", slog.String("answer_id", t.AnswerID),
				slog.Any("error", err),
			)
		}
	})
}

// numbers returns the numbers that sources have in the talk's conversation, for one reader.
func (c *Chat) numbers(ctx context.Context, t *Talk) *ibid.Numbering {
	c.number(ctx, t)
	n := maps.Clone(t.numbers)
	return &n
}

// sender sends what is written at once, or gives up on a reader that does not take it.
type sender struct {
	w  io.Writer
	rc *http.ResponseController
}

func (s *sender) Write(p []byte) (int, error) {
	// A server that cannot set deadlines has its own ways with slow readers.
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeFor)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := s.w.Write(p)
	if err == nil {
		err = s.rc.Flush()
	}
	return n, err
}

// end lets the connection serve other requests.
func (s *sender) end() { _ = s.rc.SetWriteDeadline(time.Time{}) }
