package support

import (
	"cmp"
	"math"
	"slices"
)

const (
	// windowLength is how many sentences that follow each other are the evidence of a claim at most.
	windowLength = 3
	// likely is what a word that only begins as one of the claim's does (five letters) counts, against one with its
	// stem.
	likely = 0.7
	// runLength is how many tokens a run has.
	runLength = 30
	// maxTogether is how many terms of a claim are looked at in pairs.
	maxTogether = 64
	// maxNear bounds the words of a passage with one prefix that a claim's term is compared with.
	maxNear = 64
	// maxSentences and maxTokens are how much a text counts for in the features that ask how long it is. Few texts of
	// the fit are longer: a model knows nothing about what lies beyond.
	maxSentences = 40
	maxTokens    = 25 * maxSentences
)

// scorer compares claims with passages. The zero value is ready. It is not safe for concurrent use: it keeps the memory
// that makes comparing free of allocations.
type scorer struct {
	claim    *parsedClaim
	passages []*indexedPassage

	slots    []uint32   // for each passage and term, where it stands in the passage's table
	counts   []int32    // for each term, its tokens in all passages
	near     []bool     // for each term, whether a passage has a word that begins as it does
	inWindow []bool     // for each term, whether it stands in the best window
	lengths  [4]windows // of 1, 2, 3 and 5 sentences: by ones … fives
	parts    windows    // of the sentences, for one part of the claim
	holds    []uint64   // for each sentence, which of the claim's first terms stand in it
	row      []int32    // for each token of the passages, the claim's term; -1: none
	seen     []int32    // for each term, how often it stands in the run at hand

	followers []follower // of the pairs at hand
	pairHeld  []bool     // for each of them, whether a passage has it

	agreed   []agreed
	window   window
	sentence int // the best one
	features [featureCount]float64
	parted   parted
	alone    *scorer // for what stands around the window
}

// The indexes of scorer.lengths.
const (
	ones = iota
	twos
	threes
	fives
)

// windows are all runs of sentences of one length, by their first sentence.
type windows struct {
	length int
	sums   []float64 // the weight of the claim's terms in each
	last   []int32   // the last term that was added to each, plus one
}

// window is a run of sentences, counted through all passages.
type window struct{ from, to int }

// parted says how much of the claim's best and worst part one sentence has.
type parted struct{ strongest, weakest float64 }

// compare finds the features of a claim and passages, which are read as if they were one text. It reports false where
// the one or the other has no words with content.
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
	s.features = [featureCount]float64{}
	s.features[featClaimLength] = math.Log1p(float64(len(c.tokens)))
	s.features[featSentences] = math.Log1p(float64(min(sentences, maxSentences)))
	s.features[featPerson] = math.Log1p(float64(c.persons))
	s.lookUp()
	s.addTerms(sentences)
	s.chooseWindow()
	s.compareParts(sentences)
	s.compareTogether()
	s.compareRow(tokens)
	s.comparePassages(tokens)
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

// add adds a term to the windows that have a sentence, unless it was added already.
func (w *windows) add(sentence int, t int32, weight float64) {
	for i := max(0, sentence-w.length+1); i <= sentence; i++ {
		if w.last[i] != t+1 {
			w.last[i] = t + 1
			w.sums[i] += weight
		}
	}
}

// best returns the first window with the greatest sum.
func (w *windows) best() (at int, sum float64) {
	for i, x := range w.sums {
		if x > sum+1e-9 {
			at, sum = i, x
		}
	}
	return at, sum
}

// lookUp finds all terms in all passages.
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
	for _, a := range s.agreed {
		s.counts[a.term]++
	}
}

// addTerms sums up, for all windows, the weight of the terms in them. Words that only begin alike come last: they count
// less, and only where the stem does not stand.
func (s *scorer) addTerms(sentences int) {
	for i, length := range [...]int{1, 2, windowLength, 5} {
		s.lengths[i].reset(length, sentences)
	}
	s.holds = zeroed(s.holds, sentences)
	for t := range s.claim.terms {
		e := &s.claim.terms[t]
		if e.weight == 0 {
			continue
		}
		base := 0
		for i, p := range s.passages {
			s.addPlaces(p, p.at(s.slots[i*len(s.claim.terms)+t]), int32(t), base, e.weight)
			base += len(p.sentences)
		}
		for _, a := range s.agreed {
			if int(a.term) == t {
				s.addTo(a.sentence, a.term, e.weight)
			}
		}
		if e.prefix != 0 {
			s.addNear(int32(t), e)
		}
	}
}

func (s *scorer) addPlaces(p *indexedPassage, places []uint32, t int32, base int, weight float64) {
	last := noSlot
	for _, at := range places {
		n := p.sentence[at]
		if n == last {
			continue
		}
		last = n
		s.addTo(base+int(n), t, weight)
	}
}

func (s *scorer) addTo(sentence int, t int32, weight float64) {
	for i := range s.lengths {
		s.lengths[i].add(sentence, t, weight)
	}
	if t < maxTogether {
		s.holds[sentence] |= 1 << t
	}
}

func (s *scorer) addNear(t int32, e *term) {
	base := 0
	for _, p := range s.passages {
		p.eachLike(e, func(o *slot) {
			s.near[t] = true
			s.addPlaces(p, p.places[o.from:o.to], t, base, likely*e.weight)
		})
		base += len(p.sentences)
	}
}

// shorterLoss is what a window may have less than one that is longer by a sentence, as a share of the claim, and still
// be the better evidence.
const shorterLoss = 0.04

// chooseWindow finds the best sentence and the best window.
func (s *scorer) chooseWindow() {
	total := s.claim.total
	at, sum := s.lengths[threes].best()
	_, five := s.lengths[fives].best()
	s.features[featWindow], s.features[featWindow5] = sum/total, five/total
	s.window = window{at, min(at+windowLength, len(s.holds))}
	for i := twos; i >= ones; i-- {
		w := &s.lengths[i]
		at, shorter := w.best()
		s.sentence = at // in the end, of ones
		switch {
		case s.window.to-s.window.from <= w.length:
		case shorter >= sum-shorterLoss*total:
			s.window, sum = window{at, min(at+w.length, len(s.holds))}, shorter
		default:
			sum = math.Inf(1)
		}
	}
}

// compareParts finds how much of each part of the claim stands in one sentence.
func (s *scorer) compareParts(sentences int) {
	n := len(s.claim.terms)
	s.parted = parted{0, 1}
	for i := range s.claim.parts {
		part := &s.claim.parts[i]
		if part.weight == 0 {
			continue
		}
		s.parts.reset(1, sentences)
		for _, t := range part.terms {
			e := &s.claim.terms[t]
			if e.weight == 0 {
				continue
			}
			base := 0
			for j, p := range s.passages {
				s.addPart(p, s.slots[j*n+int(t)], t, base)
				base += len(p.sentences)
			}
			for _, a := range s.agreed {
				if a.term == t {
					s.parts.add(a.sentence, t, e.weight)
				}
			}
		}
		_, sum := s.parts.best()
		s.parted.strongest = max(s.parted.strongest, sum/part.weight)
		s.parted.weakest = min(s.parted.weakest, sum/part.weight)
	}
	s.features[featWeakest] = s.parted.weakest
}

func (s *scorer) addPart(p *indexedPassage, place uint32, t int32, base int) {
	e := &s.claim.terms[t]
	for _, at := range p.at(place) {
		s.parts.add(base+int(p.sentence[at]), t, e.weight)
	}
	if s.near[t] {
		p.eachLike(e, func(o *slot) {
			for _, at := range p.places[o.from:o.to] {
				s.parts.add(base+int(p.sentence[at]), t, e.weight)
			}
		})
	}
}

// compareTogether finds how many of the claim's terms, two by two, share a sentence.
func (s *scorer) compareTogether() {
	terms := s.claim.terms[:min(len(s.claim.terms), maxTogether)]
	var got, all float64
	for i := range terms {
		if terms[i].weight == 0 {
			continue
		}
		with := uint64(0)
		for _, h := range s.holds {
			if h>>i&1 != 0 {
				with |= h
			}
		}
		for k := i + 1; k < len(terms); k++ {
			w := terms[i].weight * terms[k].weight
			all += w
			if with>>k&1 != 0 {
				got += w
			}
		}
	}
	if all == 0 {
		got, all = s.held(), s.claim.total
	}
	s.features[featTogether] = got / all
}

// held returns the weight of the terms that the passages have.
func (s *scorer) held() float64 {
	sum := 0.0
	for t, n := range s.counts {
		if n > 0 {
			sum += s.claim.terms[t].weight
		}
	}
	return sum
}

// compareRow finds the best run of tokens, and which of the claim's tokens stand in the best window.
func (s *scorer) compareRow(tokens int) {
	c := s.claim
	s.fillRow(tokens)
	s.seen = zeroed(s.seen, len(c.terms))
	sum, best := 0.0, 0.0
	for i, t := range s.row {
		if t >= 0 {
			if s.seen[t]++; s.seen[t] == 1 {
				sum += c.terms[t].weight
			}
		}
		if i < runLength {
			best = max(best, sum)
			continue
		}
		if out := s.row[i-runLength]; out >= 0 {
			if s.seen[out]--; s.seen[out] == 0 {
				sum -= c.terms[out].weight
			}
		}
		best = max(best, sum)
	}
	s.features[featTight] = best / c.total
	in := 0
	for i := range c.tokens {
		if s.inWindow[c.tokens[i].term] {
			in++
		}
	}
	s.features[featTokens] = float64(in) / float64(len(c.tokens))
}

// fillRow finds which tokens of the passages are terms of the claim, and which terms stand in the best three sentences.
func (s *scorer) fillRow(tokens int) {
	n := len(s.claim.terms)
	s.row = slices.Grow(s.row[:0], tokens)[:tokens]
	for i := range s.row {
		s.row[i] = -1
	}
	s.inWindow = zeroed(s.inWindow, n)
	base, sentences := 0, 0
	first, _ := s.lengths[threes].best()
	for i, p := range s.passages {
		from, to := p.firstToken(first-sentences), p.firstToken(first+windowLength-sentences)
		for t := range n {
			for _, at := range p.at(s.slots[i*n+t]) {
				s.row[base+int(at)] = int32(t)
				if at >= from && at < to {
					s.inWindow[t] = true
				}
			}
		}
		for _, a := range s.agreed {
			if n := a.sentence - sentences; n >= 0 && n < len(p.sentences) {
				s.addAgreed(a.term, s.row[base+int(p.firstToken(n)):base+int(p.firstToken(n+1))])
				s.inWindow[a.term] = s.inWindow[a.term] || a.sentence >= first && a.sentence < first+windowLength
			}
		}
		base += p.tokens
		sentences += len(p.sentences)
	}
}

// firstToken returns the first token of a sentence; before and behind x's sentences, that of its first or none.
func (x *indexedPassage) firstToken(sentence int) uint32 {
	switch {
	case sentence <= 0:
		return 0
	case sentence >= len(x.sentences):
		return uint32(x.tokens)
	}
	return x.sentences[sentence].first
}

// comparePassages finds the features that do not ask where in the passages something stands.
func (s *scorer) comparePassages(tokens int) {
	const k1, b, average = 1.2, 0.75, 150
	c, f := s.claim, &s.features
	norm := k1 * (1 - b + b*float64(min(tokens, maxTokens))/average)
	var names, namesMissing, numbers, numbersMissing float64
	for i := range c.terms {
		t := &c.terms[i]
		tf := float64(s.counts[i])
		f[featBM25] += t.weight * tf / (tf + norm) / c.total
		missing := tf == 0 && !s.near[i]
		if missing {
			f[featRarest] = max(f[featRarest], t.weight)
		}
		switch t.kind {
		case TermName:
			names += t.weight
			if missing {
				namesMissing += t.weight
			}
		case TermNumber:
			numbers++
			if tf == 0 {
				numbersMissing++
			}
		default:
		}
	}
	if names > 0 {
		f[featNameMissing] = namesMissing / names
	}
	f[featNumberMissing] = numbersMissing / max(numbers, 1)
	f[featNumbers] = math.Log1p(numbers)
	f[featPairs] = s.comparePairs()
}

// follower is the second of two neighbours, by its slot in a passage.
type follower struct {
	slot uint32
	pair int32 // index of the two
}

// comparePairs returns the share of the claim's neighbours that are neighbours in a passage too, by weight. It looks at
// each place of a term once, however many neighbours the term has.
func (s *scorer) comparePairs() float64 {
	c := s.claim
	var got, all float64
	var to int
	for from := 0; from < len(c.pairs); from = to {
		for to = from; to < len(c.pairs) && c.pairs[to].first == c.pairs[from].first; to++ {
			all += s.pairWeight(to)
		}
		if s.counts[c.pairs[from].first] > 0 {
			got += s.heldPairs(from, to)
		}
	}
	if all == 0 {
		return s.held() / c.total
	}
	return got / all
}

func (s *scorer) pairWeight(n int) float64 {
	p := &s.claim.pairs[n]
	return float64(p.times) * (s.claim.terms[p.first].weight + s.claim.terms[p.second].weight)
}

// heldPairs returns the weight of those of some pairs with one first term that are neighbours in a passage.
func (s *scorer) heldPairs(from, to int) float64 {
	pairs, n := s.claim.pairs[from:to], len(s.claim.terms)
	s.pairHeld = zeroed(s.pairHeld, len(pairs))
	left := len(pairs)
	for i, p := range s.passages {
		s.followers = s.followers[:0]
		for k := range pairs {
			if slot := s.slots[i*n+int(pairs[k].second)]; !s.pairHeld[k] && len(p.at(slot)) > 0 {
				s.followers = append(s.followers, follower{slot, int32(k)})
			}
		}
		if len(s.followers) > 0 {
			left -= s.follow(p, p.at(s.slots[i*n+int(pairs[0].first)]))
		}
		if left == 0 {
			break
		}
	}
	sum := 0.0
	for k := range pairs {
		if s.pairHeld[k] || s.pairAgrees(&pairs[k]) {
			sum += s.pairWeight(from + k)
		}
	}
	return sum
}

// follow looks for the followers behind the places of a term, and returns how many it found.
func (s *scorer) follow(p *indexedPassage, places []uint32) int {
	if len(s.followers) > 1 {
		slices.SortFunc(s.followers, func(a, b follower) int { return cmp.Compare(a.slot, b.slot) })
	}
	found := 0
	for _, at := range places {
		slot := p.follow[at]
		if len(s.followers) == 1 {
			if slot != s.followers[0].slot {
				continue
			}
			s.pairHeld[s.followers[0].pair] = true
			return 1
		}
		k, ok := slices.BinarySearchFunc(
			s.followers, slot,
			func(f follower, slot uint32) int { return cmp.Compare(f.slot, slot) },
		)
		if !ok || s.pairHeld[s.followers[k].pair] {
			continue
		}
		s.pairHeld[s.followers[k].pair] = true
		if found++; found == len(s.followers) {
			break
		}
	}
	return found
}

// pairAgrees reports whether one of two neighbours stands in another form in a sentence that has the other one.
func (s *scorer) pairAgrees(pair *neighbours) bool {
	for _, a := range s.agreed {
		if a.term == pair.first && s.stands(pair.second, a.sentence) ||
			a.term == pair.second && s.stands(pair.first, a.sentence) {
			return true
		}
	}
	return false
}

const (
	// maxWhole is how many sentences a text has at most to be looked at as a whole only: one in a hundred of the fit
	// has more.
	maxWhole = 150
	// around is how many sentences of a longer passage are looked at on either side of the window.
	around = 8
)

// score returns P(supported): that of all passages together, or that of what stands around the window alone, whichever
// is greater. What a passage supports no text beside it takes away. The features are those of the score.
func (s *scorer) score() float64 {
	score := lexicalModel().score(&s.features)
	if s.compareAlone() {
		if alone := lexicalModel().score(&s.alone.features); alone > score {
			s.features, score = s.alone.features, alone
		}
	}
	return score
}

// compareAlone compares the claim with the passages that the window stands in, long ones cut. It reports false where
// the text is short.
func (s *scorer) compareAlone() bool {
	if len(s.holds) <= maxWhole {
		return false
	}
	if s.alone == nil {
		s.alone = new(scorer)
	}
	ok := s.alone.compare(s.claim, s.aroundWindow())
	s.alone.claim, s.alone.passages = nil, nil
	return ok
}

// aroundWindow returns the passages that the window stands in, long ones cut, and tells s.alone what agrees there.
func (s *scorer) aroundWindow() []*indexedPassage {
	list := make([]*indexedPassage, 0, windowLength)
	s.alone.agreed = s.alone.agreed[:0]
	base, shown := 0, 0
	for _, p := range s.passages {
		n := len(p.sentences)
		from, to := s.window.from-base, s.window.to-base
		if from < n && to > 0 {
			from, to = max(0, from-around), min(n, to+around)
			if n <= maxWhole {
				from, to = 0, n
			} else {
				p = p.cut(from, to)
			}
			for _, a := range s.agreed {
				if at := a.sentence - base; at >= from && at-from < min(to-from, len(p.sentences)) {
					s.alone.agreed = append(s.alone.agreed, agreed{a.term, shown + at - from})
				}
			}
			list = append(list, p)
			shown += len(p.sentences)
		}
		base += n
	}
	return list
}

// cut returns some sentences of x as a passage.
func (x *indexedPassage) cut(from, to int) *indexedPassage {
	return indexPassage(x.text[x.sentences[from].start:x.sentences[to-1].end])
}
