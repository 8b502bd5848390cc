package support

import (
	"fmt"
	"slices"
)

// Negations and opposites need more in common than values do: a sentence has them for many reasons.
const (
	polarContent = 2  // shared words that are in no name
	polarFocus   = .6 // least share, by weight, of the words denied that the other sentence has
	polarOverlap = .4 // least share of the weight of the sentence with more that both have in common
)

// denials reports what one sentence denies and the other says.
func (p *statementPair) denials() {
	if p.content < polarContent || p.weight < polarOverlap*max(p.a.weight, p.b.weight) || !p.sameTime() {
		return
	}
	as, bs := p.a.values(ValueNegation), p.b.values(ValueNegation)
	switch {
	case len(as) > 0 && len(bs) == 0:
		p.denial(p.a, p.b, as)
	case len(bs) > 0 && len(as) == 0:
		p.denial(p.b, p.a, bs)
	}
}

func (p *statementPair) denial(denying, saying *statement, negations []placedValue) {
	if negative(saying.text, &saying.text.sentences[saying.sentence], denyingWord) || p.opposed() {
		return
	}
	for _, n := range negations {
		weights, total := focus(denying.text, n.index)
		shared := 0.
		for key, weight := range weights {
			if p.shared[key] {
				shared += weight
			}
		}
		if total == 0 || shared < polarFocus*total {
			continue
		}
		span := saying.text.extent(saying.sentence, deniedKeys(denying.text, n.index))
		if denying == p.a {
			p.add(ConflictNegation, n.denied(), span)
		} else {
			p.add(ConflictNegation, span, n.denied())
		}
		p.found[len(p.found)-1].Note = fmt.Sprintf(
			"possible conflict: negation: only one side denies %s", denying.text.quoted(n.Value),
		)
		return
	}
}

// opposed reports whether one sentence has the opposite of a word of the other: "did not rise" and "fell" agree.
func (p *statementPair) opposed() bool {
	for _, a := range p.a.values(ValueDegree) {
		for _, b := range p.b.values(ValueDegree) {
			if a.Words[0] == b.Words[1] {
				return true
			}
		}
	}
	return false
}

// antonyms reports opposite words.
func (p *statementPair) antonyms() {
	if p.content < 1 || p.weight < polarOverlap*max(p.a.weight, p.b.weight) || !p.sameTime() {
		return
	}
	if len(p.a.values(ValueNegation)) != 0 || len(p.b.values(ValueNegation)) != 0 {
		return
	}
	as, bs := p.a.values(ValueDegree), p.b.values(ValueDegree)
	for _, a := range as {
		for _, b := range bs {
			if a.Words[0] == b.Words[1] && !has(as, b.Words[0]) && !has(bs, a.Words[0]) && !p.turned(a.Words[0]) {
				p.add(ConflictAntonym, a.Span, b.Span)
				return
			}
		}
	}
}

// has reports whether one of some degree words is on a side of its pair. A sentence with both sides opposes nothing.
func has(values []placedValue, side string) bool {
	return slices.ContainsFunc(values, func(v placedValue) bool { return v.Words[0] == side })
}

// turned reports whether the sentences name the two sides of a relation in opposite order: A beat B, B lost to A.
func (p *statementPair) turned(word string) bool {
	if !relational(word) {
		return false
	}
	a, b := p.order(p.a), p.order(p.b)
	return len(a) > 1 && len(b) > 1 && a[0] != b[0]
}

// order returns the keys of the shared names of a sentence, in their order.
func (p *statementPair) order(s *statement) []uint32 {
	var keys []uint32
	for _, term := range s.terms {
		if p.shared[term.key] && s.names[term.key] {
			keys = append(keys, term.key)
		}
	}
	return keys
}

// relational reports whether a degree word is about two things, so that turning them round keeps the sense.
func relational(word string) bool {
	switch word {
	case "win", "lose", "buy", "sell", "before", "after", "earlier", "later", "more", "less", "higher", "lower",
		"longer", "shorter", "better", "worse", "older", "younger", "faster", "slower", "above", "below", "precede",
		"follow", "north", "south", "east", "west", "inside", "outside":
		return true
	}
	return false
}
