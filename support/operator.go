package support

import (
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// The focus of a negation is the words after it, which it denies.
const focusWords = 4 // the most words in a focus

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

// denied reports whether a negation in its sentence denies token i.
func (t *valuedText) denied(i int) bool {
	s := &t.sentences[t.tokens[i].sentence]
	return slices.ContainsFunc(t.values[s.values[0]:s.values[1]], func(v Value) bool {
		return v.Kind == ValueNegation && v.Scope.Start <= t.tokens[i].start && t.tokens[i].end <= v.Scope.End
	})
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

// hasWord reports whether a sentence has a word that the function accepts.
func (t *valuedText) hasWord(sentence int, word func(string) bool) bool {
	return slices.ContainsFunc(t.tokensOf(sentence), func(t valueToken) bool { return word(t.low) })
}

// denyingWord reports whether a word denies by itself.
func denyingWord(low string) bool {
	rest, un := strings.CutPrefix(low, "un")
	return un && len(low) > 6 && rest[0] != 'i' && !strings.HasPrefix(rest, "der") || denyingWords.has(low) ||
		strings.HasPrefix(low, "non") && len(low) > 5
}
