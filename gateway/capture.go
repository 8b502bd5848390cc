package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/tee"
)

// capture inserts the tee between upstream and client.
func (e *exchange) capture(body io.ReadCloser) io.ReadCloser {
	if !e.route.Get {
		e.announceAnswer(e.w.Header())
	}
	e.out.GetBody, e.model = nil, e.route.Model
	// The decoder needs a request that gives the model passages: what marks in the answer refer to.
	readable := len(e.in.Header["Content-Encoding"]) == 0
	reads := call.ReadsRequest(e.route.Format) || readable && call.Gives(e.route.Format, e.body)
	attributes := e.g.options.Attribution != nil && !e.route.Get && e.g.options.Attribution.Wants(e.labels.run)
	if !reads && !e.wantsBackfill() && !attributes {
		e.readRequest()
		e.release()
	}
	if !reads && e.res.ContentLength < 0 && !isJSON(e.res.Header) {
		e.packRequest()
	}
	limits := &e.g.options.Limits
	o := tee.Options{
		Encoding: strings.Join(e.res.Header["Content-Encoding"], ", "),
		Length:   e.res.ContentLength,
		Limit:    limits.Decoded,
		WorkTime: halt.WorkTime,
		Done:     e.done,
		Unpacking: func(n int64) bool {
			return e.holdDecoding(n/DecodeMemory) == nil
		},
		Hold: func(n int64) bool { // without room, the rest passes without being decoded
			return e.holdDecoding(n) == nil
		},
	}
	o.Decode.Provider, o.Decode.Limits = e.provider(), limits.Decode
	o.Decode.Mappings = e.g.options.Mappings
	if e.up.Provider != "" { // otherwise the path only resembles a provider's, and the response is a better guide
		o.Decode.Format = e.route.Format
	}
	if reads && readable {
		o.Decode.Request = e.body
	}
	// A body of known length arrives at once, immediately followed by its event.
	if e.g.options.Bus != nil && !e.route.Get && e.res.ContentLength < 0 {
		e.live = &live{e: e}
		e.live.start()
		o.OnEvent = e.live.event
	}
	return tee.NewBody(body, &o)
}

// announceAnswer sets the headers with the call's run and the id under which its answer will be kept. If the response's
// header or the journal already shows that it will not be kept, there is no id, and the reason is logged.
func (e *exchange) announceAnswer(h http.Header) {
	h[RunHeader] = []string{e.labels.run}
	encoding := strings.Join(e.res.Header["Content-Encoding"], ", ")
	media, _, _ := mime.ParseMediaType(e.res.Header.Get("Content-Type"))
	var why error
	switch limit := e.g.options.Limits.Decoded; {
	case !tee.CanDecode(encoding):
		why = fmt.Errorf("%w: %.40q", tee.ErrEncoding, encoding)
	case e.res.ContentLength > limit:
		why = fmt.Errorf("%w: %d bytes of %d", tee.ErrLimit, e.res.ContentLength, limit)
	case media == "text/html" || media == "application/xhtml+xml": // for a browser: no provider sends answers as HTML
		why = errors.New("it is a web page")
	case e.overQuota:
		why = errQuota
	default:
		why = e.g.options.Journal.Stats().Err
	}
	if why == nil {
		h[AnswerHeader] = []string{e.answerID}
		return
	}
	e.logUnkept(slog.LevelWarn, why)
}

// logUnkept logs that a response has no answer to keep, although the call asked for one, or that it cannot be kept.
func (e *exchange) logUnkept(level slog.Level, why error) {
	e.g.log.LogAttrs(
		context.WithoutCancel(e.in.Context()), level, "a response is not kept", slog.String("tenant", e.tenant),
		slog.String("upstream", e.up.Name), slog.String("route", e.pattern), slog.Int("status", e.status),
		slog.Any("error", why),
	)
}

// provider returns the provider that answers, as far as it is known before the answer.
func (e *exchange) provider() string { return cmp.Or(e.route.Provider, e.up.Provider) }

// path returns the call's method and path at the provider, escaped.
func (e *exchange) path() string {
	_, path, rawPath := splitPath(e.in.URL)
	return e.in.Method + " " + cmp.Or(rawPath, path)
}

func (e *exchange) wantsBackfill() bool {
	b := e.g.options.Backfill
	return b != nil && b.Wants(e.up.Name, e.path())
}

// done keeps an answer. The tee calls it once, before it passes on the answer's end mark.
func (e *exchange) done(r tee.Result) {
	defer e.release()
	defer e.recoverPanic()
	if e.live != nil {
		e.live.close()
	}
	ended := time.Since(e.started)
	e.unpackRequest()
	if e.body != nil {
		e.readRequest()
	}
	if !isAnswer(r) || e.route.Get && r.Answer.ID == "" {
		e.g.metrics.nothing.WithLabelValues(e.up.Name).Inc()
		e.countTeeFailure(r.Err)
		if len(e.w.Header()[AnswerHeader]) > 0 {
			e.logUnkept(slog.LevelInfo, cmp.Or(r.Err, errNoAnswer))
		}
		return
	}
	if !r.Answer.Complete && e.in.Context().Err() != nil {
		r.Answer.Issues = append(r.Answer.Issues, ibid.Issue{Code: IssueStopped, Detail: "by the client"})
	}
	keys := e.keysOf()
	HideKeys(keys, r.Answer)
	c, masked := e.maskKeys(keys, e.call(r.Answer, ended))
	r.Answer = c.Answer
	if e.overQuota {
		e.g.overQuota(e.tenant)
		e.countTeeFailure(r.Err)
		e.judge(r.Answer, false)
		return
	}
	err := e.g.makeDurable(c)
	waited := time.Since(e.started) - ended
	e.kept = err == nil
	if err == nil {
		e.g.metrics.captured(e.up.Name, r.Answer, waited)
	}
	e.countTeeFailure(r.Err)
	if e.g.options.Tracer != nil {
		e.answer = r.Answer
	}
	if e.cited != nil && err == nil && r.Answer.Complete && !masked {
		e.cited.answer = r.Answer
	}
	searched := err == nil && e.offerLateCitations(keys, c)
	e.judge(r.Answer, searched)
	e.logAnswer(c, r, waited, err)
}

// judge checks an answer against its policies: before its response is passed on if that is held, else in the
// background.
func (e *exchange) judge(a *ibid.Answer, searched bool) {
	if e.policies == nil {
		return
	}
	j := &judged{
		who: e.who, upstream: e.up.Name, id: e.answerID, answer: a, policies: e.policies, searched: searched,
		held: e.holds && e.awaitsPolicies(),
	}
	if !e.kept || e.route.Get { // an answer that was fetched again is kept under its original id
		j.id = ""
	}
	if j.held {
		e.judging = j
		return
	}
	e.g.active.Add(1) // Close waits for the check
	go func() {
		defer e.g.leave()
		_, _ = e.g.judge(j)
	}()
}

// call returns the record of an answer.
func (e *exchange) call(a *ibid.Answer, ended time.Duration) *store.Call {
	c := &store.Call{
		AnswerID:     e.answerID,
		Tenant:       e.tenant,
		Upstream:     e.up.Name,
		Route:        e.path(),
		Conversation: e.labels.conversation,
		Follows:      Follows(e.labels.follows),
		Run:          e.labels.run,
		Agent:        e.labels.agent,
		Step:         e.labels.step,
		Prompt:       e.prompt,
		Results:      e.results,
		Status:       e.status,
		Started:      e.started,
		FirstByte:    e.first,
		Duration:     ended,
		Bytes:        e.received,
		Refetch:      e.route.Get,
		Publish:      e.cited != nil && e.g.options.Citing.Level > 1 && a.Complete,
		Answer:       a,
	}
	if by := e.g.options.Attribution; by != nil && !e.route.Get {
		c.Strategy = by.Strategy(e.labels.run)
	}
	if e.cited != nil { // bound to the body if its hash is known, else only to its text
		c.Body = &store.CallBody{Hash: e.cited.hash, MediaType: e.res.Header.Get("Content-Type")}
	}
	return c
}

// IssueStopped is the code of the issue of an answer whose client stopped it or left before its end.
const IssueStopped = "stopped"

// errNoAnswer reports a complete response without an answer.
var errNoAnswer = errors.New("it contains no answer")

// isAnswer reports whether there is something to keep: not if nothing arrived, or if a proxy may have sent a page or
// text in place of an answer.
func isAnswer(r tee.Result) bool {
	a := r.Answer
	switch {
	case a == nil, a.Format == ibid.Generic, errors.Is(r.Err, ibid.ErrEmpty), errors.Is(r.Err, ibid.ErrBinary):
		return false
	}
	return a.ID != "" || a.Text != "" || a.Error != nil || a.Complete || len(a.Sources) > 0 || len(a.ToolCalls) > 0
}

// recoverPanic is deferred where a panic must not break the client's response.
func (e *exchange) recoverPanic() {
	if v := recover(); v != nil {
		e.g.metrics.panics.Inc()
		e.logPanic("keeping an answer", debug.Stack())
	}
}

func (e *exchange) logPanic(doing string, stack []byte) {
	e.g.log.LogAttrs(
		e.in.Context(), slog.LevelError, "recovered from a panic", slog.String("doing", doing),
		slog.String("upstream", e.up.Name), slog.String("route", e.pattern),
		slog.String("answer_id", e.answerID), slog.String("stack", string(stack)),
	)
}

// countTeeFailure counts and logs that the tee gave up on a response, which was passed on nevertheless.
func (e *exchange) countTeeFailure(err error) {
	var panicked *tee.PanicError
	switch {
	case errors.As(err, &panicked):
		e.g.metrics.panics.Inc()
		e.logPanic("decoding an answer", panicked.Stack)
	case errors.Is(err, tee.ErrLimit), errors.Is(err, tee.ErrEncoding), errors.Is(err, tee.ErrWorkTime):
	default:
		return
	}
	e.g.metrics.teeOff.WithLabelValues(e.up.Name).Inc()
}

// logAnswer writes the one log line for each answer. It contains nothing confidential that a client or a provider
// wrote: no keys, queries, prompts or texts.
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
	// the source position would cost more than all the rest
	line := slog.NewRecord(time.Now(), level, "answer", 0)
	if err != nil {
		line.Message = "cannot keep an answer"
		line.AddAttrs(slog.Any("error", err))
	}
	if c.Refetch {
		line.AddAttrs(slog.Bool("refetch", true))
	}
	line.AddAttrs(
		slog.String("answer_id", c.AnswerID),
		slog.String("run", c.Run),
		slog.String("agent", c.Agent),
		slog.String("tenant", c.Tenant),
		slog.String("upstream", c.Upstream),
		slog.String("route", e.pattern),
		slog.String("provider", a.Provider),
		slog.String("model", cmp.Or(a.Model, e.model)), // Cohere names none in its answers
		slog.Int("status", c.Status),
		slog.Bool("complete", a.Complete),
		slog.String("finish", string(a.Finish)),
		slog.Int("messages", e.messages),
		slog.String("end", r.End.String()),
		slog.Int64("bytes", c.Bytes),
		slog.Int("citations", len(a.Citations)),
		slog.Int("sources", len(a.Sources)),
		slog.Int("issues", len(a.Issues)),
		slog.Duration("first_byte", c.FirstByte),
		slog.Duration("duration", c.Duration),
		slog.Duration("capture_wait", waited),
	)
	_ = e.g.log.Handler().Handle(ctx, line) // a failing log must not fail the call
}

// traceCall records the span of a captured call, with the names of OpenTelemetry's conventions for generative AI. Its
// parent is the client's span, if the request has one.
func (e *exchange) traceCall() {
	tracer := e.g.options.Tracer
	if tracer == nil || !e.captured {
		return
	}
	const operation = "chat"
	name := strings.TrimSpace(operation + " " + e.model)
	ctx := propagation.TraceContext{}.Extract(e.in.Context(), propagation.HeaderCarrier(e.in.Header))
	_, span := tracer.Start(
		ctx, name, trace.WithTimestamp(e.started), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("gen_ai.operation.name", operation),
			attribute.String("gen_ai.provider.name", call.OTelName(e.provider())),
			attribute.String("server.address", e.up.URL.Hostname()),
			attribute.Int("http.response.status_code", e.status), attribute.String("ibid.upstream", e.up.Name),
			attribute.String("ibid.run", e.labels.run),
		),
	)
	defer span.End()
	setNonEmpty(span, "gen_ai.request.model", e.model)
	setNonEmpty(span, "gen_ai.conversation.id", e.labels.conversation)
	setNonEmpty(span, "gen_ai.agent.name", e.labels.agent)
	if e.status >= 400 {
		span.SetStatus(codes.Error, "")
	}
	a := e.answer
	if a == nil {
		return
	}
	span.SetAttributes(
		attribute.String("gen_ai.provider.name", call.OTelName(a.Provider)),
		attribute.String("ibid.answer", e.answerID), attribute.Int("ibid.citations", len(a.Citations)),
		attribute.Int("ibid.sources", len(a.Sources)), attribute.Bool("ibid.complete", a.Complete),
	)
	setNonEmpty(span, "gen_ai.response.id", a.ID)
	setNonEmpty(span, "gen_ai.response.model", a.Model)
	if a.Finish != "" {
		span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(a.Finish)}))
	}
	if a.Error != nil {
		span.SetStatus(codes.Error, "")
	}
}

// setNonEmpty sets an attribute unless its value is empty.
func setNonEmpty(span trace.Span, name, value string) {
	if value != "" {
		span.SetAttributes(attribute.String(name, value))
	}
}
