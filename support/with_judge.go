package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

// The codes of issues of [WithJudge].
const (
	// issueOverBudget: the judge was not asked, because its budget is spent.
	issueOverBudget = "over-budget"
	// issueNotDecided: the judge gave no verdict, so that of the words stays.
	issueNotDecided = "not-decided"
	// issueJudgeFailed: the judge failed, as the detail says, so the verdict of the words stays.
	issueJudgeFailed = "judge-failed"
	// issueNothingInCommon: the judge was not asked, because claim and passages share no word.
	issueNothingInCommon = "nothing-in-common"
)

// WithJudge returns a checker that compares words, and asks judge about all claims that words do not settle. They
// settle a claim that the passages contain verbatim, and one that has no word in common with passages in its language.
//
// The judge decides. Its verdict is returned with the closeness, the missing terms and the differences that the words
// have: they annotate it, and never overrule it. If the judge fails or gives no verdict, that of the words stays, which
// is mostly [Unjudged], and an issue has the reason. All pairs that it was asked about are [Verdict.Escalated].
//
// It is safe for concurrent use if the judge is.
func WithJudge(judge Checker) Checker { return &withJudge{judge: judge} }

type withJudge struct {
	words Lexical
	judge Checker
}

// Info implements [Checker].
func (c *withJudge) Info() Info {
	i, words := c.judge.Info(), c.words.Info()
	i.Params = paramsHash(i.Params, words.By(), words.Params)
	return i
}

// Check implements [Checker].
func (c *withJudge) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	verdicts, err := c.words.Check(ctx, in)
	if err != nil {
		return nil, err
	}
	var open []int
	var pairs []Pair
	for i := range verdicts {
		if v := &verdicts[i]; v.settled(&in[i]) {
			continue
		}
		open, pairs = append(open, i), append(pairs, in[i])
	}
	said, err := CheckPairs(ctx, c.judge, pairs)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("asking a judge: %w", ctx.Err())
	}
	for k, i := range open {
		if err != nil {
			verdicts[i].judged(&Verdict{Err: err}, c.judge)
		} else {
			verdicts[i].judged(&said[k], c.judge)
		}
	}
	return verdicts, nil
}

// settled reports whether words settle a pair.
func (v *Verdict) settled(p *Pair) bool {
	var text strings.Builder
	for i := range p.Passages {
		text.WriteString(p.Passages[i].Text + "\n\n")
	}
	passages := text.String()
	if strings.TrimSpace(passages) == "" || v.Verbatim && v.Label == Supported {
		return true
	}
	language := Language(p.Claim)
	if language == "" || language != Language(passages) || sharesContent(p.Claim, passages) {
		return false
	}
	v.note(issueNothingInCommon, "the judge was not asked")
	return true
}

// sharesContent reports whether a text has a word of a claim, other than words that every text has.
func sharesContent(claim, text string) bool {
	content := map[uint32]bool{}
	for _, key := range appendKeys(nil, claim) {
		content[key] = english().weight(key) > weightContent
	}
	return slices.ContainsFunc(appendKeys(nil, text), func(key uint32) bool { return content[key] })
}

// judged replaces the verdict of the words with the judge's, if it decided.
func (v *Verdict) judged(said *Verdict, judge Checker) {
	v.Issues = slices.Clone(v.Issues)
	if errors.Is(said.Err, errOverBudget) {
		v.note(issueOverBudget, "%v", said.Err)
		return
	}
	v.Escalated = true
	if said.Err != nil {
		v.note(issueJudgeFailed, "%s: %v", judge.Info().By(), said.Err)
		return
	}
	if !isJudged(said.Label) {
		v.note(issueNotDecided, "%s", judge.Info().By())
		v.Issues = append(v.Issues, said.Issues...)
		return
	}
	v.Label, v.By, v.Verbatim = said.Label, said.By, said.Verbatim
	v.Issues = append(v.Issues, said.Issues...)
	if v.Label == Supported {
		v.Missing = nil
	}
	if len(said.Evidence) > 0 {
		v.Evidence = said.Evidence
	}
}

// WhyUnjudged returns the issue with the reason why a judge that was to be asked gave no verdict; nil if there is none.
func (v *Verdict) WhyUnjudged() *ibid.Issue {
	codes := []string{issueJudgeFailed, issueOverBudget, issueNotDecided, issueNothingInCommon}
	i := slices.IndexFunc(v.Issues, func(issue ibid.Issue) bool { return slices.Contains(codes, issue.Code) })
	if i < 0 {
		return nil
	}
	return &v.Issues[i]
}

// isSaid reports whether a judge, which words do not overrule, says that the passages support the claim.
func (v *Verdict) isSaid() bool { return v.Label == Supported && v.Escalated }

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

// RightSource returns a checker that looks in [Pair.Others] for claims that c does not call [Supported]. If one of
// those passages alone has the claim's words, the verdict has the issue wrong-source, and [Verdict.WrongSource] says
// where; the label stays. It looks by words, whatever c is. Others that are among the pair's own passages are ignored.
// Pairs may share one list of others, which is then indexed once. It is as safe for concurrent use as c.
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
	found, err := CheckPairs(ctx, &Lexical{}, pairs)
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
