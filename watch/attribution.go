package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/experiment"
	"github.com/ibidhq/ibid/internal/call"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/trail"
)

const (
	// attributeAtOnce is how many answers are attributed at a time: it is CPU-bound.
	attributeAtOnce = 2
	// attributeFor bounds the attribution of one answer.
	attributeFor = 30 * time.Second
)

// AttributionOptions are the options of [NewAttribution].
type AttributionOptions struct {
	// Choose returns the strategy of a run, always the same one. If it is nil, or not PostHoc, the run's answers are
	// left unchanged. It must be safe for concurrent use.
	Choose func(run string) *experiment.Strategy
	// Checkers are the checkers of strategies whose checker is not experiment.CheckerLexical, by
	// experiment.Strategy.ID.
	Checkers map[string]support.Checker
	// Store stores an answer with new citations, like BackfillOptions.Store.
	Store func(ctx context.Context, call *store.Call) error
	// Trail returns a run as recorded so far, for the sources that its steps retrieved. It may be nil.
	Trail   func(ctx context.Context, tenant, run string) (*trail.Trail, error)
	Logger  *slog.Logger          // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics
}

// Attribution adds citations to answers whose provider sent none: each sentence that a source supports, with a score,
// and that the model itself did not mark with one, gets a citation with the origin "inferred". The sources are what
// the model was given: documents and tool results in the request, sources that the answer lists, and what the run's
// steps retrieved.
type Attribution struct {
	options AttributionOptions
	log     *slog.Logger
	results *prometheus.CounterVec
	queue   *queue
}

// NewAttribution checks the options. It starts nothing: see [Attribution.Run].
func NewAttribution(o *AttributionOptions) (*Attribution, error) {
	if o == nil || o.Store == nil || o.Choose == nil {
		return nil, errors.New("preparing attribution: strategies or a store are missing")
	}
	results, err := newCounter(o.Metrics, "ibid_attribution_total",
		"Answers without citations compared with their model's input, by strategy and result.",
		"strategy", "result")
	if err != nil {
		return nil, fmt.Errorf("preparing attribution: %w", err)
	}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Attribution{options: *o, log: log, queue: newQueue(), results: results}, nil
}

// Strategy returns the name and version of a run's strategy, or "" if it has none.
func (a *Attribution) Strategy(run string) string {
	if s := a.options.Choose(run); s != nil {
		return s.ID()
	}
	return ""
}

// Wants reports whether the run's strategy adds citations; otherwise there is no need to create a [Job].
func (a *Attribution) Wants(run string) bool {
	s := a.options.Choose(run)
	return s != nil && s.PostHoc
}

// Offer queues an answer and reports whether it will be attributed, which is the case if it is complete, has text and
// no citation but by the model's own marks, and its run's strategy is PostHoc. If too many answers are waiting, it is
// dropped and counted. Offer never blocks. It ignores Keys and URL of the job.
func (a *Attribution) Offer(j Job) bool {
	c := j.Call
	if c == nil || !isWhole(c) || slices.ContainsFunc(c.Answer.Citations, isProviders) {
		return false
	}
	s := a.options.Choose(c.Run)
	if s == nil || !s.PostHoc {
		return false
	}
	if !a.queue.offer(&j) {
		a.results.WithLabelValues(s.ID(), "dropped").Inc()
		return false
	}
	return true
}

// isProviders reports whether a citation is the provider's or was found before: not read from the text.
func isProviders(c ibid.Citation) bool { return c.Origin != ibid.OriginMarker }

// Run attributes answers until ctx ends, discards those still waiting, and returns nil.
func (a *Attribution) Run(ctx context.Context) error {
	a.queue.run(ctx, attributeAtOnce, a.do)
	return nil
}

// do attributes one answer and stores the result.
func (a *Attribution) do(ctx context.Context, j *Job) {
	s := a.options.Choose(j.Call.Run)
	work, cancel := context.WithTimeout(ctx, attributeFor)
	defer cancel()
	found, err := a.attribute(work, j, s)
	defer func() { j.end(found) }()
	result := "found"
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		result = "error"
		a.log.WarnContext(ctx, "an answer could not be attributed", slog.String("answer_id", j.Call.AnswerID),
			slog.String("strategy", s.ID()), slog.Any("error", err))
	case found == nil:
		result = "nothing"
	}
	a.results.WithLabelValues(s.ID(), result).Inc()
}

// attribute stores the call with the new citations and returns it, or nil if there are none.
func (a *Attribution) attribute(ctx context.Context, j *Job, s *experiment.Strategy) (*store.Call, error) {
	checker := a.options.Checkers[s.ID()]
	if checker == nil && s.Checker != experiment.CheckerLexical {
		return nil, fmt.Errorf("there is no checker %q", s.Checker)
	}
	sources, err := a.sources(ctx, j)
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	found, err := support.Attribute(ctx, j.Call.Answer, sources, &support.AttributeOptions{
		Threshold:   s.Threshold,
		PerSentence: s.PerSentence,
		Checker:     checker,
		ByScore:     s.Scorer == experiment.ScorerRetriever,
	})
	if err != nil || len(found.Answer.Citations) == len(j.Call.Answer.Citations) {
		return nil, err
	}
	call := j.Call.WithAnswer(found.Answer)
	if err := a.options.Store(ctx, call); err != nil {
		return nil, fmt.Errorf("storing the citations: %w", err)
	}
	return call, nil
}

// sources returns the model's input.
func (a *Attribution) sources(ctx context.Context, j *Job) ([]support.Document, error) {
	var list []trail.Source
	if a.options.Trail != nil && j.Call.Run != "" { // retrieved by the steps of the run
		t, err := a.options.Trail(ctx, j.Call.Tenant, j.Call.Run)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("reading the run: %w", err)
		}
		if err == nil {
			for i := range t.Steps {
				list = append(list, t.Steps[i].Sources...)
			}
		}
	}
	request, err := call.ReadRequest(j.Format, j.Request)
	if err != nil {
		return documents(list), nil //nolint:nilerr // a request that cannot be read gave no sources
	}
	for _, m := range request.Messages { // documents in a prompt, and tool results
		if m.Role == call.RoleAssistant {
			continue
		}
		given := trail.SourcesFromPrompt(m.Text)
		if len(given) == 0 && m.Role == call.RoleTool && strings.TrimSpace(m.Text) != "" {
			given = []trail.Source{{Title: "tool result", Content: m.Text}}
		}
		list = append(list, given...)
	}
	return documents(list), nil
}

// documents returns the sources as documents for attribution, without duplicate texts; the first name of a text counts.
// An id that is only a position is dropped: other requests number their documents likewise.
func documents(list []trail.Source) []support.Document {
	var out []support.Document
	seen := map[string]bool{}
	for i := range list {
		s := &list[i]
		text := cmp.Or(s.Content, s.Excerpt)
		if strings.TrimSpace(text) == "" || seen[text] {
			continue
		}
		seen[text] = true
		source := ibid.Source{Kind: ibid.DocumentKind, Title: s.Title, URL: s.URL}
		if !s.Counted() {
			source.ID = s.DocumentID
		}
		if id, ok := strings.CutPrefix(s.Key, "#"); ok { // in the format of ibid.Source.Key
			source.GlobalID = id
		}
		if s.URL != "" {
			source.Kind = ibid.Web
		}
		if s.Relevance != nil && s.Origin == ibid.ScoreRetriever {
			source.Score, source.ScoreOrigin = s.Relevance, s.Origin
		}
		out = append(out, support.Document{Source: source, Text: text})
	}
	return out
}
