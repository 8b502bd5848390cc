package support

import (
	"slices"
	"strings"
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
		if token.kind == wordToken && !smallWord(token.low) {
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
		return len(low) > 3 && low[len(low)-1] == 's' && !plural(c.claim.tokens[next-1].low)
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
