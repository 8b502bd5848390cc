package support

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/snapshot"
)

// The parameters of the ranking; TestEvalAttribute and TestEvalEvidence measured them.
const (
	k1          = 1.2 // how soon a word's repetitions stop to count
	lengthShare = 0.9 // how much a passage's length does
	// usualLength is the length in words of a passage that is neither long nor short. It is no mean of the corpus, so
	// that the score of a passage does not depend on how long others are.
	usualLength = 100
	// pairShare is what two words that follow each other, as in the query, count beside the words themselves.
	pairShare = 0.3
	// pairsOf is how many of the best passages are searched for such pairs, at least.
	pairsOf = 64
)

// Corpus ranks passages by what they have in common with a text. That is BM25 (Robertson and Zaragoza, 2009) with three
// differences: a word weighs the square of the mean of how rare it is in English and how rare in the corpus; a passage
// is long or short by itself, not beside the others; and pairs of words that stand together in the query count where
// they stand together in a passage.
//
// It is immutable, and safe for concurrent use. Making one reads each passage once; it keeps four bytes and about as
// much again of each word, and none of the texts.
type Corpus struct {
	starts []int32  // of each passage in keys, and the end
	keys   []uint32 // of the words of all passages
	terms  map[uint32]posting
	list   []occurrence
}

// posting is where the occurrences of a term stand in Corpus.list.
type posting struct {
	from, to int32
	weight   float32
}

// occurrence says how often a term is in a passage.
type occurrence struct{ passage, count int32 }

// Hit is a passage that was found.
type Hit struct {
	Passage int     // its index in what the corpus was made of
	Score   float64 // comparable within one search only
	// Relevance is Score over what the query itself would score as a passage, at most 1: comparable between searches.
	Relevance float64
}

// NewCorpus reads passages.
func NewCorpus(passages []Passage) *Corpus {
	c := &Corpus{starts: make([]int32, 1, len(passages)+1)}
	for i := range passages {
		c.keys = appendKeys(c.keys, passages[i].Text)
		c.starts = append(c.starts, int32(len(c.keys)))
	}
	c.collect()
	return c
}

// appendKeys appends the keys of the words of a text.
func appendKeys(keys []uint32, text string) []uint32 {
	r := reader{text: text}
	for t := (token{}); r.next(&t); {
		keys = append(keys, t.key)
	}
	return keys
}

// collect lists in which passages each term is.
func (c *Corpus) collect() {
	total := map[uint32]int32{} // how many passages have a term
	seen := map[uint32]int32{}  // the last passage that was counted, from 1
	for i := range c.Len() {
		for _, key := range c.passage(i) {
			if seen[key] != int32(i)+1 {
				seen[key] = int32(i) + 1
				total[key]++
			}
		}
	}
	c.terms = make(map[uint32]posting, len(total))
	at := int32(0)
	for _, key := range slices.Sorted(maps.Keys(total)) {
		c.terms[key] = posting{from: at, to: at, weight: float32(c.weigh(key, int(total[key])))}
		at += total[key]
	}
	c.list = make([]occurrence, at)
	for i := range c.Len() {
		for _, key := range c.passage(i) {
			p := c.terms[key]
			if p.to > p.from && c.list[p.to-1].passage == int32(i) {
				c.list[p.to-1].count++
				continue
			}
			c.list[p.to] = occurrence{int32(i), 1}
			p.to++
			c.terms[key] = p
		}
	}
}

// passage returns the words of a passage.
func (c *Corpus) passage(i int) []uint32 { return c.keys[c.starts[i]:c.starts[i+1]] }

// weigh returns what a term weighs that n passages have: the mean of its rarity in English and in the corpus, both
// about 1 for what few have, squared, because of two words one that is very rare tells more than two that are a little.
func (c *Corpus) weigh(key uint32, n int) float64 {
	total := float64(c.Len())
	own := math.Log(1+(total-float64(n)+.5)/(float64(n)+.5)) / math.Log(1+(total+.5)/.5)
	mean := (english().weight(key) + own) / 2
	return mean * mean
}

// saturation returns what a term counts that a passage has n times.
func saturation(n float64, words int) float64 {
	k, b := float64(k1), float64(lengthShare) // no constants: their sums would be more exact
	return n * (k + 1) / (n + k*(1-b+b*float64(words)/usualLength))
}

// Len returns how many passages c has.
func (c *Corpus) Len() int { return len(c.starts) - 1 }

// Search returns the k best passages for a query, best first; of equal ones, the first first. Passages that have no
// word of the query are left out.
func (c *Corpus) Search(query string, k int) []Hit {
	s := searcher{corpus: c}
	return s.search(query, k)
}

// Relevance returns the relevance of every passage for a query, in their order: see [Hit]. What has nothing in common
// with the query has 0.
func (c *Corpus) Relevance(query string) []float64 {
	all := make([]float64, c.Len())
	for _, hit := range c.Search(query, c.Len()) {
		all[hit.Passage] = hit.Relevance
	}
	return all
}

// searcher is what searches need only while they run; it serves one after the other.
type searcher struct {
	corpus *Corpus
	scores []float64 // of each passage
	found  []int32
	query  []uint32
	counts map[uint32]int
	pairs  map[uint64]int // pairs of the query, and how often a passage has them
	has    [32]uint64     // the query's words by eleven bits of their keys: most words of a passage are none of them
}

// may reports whether a word may be one of the query's.
func (s *searcher) may(key uint32) bool { return s.has[key>>7%32]&(1<<(key>>1%64)) != 0 }

func (s *searcher) search(query string, k int) []Hit {
	c := s.corpus
	if k <= 0 || c.Len() == 0 {
		return nil
	}
	if s.scores == nil {
		s.scores = make([]float64, c.Len())
		s.counts, s.pairs = map[uint32]int{}, map[uint64]int{}
	}
	s.query = appendKeys(s.query[:0], query)
	clear(s.counts)
	s.has = [32]uint64{}
	for _, key := range s.query {
		s.counts[key]++
		s.has[key>>7%32] |= 1 << (key >> 1 % 64)
	}
	s.found = s.found[:0]
	self := 0.0
	for _, key := range s.query {
		n := s.counts[key]
		if n == 0 {
			continue // it was there before
		}
		s.counts[key] = 0
		p := c.terms[key]
		weight := s.weight(key)
		self += weight * saturation(float64(n), len(s.query))
		for _, o := range c.list[p.from:p.to] {
			if s.scores[o.passage] == 0 {
				s.found = append(s.found, o.passage)
			}
			s.scores[o.passage] += weight * saturation(
				float64(o.count), int(c.starts[o.passage+1]-c.starts[o.passage]),
			)
		}
	}
	hits := s.best(max(k, pairsOf))
	self += s.addPairs(hits)
	for i := range hits {
		hits[i].Relevance = min(1, hits[i].Score/max(self, math.SmallestNonzeroFloat64))
	}
	sortHits(hits)
	return hits[:min(k, len(hits))]
}

// weight returns what a term of the query weighs.
func (s *searcher) weight(key uint32) float64 {
	if p, known := s.corpus.terms[key]; known {
		return float64(p.weight)
	}
	return s.corpus.weigh(key, 0)
}

// best returns the k best passages of those found, and forgets what was found. Nearly all have but common words, so
// most are passed over by one comparison.
func (s *searcher) best(k int) []Hit {
	hits := make([]Hit, 0, min(len(s.found), 4*k))
	least := 0.0 // what the k-th best has at least
	for _, i := range s.found {
		score := s.scores[i]
		s.scores[i] = 0
		if score < least {
			continue
		}
		if hits = append(hits, Hit{Passage: int(i), Score: score}); len(hits) >= 4*k {
			sortHits(hits)
			hits = hits[:k]
			least = hits[k-1].Score
		}
	}
	sortHits(hits)
	return hits[:min(k, len(hits))]
}

func sortHits(hits []Hit) {
	slices.SortFunc(hits, func(x, y Hit) int {
		if x.Score != y.Score {
			return cmp.Compare(y.Score, x.Score)
		}
		return cmp.Compare(x.Passage, y.Passage)
	})
}

// addPairs adds to the scores of passages what the pairs of the query count that they have, and returns what the
// query's own do.
func (s *searcher) addPairs(hits []Hit) float64 {
	c := s.corpus
	clear(s.pairs)
	for i := 1; i < len(s.query); i++ {
		s.pairs[pairOf(s.query[i-1], s.query[i])] = 0
	}
	value := func(pair uint64, words int) float64 {
		return pairShare * min(
			s.weight(uint32(pair>>32)),
			s.weight(uint32(pair)),
		) * saturation(
			float64(s.pairs[pair]), words,
		)
	}
	count := func(keys []uint32) float64 {
		for i := 1; i < len(keys); i++ {
			if !s.may(keys[i]) || !s.may(keys[i-1]) {
				continue
			}
			pair := pairOf(keys[i-1], keys[i])
			if n, ok := s.pairs[pair]; ok {
				s.pairs[pair] = n + 1
			}
		}
		sum := 0.0
		for i := 1; i < len(s.query); i++ { // in the query's order, so that the sum is the same each time
			pair := pairOf(s.query[i-1], s.query[i])
			if s.pairs[pair] > 0 {
				sum += value(pair, len(keys))
				s.pairs[pair] = 0
			}
		}
		return sum
	}
	for i := range hits {
		hits[i].Score += count(c.passage(hits[i].Passage))
	}
	return count(s.query)
}

func pairOf(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

// finderPassages is how many passages of a text a [Finder] shows its checker for one claim: TestEvalFinder measured it.
const finderPassages = 2

// Finder finds the evidence of claims in whole texts: it shows a checker the passages of a text whose words are nearest
// to the claim's, see [Corpus], together. That is what checkers are made for, and costs a fraction of the whole. The
// zero value is ready. It is safe for concurrent use if the checker is.
type Finder struct {
	Checker Checker // nil: [Lexical]
	// Texts remembers what was read of the texts that it remembers. Nil: each text is read anew in each call.
	Texts *snapshot.Texts
}

// Sought is a claim whose evidence is looked for in a text.
type Sought struct {
	Claim string
	Text  *snapshot.Text
}

// Found is what was found for a claim. The zero value says that the text has no word of it.
type Found struct {
	// Verdict is the checker's, on the passages it was shown. Its spans count in those; Evidence and Conflicts are
	// empty therefore.
	Verdict  Verdict
	Evidence ibid.Span // the best evidence, in bytes of Text.Content; empty: none was named
}

// Find looks for the evidence of claims: one Found for each, in their order. The error says that ctx ended, or that the
// checker could not say anything.
func (f *Finder) Find(ctx context.Context, list []Sought) ([]Found, error) {
	s := seeking{texts: map[*snapshot.Text]*opened{}, indexes: map[string]*indexedPassage{}}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("reading the text for claim %d of %d: %w", i+1, len(list), err)
		}
		if list[i].Text != nil {
			s.add(f.Texts, i, &list[i])
		}
	}
	verdicts, err := s.check(ctx, f.Checker)
	if err != nil {
		return nil, err
	}
	found := make([]Found, len(list))
	for n := range verdicts {
		at := s.pairs[n].claim
		found[at] = s.pairs[n].found(list[at].Text.Content, &verdicts[n])
	}
	return found, nil
}

// seeking is one call of Find.
type seeking struct {
	texts   map[*snapshot.Text]*opened
	indexes map[string]*indexedPassage // of all passages of all texts, by their words as they are judged
	pairs   []soughtPair
}

// opened is a text that is being searched.
type opened struct {
	*reading

	search searcher
}

// soughtPair is a claim and what is shown of a text for it.
type soughtPair struct {
	Pair

	claim int // its index
	cut   []*snapshot.Passage
}

// add chooses the passages for a claim.
func (s *seeking) add(texts *snapshot.Texts, claim int, one *Sought) {
	r := s.texts[one.Text]
	if r == nil {
		r = &opened{reading: readingOf(texts, one.Text)}
		r.search.corpus = r.corpus
		s.texts[one.Text] = r
		for i := range r.shown {
			s.indexes[r.shown[i].Text] = r.indexes[i]
		}
	}
	hits := r.search.search(one.Claim, finderPassages)
	if len(hits) == 0 {
		return
	}
	slices.SortFunc(hits, func(x, y Hit) int { return cmp.Compare(x.Passage, y.Passage) })
	p := soughtPair{Pair: Pair{Claim: one.Claim}, claim: claim}
	for _, hit := range hits {
		p.Passages, p.cut = append(p.Passages, r.shown[hit.Passage]), append(p.cut, &r.passages[hit.Passage])
	}
	s.pairs = append(s.pairs, p)
}

// check asks the checker. Only the default one can use what was read before.
func (s *seeking) check(ctx context.Context, c Checker) ([]Verdict, error) {
	if len(s.pairs) == 0 {
		return nil, ctx.Err()
	}
	pairs := make([]Pair, len(s.pairs))
	for i := range pairs {
		pairs[i] = s.pairs[i].Pair
	}
	if c == nil {
		c = &Lexical{}
	}
	if l, ok := c.(*Lexical); ok {
		return l.check(ctx, pairs, s.indexes)
	}
	return CheckPairs(ctx, c, pairs)
}

// found says where in the text the best evidence of a verdict is. Pieces of it in passages that follow each other are
// one.
func (p *soughtPair) found(text string, v *Verdict) Found {
	f := Found{Verdict: *v}
	f.Verdict.Evidence, f.Verdict.Conflicts = nil, nil
	for i, e := range v.Evidence {
		at := p.place(text, e)
		if i > 0 && (at.Len() == 0 || !p.follows(v.Evidence[i-1], e)) {
			break
		}
		if i == 0 {
			f.Evidence = at
		}
		f.Evidence.End = at.End
	}
	return f
}

// place returns where a piece of evidence is in the text; empty: nowhere.
func (p *soughtPair) place(text string, e Span) ibid.Span {
	if e.Passage < 0 || e.Passage >= len(p.cut) || e.Start < 0 || e.End > len(p.Passages[e.Passage].Text) {
		return ibid.Span{} // a checker that says otherwise than it may
	}
	return p.cut[e.Passage].Place(text, e.Span)
}

// follows reports whether a piece of evidence begins where another ends: a window of sentences that two passages share.
func (p *soughtPair) follows(a, b Span) bool {
	return b.Passage == a.Passage+1 && b.Start == 0 && a.End == len(p.Passages[a.Passage].Text) &&
		p.cut[b.Passage].Index == p.cut[a.Passage].Index+1
}

// reading is what is made of a text to find evidence in it. It is immutable.
type reading struct {
	passages []snapshot.Passage
	shown    []Passage // as they are judged
	indexes  []*indexedPassage
	corpus   *Corpus
}

// readingOf reads a text, unless it was read before.
func readingOf(texts *snapshot.Texts, text *snapshot.Text) *reading {
	r, ok := texts.Beside(text, func() (any, int64) {
		r := newReading(text)
		return r, r.size()
	}).(*reading)
	if !ok { // somebody else keeps something there
		r = newReading(text)
	}
	return r
}

func newReading(text *snapshot.Text) *reading {
	r := &reading{passages: text.Passages(nil)}
	language := Language(text.Content)
	for i := range r.passages {
		shown := Passage{Text: r.passages[i].Apart(text.Content)}
		x := indexPassage(shown.Text)
		if x.tongue.language == "" {
			shown.Language = language // a heading, a list: too short to tell
		}
		r.shown, r.indexes = append(r.shown, shown), append(r.indexes, x)
	}
	r.corpus = NewCorpus(r.shown)
	return r
}

// size is about how many bytes a reading has.
func (r *reading) size() int64 {
	const (
		perPassage = 512
		perToken   = 16 // in the lists of an index
		perSlot    = 24 // and in its table
		perKey     = 48 // in the corpus, where most are a term's first
	)
	n := len(r.corpus.keys) * perKey
	for i, x := range r.indexes {
		n += perPassage + len(r.shown[i].Text) + x.tokens*perToken + len(x.table)*perSlot
	}
	return int64(n)
}
