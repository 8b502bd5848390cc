package support

// The least shares of the words around a degree word, and of the claim, that the sentence with its opposite has.
const (
	oppositeContext = .6
	oppositeOverlap = .45
)

// opposites compares the words of the claim that have an opposite. The evidence must have the claim's word nowhere and
// none of its side of the pair in a sentence that speaks of the same, the claim none of the other side, and neither
// sentence a negation.
func (c *changer) opposites() {
	for i := range c.values {
		v := &c.claim.values[i]
		if v.Kind != ValueDegree || coexists(v.Words[0]) || c.words[c.claim.tokens[c.claim.places[i]].low] ||
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
		if !relational(v.Words[0]) || c.sameNoun(i, best.value) {
			c.addSpan(ConflictAntonym, v.Span, c.claim.places[i], best.sentence, c.evidence.values[best.value].Span)
		}
	}
}

// coexists reports whether what has one side of a pair often has the other as well, at its other end.
func coexists(side string) bool {
	switch side {
	case "first", "last", "domestic", "foreign", "import", "export":
		return true
	}
	return false
}

// sameNoun reports whether the same word follows both: northern Siberia, southern Siberia.
func (c *changer) sameNoun(value, other int) bool {
	a, b := &valueReader{tokens: c.claim.tokens}, &valueReader{tokens: c.evidence.tokens}
	i, j := c.claim.places[value]+1, c.evidence.places[other]+1
	return a.kind(i) == wordToken && b.kind(j) == wordToken && !smallWord(a.low(i)) &&
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
