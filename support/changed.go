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

// The limits of [Changed]. Longer input is truncated.
const (
	maxChangedClaim    = 64 << 10  // bytes of the claim
	maxChangedEvidence = 256 << 10 // bytes of the evidence
	maxChangedValues   = 256       // values of the claim
	maxChangedPairs    = 1 << 18   // a value of each; with long evidence, fewer values of the claim are compared
)

// Changed returns the details in which a claim contradicts its evidence: a number, date, name, negation or word with an
// opposite for which the evidence, about the same thing, gives a different one. A is the claim's side ([InClaim]), B
// the evidence's (Passage 0, offsets in evidence).
//
// Numbers are the same if they agree, in any unit, within the rounding that the claim shows; more than and less than,
// at least and at most of one figure differ. A name differs if one of its words is nowhere in the evidence and another
// name is in its place, or if the evidence says the same of another name.
//
// Values that the evidence lacks, rounds, converts to another unit or gives more or less exactly are not changed. Only
// the first 64 KiB of the claim and 256 KiB of the evidence are read.
func Changed(claim, evidence string) []Conflict { return compareIn(claim, piece{0, 0, evidence}).found }

// compareIn compares a claim with evidence in several pieces. Side B of conflicts has their passages and offsets.
func compareIn(claim string, evidence ...piece) *comparison {
	claim = text.Head(claim, maxChangedClaim)
	evidence = slices.Clone(evidence)
	left := maxChangedEvidence
	for i := range evidence {
		evidence[i].text = text.Head(evidence[i].text, left)
		left -= len(evidence[i].text)
	}
	language := sharedLanguage(claim, joinPieces(evidence))
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
		default: // negations are compared below, together
		}
	}
	if !foreign(language) {
		c.denials()
	}
	return c
}

// comparison compares one claim with its evidence. Where they share words, it compares the values around those.
type comparison struct {
	claim, evidence    *valuedText
	comma              bool
	values             int              // how many of the claim's values are compared
	at                 map[uint32][]int // the evidence's tokens by key
	claimKeys          map[uint32]bool  // the claim's keys
	words, capitalised map[string]bool  // folded: the evidence's, and the claim's that begin with a capital
	figures            map[string][]int // the evidence's tokens by figure
	overlap            []float64        // the share of the claim's weight in each sentence of the evidence
	taken              []bool           // whether the claim has that value of the evidence too
	found              []Conflict
}

// maxSamePlaces is the most places of one word or figure in the evidence that are looked at.
const maxSamePlaces = 64

func newComparison(claim, evidence *valuedText, language string) *comparison {
	c := &comparison{
		claim: claim, evidence: evidence, comma: decimalComma(language),
		values: min(len(claim.values), maxChangedValues, 1+maxChangedPairs/(1+len(evidence.values))),
		at:     map[uint32][]int{}, figures: map[string][]int{}, claimKeys: map[uint32]bool{},
		words: map[string]bool{}, capitalised: map[string]bool{},
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
			c.capitalised[foldWord(withoutPossessive(token.low))] = true
		}
	}
	total := 0.
	for i := range claim.tokens {
		if token := &claim.tokens[i]; token.topic() && !c.claimKeys[token.key] {
			c.claimKeys[token.key] = true
			total += token.weight
		}
	}
	for i := range evidence.sentences {
		seen := map[uint32]bool{}
		for _, token := range evidence.tokensOf(i) {
			if token.topic() && c.claimKeys[token.key] && !seen[token.key] {
				seen[token.key] = true
				c.overlap[i] += token.weight / total
			}
		}
	}
	for i := range claim.tokens {
		c.claimKeys[claim.tokens[i].key] = claim.tokens[i].key != 0 // figures too
	}
	for j := range evidence.values {
		e := &evidence.values[j]
		c.taken[j] = slices.ContainsFunc(claim.values[:c.values], func(v Value) bool { return v.sameAs(e) })
	}
	return c
}

// sameAs reports whether v agrees with a number, date or word of the evidence.
func (v *Value) sameAs(e *Value) bool {
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

// near returns how much a word counts at a distance: fully up to nearby words, then ever less.
func near(distance int) float64 { return nearby / max(nearby, math.Abs(float64(distance))) }

const nearby = 4.

// around returns the claim's words around a span that the evidence has too, weighted by distance; place is its first
// token. Total is their weight, all that of the words that the evidence lacks too.
func (c *comparison) around(span ibid.Span, place int) (tokens []valueToken, total, all float64) {
	for _, token := range c.claim.tokensOf(c.claim.tokens[place].sentence) {
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

// fit returns the share of the words around a value of the claim that are around a place in the evidence too.
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

// candidate is a value of the evidence with its fit; value is -1 if there is none.
type candidate struct {
	value int
	fit   float64
	known float64 // the share of the words around the claim's value that the evidence contains
	off   float64 // the distance of a number from the claim's
}

// takenPenalty is subtracted from the fit of a value of the evidence that the claim has as well.
const takenPenalty = .5

// best returns the value of the evidence that fits best among those that meant accepts.
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
		if c.taken[i] && !v.sameAs(e) {
			found.fit -= takenPenalty
		}
		if best.value < 0 || found.fit > best.fit+1e-9 || found.fit > best.fit-1e-9 && found.off < best.off {
			best = found
		}
	}
	return best
}

// replaces reports whether the evidence has another value in place of the claim's: with at least some fit if it has the
// claim's nowhere, else only if the other fits far better.
func replaces(same, other candidate, least float64) bool {
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

// The least fits by kind of value, tuned on the development halves of the evaluation data.
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
		if replaces(same, unit, leastNumber) {
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
	if replaces(same, other, leastNumber) && !c.difference(i) {
		c.add(ConflictNumber, i, other.value)
	}
}

// difference reports whether the claim gives the amount of a change, and the evidence its start and end.
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
	if replaces(same, part, leastDatePart) {
		c.add(ConflictDate, i, part.value)
		return
	}
	other := c.best(i, func(e *Value) bool { return relateDates(d, &e.Date) == dateOther && sameGrain(d, &e.Date) })
	if replaces(same, other, leastDate) {
		c.add(ConflictDate, i, other.value)
	}
}

// sameGrain reports whether two dates give the same part: a year or a month.
func sameGrain(a, b *Date) bool {
	return (a.Year != 0 && b.Year != 0 || a.Month != 0 && b.Month != 0) && (a.Day == 0 || b.Month != 0)
}

// add reports a value of the claim and the evidence's value in its place.
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

// The lengths of figures that are compared digit by digit: those shorter than minNearDigits must share a neighbour.
const (
	minNearDigits = 3
	maxNearDigits = 16
)

// changedDigit looks for a figure of the evidence that differs in one digit from a figure of the claim that the
// evidence lacks, and reports whether it found one. It prefers sentences with more of the claim.
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

// figureWith returns the span of the number or date that contains a token, or else of the token.
func (t *valuedText) figureWith(i int) ibid.Span {
	at := t.tokens[i].span()
	for _, v := range t.values {
		if (v.Kind == ValueNumber || v.Kind == ValueDate) && v.Span.Start <= at.Start && at.End <= v.Span.End {
			return v.Span
		}
	}
	return at
}

// nearFigures returns the evidence's tokens whose figures differ in exactly one digit.
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

// plainFigure returns a figure without digit grouping.
func (c *comparison) plainFigure(low string) string {
	if f, ok := readDigits(low, c.comma); ok {
		return strconv.FormatFloat(f.value, 'f', -1, 64)
	}
	return low
}

// sameNeighbour reports whether a word next to one figure is next to the other too.
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

// degree compares a word that has opposites. It is changed if the evidence has an opposite there, and not the claim's
// side.
func (c *comparison) degree(i int) {
	v := &c.claim.values[i]
	same := c.best(i, func(e *Value) bool { return e.Words[0] == v.Words[0] })
	other := c.best(i, func(e *Value) bool { return slices.Contains(v.Words[1:], e.Words[0]) })
	if other.value < 0 || !replaces(same, other, leastDegree) && !contrasted(same, other) ||
		c.claim.denied(c.claim.places[i]) != c.evidence.denied(c.evidence.places[other.value]) {
		return
	}
	place, there := c.claim.places[i], c.evidence.places[other.value]
	if c.sameTopic(place, there) && !relationWords.has(v.Words[0]) { // A beat B, B lost to A
		c.add(ConflictAntonym, i, other.value)
	}
}

// contrasted reports whether a word that the evidence has too is there among other words than in the claim: use among
// teenagers has grown, but use among their parents has shrunk.
func contrasted(same, other candidate) bool {
	return other.known >= contrastKnown && other.fit >= leastDegree && other.fit >= same.fit+farBetter
}

const contrastKnown = .75

// sameTopic reports whether the evidence's sentence with token j contains the first word of the claim's sentence with
// token i, unless the evidence lacks that word: a company's revenue is not its share price.
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
		if same.value >= 0 && replaces(same, other, leastName) && c.inSeparateClauses(same.value, other.value) &&
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
		if c.hasShorterName(v.Words) {
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
	if replaces(same, other, least) {
		c.add(ConflictName, i, other.value)
	}
}

// hasShorterName reports whether the evidence has a name made of some of the words only.
func (c *comparison) hasShorterName(words []string) bool {
	return slices.ContainsFunc(c.evidence.values, func(e Value) bool {
		return e.Kind == ValueName && len(e.Words) < len(words) &&
			!slices.ContainsFunc(e.Words, func(word string) bool { return !slices.Contains(words, word) })
	})
}

func sharesWord(a, b []string) bool {
	return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
}

// otherDigits reports whether two names differ only in their digits: COVID-19, COVID-13.
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

// hasWord reports whether the evidence has a word of a name, perhaps with another ending, or another name of the same
// country.
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

// sharedLetters returns the length of the common prefix of two words in bytes.
func sharedLetters(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// claimHas reports whether the claim has all the words of a name, capitalised.
func (c *comparison) claimHas(words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !c.claimName(word) })
}

// claimName reports whether the claim has a word, capitalised.
func (c *comparison) claimName(word string) bool {
	return c.capitalised[word]
}

// leads reports whether token i begins a sentence or clause, not counting titles: the mayor, Ada Lund.
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

// modifies reports whether a name stands before a noun that it describes: an American singer.
func (t *valuedText) modifies(value int) bool {
	i := t.places[value]
	for t.at(i).start < t.values[value].Span.End && i < len(t.tokens) {
		i++
	}
	next := t.at(i)
	return next.key != 0 && !t.verb(i)
}

// inSeparateClauses reports whether two values of the evidence are in different clauses with words of their own.
func (c *comparison) inSeparateClauses(a, b int) bool {
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

// verb reports whether token i looks like a verb.
func (t *valuedText) verb(i int) bool {
	token, before := t.at(i), t.low(i-1)
	if token.key == 0 || token.upper || determiners.has(before) || prepositions.has(before) && before != "to" {
		return false
	}
	return strings.HasSuffix(token.low, "ed") || lists["same"].has(token.low) || relationWords.has(sideOf(token.low)) ||
		strings.HasSuffix(token.low, "s") && !strings.HasSuffix(token.low, "ss")
}

// sideOf returns the name of a word's side of its opposites.
func sideOf(low string) string {
	side, _, _ := strings.Cut(oppositeWords[low].name, "|")
	return side
}

var (
	prepositions = lists["preposition"]
	clauseWords  = lists["clause-break"]
)
