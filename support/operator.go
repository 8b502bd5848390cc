package support

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// The focus of a negation is the words after it, which it denies.
const (
	focusWords = 4 // the most words in a focus
	// denialFocus is the least share of what the claim denies that the evidence's best sentence must contain if that
	// sentence has a word of refusal or lack.
	denialFocus = .15
	// Unless it contains saysDenied of the claim, the sentence must contain leastDenied of what the claim denies.
	saysDenied  = .5
	leastDenied = .4
	// deniedOverlap and deniedFocus are the least shares of the claim and of the focus for a denial in the evidence.
	deniedOverlap = .5
	deniedFocus   = .6
	// alike is how close another sentence must come to the best one for its denials to count too.
	alike = .7
	// besideSentences is how many sentences before and after the best one are searched for a denial. The denial
	// must include besideWords of the claim's words, unless the sentence comes close to the best one.
	besideSentences = 2
	besideWords     = 2
)

// denials compares the negations of claim and evidence.
func (c *comparison) denials() {
	for i := range c.values {
		if v := &c.claim.values[i]; v.Kind == ValueNegation && !c.aboutSource(v) {
			c.denial(i)
		}
	}
	for i := range c.evidence.values {
		if len(c.found) >= maxConflicts {
			return
		}
		if c.evidence.values[i].Kind == ValueNegation {
			c.deniedBy(i)
		}
	}
}

// focus returns the weights of the words in the focus of a negation of t.
func (t *valuedText) focus(value int) (weights map[uint32]float64, total float64) {
	weights = make(map[uint32]float64, focusWords)
	v := &t.values[value]
	first := t.sentences[t.tokens[t.places[value]].sentence].tokens[0]
	for i := first; i < len(t.tokens) && t.tokens[i].start < v.Scope.End && len(weights) < focusWords; i++ {
		token := &t.tokens[i]
		if token.key == 0 || token.start < v.Scope.Start || weights[token.key] != 0 {
			continue
		}
		weights[token.key] = token.weight
		total += token.weight
	}
	return weights, total
}

// denies reports whether one of the negations in a range of the text's values denies one of keys and, counting words of
// others too, at least so many words.
func (t *valuedText) denies(values [2]int, keys map[uint32]float64, others map[uint32]bool, least int) bool {
	for i := values[0]; i < values[1]; i++ {
		if t.values[i].Kind != ValueNegation {
			continue
		}
		focus, _ := t.focus(i)
		denied, known := 0, 0
		for key := range focus {
			switch {
			case keys[key] > 0:
				denied++
			case others[key]:
				known++
			}
		}
		if denied > 0 && denied+known >= least {
			return true
		}
	}
	return false
}

// denied reports whether a negation in its sentence denies token i.
func (t *valuedText) denied(i int) bool {
	s := &t.sentences[t.tokens[i].sentence]
	return slices.ContainsFunc(t.values[s.values[0]:s.values[1]], func(v Value) bool {
		return v.Kind == ValueNegation && v.Scope.Start <= t.tokens[i].start && t.tokens[i].end <= v.Scope.End
	})
}

// share returns how much of some words a sentence of the evidence contains.
func (c *comparison) share(weights map[uint32]float64, total float64, sentence int) float64 {
	sum := 0.
	for key, weight := range weights {
		if slices.ContainsFunc(c.evidence.tokensOf(sentence), func(t valueToken) bool { return t.key == key }) {
			sum += weight
		}
	}
	return sum / max(total, 1e-9)
}

// claimShare returns how much of some words the claim contains.
func (c *comparison) claimShare(weights map[uint32]float64, total float64) float64 {
	sum := 0.
	for key, weight := range weights {
		if c.claimKeys[key] {
			sum += weight
		}
	}
	return sum / max(total, 1e-9)
}

// bestSentence returns the sentence of the evidence that contains most of some words of the claim, and of the claim.
func (c *comparison) bestSentence(weights map[uint32]float64, total float64) (sentence int, share float64) {
	sentence, most := -1, 0.
	for i := range c.evidence.sentences {
		has := c.share(weights, total, i)
		if sum := has + 2*c.overlap[i]; sentence < 0 || sum > most {
			sentence, most, share = i, sum, has
		}
	}
	return sentence, share
}

// denial looks in the evidence for what the claim denies.
func (c *comparison) denial(value int) {
	keys, total := c.claim.focus(value)
	best, share := c.bestSentence(keys, total)
	if best < 0 || share < leastDenied && c.overlap[best] < saysDenied {
		return
	}
	for i := max(0, best-besideSentences); i < min(best+besideSentences+1, len(c.evidence.sentences)); i++ {
		s, least := &c.evidence.sentences[i], besideWords
		if c.overlap[i] >= alike*c.overlap[best] {
			least = 1
			if share < denialFocus && c.evidence.hasWord(i, negativeWord) {
				return
			}
		}
		if c.evidence.denies(s.values, keys, c.claimKeys, least) {
			return
		}
	}
	v := &c.claim.values[value]
	span, place := c.evidence.extent(best, keys)
	c.addSpan(ConflictNegation, v.withScope(), c.claim.places[value], span, place)
	c.note("negation: the claim denies %s, the source does not", c.claim.quoted(v))
}

func (c *comparison) note(format string, args ...any) {
	c.found[len(c.found)-1].Note = fmt.Sprintf(format, args...)
}

// deniedBy looks in the claim for what the evidence denies.
func (c *comparison) deniedBy(value int) {
	v, place := &c.evidence.values[value], c.evidence.places[value]
	keys, total := c.evidence.focus(value)
	if total > 0 && c.overlap[c.evidence.tokens[place].sentence] >= deniedOverlap &&
		c.claimShare(keys, total) >= deniedFocus && !c.claim.denies([2]int{0, len(c.claim.values)}, keys, nil, 1) {
		span, at := c.claim.extent(c.claim.sentenceWith(keys), keys)
		c.addSpan(ConflictNegation, span, at, v.withScope(), place)
		c.note("negation: the source denies %s, the claim does not", c.evidence.quoted(v))
	}
}

// withScope returns the span of a negation with what it denies.
func (v *Value) withScope() ibid.Span {
	return ibid.Span{Start: v.Span.Start, End: max(v.Span.End, v.Scope.End)}
}

// quoted returns what a negation denies, in quotation marks.
func (t *valuedText) quoted(v *Value) string {
	return `"` + strings.Join(strings.Fields(t.text[v.Scope.Start:v.Scope.End]), " ") + `"`
}

// extent returns the part of a sentence from the first to the last of some words, and its first token; or the sentence
// without its final punctuation, if it has none of them.
func (t *valuedText) extent(sentence int, keys map[uint32]float64) (span ibid.Span, place int) {
	s := &t.sentences[sentence]
	for i := s.tokens[0]; i < s.tokens[1]; i++ {
		at := &t.tokens[i]
		if at.key == 0 || keys[at.key] == 0 {
			continue
		}
		if span.End == 0 {
			span.Start, place = at.start, i
		}
		span.End = at.end
	}
	if span.End > 0 {
		return span, place
	}
	span = s.span
	for i := s.tokens[1] - 1; i > s.tokens[0] && t.tokens[i].kind == signToken; i-- {
		span.End = t.tokens[i-1].end
	}
	return span, s.tokens[0]
}

// sentenceWith returns the sentence that contains most of some words.
func (t *valuedText) sentenceWith(weights map[uint32]float64) int {
	best, most := 0, 0.
	for i := range t.sentences {
		sum := 0.
		for _, token := range t.tokensOf(i) {
			sum += weights[token.key]
		}
		if sum > most {
			best, most = i, sum
		}
	}
	return best
}

// hasWord reports whether a sentence has a word that the function accepts.
func (t *valuedText) hasWord(sentence int, word func(string) bool) bool {
	return slices.ContainsFunc(t.tokensOf(sentence), func(t valueToken) bool { return word(t.low) })
}

var (
	limitingWords = lists["limiting"]
	sourceWords   = lists["of-source"]
)

// aboutSource reports whether a negation is about what a source does not say, which the source itself cannot
// confirm.
func (c *comparison) aboutSource(v *Value) bool {
	return slices.ContainsFunc(c.claim.tokens, func(t valueToken) bool {
		return t.start >= v.Span.Start && t.end <= v.Scope.End && sourceWords.has(t.low)
	})
}

// negativeWord reports whether a word denies or limits its sentence.
func negativeWord(low string) bool { return limitingWords.has(low) || denyingWord(low) }

// denyingWord reports whether a word denies by itself.
func denyingWord(low string) bool {
	rest, un := strings.CutPrefix(low, "un")
	return un && len(low) > 6 && rest[0] != 'i' && !strings.HasPrefix(rest, "der") || denyingWords.has(low) ||
		strings.HasPrefix(low, "non") && len(low) > 5
}
