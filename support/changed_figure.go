package support

import (
	"strconv"

	"github.com/ibidhq/ibid"
)

// near looks for a figure of the evidence that differs in one digit from a figure of the claim that the evidence lacks, and
// reports whether it found one. Figures of less than three digits must have a neighbour in common.
func (c *changer) near(value int) bool {
	v := &c.claim.values[value]
	for i := c.claim.places[value]; i < len(c.claim.tokens) && c.claim.tokens[i].start < v.Span.End; i++ {
		if c.claim.tokens[i].kind != numberToken {
			continue
		}
		figure := plainFigure(c.claim.tokens[i].low)
		if len(c.figures[figure]) > 0 {
			continue
		}
		for _, j := range c.nearFigures(figure) {
			if len(figure) >= minNearDigits || c.sameNeighbour(i, j) {
				kind := ConflictNumber
				if v.Kind == ValueDate {
					kind = ConflictDate
				}
				token := c.evidence.tokens[j]
				c.addSpan(kind, v.Span, c.claim.places[value], c.evidence.sentenceOf(j), ibid.Span{Start: token.start, End: token.end})
				return true
			}
		}
	}
	return false
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
func plainFigure(low string) string {
	if f, ok := readDigits(low); ok {
		return strconv.FormatFloat(f.value, 'f', -1, 64)
	}
	return low
}

// sameNeighbour reports whether a word beside one figure stands beside the other too.
func (c *changer) sameNeighbour(i, j int) bool {
	a, b := &valueReader{tokens: c.claim.tokens}, &valueReader{tokens: c.evidence.tokens}
	for _, left := range [...]int{i - 1, i + 1, i + 2} {
		for _, right := range [...]int{j - 1, j + 1, j + 2} {
			if a.kind(left) == wordToken && b.kind(right) == wordToken && len(a.low(left)) > 2 && topicKey(a.low(left)) == topicKey(b.low(right)) {
				return true
			}
			if low := a.low(left); low == b.low(right) && (low == "%" || currencyOf(low) != "") {
				return true
			}
		}
	}
	return false
}
