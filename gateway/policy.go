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
	"github.com/ibidhq/ibid/verify"
)

// PolicyHeader is the header of a response whose answer policies are against: their names, or [NotChecked].
const PolicyHeader = "Ibid-Policy"

// NotChecked stands in [PolicyHeader] where an answer passed that could not be compared with its policies.
const NotChecked = "not-checked"

// The names of policies.
const (
	PolicyCitations = "require-citations" // an answer with a text has a citation
	PolicyDoubtful  = "doubtful"          // no claim differs from the words that are quoted for it
	PolicyAltered   = "altered"           // quotes stand in the last copy of their source, if it is recent
)

// Action says what is done about an answer that a policy is against. Each does what those before it do, too.
type Action string

// The actions, the mildest first. Empty: nobody looks.
const (
	Note   Action = "note"   // an alert
	Header Action = "header" // and [PolicyHeader], where the response is no stream
	Block  Action = "block"  // a 422 in the place of the response, where that is no stream; the answer is kept
)

// Actions returns all actions.
func Actions() []Action { return []Action{Note, Header, Block} }

// Policies says what is done about the answers of an upstream or a tenant. Of both the stricter counts.
type Policies struct{ RequireCitations, Doubtful, Altered Action }

// Tenant is what is special about the answers of a tenant.
type Tenant struct {
	Policies *Policies // nil: those of the upstream only
	// Quota is how many bytes its stored answers may have, as they are encoded; 0: any number. Over it, new ones pass
	// and are not kept. What is under way, and on other nodes, may exceed it by a little.
	Quota int64
}

const (
	// PolicyTime is how long a response waits for its answer to be compared with policies. After that it passes.
	PolicyTime = 250 * time.Millisecond
	// maxJudged is how many answers are compared at a time, of which a tenant has half and a token a quarter. What
	// comes then passes, and is not checked.
	maxJudged = 32
	// MaxJudgedClaims is how many claims of an answer are compared. One with more is not checked, unless these tell.
	MaxJudgedClaims = 1000
	// alteredAge is how old the copy of a source may be that quotes are looked for in.
	alteredAge = 7 * 24 * time.Hour
)

// stricter returns the stricter of two actions.
func stricter(a, b Action) Action {
	if slices.Index(Actions(), a) > slices.Index(Actions(), b) {
		return a
	}
	return b
}

// and returns for each policy the stricter action; nil is no policies.
func (p *Policies) and(q *Policies) *Policies {
	switch {
	case p == nil:
		return q
	case q == nil:
		return p
	}
	return &Policies{
		stricter(p.RequireCitations, q.RequireCitations), stricter(p.Doubtful, q.Doubtful),
		stricter(p.Altered, q.Altered),
	}
}

// strictest returns what is done about an answer at most.
func (p *Policies) strictest() Action {
	if p == nil {
		return ""
	}
	return stricter(p.RequireCitations, stricter(p.Doubtful, p.Altered))
}

// check says which action is none.
func (p *Policies) check() error {
	if p == nil {
		return nil
	}
	for _, a := range []Action{p.RequireCitations, p.Doubtful, p.Altered} {
		if a != "" && !slices.Contains(Actions(), a) {
			return fmt.Errorf("policies: %q is none of note, header and block", a)
		}
	}
	return nil
}

// policies returns those of an upstream and a tenant; nil: none.
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

// finding is that a policy is against an answer.
type finding struct {
	policy string
	action Action
	kind   store.AlertKind
	source string // its address; empty: it is about the answer
	words  string // a sentence
}

// judged is an answer on its way through the policies.
type judged struct {
	who      Identity // whose it is
	upstream string
	id       string // empty: it is not kept
	answer   *ibid.Answer
	policies *Policies
	searched bool // citations may come for it yet
	held     bool // its response is: what there is of it is all that its client gets
}

// Judge compares an answer with the policies of its tenant and upstream, tells of what it finds, and returns what
// [PolicyHeader] is to say (empty: nothing) and the problem that stands in the answer's place; nil: it passes. It is
// for responses that are no streams, and takes [PolicyTime] at most.
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
		if j.id == "" { // there is nothing to look at: once a day is enough
			subject.Upstream, subject.Since = j.upstream, time.Now().UTC().Format(time.DateOnly)
		}
		g.alert(&store.Alert{Kind: f.kind, Tenant: j.who.Tenant, Subject: subject, Summary: f.words})
	}
	var names, against []string
	for i := range found {
		f := &found[i]
		if f.action != Note && !slices.Contains(names, f.policy) {
			names = append(names, f.policy)
		}
		if f.action == Block {
			against = append(against, f.words)
		}
	}
	if len(against) > 0 {
		hint := "the operator's configuration has the policies"
		if j.id != "" {
			hint = "it is kept: GET /v1/answers/" + j.id + "; " + hint
		}
		blocked = NewProblem(CodePolicy, "the answer is against a policy: "+strings.Join(against, " "), hint)
	}
	if err != nil {
		g.metrics.policies.WithLabelValues("", NotChecked).Inc()
		g.log.Warn("an answer was not compared with its policies", slog.String("answer_id", j.id),
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

// findings compares an answer with its policies. The error says that it is not known what they are against.
func (g *Gateway) findings(j *judged) ([]finding, error) {
	if g.judging.Hold(j.who, 1) != nil {
		return nil, errors.New("too many answers are compared at the moment")
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
				g.log.Error("a mistake of ours was caught", slog.String("doing", "comparing an answer with policies"),
					slog.String("answer_id", j.id), slog.String("stack", string(debug.Stack())))
				done <- result{err: errors.New("a mistake of ours")}
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

// compare finds what policies are against, in any of the alternatives that the response has. With an error there may be
// more.
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
	if p.Doubtful == "" {
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
		case claims[i].Finding == verify.Doubtful:
			return append(found, finding{
				PolicyDoubtful, p.Doubtful, store.AlertDoubtful, "", "A claim is doubtful: " + claims[i].Detail,
			}), nil
		case len(claims) > MaxJudgedClaims && claims[i].Finding == "" && c.Placed() && c.Span.Start < c.Span.End:
			err = errors.New("it has more claims than are compared")
		}
	}
	return found, err
}

// altered finds quotes that do not stand in what was read of their sources last.
func (g *Gateway) altered(ctx context.Context, j *judged, a *ibid.Answer) (found []finding, err error) {
	copies, read := g.options.Store.Copies(j.who.Tenant), map[string]*snapshot.Snapshot{}
	told := map[string]bool{}
	for i := range a.Citations {
		for _, ref := range a.Citations[i].Refs {
			s := a.Source(ref.Source)
			if s == nil || strings.TrimSpace(ref.Quote) == "" || told[s.URL] {
				continue
			}
			address, err := snapshot.CleanURL(s.URL)
			if err != nil {
				continue // nobody reads it
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
				told[s.URL] = true
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

// polices reports whether the response waits for policies. Chat compares the answers of its own calls.
func (e *exchange) polices() bool {
	return e.policies != nil && !e.inside && e.policies.strictest() != Note && e.captured
}

// passUnjudged says that a response passes whose answer nobody compares before: it is too long to be held, neither JSON
// nor a stream, or cannot be read.
func (e *exchange) passUnjudged() {
	if e.polices() {
		e.g.metrics.policies.WithLabelValues("", NotChecked).Inc()
		e.w.Header()[PolicyHeader] = []string{NotChecked}
	}
}

// judgeHeld compares the answer of a held response with its policies, and reports whether the response may pass. If
// not, the client has its answer. Before is the header as it was before the upstream's came.
func (e *exchange) judgeHeld(before http.Header) bool {
	if e.judging == nil {
		if e.holds {
			e.passUnjudged()
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
