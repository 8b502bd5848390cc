package support

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/ibidhq/ibid"
)

// The limits of [Changed]. What is longer is read up to there.
const (
	MaxChangedClaim    = 64 << 10  // bytes of the claim
	MaxChangedEvidence = 256 << 10 // bytes of the evidence
	MaxChangedValues   = 256       // values of the claim
	MaxChangedPairs    = 1 << 21   // of a value of each: of a long evidence, fewer values of the claim are compared
)

// contextDistance is how many words to either side of a value are around it.
const contextDistance = 6

// Changed returns what the claim says otherwise than its evidence: a number, date, name, negation or word that has an
// opposite of the claim for which the evidence, where it speaks of the same thing, has another. A is the claim's side
// ([InClaim]), B the evidence's (Passage 0, offsets in evidence).
//
// What the evidence lacks is not changed, nor is what is rounded, converted to another unit, or said more or less
// exactly. Only the first MaxChangedClaim and MaxChangedEvidence bytes are read.
func Changed(claim, evidence string) []Conflict { return changedIn(claim, piece{0, 0, evidence}) }

// changedIn is Changed of evidence in several pieces, whose passages and places B has.
func changedIn(claim string, evidence ...piece) []Conflict {
	claim = firstBytes(claim, MaxChangedClaim)
	evidence = slices.Clone(evidence)
	left := MaxChangedEvidence
	for i := range evidence {
		evidence[i].text = firstBytes(evidence[i].text, left)
		left -= len(evidence[i].text)
	}
	language := sharedLanguage(claim, joined(evidence))
	c := &changer{
		claim:    readValuedText(language, piece{InClaim, 0, claim}),
		evidence: readValuedText(language, evidence...),
		foreign:  foreign(language),
		comma:    decimalComma(language),
	}
	c.index()
	for i := range c.values {
		switch c.claim.values[i].Kind {
		case ValueNumber:
			c.number(i)
		case ValueDate:
			c.date(i)
		case ValueName:
			c.name(i)
		default: // negations follow together
		}
	}
	if !c.foreign {
		c.denials()
		c.denied()
		c.opposites()
	}
	return c.found
}

// changer compares one claim with its evidence.
type changer struct {
	claim, evidence *valuedText
	values          int                // how many of the claim's are compared
	weights         map[uint32]float64 // of the claim's terms
	total           float64
	words           map[string]bool  // of the evidence, folded
	figures         map[string][]int // of the evidence, their tokens
	large           map[string]bool  // of the claim, those with a capital, folded
	overlap         []float64        // for each sentence of the evidence, the share of the claim's weight
	matched         []bool           // of the evidence's values, those that the claim has; nil: nobody asked
	found           []Conflict
	foreign, comma  bool // of the language, as of a reader
}

// maxSameFigure is how many places of one figure in the evidence are looked at.
const maxSameFigure = 16

func (c *changer) index() {
	c.values = min(len(c.claim.values), MaxChangedValues, 1+MaxChangedPairs/(1+len(c.evidence.values)))
	c.weights = make(map[uint32]float64, len(c.claim.terms))
	for _, term := range c.claim.terms {
		if c.weights[term.key] == 0 {
			c.weights[term.key] = term.weight
			c.total += term.weight
		}
	}
	c.figures = make(map[string][]int)
	c.words = make(map[string]bool, len(c.evidence.tokens))
	for i := range c.evidence.tokens {
		if token := &c.evidence.tokens[i]; token.kind != signToken {
			c.words[foldWord(withoutPossessive(token.low))] = true
			if token.glued && i > 1 && c.evidence.tokens[i-1].low == "-" {
				c.words[c.evidence.tokens[i-2].low+token.low] = true // Ibero-American is Iberoamerican
			}
		}
		if token := &c.evidence.tokens[i]; token.kind == numberToken {
			figure := c.plainFigure(token.low)
			if len(c.figures[figure]) < maxSameFigure {
				c.figures[figure] = append(c.figures[figure], i)
			}
		}
	}
	c.large = make(map[string]bool)
	for i := range c.claim.tokens {
		if token := &c.claim.tokens[i]; token.upper {
			c.large[foldWord(withoutPossessive(token.low))] = true
		}
	}
	c.overlap = make([]float64, len(c.evidence.sentences))
	for i := range c.evidence.sentences {
		c.overlap[i] = c.share(c.evidence.sentences[i].terms, c.weights, c.total)
	}
}

// share is how much of the weight of some terms stands in a range of the evidence's terms.
func (c *changer) share(terms [2]int, weights map[uint32]float64, total float64) float64 {
	if total == 0 || terms[0] == terms[1] {
		return 0
	}
	seen := make(map[uint32]bool, len(weights))
	sum := 0.
	for _, term := range c.evidence.terms[terms[0]:terms[1]] {
		if w := weights[term.key]; w > 0 && !seen[term.key] {
			seen[term.key] = true
			sum += w
		}
	}
	return sum / total
}

// candidate is a value of the evidence that may stand where a value of the claim should.
type candidate struct {
	value, sentence  int
	overlap, context float64
	taken            float64 // takenPenalty, if the claim has the value as well
	off              float64 // how far the value is from the claim's, if both are numbers of one unit
}

// takenPenalty is what a value of the evidence that the claim has as well loses against others, in shares of the claim.
const takenPenalty = .5

func (a candidate) better(b candidate) bool {
	if sum, other := a.overlap+a.context-a.taken, b.overlap+b.context-b.taken; math.Abs(sum-other) > 1e-9 {
		return sum > other
	}
	return a.off < b.off
}

// around returns the weights of the words around a value of the claim.
func (c *changer) around(value int) (map[uint32]float64, float64) {
	place := c.claim.places[value]
	weights, total := make(map[uint32]float64, 2*contextDistance), 0.
	for _, term := range c.claim.terms {
		inside := c.claim.tokens[term.token].start >= c.claim.values[value].Span.Start &&
			c.claim.tokens[term.token].end <= c.claim.values[value].Span.End
		if d := term.token - place; d >= -contextDistance && d <= contextDistance && !inside && weights[term.key] == 0 {
			weights[term.key] = term.weight
			total += term.weight
		}
	}
	return weights, total
}

// closeness is how much of the words around the claim's value stands around a value of the evidence.
func (c *changer) closeness(value int, weights map[uint32]float64, total float64) float64 {
	place := c.evidence.places[value]
	s := &c.evidence.sentences[c.evidence.sentenceOf(place)]
	terms := c.evidence.terms[s.terms[0]:s.terms[1]]
	from := sort.Search(len(terms), func(i int) bool { return terms[i].token >= place-2*contextDistance })
	to := from
	for to < len(terms) && terms[to].token <= place+2*contextDistance {
		to++
	}
	return c.share([2]int{s.terms[0] + from, s.terms[0] + to}, weights, total)
}

// best finds the best value of the evidence among those that may be meant.
func (c *changer) best(value int, meant func(*Value) bool) (candidate, bool) {
	weights, total := c.around(value)
	best, ok := candidate{}, false
	for i := range c.evidence.values {
		v := &c.evidence.values[i]
		if v.Kind != c.claim.values[value].Kind || !meant(v) {
			continue
		}
		sentence := c.evidence.sentenceOf(c.evidence.places[i])
		found := candidate{
			value:    i,
			sentence: sentence,
			overlap:  c.overlap[sentence],
			context:  c.closeness(i, weights, total),
			off:      math.Abs(v.Number - c.claim.values[value].Number),
		}
		if c.taken(i) {
			found.taken = takenPenalty
		}
		if !ok || found.better(best) {
			best, ok = found, true
		}
	}
	return best, ok
}

func (c *changer) number(i int) {
	v := &c.claim.values[i]
	for j := range c.evidence.values {
		if sameQuantity(v, &c.evidence.values[j]) {
			return
		}
	}
	if best, ok := c.best(
		i,
		func(e *Value) bool { return otherUnit(v, e) && sameFigure(v, e) },
	); ok &&
		c.add(ConflictUnit, i, best, sameKind) {
		return
	}
	if c.near(i) || c.figureStands(v) {
		return
	}
	if best, ok := c.best(
		i,
		func(e *Value) bool { return comparableNumbers(v, e) },
	); ok &&
		!c.difference(i, best.value) {
		c.add(ConflictNumber, i, best, sameKind)
	}
}

// difference reports whether the claim says by how much something changed, and the evidence from or to what.
func (c *changer) difference(value, other int) bool {
	i, j := c.claim.places[value]-1, c.evidence.places[other]-1
	return i >= 0 && j >= 0 && c.claim.tokens[i].low == "by" &&
		(c.evidence.tokens[j].low == "to" || c.evidence.tokens[j].low == "from")
}

// sameQuantity reports whether a number of the evidence is the claim's.
func sameQuantity(v, e *Value) bool {
	return e.Kind == ValueNumber &&
		(comparableNumbers(v, e) && sameNumber(v, e, roundingSlack(v, e)) || sameFigure(v, e) && !otherUnit(v, e))
}

// sameAs reports whether a number or date of the evidence is the claim's.
func (v *Value) sameAs(e *Value) bool {
	switch v.Kind {
	case ValueNumber:
		return sameQuantity(v, e)
	case ValueDate:
		return e.Kind == ValueDate && relateDates(&v.Date, &e.Date) == dateWithin
	default:
		return false
	}
}

// taken reports whether a value of the evidence is one that the claim has as well, so that it stands for no other.
func (c *changer) taken(value int) bool {
	if c.matched == nil {
		c.matched = make([]bool, len(c.evidence.values))
		for i := range c.values {
			for j := range c.evidence.values {
				c.matched[j] = c.matched[j] || c.claim.values[i].sameAs(&c.evidence.values[j])
			}
		}
	}
	return c.matched[value]
}

// roundingSlack is how far the number of a claim may be from the evidence's and still be the same, rounded. A claim
// that gives more figures than its evidence does is no rounding.
func roundingSlack(claim, evidence *Value) float64 {
	slack := max(claim.Digits, evidence.Digits)
	switch {
	case claim.Unit.Name != evidence.Unit.Name && claim.Unit.Kind == evidence.Unit.Kind && claim.Unit.Kind != UnitCount:
		return max(slack, claim.slack(), evidence.slack())
	case claim.Round > 1.5*evidence.Round && (claim.Approximate || claim.Written >= 1000):
		return max(slack, claim.slack())
	}
	return slack
}

// otherUnit reports whether two numbers have units of one kind, or money, that differ.
func otherUnit(a, b *Value) bool {
	switch a.Unit.Kind {
	case UnitNone, UnitCount, UnitOrdinal:
		return false
	case UnitPercent:
		return b.Unit.Kind == UnitPoints
	case UnitPoints:
		return b.Unit.Kind == UnitPercent
	default:
		return a.Unit.Kind == b.Unit.Kind && a.Unit.Name != b.Unit.Name
	}
}

// figureStands reports whether the figures of a number stand in the evidence where they are read as something else.
func (c *changer) figureStands(v *Value) bool {
	for i := range c.evidence.values {
		if d := &c.evidence.values[i]; d.Kind == ValueDate && (v.Unit.Kind == UnitNone || v.Unit.Kind == UnitCount) &&
			(float64(d.Date.Year) == v.Written || float64(d.Date.Day) == v.Written) {
			return true
		}
	}
	return false
}

func (c *changer) date(i int) {
	v := &c.claim.values[i]
	d := &v.Date
	part, wider := false, false
	for j := range c.evidence.values {
		e := &c.evidence.values[j]
		if e.Kind == ValueNumber && d.Month == 0 && d.Year == d.LastYear && e.Unit.Kind == UnitNone &&
			e.Written == float64(d.Year) {
			return
		}
		if e.Kind != ValueDate {
			continue
		}
		switch relateDates(d, &e.Date) {
		case dateWithin:
			return
		case datePart:
			part = true
		case dateWider:
			wider = true
		default:
		}
	}
	if c.near(i) {
		return
	}
	if wider && !part {
		return
	}
	if best, ok := c.best(i, func(e *Value) bool { return relateDates(d, &e.Date) == datePart }); ok {
		c.add(ConflictDate, i, best, datePartSame)
		return
	}
	if best, ok := c.best(
		i,
		func(e *Value) bool { return relateDates(d, &e.Date) == dateOther && sameGrain(d, &e.Date) },
	); ok {
		c.add(ConflictDate, i, best, sameKind)
	}
}

// sameGrain reports whether two dates say the same part: a year or a month.
func sameGrain(a, b *Date) bool {
	return a.Year != 0 && b.Year != 0 || a.Month != 0 && b.Month != 0
}

// add reports a value of the claim and its candidate, if the candidate's sentence has enough of the claim.
func (c *changer) add(kind ConflictKind, value int, b candidate, rule changeRule) bool {
	least := rule.least()
	if b.context < least.context || b.overlap < least.overlap {
		return false
	}
	c.addSpan(kind, c.claim.values[value].Span, c.claim.places[value], b.sentence, c.evidence.values[b.value].Span)
	return true
}

// changeRule is why a value of the evidence is taken for the one that the claim should have.
type changeRule int

const (
	sameKind     changeRule = iota // it is of the same kind
	datePartSame                   // a part of the date is the same
	nameNear                       // the name has other digits
	namePartSame                   // a word of the name is the same
	nameOther                      // another name
	nameKnown                      // another name, though the evidence has a part of the claim's
	nameFirst                      // another name, where the claim's is its first word: the evidence may say "it"
	nameAcronym                    // another name, where the claim's is an acronym: the evidence may spell it out
)

// least are the shares from which a rule counts, found on the development halves of the evaluation data.
func (r changeRule) least() candidate {
	switch r {
	case datePartSame:
		return candidate{overlap: .05}
	case sameKind, nameOther:
		return candidate{overlap: .1}
	case nameKnown:
		return candidate{overlap: .3}
	case nameFirst:
		return candidate{overlap: .5, context: .3}
	case nameAcronym:
		return candidate{overlap: .4, context: .3}
	default:
		return candidate{}
	}
}

func (c *changer) addSpan(kind ConflictKind, span ibid.Span, place, sentence int, other ibid.Span) {
	c.found = append(c.found, Conflict{
		Kind: kind,
		A:    c.claim.excerpt(c.claim.sentenceOf(place), span),
		B:    c.evidence.excerpt(sentence, other),
		Note: fmt.Sprintf(
			"%s: %s, %s", kind,
			c.claim.text[span.Start:span.End],
			c.evidence.text[other.Start:other.End],
		),
	})
}

// near looks for a figure of the evidence that differs in one digit from a figure of the claim that the evidence lacks,
// and reports whether it found one. Figures of less than three digits must have a neighbour in common.
func (c *changer) near(value int) bool {
	v := &c.claim.values[value]
	if v.Unit.Name == clockUnit || v.Unit.Name == versionUnit {
		return false
	}
	for i := c.claim.places[value]; i < len(c.claim.tokens) && c.claim.tokens[i].start < v.Span.End; i++ {
		if c.claim.tokens[i].kind != numberToken {
			continue
		}
		figure := c.plainFigure(c.claim.tokens[i].low)
		if len(c.figures[figure]) > 0 {
			continue
		}
		if j, span := c.nearest(i, figure, v.Kind); j >= 0 {
			kind := ConflictNumber
			if v.Kind == ValueDate {
				kind = ConflictDate
			}
			c.addSpan(kind, v.Span, c.claim.places[value], c.evidence.sentenceOf(j), span)
			return true
		}
	}
	return false
}

// nearest returns the best of the tokens of the evidence that differ in one digit from the figure of the claim's token
// i, and the value that it belongs to; -1: there is none. One of a value of the same kind is better, then one whose
// sentence has more of the claim.
func (c *changer) nearest(i int, figure string, kind ValueKind) (int, ibid.Span) {
	best, most, span := -1, 0., ibid.Span{}
	for _, j := range c.nearFigures(figure) {
		if len(figure) < minNearDigits && !c.sameNeighbour(i, j) {
			continue
		}
		sentence := c.evidence.sentenceOf(j)
		token := c.evidence.tokens[j]
		score, at := c.overlap[sentence], ibid.Span{Start: token.start, End: token.end}
		if value := c.figureAt(sentence, at); value >= 0 {
			at = c.evidence.values[value].Span
			if c.evidence.values[value].Kind == kind {
				score++
			}
			if c.taken(value) {
				score -= takenPenalty
			}
		}
		if best < 0 || score > most {
			best, most, span = j, score, at
		}
	}
	return best, span
}

// figureAt returns the number or date of the evidence's sentence that has a place in it; -1: there is none.
func (c *changer) figureAt(sentence int, at ibid.Span) int {
	s := &c.evidence.sentences[sentence]
	for i := s.values[0]; i < s.values[1]; i++ {
		v := &c.evidence.values[i]
		if (v.Kind == ValueNumber || v.Kind == ValueDate) && v.Span.Start <= at.Start && at.End <= v.Span.End {
			return i
		}
	}
	return -1
}

// minNearDigits is how many digits a figure has whose neighbours need not be looked at.
const minNearDigits = 3

// maxNearFigure is how many digits a figure has at most that is compared digit by digit.
const maxNearFigure = 16

// nearFigures returns the tokens of the evidence whose figures differ in exactly one digit.
func (c *changer) nearFigures(figure string) []int {
	var found []int
	if len(figure) > maxNearFigure {
		return nil
	}
	for i := range len(figure) {
		if figure[i] < '0' || figure[i] > '9' {
			continue
		}
		for digit := byte('0'); digit <= '9'; digit++ {
			if digit != figure[i] {
				found = append(found, c.figures[figure[:i]+string(digit)+figure[i+1:]]...)
			}
		}
	}
	return found
}

// plainFigure is a figure without what groups its digits.
func (c *changer) plainFigure(low string) string {
	if f, ok := readDigits(low, c.comma); ok {
		return strconv.FormatFloat(f.value, 'f', -1, 64)
	}
	return low
}

// sameNeighbour reports whether a word beside one figure stands beside the other too.
func (c *changer) sameNeighbour(i, j int) bool {
	a, b := &valueReader{tokens: c.claim.tokens}, &valueReader{tokens: c.evidence.tokens}
	for _, left := range [...]int{i - 1, i + 1, i + 2} {
		for _, right := range [...]int{j - 1, j + 1, j + 2} {
			if a.kind(left) == wordToken && b.kind(right) == wordToken && len(a.low(left)) > 2 &&
				topicKey(a.low(left)) == topicKey(b.low(right)) {
				return true
			}
			if low := a.low(left); low == b.low(right) && (low == "%" || currencyNames[low].name != "") {
				return true
			}
		}
	}
	return false
}

// The least shares of the words around a degree word, and of the claim, that the sentence with its opposite has.
const (
	oppositeContext = .6
	oppositeOverlap = .45
)

var coexistingWords = lists["coexists"]

// opposites compares the words of the claim that have an opposite. The evidence must have the claim's word nowhere and
// none of its side of the pair in a sentence that speaks of the same, the claim none of the other side, and neither
// sentence a negation.
func (c *changer) opposites() {
	for i := range c.values {
		v := &c.claim.values[i]
		if v.Kind != ValueDegree || coexistingWords.has(v.Words[0]) || c.words[c.claim.tokens[c.claim.places[i]].low] ||
			c.claim.hasSide(v.Words[1], 0, len(c.claim.sentences)) ||
			negative(c.claim, &c.claim.sentences[c.claim.sentenceOf(c.claim.places[i])], denyingWord) {
			continue
		}
		best, ok := c.best(i, func(e *Value) bool { return e.Words[0] == v.Words[1] })
		if !ok || best.context < oppositeContext || best.overlap < oppositeOverlap ||
			c.saysSide(v.Words[0], best.overlap) ||
			negative(c.evidence, &c.evidence.sentences[best.sentence], denyingWord) {
			continue
		}
		if !relationWords.has(v.Words[0]) || c.sameNoun(i, best.value) {
			c.addSpan(ConflictAntonym, v.Span, c.claim.places[i], best.sentence, c.evidence.values[best.value].Span)
		}
	}
}

// sameNoun reports whether the same word follows both: northern Siberia, southern Siberia.
func (c *changer) sameNoun(value, other int) bool {
	a, b := &valueReader{tokens: c.claim.tokens}, &valueReader{tokens: c.evidence.tokens}
	i, j := c.claim.places[value]+1, c.evidence.places[other]+1
	return a.kind(i) == wordToken && b.kind(j) == wordToken && !smallWords.has(a.low(i)) &&
		topicKey(a.low(i)) == topicKey(b.low(j))
}

// saysSide reports whether the evidence has a word of one side of a pair where it has as much of the claim as that, or
// nearly.
func (c *changer) saysSide(side string, overlap float64) bool {
	for i := range c.evidence.sentences {
		if c.overlap[i] >= alike*overlap && c.evidence.hasSide(side, i, i+1) {
			return true
		}
	}
	return false
}

// hasSide reports whether some sentences of a text have a word of one side of a pair.
func (t *valuedText) hasSide(side string, from, to int) bool {
	for i := range t.sentences[from:to] {
		s := &t.sentences[from+i]
		for _, v := range t.values[s.values[0]:s.values[1]] {
			if v.Kind == ValueDegree && v.Words[0] == side {
				return true
			}
		}
	}
	return false
}
