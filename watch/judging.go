package watch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

const (
	// judgeAtOnce is how many answers are judged at a time: it waits for a server.
	judgeAtOnce = 2
	// judgeFor bounds the judging of one answer.
	judgeFor = 5 * time.Minute
)

// IssueUnjudged is the code of the issue of an answer with claims that its judge gave no verdict on, with the reasons.
// It is listed in docs/answer.md.
const IssueUnjudged = "unjudged"

// JudgingOptions are the options of [NewJudging].
type JudgingOptions struct {
	// Checker judges the citations.
	Checker support.Checker
	// Spent returns what the checker was asked; nil disables its metrics.
	Spent func() support.Spent
	// Store stores an answer with its verdicts, like BackfillOptions.Store.
	Store   func(ctx context.Context, call *store.Call) error
	Logger  *slog.Logger          // nil disables logging
	Metrics prometheus.Registerer // nil disables metrics
}

// Judging has the citations of captured answers judged: each claim with the passages cited for it. The verdicts become
// the ibid.Citation.Support of its citations.
type Judging struct {
	options JudgingOptions
	log     *slog.Logger
	results *prometheus.CounterVec
	queue   *queue
}

// NewJudging checks the options. It starts nothing: see [Judging.Run].
func NewJudging(o *JudgingOptions) (*Judging, error) {
	if o == nil || o.Store == nil || o.Checker == nil {
		return nil, errors.New("preparing judging: a checker or a store is missing")
	}
	results, err := newCounter(
		o.Metrics, "ibid_judging_total", "Answers whose claims were given to the judge, by result.", "result",
	)
	if err == nil && o.Metrics != nil && o.Spent != nil {
		err = countSpent(o.Metrics, o.Spent)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing judging: %w", err)
	}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return &Judging{options: *o, log: log, queue: newQueue(), results: results}, nil
}

// countSpent registers what the judge was asked.
func countSpent(r prometheus.Registerer, spent func() support.Spent) error {
	for _, m := range []struct {
		name, help string
		value      func(support.Spent) float64
	}{
		{"claims", "Claims sent to the judge.", func(s support.Spent) float64 { return float64(s.Claims) }},
		{"cached", "Claims whose verdict was known.", func(s support.Spent) float64 { return float64(s.Cached) }},
		{"requests", "Requests to the judge.", func(s support.Spent) float64 { return float64(s.Requests) }},
		{
			"sent_tokens", "Tokens sent to the judge, as it counts them.",
			func(s support.Spent) float64 { return float64(s.TokensIn) },
		},
		{
			"received_tokens", "Tokens received from the judge, as it counts them.",
			func(s support.Spent) float64 { return float64(s.TokensOut) },
		},
		{
			"cost", "What the judge cost, by the configured prices; 0 without.",
			func(s support.Spent) float64 {
				if s.Cost == nil {
					return 0
				}
				return *s.Cost
			},
		},
	} {
		counter := prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "ibid_judge_" + m.name + "_total", Help: m.help},
			func() float64 { return m.value(spent()) },
		)
		if err := r.Register(counter); err != nil {
			return fmt.Errorf("registering a counter of the judge: %w", err)
		}
	}
	return nil
}

// Offer queues an answer and reports whether it will be judged, which is the case if it has a claim with a passage. If
// too many answers are waiting, it is dropped and counted. Offer never blocks. It uses only Call and Done of the job.
func (g *Judging) Offer(j Job) bool {
	if j.Call == nil || j.Call.Answer == nil || len(citedClaims(j.Call.Answer)) == 0 {
		return false
	}
	j.Request = nil
	if !g.queue.offer(&j) {
		g.results.WithLabelValues("dropped").Inc()
		return false
	}
	return true
}

// Run judges answers until ctx ends, discards those still waiting, and returns nil.
func (g *Judging) Run(ctx context.Context) error {
	g.queue.run(ctx, judgeAtOnce, g.do)
	return nil
}

// do judges one answer and stores the result.
func (g *Judging) do(ctx context.Context, j *Job) {
	work, cancel := context.WithTimeout(ctx, judgeFor)
	defer cancel()
	var judged *store.Call
	result := "error"
	err := recovered(ctx, g.log, "judging an answer", slog.String("answer_id", j.Call.AnswerID), func() (err error) {
		judged, result, err = g.judge(context.WithValue(work, tenantKey{}, j.Call.Tenant), j.Call)
		return err
	})
	defer func() { j.end(judged) }()
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		result = "error"
		g.log.WarnContext(ctx, "an answer could not be judged", slog.String("answer_id", j.Call.AnswerID),
			slog.Any("error", err))
	}
	g.results.WithLabelValues(result).Inc()
}

// judge stores the call with the verdicts and returns it. A claim without a verdict stays what words say of it, mostly
// unjudged, and an issue has the reason.
func (g *Judging) judge(ctx context.Context, c *store.Call) (judged *store.Call, result string, err error) {
	claims := citedClaims(c.Answer)
	pairs := make([]support.Pair, len(claims))
	for i := range claims {
		pairs[i] = claims[i].Pair
	}
	verdicts, err := support.CheckPairs(ctx, g.options.Checker, pairs)
	if err != nil {
		return nil, "", fmt.Errorf("asking the judge: %w", err)
	}
	answer := *c.Answer
	answer.Citations, answer.Issues = slices.Clone(answer.Citations), slices.Clone(answer.Issues)
	var reasons []string
	missed := 0
	for k := range verdicts {
		v := &verdicts[k]
		reason := ""
		if why := v.WhyUnjudged(); v.Err != nil {
			reason = "error"
		} else if why != nil {
			reason = why.Code
			if why.Detail != "" {
				reason += " (" + why.Detail + ")"
			}
		}
		if reason != "" {
			if missed++; !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
		for _, i := range claims[k].citations {
			label := cmp.Or(v.Label, support.Unjudged)
			answer.Citations[i].Support = &ibid.Support{Label: string(label), Score: v.Closeness, By: v.By}
		}
	}
	result = "judged"
	if missed > 0 {
		if result = "partly"; missed == len(verdicts) {
			result = "unjudged"
		}
		answer.Issues = append(answer.Issues, ibid.Issue{
			Code:   IssueUnjudged,
			Detail: fmt.Sprintf("%d of %d claims: %s", missed, len(verdicts), strings.Join(reasons, "; ")),
		})
	}
	judged = c.WithAnswer(&answer)
	if err := g.options.Store(ctx, judged); err != nil {
		return nil, "", fmt.Errorf("storing the verdicts: %w", err)
	}
	return judged, result, nil
}

// citedClaim is a claim, and the indices of the citations of it.
type citedClaim struct {
	support.Pair

	citations []int
}

// citedClaims returns the claims of an answer that have passages: the quotes of their refs, else the contents of their
// sources. Citations of the same words are one claim.
func citedClaims(a *ibid.Answer) (claims []citedClaim) {
	at := map[ibid.Span]int{}
	for i := range a.Citations {
		c := &a.Citations[i]
		span := cmp.Or(c.Claim, c.Span)
		if !c.Placed() || span.Start < 0 || span.Start >= span.End || span.End > len(a.Text) || isJudged(c.Support) {
			continue
		}
		var passages []support.Passage
		for k := range c.Refs {
			text := c.Refs[k].Quote
			if s := a.Source(c.Refs[k].Source); text == "" && s != nil {
				text = s.Content
			}
			if strings.TrimSpace(text) != "" {
				passages = append(passages, support.Passage{ID: c.Refs[k].Source, Text: text})
			}
		}
		claim := a.Text[span.Start:span.End]
		if len(passages) == 0 || strings.TrimSpace(claim) == "" {
			continue
		}
		n, there := at[span]
		if !there {
			n = len(claims)
			at[span] = n
			pair := support.Pair{Claim: claim, Context: verify.SentenceOf(a.Text, span)}
			claims = append(claims, citedClaim{Pair: pair})
		}
		claims[n].Passages = append(claims[n].Passages, passages...)
		claims[n].citations = append(claims[n].citations, i)
	}
	return claims
}

type tenantKey struct{}

// memoryJudged is the kind of verdicts in a [verify.Memory].
const memoryJudged = "judged"

// Verdicts keeps a judge's verdicts where the verifiers of the tenant of each answer keep their results: they have
// quotes from its passages.
type Verdicts struct {
	Memory func(tenant string) verify.Memory
	Logger *slog.Logger // nil disables logging
}

// Get implements [support.Cache].
func (v *Verdicts) Get(ctx context.Context, key [sha256.Size]byte) ([]byte, bool) {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	value, err := v.Memory(tenant).Recall(ctx, memoryJudged, hex.EncodeToString(key[:]))
	if err != nil {
		v.warn(ctx, "read", err)
	}
	return value, err == nil && value != nil
}

// Put implements [support.Cache].
func (v *Verdicts) Put(ctx context.Context, key [sha256.Size]byte, value []byte) {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	if err := v.Memory(tenant).Replace(ctx, memoryJudged, hex.EncodeToString(key[:]), value); err != nil {
		v.warn(ctx, "keep", err)
	}
}

func (v *Verdicts) warn(ctx context.Context, doing string, err error) {
	if v.Logger != nil && ctx.Err() == nil {
		v.Logger.WarnContext(ctx, "the store of verdicts failed", slog.String("doing", doing), slog.Any("error", err))
	}
}

// isJudged reports whether a citation has a verdict of more than words.
func isJudged(s *ibid.Support) bool {
	return s != nil && s.By != (&support.Lexical{}).Info().By()
}
