package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	calls "github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/store"
)

// Provider is a provider that can be asked.
type Provider struct {
	Upstream     string            // its name at the gateway, by which questions refer to it
	Provider     string            // whose API it uses: one that ibid can write requests for
	Model        string            // for questions that name none; empty if they must name one
	Key          string            // sent in the provider's own header; empty for none
	HasKey       bool              // set by [Chat.Providers], which does not return the key
	KeyEnv       string            // the variables that it is read from, for people; empty if from none
	Tools        []json.RawMessage // for questions without tools, in the provider's own format
	Instructions string            // sent before every conversation; may be empty
}

// Options configure a Chat.
type Options struct {
	Gateway   *gateway.Gateway // required
	Guard     *gateway.Guard   // required
	Store     *store.Store     // required
	Providers []Provider       // required; the first one is asked if a question names none
	// Late is how long at most a stream stays open while a second call or attribution searches for citations of an
	// answer that came without any; it ends with the search. With 0 it does not stay open.
	Late time.Duration
	// Silence is how long a provider may send nothing before its call is ended; 0 means [maxSilence]. While there are
	// no followers it is [maxSilenceAlone], if that is less.
	Silence time.Duration
	Logger  *slog.Logger          // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics
}

// Chat serves POST /v1/chat, and GET and DELETE /v1/chat/{id}/stream. Its methods may be called concurrently.
type Chat struct {
	options Options
	log     *slog.Logger
	asked   *prometheus.CounterVec // questions, by upstream and result
	mux     *httpx.Mux
	reader  httpx.Reader
	turns   turns
	bodies  *httpx.Bodies // questions, until their answers begin, or longer if they are needed to read these

	recheckEvery time.Duration

	running sync.WaitGroup  // the calls
	closing context.Context // canceled by Close: late citations are no longer awaited
	close   context.CancelFunc
	ending  context.Context // canceled when Close has waited long enough: calls are aborted
	end     context.CancelFunc
}

// New returns a Chat. The error names the provider that is not valid.
func New(o *Options) (*Chat, error) {
	if o == nil || o.Gateway == nil || o.Guard == nil || o.Store == nil || len(o.Providers) == 0 {
		return nil, errors.New("make the chat: it needs a gateway, a guard, a store and a provider")
	}
	c := &Chat{
		options:      *o,
		log:          o.Logger,
		bodies:       httpx.NewBodies(o.Gateway, MaxRequest),
		recheckEvery: recheckEvery,
		turns:        turns{open: httpx.Quota{Most: MaxTurns}},
	}
	c.reader = httpx.Reader{Store: o.Store, Gateway: o.Gateway, Logger: c.log, Wait: catchUp}
	c.options.Providers = slices.Clone(o.Providers)
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	for i := range o.Providers {
		if err := o.Providers[i].check(o.Providers[:i]); err != nil {
			return nil, fmt.Errorf("make the chat: %q: %w", o.Providers[i].Upstream, err)
		}
	}
	c.asked = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ibid_chat_questions_total",
		Help: "Questions asked by /v1/chat or the page, by upstream and result.",
	}, []string{"upstream", "result"})
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ibid_chat_open", Help: "Questions that are being answered.",
	}, func() float64 { return float64(c.turns.open.Total()) })
	for _, m := range []prometheus.Collector{c.asked, open} {
		if o.Metrics == nil {
			break
		}
		if err := o.Metrics.Register(m); err != nil {
			return nil, fmt.Errorf("make the chat: register its metrics: %w", err)
		}
	}
	c.closing, c.close = context.WithCancel(context.Background())
	c.ending, c.end = context.WithCancel(context.Background())
	c.mux = httpx.NewMux(c.routes(), &httpx.Options{Guard: o.Guard, Logger: c.log})
	return c, nil
}

// Routes returns the endpoints of a Chat as data: their handlers cannot be called.
func Routes() []httpx.Route { return (&Chat{}).routes() }

// routes returns the endpoints.
func (c *Chat) routes() []httpx.Route {
	form := []httpx.Param{
		httpx.AnyOf("stream: the form of the response; by default, the request and Accept decide", formNames...),
		httpx.AnyOf("unit: the unit of offsets; defaults to that of the form", text.Strings(ibid.Units())...),
	}
	media := []string{"text/event-stream"}
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/chat", Scope: store.ScopeProxy, Params: form, Handle: c.postQuestion,
			Fail: c.fail, Sentences: true, Stays: true,
			Doc: "Asks a provider and streams its answer with citations as server-sent events, or returns one answer " +
				"document with stream=no. Requests of the AI SDK's useChat are accepted too.",
			Request: body{}, Response: ibid.Document{}, Media: media, MaxBody: MaxRequest,
			Problems: []string{
				gateway.CodePolicy, gateway.CodeTooMany, gateway.CodeUpstream, gateway.CodeUpstreamSlow,
			},
			Example: `{"messages": [{"role": "user", "content": "How high is Ararat?"}]}`,
		},
		{
			Pattern: "/v1/chat/{id}/stream", Scope: store.ScopeRead, Params: form, Handle: c.resume, Fail: c.fail,
			Sentences: true, Stays: true,
			Doc: "Streams an unfinished answer: what has arrived so far, and the rest as it arrives. 204 if there is " +
				"none.",
			Response: ibid.Document{}, Media: media, Status: []int{200, 204},
		},
		{
			Method: "DELETE", Pattern: "/v1/chat/{id}/stream", Scope: store.ScopeProxy, Handle: c.stop,
			Doc: "Stops an unfinished answer.", Status: []int{204},
		},
	}
}

// check returns what is wrong with a provider that follows others.
func (p *Provider) check(before []Provider) error {
	if slices.ContainsFunc(before, func(other Provider) bool { return other.Upstream == p.Upstream }) {
		return errors.New("it is listed twice")
	}
	if p.Upstream == "" {
		return errors.New("it has no upstream")
	}
	for _, tool := range p.Tools {
		if !json.Valid(tool) {
			return errors.New("a tool is not JSON")
		}
	}
	probe := calls.Chat{Model: "m", Messages: []calls.Message{{Role: calls.RoleUser, Text: "?"}}}
	_, err := calls.BuildRequest(p.Provider, &probe)
	return err
}

// Providers returns the providers that can be asked, without their keys.
func (c *Chat) Providers() []Provider {
	list := slices.Clone(c.options.Providers)
	for i := range list {
		list[i].HasKey, list[i].Key = list[i].Key != "", ""
	}
	return list
}

// ServeHTTP serves the paths of a Chat. Any other path is a 404.
func (c *Chat) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// Close accepts no more questions, stops waiting for late citations, and returns when all calls have ended and their
// answers were sent. When ctx ends it aborts the remaining calls and returns its error. Call it before closing the
// gateway, and while the server shuts down, which waits for the streams.
func (c *Chat) Close(ctx context.Context) error {
	c.turns.close()
	c.close()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = fmt.Errorf("end the chat: calls are broken off: %w", ctx.Err())
	}
	c.end()
	<-ended
	return err
}

// The results of a question, as values of the metric.
const (
	resultAnswered = "answered" // complete
	resultBroken   = "broken"   // it began, but did not end well
	resultRefused  = "refused"  // there was no answer
)
