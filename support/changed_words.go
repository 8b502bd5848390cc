package support

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/ibidhq/ibid"
)

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
		if best, ok := c.best(
			i,
			func(e *Value) bool { return len(e.Words) > 1 && sharesWord(v.Words, e.Words) && !c.claimHas(e.Words) },
		); ok {
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
		within := true
		for _, word := range e.Words {
			within = within && slices.Contains(words, word)
		}
		if within {
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
	for _, word := range words {
		if !c.large[word] {
			return false
		}
	}
	return true
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
		if len(c.found) >= MaxConflicts {
			return
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
