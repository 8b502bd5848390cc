package support

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ibidhq/ibid"
)

// The default checker's name.
const (
	lexicalID      = "lexical"
	lexicalVersion = "1"
)

const (
	// DefaultThreshold is the least score of [Supported] that [Lexical] says when it is not told another.
	DefaultThreshold = 0.6
	// DefaultFloor is the score below which [Lexical] says [Unsupported]. Between the two it abstains.
	DefaultFloor = 0.4
)

// The codes of a verdict's issues. IssueClaimTruncated and IssuePassageTruncated say that only the first [MaxClaim] or
// [MaxPassage] bytes were read.
const (
	IssueClaimEmpty         = "claim-empty"     // it has no words, or only words that say nothing
	IssueNoPassages         = "no-passages"     // none was given, or none has words
	IssueClaimTruncated     = "claim-truncated" // what was not read cannot be supported
	IssuePassageTruncated   = "passage-truncated"
	IssueLanguageUnmeasured = "language-unmeasured" // the method is the same; how good it is there nobody measured
	IssueLanguagesDiffer    = "languages-differ"    // the claim's and the passages': words cannot be compared
)

// Lexical is the default checker: which of the claim's words stand in the passages, how rare they are, and in what
// order and how near each other, weighed by a model fitted to people's judgements. It has no language model in it,
// opens no connection and costs microseconds per pair. Equal input gets equal verdicts.
//
// A score is calibrated for claims and passages in English. In other languages a word weighs what its rarity in the
// passages of the same call says, and the verdict has the issue language-unmeasured.
//
// It never says [Contradicted]: that words differ does not tell whether meanings do.
//
// The zero value is ready. It is safe for concurrent use.
type Lexical struct {
	Threshold float64 // the least score of [Supported]; 0: DefaultThreshold
	Floor     float64 // what scores less is [Unsupported]; 0: DefaultFloor, or Threshold if that is less
}

// Info implements [Checker].
func (l *Lexical) Info() Info {
	t, f := l.thresholds()
	return Info{
		ID: lexicalID, Version: lexicalVersion, Languages: []string{"en"}, Calibrated: true,
		Params: fmt.Sprintf("%08x", hash(fmt.Appendf(nil, "%v %v %x", t, f, lexicalModel().params))),
	}
}

func (l *Lexical) thresholds() (threshold, floor float64) {
	threshold, floor = l.Threshold, l.Floor
	if threshold == 0 {
		threshold = DefaultThreshold
	}
	if floor == 0 {
		floor = DefaultFloor
	}
	return threshold, min(floor, threshold)
}

// Check implements [Checker]. It reads every passage and claim once, however many pairs share it, and keeps the
// passages of one call in memory together. It ends early, with the context's error, if ctx does.
func (l *Lexical) Check(ctx context.Context, in []Pair) ([]Verdict, error) {
	return l.check(ctx, in, map[string]*Index{})
}

// check is Check with passages that were read before, by their text. Others are added to them.
func (l *Lexical) check(ctx context.Context, in []Pair, read map[string]*Index) ([]Verdict, error) {
	q, err := newRequest(ctx, in, read)
	if err != nil {
		return nil, err
	}
	q.threshold, q.floor = l.thresholds()
	verdicts := make([]Verdict, len(in))
	for i := range in {
		if err := q.judge(ctx, &in[i], &verdicts[i]); err != nil {
			return nil, fmt.Errorf("checking claim %d of %d: %w", i+1, len(in), err)
		}
	}
	return verdicts, nil
}

// judge fills in the verdict about one pair. It looks at ctx between its steps, of which each takes time linear in the
// texts.
func (q *request) judge(ctx context.Context, pair *Pair, v *Verdict) error {
	v.By, v.Threshold, v.Label = lexicalID+"@"+lexicalVersion, q.threshold, Unverified
	c, language := q.read(pair)
	q.note(pair, c, language, v)
	s := &q.scorer
	s.agreed = s.agreed[:0]
	if err := ctx.Err(); err != nil || c.total < minWeight || !s.compare(c, q.passages) || v.has(IssueLanguagesDiffer) {
		return err
	}
	v.Evidence, v.Missing = s.evidence(), s.missing()
	if q.agree(v.Evidence, v.Missing, cmp.Or(q.claimed(pair.Claim).seen, language)) {
		s.compare(c, q.passages)
		v.Evidence, v.Missing = s.evidence(), s.missing()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	score := s.score()
	v.Signals = s.signals()
	held := !slices.Contains(s.counts, 0) // all terms, those of the question too
	v.Verbatim = (held || c.question > 0) && q.verbatim()
	if v.Verbatim && held && len(c.tokens) >= minVerbatim {
		score = max(score, verbatimScore)
	}
	v.Score = &score
	if err := ctx.Err(); err != nil {
		return err
	}
	if score >= q.floor || s.features[featWindow] >= sameTopic {
		v.Conflicts = q.changed(v.Evidence, v.Missing)
		v.Changed = len(v.Conflicts) > 0
	}
	v.Label = q.label(score, v.Changed)
	if v.Label == Supported && language != measuredLanguage && slices.ContainsFunc(v.Missing, isFigure) {
		v.Label = Partial // nobody measured what a score is worth there, but a figure that stands nowhere is one
	}
	return nil
}

func isFigure(t Term) bool { return t.Kind == TermNumber || t.Kind == TermDate }

const (
	// minWeight is what the words of a claim weigh together at least: less is said by every text.
	minWeight = 0.3
	// verbatimScore is the least score of a claim of minVerbatim words or more that stands in a passage as it is: of
	// such pairs, people call nine in ten supported (TestEval).
	verbatimScore = 0.9
	minVerbatim   = 5
	// sameTopic is the share of the claim that stands in its evidence where the two speak of one thing, whatever the
	// score: their values are compared.
	sameTopic = 0.5
	// A claim of several parts is partly supported where one of them stands in the evidence to the first share,
	// whatever the score, and another to the second at most.
	partSupported = 0.8
	partMissing   = 0.5
)

// label decides what a score means.
func (q *request) label(score float64, changed bool) Label {
	p := q.scorer.parted
	parts := p.strongest >= partSupported && p.weakest <= partMissing
	switch {
	case score >= q.threshold && !changed && !q.scorer.claim.truncated:
		return Supported
	case score >= q.threshold, changed, parts:
		return Partial
	case score < q.floor:
		return Unsupported
	}
	return Unverified
}

// note adds what is odd about a pair to its verdict.
func (q *request) note(pair *Pair, c *Claim, language string, v *Verdict) {
	issue := func(code, format string, args ...any) {
		v.Issues = append(v.Issues, ibid.Issue{Code: code, Detail: fmt.Sprintf(format, args...)})
	}
	if c.total < minWeight {
		issue(IssueClaimEmpty, "")
	}
	if c.truncated {
		issue(IssueClaimTruncated, "%d of %d bytes were read", len(c.said()), len(pair.Claim))
	}
	tokens := 0
	for i, p := range q.passages {
		tokens += p.tokens
		if p.truncated {
			issue(
				IssuePassageTruncated, "passage %d: %d of %d bytes were read", i, len(p.text),
				len(pair.Passages[i].Text),
			)
		}
	}
	if tokens == 0 {
		issue(IssueNoPassages, "")
	}
	if tokens == 0 {
		return
	}
	if language != measuredLanguage {
		issue(IssueLanguageUnmeasured, "%s", language)
	}
	if said := q.claimed(pair.Claim); q.differ(pair, &said) {
		issue(IssueLanguagesDiffer, "claim %s, passages %s", cmp.Or(said.seen, said.script), language)
	}
}

// differ reports whether no passage is in the claim's language.
func (q *request) differ(pair *Pair, said *tongue) bool {
	differ := false
	for i, p := range q.passages {
		if p.tokens == 0 {
			continue
		}
		t := q.tongueOf(&pair.Passages[i], p)
		if !said.apart(&t) {
			return false
		}
		differ = true
	}
	return differ
}

func (v *Verdict) has(code string) bool {
	for i := range v.Issues {
		if v.Issues[i].Code == code {
			return true
		}
	}
	return false
}

// measuredLanguage is the language that the model was fitted to.
const measuredLanguage = "en"

// request is one call of Check: what its pairs share.
type request struct {
	threshold, floor float64
	scorer           Scorer
	indexes          map[string]*Index // by text
	tongues          map[*Index]tongue // as recognised
	said             map[string]tongue // of claims
	claims           map[claimKey]*Claim
	figures          map[figureKey][]Value
	lacking          []*Value         // of the claim at hand, the figures that no passage has
	passages         []*Index         // of the pair at hand
	counts           map[uint32]int32 // for each term, the sentences that have it; nil: not counted yet
	sentences        int              // in all passages of the call
}

type claimKey struct {
	question, text string
	local          bool // weighed by the passages at hand
}

func newRequest(ctx context.Context, in []Pair, read map[string]*Index) (*request, error) {
	q := &request{
		indexes: read,
		tongues: map[*Index]tongue{},
		said:    map[string]tongue{},
		claims:  map[claimKey]*Claim{},
		figures: map[figureKey][]Value{},
	}
	for i := range in {
		for j := range in[i].Passages {
			text := in[i].Passages[j].Text
			if q.indexes[text] != nil {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("reading the passages of claim %d of %d: %w", i+1, len(in), err)
			}
			q.indexes[text] = NewIndex(text)
		}
	}
	return q, nil
}

// read finds a pair's passages and its claim, and the language of the passages.
func (q *request) read(pair *Pair) (c *Claim, language string) {
	q.passages = q.passages[:0]
	for i := range pair.Passages {
		p := &pair.Passages[i]
		x := q.indexes[p.Text]
		q.passages = append(q.passages, x)
		t := q.tongueOf(p, x)
		switch l := t.language(); {
		case language == "":
			language = l
		case l != language && l != "" && q.claimed(pair.Claim).seen == l:
			language = l // that of the passages which may support it
		}
	}
	if language == "" {
		language = measuredLanguage // too little to tell: names, numbers
	}
	key := claimKey{asked(pair), pair.Claim, language != measuredLanguage}
	if c = q.claims[key]; c == nil {
		weight := english().weight
		if key.local {
			weight = q.weight
		}
		c = newClaim(key.question, pair.Claim, weight)
		q.claims[key] = c
	}
	return c, language
}

// tongueOf returns the language of a passage, as recognised once and as the caller says.
func (q *request) tongueOf(p *Passage, x *Index) tongue {
	t, ok := q.tongues[x]
	if !ok {
		if x.tongue != nil {
			t = *x.tongue
		} else {
			t = tongueOf(x.text)
		}
		q.tongues[x] = t
	}
	t.named = baseLanguage(p.Language)
	return t
}

// claimed returns the language of a claim, which it recognises once.
func (q *request) claimed(text string) tongue {
	t, ok := q.said[text]
	if !ok {
		t = tongueOf(text)
		q.said[text] = t
	}
	return t
}

// weight returns how rare a term is in the sentences of all passages of the call, on the scale of [idfTable.weight].
func (q *request) weight(key uint32) float64 {
	if key&1 != 0 {
		return weightNumber
	}
	if q.counts == nil {
		q.count()
	}
	n, all := float64(q.counts[key]), float64(q.sentences)
	if n == 0 {
		return weightUnknown
	}
	return math.Log1p(all/n) / math.Log1p(all)
}

func (q *request) count() {
	q.counts = map[uint32]int32{}
	for _, x := range q.indexes {
		q.sentences += len(x.sentences)
		for i := range x.table {
			last := noSlot
			for _, at := range x.places[x.table[i].from:x.table[i].to] {
				if s := x.sentence[at]; s != last {
					q.counts[x.table[i].key]++
					last = s
				}
			}
		}
	}
}
