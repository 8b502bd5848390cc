package support

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/scan"
	"github.com/ibidhq/ibid/internal/wire"
)

// Defaults and limits for the servers of [Judge] and [Grounding].
const (
	RemoteTimeout     = time.Minute // for one request
	RemoteRetries     = 2           // if the server is overloaded or fails
	remoteConcurrency = 4           // requests at a time
	maxRemoteResponse = 4 << 20     // bytes of a response
	// the longest wait that a server may ask for; if it asks for more, there is no retry
	maxRetryWait = 30 * time.Second
)

// endpoint is an address that the operator configured. It may be in any network, but it cannot redirect ibid elsewhere.
type endpoint struct {
	url            *url.URL
	keyHeader, key string
	client         *http.Client
	timeout        time.Duration
	retries        int
	firstWait      time.Duration // before the first retry, unless the server says; doubled for each further one
}

// statusError is a response with an error status.
type statusError struct {
	status  int
	code    string // the server's own error code, if it has one
	wait    time.Duration
	hasWait bool // the server asks for that wait
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status))
	if e.status >= 300 && e.status < 400 {
		return text + ": redirects are not followed"
	}
	if e.code != "" {
		text += " (" + e.code + ")"
	}
	return text
}

// refused reports whether the server may accept another form of the request.
func refused(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && (status.status == http.StatusBadRequest || status.status == http.StatusUnprocessableEntity)
}

// post sends a body and returns that of the response. Errors contain neither the key nor the path nor anything sent.
func (e *endpoint) post(ctx context.Context, body []byte) ([]byte, error) {
	waits := &backoff.ExponentialBackOff{InitialInterval: e.firstWait, Multiplier: 2, MaxInterval: maxRetryWait}
	var last error // the last try's error, returned rather than backoff's own
	answer, err := backoff.Retry(ctx, func() ([]byte, error) {
		var answer []byte
		if answer, last = e.try(ctx, body); last == nil {
			return answer, nil
		}
		status, answered := errors.AsType[*statusError](last)
		end, ends := ctx.Deadline()
		switch {
		case ctx.Err() != nil, errors.Is(last, errTooLong), answered && !status.retryable():
			return nil, backoff.Permanent(last)
		case !answered || !status.hasWait:
			return nil, last
		case status.wait > maxRetryWait, ends && time.Until(end) < status.wait:
			return nil, backoff.Permanent(last)
		}
		return nil, &backoff.RetryAfterError{Duration: status.wait}
	}, backoff.WithBackOff(waits), backoff.WithMaxTries(uint(e.retries)+1), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return nil, last
	}
	return answer, nil
}

// retryable reports whether a retry makes sense.
func (e *statusError) retryable() bool {
	switch e.status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		529: // overloaded, with some providers
		return true
	}
	return false
}

var errTooLong = fmt.Errorf("the response is longer than %d bytes", maxRemoteResponse)

// try makes one request.
func (e *endpoint) try(ctx context.Context, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is not a URL") // err contains the whole address, which may contain a key
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if e.key != "" {
		r.Header.Set(e.keyHeader, e.key)
	}
	client := http.Client{}
	if e.client != nil {
		client = *e.client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxRemoteResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the response: %w", withoutURL(err))
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, e.failure(response, answer)
	case len(answer) > maxRemoteResponse:
		return nil, errTooLong
	}
	return answer, nil
}

// failure reads an error response. It keeps only the code: messages repeat keys and prompts.
func (e *endpoint) failure(response *http.Response, body []byte) error {
	s := &statusError{status: response.StatusCode}
	code, _, ok := wire.ReadError(nil, scan.Value(bytes.TrimSpace(body)))
	if ok && code != wire.UnnamedError && isCode(code) &&
		(e.key == "" || !strings.Contains(code, strings.TrimPrefix(e.key, "Bearer "))) {
		s.code = code
	}
	after := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		s.wait, s.hasWait = time.Duration(min(seconds, 1<<20))*time.Second, true
	} else if at, err := http.ParseTime(after); err == nil {
		s.wait, s.hasWait = max(0, time.Until(at)), true
	}
	return s
}

// isCode reports whether s looks like an error code.
func isCode(s string) bool {
	other := strings.TrimLeft(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-.")
	return len(s) <= 48 && other == ""
}

// withoutURL removes the address from an error.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// remote returns an endpoint. A zero timeout or number of retries means the default.
func remote(address string, client *http.Client, timeout time.Duration, retries int) (*endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address is not an http or https URL")
	}
	if retries == 0 {
		retries = RemoteRetries
	}
	return &endpoint{
		url:       u,
		client:    client,
		timeout:   cmp.Or(timeout, RemoteTimeout),
		retries:   max(0, retries),
		firstWait: time.Second / 2,
	}, nil
}

// concurrently calls f with 0 to n-1, up to limit calls at a time (0 means remoteConcurrency), and returns when all
// have returned. Each must return when its context ends.
func concurrently(n, limit int, f func(i int)) {
	turns := make(chan struct{}, max(1, cmp.Or(limit, remoteConcurrency)))
	var calls sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		calls.Go(func() {
			defer func() { <-turns }()
			f(i)
		})
	}
	calls.Wait()
}

// The limits of [Grounding]; those on facts are the API's own.
const (
	groundingClaimBytes = 10_000 // bytes of a claim; the API takes 4,096 tokens
	// facts per claim, and pieces of evidence; a passage longer than groundingFactBytes is several facts
	groundingFacts     = 200
	groundingFactBytes = 10_000 // bytes of a fact
	groundingThreshold = 0.6    // the API's own default
)

// The codes of [Grounding]'s own issues.
const (
	issueFactsLeftOut  = "facts-left-out" // there were too many facts; only the first were sent
	issueNoCheckNeeded = "no-check-needed"
	issueDisputed      = "disputed" // some facts support the claim, others contradict it
)

// Grounding is a [Checker] that asks Google's check grounding API (Vertex AI Search, Discovery Engine). It is safe for
// concurrent use; its fields must not change after first use.
//
// The API splits a claim into sentences and cites the facts that support each. If all are cited, the claim is
// [Supported], else [Unsupported]. Facts that it returns against a sentence make the
// claim [Contradicted]; only projects that Google admitted to that experiment get them. [Pair.Context] is not sent.
// Nothing is cached.
type Grounding struct {
	// Project is the Google Cloud project, by number or id, from which the URL is built. URL is a full one to use
	// instead.
	Project, URL string
	// Token returns an OAuth access token with the scope cloud-platform. Each Check calls it.
	Token     func(context.Context) (string, error)
	Threshold float64 // the least score of a citation, in (0, 1]; 0 means 0.6

	Meter       *Meter       // counts and limits requests; nil means neither
	Client      *http.Client // nil means one with http.DefaultTransport; redirects are never followed
	Timeout     time.Duration
	Retries     int // 0 means RemoteRetries, negative none
	Concurrency int // requests at a time; 0 means 4
}

// Info implements [Checker]. The score is the API's own; ibid has not calibrated it.
func (g *Grounding) Info() Info {
	return Info{ID: "grounding", Version: "1", Params: paramsHash(fmt.Sprint(g.threshold()))}
}

func (g *Grounding) threshold() float64 { return cmp.Or(g.Threshold, groundingThreshold) }

// Check implements [Checker], with one request per pair. If every request failed, it returns the first error.
func (g *Grounding) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	server, err := g.endpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for grounding: %w", err)
	}
	verdicts := make([]Verdict, len(in))
	allowed := g.Meter.allowed(len(in))
	for i := range in[allowed:] {
		verdicts[allowed+i] = Verdict{Label: Unjudged, By: g.Info().By(), Err: g.Meter.overAnswer()}
	}
	concurrently(allowed, g.Concurrency, func(i int) { verdicts[i] = g.check(ctx, server, &in[i]) })
	judged := func(v Verdict) bool { return v.Err == nil }
	if len(in) > 0 && !slices.ContainsFunc(verdicts, judged) {
		return nil, verdicts[0].Err
	}
	return verdicts, nil
}

func (g *Grounding) endpoint(ctx context.Context) (*endpoint, error) {
	address := g.URL
	if address == "" {
		if g.Project == "" || strings.ContainsAny(g.Project, "/?#%") {
			return nil, errors.New("no project is set")
		}
		address = "https://discoveryengine.googleapis.com/v1/projects/" + g.Project +
			"/locations/global/groundingConfigs/default_grounding_config:check"
	}
	e, err := remote(address, g.Client, g.Timeout, g.Retries)
	if err != nil {
		return nil, err
	}
	if g.Token != nil {
		token, err := g.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("getting a token: %w", err)
		}
		e.keyHeader, e.key = "Authorization", "Bearer "+token
	}
	return e, nil
}

// check judges one pair.
func (g *Grounding) check(ctx context.Context, server *endpoint, p *Pair) Verdict {
	v := Verdict{Label: Unjudged, By: g.Info().By()}
	switch {
	case strings.TrimSpace(p.Claim) == "":
		v.Err = errors.New("the claim is empty")
	case len(p.Claim) > groundingClaimBytes:
		v.Err = fmt.Errorf("the claim is longer than %d bytes", groundingClaimBytes)
	}
	facts := factsOf(p.Passages)
	if v.Err != nil || len(facts) == 0 {
		return v
	}
	if p.Context != "" {
		v.note(issueContextNotSent, "the API has no place for it")
	}
	if len(facts) > groundingFacts {
		v.note(issueFactsLeftOut, "%d of %d facts were sent", groundingFacts, len(facts))
		facts = facts[:groundingFacts]
	}
	request := call.GroundingCheck{Text: p.Claim, Threshold: g.Threshold}
	for _, f := range facts {
		request.Facts = append(request.Facts, p.Passages[f.Passage].Text[f.Start:f.End])
	}
	body, err := request.Body()
	if err == nil {
		if body, err = server.metered(ctx, g.Meter, body); err == nil {
			g.Meter.add(1, 0, 0, 0)
		}
	}
	var found *call.Grounding
	if err == nil {
		found, err = call.ReadGrounding(body)
	}
	if err != nil {
		v.Err = fmt.Errorf("asking for grounding: %w", err)
		return v
	}
	v.ground(p, found, facts)
	return v
}

// factsOf splits passages into facts of a size that the API accepts, at white space if possible.
func factsOf(passages []Passage) []Span {
	var facts []Span
	for i := range passages {
		fact, from := passages[i].Text, 0
		for len(fact)-from > groundingFactBytes {
			end := from + len(text.Head(fact[from:], groundingFactBytes))
			if space := strings.LastIndexAny(fact[from:end], " \n\t"); space > groundingFactBytes/2 {
				end = from + space + 1
			}
			facts = append(facts, Span{i, ibid.Span{Start: from, End: end}})
			from = end
		}
		if strings.TrimSpace(fact[from:]) != "" {
			facts = append(facts, Span{i, ibid.Span{Start: from, End: len(fact)}})
		}
	}
	return facts
}

// ground turns the API's findings into a verdict.
func (v *Verdict) ground(p *Pair, found *call.Grounding, facts []Span) {
	var checked, cited int
	var against []Span
	scored := true
	for i := range found.Claims {
		c := &found.Claims[i]
		if c.Unchecked {
			continue
		}
		checked++
		if len(c.For) > 0 {
			cited++
		}
		v.Evidence = appendChunks(v.Evidence, p, found, facts, c.For)
		against = appendChunks(against, p, found, facts, c.Against)
		if scored = scored && c.Score != nil; scored && (v.Closeness == nil || *c.Score < *v.Closeness) {
			v.Closeness = c.Score // the score of the weakest sentence
		}
	}
	if checked > 0 && !scored {
		v.Closeness = found.Score
	}
	if v.Closeness != nil && !(*v.Closeness >= 0 && *v.Closeness <= 1) {
		v.Closeness = nil
	}
	switch {
	case checked == 0:
		v.note(issueNoCheckNeeded, "the API found nothing in the claim that needs support")
	case len(against) > 0 && cited > 0:
		v.note(issueDisputed, "some facts support the claim, others contradict it")
	case len(against) > 0:
		v.Label = Contradicted
	case cited == checked:
		v.Label = Supported
	default:
		v.Label = Unsupported
	}
	v.Evidence = append(v.Evidence, against...)
}

// appendChunks appends the spans of chunks in the passages, up to groundingFacts.
func appendChunks(all []Span, p *Pair, found *call.Grounding, facts []Span, chunks []int) []Span {
	for _, i := range chunks {
		chunk := &found.Chunks[i]
		if len(all) == groundingFacts {
			break
		}
		if chunk.Fact < 0 || chunk.Fact >= len(facts) {
			continue
		}
		at := facts[chunk.Fact]
		if in, ok := findQuote(p.Passages[at.Passage].Text[at.Start:at.End], chunk.Text); ok {
			at.Start, at.End = at.Start+in.Start, at.Start+in.End
		}
		all = append(all, at)
	}
	return all
}
