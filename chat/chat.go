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

// Provider is somebody who can be asked.
type Provider struct {
	Upstream     string            // its name at the gateway, which is also the name that questions call it by
	Provider     string            // whose API it speaks: one that ibid can write requests for
	Model        string            // the model of questions that name none; empty: they have to
	Key          string            // sent in the provider's own header; empty: none is
	HasKey       bool              // said by [Chat.Providers], which does not say the key
	Tools        []json.RawMessage // of questions that bring none, in the provider's own words
	Instructions string            // stand before every conversation; empty: none do
}

// Options are what a Chat works with.
type Options struct {
	Gateway   *gateway.Gateway // needed
	Guard     *gateway.Guard   // needed
	Store     *store.Store     // needed
	Providers []Provider       // the first one is asked when a question names none; needed
	// Late is how long a stream stays open at most while citations are searched for that the answer came without, by a
	// second call or by attribution; it ends with the search. 0: it does not stay open.
	Late time.Duration
	// Silence is how long a provider may say nothing before its call is ended; 0: [maxSilence]. While nobody follows it
	// is [maxSilenceAlone], if that is less.
	Silence time.Duration
	Logger  *slog.Logger          // nil: nothing is logged
	Metrics prometheus.Registerer // nil: nothing is registered
}

// Chat answers POST /v1/chat, and GET and DELETE /v1/chat/{id}/stream. Its methods may be called at the same time.
type Chat struct {
	options Options
	log     *slog.Logger
	asked   *prometheus.CounterVec // questions, by upstream and what came of them
	mux     *httpx.Mux
	reader  httpx.Reader
	turns   turns
	bodies  *httpx.Bodies // questions, until their answers begin, and longer where they are needed to read those

	stillEvery time.Duration

	running sync.WaitGroup  // the calls
	closing context.Context // ended by Close: nobody waits for late citations any more
	close   context.CancelFunc
	ending  context.Context // ended when Close has waited enough: calls are broken off
	end     context.CancelFunc
}

// New returns a Chat. The error says which provider is no good.
func New(o *Options) (*Chat, error) {
	if o == nil || o.Gateway == nil || o.Guard == nil || o.Store == nil || len(o.Providers) == 0 {
		return nil, errors.New("make the chat: it needs a gateway, a guard, a store and a provider")
	}
	c := &Chat{
		options:    *o,
		log:        o.Logger,
		bodies:     httpx.NewBodies(maxReading, MaxRequest),
		stillEvery: stillEvery,
		turns:      turns{open: httpx.Quota{Most: MaxTurns}},
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
		Help: "Questions that were put by /v1/chat or the page, by upstream and what came of them.",
	}, []string{"upstream", "result"})
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ibid_chat_open", Help: "Questions that are being answered now.",
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

// routes are the endpoints.
func (c *Chat) routes() []httpx.Route {
	form := []httpx.Param{
		httpx.AnyOf("stream: the form of the response; by default, the request and Accept decide", formNames...),
		httpx.AnyOf("unit: the unit of offsets; defaults to that of the form", text.Strings(ibid.Units())...),
	}
	media := []string{"text/event-stream"}
	return []httpx.Route{
		{
			Method: "POST", Pattern: "/v1/chat", Scope: store.ScopeProxy, Params: form, Handle: c.postQuestion,
			Fail: c.fail, Sentences: true,
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
			Sentences: true,
			Doc:       "Streams an unfinished answer: what has arrived so far, and the rest as it arrives. 204 if there is none.",
			Response:  ibid.Document{}, Media: media, Status: []int{200, 204},
		},
		{
			Method: "DELETE", Pattern: "/v1/chat/{id}/stream", Scope: store.ScopeProxy, Handle: c.stop,
			Doc: "Stops an unfinished answer.", Status: []int{204},
		},
	}
}

// check says what is wrong with a provider that stands behind others.
func (p *Provider) check(before []Provider) error {
	if slices.ContainsFunc(before, func(other Provider) bool { return other.Upstream == p.Upstream }) {
		return errors.New("it is there twice")
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

// Providers returns who can be asked, without keys.
func (c *Chat) Providers() []Provider {
	list := slices.Clone(c.options.Providers)
	for i := range list {
		list[i].HasKey, list[i].Key = list[i].Key != "", ""
	}
	return list
}

// ServeHTTP answers a request for one of the paths of a Chat. Other paths get a 404.
func (c *Chat) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// Close takes no more questions, waits for late citations no more, and returns when all calls have ended and told their
// answers. When ctx ends it breaks off those that have not, and returns its error. Close it before the gateway, and
// while the server shuts down, which waits for the streams.
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

// The results of a question, as the metric has them.
const (
	resultAnswered = "answered" // whole
	resultBroken   = "broken"   // it began, and did not end well
	resultRefused  = "refused"  // there was no answer
)
