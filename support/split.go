package support

import "github.com/ibidhq/ibid"

const (
	// partWeight is what a part of a claim weighs at least before the next one begins, and lastPart what the last one
	// weighs at least: about two words and one.
	partWeight = 14 / maxIDF
	lastPart   = 10 / maxIDF
	// MaxParts is how many parts a claim is split into at most; the last one has the rest.
	MaxParts = 64
)

// Split cuts an English claim into the parts that can be true or false on their own: sentences, clauses and enumerated
// phrases ("was born in Leeds, | moved to York | and died there in 1990"). It goes by punctuation and conjunctions, so
// a part need not be a whole clause; each has about two words with content or more. The parts are in order and do not
// overlap. A claim without words has none.
func Split(claim string) []ibid.Span {
	c := NewClaim(claim)
	spans := make([]ibid.Span, len(c.parts))
	for i := range c.parts {
		spans[i] = c.parts[i].span
	}
	return spans
}

// split finds the parts of the claim.
func (c *Claim) split() {
	seen := make([]bool, len(c.terms))
	list := make([]int32, 0, len(c.terms))
	var p part
	for i := range c.tokens {
		t := &c.tokens[i]
		begins := i > 0 && (t.flags&flagClause != 0 || t.start-c.tokens[i-1].end >= 2)
		if begins && p.weight > partWeight && len(c.parts) < MaxParts-1 {
			c.parts = append(c.parts, p)
			p = part{}
		}
		if p.span.End == 0 {
			p.span.Start = int(t.start)
		}
		p.span.End = int(t.end)
		if !seen[t.term] {
			seen[t.term] = true
			list = append(list, t.term)
			p.terms = list[len(list)-1-len(p.terms):]
			p.weight += c.terms[t.term].weight
		}
	}
	last := len(c.parts) - 1
	switch {
	case p.span.End == 0:
	case p.weight < lastPart && last >= 0:
		l := &c.parts[last]
		l.span.End, l.weight = p.span.End, l.weight+p.weight
		l.terms = list[len(list)-len(p.terms)-len(l.terms):]
	default:
		c.parts = append(c.parts, p)
	}
}
