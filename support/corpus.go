package support

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/snapshot"
)

// The parameters of the ranking, as measured by TestEvalAttribute and TestEvalEvidence.
const (
	k1          = 1.2 // how soon repetitions of a word stop counting
	lengthShare = 0.9 // how much a passage's length counts
	// usualLength is the length in words of a passage that is neither long nor short. It is not the mean of the corpus,
	// so that a passage's score does not depend on the length of others.
	usualLength = 100
	// pairShare is the weight of two words that are adjacent, as in the query, relative to the words themselves.
	pairShare = 0.3
	// pairsOf is the least number of best passages that are searched for such pairs.
	pairsOf = 64
)

// Corpus ranks passages by what they have in common with a query. It uses BM25 (Robertson and Zaragoza, 2009) with
// three differences: a word's weight is the square of the mean of its rarity in English and its rarity in the corpus; a
// passage is long or short in absolute terms, not relative to the others; and pairs of words that are adjacent in the
// query count if they are adjacent in a passage.
//
// It is immutable, and safe for concurrent use. Creating one reads each passage once; it keeps four bytes per word and
// about as much again, and none of the texts.
type Corpus struct {
	starts []int32  // the start of each passage in keys, and the end
	keys   []uint32 // of the words of all passages
	terms  map[uint32]posting
	list   []occurrence
}

// posting is the range of a term's occurrences in Corpus.list.
type posting struct {
	from, to int32
	weight   float32
}

// occurrence is how often a passage contains a term.
type occurrence struct{ passage, count int32 }

// Hit is a passage found by a search.
type Hit struct {
	Passage int     // its index in the corpus
	Score   float64 // comparable within one search only
	// Relevance is Score divided by what the query would score as a passage, at most 1: comparable between searches.
	Relevance float64
}

// NewCorpus indexes passages.
func NewCorpus(passages []Passage) *Corpus { return newCorpus(nil, passages, nil) }

// newCorpus indexes passages; if queries is not nil, only for these queries.
func newCorpus(h *halt.Halt, passages []Passage, queries []string) *Corpus {
	c := &Corpus{starts: make([]int32, 1, len(passages)+1)}
	for i := range passages {
		h.Check()
		c.keys = appendKeys(c.keys, passages[i].Text)
		c.starts = append(c.starts, int32(len(c.keys)))
	}
	var asked *keySet
	if queries != nil {
		asked = &keySet{}
		var keys []uint32
		for _, query := range queries {
			keys = appendKeys(keys[:0], query)
			for _, key := range keys {
				asked.add(key)
			}
		}
	}
	c.collect(h, asked)
	return c
}

// keySet is a bit set of keys, by sixteen of their bits. It may contain more than was added, never less.
type keySet [1 << 10]uint64

func (s *keySet) add(key uint32) { s[key>>7%(1<<10)] |= 1 << (key >> 1 % 64) }

// mayContain is for all keys if s is nil.
func (s *keySet) mayContain(key uint32) bool {
	return s == nil || s[key>>7%(1<<10)]&(1<<(key>>1%64)) != 0
}

// appendKeys appends the keys of the words of a text.
func appendKeys(keys []uint32, text string) []uint32 {
	r := reader{text: text, onlyKeys: true}
	for t := (token{}); r.next(&t); {
		keys = append(keys, t.key)
	}
	return keys
}

// collect lists the occurrences of each term that may be asked for.
func (c *Corpus) collect(h *halt.Halt, asked *keySet) {
	type counted struct {
		key         uint32
		total, last int32 // the number of passages with the term, and the last of them
	}
	var terms []counted
	ids := map[uint32]int32{}
	of := make([]int32, len(c.keys)) // the term of each word, or -1
	for i := range c.Len() {
		h.Check()
		for at := c.starts[i]; at < c.starts[i+1]; at++ {
			key := c.keys[at]
			if of[at] = -1; !asked.mayContain(key) {
				continue
			}
			id, known := ids[key]
			if !known {
				id = int32(len(terms))
				ids[key] = id
				terms = append(terms, counted{key: key, last: -1})
			}
			of[at] = id
			if t := &terms[id]; t.last != int32(i) {
				t.last = int32(i)
				t.total++
			}
		}
	}
	ends := make([]int32, len(terms)) // of the occurrences of each term, so far
	c.terms = make(map[uint32]posting, len(terms))
	at := int32(0)
	for id, t := range terms {
		ends[id] = at
		c.terms[t.key] = posting{from: at, to: at + t.total, weight: float32(c.termWeight(t.key, int(t.total)))}
		at += t.total
	}
	c.list = make([]occurrence, at)
	for i := range c.Len() {
		for _, id := range of[c.starts[i]:c.starts[i+1]] {
			if id < 0 {
				continue
			}
			if t := &terms[id]; t.last == ^int32(i) {
				c.list[ends[id]-1].count++
			} else {
				t.last = ^int32(i)
				c.list[ends[id]] = occurrence{int32(i), 1}
				ends[id]++
			}
		}
	}
}

// passage returns the keys of a passage's words.
func (c *Corpus) passage(i int) []uint32 { return c.keys[c.starts[i]:c.starts[i+1]] }

// termWeight returns the weight of a term in n passages: the mean of its rarity in English and in the corpus, both
// about 1 for rare terms, squared, because one very rare word says more than two fairly rare ones.
func (c *Corpus) termWeight(key uint32, n int) float64 {
	total := float64(c.Len())
	own := math.Log(1+(total-float64(n)+.5)/(float64(n)+.5)) / math.Log(1+(total+.5)/.5)
	mean := (english().weight(key) + own) / 2
	return mean * mean
}

// saturation returns how much a term counts that occurs n times in a passage.
func saturation(n float64, words int) float64 {
	k, b := float64(k1), float64(lengthShare) // not constants, whose arithmetic would be more exact
	return n * (k + 1) / (n + k*(1-b+b*float64(words)/usualLength))
}

// Len returns the number of passages.
func (c *Corpus) Len() int { return len(c.starts) - 1 }

// Search returns the k best passages for a query, best first; ties in their original order. Passages that share no word
// with the query are left out.
func (c *Corpus) Search(query string, k int) []Hit {
	s := searcher{corpus: c}
	return s.search(query, k)
}

// Relevance returns the relevance of every passage to a query, in order: see [Hit]. Passages that share nothing with
// the query have 0.
func (c *Corpus) Relevance(query string) []float64 {
	all := make([]float64, c.Len())
	for _, hit := range c.Search(query, c.Len()) {
		all[hit.Passage] = hit.Relevance
	}
	return all
}

// Relevance is [Corpus.Relevance] for one query, which costs less than a corpus. It fails only if ctx ends.
func Relevance(ctx context.Context, query string, passages []Passage) (all []float64, err error) {
	err = halt.Do(ctx, func(h *halt.Halt) { all = newCorpus(h, passages, []string{query}).Relevance(query) })
	return all, err
}

// searcher holds the state of a search, and is reused for the next.
type searcher struct {
	corpus *Corpus
	scores []float64 // of each passage
	found  []int32
	query  []uint32
	counts map[uint32]int
	pairs  map[uint64]int // the query's pairs of words, and how often the current passage has them
	has    [32]uint64     // a bit set of the query's words by eleven bits of their keys: it rules out most words
}

// mayContain reports whether a word may be one of the query's.
func (s *searcher) mayContain(key uint32) bool { return s.has[key>>7%32]&(1<<(key>>1%64)) != 0 }

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
			continue // a repeated word
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

// weight returns the weight of a term of the query.
func (s *searcher) weight(key uint32) float64 {
	if p, known := s.corpus.terms[key]; known {
		return float64(p.weight)
	}
	return s.corpus.termWeight(key, 0)
}

// best returns the k best passages found, and resets the scores. Most passages share only common words with the query,
// so a single comparison skips them.
func (s *searcher) best(k int) []Hit {
	hits := make([]Hit, 0, min(len(s.found), 4*k))
	least := 0.0 // a lower bound for the k-th best
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
		return cmp.Or(cmp.Compare(y.Score, x.Score), cmp.Compare(x.Passage, y.Passage))
	})
}

// addPairs adds to the scores of passages what the query's pairs in them count, and returns what they count in the
// query itself.
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
			if !s.mayContain(keys[i]) || !s.mayContain(keys[i-1]) {
				continue
			}
			pair := pairOf(keys[i-1], keys[i])
			if n, ok := s.pairs[pair]; ok {
				s.pairs[pair] = n + 1
			}
		}
		sum := 0.0
		for i := 1; i < len(s.query); i++ { // in the query's order, so that the sum is deterministic
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

// finderPassages is how many passages of a text a [Finder] shows its checker per claim, as measured by TestEvalFinder.
const finderPassages = 2

// Finder finds the evidence of claims in whole texts. It shows a checker those passages of a text, together, that
// [Corpus] ranks highest for the claim: checkers are made for passages, and this costs a fraction of reading the whole.
// The zero value is ready to use. It is safe for concurrent use if the checker is.
type Finder struct {
	Checker Checker // nil means [Lexical]
	// Texts caches what was read of the texts that it holds. If nil, each call reads each text anew.
	Texts *snapshot.Texts
}

// Sought is a claim to find evidence for in a text.
type Sought struct {
	Claim string
	Text  *snapshot.Text
}

// Found is the evidence found for a claim. The zero value means that the text shares no word with it.
type Found struct {
	// Verdict is the checker's, on the passages it was shown. Its spans would refer to those, so Evidence and
	// Differences are empty.
	Verdict  Verdict
	Evidence ibid.Span // the best evidence, in bytes of Text.Content; empty if there is none
}

// Find looks for the evidence of claims, and returns one Found for each, in order. It fails if ctx ends or the checker
// fails.
func (f *Finder) Find(ctx context.Context, list []Sought) ([]Found, error) {
	s := findState{texts: map[*snapshot.Text]*opened{}, indexes: map[string]*indexedPassage{}}
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

// findState is the state of one call of Find.
type findState struct {
	texts   map[*snapshot.Text]*opened
	indexes map[string]*indexedPassage // of all passages of all texts, by their text as judged
	pairs   []soughtPair
}

// opened is a text being searched.
type opened struct {
	*reading

	search searcher
}

// soughtPair is a claim and the passages of a text shown for it.
type soughtPair struct {
	Pair

	claim int // its index
	cut   []*snapshot.Passage
}

// add chooses the passages for a claim.
func (s *findState) add(texts *snapshot.Texts, claim int, one *Sought) {
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

// check asks the checker. Only the default one can use the indexes.
func (s *findState) check(ctx context.Context, c Checker) ([]Verdict, error) {
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

// found returns the place of the best evidence in the text. Pieces of it in consecutive passages are joined.
func (p *soughtPair) found(text string, v *Verdict) Found {
	f := Found{Verdict: *v}
	f.Verdict.Evidence, f.Verdict.Differences = nil, nil
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

// place returns the span of a piece of evidence in the text, or an empty one if there is none.
func (p *soughtPair) place(text string, e Span) ibid.Span {
	if e.Passage < 0 || e.Passage >= len(p.cut) || e.Start < 0 || e.End > len(p.Passages[e.Passage].Text) {
		return ibid.Span{} // the checker broke its contract
	}
	return p.cut[e.Passage].Place(text, e.Span)
}

// follows reports whether a piece of evidence begins where another ends: one window of sentences across two passages.
func (p *soughtPair) follows(a, b Span) bool {
	return b.Passage == a.Passage+1 && b.Start == 0 && a.End == len(p.Passages[a.Passage].Text) &&
		p.cut[b.Passage].Index == p.cut[a.Passage].Index+1
}

// reading is a text prepared for finding evidence in it. It is immutable.
type reading struct {
	passages []snapshot.Passage
	shown    []Passage // as judged
	indexes  []*indexedPassage
	corpus   *Corpus
}

// readingOf returns the reading of a text, cached if possible.
func readingOf(texts *snapshot.Texts, text *snapshot.Text) *reading {
	r, ok := texts.Beside(text, func() (any, int64) {
		r := newReading(text)
		return r, r.size()
	}).(*reading)
	if !ok { // another package keeps something there
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
		if x.detected.language == "" {
			shown.Language = language // a heading, a list: too short to detect
		}
		r.shown, r.indexes = append(r.shown, shown), append(r.indexes, x)
	}
	r.corpus = NewCorpus(r.shown)
	return r
}

// size returns the approximate size of a reading in bytes.
func (r *reading) size() int64 {
	const (
		perPassage = 512
		perToken   = 16 // in the lists of an index
		perSlot    = 24 // and in its table
		perKey     = 48 // in the corpus, where most occurrences are the first in a passage
	)
	n := len(r.corpus.keys) * perKey
	for i, x := range r.indexes {
		n += perPassage + len(r.shown[i].Text) + x.tokens*perToken + len(x.table)*perSlot
	}
	return int64(n)
}
