package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/support"
	"github.com/ibidhq/ibid/verify"
)

// PolicyHeader is the response header with the names of the policies that the answer violates, or [NotChecked].
const PolicyHeader = "Ibid-Policy"

// NotChecked is the value of [PolicyHeader] for an answer that was passed on without being checked.
const NotChecked = "not-checked"

// The names of the policies.
const (
	PolicyCitations = "require-citations" // an answer with text must have a citation
	PolicyDiffers   = "differs"           // no claim may differ from the words quoted for it
	PolicyAltered   = "altered"           // quotes must be in the last copy of their source, if it is recent
)

// Action is what is done about an answer that violates a policy. Each action includes the milder ones.
type Action string

// The actions, mildest first. The empty action disables a policy.
const (
	Note   Action = "note"   // an alert
	Header Action = "header" // also [PolicyHeader], if the response is no stream
	Block  Action = "block"  // also a 422 in place of the response, if that is no stream; the answer is kept
)

// Actions returns all actions, mildest first.
func Actions() []Action { return []Action{Note, Header, Block} }

// Policies are the actions for the answers of an upstream or a tenant. If both have policies, the stricter action
// counts.
type Policies struct{ RequireCitations, Differs, Altered Action }

// Tenant holds the settings of a tenant.
type Tenant struct {
	Policies *Policies // in addition to the upstream's; may be nil
	// Quota limits the encoded size of the tenant's stored answers in bytes; zero means no limit. Once it is exceeded,
	// new answers are passed on but not kept. Answers under way, and on other nodes, may exceed it slightly.
	Quota int64
}

const (
	// PolicyTime is how long a response waits for its answer to be checked. After that it is passed on.
	PolicyTime = 250 * time.Millisecond
	// maxJudged is how many answers are checked at a time; a tenant has half of them and a token a quarter. Beyond
	// that, answers are passed on unchecked.
	maxJudged = 32
	// MaxJudgedClaims is how many claims of an answer are checked. An answer with more counts as not checked, unless
	// one of these violates a policy.
	MaxJudgedClaims = 1000
	// alteredAge is the largest age of a source's copy in which quotes are looked up.
	alteredAge = 7 * 24 * time.Hour
)

// stricter returns the stricter of two actions.
func stricter(a, b Action) Action {
	if slices.Index(Actions(), a) > slices.Index(Actions(), b) {
		return a
	}
	return b
}

// and returns the stricter action for each policy; nil means no policies.
func (p *Policies) and(q *Policies) *Policies {
	switch {
	case p == nil:
		return q
	case q == nil:
		return p
	}
	return &Policies{
		stricter(p.RequireCitations, q.RequireCitations), stricter(p.Differs, q.Differs),
		stricter(p.Altered, q.Altered),
	}
}

// strictest returns the strictest action of all policies.
func (p *Policies) strictest() Action {
	if p == nil {
		return ""
	}
	return stricter(p.RequireCitations, stricter(p.Differs, p.Altered))
}

// check returns an error if an action is unknown.
func (p *Policies) check() error {
	if p == nil {
		return nil
	}
	for _, a := range []Action{p.RequireCitations, p.Differs, p.Altered} {
		if a != "" && !slices.Contains(Actions(), a) {
			return fmt.Errorf("policies: %q must be note, header or block", a)
		}
	}
	return nil
}

// policies returns the policies for an upstream and a tenant, or nil if there are none.
func (g *Gateway) policies(upstream, tenant string) *Policies {
	if !g.policed {
		return nil
	}
	var p *Policies
	if u := g.upstreams[upstream]; u != nil {
		p = u.Policies
	}
	return p.and(g.options.Tenants[tenant].Policies)
}

// finding is a violation of a policy.
type finding struct {
	policy  string
	action  Action
	kind    store.AlertKind
	source  string // the source's URL; empty if it concerns the whole answer
	summary string // a sentence
}

// judged is an answer to be checked against policies.
type judged struct {
	who      Identity // its caller
	upstream string
	id       string // empty if it is not kept
	answer   *ibid.Answer
	policies *Policies
	searched bool // citations may still be found for it
	held     bool // its response is held, so that the client receives all of it or nothing
}

// Judge checks an answer against the policies of its tenant and upstream and raises alerts for violations. It returns
// the value for [PolicyHeader], empty for none, and the problem to send in place of the answer, or nil to pass it on.
// Judge is for responses that are no streams, and takes at most [PolicyTime].
func (g *Gateway) Judge(tenant, upstream, answerID string, a *ibid.Answer) (header string, blocked *Problem) {
	j := &judged{
		who: Identity{Tenant: tenant}, upstream: upstream, id: answerID, answer: a,
		policies: g.policies(upstream, tenant),
	}
	if j.policies == nil {
		return "", nil
	}
	return g.judge(j)
}

func (g *Gateway) judge(j *judged) (header string, blocked *Problem) {
	found, err := g.findings(j)
	for i := range found {
		f := &found[i]
		g.metrics.policies.WithLabelValues(f.policy, string(f.action)).Inc()
		subject := store.AlertSubject{AnswerID: j.id, Source: f.source}
		if j.id == "" { // the answer cannot be looked up: once a day is enough
			subject.Upstream, subject.Since = j.upstream, time.Now().UTC().Format(time.DateOnly)
		}
		g.alert(&store.Alert{Kind: f.kind, Tenant: j.who.Tenant, Subject: subject, Summary: f.summary})
	}
	var names, blocking []string
	for i := range found {
		f := &found[i]
		if f.action != Note && !slices.Contains(names, f.policy) {
			names = append(names, f.policy)
		}
		if f.action == Block {
			blocking = append(blocking, f.summary)
		}
	}
	if len(blocking) > 0 {
		hint := "the policies are in the operator's configuration"
		if j.id != "" {
			hint = "it is kept: GET /v1/answers/" + j.id + "; " + hint
		}
		blocked = NewProblem(CodePolicy, "the answer violates a policy: "+strings.Join(blocking, " "), hint)
	}
	if err != nil {
		g.metrics.policies.WithLabelValues("", NotChecked).Inc()
		g.log.Warn("an answer was not checked against its policies", slog.String("answer_id", j.id),
			slog.String("upstream", j.upstream), slog.Any("error", err))
		if blocked == nil && j.policies.strictest() != Note {
			return NotChecked, nil
		}
	}
	return strings.Join(names, ", "), blocked
}

func (g *Gateway) alert(a *store.Alert) {
	if g.options.Alert != nil {
		g.options.Alert(a)
	}
}

// findings checks an answer against its policies within the time limit. An error means that it was not fully checked.
func (g *Gateway) findings(j *judged) ([]finding, error) {
	if g.judging.Hold(j.who, 1) != nil {
		return nil, errors.New("too many answers are being checked")
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.policyTime)
	type result struct {
		found []finding
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer cancel()
		defer func() {
			if v := recover(); v != nil {
				g.metrics.panics.Inc()
				g.log.Error("recovered from a panic", slog.String("doing", "checking an answer against policies"),
					slog.String("answer_id", j.id), slog.String("stack", string(debug.Stack())))
				done <- result{err: errors.New("internal error")}
			}
			g.judging.Release(j.who, 1)
		}()
		found, err := g.compare(ctx, j)
		done <- result{found, err}
	}()
	select {
	case r := <-done:
		return r.found, r.err
	case <-ctx.Done():
		select {
		case r := <-done: // it had just ended
			return r.found, r.err
		default:
			return nil, ctx.Err()
		}
	}
}

// compare returns the violations of policies in an answer and its alternatives. With an error, there may be more.
func (g *Gateway) compare(ctx context.Context, j *judged) (found []finding, err error) {
	for _, a := range append([]*ibid.Answer{j.answer}, j.answer.Alternatives...) {
		if a.Error != nil || !a.Complete && !j.held || strings.TrimSpace(a.Text) == "" {
			continue // there is no answer to judge
		}
		more, err := g.compareOne(ctx, j, a)
		for i := range more {
			same := func(f finding) bool { return f.policy == more[i].policy && f.source == more[i].source }
			if !slices.ContainsFunc(found, same) {
				found = append(found, more[i])
			}
		}
		if err != nil {
			return found, err
		}
	}
	return found, ctx.Err()
}

func (g *Gateway) compareOne(ctx context.Context, j *judged, a *ibid.Answer) (found []finding, err error) {
	p := j.policies
	if p.RequireCitations != "" && len(a.Citations) == 0 && !j.searched {
		found = append(found, finding{
			PolicyCitations, p.RequireCitations, store.AlertUncited, "", "The answer has no citation.",
		})
	}
	if p.Altered != "" {
		altered, err := g.altered(ctx, j, a)
		found = append(found, altered...)
		if err != nil {
			return found, err
		}
	}
	if p.Differs == "" {
		return found, nil
	}
	withoutMarkdown := func(claim string) string {
		return (&ibid.Answer{Text: claim}).Render(&ibid.RenderOptions{Style: ibid.StylePlain})
	}
	claims, err := verify.CheckCitations(
		ctx, a, &verify.CitationOptions{Plain: withoutMarkdown, Most: MaxJudgedClaims},
	)
	for i := range claims {
		switch c := &a.Citations[i]; {
		case claims[i].Finding == support.Differs:
			return append(found, finding{
				PolicyDiffers, p.Differs, store.AlertDiffers, "", "A claim differs from its quote: " + claims[i].Detail,
			}), nil
		case len(claims) > MaxJudgedClaims && claims[i].Finding == "" && c.Placed() && c.Span.Start < c.Span.End:
			err = errors.New("it has more claims than are checked")
		}
	}
	return found, err
}

// altered finds quotes that are missing from the latest copies of their sources.
func (g *Gateway) altered(ctx context.Context, j *judged, a *ibid.Answer) (found []finding, err error) {
	copies, read := g.options.Store.Copies(j.who.Tenant), map[string]*snapshot.Snapshot{}
	reported := map[string]bool{}
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			s := a.Source(ref.Source)
			if s == nil || strings.TrimSpace(ref.Quote) == "" || reported[s.URL] {
				continue
			}
			address, err := snapshot.CleanURL(s.URL)
			if err != nil {
				continue // sources without a valid URL are never fetched
			}
			snap, known := read[address]
			if !known {
				if snap, err = copies.Latest(ctx, address); err != nil {
					return found, err
				}
				read[address] = snap
			}
			if snap == nil || snap.Octets == nil || !snap.Whole() || time.Since(snap.FetchedAt) > alteredAge {
				continue
			}
			r := verify.Compare(
				&manifest.ClaimSource{URL: address, Excerpt: &manifest.Excerpt{Exact: ref.Quote}},
				&manifest.Source{URL: address}, snap, nil,
				&verify.CompareOptions{Texts: &g.texts, TextProfile: manifest.TextProfile},
			)
			if r.Counts == verify.CountFailure {
				reported[s.URL] = true
				found = append(found, finding{
					PolicyAltered, j.policies.Altered, store.AlertSourceChanged, s.URL,
					"A source does not say what is quoted from it (" + string(r.Status) + ").",
				})
			}
			if err := ctx.Err(); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// awaitsPolicies reports whether the response waits for policies. Chat checks the answers of its own calls.
func (e *exchange) awaitsPolicies() bool {
	return e.policies != nil && !e.inProcess && e.policies.strictest() != Note && e.captured
}

// passUnchecked marks a response as passed on without a check: its answer is too long to be held, neither JSON nor a
// stream, or unreadable.
func (e *exchange) passUnchecked() {
	if e.awaitsPolicies() {
		e.g.metrics.policies.WithLabelValues("", NotChecked).Inc()
		e.w.Header()[PolicyHeader] = []string{NotChecked}
	}
}

// judgeHeld checks the answer of a held response and reports whether the response may be passed on. If not, it has
// answered the client. before is the header before the upstream's was added.
func (e *exchange) judgeHeld(before http.Header) bool {
	if e.judging == nil {
		if e.holds {
			e.passUnchecked()
		}
		return true
	}
	header, blocked := e.g.judge(e.judging)
	h := e.w.Header()
	if header != "" {
		h[PolicyHeader] = []string{header}
	}
	if blocked == nil {
		return true
	}
	for name := range h {
		switch name {
		case PolicyHeader, AnswerHeader, RunHeader:
		default:
			if values, ours := before[name]; ours {
				h[name] = values
				continue
			}
			delete(h, name)
		}
	}
	if !e.kept {
		delete(h, AnswerHeader)
	}
	e.refuse(blocked)
	return false
}
