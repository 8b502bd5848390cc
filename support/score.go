package support

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	// windowLength is the most consecutive sentences in the evidence of a claim.
	windowLength = 3
	// prefixMatch is how much a word that shares only its first five letters with one of the claim's counts, relative
	// to one with the same stem.
	prefixMatch = 0.7
	// maxNear is the most words of a passage with one prefix that a claim's term is compared with.
	maxNear = 64
	// maxLength is the most tokens of the passages that count in the feature for their length.
	maxLength = 400
)

// scorer compares claims with passages. The zero value is ready to use. It is not safe for concurrent use: it reuses
// its memory, so that comparing does not allocate.
type scorer struct {
	claim    *parsedClaim
	passages []*indexedPassage

	slots   []uint32              // for each passage and term, its slot in the passage's table
	counts  []int32               // for each term, the number of its tokens in all passages
	near    []bool                // for each term, whether a passage has a word with the same prefix
	lengths [windowLength]windows // of one, two and three sentences
	single  windows               // of single sentences, for terms that the window lacks
	paired  []bool                // for each pair of neighbours in the claim, whether they are neighbours in a passage

	agreements []agreement
	window     window
	features   [featureCount]float64
}

// windows are all runs of sentences of one length, by first sentence.
type windows struct {
	length int
	sums   []float64 // the weight of the claim's terms in each
	last   []int32   // the last term added to each, plus one
}

// window is a run of sentences, numbered across all passages.
type window struct{ from, to int }

// agreement is a term of a claim that a sentence gives in another form: the 12 of a dozen.
type agreement struct {
	term     int32
	sentence int
}

// compare computes the features of a claim and its passages, which are read as one text. It returns false if either has
// no words with content.
func (s *scorer) compare(c *parsedClaim, passages []*indexedPassage) bool {
	s.claim, s.passages = c, passages
	sentences, tokens := 0, 0
	for _, p := range passages {
		sentences += len(p.sentences)
		tokens += p.tokens
	}
	if sentences == 0 || c.total == 0 {
		return false
	}
	s.lookUp()
	for i := range s.lengths {
		s.lengths[i].reset(i+1, sentences)
	}
	for t := range c.terms {
		s.eachPlace(int32(t), func(sentence int, weight float64) {
			for i := range s.lengths {
				s.lengths[i].add(sentence, int32(t), weight)
			}
		})
	}
	s.chooseWindow()
	numbers, names := s.countMissing()
	s.features = [featureCount]float64{
		featWindow:  s.lengths[windowLength-1].best().sum / c.total,
		featPairs:   s.comparePairs(),
		featNumbers: math.Log1p(numbers),
		featNames:   math.Log1p(names),
		featPersons: math.Log1p(float64(c.persons)),
		featLength:  math.Log1p(float64(min(tokens, maxLength))),
	}
	return true
}

func zeroed[T any](s []T, n int) []T {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}

func (w *windows) reset(length, sentences int) {
	w.length, w.sums, w.last = length, zeroed(w.sums, sentences), zeroed(w.last, sentences)
}

// add adds a term to the windows that contain a sentence, unless they have it already.
func (w *windows) add(sentence int, t int32, weight float64) {
	for i := max(0, sentence-w.length+1); i <= sentence; i++ {
		if w.last[i] != t+1 {
			w.last[i] = t + 1
			w.sums[i] += weight
		}
	}
}

// bestWindow is a window, by its first sentence, and its weight.
type bestWindow struct {
	at  int
	sum float64
}

// best returns the first window with the greatest sum.
func (w *windows) best() (b bestWindow) {
	for i, x := range w.sums {
		if x > b.sum+1e-9 {
			b = bestWindow{i, x}
		}
	}
	return b
}

// lookUp looks up all terms in all passages.
func (s *scorer) lookUp() {
	n := len(s.claim.terms)
	s.slots = slices.Grow(s.slots[:0], n*len(s.passages))[:n*len(s.passages)]
	s.counts, s.near = zeroed(s.counts, n), zeroed(s.near, n)
	for i, p := range s.passages {
		for j := range s.claim.terms {
			slot := p.place(s.claim.terms[j].key)
			s.slots[i*n+j] = slot
			s.counts[j] += int32(len(p.at(slot)))
		}
	}
	for _, a := range s.agreements {
		s.counts[a.term]++
	}
}

// eachPlace calls f for the sentences that contain a term, with its weight there. Words that share only the prefix come
// last: they count less, and only where the stem does not occur. f may be called more than once for a sentence.
func (s *scorer) eachPlace(t int32, f func(sentence int, weight float64)) {
	e := &s.claim.terms[t]
	if e.weight == 0 {
		return
	}
	base := 0
	for i, p := range s.passages {
		p.eachSentence(p.at(s.slots[i*len(s.claim.terms)+int(t)]), func(n int) { f(base+n, e.weight) })
		base += len(p.sentences)
	}
	for _, a := range s.agreements {
		if a.term == t {
			f(a.sentence, e.weight)
		}
	}
	if e.prefix == 0 {
		return
	}
	base = 0
	for _, p := range s.passages {
		p.eachLike(e, func(o *slot) {
			s.near[t] = true
			p.eachSentence(p.places[o.from:o.to], func(n int) { f(base+n, prefixMatch*e.weight) })
		})
		base += len(p.sentences)
	}
}

// eachSentence calls f once for each sentence that contains one of the tokens, which are in ascending order.
func (x *indexedPassage) eachSentence(places []uint32, f func(sentence int)) {
	last := noSlot
	for _, at := range places {
		if n := x.sentence[at]; n != last {
			last = n
			f(int(n))
		}
	}
}

// shorterLoss is how much less of the claim, as a share, a window may contain than one that is a sentence longer, and
// still be the better evidence.
const shorterLoss = 0.04

// chooseWindow finds the best window.
func (s *scorer) chooseWindow() {
	sentences := len(s.lengths[0].sums)
	best := s.lengths[windowLength-1].best()
	s.window = window{best.at, min(best.at+windowLength, sentences)}
	for i := windowLength - 2; i >= 0; i-- {
		shorter := s.lengths[i].best()
		if shorter.sum < best.sum-shorterLoss*s.claim.total {
			return
		}
		s.window, best = window{shorter.at, min(shorter.at+i+1, sentences)}, shorter
	}
}

// countMissing counts the claim's numbers, and its words of names, that no passage contains.
func (s *scorer) countMissing() (numbers, names float64) {
	for i := range s.claim.terms {
		switch t := &s.claim.terms[i]; {
		case t.weight <= weightContent || s.counts[i] > 0:
		case t.kind == TermNumber:
			numbers++
		case t.kind == TermName && !s.near[i]:
			names++
		}
	}
	return numbers, names
}

// comparePairs returns the share, by weight, of the claim's neighbours that are neighbours in a passage too. It looks
// at each place of a term once, however many neighbours the term has.
func (s *scorer) comparePairs() float64 {
	c := s.claim
	s.paired = zeroed(s.paired, len(c.pairs))
	for from := 0; from < len(c.pairs); {
		first, to := c.pairs[from].first, from
		for ; to < len(c.pairs) && c.pairs[to].first == first; to++ {
		}
		for i, p := range s.passages {
			for _, at := range p.at(s.slots[i*len(c.terms)+int(first)]) {
				next := p.follow[at]
				if next == noSlot {
					continue
				}
				k, ok := slices.BinarySearchFunc(
					c.pairs[from:to], p.table[next].key,
					func(n neighbours, key uint32) int { return cmp.Compare(c.terms[n.second].key, key) },
				)
				if ok {
					s.paired[from+k] = true
				}
			}
		}
		from = to
	}
	var got, all float64
	for i, p := range c.pairs {
		weight := float64(p.times) * (c.terms[p.first].weight + c.terms[p.second].weight)
		all += weight
		if s.paired[i] || s.counts[p.first] > 0 && s.counts[p.second] > 0 && (s.agrees(p.first) || s.agrees(p.second)) {
			got += weight
		}
	}
	if all > 0 {
		return got / all
	}
	for t, n := range s.counts { // a single word has no neighbours
		if n > 0 {
			got += c.terms[t].weight
		}
	}
	return got / c.total
}

// agrees reports whether a passage gives a term in another form: the position of its neighbours then says little.
func (s *scorer) agrees(t int32) bool {
	return slices.ContainsFunc(s.agreements, func(a agreement) bool { return a.term == t })
}

// The features of a claim and its passages. W is the weight of all terms of the claim; stop words are not terms.
const (
	featWindow  = iota // the share of W in the best three consecutive sentences
	featPairs          // the share of the claim's neighbours, without stop words, that are neighbours in a passage
	featNumbers        // ln(1 + the number of the claim's numbers that no passage has)
	featNames          // ln(1 + the number of words of the claim's names that no passage has)
	featPersons        // ln(1 + the number of words for speaker and listener in the claim)
	featLength         // ln(1 + the number of words in the passages, at most maxLength)
	featureCount
)

// feature is a feature's part in the model.
type feature struct {
	name   string  // in [Verdict.Signals]
	weight float64 // in log odds
}

// lexicalBias and lexicalModel are the model: a logistic regression, fitted by TestFit. It checks that more support
// never lowers the score: the first two weights are not negative, the others not positive.
const lexicalBias = -1.3847

var lexicalModel = [featureCount]feature{
	featWindow:  {"window", 2.4512},
	featPairs:   {"pairs", 1.9223},
	featNumbers: {"numbers_missing", -1.4106},
	featNames:   {"names_missing", -0.8261},
	featPersons: {"person", -0.8292},
	featLength:  {"length", -0.1238},
}

// score returns P(supported), assuming that half of all claims are supported.
func (s *scorer) score() float64 {
	z := float64(lexicalBias)
	for i, x := range s.features {
		z += lexicalModel[i].weight * x
	}
	return 1 / (1 + math.Exp(-z))
}

// signals returns the features by name.
func (s *scorer) signals() map[string]float64 {
	m := make(map[string]float64, featureCount)
	for i, f := range lexicalModel {
		m[f.name] = s.features[i]
	}
	return m
}

// modelHash identifies the model by all its numbers.
func modelHash() uint32 { return hash(fmt.Append(nil, lexicalBias, lexicalModel)) }
