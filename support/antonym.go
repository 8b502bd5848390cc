package support

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// antonymText has the opposites of WordNet 3.0, under its licence, which stands at its head. A line is the words of one
// side, a bar, and those of the other: each word of a side is an opposite of each of the other.
//
// TestAntonyms makes it: `go test ./support -run TestAntonyms -wordnet DIR`, where DIR has WordNet's data and index
// files.
//
//go:embed antonyms.txt
var antonymText string

// antonyms has the keys of the opposites of a word, by the key of the word.
var antonyms = sync.OnceValue(func() map[uint32][]uint32 {
	all := map[uint32][]uint32{}
	for line := range strings.Lines(antonymText) {
		left, right, ok := strings.Cut(line, "|")
		if !ok || line[0] == '#' {
			continue
		}
		for a := range strings.FieldsSeq(left) {
			for b := range strings.FieldsSeq(right) {
				for _, a := range wordKeys(a) {
					for _, b := range wordKeys(b) {
						if a != b {
							all[a], all[b] = append(all[a], b), append(all[b], a)
						}
					}
				}
			}
		}
	}
	for key, others := range all {
		slices.Sort(others)
		all[key] = slices.Compact(others)
	}
	return all
})

// wordKeys are the keys that forms of a word may have: of those that a list has, and of all others.
func wordKeys(word string) [2]uint32 {
	return [...]uint32{topicKey(word), hash(stem([]byte(word))) &^ 1}
}

// antonyms looks for words of the claim that have an opposite in the evidence among the same words, and stand themselves
// in no such place there. Words of the lists are compared as values.
func (c *comparison) antonyms() {
	opposites := antonyms()
	for i, left := 0, maxChangedValues; i < len(c.claim.tokens) && left > 0; i++ {
		token := &c.claim.tokens[i]
		if token.key == 0 || token.kind != wordToken || token.upper && !token.opens ||
			opposites[token.key] == nil || oppositeWords.has(token.low) || c.reported(token.span()) {
			continue
		}
		left--
		tokens, total, all := c.around(token.span(), i)
		known := total / max(all, 1e-9)
		fittest := func(keys ...uint32) candidate {
			best := candidate{value: -1, known: known}
			for _, key := range keys {
				for _, j := range c.at[key] {
					if fit := c.fit(tokens, total, j, true); best.value < 0 || fit > best.fit {
						best.value, best.fit = j, fit
					}
				}
			}
			return best
		}
		same := fittest(token.key)
		other := fittest(slices.DeleteFunc(slices.Clone(opposites[token.key]), func(key uint32) bool { return c.in[key] })...)
		best := other.value
		if best >= 0 && (instead(same, other, leastDegree) || contrasted(same, other)) && c.claim.denied(i) == c.evidence.denied(best) &&
			c.sameTopic(i, best) {
			c.addSpan(ConflictAntonym, token.span(), i, c.evidence.tokens[best].span(), best)
		}
	}
}
