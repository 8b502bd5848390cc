package support

import (
	"strings"
)

const (
	// focusWords is how many words behind a negation are what it denies.
	focusWords = 4
	// denialOverlap is the least share of the claim in the evidence's best sentence for a denial of the claim to count, and
	// denialFocus the least share of what it denies, where the sentence has a word of refusal or lack.
	denialOverlap = .2
	denialFocus   = .15
	// deniedOverlap and deniedFocus are the same for a denial of the evidence.
	deniedOverlap = .5
	deniedFocus   = .6
	// alike is how near another sentence must come to the best one for its denials to count too.
	alike = .7
)

// focus returns the weights of the words behind a negation of t.
func focus(t *valuedText, value int) (weights map[uint32]float64, total float64) {
	sentence := t.sentences[t.sentenceOf(t.places[value])]
	weights = make(map[uint32]float64, focusWords)
	scope := t.values[value].Scope
	for _, term := range t.terms[sentence.terms[0]:sentence.terms[1]] {
		at := t.tokens[term.token]
		if at.start < scope.Start || at.end > scope.End || weights[term.key] != 0 {
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

// denials compares what the claim denies with what the evidence says.
func (c *changer) denials() {
	for i := range min(len(c.claim.values), MaxChangedValues) {
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
	for i := range c.evidence.sentences {
		if c.overlap[i] < alike*c.overlap[best] {
			continue
		}
		s := &c.evidence.sentences[i]
		if c.denies(s, weights) || bestShare < denialFocus && negative(c.evidence, s, negativeWord) {
			return
		}
	}
	c.addSpan(ConflictNegation, c.claim.values[value].Span, c.claim.places[value], best, c.evidence.sentences[best].span)
}

// denies reports whether a sentence of the evidence denies one of some words.
func (c *changer) denies(s *valuedSentence, weights map[uint32]float64) bool {
	for i := s.values[0]; i < s.values[1]; i++ {
		if c.evidence.values[i].Kind != ValueNegation {
			continue
		}
		denied, _ := focus(c.evidence, i)
		for key := range denied {
			if weights[key] > 0 {
				return true
			}
		}
	}
	return false
}

// speaksOfSource reports whether a negation says what a source does not say, as no source does of itself.
func (c *changer) speaksOfSource(value int) bool {
	scope := c.claim.values[value].Scope
	for i := c.claim.places[value]; i < len(c.claim.tokens) && c.claim.tokens[i].end <= scope.End; i++ {
		switch c.claim.tokens[i].low {
		case "mention", "mentioned", "mentions", "indication", "information", "evidence", "specify", "specified", "provide", "provided", "stated",
			"given", "context", "clear", "explicitly":
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
		sentence := c.evidence.sentenceOf(c.evidence.places[i])
		weights, total := focus(c.evidence, i)
		if total == 0 || c.overlap[sentence] < deniedOverlap {
			continue
		}
		shared := 0.
		for key, weight := range weights {
			if c.weights[key] > 0 {
				shared += weight
			}
		}
		if shared >= deniedFocus*total {
			c.addSpan(ConflictNegation, c.claim.sentences[0].span, 0, sentence, c.evidence.values[i].Span)
		}
	}
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

// negativeWord reports whether a word denies or limits what its sentence says.
func negativeWord(low string) bool {
	switch low {
	case "few", "little", "only", "instead", "rather", "limited", "different", "decline", "declined", "less", "low", "lower", "prevent", "prevented",
		"avoid", "stopped", "than", "against", "until", "despite", "former", "still", "remains":
		return true
	}
	return denyingWord(low)
}

// denyingWord reports whether a word denies by itself.
func denyingWord(low string) bool {
	switch low {
	case "not", "no", "nor", "neither", "never", "rarely", "seldom", "hardly", "lack", "lacks", "lacking", "lacked", "absence", "absent",
		"insufficient", "inconclusive", "unlikely", "false", "denied", "denies", "refuse", "refused", "refuses", "failed", "fails", "fail",
		"impossible", "ineffective", "incorrect", "wrong", "myth", "hoax":
		return true
	}
	switch {
	case strings.HasPrefix(low, "un"):
		return len(low) > 6 && !strings.HasPrefix(low, "uni") && !strings.HasPrefix(low, "under") && !strings.HasPrefix(low, "unti")
	case strings.HasPrefix(low, "non"):
		return len(low) > 5
	}
	return false
}
