package support

import (
	"strconv"

	"github.com/ibidhq/ibid"
)

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
			if low := a.low(left); low == b.low(right) && (low == "%" || currencyOf(low) != "") {
				return true
			}
		}
	}
	return false
}
