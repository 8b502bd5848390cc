package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/journal"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tee"
	"github.com/ibidhq/ibid/watch"
)

// done keeps an answer. The tee calls it once, before it hands out the answer's end mark.
func (e *exchange) done(r tee.Result) {
	if e.live != nil {
		e.live.close()
	}
	defer e.release()
	ended := time.Since(e.started)
	if e.body != nil {
		e.understand()
	}
	if !isAnswer(r) || e.route.Get && r.Answer.ID == "" {
		e.up.metrics.nothing.Inc()
		e.teeOff(r.Err)
		return
	}
	c := &store.Call{
		AnswerID:     e.answerID,
		Tenant:       e.tenant,
		Upstream:     e.up.Name,
		Route:        e.in.Method + " " + e.path(),
		Conversation: e.asked.conversation,
		Run:          e.asked.run,
		Agent:        e.asked.agent,
		Step:         e.asked.step,
		Prompt:       e.prompt,
		Status:       e.status,
		Started:      e.started,
		FirstByte:    e.first,
		Duration:     ended,
		Bytes:        e.received,
		Refetch:      e.route.Get,
		Answer:       r.Answer,
	}
	err := e.g.keep(c)
	waited := time.Since(e.started) - ended
	if err == nil {
		e.up.metrics.captured(r.Answer, waited)
	}
	e.teeOff(r.Err)
	e.answer = r.Answer
	if b := e.g.options.Backfill; b != nil && e.stream && err == nil && b.Wants(c.Upstream, c.Route) {
		b.Offer(watch.Job{
			Call: c, Provider: e.provider(), URL: e.up.URL, Format: e.route.Format, Request: e.body, Keys: watch.Keys(e.in, e.provider()),
		})
	}
	e.logAnswer(c, r, waited, err)
}

// path returns the path of the call at the provider, escaped.
func (e *exchange) path() string {
	_, path, rawPath := splitPath(e.in.URL)
	if rawPath != "" {
		return rawPath
	}
	return path
}

// isAnswer reports whether there is something to keep: not of a page or of words that a proxy on the way may have put in an
// answer's place, and not where nothing came.
func isAnswer(r tee.Result) bool {
	a := r.Answer
	switch {
	case a == nil, a.Format == ibid.Generic, errors.Is(r.Err, ibid.ErrEmpty), errors.Is(r.Err, ibid.ErrBinary):
		return false
	}
	return a.ID != "" || a.Text != "" || a.Error != nil || a.Complete || len(a.Sources) > 0 || len(a.ToolCalls) > 0
}

// teeOff counts and logs that the tee gave up on a response, which passed all the same.
func (e *exchange) teeOff(err error) {
	var panicked *tee.PanicError
	switch {
	case errors.As(err, &panicked):
		e.g.log.LogAttrs(e.in.Context(), slog.LevelError, "decoding an answer panicked", slog.String("upstream", e.up.Name),
			slog.String("route", e.counters.pattern), slog.String("answer", e.answerID), slog.String("stack", string(panicked.Stack)))
	case errors.Is(err, tee.ErrLimit), errors.Is(err, tee.ErrEncoding):
	default:
		return
	}
	e.up.metrics.teeOff.Inc()
}

// Keep keeps what [watch.Backfill] found for an answer that was captured: it takes the place of the stored one with c's
// AnswerID, and is dropped if that was deleted meanwhile. The call must not have been encoded; it is the gateway's from then
// on. How long Keep takes is up to CaptureWait, not to ctx.
//
//nolint:contextcheck // as it says
func (g *Gateway) Keep(_ context.Context, c *store.Call) error {
	c.Of, c.AnswerID = c.AnswerID, g.ids.next() // a later id is a later state: the journal may be read twice
	c.Duration = time.Since(c.Started)          // its event is of now
	return g.keep(c)
}

// keep makes an answer durable, as far as the mode of capture says. It returns within CaptureWait. The error says that the
// answer is lost, or may be.
func (g *Gateway) keep(c *store.Call) error {
	record, err := c.Encode()
	if err != nil {
		g.metrics.failed(failedEncode)
		return err
	}
	key := tailKey{c.Tenant, c.AnswerID}
	if !c.Refetch && c.Of == "" {
		g.tail.add(key, c, int64(len(record)))
	}
	p, err := g.journal.Append(record)
	if err != nil {
		g.tail.remove(key)
		g.metrics.failed(failedAppend)
		return err
	}
	g.tail.place(key, p)
	g.appended(p)
	if g.options.Capture == Relaxed {
		return nil
	}
	return g.await(g.waits.begin(), p)
}

// await waits until what the journal has at p is safe, or ctx ends. It is on its way all the same then, which is no error.
func (g *Gateway) await(ctx context.Context, p journal.Position) error {
	err := g.journal.Sync(ctx, p)
	if err == nil && g.options.Capture == Stored {
		err = g.indexed.wait(ctx, p)
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		g.metrics.late.Inc()
		return nil
	}
	if err != nil {
		g.metrics.failed(failedSync)
	}
	return err
}

// appended notes that the journal has a record at p.
func (g *Gateway) appended(p journal.Position) {
	for {
		last := g.last.Load()
		if uint64(p) <= last || g.last.CompareAndSwap(last, uint64(p)) {
			return
		}
	}
}

// logAnswer writes the one line that there is for each answer. It says nothing that a client or a provider wrote in confidence:
// no keys, queries, prompts or texts.
func (e *exchange) logAnswer(c *store.Call, r tee.Result, waited time.Duration, err error) {
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelError
	}
	ctx := context.WithoutCancel(e.in.Context())
	if !e.g.log.Enabled(ctx, level) {
		return
	}
	a := r.Answer
	line := slog.NewRecord(time.Now(), level, "answer", 0) // where in the code it was written would cost more than all the rest
	if err != nil {
		line.Message = "an answer could not be kept"
		line.AddAttrs(slog.Any("error", err))
	}
	if c.Refetch {
		line.AddAttrs(slog.Bool("refetch", true))
	}
	line.AddAttrs(
		slog.String("answer", c.AnswerID),
		slog.String("run", c.Run),
		slog.String("agent", c.Agent),
		slog.String("tenant", c.Tenant),
		slog.String("upstream", c.Upstream),
		slog.String("route", e.counters.pattern),
		slog.String("provider", a.Provider),
		slog.String("model", cmp.Or(a.Model, e.model)), // Cohere names none in its answers
		slog.Int("status", c.Status),
		slog.Bool("complete", a.Complete),
		slog.String("end", r.End.String()),
		slog.Int64("bytes", c.Bytes),
		slog.Int("citations", len(a.Citations)),
		slog.Int("sources", len(a.Sources)),
		slog.Int("issues", len(a.Issues)),
		milliseconds("first_byte_ms", c.FirstByte),
		milliseconds("duration_ms", c.Duration),
		milliseconds("capture_wait_ms", waited),
	)
	_ = e.g.log.Handler().Handle(ctx, line) // a log that cannot be written harms no call
}

func milliseconds(name string, d time.Duration) slog.Attr {
	return slog.Float64(name, float64(d.Microseconds())/1000)
}

// waits makes contexts that end when an answer has been held back long enough. Calls of about the same time share one: a timer
// for every call would cost more than most calls wait.
type waits struct {
	limit time.Duration

	mu     sync.Mutex
	ctx    context.Context
	serves time.Time // until when ctx lasts long enough for who begins to wait
}

// waitShare is the part of the limit that calls which share a context may lie apart: the last of them waits this much
// longer than the first, none less than the limit.
const waitShare = 8

func (w *waits) begin() context.Context {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil || now.After(w.serves) {
		share := w.limit / waitShare
		w.serves = now.Add(share)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(w.limit+share, cancel)
		w.ctx = ctx
	}
	return w.ctx
}
