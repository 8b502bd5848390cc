package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	calls "github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/uimessage"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tee"
)

const (
	// maxRefusal is how many bytes of an upstream's error are read.
	maxRefusal = 64 << 10
	// CodeEnded is the code of an answer that was ended on request, see [Turn.Err].
	CodeEnded = "ended"
	// maxDecoded is how many bytes of a response are decoded: as in the gateway.
	maxDecoded = 32 << 20
)

// Ask asks a question, and returns when the provider has begun to answer, or has failed to: then the error is a
// problem. The turn goes on when ctx ends, and can be resumed as part of its conversation. The end of ctx only ends the
// waiting, and a turn that has not begun and belongs to no conversation, since no one could find it.
func (c *Chat) Ask(ctx context.Context, who gateway.Identity, q *Question) (*Turn, error) {
	return c.startTurn(ctx, who, q, form{name: formEvents}, func() {})
}

// startTurn starts a turn, with the caller as a follower until they leave. release is called when the question's body
// is no longer needed.
func (c *Chat) startTurn(
	ctx context.Context, who gateway.Identity, q *Question, f form, release func(),
) (*Turn, error) {
	call, r, err := c.prepare(ctx, who, q, f)
	if err != nil {
		release()
		return nil, err
	}
	t := call.turn
	call.release = release
	c.running.Add(1)
	go call.run(c.options.Gateway.Transport(who), r)
	select {
	case <-t.begun:
	case <-ctx.Done():
		t.idle.addFollowers(-1)
		if t.Conversation == "" {
			t.stop()
		}
		return nil, ctx.Err()
	}
	if t.refused != nil {
		return nil, t.refused
	}
	return t, nil
}

// prepare builds the call for a question.
func (c *Chat) prepare(ctx context.Context, who gateway.Identity, q *Question, f form) (*call, *http.Request, error) {
	p, err := c.provider(q.Provider)
	if err != nil {
		return nil, nil, err
	}
	if err := q.check(); err != nil {
		return nil, nil, err
	}
	built, prompt, err := build(p, q)
	if err != nil {
		return nil, nil, err
	}
	t := &Turn{
		Conversation: q.Conversation,
		Run:          q.Run,
		follows:      gateway.Follows(q.Follows),
		tenant:       who.Tenant,
		upstream:     p.Upstream,
		model:        cmp.Or(q.Model, p.Model),
		form:         f,
		prompt:       prompt,
		asked:        time.Now(),
		begun:        make(chan struct{}),
		done:         make(chan struct{}),
	}
	path, _, _ := strings.Cut(built.Path, "?")
	route, _ := calls.FindRoute(p.Provider, built.Method, path)
	call := &call{chat: c, turn: t, provider: p, format: route.Format, who: who}
	on, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	on, call.search = gateway.WithLateSearch(on)
	call.ctx, t.stop = on, func() { cancel(nil) }
	r := request(on, p, q, built)
	if r == nil {
		cancel(nil)
		return nil, nil, httpx.BadRequest("the model's name cannot be part of an address", "name another one")
	}
	call.keys = calls.KeysOf(r.Header)
	if calls.ReadsRequest(route.Format) || calls.Gives(route.Format, built.Body) {
		call.sent = built.Body
	}
	t.idle = newIdleTimer(cmp.Or(c.options.Silence, maxSilence), func() { cancel(errSilent) })
	if err := c.turns.add(t); err != nil {
		t.idle.stop()
		cancel(nil)
		return nil, nil, err
	}
	return call, r, nil
}

// provider returns the provider that a question names.
func (c *Chat) provider(name string) (*Provider, error) {
	var names []string
	for i := range c.options.Providers {
		p := &c.options.Providers[i]
		if p.Upstream == name || name == "" {
			return p, nil
		}
		names = append(names, p.Upstream)
	}
	return nil, httpx.BadRequest("provider: there is none of that name", "there is "+strings.Join(names, ", "))
}

// build writes the question in the provider's format, and returns the messages that it sends.
func build(p *Provider, q *Question) (*calls.Built, []store.Message, error) {
	w := calls.Chat{
		Model:     cmp.Or(q.Model, p.Model),
		Documents: documents(q.Documents),
		Tools:     q.Tools,
		Stream:    true,
		Include:   true,
		Citations: q.Citations,
	}
	if q.Tools == nil {
		w.Tools = p.Tools
	}
	if p.Instructions != "" {
		w.Messages = append(w.Messages, calls.Message{Role: calls.RoleSystem, Text: p.Instructions})
	}
	for _, m := range q.Messages {
		w.Messages = append(w.Messages, calls.Message{Role: m.Role, Text: m.Text})
	}
	built, err := calls.BuildRequest(p.Provider, &w)
	if errors.Is(err, calls.ErrDocuments) {
		w.Documents = nil
		w.Messages = withDocuments(w.Messages, q.Documents)
		built, err = calls.BuildRequest(p.Provider, &w)
	}
	if err != nil {
		hint := "see docs/chat.md for the format of a question"
		if w.Model == "" {
			hint = "name a model, or give the provider one: ibid serve --chat NAME=MODEL"
		}
		return nil, nil, httpx.BadRequest(err.Error(), hint)
	}
	prompt := make([]store.Message, 0, len(w.Messages))
	for _, m := range w.Messages {
		prompt = append(prompt, store.Message{Role: m.Role, Text: m.Text})
	}
	return built, prompt, nil
}

// documents converts documents for a request.
func documents(list []ibid.Source) []wire.Source {
	var all []wire.Source
	for i := range list {
		s := &list[i]
		all = append(all, wire.Source{
			Key:         s.ID,
			ID:          s.ID,
			Title:       s.Title,
			URL:         s.URL,
			Filename:    s.Filename,
			Site:        s.Site,
			Authors:     s.Authors,
			PublishedAt: s.PublishedAt,
			Content:     s.Content,
			Raw:         s.Raw,
		})
	}
	return all
}

// withDocuments inserts documents as a message before the user's newest, which stays as it was asked. What is known of
// a document besides its text becomes a passage before it.
func withDocuments(messages []calls.Message, list []ibid.Source) []calls.Message {
	known := documents(list)
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		if about := calls.About(&known[i]); len(about) > 0 {
			passages := s.Chunks
			if len(passages) == 0 {
				passages = []ibid.Chunk{{Content: s.Content}}
			}
			s.Chunks = append([]ibid.Chunk{{Content: strings.Join(about, "\n")}}, passages...)
		}
	}
	for i := range slices.Backward(messages) {
		if messages[i].Role == calls.RoleUser && messages[i].Text != "" {
			return slices.Insert(messages, i, calls.Message{Role: calls.RoleUser, Text: ibid.PromptSources(list)})
		}
	}
	return messages
}

// request returns the call to the gateway.
func request(ctx context.Context, p *Provider, q *Question, built *calls.Built) *http.Request {
	address := "http://ibid/" + p.Upstream + built.Path
	r, err := http.NewRequestWithContext(ctx, built.Method, address, calls.NewBody(built.Body))
	if err != nil {
		return nil // paths are ours, and escaped: the caller reports what else may be wrong
	}
	r.ContentLength = int64(len(built.Body))
	maps.Copy(r.Header, built.Header)
	if known, ok := calls.FindProvider(p.Provider); ok && p.Key != "" {
		r.Header.Set(known.KeyHeader, known.KeyPrefix+p.Key)
	}
	for name, value := range map[string]string{
		gateway.ConversationHeader: q.Conversation, gateway.RunHeader: q.Run, gateway.AgentHeader: q.Agent,
		gateway.StepHeader: q.Step, gateway.PublishHeader: q.Publish, gateway.FollowsHeader: q.Follows,
	} {
		if value != "" {
			r.Header[name] = []string{value}
		}
	}
	return r
}

// call is a question being asked.
type call struct {
	ctx      context.Context
	chat     *Chat
	turn     *Turn
	provider *Provider
	search   *gateway.LateSearch // for citations that follow the answer
	format   string              // of its answers
	keys     calls.Keys
	sent     []byte // the request's body, if it is needed to read the answer
	who      gateway.Identity
	held     int64  // bytes of memory for its answer
	full     error  // a problem: why it was not read to its end; nil if it was
	release  func() // frees the quota of the body; nil if that was done
}

// run makes the call and passes the results to the turn.
func (c *call) run(transport http.RoundTripper, r *http.Request) {
	defer c.chat.running.Done()
	defer context.AfterFunc(c.chat.ending, c.turn.stop)() //nolint:contextcheck // the context is the call's own
	defer c.finish()
	defer func() {
		if v := recover(); v != nil {
			c.chat.log.LogAttrs(
				c.ctx, slog.LevelError, "a question made the program panic",
				slog.String("upstream", c.provider.Upstream),
				slog.String("answer_id", c.turn.AnswerID),
				slog.String("panic", fmt.Sprint(v)),
				slog.String("stack", string(debug.Stack())),
			)
		}
	}()
	res, err := transport.RoundTrip(r)
	if err != nil {
		c.turn.refused = c.unanswered(err)
		return
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode/100 != 2 || res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusResetContent {
		c.turn.refused = c.refusal(res)
		return
	}
	c.answerBegins(res.Header)
	mask := gateway.NewKeyMask(c.keys, func(ev ibid.Event) {
		ev, _ = calls.Mask(c.keys, ev)
		c.turn.event(ev)
	})
	body := tee.NewBody(aliveBody{res.Body, c.turn.idle}, &tee.Options{
		// as the gateway does
		Decode:   ibid.DecodeOptions{Provider: c.provider.Provider, Format: c.format, Request: c.sent, One: true},
		Encoding: strings.Join(res.Header["Content-Encoding"], ", "), Length: res.ContentLength, Limit: maxDecoded,
		Hold: c.hold,
		OnEvent: func(ev ibid.Event) {
			if ev.Candidate == 0 && ev.Kind != ibid.EventAnswer {
				mask.Event(ev) // the complete answer has what did not fit
			}
		},
		Done: func(r tee.Result) {
			mask.End()
			c.answered(r)
		},
	})
	_, _ = io.Copy(io.Discard, body) // Done gets the error
	_ = body.Close()
	c.turn.idle.stop()
	c.sent = nil
	c.releaseBody()
	c.awaitLate() //nolint:contextcheck // the context is the call's own
}

// hold reserves memory to decode n bytes of the answer, and to write it for the followers. It is released when the last
// of them has left.
func (c *call) hold(n int64) bool {
	n *= gateway.DecodeMemory
	if c.full = c.chat.options.Gateway.Memory().HoldMore(c.who, c.held, n); c.full != nil {
		return false
	}
	c.held += n
	return true
}

// unanswered returns why there is no response.
func (c *call) unanswered(err error) error {
	switch {
	case errors.Is(context.Cause(c.ctx), errSilent):
		return gateway.NewProblem(gateway.CodeUpstreamSlow,
			"upstream "+c.provider.Upstream+": "+errSilent.Error(), "try again, or ask another one")
	case c.ctx.Err() != nil:
		return gateway.Unavailable("the call was ended before there was an answer")
	}
	c.chat.log.LogAttrs(
		c.ctx, slog.LevelWarn, "a question was not answered", slog.String("upstream", c.provider.Upstream),
		slog.Any("error", err),
	)
	return gateway.NewProblem(gateway.CodeUpstream,
		"upstream "+c.provider.Upstream+": the call broke off", "try again; ibid's log says more")
}

// refusal returns the problem for an error response: the gateway's own, or one with the provider's words.
func (c *call) refusal(res *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // as far as it was received
	var header http.Header
	if after := res.Header.Get("Retry-After"); after != "" {
		header = http.Header{"Retry-After": {after}}
	}
	if p := problemOf(res, data); p != nil {
		p.Detail, p.Hint, p.Header = c.keys.Hide(p.Detail), c.keys.Hide(p.Hint), header
		return p
	}
	code, hint := gateway.CodeUpstream, ""
	switch res.StatusCode {
	case http.StatusTooManyRequests:
		code, hint = gateway.CodeTooMany, "try again in a while, or ask another one"
	case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		code, header = gateway.CodeBadRequest, nil
	case http.StatusUnauthorized, http.StatusForbidden:
		header, hint = nil, "it does not accept the key in ibid's configuration"
	default:
		header = nil
	}
	words := ""
	if a, _ := ibid.Decode(data, &ibid.DecodeOptions{Provider: c.provider.Provider, Format: c.format}); a.Error != nil {
		words = ": " + c.keys.Hide(a.Error.Error())
	}
	p := gateway.NewProblem(code, fmt.Sprintf("upstream %s answered %d%s",
		c.provider.Upstream, res.StatusCode, strings.ToValidUTF8(words, "\ufffd")), hint)
	p.Header = header
	return p
}

// problemOf returns the problem that the gateway answered with; nil if the response is not the gateway's.
func problemOf(res *http.Response, data []byte) *gateway.Problem {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		return nil
	}
	var problem struct{ Type, Title, Detail, Hint string }
	_ = json.Unmarshal(data, &problem) // as far as it can be read
	if problem.Detail == "" {
		return nil
	}
	_, code, _ := strings.Cut(problem.Type, "#")
	return &gateway.Problem{
		Status: res.StatusCode, Code: code, Title: problem.Title, Detail: problem.Detail, Hint: problem.Hint,
	}
}

// answerBegins records that the answer has begun, and its id.
func (c *call) answerBegins(h http.Header) {
	t := c.turn
	t.AnswerID, t.Run = h.Get(gateway.AnswerHeader), cmp.Or(h.Get(gateway.RunHeader), t.Run)
	t.idle.hear()
	if c.sent == nil {
		c.releaseBody()
	}
	if t.Conversation != "" {
		c.chat.running.Go(func() { c.chat.number(c.ctx, t) }) // so that no one waits for it
	}
	c.chat.turns.markBegun(t)
	close(t.begun)
}

// releaseBody frees the quota of the question's body.
func (c *call) releaseBody() {
	if c.release != nil {
		c.release()
		c.release = nil
	}
}

// answered stores the answer. It is called once by the tee.
func (c *call) answered(r tee.Result) {
	t, a := c.turn, r.Answer
	gateway.HideKeys(c.keys, a)
	a, _ = calls.Mask(c.keys, a)
	if c.full == nil && errors.Is(r.Err, tee.ErrLimit) {
		c.full = gateway.NewProblem(
			gateway.CodeTooLarge, fmt.Sprintf("the answer has more than %d bytes", maxDecoded),
			"what was read of it is stored, by the id in "+gateway.AnswerHeader,
		)
	}
	status := uimessage.StatusOf(a)
	if c.chat.options.Late > 0 && c.search.Begun() { // citations may follow the answer
		status = uimessage.Pending
	}
	t.update(func() {
		t.answer, t.status, t.failed, t.cut = a, status, c.failure(&r), c.full
	})
}

// failure returns why an answer is not complete; nil if it is.
func (c *call) failure(r *tee.Result) *ibid.ProviderError {
	switch {
	case r.Answer.Error != nil:
		return r.Answer.Error
	case r.Answer.Format == ibid.Generic:
		return &ibid.ProviderError{
			Code: gateway.CodeUpstream, Message: "the upstream's response is not the answer of a model",
		}
	case r.Answer.Complete:
		return nil
	case c.full != nil:
		p := gateway.ProblemOf(c.full)
		return &ibid.ProviderError{Code: p.Code, Message: "the answer was not read to its end: " + p.Detail}
	case errors.Is(context.Cause(c.ctx), errSilent):
		return &ibid.ProviderError{Code: gateway.CodeUpstreamSlow, Message: errSilent.Error()}
	case c.ctx.Err() != nil:
		return &ibid.ProviderError{Code: CodeEnded, Message: "the answer was ended before it was complete"}
	}
	return &ibid.ProviderError{Code: gateway.CodeUpstream, Message: "the answer broke off"}
}

// finish ends the turn in any case. It can no longer be found after that.
func (c *call) finish() {
	t := c.turn
	t.idle.stop()
	t.stop()
	c.releaseBody()
	if c.held > 0 {
		t.idle.whenAlone(func() { c.chat.options.Gateway.Memory().Release(c.who, c.held) })
	}
	c.chat.turns.end(t)
	result := resultAnswered
	t.update(func() {
		t.ended = true
		switch {
		case !t.known:
			result = resultRefused
			if t.refused == nil {
				t.refused = errors.New("ask a question: it was abandoned")
			}
			close(t.begun)
			return
		case t.answer == nil:
			t.failed = &ibid.ProviderError{Code: gateway.CodeInternal, Message: "something went wrong inside ibid"}
		}
		if t.failed != nil {
			result = resultBroken
		}
	})
	c.chat.asked.WithLabelValues(c.provider.Upstream, result).Inc()
	close(t.done)
}

// awaitLate waits until the search for citations that follow the answer has ended.
func (c *call) awaitLate() {
	t := c.turn
	t.mu.Lock()
	waits := t.answer != nil && t.status == uimessage.Pending
	t.mu.Unlock()
	if !waits {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.chat.options.Late)
	defer cancel()
	defer context.AfterFunc(c.chat.closing, cancel)()
	select {
	case <-c.search.Done():
	case <-ctx.Done():
	}
	found := c.search.Answer()
	if found != nil {
		c.chat.reader.CatchUp(ctx) // so that clients which are told of it find it stored
	}
	t.update(func() {
		t.late = cmp.Or(found, t.answer) // nothing was found, so the answer is final
	})
}

const (
	// maxSilence is how long a provider may send nothing, before its answer and within it, unless [Options] differ:
	// models think for minutes.
	maxSilence = 10 * time.Minute
	// maxSilenceAlone is the same while there are no followers: a question that no one waits for must not take up
	// another's place for long.
	maxSilenceAlone = time.Minute
)

var errSilent = errors.New("the provider sent nothing for too long")

// idleTimer ends a call whose provider sends nothing for too long.
type idleTimer struct {
	most, alone time.Duration // alone applies while there are no followers
	end         func()

	mu        sync.Mutex
	heard     time.Time // when the provider last sent something
	followers int
	timer     *time.Timer // nil once it was stopped
	whenLeft  func()      // called once when followers becomes 0; may be nil
}

// newIdleTimer starts a timer with one follower, the caller.
func newIdleTimer(most time.Duration, end func()) *idleTimer {
	p := &idleTimer{most: most, alone: min(most, maxSilenceAlone), end: end, heard: time.Now(), followers: 1}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(most, p.check)
	return p
}

// left returns how much longer the provider may send nothing.
func (p *idleTimer) left() time.Duration {
	most := p.most
	if p.followers == 0 {
		most = p.alone
	}
	return most - time.Since(p.heard)
}

// check ends the call if the time is up, or checks again later.
func (p *idleTimer) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch left := p.left(); {
	case p.timer == nil:
	case left <= 0:
		p.timer = nil
		p.end()
	default:
		p.timer.Reset(left)
	}
}

// addFollowers adds n followers; -1 removes one.
func (p *idleTimer) addFollowers(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.followers += n
	if p.followers == 0 && p.whenLeft != nil {
		p.whenLeft()
		p.whenLeft = nil
	}
	if p.timer != nil {
		p.timer.Reset(max(p.left(), 0))
	}
}

// whenAlone calls do once there are no followers, which may be now.
func (p *idleTimer) whenAlone(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.followers == 0 {
		do()
		return
	}
	p.whenLeft = do
}

// hear records that the provider sent something.
func (p *idleTimer) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = time.Now()
}

// stop stops the timer.
func (p *idleTimer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// aliveBody is a response's body that resets the timer when bytes arrive.
type aliveBody struct {
	io.ReadCloser

	by *idleTimer
}

func (h aliveBody) Read(b []byte) (int, error) {
	n, err := h.ReadCloser.Read(b)
	if n > 0 {
		h.by.hear()
	}
	return n, err
}
