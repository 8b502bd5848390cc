package support

import (
	"fmt"
	"math"
	"slices"
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
	maxChangedPairs    = 1 << 18   // of a value of each: of a long evidence, fewer values of the claim are compared
)

// Changed returns what the claim says otherwise than its evidence: a number, date, name, negation, modality or word
// that has an opposite of the claim for which the evidence, where it speaks of the same thing, has another, and what
// stands in another role to what. A is the claim's side ([InClaim]), B the evidence's (Passage 0, offsets in evidence).
//
// A number is the same if one of the evidence agrees within the rounding that the claim shows, in any unit; more than
// and less than, at least and at most of one figure differ. A name differs if a word of it is nowhere in the evidence
// and another name stands in its place, or what is said of it is said of another name. Roles are who does it to whom,
// from and to, order and cause.
//
// What the evidence lacks is not changed, nor is what is rounded, converted to another unit, or said less exactly. Only
// the first maxChangedClaim and maxChangedEvidence bytes are read.
func Changed(claim, evidence string) []Conflict { return changedIn(claim, piece{0, 0, evidence}) }

// changedIn is Changed of evidence in several pieces, whose passages and places B has.
func changedIn(claim string, evidence ...piece) []Conflict {
	return compareIn(claim, evidence...).found
}

// compareIn compares a claim with evidence in several pieces.
func compareIn(claim string, evidence ...piece) *comparison {
	claim = text.Head(claim, maxChangedClaim)
	evidence = slices.Clone(evidence)
	left := maxChangedEvidence
	for i := range evidence {
		evidence[i].text = text.Head(evidence[i].text, left)
		left -= len(evidence[i].text)
	}
	language := sharedLanguage(claim, joined(evidence))
	c := newComparison(
		readValuedText(language, piece{InClaim, 0, claim}), readValuedText(language, evidence...), language,
	)
	for i := range c.values {
		switch c.claim.values[i].Kind {
		case ValueNumber:
			c.number(i)
		case ValueDate:
			c.date(i)
		case ValueName:
			c.name(i)
		case ValueDegree:
			c.degree(i)
		default: // what the claim denies follows together
		}
	}
	if !foreign(language) {
		c.operators()
		c.relations()
	}
	return c
}

// comparison is of one claim with its evidence. Where claim and evidence agree in words, it compares what stands around
// them: values, what operates on them, and their roles.
type comparison struct {
	claim, evidence *valuedText
	comma           bool
	values          int              // how many of the claim's are compared
	at              map[uint32][]int // the evidence's tokens with a key
	in              map[uint32]bool  // the claim's keys
	words, large    map[string]bool  // of the evidence, and of the claim those with a capital, folded
	figures         map[string][]int // of the evidence, their tokens
	overlap         []float64        // for each sentence of the evidence, the share of the claim's weight
	taken           []bool           // of the evidence's values, those that the claim has
	found           []Conflict
}

// maxSamePlaces is how many places of one word or figure in the evidence are looked at.
const maxSamePlaces = 64

func newComparison(claim, evidence *valuedText, language string) *comparison {
	c := &comparison{
		claim: claim, evidence: evidence, comma: decimalComma(language),
		values: min(len(claim.values), maxChangedValues, 1+maxChangedPairs/(1+len(evidence.values))),
		at:     map[uint32][]int{}, in: map[uint32]bool{}, words: map[string]bool{}, large: map[string]bool{},
		figures: map[string][]int{},
		overlap: make([]float64, len(evidence.sentences)),
		taken:   make([]bool, len(evidence.values)),
	}
	for i := range evidence.tokens {
		token := &evidence.tokens[i]
		if token.kind == signToken {
			continue
		}
		word := foldWord(withoutPossessive(token.low))
		c.words[word] = true
		if country := countries[word].name; country != "" {
			c.words["="+country], c.words["united"] = true, true
		}
		if token.kind == numberToken {
			figure := c.plainFigure(token.low)
			c.figures[figure] = append(c.figures[figure], i)
		}
		if key := token.key; key != 0 && len(c.at[key]) < maxSamePlaces {
			c.at[key] = append(c.at[key], i)
		}
	}
	for i := range claim.tokens {
		if token := &claim.tokens[i]; token.upper {
			c.large[foldWord(withoutPossessive(token.low))] = true
		}
	}
	total := 0.
	for i := range claim.tokens {
		if token := &claim.tokens[i]; token.topic() && !c.in[token.key] {
			c.in[token.key] = true
			total += token.weight
		}
	}
	for i := range evidence.sentences {
		seen := map[uint32]bool{}
		for _, token := range evidence.tokens[evidence.sentences[i].tokens[0]:evidence.sentences[i].tokens[1]] {
			if token.topic() && c.in[token.key] && !seen[token.key] {
				seen[token.key] = true
				c.overlap[i] += token.weight / total
			}
		}
	}
	for i := range claim.tokens {
		c.in[claim.tokens[i].key] = claim.tokens[i].key != 0 // figures too
	}
	for j := range evidence.values {
		e := &evidence.values[j]
		c.taken[j] = slices.ContainsFunc(claim.values[:c.values], func(v Value) bool { return v.saidBy(e) })
	}
	return c
}

// saidBy reports whether a number, date or word of the evidence is what v says.
func (v *Value) saidBy(e *Value) bool {
	if v.Kind != e.Kind {
		return false
	}
	switch v.Kind {
	case ValueNumber:
		return sameQuantity(v, e)
	case ValueDate:
		return relateDates(&v.Date, &e.Date) == dateWithin
	case ValueDegree:
		return v.Words[0] == e.Words[0]
	default:
		return false
	}
}

// near is how much a word says of another that stands at a distance: all within nearby, ever less behind it.
func near(distance int) float64 { return nearby / max(nearby, math.Abs(float64(distance))) }

const nearby = 4.

// around returns the claim's words around a span that the evidence has, by how near they are; place is its first token.
func (c *comparison) around(span ibid.Span, place int) (tokens []valueToken, total, all float64) {
	s := &c.claim.sentences[c.claim.tokens[place].sentence]
	for _, token := range c.claim.tokens[s.tokens[0]:s.tokens[1]] {
		if token.key == 0 || token.start >= span.Start && token.end <= span.End || len(tokens) == maxAround {
			continue
		}
		token.weight *= near(token.pos - c.claim.tokens[place].pos)
		all += token.weight
		if len(c.at[token.key]) > 0 {
			total += token.weight
			tokens = append(tokens, token)
		}
	}
	return tokens, total, all
}

const maxAround = 16

// fit is how much of the words around a value of the claim stands around a place of the evidence.
func (c *comparison) fit(tokens []valueToken, total float64, place int, oneSentence bool) float64 {
	sum, pos := 0., c.evidence.tokens[place].pos
	for _, token := range tokens {
		at := c.at[token.key]
		i, _ := slices.BinarySearchFunc(at, pos, func(at, pos int) int { return c.evidence.tokens[at].pos - pos })
		best := math.MaxInt
		for _, at := range at[max(0, i-1):min(i+1, len(at))] {
			d := c.evidence.tokens[at].pos - pos
			best = min(best, max(d, -d))
		}
		if best < sentenceDistance || !oneSentence {
			sum += token.weight * near(best)
		}
	}
	return sum / max(total, 1e-9)
}

// candidate is a value of the evidence with its fit; value -1: there is none.
type candidate struct {
	value int
	fit   float64
	known float64 // the share of the words around the claim's value that the evidence has
	off   float64 // how far a number is from the claim's
}

// takenPenalty is what a value of the evidence that the claim has as well loses against others.
const takenPenalty = .5

// best finds the best value of the evidence among those that may be meant.
func (c *comparison) best(value int, meant func(*Value) bool) candidate {
	v := &c.claim.values[value]
	tokens, total, all := c.around(v.Span, c.claim.places[value])
	best := candidate{value: -1}
	for i := range c.evidence.values {
		e := &c.evidence.values[i]
		if e.Kind != v.Kind || !meant(e) {
			continue
		}
		found := candidate{
			i, c.fit(tokens, total, c.evidence.places[i], v.Kind == ValueDegree), total / max(all, 1e-9),
			math.Abs(v.Number - e.Number),
		}
		if c.taken[i] && !v.saidBy(e) {
			found.fit -= takenPenalty
		}
		if best.value < 0 || found.fit > best.fit+1e-9 || found.fit > best.fit-1e-9 && found.off < best.off {
			best = found
		}
	}
	return best
}

// instead reports whether another value of the evidence stands where the claim has one: where nothing says the claim's,
// from a least fit on; else only if it fits far better.
func instead(same, other candidate, least float64) bool {
	if other.value < 0 || other.fit*other.known < least {
		return false
	}
	return same.value < 0 || other.known >= wellKnown && other.fit >= surelyMeant && other.fit >= same.fit+farBetter
}

const (
	surelyMeant = .6
	wellKnown   = .4
	farBetter   = .3
)

// The least fits for values of a kind, found on the development halves of the evaluation data.
const (
	leastNumber   = .1
	leastDate     = .05
	leastDatePart = .02
	leastName     = .1
	leastDegree   = .4
)

func (c *comparison) number(i int) {
	v := &c.claim.values[i]
	same := c.best(i, func(e *Value) bool { return sameQuantity(v, e) })
	if same.value < 0 {
		unit := c.best(i, func(e *Value) bool { return otherUnit(v, e) && sameFigure(v, e) })
		if instead(same, unit, leastNumber) {
			c.add(ConflictUnit, i, unit.value)
			return
		}
		if c.changedDigit(i) {
			return
		}
	}
	other := c.best(i, func(e *Value) bool {
		return !sameQuantity(v, e) && (comparableNumbers(v, e) || sameFigure(v, e) && v.Bound*e.Bound < 0)
	})
	if instead(same, other, leastNumber) && !c.difference(i) {
		c.add(ConflictNumber, i, other.value)
	}
}

// difference reports whether the claim says by how much something changed, and the evidence from what to what.
func (c *comparison) difference(value int) bool {
	v := &c.claim.values[value]
	for i := range c.evidence.values {
		for j := range c.evidence.values[i+1 : min(i+1+maxApart, len(c.evidence.values))] {
			a, b := &c.evidence.values[i], &c.evidence.values[i+1+j]
			if a.Kind == ValueNumber && b.Kind == ValueNumber && a.Unit.Kind == b.Unit.Kind &&
				math.Abs(math.Abs(a.Number-b.Number)-v.Number) <= max(v.Digits, a.Digits)+1e-9 {
				return true
			}
		}
	}
	return false
}

const maxApart = 3

func (c *comparison) date(i int) {
	v := &c.claim.values[i]
	d := &v.Date
	related := func(r dateRelation) func(*Value) bool {
		return func(e *Value) bool { return relateDates(d, &e.Date) == r }
	}
	same, wider, part := c.best(i, related(dateWithin)), c.best(i, related(dateWider)), c.best(i, related(datePart))
	if same.value >= 0 || c.changedDigit(i) || wider.value >= 0 && wider.fit >= part.fit {
		return
	}
	if instead(same, part, leastDatePart) {
		c.add(ConflictDate, i, part.value)
		return
	}
	other := c.best(i, func(e *Value) bool { return relateDates(d, &e.Date) == dateOther && sameGrain(d, &e.Date) })
	if instead(same, other, leastDate) {
		c.add(ConflictDate, i, other.value)
	}
}

// sameGrain reports whether two dates say the same part: a year or a month.
func sameGrain(a, b *Date) bool {
	return (a.Year != 0 && b.Year != 0 || a.Month != 0 && b.Month != 0) && (a.Day == 0 || b.Month != 0)
}

// add reports a value of the claim and the evidence's in its place.
func (c *comparison) add(kind ConflictKind, value, other int) {
	c.addSpan(kind, c.claim.values[value].Span, c.claim.places[value], c.evidence.values[other].Span,
		c.evidence.places[other])
}

func (c *comparison) addSpan(kind ConflictKind, span ibid.Span, place int, other ibid.Span, otherPlace int) {
	if len(c.found) >= maxConflicts {
		return
	}
	c.found = append(c.found, Conflict{
		Kind: kind,
		A:    c.claim.excerpt(c.claim.tokens[place].sentence, span),
		B:    c.evidence.excerpt(c.evidence.tokens[otherPlace].sentence, other),
		Note: fmt.Sprintf(
			"%s: %s, %s", kind, c.claim.text[span.Start:span.End], c.evidence.text[other.Start:other.End],
		),
	})
}

// The digits of figures that are compared digit by digit: where there are fewer than minNearDigits, they must have a
// neighbour in common.
const (
	minNearDigits = 3
	maxNearDigits = 16
)

// changedDigit looks for a figure of the evidence that differs in one digit from a figure of the claim that the
// evidence lacks, and reports whether it found one: best in a sentence that has more of the claim.
func (c *comparison) changedDigit(value int) bool {
	v := &c.claim.values[value]
	if v.Unit.Name == clockUnit || v.Unit.Name == versionUnit {
		return false
	}
	for i := c.claim.places[value]; i < len(c.claim.tokens) && c.claim.tokens[i].start < v.Span.End; i++ {
		figure := c.plainFigure(c.claim.tokens[i].low)
		if c.claim.tokens[i].kind != numberToken || len(figure) > maxNearDigits || len(c.figures[figure]) > 0 {
			continue
		}
		best, most := -1, -1.
		for _, j := range c.nearFigures(figure) {
			overlap := c.overlap[c.evidence.tokens[j].sentence]
			if overlap > most && (len(figure) >= minNearDigits || c.sameNeighbour(i, j)) {
				best, most = j, overlap
			}
		}
		if best < 0 {
			continue
		}
		kind := ConflictNumber
		if v.Kind == ValueDate {
			kind = ConflictDate
		}
		c.addSpan(kind, v.Span, c.claim.places[value], c.evidence.figureWith(best), best)
		return true
	}
	return false
}

// figureWith is the number or date of a text that has a token in it, or else the token.
func (t *valuedText) figureWith(i int) ibid.Span {
	at := t.tokens[i].span()
	for _, v := range t.values {
		if (v.Kind == ValueNumber || v.Kind == ValueDate) && v.Span.Start <= at.Start && at.End <= v.Span.End {
			return v.Span
		}
	}
	return at
}

// nearFigures returns the tokens of the evidence whose figures differ in exactly one digit.
func (c *comparison) nearFigures(figure string) (found []int) {
	for i := range len(figure) {
		for digit := byte('0'); digit <= '9' && figure[i] >= '0' && figure[i] <= '9'; digit++ {
			if digit != figure[i] {
				places := c.figures[figure[:i]+string(digit)+figure[i+1:]]
				found = append(found, places[:min(len(places), maxSamePlaces)]...)
			}
		}
	}
	return found
}

// plainFigure is a figure without what groups its digits.
func (c *comparison) plainFigure(low string) string {
	if f, ok := readDigits(low, c.comma); ok {
		return strconv.FormatFloat(f.value, 'f', -1, 64)
	}
	return low
}

// sameNeighbour reports whether a word beside one figure stands beside the other too.
func (c *comparison) sameNeighbour(i, j int) bool {
	for _, left := range [...]int{i - 1, i + 1, i + 2} {
		for _, right := range [...]int{j - 1, j + 1, j + 2} {
			a, b := c.claim.at(left), c.evidence.at(right)
			if a.low == b.low && len(a.low) > 2 || a.key != 0 && a.key == b.key {
				return true
			}
		}
	}
	return false
}

// degree compares a word that has opposites. The evidence must have one among the same words, and none of the claim's
// side there.
func (c *comparison) degree(i int) {
	v := &c.claim.values[i]
	same := c.best(i, func(e *Value) bool { return e.Words[0] == v.Words[0] })
	other := c.best(i, func(e *Value) bool { return slices.Contains(v.Words[1:], e.Words[0]) })
	if other.value < 0 || !instead(same, other, leastDegree) && !contrasted(same, other) ||
		c.claim.denied(c.claim.places[i]) != c.evidence.denied(c.evidence.places[other.value]) {
		return
	}
	place, there := c.claim.places[i], c.evidence.places[other.value]
	if c.sameTopic(place, there) && (!relationWords.has(v.Words[0]) || !c.turned(place, there)) {
		c.add(ConflictAntonym, i, other.value)
	}
}

// contrasted reports whether a word that the evidence has as well stands there among other words than the claim has it:
// use among teenagers has grown, but use among their parents has shrunk.
func contrasted(same, other candidate) bool {
	return other.known >= contrastKnown && other.fit >= leastDegree && other.fit >= same.fit+farBetter
}

const contrastKnown = .75

// sameTopic reports whether the evidence's sentence with token j has the first word of the claim's sentence with token
// i, unless the evidence lacks the word: the revenue of a company is no share price of it.
func (c *comparison) sameTopic(i, j int) bool {
	inSentence := func(at int) bool { return c.evidence.sameSentence(at, j) }
	for k := c.claim.sentences[c.claim.tokens[i].sentence].tokens[0]; k < i; k++ {
		if key := c.claim.tokens[k].key; key != 0 {
			return len(c.at[key]) == 0 || slices.ContainsFunc(c.at[key], inSentence)
		}
	}
	return true
}

func (c *comparison) name(i int) {
	v := &c.claim.values[i]
	place := c.claim.places[i]
	missing := 0
	for _, word := range v.Words {
		if !c.hasWord(word) {
			missing++
		}
	}
	same := candidate{value: -1}
	if missing == 0 {
		same = c.best(i, func(e *Value) bool { return sharesWord(v.Words, e.Words) })
		other := c.best(i, func(e *Value) bool { return !e.Unsure && !slices.ContainsFunc(e.Words, c.claimName) })
		if same.value >= 0 && instead(same, other, leastName) && c.apart(same.value, other.value) &&
			c.claim.leads(place) && !c.evidence.modifies(other.value) &&
			c.evidence.leads(c.evidence.places[other.value]) && c.evidence.leads(c.evidence.places[same.value]) {
			c.add(ConflictName, i, other.value)
		}
		return
	}
	digits := c.best(i, func(e *Value) bool { return otherDigits(v.Words, e.Words) })
	if digits.value >= 0 {
		c.add(ConflictName, i, digits.value)
		return
	}
	least := leastName
	switch token := &c.claim.tokens[place]; {
	case missing < len(v.Words):
		part := c.best(i, func(e *Value) bool {
			return len(e.Words) > 1 && sharesWord(v.Words, e.Words) && !c.claimHas(e.Words)
		})
		if part.value >= 0 {
			c.add(ConflictName, i, part.value)
			return
		}
		if c.shorter(v.Words) {
			return
		}
		least = .3
	case token.opens && v.Unsure:
		return
	case token.opens:
		least = .4 // the evidence may say "it"
	case token.caps:
		least = .4 // the evidence may spell it out
	}
	other := c.best(i, func(e *Value) bool { return !e.Unsure && !c.claimHas(e.Words) })
	if instead(same, other, least) {
		c.add(ConflictName, i, other.value)
	}
}

// shorter reports whether the evidence has a name by some of its words only.
func (c *comparison) shorter(words []string) bool {
	return slices.ContainsFunc(c.evidence.values, func(e Value) bool {
		return e.Kind == ValueName && len(e.Words) < len(words) &&
			!slices.ContainsFunc(e.Words, func(word string) bool { return !slices.Contains(words, word) })
	})
}

func sharesWord(a, b []string) bool {
	return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
}

// otherDigits reports whether two names differ in their digits only: COVID-19, COVID-13.
func otherDigits(a, b []string) bool {
	if len(a) != len(b) || slices.Equal(a, b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && (withoutDigits(a[i]) == a[i] || withoutDigits(a[i]) != withoutDigits(b[i])) {
			return false
		}
	}
	return true
}

func withoutDigits(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, word)
}

// hasWord reports whether the evidence has a word of a name, also with another ending, or another name of a country
// that texts call by many.
func (c *comparison) hasWord(word string) bool {
	if c.words[word] {
		return true
	}
	if c.words["="+countries[word].name] {
		return true
	}
	if len(word) < 3 || strings.ContainsAny(word, "0123456789") {
		return false
	}
	for w := range c.words {
		if n := sharedLetters(w, word); n == len(word) || n >= 4 && max(len(w), len(word))-n <= 3 {
			return true
		}
	}
	return false
}

var countries = lists["country"]

// sharedLetters is how many bytes two words have in common at their beginnings.
func sharedLetters(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// claimHas reports whether the claim has all the words of a name, written large.
func (c *comparison) claimHas(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !c.claimName(word) })
}

// claimName reports whether the claim has a word, written large.
func (c *comparison) claimName(word string) bool {
	return c.large[word]
}

// leads reports whether token i begins a sentence or one of its parts, but for what it is called: the mayor, Ada Lund.
func (t *valuedText) leads(i int) bool {
	sentence := t.tokens[i].sentence
	for k, words := i-1, 0; k >= 0 && t.tokens[k].sentence == sentence && words <= leadingWords; k-- {
		switch token := &t.tokens[k]; {
		case coordinating.has(token.low):
			return true
		case t.verb(k) || prepositions.has(token.low):
			return false
		case token.key != 0:
			words++
		}
		if k == 0 || t.tokens[k-1].sentence != sentence {
			return words <= leadingWords
		}
	}
	return t.tokens[i].opens || i == 0 || t.tokens[i-1].sentence != sentence
}

const leadingWords = 3

var coordinating = lists["coordinating"]

// modifies reports whether a name stands before the noun that it describes: an American singer.
func (t *valuedText) modifies(value int) bool {
	i := t.places[value]
	for t.at(i).start < t.values[value].Span.End && i < len(t.tokens) {
		i++
	}
	next := t.at(i)
	return next.key != 0 && !t.verb(i)
}

// apart reports whether two values of the evidence stand in different clauses, each with words of its own.
func (c *comparison) apart(a, b int) bool {
	from, to := c.evidence.places[a], c.evidence.places[b]
	if from > to {
		from, to = to, from
	}
	end, words := false, false
	for _, t := range c.evidence.tokens[from:to] {
		end = end || clauseWords.has(t.low)
		words = words || t.key != 0 && !t.upper
	}
	return end && words
}
