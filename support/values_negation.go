package support

import (
	"strings"

	"github.com/ibidhq/ibid"
)

// maxScope is how many words a negation reaches at most.
const maxScope = 12

// negation reads a negation at token i, with its scope, and returns the token behind it; i if there is none.
func (r *valueReader) negation(i int) int {
	next := r.negationCue(i)
	if next == i {
		return i
	}
	end := next
	for end < len(r.tokens) && end-next < maxScope && r.sameSentence(i, end) && !r.clauseBreak(end) {
		end++
	}
	scope := ibid.Span{Start: r.tokens[next-1].end, End: r.tokens[next-1].end}
	if end > next {
		scope = ibid.Span{Start: r.tokens[next].start, End: r.tokens[end-1].end}
	}
	r.out = append(
		r.out,
		Value{Kind: ValueNegation, Span: ibid.Span{Start: r.tokens[i].start, End: r.tokens[next-1].end}, Scope: scope},
	)
	return next
}

// clauseBreak reports whether a clause ends before token i.
func (r *valueReader) clauseBreak(i int) bool {
	switch r.low(i) {
	case ",", ";", ":", ".", "!", "?", "(", ")", "[", "]", "—", "–",
		"but", "because", "although", "though", "while", "whereas", "which", "who", "however", "unless", "until", "and", "if", "when":
		return true
	}
	return false
}

// negationCue returns the token behind the words that negate, beginning at token i; i if they do not.
func (r *valueReader) negationCue(i int) int {
	if r.kind(i) != wordToken {
		return i
	}
	low, after := r.low(i), r.low(i+1)
	switch low {
	case "not":
		switch after {
		case "only", "just", "merely", "simply", "least", "necessarily", "more", "less":
			return i
		}
		if before := r.low(i - 1); before == "or" || before == "if" || before == "why" {
			return i
		}
		return i + 1
	case "no":
		switch after {
		case "doubt", ".", "more", "less", "fewer", "matter", "later", "wonder", ",":
			return i
		case "one", "longer":
			return i + 2
		}
		if r.kind(i+1) != wordToken {
			return i
		}
		return i + 1
	case "cannot", "never", "without", "neither", "nor", "none", "nobody", "nothing", "nowhere":
		return i + 1
	case "fail", "fails", "failed", "failing", "refuse", "refuses", "refused", "unable", "decline", "declines",
		"declined":
		if after == "to" {
			return i + 2
		}
	case "lack", "lacks", "lacked", "lacking":
		if after != "of" && r.low(i-1) != "a" && r.low(i-1) != "the" {
			return i + 1
		}
	}
	if strings.HasSuffix(low, "n't") {
		return i + 1
	}
	return i
}

// degree reads a word that has an opposite.
func (r *valueReader) degree(i int) int {
	token := r.at(i)
	if token.kind != wordToken || token.upper && !token.opens {
		return i
	}
	own, opposite := degreeOf(token.low)
	if own == "" || r.boundsNumber(i) {
		return i
	}
	r.out = append(
		r.out,
		Value{Kind: ValueDegree, Span: ibid.Span{Start: token.start, End: token.end}, Words: []string{own, opposite}},
	)
	return i + 1
}

// boundsNumber reports whether token i belongs to a number's bound: "more than 5", "at least 5".
func (r *valueReader) boundsNumber(i int) bool {
	switch r.low(i) {
	case "least", "most":
		return r.low(i-1) == "at"
	case "above", "below":
		return r.kind(i+1) == numberToken
	}
	if r.low(i+1) != "than" || comparedBound(r.low(i)) == 0 {
		return false
	}
	_, ok := r.figureAt(i + 2)
	return ok || currencyOf(r.low(i+2)) != ""
}
