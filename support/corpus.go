package support

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// The parameters of the ranking; TestEvalAttribute and TestEvalEvidence measured them.
const (
	DefaultK1 = 1.2 // how soon a word's repetitions stop to count
	DefaultB  = 0.9 // how much a passage's length does
	// usualLength is the length in words of a passage that is neither long nor short. It is no mean of the corpus, so
	// that the score of a passage does not depend on how long others are.
	usualLength = 100
	// pairShare is what two words that follow each other, as in the query, count beside the words themselves.
	pairShare = 0.3
	// pairsOf is how many of the best passages are searched for such pairs, at least.
	pairsOf = 64
)

// CorpusOptions says how passages are ranked. Nil and the zero value mean the defaults.
type CorpusOptions struct {
	K1 float64 // 0: DefaultK1
	B  float64 // 0: DefaultB; negative: lengths do not count
}

// Corpus ranks passages by what they have in common with a text. That is BM25 (Robertson and Zaragoza, 2009) with three
// differences: a word weighs the square of the mean of how rare it is in English and how rare in the corpus; a passage
// is long or short by itself, not beside the others; and pairs of words that stand together in the query count where
// they stand together in a passage.
//
// It is immutable, and safe for concurrent use. Making one reads each passage once; it keeps four bytes and about as
// much again of each word, and none of the texts.
type Corpus struct {
	k1, b  float64
	starts []int32  // of each passage in keys, and the end
	keys   []uint32 // of the words of all passages
	terms  map[uint32]posting
	list   []occurrence
	words  *idfTable
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
func NewCorpus(passages []Passage, o *CorpusOptions) *Corpus {
	c := &Corpus{k1: DefaultK1, b: DefaultB, starts: make([]int32, 1, len(passages)+1), words: english()}
	if o != nil && o.K1 > 0 {
		c.k1 = o.K1
	}
	if o != nil && o.B != 0 {
		c.b = min(1, max(0, o.B))
	}
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
	mean := (c.words.weight(key) + own) / 2
	return mean * mean
}

// saturation returns what a term counts that a passage has n times.
func (c *Corpus) saturation(n float64, words int) float64 {
	return n * (c.k1 + 1) / (n + c.k1*(1-c.b+c.b*float64(words)/usualLength))
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
		self += weight * c.saturation(float64(n), len(s.query))
		for _, o := range c.list[p.from:p.to] {
			if s.scores[o.passage] == 0 {
				s.found = append(s.found, o.passage)
			}
			s.scores[o.passage] += weight * c.saturation(
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
		) * c.saturation(
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
