package support

import (
	"context"
	"slices"
	"strconv"
)

// Nearest returns a checker that shows c at most n passages of each pair: those whose words are nearest to the claim's,
// see [Corpus], in their order. It is for checkers that cost more per passage than looking for the right ones. What a
// claim says in other words than its source may be among the rest, so n should be generous: an n below 1 shows all.
//
// Evidence and conflicts name the passages by their place in the pair, as c itself would. It is as safe for concurrent
// use as c.
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
	from := make([][]int, len(in)) // of each shown passage, its index in the pair
	for i := range shown {
		p := &shown[i]
		if x.n < 1 || len(p.Passages) <= x.n {
			continue
		}
		for _, hit := range NewCorpus(p.Passages, nil).Search(p.Claim, x.n) {
			from[i] = append(from[i], hit.Passage)
		}
		for k := 0; len(from[i]) < x.n; k++ { // nothing in common with the rest: the first of them
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

// renumber replaces the indexes of passages.
func (v *Verdict) renumber(to []int) {
	v.Evidence = slices.Clone(v.Evidence) // the checker may keep its own
	for i := range v.Evidence {
		if at := &v.Evidence[i].Passage; *at >= 0 && *at < len(to) {
			*at = to[*at]
		}
	}
	v.Conflicts = slices.Clone(v.Conflicts)
	for i := range v.Conflicts {
		for _, side := range []*Excerpt{&v.Conflicts[i].A, &v.Conflicts[i].B} {
			if side.Passage >= 0 && side.Passage < len(to) {
				side.Passage = to[side.Passage]
			}
		}
	}
}
