package chat

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/store"
)

const (
	// MaxRequest is how many bytes the body of a question may have: as many as a call to a provider.
	MaxRequest = 32 << 20
	// maxReading is how many bytes of questions are held at a time: until their answers begin, and longer where they
	// are needed to read those.
	maxReading = 256 << 20
	// writeTime is how long a reader may take to accept what it is told.
	writeTime = 30 * time.Second
	// pingEvery is how often something is sent at least.
	pingEvery = 15 * time.Second
	// askStore bounds how long the numbers of a conversation may take.
	askStore = 2 * time.Second
	// catchUp bounds how long they wait for the answer before to be stored.
	catchUp = 1500 * time.Millisecond
	// headTime is how long whoever resumes a turn that has not begun waits to hear anything.
	headTime = time.Second
	// peeked is how many bytes of a refused question are read at most to see who asks, and peekTime how long that may
	// take.
	peeked   = 64 << 10
	peekTime = 2 * time.Second
	// stillEvery is how often it is asked whether a reader's token is still valid, at most.
	stillEvery = 5 * time.Second
)

// postQuestion answers POST /v1/chat. A front-end of the AI SDK shows the body of a refusal to its user.
func (c *Chat) postQuestion(w *httpx.Reply, r *httpx.Request) error {
	f := formOf(r)
	err := c.ask(w, r, &f)
	if err == nil || f.name != formUI || errors.Is(err, httpx.ErrGone) || gateway.IsInternal(err) {
		return err
	}
	p := *gateway.ProblemOf(err)
	p.Plain = true
	return &p
}

// fail answers with an error, also with the guard's, for which nobody has read the body: as one sentence where the
// client is a front-end of the AI SDK.
func (c *Chat) fail(w *httpx.Reply, r *httpx.Request, err error) {
	p := *gateway.ProblemOf(err)
	p.Plain = p.Plain || isFrontEnd(w, r)
	gateway.WriteProblem(w, r.Request, &p)
}

// isFrontEnd reports whether useChat made a request whose form is not known. Where the request does not say so, the
// beginning of its body does; a request to resume has none, and comes from a browser.
func isFrontEnd(w *httpx.Reply, r *httpx.Request) bool {
	if form := r.URL.Query().Get("stream"); form != "" {
		return form == formUI
	}
	if r.Method != http.MethodPost {
		return r.Header.Get("Sec-Fetch-Mode") != "" || r.Header.Get("Origin") != ""
	}
	paced := gateway.NewPaced(
		io.NopCloser(io.LimitReader(r.Body, peeked)), w, gateway.DefaultPace, time.Now().Add(peekTime))
	defer paced.Done()
	head, _ := io.ReadAll(paced) // what can be read of it tells
	return uimessage.HasParts(head)
}

// ask puts a request's question and tells what comes of it, in the form that it finds out.
func (c *Chat) ask(w *httpx.Reply, r *httpx.Request, f *form) error {
	data, release, err := c.bodies.Read(w, r, MaxRequest)
	if err != nil {
		return err
	}
	q, isUI, err := readQuestion(data, r.Header)
	if isUI && f.name == "" {
		f.name = formUI
	}
	if err == nil {
		err = f.setDefaults()
	}
	if err != nil {
		release()
		return err
	}
	t, err := c.putQuestion(r.Context(), r.Who, q, *f, release)
	if err != nil {
		return err
	}
	defer t.patience.addFollowers(-1)
	return c.writeTurn(w, r, t, *f)
}

// formOf returns the form that a request asks for; it has no name where none is said.
func formOf(r *httpx.Request) form {
	f := form{name: r.Params.Get("stream"), unit: ibid.Unit(r.Params.Get("unit"))}
	if accept, _, _ := strings.Cut(r.Header.Get("Accept"), ";"); f.name == "" &&
		strings.TrimSpace(accept) == "application/json" { // and nothing else
		f.name = formNo
	}
	return f
}

// setDefaults fills in what was not said.
func (f *form) setDefaults() error {
	if f.name == "" {
		f.name = formEvents
	}
	if f.name == formUI && f.unit != "" && f.unit != ibid.UTF16 {
		return httpx.BadRequest("unit: with stream=ui it is always utf-16", "leave it out")
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

// resume answers GET /v1/chat/{id}/stream: the whole answer so far, and what is still to come.
func (c *Chat) resume(w *httpx.Reply, r *httpx.Request) error {
	f := formOf(r)
	t := c.turns.find(r.Who.Tenant, r.PathValue("id"))
	if t == nil {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if f.name == "" {
		f.name, f.unit = t.form.name, cmp.Or(f.unit, t.form.unit)
	}
	if err := f.setDefaults(); err != nil {
		return err
	}
	t.patience.addFollowers(1)
	defer t.patience.addFollowers(-1)
	if err := t.await(w, r, f); err != nil {
		return err
	}
	switch {
	case t.refused == nil:
		return c.writeTurn(w, r, t, f)
	case !w.HasBegun(): // whoever asked was told
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	p := gateway.ProblemOf(t.refused)
	out := w.Events(writeTime)
	defer out.End()
	to := f.teller(t, nil, out)
	return gone(errors.Join(to.Start(), to.fail(&ibid.ProviderError{Code: p.Code, Message: p.Detail}), to.Close()))
}

// gone returns the error of a reader who does not take what is written; the call goes on.
func gone(err error) error {
	if err != nil {
		return errors.Join(httpx.ErrGone, err)
	}
	return nil
}

// await waits until a turn begins, or will not. Where that lasts, and the form can, it begins the answer and keeps it
// alive.
func (t *Turn) await(w *httpx.Reply, r *httpx.Request, f form) error {
	timer := time.NewTimer(headTime)
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
		out := f.beginResponse(w)
		err := out.Comment("waiting")
		if out.End(); err != nil {
			return gone(err)
		}
		timer.Reset(pingEvery)
	}
}

// stop answers DELETE /v1/chat/{id}/stream.
func (c *Chat) stop(w *httpx.Reply, r *httpx.Request) error {
	if err := c.Stop(r.Context(), r.Who.Tenant, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Stop ends the turns of a conversation, or the turn of an answer, as DELETE /v1/chat/{id}/stream does, and returns
// when they have ended. What arrived of them is kept. There need not be any. The error is that of the context.
func (c *Chat) Stop(ctx context.Context, tenant, id string) error {
	all := c.turns.all(tenant, id)
	for _, t := range all {
		t.stop()
	}
	for _, t := range all {
		select {
		case <-t.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// writeTurn tells a turn to whoever asked, from its beginning.
func (c *Chat) writeTurn(w *httpx.Reply, r *httpx.Request, t *Turn, f form) error {
	h := w.Header()
	h[gateway.RunHeader] = []string{t.Run}
	if t.AnswerID != "" { // else it is not kept
		h[gateway.AnswerHeader] = []string{t.AnswerID}
	}
	ctx := r.Context()
	t.patience.addFollowers(1)
	defer t.patience.addFollowers(-1)
	if f.name == formNo {
		return c.tellWhole(w, r, t, f)
	}
	out := f.beginResponse(w)
	if r.Method == http.MethodHead {
		return nil
	}
	defer out.End()
	to := f.teller(t, func() *ibid.Numbering { return c.numbers(ctx, t) }, out)
	err := to.Start()
	from := t.newFollower()
	var checked time.Time // when the token was last valid: the answer may have begun long after it was asked for
	for ended := false; err == nil && !ended; {
		var n *news
		if n, err = from.next(ctx); err == nil && time.Since(checked) >= c.stillEvery {
			checked, err = time.Now(), c.still(r)
		}
		if err == nil {
			ended, err = pass(to, n)
		}
	}
	return gone(err)
}

// still returns the problem of a reader whose token is valid no more.
func (c *Chat) still(r *httpx.Request) error {
	if c.options.Guard.Still(r.Context(), r.Who) {
		return nil
	}
	return gateway.NewProblem(gateway.CodeToken, "the token was revoked", "")
}

// pass tells news, and reports whether nothing more comes.
func pass(to teller, n *news) (ended bool, err error) {
	if n.idle {
		return false, to.Ping()
	}
	for i := range n.events {
		to.Event(n.events[i])
	}
	err = to.Flush()
	if err == nil && n.answer != nil {
		err = to.Answer(n.answer, n.status)
	}
	if err == nil && n.late != nil {
		err = to.late(n.late)
	}
	if err == nil && n.ended && n.failed != nil {
		err = to.fail(n.failed)
	}
	if err == nil && n.ended {
		err = to.Close()
	}
	return n.ended, err
}

// tellWhole answers with one document, when nothing more comes.
func (c *Chat) tellWhole(w *httpx.Reply, r *httpx.Request, t *Turn, f form) error {
	select {
	case <-t.Done():
	case <-r.Context().Done():
		return r.Context().Err()
	}
	if t.answer == nil {
		return errors.New("put a question: there is no answer")
	}
	if err := c.still(r); err != nil {
		return err
	}
	a := *t.Answer()
	a.Error = cmp.Or(a.Error, t.failed)
	header, blocked := c.options.Gateway.Judge(t.tenant, t.upstream, t.AnswerID, &a)
	if header != "" {
		w.Header()[gateway.PolicyHeader] = []string{header}
	}
	if blocked != nil {
		return blocked
	}
	return w.JSON(http.StatusOK, a.Document(
		&ibid.DocumentOptions{Unit: f.unit, AnswerID: t.AnswerID, Numbering: c.numbers(r.Context(), t)}))
}

// number asks which numbers the sources of the turn's conversation have, once.
func (c *Chat) number(ctx context.Context, t *Turn) {
	t.numberOnce.Do(func() {
		if t.Conversation == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askStore)
		defer cancel()
		c.reader.CatchUp(ctx) // the answer before may just have ended
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

// numbers returns the numbers that sources have in the turn's conversation, for one reader.
func (c *Chat) numbers(ctx context.Context, t *Turn) *ibid.Numbering {
	c.number(ctx, t)
	n := maps.Clone(t.numbers)
	return &n
}
