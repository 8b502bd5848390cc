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
	// MaxRequest is the maximum size of a question's body in bytes, as for a call to a provider.
	MaxRequest = 32 << 20
	// writeTime is how long a client may take to accept what it is sent.
	writeTime = 30 * time.Second
	// pingEvery is the longest interval without sending something.
	pingEvery = 15 * time.Second
	// askStore limits how long reading the numbers of a conversation may take.
	askStore = 2 * time.Second
	// catchUp limits how long they wait for the previous answer to be stored.
	catchUp = 1500 * time.Millisecond
	// headTime is how long a client that resumes a turn waits for the first bytes if the turn has not begun.
	headTime = time.Second
	// peeked is how many bytes of a refused question are read at most to find out the form, and peekTime how long that
	// may take.
	peeked   = 64 << 10
	peekTime = 2 * time.Second
	// recheckEvery is the shortest interval at which a client's token is checked again.
	recheckEvery = 5 * time.Second
)

// postQuestion serves POST /v1/chat. Front-ends of the AI SDK show the body of a refusal to their users.
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

// fail sends an error, including those of the guard, before which the body is not read: as one sentence if the client
// is a front-end of the AI SDK.
func (c *Chat) fail(w *httpx.Reply, r *httpx.Request, err error) {
	p := *gateway.ProblemOf(err)
	p.Plain = p.Plain || isFrontEnd(w, r)
	gateway.WriteProblem(w, r.Request, &p)
}

// isFrontEnd reports whether useChat made a request whose form is not known. If the request does not state one, it
// looks at the beginning of the body; requests to resume have no body, but come from a browser.
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
	head, _ := io.ReadAll(paced) // as far as it can be read
	return uimessage.HasParts(head)
}

// ask asks a request's question and sends the answer in the form that it finds out.
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
	t, err := c.startTurn(r.Context(), r.Who, q, *f, release)
	if err != nil {
		return err
	}
	defer t.idle.addFollowers(-1)
	return c.writeTurn(w, r, t, *f)
}

// formOf returns the form that a request asks for; its name is empty if the request names none.
func formOf(r *httpx.Request) form {
	f := form{name: r.Params.Get("stream"), unit: ibid.Unit(r.Params.Get("unit"))}
	if accept, _, _ := strings.Cut(r.Header.Get("Accept"), ";"); f.name == "" &&
		strings.TrimSpace(accept) == "application/json" { // and nothing else
		f.name = formNo
	}
	return f
}

// setDefaults fills in what the request did not specify.
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

// resume serves GET /v1/chat/{id}/stream: the answer so far, and what follows.
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
	t.idle.addFollowers(1)
	defer t.idle.addFollowers(-1)
	if err := t.await(w, r, f); err != nil {
		return err
	}
	switch {
	case t.refused == nil:
		return c.writeTurn(w, r, t, f)
	case !w.HasBegun(): // the client that asked was told
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	p := gateway.ProblemOf(t.refused)
	out := w.Events(writeTime)
	defer out.End()
	to := f.encoder(t, nil, out)
	return gone(errors.Join(to.Start(), to.fail(&ibid.ProviderError{Code: p.Code, Message: p.Detail}), to.Close()))
}

// gone returns the error of a client that does not accept what is written; the call goes on.
func gone(err error) error {
	if err != nil {
		return errors.Join(httpx.ErrGone, err)
	}
	return nil
}

// await waits until a turn has begun, or has failed to. If that takes long, and the form allows it, it begins the
// response and keeps it alive.
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

// stop serves DELETE /v1/chat/{id}/stream.
func (c *Chat) stop(w *httpx.Reply, r *httpx.Request) error {
	if err := c.Stop(r.Context(), r.Who.Tenant, r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Stop ends the turns of a conversation, or the turn of an answer, as DELETE /v1/chat/{id}/stream does, and returns
// when they have ended. What has arrived is kept. There need not be any. The error is that of the context.
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

// writeTurn sends a turn to a client, from its beginning.
func (c *Chat) writeTurn(w *httpx.Reply, r *httpx.Request, t *Turn, f form) error {
	h := w.Header()
	h[gateway.RunHeader] = []string{t.Run}
	if t.AnswerID != "" { // else it is not stored
		h[gateway.AnswerHeader] = []string{t.AnswerID}
	}
	ctx := r.Context()
	t.idle.addFollowers(1)
	defer t.idle.addFollowers(-1)
	if f.name == formNo {
		return c.writeWhole(w, r, t, f)
	}
	out := f.beginResponse(w)
	if r.Method == http.MethodHead {
		return nil
	}
	defer out.End()
	to := f.encoder(t, func() *ibid.Numbering { return c.numbers(ctx, t) }, out)
	err := to.Start()
	from := t.newFollower()
	var checked time.Time // when the token was last valid: the answer may begin long after the request
	for ended := false; err == nil && !ended; {
		var n *news
		if n, err = from.next(ctx); err == nil && time.Since(checked) >= c.recheckEvery {
			checked, err = time.Now(), c.checkToken(r)
		}
		if err == nil {
			ended, err = forward(ctx, to, n)
		}
		if errors.Is(err, httpx.ErrWorkTime) {
			c.log.LogAttrs(
				ctx, slog.LevelError, "an answer was not sent",
				slog.String("answer_id", t.AnswerID), slog.Any("error", err),
			)
			p := gateway.ProblemOf(err)
			return gone(errors.Join(to.fail(&ibid.ProviderError{Code: p.Code, Message: p.Detail}), to.Close()))
		}
	}
	return gone(err)
}

// checkToken returns a problem if the client's token is no longer valid.
func (c *Chat) checkToken(r *httpx.Request) error {
	if c.options.Guard.Still(r.Context(), r.Who) {
		return nil
	}
	return gateway.NewProblem(gateway.CodeToken, "the token was revoked", "")
}

// forward sends news, and reports whether they are the last.
func forward(ctx context.Context, to encoder, n *news) (ended bool, err error) {
	if n.idle {
		return false, to.Ping()
	}
	ctx, release := httpx.WithWorkTime(ctx)
	defer release()
	for i := range n.events {
		if ctx.Err() != nil {
			return true, httpx.WorkError(ctx, nil)
		}
		to.Event(n.events[i])
	}
	err = to.Flush()
	if err == nil && n.answer != nil {
		err = to.Answer(ctx, n.answer, n.status)
	}
	if err == nil && n.late != nil {
		err = to.late(ctx, n.late)
	}
	if err == nil && n.ended && n.failed != nil {
		err = to.fail(n.failed)
	}
	if err == nil && n.ended {
		err = to.Close()
	}
	return n.ended, err
}

// writeWhole sends one document, once the turn is done.
func (c *Chat) writeWhole(w *httpx.Reply, r *httpx.Request, t *Turn, f form) error {
	select {
	case <-t.Done():
	case <-r.Context().Done():
		return r.Context().Err()
	}
	if t.answer == nil {
		return errors.New("ask a question: there is no answer")
	}
	if err := c.checkToken(r); err != nil {
		return err
	}
	if t.cut != nil {
		return t.cut
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
	numbering := c.numbers(r.Context(), t)
	ctx, stop := httpx.WithWorkTime(r.Context())
	defer stop()
	d := a.Document(&ibid.DocumentOptions{Unit: f.unit, AnswerID: t.AnswerID, Numbering: numbering, Context: ctx})
	if ctx.Err() != nil {
		return httpx.WorkError(ctx, nil)
	}
	return w.JSON(http.StatusOK, d)
}

// number reads the numbers of the sources in the turn's conversation, once.
func (c *Chat) number(ctx context.Context, t *Turn) {
	t.numberOnce.Do(func() {
		if t.Conversation == "" {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askStore)
		defer cancel()
		c.reader.CatchUp(ctx) // the previous answer may just have ended
		before, err := c.options.Store.Conversation(ctx, t.tenant, t.Conversation, &store.Query{Limit: 1})
		switch {
		case err == nil:
			t.numbers = before.Numbering
		case !errors.Is(err, store.ErrNotFound):
			c.log.LogAttrs(
				ctx, slog.LevelWarn, "sources are renumbered", slog.String("answer_id", t.AnswerID),
				slog.Any("error", err),
			)
		}
	})
}

// numbers returns a copy of the numbers of the sources in the turn's conversation.
func (c *Chat) numbers(ctx context.Context, t *Turn) *ibid.Numbering {
	c.number(ctx, t)
	n := maps.Clone(t.numbers)
	return &n
}
