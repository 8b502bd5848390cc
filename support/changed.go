package support

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid"
)

// The limits of [Changed]. What is longer is read up to there.
const (
	maxChangedClaim    = 64 << 10  // bytes of the claim
	maxChangedEvidence = 256 << 10 // bytes of the evidence
	maxChangedValues   = 256       // values of the claim
	maxChangedPairs    = 1 << 21   // of a value of each: of a long evidence, fewer values of the claim are compared
)

// contextDistance is how many words to either side of a value are around it.
const contextDistance = 6

// Changed returns what the claim says otherwise than its evidence: a number, date, name, negation or word that has an
// opposite of the claim for which the evidence, where it speaks of the same thing, has another. A is the claim's side
// ([InClaim]), B the evidence's (Passage 0, offsets in evidence).
//
// What the evidence lacks is not changed, nor is what is rounded, converted to another unit, or said more or less
// exactly. Only the first maxChangedClaim and maxChangedEvidence bytes are read.
func Changed(claim, evidence string) []Conflict { return changedIn(claim, piece{0, 0, evidence}) }

// changedIn is Changed of evidence in several pieces, whose passages and places B has.
func changedIn(claim string, evidence ...piece) []Conflict {
	claim = text.Head(claim, maxChangedClaim)
	evidence = slices.Clone(evidence)
	left := maxChangedEvidence
	for i := range evidence {
		evidence[i].text = text.Head(evidence[i].text, left)
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
	c.values = min(len(c.claim.values), maxChangedValues, 1+maxChangedPairs/(1+len(c.evidence.values)))
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
	best, ok := c.best(i, func(e *Value) bool { return otherUnit(v, e) && sameFigure(v, e) })
	if ok && c.add(ConflictUnit, i, best, sameKind) {
		return
	}
	if c.changedDigit(i) || c.figureStands(v) {
		return
	}
	best, ok = c.best(i, func(e *Value) bool { return comparableNumbers(v, e) })
	if ok && !c.difference(i, best.value) {
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
	case claim.Unit.Name != evidence.Unit.Name && claim.Unit.Kind == evidence.Unit.Kind && claim.Unit.Kind != unitCount:
		return max(slack, claim.slack(), evidence.slack())
	case claim.Round > 1.5*evidence.Round && (claim.Approximate || claim.Written >= 1000):
		return max(slack, claim.slack())
	}
	return slack
}

// otherUnit reports whether two numbers have units of one kind, or money, that differ.
func otherUnit(a, b *Value) bool {
	switch a.Unit.Kind {
	case unitNone, unitCount, unitOrdinal:
		return false
	case unitPercent:
		return b.Unit.Kind == unitPoints
	case unitPoints:
		return b.Unit.Kind == unitPercent
	default:
		return a.Unit.Kind == b.Unit.Kind && a.Unit.Name != b.Unit.Name
	}
}

// figureStands reports whether the figures of a number stand in the evidence where they are read as something else.
func (c *changer) figureStands(v *Value) bool {
	for i := range c.evidence.values {
		if d := &c.evidence.values[i]; d.Kind == ValueDate && (v.Unit.Kind == unitNone || v.Unit.Kind == unitCount) &&
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
		if e.Kind == ValueNumber && d.Month == 0 && d.Year == d.LastYear && e.Unit.Kind == unitNone &&
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
	if c.changedDigit(i) || wider && !part {
		return
	}
	if best, ok := c.best(i, func(e *Value) bool { return relateDates(d, &e.Date) == datePart }); ok {
		c.add(ConflictDate, i, best, datePartSame)
		return
	}
	differs := func(e *Value) bool { return relateDates(d, &e.Date) == dateOther && sameGrain(d, &e.Date) }
	if best, ok := c.best(i, differs); ok {
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

// changedDigit looks for a figure of the evidence that differs in one digit from a figure of the claim that the
// evidence lacks, and reports whether it found one. Figures of less than three digits must have a neighbour in common.
func (c *changer) changedDigit(value int) bool {
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
		if j, span := c.nearestFigure(i, figure, v.Kind); j >= 0 {
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

// nearestFigure returns the best of the tokens of the evidence that differ in one digit from the figure of the claim's
// token i, and the value that it belongs to; -1: there is none. One of a value of the same kind is better, then one
// whose sentence has more of the claim.
func (c *changer) nearestFigure(i int, figure string, kind ValueKind) (int, ibid.Span) {
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

func (c *changer) name(i int) {
	v := &c.claim.values[i]
	sentence := c.claim.sentenceOf(c.claim.places[i])
	if c.heading(sentence) {
		return
	}
	missing := 0
	for _, word := range v.Words {
		if !c.hasWord(word) {
			missing++
		}
	}
	if missing == 0 {
		return
	}
	if best, ok := c.best(i, func(e *Value) bool { return otherDigits(v.Words, e.Words) }); ok {
		c.add(ConflictName, i, best, nameNear)
		return
	}
	if missing < len(v.Words) {
		partSame := func(e *Value) bool {
			return len(e.Words) > 1 && sharesWord(v.Words, e.Words) && !c.claimHas(e.Words)
		}
		if best, ok := c.best(i, partSame); ok {
			c.add(ConflictName, i, best, namePartSame)
			return
		}
		if c.shorter(v.Words) {
			return
		}
	}
	first := c.claim.tokens[c.claim.places[i]].opens
	best, ok := c.best(i, func(e *Value) bool { return !e.Unsure && !c.claimHas(e.Words) })
	if !ok {
		return
	}
	rule := nameOther
	switch {
	case missing < len(v.Words):
		rule = nameKnown
	case first:
		if v.Unsure && !c.subject(i) {
			return
		}
		rule = nameFirst
	case c.claim.tokens[c.claim.places[i]].caps:
		rule = nameAcronym
	}
	c.add(ConflictName, i, best, rule)
}

// heading reports whether a sentence of the claim is written as a title is.
func (c *changer) heading(sentence int) bool {
	s := c.claim.sentences[sentence]
	words, large := 0, 0
	for _, token := range c.claim.tokens[s.tokens[0]:s.tokens[1]] {
		if token.kind == wordToken && !smallWords.has(token.low) {
			words++
			if token.upper {
				large++
			}
		}
	}
	return words > 3 && large == words
}

// shorter reports whether the evidence has a name by some of its words only.
func (c *changer) shorter(words []string) bool {
	for i := range c.evidence.values {
		e := &c.evidence.values[i]
		if e.Kind != ValueName || len(e.Words) >= len(words) {
			continue
		}
		if !slices.ContainsFunc(e.Words, func(word string) bool { return !slices.Contains(words, word) }) {
			return true
		}
	}
	return false
}

// subject reports whether what follows a sentence's first word is a verb of the third person: Milira sings.
func (c *changer) subject(value int) bool {
	next := c.claim.places[value] + 1
	if next >= len(c.claim.tokens) || c.claim.tokens[next].kind != wordToken {
		return false
	}
	switch low := c.claim.tokens[next].low; low {
	case "is", "was", "has", "had", "did", "does", "will", "can":
		return true
	default:
		return len(low) > 3 && low[len(low)-1] == 's' && !isPlural(c.claim.tokens[next-1].low)
	}
}

func sharesWord(a, b []string) bool {
	return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
}

// otherDigits reports whether two names differ in their digits only: COVID-19, COVID-13.
func otherDigits(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	differ := false
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		differ = true
		if withoutDigits(a[i]) == a[i] || withoutDigits(a[i]) != withoutDigits(b[i]) {
			return false
		}
	}
	return differ
}

func withoutDigits(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, word)
}

// hasWord reports whether the evidence has a word of a name, also with another ending.
func (c *changer) hasWord(word string) bool {
	if c.words[word] {
		return true
	}
	if len(word) < 3 || strings.ContainsAny(word, "0123456789") {
		return c.alias(word)
	}
	for w := range c.words {
		n := commonPrefix(w, word)
		if n == len(word) || n >= 4 && (n == len(w) || max(len(w), len(word))-n <= 3) {
			return true
		}
	}
	return c.alias(word)
}

// alias reports whether the evidence has another name of the countries that texts call by many names.
func (c *changer) alias(word string) bool {
	switch word {
	case "us", "usa", "u.s", "american", "america":
		return c.words["us"] || c.words["usa"] || c.words["american"] || c.words["americans"] || c.words["america"] ||
			c.words["united"] && c.words["states"]
	case "uk", "british", "britain":
		return c.words["uk"] || c.words["british"] || c.words["britain"] || c.words["united"] && c.words["kingdom"]
	case "united", "states":
		return c.words["us"] || c.words["usa"] || c.words["american"]
	}
	return false
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// claimHas reports whether the claim has all the words of a name, written large.
func (c *changer) claimHas(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !c.large[word] })
}

const (
	// focusWords is how many words behind a negation are what it denies.
	focusWords = 4
	focusTerms = 8 * focusWords // that they are looked for among
	// denialOverlap is the least share of the claim in the evidence's best sentence for a denial of the claim to count,
	// and denialFocus the least share of what it denies, where the sentence has a word of refusal or lack.
	denialOverlap = .2
	denialFocus   = .15
	// deniedOverlap and deniedFocus are the same for a denial of the evidence.
	deniedOverlap = .5
	deniedFocus   = .6
	// alike is how near another sentence must come to the best one for its denials to count too.
	alike = .7
	// besideSentences is how many sentences before and behind the best one are looked at for a denial of the same
	// words.
	besideSentences = 2
	besideWords     = 2
)

// focus returns the weights of the words behind a negation of t.
func focus(t *valuedText, value int) (weights map[uint32]float64, total float64) {
	sentence := t.sentences[t.sentenceOf(t.places[value])]
	weights = make(map[uint32]float64, focusWords)
	scope := t.values[value].Scope
	terms := t.terms[sentence.terms[0]:sentence.terms[1]]
	first := sort.Search(len(terms), func(i int) bool { return t.tokens[terms[i].token].start >= scope.Start })
	for _, term := range terms[first:min(first+focusTerms, len(terms))] {
		if t.tokens[term.token].end > scope.End {
			break
		}
		if weights[term.key] != 0 {
			continue
		}
		weights[term.key] = term.weight
		total += term.weight
		if len(weights) == focusWords {
			break
		}
	}
	return weights, total
}

// sharedWeight returns the weight of those words that another text has.
func sharedWeight(weights map[uint32]float64, has func(key uint32) bool) float64 {
	shared := 0.
	for key, weight := range weights {
		if has(key) {
			shared += weight
		}
	}
	return shared
}

// denials compares what the claim denies with what the evidence says.
func (c *changer) denials() {
	for i := range c.values {
		if c.claim.values[i].Kind == ValueNegation && !c.speaksOfSource(i) {
			c.denial(i)
		}
	}
}

func (c *changer) denial(value int) {
	weights, total := focus(c.claim, value)
	best, most, bestShare := -1, 0., 0.
	for i := range c.evidence.sentences {
		share := c.share(c.evidence.sentences[i].terms, weights, total)
		if sum := share + 2*c.overlap[i]; best < 0 || sum > most {
			best, most, bestShare = i, sum, share
		}
	}
	if best < 0 || c.overlap[best] < denialOverlap {
		return
	}
	keys := deniedKeys(c.claim, value)
	for i := range c.evidence.sentences {
		s, same := &c.evidence.sentences[i], c.overlap[i] >= alike*c.overlap[best]
		if !same && (i < best-besideSentences || i > best+besideSentences) {
			continue
		}
		if c.denies(s, keys, !same) || same && bestShare < denialFocus && negative(c.evidence, s, negativeWord) {
			return
		}
	}
	v := &c.claim.values[value]
	c.addSpan(ConflictNegation, v.denied(), c.claim.places[value], best, c.evidence.extent(best, keys))
	c.found[len(c.found)-1].Note = fmt.Sprintf("negation: the claim denies %s, the source does not", c.claim.quoted(v))
}

// denied is a negation with what it denies.
func (v *Value) denied() ibid.Span {
	return ibid.Span{Start: v.Span.Start, End: max(v.Span.End, v.Scope.End)}
}

// quoted is what a negation denies, in quotation marks; the negation itself, if that is nothing.
func (t *valuedText) quoted(v *Value) string {
	text := t.text[v.Scope.Start:v.Scope.End]
	if text == "" {
		text = t.text[v.Span.Start:v.Span.End]
	}
	return `"` + strings.Join(strings.Fields(text), " ") + `"`
}

// extent is the part of a sentence from the first to the last of some words; the sentence without its last stop, if it
// has none.
func (t *valuedText) extent(sentence int, keys map[uint32]bool) ibid.Span {
	s := &t.sentences[sentence]
	var span ibid.Span
	for i := s.tokens[0]; i < s.tokens[1]; i++ {
		at := &t.tokens[i]
		if at.kind != wordToken || !keys[topicKey(at.low)] {
			continue
		}
		if span.End == 0 {
			span.Start = at.start
		}
		span.End = at.end
	}
	if span.End > 0 {
		return span
	}
	span = s.span
	for i := s.tokens[1] - 1; i > s.tokens[0] && t.tokens[i].kind == signToken; i-- {
		span.End = t.tokens[i-1].end
	}
	return span
}

// deniedKeys returns the keys of the words behind a negation of t, those that have an opposite with them.
func deniedKeys(t *valuedText, value int) map[uint32]bool {
	keys := make(map[uint32]bool, focusWords)
	weights, _ := focus(t, value)
	for key := range weights {
		keys[key] = true
	}
	scope := t.values[value].Scope
	for i := value + 1; i < min(value+focusTerms, len(t.values)) && t.values[i].Span.End <= scope.End; i++ {
		if v := &t.values[i]; v.Kind == ValueDegree {
			keys[topicKey(t.tokens[t.places[i]].low)] = true
		}
	}
	return keys
}

// denies reports whether a sentence of the evidence denies one of some words. One that stands beside the sentence that
// counts must deny besideWords of the claim's.
func (c *changer) denies(s *valuedSentence, keys map[uint32]bool, beside bool) bool {
	for i := s.values[0]; i < s.values[1]; i++ {
		if c.evidence.values[i].Kind != ValueNegation {
			continue
		}
		denied, claimed := 0, 0
		for key := range deniedKeys(c.evidence, i) {
			if keys[key] {
				denied++
			}
			if keys[key] || c.weights[key] > 0 {
				claimed++
			}
		}
		if denied > 0 && (!beside || claimed >= besideWords) {
			return true
		}
	}
	return false
}

// denied looks for what the evidence denies and the claim says. A claim that denies anything itself is not looked at.
func (c *changer) denied() {
	for i := range c.claim.sentences {
		if negative(c.claim, &c.claim.sentences[i], negativeWord) {
			return
		}
	}
	for i := range c.evidence.values {
		if c.evidence.values[i].Kind != ValueNegation {
			continue
		}
		if len(c.found) >= maxConflicts {
			return
		}
		sentence := c.evidence.sentenceOf(c.evidence.places[i])
		weights, total := focus(c.evidence, i)
		if total == 0 || c.overlap[sentence] < deniedOverlap {
			continue
		}
		if sharedWeight(weights, func(key uint32) bool { return c.weights[key] > 0 }) >= deniedFocus*total {
			v := &c.evidence.values[i]
			of := c.claimSentence(weights)
			c.addSpan(
				ConflictNegation,
				c.claim.extent(of, deniedKeys(c.evidence, i)),
				c.claim.sentences[of].tokens[0], sentence, v.denied(),
			)
			c.found[len(c.found)-1].Note = fmt.Sprintf(
				"negation: the source denies %s, the claim does not", c.evidence.quoted(v),
			)
		}
	}
}

// claimSentence returns the claim's sentence that has most of some words.
func (c *changer) claimSentence(weights map[uint32]float64) int {
	best, most := 0, 0.
	for i := range c.claim.sentences {
		sum := 0.
		for _, term := range c.claim.terms[c.claim.sentences[i].terms[0]:c.claim.sentences[i].terms[1]] {
			sum += weights[term.key]
		}
		if sum > most {
			best, most = i, sum
		}
	}
	return best
}

// negative reports whether a sentence has a negation, or one of some words.
func negative(t *valuedText, s *valuedSentence, word func(string) bool) bool {
	for _, v := range t.values[s.values[0]:s.values[1]] {
		if v.Kind == ValueNegation {
			return true
		}
	}
	for _, token := range t.tokens[s.tokens[0]:s.tokens[1]] {
		if token.kind == wordToken && word(token.low) {
			return true
		}
	}
	return false
}

var (
	limitingWords = lists["limiting"]
	sourceWords   = lists["of-source"]
)

// speaksOfSource reports whether a negation says what a source does not say, as no source does of itself.
func (c *changer) speaksOfSource(value int) bool {
	scope := c.claim.values[value].Scope
	for i := c.claim.places[value]; i < len(c.claim.tokens) && c.claim.tokens[i].end <= scope.End; i++ {
		if sourceWords.has(c.claim.tokens[i].low) {
			return true
		}
	}
	return false
}

// negativeWord reports whether a word denies or limits what its sentence says.
func negativeWord(low string) bool { return limitingWords.has(low) || denyingWord(low) }

// denyingWord reports whether a word denies by itself.
func denyingWord(low string) bool {
	if rest, ok := strings.CutPrefix(low, "un"); ok {
		return len(low) > 6 && rest[0] != 'i' && !strings.HasPrefix(rest, "der") && !strings.HasPrefix(rest, "ti") ||
			denyingWords.has(low)
	}
	return strings.HasPrefix(low, "non") && len(low) > 5 || denyingWords.has(low)
}
