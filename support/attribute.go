package support

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/snapshot"
)

// Thresholds for [AttributeOptions]: the least closeness with which a passage is cited. Balanced finds the most with
// the fewest errors (the best F1 of TestEvalAttribute), Strict makes hardly an error and finds less.
const (
	Balanced = 0.35
	Strict   = 0.5
)

// Limits of an attribution, and the defaults of its options.
const (
	DefaultPerSentence = 2
	DefaultCandidates  = 8
	// maxAttributedSentences is the most sentences of an answer that are attributed; the rest is skipped.
	maxAttributedSentences = 20_000
	// maxAttributed is the most passages of all documents together.
	maxAttributed = 1_000_000
	// pairsAtOnce is the most pairs in one call of the checker.
	pairsAtOnce = 512
)

// AttributeOptions are the options of [Attribute]. Nil and the zero value mean the defaults.
type AttributeOptions struct {
	// Threshold is the least closeness with which a passage is cited, unless a judge says that it does not support the
	// sentence; 0 means Balanced. If the checker gives no closeness, passages with the label Supported are cited.
	Threshold float64
	// PerSentence is the most passages that one sentence cites; 0 means DefaultPerSentence.
	PerSentence int
	// Candidates is the most passages that the checker is asked about per sentence; 0 means DefaultCandidates.
	Candidates int
	// Checker decides whether a passage supports a sentence; nil means [Lexical].
	Checker Checker
	// ByScore chooses the candidates, among the passages that share words with a sentence, by the score that a
	// retriever gave their documents ([ibid.Source.Score]) instead of by BM25. Documents without a score come last.
	ByScore bool
	// Cited also attributes sentences that already have a citation. Their citations stay.
	Cited bool
	// Compare also has sentences that already have a citation checked, for [SentenceSupport.Differing], without citing
	// more for them.
	Compare bool
	// Sentences are the sentences of the answer, in order; nil splits it into sentences.
	Sentences []ibid.Span
	// Passages says how to split documents that come without passages.
	Passages *snapshot.PassageOptions
	// Progress, if not nil, is called after each batch with the number of sentences done, and of those to do. It must
	// not block.
	Progress func(done, of int)
}

// Document is a text that sentences may be attributed to.
type Document struct {
	// Source is the source that citations of the document refer to. Documents with the same ID and URL are pieces of
	// one source. An ID that is empty, or that another source of the answer has, is replaced by one like doc:1. If the
	// answer has a source with the same [ibid.Source.Key], that one is cited instead; for this, a source without URL,
	// GlobalID and Content gets a GlobalID made of Text.
	Source ibid.Source
	Text   string
	// Passages are the pieces of Text to rank and check; nil splits it with snapshot.Passages.
	Passages []snapshot.Passage
}

// Attribution is the result of [Attribute].
type Attribution struct {
	Answer    *ibid.Answer      // a copy with the citations added, of origin inferred
	Sentences []SentenceSupport // all sentences of the text, in order
	// Uncited is the share of sentences that say something and have no citation, neither the provider's nor an inferred
	// one; nil if no sentence says anything.
	Uncited   *float64
	LeftOut   map[SkipReason]int // sentences that this leaves out: they say nothing that could have a source
	By        string             // the checker, as ID@Version
	Threshold float64            // the one that was used
}

// SentenceSupport is what was found for one sentence of an answer.
type SentenceSupport struct {
	Span  ibid.Span // of the sentence in Answer.Text
	Claim ibid.Span // the span that a citation covers: the sentence without its final mark
	// Skipped says why the sentence was not attributed; empty if it was.
	Skipped SkipReason
	// Cited is how many citations it has, the answer's own and the added ones.
	Cited int
	// Candidates are the passages that were checked, best first.
	Candidates []Candidate
	// Together is what some of them support only together; nil if there is none, or if one supports it alone.
	Together *Together
}

// Says reports whether the sentence says something that could have a source.
func (s *SentenceSupport) Says() bool {
	return s.Skipped == "" || s.Skipped == SkipCited || s.Skipped == SkipLimit
}

// Uncited reports whether the sentence says something and has no citation.
func (s *SentenceSupport) Uncited() bool { return s.Says() && s.Cited == 0 }

// Differing returns the candidates that contradict the sentence, best first: they say it, but for a value, or a judge
// says so. There are none if a candidate says the sentence itself, since the others are then likely about something
// else.
func (s *SentenceSupport) Differing() []*Candidate {
	var all []*Candidate
	for i := range s.Candidates {
		c := &s.Candidates[i]
		switch {
		case c.Source != "", c.Verdict.IsClose() && !c.Verdict.deniesClaim():
			return nil
		case c.Verdict.Label == Differs, c.Verdict.Label == Contradicted:
			all = append(all, c)
		}
	}
	return all
}

// SkipReason says why a sentence is not attributed.
type SkipReason string

// The reasons to skip a sentence.
const (
	SkipCited       SkipReason = "cited"       // it has a citation already
	SkipHeading     SkipReason = "heading"     // of a section, or the line that introduces a list
	SkipQuestion    SkipReason = "question"    // a question
	SkipCode        SkipReason = "code"        // a fenced block of code
	SkipShort       SkipReason = "short"       // too few words to say something
	SkipBoilerplate SkipReason = "boilerplate" // about the answer itself: "I hope this helps"
	SkipLimit       SkipReason = "limit"       // after maxAttributedSentences
	SkipPart        SkipReason = "part"        // commentary or a refusal, not answer text
)

// Candidate is a passage that was checked against a sentence.
type Candidate struct {
	Document  int       // index in Attribute's docs
	Passage   int       // index in the document's passages
	Span      ibid.Span // the passage in the document's text
	Relevance float64   // see [Hit]
	Verdict   Verdict   // offsets of its Evidence and of side B of its Differences are in the document's text
	Evidence  ibid.Span // the best evidence window in the document's text; empty if the checker named none
	Source    string    // the id of its source in Attribution.Answer if it is cited; else empty
}

// Attribute finds citations for the sentences of an answer that have none. For each, it ranks the passages of all
// documents by BM25, asks the checker about the best, and cites those that reach the threshold. The answer itself is
// not changed.
//
// A citation covers the sentence without its final mark. Its ref has the evidence window as quote and the score as
// confidence; the locator has the page, the passage's index as chunk (another number if a document of the same source
// has that one), and the window's offsets in code points of the document's text. Its support has the checker's label,
// score and name. Sources get no score: one that a retriever gave, in Source, is kept.
//
// Where no passage supports a sentence of several parts, those that do so together are cited: see [Together].
//
// A sentence is ranked against every passage that shares a word with it: at worst the time grows with sentences times
// passages. The number of pairs to check grows with sentences times candidates, and for sentences that no passage
// supports with the number of their parts. It fails if ctx ends, if the checker fails, if a sentence or a passage is
// not in its text, or if there are more than a million passages.
func Attribute(ctx context.Context, answer *ibid.Answer, docs []Document, o *AttributeOptions) (*Attribution, error) {
	var a *attributor
	var err error
	halted := halt.Do(ctx, func(h *halt.Halt) { a, err = newAttributor(h, answer, docs, o) })
	if err = cmp.Or(halted, err); err == nil {
		err = a.run(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("attributing the answer: %w", err)
	}
	return a.out, nil
}

type attributor struct {
	options  AttributeOptions
	docs     []Document
	places   []place // of the passages in the corpus
	passages []Passage
	search   searcher
	out      *Attribution
	citer    citer
	units    map[int]*ibid.Offsets // of the cited documents
}

// place is a passage of a document: its indexes.
type place struct{ document, passage int }

func newAttributor(h *halt.Halt, answer *ibid.Answer, docs []Document, o *AttributeOptions) (*attributor, error) {
	a := &attributor{docs: slices.Clone(docs), units: map[int]*ibid.Offsets{}}
	if o != nil {
		a.options = *o
	}
	a.options.PerSentence = cmp.Or(max(0, a.options.PerSentence), DefaultPerSentence)
	a.options.Candidates = max(a.options.PerSentence, cmp.Or(max(0, a.options.Candidates), DefaultCandidates))
	if t := a.options.Threshold; math.IsNaN(t) || t < 0 || t > 1 {
		return nil, fmt.Errorf("the threshold %v is not between 0 and 1", t)
	}
	a.options.Threshold = cmp.Or(a.options.Threshold, Balanced)
	if a.options.Checker == nil {
		a.options.Checker = &Lexical{}
	}
	for i, s := range a.options.Sentences {
		if s.Start < 0 || s.End < s.Start || s.End > len(answer.Text) ||
			i > 0 && s.Start < a.options.Sentences[i-1].End {
			return nil, fmt.Errorf("sentence %d is not in the answer, or not after the previous one", i)
		}
	}
	for i := range a.docs {
		h.Check()
		d := &a.docs[i]
		if d.Passages == nil {
			d.Passages = snapshot.Passages(d.Text, a.options.Passages)
		}
		if len(a.passages)+len(d.Passages) > maxAttributed {
			return nil, fmt.Errorf("the documents have more than %d passages", maxAttributed)
		}
		for k, p := range d.Passages {
			if p.Span.Start < 0 || p.Span.End < p.Span.Start || p.Span.End > len(d.Text) {
				return nil, fmt.Errorf("passage %d of document %d is not in its text", k, i)
			}
			a.places = append(a.places, place{i, k})
			a.passages = append(a.passages, Passage{ID: strconv.Itoa(k), Text: judgedText(d, &p)})
		}
	}
	a.out = &Attribution{Answer: copyAnswer(answer), By: a.options.Checker.Info().By(), Threshold: a.options.Threshold}
	a.out.Sentences = sentencesOf(answer, a.options.Sentences, a.options.Cited)
	claims := []string{} // nothing else is searched for
	for i := range a.out.Sentences {
		claims = append(claims, answer.Text[a.out.Sentences[i].Claim.Start:a.out.Sentences[i].Claim.End])
	}
	a.search.corpus = newCorpus(h, a.passages, claims)
	a.citer = newCiter(a.out.Answer, a.docs)
	return a, nil
}

// run attributes the sentences in batches, to keep each call of the checker small.
func (a *attributor) run(ctx context.Context) error {
	batch := max(1, pairsAtOnce/a.options.Candidates)
	done := 0
	var sentences []*SentenceSupport
	for i := range a.out.Sentences {
		if s := &a.out.Sentences[i]; s.Skipped == "" || s.Skipped == SkipCited && a.options.Compare {
			sentences = append(sentences, s)
		}
	}
	for todo := range slices.Chunk(sentences, batch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.check(ctx, todo); err != nil {
			return err
		}
		if err := a.together(ctx, todo); err != nil {
			return err
		}
		for _, s := range todo {
			if s.Skipped != "" {
				continue // only compared
			}
			if err := a.cite(s); err != nil {
				return err
			}
		}
		done += len(todo)
		if a.options.Progress != nil {
			a.options.Progress(done, len(sentences))
		}
	}
	a.out.count()
	return nil
}

// check finds the candidates of sentences and has the checker judge them.
func (a *attributor) check(ctx context.Context, todo []*SentenceSupport) error {
	text := a.out.Answer.Text
	var pairs []Pair
	for _, s := range todo {
		claim := text[s.Claim.Start:s.Claim.End]
		for _, hit := range a.candidates(claim) {
			at := a.places[hit.Passage]
			d := &a.docs[at.document]
			s.Candidates = append(s.Candidates, Candidate{
				Document: at.document, Passage: at.passage, Span: d.Passages[at.passage].Span, Relevance: hit.Relevance,
			})
			pairs = append(pairs, a.pair(s, claim, a.passages[hit.Passage:hit.Passage+1]))
		}
	}
	verdicts, err := CheckPairs(ctx, a.options.Checker, pairs)
	if err != nil {
		return err
	}
	for _, s := range todo {
		for i := range s.Candidates {
			a.setVerdict(&s.Candidates[i], &verdicts[0])
			verdicts = verdicts[1:]
		}
		slices.SortStableFunc(s.Candidates, func(x, y Candidate) int { return cmp.Compare(y.rank(), x.rank()) })
	}
	return nil
}

// candidates returns the passages to check for a claim.
func (a *attributor) candidates(claim string) []Hit {
	if !a.options.ByScore {
		return a.search.search(claim, a.options.Candidates)
	}
	hits := a.search.search(claim, retrieverPool*a.options.Candidates)
	slices.SortStableFunc(hits, func(x, y Hit) int { return cmp.Compare(a.score(y), a.score(x)) })
	return hits[:min(len(hits), a.options.Candidates)]
}

// retrieverPool is how many times as many passages a retriever's scores choose among.
const retrieverPool = 8

// score returns the retriever's score of a passage's document, or -Inf if it has none.
func (a *attributor) score(h Hit) float64 {
	if s := a.docs[a.places[h.Passage].document].Source.Score; s != nil && !math.IsNaN(*s) {
		return *s
	}
	return math.Inf(-1)
}

// setVerdict sets a candidate's verdict, with its offsets converted to the document's text.
func (a *attributor) setVerdict(c *Candidate, v *Verdict) {
	d := &a.docs[c.Document]
	p := &d.Passages[c.Passage]
	c.Verdict = *v
	c.Verdict.Evidence = nil
	for _, e := range v.Evidence {
		if e.Passage != 0 {
			continue
		}
		if e.Span = inDocument(d, p, e.Span); e.Len() > 0 {
			c.Verdict.Evidence = append(c.Verdict.Evidence, e)
		}
	}
	if len(c.Verdict.Evidence) > 0 {
		c.Evidence = c.Verdict.Evidence[0].Span
	}
	c.Verdict.Differences = slices.Clone(v.Differences)
	for i := range c.Verdict.Differences {
		b := &c.Verdict.Differences[i].B // its value is empty if it is in a title that was read with the passage
		b.Span, b.Value = inDocument(d, p, b.Span), inDocument(d, p, b.Value)
		b.Text = textAt(d.Text, b.Span)
	}
}

// offsets returns the offset converter of a document.
func (a *attributor) offsets(document int) *ibid.Offsets {
	if a.units[document] == nil {
		a.units[document] = ibid.NewOffsets(a.docs[document].Text)
	}
	return a.units[document]
}

func (c *Candidate) rank() float64 {
	score := 0.0
	if c.Verdict.Closeness != nil {
		score = *c.Verdict.Closeness
	}
	return score + relevanceShare*c.Relevance
}

// relevanceShare is the weight of relevance beside the score: see TestEvalAttribute.
const relevanceShare = 4

const (
	// maxTogetherPassages is the most passages that are checked as one text.
	maxTogetherPassages = 3
	// maxTogetherParts is the most parts of a sentence that are checked one by one.
	maxTogetherParts = 6
	// togetherShare is the least share of a sentence's weight that a passage must add to be checked with others, as
	// measured by TestEvalTogether.
	togetherShare = 0.08
)

// Together is a checker's verdict on a sentence and several of its candidates, read as one text.
type Together struct {
	Candidates []int   // the supporting ones, as indexes in SentenceSupport.Candidates: two or more
	Verdict    Verdict // without evidence: that is in the candidates' own verdicts
}

// attempt is a sentence that no passage supports alone, with those that may support it together.
type attempt struct {
	sentence *SentenceSupport
	claim    string
	chosen   []int // indexes in its candidates
	passages []Passage
	verdict  Verdict
	parts    []string
}

// together looks for passages that support a sentence only together. That its words are scattered over several passages
// proves little: the sentence must have parts, a passage must support one of them, each passage must be the best for a
// part, and no part may differ from its best passage.
func (a *attributor) together(ctx context.Context, todo []*SentenceSupport) error {
	tries := a.attempts(todo)
	pairs := make([]Pair, len(tries))
	for i := range tries {
		pairs[i] = a.pair(tries[i].sentence, tries[i].claim, tries[i].passages)
	}
	verdicts, err := CheckPairs(ctx, a.options.Checker, pairs)
	if err != nil {
		return err
	}
	pairs = pairs[:0]
	for i := range tries {
		t := &tries[i]
		if t.verdict = verdicts[i]; !t.verdict.IsClose() {
			t.parts = nil
		}
		for _, part := range t.parts {
			for k := range t.passages {
				pairs = append(pairs, a.pair(t.sentence, part, t.passages[k:k+1]))
			}
		}
	}
	if verdicts, err = CheckPairs(ctx, a.options.Checker, pairs); err != nil {
		return err
	}
	for i := range tries {
		t := &tries[i]
		n := len(t.parts) * len(t.passages)
		t.chooseSupporting(verdicts[:n])
		verdicts = verdicts[n:]
	}
	return nil
}

// pair returns a sentence's claim, or a part of it, with the text before the sentence as context.
func (a *attributor) pair(s *SentenceSupport, claim string, passages []Passage) Pair {
	return Pair{Claim: claim, Context: precedingWords(a.out.Answer.Text, s.Span.Start), Passages: passages}
}

// attempts returns the sentences of several parts that no passage supports alone, each with the passages that together
// contain most of its words.
func (a *attributor) attempts(todo []*SentenceSupport) []attempt {
	var tries []attempt
	for _, s := range todo {
		alone := func(c Candidate) bool { return c.Verdict.IsClose() && a.isCitable(&c.Verdict) }
		if s.Skipped != "" || slices.ContainsFunc(s.Candidates, alone) {
			continue
		}
		t := attempt{sentence: s, claim: a.out.Answer.Text[s.Claim.Start:s.Claim.End]}
		for _, part := range splitClaim(t.claim) {
			t.parts = append(t.parts, t.claim[part.Start:part.End])
		}
		if len(t.parts) < 2 || len(t.parts) > maxTogetherParts {
			continue
		}
		t.chosen = a.complement(t.claim, s.Candidates)
		for _, i := range t.chosen {
			t.passages = append(t.passages, a.passages[a.at(&s.Candidates[i])])
		}
		if len(t.chosen) > 1 {
			tries = append(tries, t)
		}
	}
	return tries
}

// at returns the index of a candidate's passage in the corpus.
func (a *attributor) at(c *Candidate) int {
	at, _ := slices.BinarySearchFunc(a.places, place{c.Document, c.Passage}, func(x, y place) int {
		return cmp.Or(cmp.Compare(x.document, y.document), cmp.Compare(x.passage, y.passage))
	})
	return at
}

// complement returns the candidates that together contain most of a claim's words: it repeatedly picks the one that
// adds most, as long as that is at least togetherShare.
func (a *attributor) complement(claim string, candidates []Candidate) []int {
	left := map[uint32]float64{}
	total := 0.0
	for _, key := range appendKeys(nil, claim) {
		if _, again := left[key]; !again {
			left[key] = a.search.weight(key)
			total += left[key]
		}
	}
	var chosen []int
	for len(chosen) < min(a.options.PerSentence, maxTogetherPassages) {
		best, gain := -1, togetherShare*total
		for i := range candidates {
			if sum := a.addedWeight(left, &candidates[i]); sum > gain {
				best, gain = i, sum
			}
		}
		if best < 0 {
			break
		}
		chosen = append(chosen, best)
		for _, key := range a.search.corpus.passage(a.at(&candidates[best])) {
			delete(left, key)
		}
	}
	return chosen
}

// addedWeight returns the weight of the words in left that a candidate contains.
func (a *attributor) addedWeight(left map[uint32]float64, c *Candidate) float64 {
	sum := 0.0
	seen := make(map[uint32]bool, len(left))
	for _, key := range a.search.corpus.passage(a.at(c)) {
		if w, ok := left[key]; ok && !seen[key] {
			seen[key] = true
			sum += w
		}
	}
	return sum
}

// chooseSupporting sets the sentence's Together to the passages that support a part of it. Verdicts are those on each
// part and each passage.
func (t *attempt) chooseSupporting(verdicts []Verdict) {
	supports := make([]bool, len(t.chosen))
	alone := false
	for range t.parts {
		best := 0
		for k := range t.chosen {
			if verdicts[k].strength() > verdicts[best].strength() {
				best = k
			}
		}
		if v := &verdicts[best]; v.deniesClaim() {
			return
		}
		alone = alone || verdicts[best].IsClose()
		supports[best] = supports[best] || verdicts[best].strength() > 0
		verdicts = verdicts[len(t.chosen):]
	}
	together := &Together{Verdict: t.verdict}
	together.Verdict.Evidence, together.Verdict.Differences = nil, nil
	for k, supports := range supports {
		if supports {
			together.Candidates = append(together.Candidates, t.chosen[k])
		}
	}
	if alone && len(together.Candidates) > 1 {
		t.sentence.Together = together
	}
}

// strength orders verdicts on one claim: first those that a judge calls supported, then by closeness, or by label if
// there is none.
func (v *Verdict) strength() float64 {
	switch closeness := v.validCloseness(); {
	case v.isSaid():
		return 1
	case v.Escalated && isJudged(v.Label):
		return 0
	case closeness != nil:
		return *closeness
	case v.Label == Supported:
		return 1
	default:
		return 0
	}
}

// deniesClaim reports whether the passages say something else than a claim.
func (v *Verdict) deniesClaim() bool {
	return v.Label == Differs || v.Label == Contradicted || len(v.Differences) > 0 && v.Label != Supported
}
