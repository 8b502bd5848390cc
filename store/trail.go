package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
	"github.com/ibidhq/ibid/trail/otel"
)

// How much of a run's captured calls a trail contains: the latest. If there are more, it has an issue.
const (
	maxTrailCalls = 10_000
	MaxTrailBytes = 64 << 20 // of their encoding
)

// The codes of the issues that [Store.Trail] adds.
const (
	issueCallsLeftOut = "calls-left-out" // the run has more captured calls than fit
	// the captured answer named as the final one does not (or no longer) exist
	issueNoAnswer = "answer-missing"
)

// Trail returns everything known about a run: what was recorded, as steps or spans, and its captured calls. A captured
// call is a step with the sources of its answer; if a recorded step has the same number, the two are merged, and what
// was recorded takes precedence. Spans of a trace are arranged by [otel.Arrange]; other steps recorded without a number
// are numbered after all others, in the order in which they began.
//
// The final answer is the recorded one, with the citations of a call of the run that was answered in the same words, if
// any; otherwise it is that of the last call answered with text. If the answer named as the final one was deleted,
// there is none.
func (s *Store) Trail(ctx context.Context, tenant, run string) (t *trail.Trail, err error) {
	defer wrapResult(&err, "reading the trail of run %.60q", run)
	row, err := s.readGroup(ctx, runTable(), tenantID{tenant, run})
	if err != nil {
		return nil, err
	}
	b := &trailBuilder{run: row, at: map[int]int{}}
	if err := b.readRecords(ctx, s.db); err != nil {
		return nil, err
	}
	out := b.head.Trail
	out.ID, out.Agent = run, cmp.Or(out.Agent, row.agent)
	out.Strategy = cmp.Or(row.captured, out.Strategy, row.strategy)
	out.Started = row.began()
	out.Issues, out.Steps = slices.Clip(out.Issues), b.steps
	b.out = &out
	if err := b.addCalls(ctx, s.db); err != nil {
		return nil, err
	}
	if err := b.addFinal(ctx, s, tenant); err != nil {
		return nil, err
	}
	otel.Arrange(b.out) // what came as spans of a trace
	b.addResults()
	b.number()
	b.out.Complete()
	b.conclude()
	if err := b.addChecks(ctx, s, tenant); err != nil {
		return nil, err
	}
	return b.out, nil
}

// Weight returns how many bytes [Store.Trail] reads.
func (s *Store) Weight(ctx context.Context, tenant, run string) (size int64, err error) {
	defer wrapResult(&err, "measuring run %.60q", run)
	row, err := s.readGroup(ctx, runTable(), tenantID{tenant, run})
	if err != nil {
		return 0, err
	}
	err = each(
		ctx, s.db, into(&size),
		"SELECT CAST(coalesce(sum(octet_length(call)), 0) AS BIGINT) FROM calls WHERE tenant = $1 AND run = $2",
		row.tenant, row.id,
	)
	return row.size + min(size, MaxTrailBytes), err
}

// Revision returns a text that differs whenever the trail of a run, or people's feedback on the run, may have changed.
// It does not cover a final answer that is not one of the run's own calls.
func (s *Store) Revision(ctx context.Context, tenant, run string) (revision string, err error) {
	defer wrapResult(&err, "looking for changes of run %.60q", run)
	table := runTable()
	row, err := s.readGroup(ctx, table, tenantID{tenant, run})
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, field := range table.fields(row) {
		switch v := field.(type) {
		case *string:
			_, _ = fmt.Fprintf(h, "%q ", *v) // hashes accept everything
		case *int64:
			_, _ = fmt.Fprintf(h, "%d ", *v)
		}
	}
	for _, query := range []string{
		"SELECT count(*), coalesce(max(n), 0), 0, 0 FROM calls WHERE tenant = $1 AND run = $2 AND $3 <> ''",
		"SELECT count(*), coalesce(max(n), 0), 0, 0 FROM feedback WHERE tenant = $1 AND run = $2 AND $3 <> ''",
		"SELECT count(*), coalesce(max(checked), 0), CAST(coalesce(sum(checked / 1000), 0) AS BIGINT), " +
			"CAST(coalesce(sum(rank), 0) AS BIGINT) FROM pins WHERE tenant = $1 AND rank > 0 AND (answer_id = $3 OR " +
			"answer_id IN (SELECT answer_id FROM calls WHERE tenant = $1 AND run = $2))",
	} {
		var counted [4]int64
		err := each(
			ctx, s.db, into(&counted[0], &counted[1], &counted[2], &counted[3]), query, row.tenant, row.id,
			runOwner(row.id),
		)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(h, "%d ", counted)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// trailBuilder builds a trail from what is stored.
type trailBuilder struct {
	run   *group
	head  head
	steps []trail.Step // the recorded ones
	calls []*Call      // oldest first
	out   *trail.Trail
	at    map[int]int // the indexes of steps by number
}

// readRecords reads the records.
func (b *trailBuilder) readRecords(ctx context.Context, q querier) error {
	if b.run.recorded == 0 {
		return nil
	}
	return each(ctx, q, func(rows *sql.Rows) error {
		var r record
		if err := scanRecord(rows, &r); err != nil {
			return err
		}
		if r.id == headID {
			h, err := decodeHead(r.text)
			if err == nil {
				b.head = *h
			}
			return err
		}
		step, err := r.step()
		if err != nil {
			return err
		}
		if step.Number != 0 {
			b.at[step.Number] = len(b.steps)
		}
		b.steps = append(b.steps, *step)
		return nil
	}, recordColumns+"records WHERE tenant = $1 AND run = $2 ORDER BY n", b.run.tenant, b.run.id)
}

// errEnough ends a query after enough rows.
var errEnough = errors.New("enough rows")

// addCalls reads the captured calls and turns them into steps.
func (b *trailBuilder) addCalls(ctx context.Context, q querier) error {
	if b.run.answers == 0 {
		return nil
	}
	bytes := 0
	err := each(ctx, q, func(rows *sql.Rows) error {
		var c numberedCall
		err := scanCall(rows, &c)
		if err != nil {
			return err
		}
		if bytes += len(c.encoded); bytes > MaxTrailBytes || len(b.calls) == maxTrailCalls {
			return errEnough
		}
		b.calls = append(b.calls, c.Call)
		return nil
	}, callColumns+"WHERE tenant = $1 AND run = $2 ORDER BY started DESC, n "+
		"DESC LIMIT $3", b.run.tenant, b.run.id, maxTrailCalls+1)
	if errors.Is(err, errEnough) {
		err = nil
		b.addIssue(
			issueCallsLeftOut,
			fmt.Sprintf("the run has %d captured calls; only the latest %d are included", b.run.answers, len(b.calls)),
		)
	}
	slices.Reverse(b.calls)
	for _, c := range b.calls {
		i, ok := b.at[c.Step.Number]
		if !ok {
			i = len(b.out.Steps)
			b.at[c.Step.Number] = i
			b.out.Steps = append(b.out.Steps, trail.Step{Number: c.Step.Number})
		}
		s := &b.out.Steps[i]
		s.Tool, s.Question = cmp.Or(s.Tool, c.Step.Tool), cmp.Or(s.Question, asked(c))
		if s.After == nil {
			s.After = c.Step.After
		}
		if s.Started.IsZero() {
			s.Started = c.Started
		}
		s.Duration = max(s.Duration, c.Ended().Sub(s.Started))
		s.AddAnswer(c.AnswerID, c.Answer)
	}
	return err
}

func (b *trailBuilder) addIssue(code, detail string) {
	b.out.Issues = append(b.out.Issues, ibid.Issue{Code: code, Detail: detail})
}

// asked returns what a call was asked: the last message of a user, as far as it was kept.
func asked(c *Call) string {
	for _, m := range slices.Backward(c.Prompt) {
		if m.Role == RoleUser {
			return m.Text
		}
	}
	return ""
}

// addResults adds the steps that the requests of the calls show: what tools returned before them. A tool's step that
// was recorded is the same; if nothing is known of its sources, it gets these. Each step has one of the numbers kept
// free for it before its call.
func (b *trailBuilder) addResults() {
	byTool, byCall := b.index()
	taken := map[int]bool{}
	for i := range b.out.Steps {
		taken[b.out.Steps[i].Number] = true
	}
	seen := map[string]bool{}
	var more []trail.Step
	before := 0 // the number of the call before
	for _, c := range b.calls {
		call := byCall[c.AnswerID]
		var after []int
		for i := range c.Results {
			r := c.Results[i]
			if r.ID != "" && seen[r.ID] {
				continue
			}
			seen[r.ID] = true
			if list := byTool[r.Tool]; len(list) > 0 {
				same := sameResult(list, &r)
				byTool[r.Tool] = slices.DeleteFunc(list, func(s *trail.Step) bool { return s == same })
				if len(same.Sources) == 0 && !same.NoSources {
					same.SetResult(&r)
				}
				continue
			}
			if call != nil {
				call.AddSources(asUsed(r.Sources)...)
			}
			r.Number = c.Step.Number - len(c.Results) + i
			if r.Number < 1 || taken[r.Number] {
				r.Number = 0
			} else {
				taken[r.Number] = true
				after = append(after, r.Number)
			}
			r.Started = c.Started
			if r.After = []int{}; before > 0 && before < r.Number {
				r.After = []int{before}
			}
			more = append(more, r)
		}
		if call != nil && call.Number == c.Step.Number && call.After == nil && len(after) > 0 {
			call.After = after
		}
		if call != nil {
			before = call.Number
		}
	}
	b.out.Steps = append(b.out.Steps, more...)
}

// index returns the recorded steps by their tool, and by the ids of their answers.
func (b *trailBuilder) index() (byTool map[string][]*trail.Step, byCall map[string]*trail.Step) {
	byTool, byCall = map[string][]*trail.Step{}, map[string]*trail.Step{}
	eachStep(b.out.Steps, func(s *trail.Step) {
		for i := range s.Answers {
			byCall[s.Answers[i].ID] = s
		}
		if s.Tool != "" {
			byTool[s.Tool] = append(byTool[s.Tool], s)
		}
	})
	return byTool, byCall
}

// asUsed returns the sources that a tool found as those of the step that was given them.
func asUsed(found []trail.Source) []trail.Source {
	used := slices.Clone(found)
	for i := range used {
		used[i].Retrieved, used[i].Rank, used[i].Relevance, used[i].Origin = false, 0, nil, ""
	}
	return used
}

// eachStep calls do for all steps, those of nested runs too.
func eachStep(steps []trail.Step, do func(*trail.Step)) {
	for i := range steps {
		do(&steps[i])
		if n := steps[i].Nested; n != nil {
			eachStep(n.Steps, do)
		}
	}
}

// sameResult returns the recorded step that is the result of a tool: the one with the same sources, else the first.
func sameResult(list []*trail.Step, r *trail.Step) *trail.Step {
	for _, s := range list {
		if s.ID != "" && s.ID == r.ID {
			return s
		}
		for i := range s.Sources {
			for k := range r.Sources {
				if a, b := &s.Sources[i], &r.Sources[k]; a.Content != "" && a.Content == b.Content {
					return s
				}
			}
		}
	}
	return list[0]
}

// addFinal takes the final answer from the call named as having it.
func (b *trailBuilder) addFinal(ctx context.Context, s *Store, tenant string) error {
	id := b.head.AnswerID
	if id == "" {
		return nil
	}
	c := b.lastCall(func(c *Call) bool { return c.AnswerID == id })
	if c == nil {
		var err error
		if c, err = s.Call(ctx, tenant, id); errors.Is(err, ErrNotFound) {
			b.addIssue(issueNoAnswer, fmt.Sprintf("the final answer %.60q is not, or no longer, stored", id))
			return nil
		} else if err != nil {
			return err
		}
	}
	b.out.Answer, b.out.Final, b.out.AnswerID = c.Answer.Text, c.Answer, id
	return nil
}

// number numbers the steps without a number, in the order in which they began, and sorts all steps.
func (b *trailBuilder) number() {
	highest := 0
	var without []int
	for i := range b.out.Steps {
		if highest = max(highest, b.out.Steps[i].Number); b.out.Steps[i].Number == 0 {
			without = append(without, i)
		}
	}
	slices.SortStableFunc(without, func(i, k int) int { return b.out.Steps[i].Started.Compare(b.out.Steps[k].Started) })
	for _, i := range without {
		highest++
		b.out.Steps[i].Number = highest
	}
	slices.SortStableFunc(b.out.Steps, func(a, b trail.Step) int { return cmp.Compare(a.Number, b.Number) })
}

// conclude fills in what was not recorded of the run itself, and the citations of the final answer if a call was
// answered with it.
func (b *trailBuilder) conclude() {
	t := b.out
	if t.Question == "" && len(b.calls) > 0 {
		t.Question = asked(b.calls[0])
	}
	var c *Call
	switch {
	case t.Final != nil:
		t.Answer = cmp.Or(t.Answer, t.Final.Text)
	case b.head.AnswerID != "": // it was deleted, and no other answer is the final one
	case t.Answer != "":
		c = b.lastCall(func(c *Call) bool { return strings.TrimSpace(c.Answer.Text) == strings.TrimSpace(t.Answer) })
	default:
		c = b.lastCall(func(c *Call) bool { return strings.TrimSpace(c.Answer.Text) != "" })
	}
	if c != nil {
		t.Answer, t.Final, t.AnswerID = c.Answer.Text, c.Answer, c.AnswerID // citations refer to these bytes
	}
}

// lastCall returns the last call that satisfies is.
func (b *trailBuilder) lastCall(is func(c *Call) bool) *Call {
	for _, c := range slices.Backward(b.calls) {
		if is(c) {
			return c
		}
	}
	return nil
}
