package support

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Budget limits what a [Cascade] asks its slow checker. The zero value is ready to use.
type Budget struct {
	Pairs       int           // pairs that one Check may ask about; 0 means CascadePairs, negative none
	Batch       int           // pairs in one call of the slow checker; 0 means 32
	Concurrency int           // calls of the slow checker at a time, over all Checks; 0 means 1
	Timeout     time.Duration // for all calls of one Check together; 0 means none besides its context's
}

// The defaults of [Budget].
const (
	CascadePairs = 1000
	cascadeBatch = 32
)

// The codes of a [Cascade]'s own issues.
const (
	// issueOverBudget: the fast checker was unsure, but the budget was spent before the slow one could be asked.
	issueOverBudget = "over-budget"
	// issueNotDecided: the slow checker abstained, so the fast one's verdict stays.
	issueNotDecided = "not-decided"
	// issueSlowFailed: the slow checker failed, as the detail says, so the fast one's verdict stays.
	issueSlowFailed = "slow-failed"
)

// Cascade returns a checker that asks fast about every pair, and slow about those whose passages do not contain the
// claim verbatim, the closest first.
//
// Pairs over the [Budget] keep fast's verdict, with the issue over-budget. If slow decides, its verdict is returned,
// with fast's missing terms if it has none of its own, with the differences that fast found, and with fast's closeness
// among the signals. If slow abstains, fast's verdict is returned with the issue not-decided and slow's issues; if slow
// fails, with slow-failed. All pairs that slow was asked about are [Verdict.Escalated].
//
// The error of Check is fast's. The cascade is safe for concurrent use if both checkers are.
func Cascade(fast, slow Checker, b Budget) Checker {
	b.Pairs = cmp.Or(b.Pairs, CascadePairs)
	b.Batch = max(1, cmp.Or(b.Batch, cascadeBatch))
	b.Concurrency = max(1, b.Concurrency)
	return &cascadeChecker{
		fast:   fast,
		slow:   slow,
		budget: b,
		turns:  make(chan struct{}, b.Concurrency),
	}
}

type cascadeChecker struct {
	fast, slow Checker
	budget     Budget
	turns      chan struct{} // holds one element per running call of slow
}

// Info implements [Checker].
func (c *cascadeChecker) Info() Info {
	fast, slow := c.fast.Info(), c.slow.Info()
	i := Info{ID: "cascade", Version: "2"}
	i.Params = paramsHash(fast.By(), fast.Params, slow.By(), slow.Params)
	for _, language := range fast.Languages {
		if slices.Contains(slow.Languages, language) {
			i.Languages = append(i.Languages, language)
		}
	}
	return i
}

// Check implements [Checker].
func (c *cascadeChecker) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	verdicts, err := c.fast.Check(ctx, in)
	if err != nil {
		return nil, err
	}
	var open []int
	for i := range verdicts {
		if len(in[i].Passages) > 0 && !verdicts[i].Verbatim {
			open = append(open, i)
		}
	}
	slices.SortStableFunc(open, func(a, b int) int {
		return cmp.Compare(verdicts[b].strength(), verdicts[a].strength())
	})
	asked := open[:min(len(open), max(0, c.budget.Pairs))]
	for _, i := range open[len(asked):] {
		noteOverBudget(&verdicts[i], fmt.Sprintf("more than %d pairs", max(0, c.budget.Pairs)))
	}
	c.escalate(ctx, in, verdicts, asked)
	return verdicts, nil
}

// escalate asks slow about the pairs with those indexes, in batches, and merges its verdicts.
func (c *cascadeChecker) escalate(ctx context.Context, in []Pair, verdicts []Verdict, asked []int) {
	if c.budget.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.budget.Timeout)
		defer cancel()
	}
	var calls sync.WaitGroup
	defer calls.Wait()
	for len(asked) > 0 {
		if !c.turn(ctx) {
			for _, i := range asked {
				noteOverBudget(&verdicts[i], "the time is up")
			}
			return
		}
		batch := asked[:min(len(asked), c.budget.Batch)]
		asked = asked[len(batch):]
		calls.Go(func() {
			defer func() { <-c.turns }()
			c.ask(ctx, in, verdicts, batch)
		})
	}
}

// turn waits for a turn and reports whether it came before ctx ended.
func (c *cascadeChecker) turn(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false // select would choose at random
	}
	select {
	case c.turns <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// ask calls slow once.
func (c *cascadeChecker) ask(ctx context.Context, in []Pair, verdicts []Verdict, batch []int) {
	pairs := make([]Pair, len(batch))
	for k, i := range batch {
		pairs[k] = in[i]
	}
	slowVerdicts, err := CheckPairs(ctx, c.slow, pairs)
	for k, i := range batch {
		slow := Verdict{Err: err}
		if err == nil {
			slow = slowVerdicts[k]
		}
		merge(&verdicts[i], &slow, c.slow.Info().By())
	}
}

// merge replaces fast's verdict with slow's, if slow decided.
func merge(fast, slow *Verdict, by string) {
	fast.Escalated, fast.Issues = true, slices.Clone(fast.Issues)
	if slow.Err != nil {
		fast.note(issueSlowFailed, "asking %s: %v", by, slow.Err)
		return
	}
	if slow.Label == Unjudged || slow.Label == Unchecked || slow.Label == "" {
		fast.note(issueNotDecided, "%s", by)
		fast.Issues = append(fast.Issues, slow.Issues...)
		return
	}
	v := *slow
	v.Escalated = true
	if len(v.Missing) == 0 && v.Label != Supported {
		v.Missing = fast.Missing
	}
	v.Verbatim = v.Verbatim || fast.Verbatim && v.Label == Supported
	if len(v.Differences) == 0 {
		v.Differences = fast.Differences
	}
	if fast.Closeness != nil {
		v.Signals = map[string]float64{"fast": *fast.Closeness}
		maps.Copy(v.Signals, slow.Signals)
	}
	*fast = v
}

func noteOverBudget(v *Verdict, why string) {
	v.Issues = slices.Clone(v.Issues)
	v.note(issueOverBudget, "%s", why)
}

// paramsHash returns a hash of parameters for [Info.Params].
func paramsHash(parts ...string) string {
	key := cacheKey(parts...)
	return hex.EncodeToString(key[:8])
}

// Nearest returns a checker that shows c at most n passages of each pair: those that [Corpus] ranks highest for the
// claim, in their original order. It is for checkers that cost more per passage than the ranking does. A passage that
// supports the claim in other words may be left out, so n should be generous; n below 1 shows all.
//
// Evidence and differences give passages by their index in the pair, as from c itself. It is as safe for concurrent use
// as c.
func Nearest(c Checker, n int) Checker { return &nearest{c, n} }

type nearest struct {
	Checker

	n int
}

// Info implements [Checker].
func (x *nearest) Info() Info {
	i := x.Checker.Info()
	if x.n > 0 {
		i.Params = paramsHash(i.Params, "nearest", strconv.Itoa(x.n))
	}
	return i
}

// Check implements [Checker].
func (x *nearest) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	shown := slices.Clone(in)
	from := make([][]int, len(in)) // for each shown passage, its index in the pair
	for i := range shown {
		p := &shown[i]
		if x.n < 1 || len(p.Passages) <= x.n {
			continue
		}
		for _, hit := range NewCorpus(p.Passages).Search(p.Claim, x.n) {
			from[i] = append(from[i], hit.Passage)
		}
		for k := 0; len(from[i]) < x.n; k++ { // the rest shares no word: take the first ones
			if !slices.Contains(from[i], k) {
				from[i] = append(from[i], k)
			}
		}
		slices.Sort(from[i])
		p.Passages = make([]Passage, x.n)
		for k, at := range from[i] {
			p.Passages[k] = in[i].Passages[at]
		}
	}
	verdicts, err := x.Checker.Check(ctx, shown)
	for i := range verdicts {
		if i < len(from) && from[i] != nil {
			verdicts[i].renumber(from[i])
		}
	}
	return verdicts, err
}

// renumber maps the indexes of passages.
func (v *Verdict) renumber(to []int) {
	v.Evidence = slices.Clone(v.Evidence) // the checker may still use its own
	for i := range v.Evidence {
		if at := &v.Evidence[i].Passage; *at >= 0 && *at < len(to) {
			*at = to[*at]
		}
	}
	v.Differences = slices.Clone(v.Differences)
	for i := range v.Differences {
		for _, side := range []*Excerpt{&v.Differences[i].A, &v.Differences[i].B} {
			if side.Passage >= 0 && side.Passage < len(to) {
				side.Passage = to[side.Passage]
			}
		}
	}
}

// issueWrongSource is the code of the issue that another source supports the claim, and its own passages do not.
const issueWrongSource = "wrong-source"

// rightSources is how many of the other passages are checked for one claim: the highest ranked.
const rightSources = 4

// RightSource returns a checker that looks in [Pair.Others] for claims that c does not call [Supported]. If c calls one
// supported by one of those passages alone, the verdict has the issue wrong-source, and [Verdict.WrongSource] says
// where; the label stays. Others that are among the pair's own passages are ignored. Pairs may share one list of
// others, which is then indexed once. It is as safe for concurrent use as c.
func RightSource(c Checker) Checker { return &rightSource{c} }

type rightSource struct{ Checker }

// Check implements [Checker].
func (r *rightSource) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	verdicts, err := CheckPairs(ctx, r.Checker, in)
	if err != nil {
		return nil, err
	}
	type candidate struct{ pair, other int }
	var candidates []candidate
	var pairs []Pair
	indexes := map[*Passage]*Corpus{} // by the address of the first of the others
	for i := range verdicts {
		v, p := &verdicts[i], &in[i]
		if v.Label == Supported || v.Err != nil || len(p.Others) == 0 {
			continue
		}
		index := indexes[&p.Others[0]]
		if index == nil || index.Len() != len(p.Others) {
			index = NewCorpus(p.Others)
			indexes[&p.Others[0]] = index
		}
		for _, hit := range index.Search(p.Claim, rightSources+len(p.Passages)) {
			other := p.Others[hit.Passage]
			if !slices.ContainsFunc(p.Passages, func(own Passage) bool { return own.Text == other.Text }) {
				candidates = append(candidates, candidate{i, hit.Passage})
				pairs = append(pairs, Pair{Claim: p.Claim, Context: p.Context, Passages: []Passage{other}})
			}
		}
	}
	found, err := CheckPairs(ctx, r.Checker, pairs)
	if err != nil {
		return nil, fmt.Errorf("looking for claims in other sources: %w", err)
	}
	best := map[int]float64{} // the strength of the verdict found for each pair
	for k, at := range candidates {
		f := &found[k]
		if f.Label != Supported || len(f.Evidence) == 0 || f.strength() <= best[at.pair] {
			continue
		}
		best[at.pair] = f.strength()
		verdicts[at.pair].WrongSource = &Span{Passage: at.other, Span: f.Evidence[0].Span}
	}
	for i := range best {
		v := &verdicts[i]
		v.Issues = slices.Clone(v.Issues)
		name := in[i].Others[v.WrongSource.Passage].ID
		v.note(issueWrongSource, "%s", cmp.Or(name, "other passage "+strconv.Itoa(v.WrongSource.Passage)))
	}
	return verdicts, nil
}
