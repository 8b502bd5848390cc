package watch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
)

const (
	// MaxWorkers limits concurrent second calls.
	MaxWorkers = 16
	// MaxResponse limits the response of a second call in bytes.
	MaxResponse = 16 << 20
)

// BackfillOptions are the options of [NewBackfill].
type BackfillOptions struct {
	Rules []Rule // the first one that matches a call applies
	// Store stores a completed answer: call has everything from the first one, including its AnswerID, and an Answer
	// with the citations. It is required.
	Store func(ctx context.Context, call *store.Call) error
	// Client makes the calls; nil means http.DefaultTransport. Redirects are never followed, as they would take a key
	// elsewhere.
	Client  *http.Client
	Logger  *slog.Logger          // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics
}

// Backfill makes a second call for streams that ended without citations.
type Backfill struct {
	targets []*target
	store   func(context.Context, *store.Call) error
	client  *http.Client
	log     *slog.Logger
	results *prometheus.CounterVec

	queue *queue
}

// Job is an answer that may need a second call.
type Job struct {
	Call     *store.Call // with its answer; both are read-only from here on
	Provider string      // of the upstream that was called; empty if unknown
	URL      *url.URL    // of the upstream
	Format   string      // of the answer, for reading the request; empty to detect it
	Request  []byte      // the body of the call; read-only from here on
	// Again has sources read again that were read a short while ago: see [FirstCheck.Again].
	Again bool
	// the caller's key, see [Keys]: kept in memory until the second call is made, never stored or logged
	Keys http.Header
	// Done is called when an accepted job ends, with the call as stored with citations, or nil if there are none for
	// whatever reason. It is not called for jobs discarded when Run ends. It may be nil.
	Done func(found *store.Call)
}

// end reports that the job has ended.
func (j *Job) end(found *store.Call) {
	if j.Done != nil {
		j.Done(found)
	}
}

// NewBackfill checks the rules. It starts nothing: see [Backfill.Run].
func NewBackfill(o *BackfillOptions) (_ *Backfill, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("preparing backfill: %w", err)
		}
	}()
	if o == nil || o.Store == nil {
		return nil, errors.New("a store is missing")
	}
	b := &Backfill{
		store:  o.Store,
		client: &http.Client{},
		log:    cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		queue:  newQueue(),
	}
	if o.Client != nil {
		*b.client = *o.Client
	}
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, r := range o.Rules {
		t, err := ready(r)
		if err == nil && b.target(r.Upstream, r.Route) != nil {
			err = errors.New("an earlier rule has the same routes")
		}
		if err != nil {
			return nil, fmt.Errorf("rule for upstream %q, route %q: %w", r.Upstream, r.Route, err)
		}
		b.targets = append(b.targets, t)
	}
	b.results, err = newCounter(o.Metrics, "ibid_backfill_total",
		"Second calls for streams without citations by result.", "upstream", "result")
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Wants reports whether a rule applies to the calls of an upstream's route; otherwise there is no need to create a
// [Job].
func (b *Backfill) Wants(upstream, name string) bool { return b.target(upstream, name) != nil }

// target returns the first rule that applies, or nil.
func (b *Backfill) target(upstream, name string) *target {
	for _, t := range b.targets {
		if t.Upstream != upstream {
			continue
		}
		if fits, err := path.Match(t.Route, name); err == nil && fits || t.Route == "" || t.Route == name {
			return t
		}
	}
	return nil
}

// Offer queues a stream that has ended and reports whether a second call will be made for it. That requires a rule for
// its route, and an answer that is complete, has text but no citation, and does not wait for a tool. If the queue is
// full, the job is dropped and logged. Offer never blocks.
func (b *Backfill) Offer(j Job) bool {
	c := j.Call
	if c == nil || !b.Wants(c.Upstream, c.Route) || !fits(c) {
		return false
	}
	if b.queue.offer(&j) {
		return true
	}
	b.failed(context.Background(), &j, &failure{result: "dropped", err: errors.New("too many answers are waiting")})
	return false
}

// size returns the approximate size of a job in bytes. A call caches its encoding.
func (j *Job) size() int64 {
	record, _ := j.Call.Encode() // without one it is small
	return int64(len(j.Request) + len(record))
}

// Run makes the second calls until ctx ends. It then cancels calls in progress, discards waiting jobs, and returns nil.
func (b *Backfill) Run(ctx context.Context) error {
	b.queue.run(ctx, MaxWorkers, b.do)
	return nil
}

// do makes one second call and stores the result.
func (b *Backfill) do(ctx context.Context, j *Job) {
	call, err := b.ask(ctx, j)
	result, citations := "nothing", 0
	if err == nil && call != nil {
		result, citations = "found", len(call.Answer.Citations)
		if err = b.store(ctx, call); err != nil {
			call, err = nil, &failure{result: "not-stored", err: fmt.Errorf("storing the citations: %w", err)}
		}
	}
	defer func() { j.end(call) }()
	if err != nil {
		if ctx.Err() == nil {
			b.failed(ctx, j, err)
		}
		return
	}
	b.results.WithLabelValues(j.Call.Upstream, result).Inc()
	b.log.InfoContext(
		ctx, "asked again for citations", slog.String("answer_id", j.Call.AnswerID),
		slog.String("upstream", j.Call.Upstream), slog.Int("citations", citations),
	)
}

// failure is why there are no citations.
type failure struct {
	result string // for the counter
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failed logs one line without keys, URL queries or content.
func (b *Backfill) failed(ctx context.Context, j *Job, err error) {
	result := "error"
	if f, ok := errors.AsType[*failure](err); ok {
		result = f.result
	}
	b.results.WithLabelValues(j.Call.Upstream, result).Inc()
	b.log.WarnContext(ctx, "no citations by a second call",
		slog.String("answer_id", j.Call.AnswerID), slog.String("upstream", j.Call.Upstream),
		slog.String("provider", b.target(j.Call.Upstream, j.Call.Route).Provider),
		slog.String("result", result), slog.Any("error", err))
}

const (
	// defaultMessages is how many messages before the newest are sent along by default.
	defaultMessages = 3
	// AllMessages is the value of Rule.Messages that sends all messages.
	AllMessages = -1
	// defaultTimeout bounds a second call by default.
	defaultTimeout = 3 * time.Second
)

// Rule configures the second calls for the streams of an upstream.
type Rule struct {
	Upstream string // the upstream of the streams
	// Route is a pattern of path.Match for store.Call.Route, such as "POST /v1beta/models/*"; empty means all routes.
	Route string

	Provider string            // the provider to ask
	URL      *url.URL          // nil means the upstream's if it is the provider's, else the provider's well-known URL
	Model    string            // empty means the model of the first call, if the provider is the same
	Tools    []json.RawMessage // search tools for the second call, in the provider's format
	Messages int               // how many messages before the newest are sent along; 0 means 3
	Timeout  time.Duration     // 0 means 3 s

	// Key returns the key for calls that do not go to the upstream itself, which get the caller's key. A rule that
	// needs it fails if it is nil.
	Key func() string
}

// target is a validated rule with its provider.
type target struct {
	Rule

	provider call.Provider
	url      *url.URL // nil means the upstream's
}

// ready validates a rule and fills in its defaults.
func ready(r Rule) (*target, error) {
	t := &target{Rule: r, url: r.URL}
	var known bool
	t.provider, known = call.FindProvider(r.Provider)
	switch {
	case r.Upstream == "":
		return nil, errors.New("no upstream")
	case !known:
		return nil, fmt.Errorf("unknown provider %q", r.Provider)
	case r.Messages < AllMessages:
		return nil, fmt.Errorf("%d messages: give a number, or %d for all", r.Messages, AllMessages)
	case r.Timeout < 0:
		return nil, fmt.Errorf("negative timeout %s", r.Timeout)
	}
	if _, err := path.Match(r.Route, ""); err != nil {
		return nil, errors.New("the route is not a valid pattern")
	}
	for i, tool := range r.Tools {
		if !json.Valid(tool) {
			return nil, fmt.Errorf("tool %d is not JSON", i)
		}
	}
	t.Messages, t.Timeout = cmp.Or(t.Messages, defaultMessages), cmp.Or(t.Timeout, defaultTimeout)
	return t, nil
}

// place returns the URL of the second call for a job, and the headers with its key. The caller's key is only sent to
// where the caller sent it.
func (t *target) place(j *Job) (*url.URL, http.Header, error) {
	same := j.URL != nil && j.Provider == t.Provider && (t.url == nil || *t.url == *j.URL)
	if same {
		if len(j.Keys) == 0 {
			return nil, nil, errors.New("the caller sent no key")
		}
		return j.URL, j.Keys, nil
	}
	to := t.url
	if to == nil {
		u, err := url.Parse(t.provider.URL)
		if err != nil || u.Host == "" {
			return nil, nil, errors.New("the provider has no well-known URL: the rule needs one")
		}
		to = u
	}
	key := ""
	if t.Key != nil {
		key = t.Key()
	}
	if key == "" {
		return nil, nil, errors.New("there is no key for the provider")
	}
	return to, http.Header{http.CanonicalHeaderKey(t.provider.KeyHeader): {t.provider.KeyPrefix + key}}, nil
}

// Keys returns the headers of a request with its caller's key, for [Job.Keys]. If a provider accepts keys in the query,
// such a key is moved to the provider's header.
func Keys(r *http.Request, provider string) http.Header {
	keys := http.Header{}
	for _, name := range call.KeyHeaders() {
		if values := r.Header.Values(name); len(values) > 0 {
			keys[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
		}
	}
	p, known := call.FindProvider(provider)
	if !known || p.KeyQuery == "" {
		return keys
	}
	if key := r.URL.Query().Get(p.KeyQuery); key != "" {
		keys.Set(p.KeyHeader, p.KeyPrefix+key)
	}
	return keys
}

// fits reports whether a second call may help an answer: it is whole and has no citation, not even by a mark of the
// model's own.
func fits(c *store.Call) bool { return isWhole(c) && len(c.Answer.Citations) == 0 }

// isWhole reports whether an answer is complete, has text, and its model does not wait for a tool.
func isWhole(c *store.Call) bool {
	a := c.Answer
	return a != nil && a.Complete && a.Error == nil && a.Text != "" && a.Finish != ibid.FinishTool
}

// ask makes the second call for a job. It returns the call with its completed answer, or nil if nothing was found.
func (b *Backfill) ask(ctx context.Context, j *Job) (*store.Call, error) {
	t := b.target(j.Call.Upstream, j.Call.Route)
	first, err := call.ReadRequest(cmp.Or(j.Format, j.Call.Answer.Format), j.Request)
	if err != nil {
		return nil, &failure{"unreadable", fmt.Errorf("reading the first request: %w", err)}
	}
	messages := first.Messages
	if t.Messages != AllMessages {
		messages = call.Trim(messages, t.Messages)
	}
	model := t.Model
	if model == "" && j.Provider == t.Provider {
		model = cmp.Or(first.Model, j.Call.Answer.Model)
	}
	built, err := call.BuildRequest(
		t.Provider, &call.Chat{Model: model, Messages: messages, Tools: t.Tools, Include: true},
	)
	if err != nil {
		return nil, &failure{"unreadable", fmt.Errorf("building the second request: %w", err)}
	}
	second, masked, err := b.call(ctx, t, j, built)
	if err != nil {
		return nil, err
	}
	if len(second.Citations) == 0 && len(second.Sources) == 0 {
		return nil, nil //nolint:nilnil // nothing found is not an error
	}
	answer, err := merge(j.Call.Answer, second)
	if err != nil {
		return nil, &failure{"unreadable", err}
	}
	kept := 0
	for _, m := range messages {
		if m.Role != call.RoleTool { // left out of the request, see [call.Chat]
			kept++
		}
	}
	if kept != len(first.Messages) {
		answer.Issues = append(answer.Issues, ibid.Issue{
			Code: IssueContextDiffers,
			Detail: fmt.Sprintf(
				"the citations are from a second call that had %d of %d messages", kept, len(first.Messages),
			),
		})
	}
	c := j.Call.WithAnswer(answer)
	c.Publish = c.Publish && !masked
	return c, nil
}

// call sends the second request and decodes its answer, masking any keys that it repeats.
func (b *Backfill) call(
	ctx context.Context, t *target, j *Job, built *call.Built,
) (second *ibid.Answer, masked bool, err error) {
	base, keys, err := t.place(j)
	if err != nil {
		return nil, false, &failure{"no-key", err}
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, built.Method, address(base, built.Path), bytes.NewReader(built.Body))
	if err != nil {
		return nil, false, &failure{"error", errors.New("the provider's URL is not valid")}
	}
	for _, headers := range []http.Header{built.Header, keys} {
		maps.Copy(req.Header, headers)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return nil, false, b.cause(ctx, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, false, &failure{"refused", fmt.Errorf("the provider responded with status %d", res.StatusCode)}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, MaxResponse+1))
	if err != nil {
		return nil, false, b.cause(ctx, err)
	}
	if len(body) > MaxResponse {
		return nil, false, &failure{"too-large", fmt.Errorf("the response has more than %d bytes", MaxResponse)}
	}
	second, err = ibid.Decode(body, &ibid.DecodeOptions{Provider: t.Provider, Request: built.Body})
	switch {
	case err != nil:
		return nil, false, &failure{"unreadable", errors.New("the response is damaged")}
	case second.Error != nil:
		return nil, false, &failure{"refused", errors.New("the provider responded with an error")}
	case !second.Complete:
		return nil, false, &failure{"unreadable", errors.New("the response is incomplete")}
	}
	second, masked = call.Mask(call.KeysOf(j.Keys, keys), second)
	return second, masked, nil
}

// cause returns why a call failed, without its URL.
func (b *Backfill) cause(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &failure{"timeout", errors.New("the provider took too long")}
	}
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		err = withURL.Err
	}
	return &failure{"error", fmt.Errorf("asking the provider: %w", err)}
}

// address appends a path, which may have a query, to an upstream's URL.
func address(base *url.URL, path string) string {
	path, query, _ := strings.Cut(path, "?")
	u := base.JoinPath(path)
	u.RawQuery = strings.Trim(base.RawQuery+"&"+query, "&")
	return u.String()
}
