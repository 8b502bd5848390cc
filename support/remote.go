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

// What [Judge] and [Grounding] take of a server, unless they are told another number.
const (
	RemoteTimeout     = time.Minute // for one request
	RemoteRetries     = 2           // after a request that a server was too busy for
	remoteConcurrency = 4           // requests at a time
	maxRemoteResponse = 4 << 20     // bytes of a response
	// that a server may ask for before the next try; if it asks for more, there is none
	maxRetryWait = 30 * time.Second
)

// endpoint is one address that the operator named. It is asked whatever network it is in; it cannot send ibid
// elsewhere.
type endpoint struct {
	url            *url.URL
	keyHeader, key string
	client         *http.Client
	timeout        time.Duration
	retries        int
	firstWait      time.Duration // before the first retry, if the server does not say; doubled for each further one
}

// statusError is a response that is none.
type statusError struct {
	status int
	code   string // the server's own word for it, if it has one
	wait   time.Duration
	asks   bool // it asks to wait
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answers %d %s", e.status, http.StatusText(e.status))
	if e.status >= 300 && e.status < 400 {
		return text + ": redirects are not followed"
	}
	if e.code != "" {
		text += " (" + e.code + ")"
	}
	return text
}

// refused reports whether a server may do with another form of the request.
func refused(err error) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && (status.status == http.StatusBadRequest || status.status == http.StatusUnprocessableEntity)
}

// post sends a body and returns the response's. Errors name neither the key nor the path nor anything that was sent.
func (e *endpoint) post(ctx context.Context, body []byte) ([]byte, error) {
	waits := &backoff.ExponentialBackOff{InitialInterval: e.firstWait, Multiplier: 2, MaxInterval: maxRetryWait}
	var last error // what the server said, which is told instead of how waiting for it ended
	answer, err := backoff.Retry(ctx, func() ([]byte, error) {
		var answer []byte
		if answer, last = e.once(ctx, body); last == nil {
			return answer, nil
		}
		status, answered := errors.AsType[*statusError](last)
		end, ends := ctx.Deadline()
		switch {
		case ctx.Err() != nil, errors.Is(last, errTooLong), answered && !status.passes():
			return nil, backoff.Permanent(last)
		case !answered || !status.asks:
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

// passes reports whether another try makes sense.
func (e *statusError) passes() bool {
	switch e.status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		529: // overloaded, as some providers say
		return true
	}
	return false
}

var errTooLong = fmt.Errorf("the response is longer than %d bytes", maxRemoteResponse)

// once is one try.
func (e *endpoint) once(ctx context.Context, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is no URL") // err has it whole, and it may hold a key
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
		return nil, bareURL(err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxRemoteResponse+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the response: %w", bareURL(err))
	case response.StatusCode < 200 || response.StatusCode > 299:
		return nil, e.failure(response, answer)
	case len(answer) > maxRemoteResponse:
		return nil, errTooLong
	}
	return answer, nil
}

// failure reads a response that is no answer. Of its words only the code is kept: messages repeat keys and prompts.
func (e *endpoint) failure(response *http.Response, body []byte) error {
	s := &statusError{status: response.StatusCode}
	code, _, ok := wire.ReadError(nil, scan.Value(bytes.TrimSpace(body)))
	if ok && code != wire.UnnamedError && isCode(code) &&
		(e.key == "" || !strings.Contains(code, strings.TrimPrefix(e.key, "Bearer "))) {
		s.code = code
	}
	after := response.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil && seconds >= 0 {
		s.wait, s.asks = time.Duration(min(seconds, 1<<20))*time.Second, true
	} else if at, err := http.ParseTime(after); err == nil {
		s.wait, s.asks = max(0, time.Until(at)), true
	}
	return s
}

// isCode reports whether s is a word that a program would use for an error.
func isCode(s string) bool {
	other := strings.TrimLeft(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789_-.")
	return len(s) <= 48 && other == ""
}

// bareURL takes the address out of an error.
func bareURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// remote makes an endpoint of settings whose zero means the default.
func remote(address string, client *http.Client, timeout time.Duration, retries int) (*endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address is no http or https URL")
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

// concurrently calls f with 0 to n-1, up to limit calls at a time (0: remoteConcurrency), and returns when all have
// ended. Each must end when its context does.
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

// The limits of [Grounding]; those of the facts are the API's own.
const (
	groundingClaimBytes = 10_000 // of a claim; the API takes 4,096 tokens
	// of one claim, and pieces of evidence; a passage is one fact, or several if it is longer than groundingFactBytes
	groundingFacts     = 200
	groundingFactBytes = 10_000 // of one fact
	groundingThreshold = 0.6    // the API's own, unless Grounding.Threshold says another
)

// The codes of issues that only [Grounding] has.
const (
	issueFactsLeftOut  = "facts-left-out" // there were more facts than groundingFacts; the first were sent
	issueNoCheckNeeded = "no-check-needed"
)

// Grounding is a [Checker] that asks Google's check grounding API (Vertex AI Search, Discovery Engine). It is safe for
// concurrent use; its fields must not change once it is used.
//
// The API takes a claim as one or several sentences and cites the facts that support each. All cited: [Supported].
// Some: [Partial]. None: [Unsupported]. Facts that it names against a sentence make it [Contradicted]; only projects
// that Google let into that experiment have them. Whether a number agrees is looked at again with rules, see
// [Verdict.Changed]. [Pair.Context] is not sent. Nothing is cached.
type Grounding struct {
	// Project is the Google Cloud project, by number or id: the URL is made of it. URL is another one, whole.
	Project, URL string
	// Token returns an OAuth access token with the scope cloud-platform. It is called for every Check.
	Token     func(context.Context) (string, error)
	Threshold float64 // of a citation, in (0, 1]; 0: groundingThreshold

	Client      *http.Client // nil: one with http.DefaultTransport. Redirects are never followed
	Timeout     time.Duration
	Retries     int // 0: RemoteRetries. Negative: none
	Concurrency int // 0: remoteConcurrency
}

// Info implements [Checker]. The score is the API's, and is not calibrated by ibid.
func (g *Grounding) Info() Info {
	return Info{ID: "grounding", Version: "1", Params: paramsHash(fmt.Sprint(g.threshold()))}
}

func (g *Grounding) threshold() float64 { return cmp.Or(g.Threshold, groundingThreshold) }

// Check implements [Checker], with one request per pair. Where every request failed, the first error is returned.
func (g *Grounding) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	server, err := g.endpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking for grounding: %w", err)
	}
	verdicts := make([]Verdict, len(in))
	concurrently(len(in), g.Concurrency, func(i int) { verdicts[i] = g.check(ctx, server, &in[i]) })
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
			return nil, errors.New("no project is named")
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

// check asks about one pair.
func (g *Grounding) check(ctx context.Context, server *endpoint, p *Pair) Verdict {
	v := Verdict{Label: Unverified, By: g.Info().By(), Threshold: g.threshold()}
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
		body, err = server.post(ctx, body)
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

// factsOf cuts passages into pieces that the API takes, at white space where there is some.
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

// ground makes a verdict of what the API found.
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
		if scored = scored && c.Score != nil; scored && (v.Score == nil || *c.Score < *v.Score) {
			v.Score = c.Score // as weak as its weakest sentence
		}
	}
	if checked > 0 && !scored {
		v.Score = found.Score
	}
	if v.Score != nil && !(*v.Score >= 0 && *v.Score <= 1) {
		v.Score = nil
	}
	switch {
	case checked == 0:
		v.note(issueNoCheckNeeded, "the API found nothing in the claim that needs support")
	case len(against) > 0 && cited > 0:
		v.Label = Partial
		v.note(issueDisputed, "some facts support the claim, others contradict it")
	case len(against) > 0:
		v.Label = Contradicted
	case cited == checked:
		v.Label = Supported
	case cited > 0:
		v.Label = Partial
	default:
		v.Label = Unsupported
	}
	v.Evidence = append(v.Evidence, against...)
	if v.Label == Supported {
		v.compare(p)
	}
}

// appendChunks appends where chunks stand in the passages: those of facts that were sent, up to groundingFacts.
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
