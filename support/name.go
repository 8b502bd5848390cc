package support

import (
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

var (
	weekdays  = lists["weekday"]
	titles    = lists["title"]
	particles = lists["particle"]
	breaks    = lists["break"]
	cues      = lists["never"] // and those that need another word:
	cuesThat  = lists["cue-that"]
	cuesTo    = lists["cue-to"]
	lackWords = lists["cue-lack"]
	notOnly   = lists["not-only"]
	noDoubt   = lists["no-doubt"]

	falseAdverbs = lists["cue-falsely"]
)

// names appends the names of the text: runs of capitalised words, with the small words inside names. Words wholly
// inside a number or date (the C of 5 °C, BC) are not names.
func (r *valueReader) names(values []Value) {
	at := 0
	for i := 0; i < len(r.tokens); {
		before := len(r.out)
		next := r.name(i)
		if len(r.out) > before {
			span := r.out[before].Span
			for at < len(values) && values[at].Span.End <= span.Start {
				at++
			}
			if at < len(values) && values[at].Span.Start <= span.Start && span.End <= values[at].Span.End {
				r.out = r.out[:before]
			}
		}
		i = max(next, i+1)
	}
}

// maxNameWords limits one name; longer runs are headings.
const maxNameWords = 12

// name reads a name at token i and returns the next token, or i if there is none.
func (r *valueReader) name(i int) int {
	if !r.nameWord(i) {
		return i
	}
	next := i + 1
	for next-i < maxNameWords {
		at := r.nameGap(next)
		if !r.nameWord(at) || !r.sameSentence(i, at) || r.tokens[next-1].end > r.tokens[at].start {
			break
		}
		next = at + 1
	}
	first := i
	// The first word of a sentence is always capitalised.
	for first < next && r.opens(first) && smallWords.has(r.low(first)) {
		first++
	}
	if first == next {
		return next
	}
	words := r.nameWords(first, next)
	if len(words) == 0 {
		return next
	}
	v := Value{Kind: ValueName, Span: ibid.Span{Start: r.tokens[first].start, End: r.tokens[next-1].end}, Words: words}
	v.Unsure = next == first+1 && r.opens(first) && !r.tokens[first].caps
	if s := r.text[v.Span.Start:v.Span.End]; strings.HasSuffix(s, "'s") {
		v.Span.End -= 2
	} else if strings.HasSuffix(s, "’s") {
		v.Span.End -= len("’s")
	}
	r.out = append(r.out, v)
	return next
}

// nameWord reports whether token i may be part of a name.
func (r *valueReader) nameWord(i int) bool {
	token := r.at(i)
	if token.kind != wordToken || !token.upper {
		return false
	}
	month, _ := r.month(i)
	return month == 0 && !weekdays.has(token.low) && (token.opens || token.caps || !smallWords.has(token.low))
}

// nameGap skips what may separate two words of a name: "of the", "de", a hyphen.
func (r *valueReader) nameGap(i int) int {
	low := r.low(i)
	if low == "-" || low == "‐" || low == "&" {
		return i + 1
	}
	if r.kind(i) != wordToken || r.at(i).upper {
		return i
	}
	switch {
	case low == "of" && r.low(i+1) == "the":
		return i + 2
	case low == "of" || particles.has(low):
		return i + 1
	}
	return i
}

// nameWords folds the words of a name: it drops titles, small words, possessives and diacritics.
func (r *valueReader) nameWords(first, next int) []string {
	var words []string
	for i := first; i < next; i++ {
		token := r.tokens[i]
		if token.kind != wordToken || !token.upper {
			continue
		}
		if titles.has(token.low) && i+1 < next {
			continue
		}
		words = append(words, foldWord(withoutPossessive(token.low)))
	}
	// Initials may be left out; the family name stays.
	if full := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return len(w) == 1 }); len(full) > 0 {
		return full
	}
	return words
}

// maxScope is the most words in the scope of a negation.
const maxScope = 12

// negation reads a negation at token i, with its scope, and returns the next token, or i if there is none.
func (r *valueReader) negation(i int) int {
	next := r.negationCue(i)
	if next == i {
		return i
	}
	r.operator(Value{Kind: ValueNegation}, i, next)
	return next
}

// operator adds a value for the tokens from i up to next whose scope is the rest of its clause.
func (r *valueReader) operator(v Value, i, next int) {
	end := next
	for end < len(r.tokens) && end-next < maxScope && r.sameSentence(i, end) && !breaks.has(r.low(end)) {
		end++
	}
	v.Span = ibid.Span{Start: r.tokens[i].start, End: r.tokens[next-1].end}
	v.Scope = ibid.Span{Start: v.Span.End, End: v.Span.End}
	if end > next {
		v.Scope = ibid.Span{Start: r.tokens[next].start, End: r.tokens[end-1].end}
	}
	r.out = append(r.out, v)
}

// negationCue returns the token after the negating words at token i, or i if there are none.
func (r *valueReader) negationCue(i int) int {
	if r.kind(i) != wordToken {
		return i
	}
	low, before, after := r.low(i), r.low(i-1), r.low(i+1)
	switch {
	case low == "not":
		if notOnly.has(after) || before == "or" || before == "if" || before == "why" {
			return i
		}
		return i + 1
	case low == "no" && (noDoubt.has(after) || r.kind(i+1) != wordToken):
		return i
	case low == "no" && (after == "one" || after == "longer"), cuesTo.has(low) && after == "to":
		return i + 2
	case cuesThat.has(low) && !cues.has(before) && !strings.HasSuffix(before, "n't"):
		return r.afterThat(i)
	case cues.has(low), strings.HasSuffix(low, "n't"), falseAdverbs.has(low),
		lackWords.has(low) && after != "of" && before != "a" && before != "the":
		return i + 1
	}
	return i
}

// afterThat returns the token after the "that" of a denial at token i, such as "denied in court that", or i if there
// is none.
func (r *valueReader) afterThat(i int) int {
	for j := i + 1; j <= i+thatWords && r.sameSentence(i, j) && !breaks.has(r.low(j)); j++ {
		if r.low(j) == "that" {
			return j + 1
		}
	}
	return i
}

// thatWords is the most words between a verb and its "that".
const thatWords = 5

// degree reads one or two words that have an opposite.
func (r *valueReader) degree(i int) int {
	token := r.at(i)
	if token.kind != wordToken || token.upper && !token.opens {
		return i
	}
	name, next := oppositeWords[token.low+" "+r.low(i+1)].name, i+2
	if name == "" {
		name, next = oppositeWords[token.low].name, i+1
	}
	if name == "" || r.boundsNumber(i) {
		return i
	}
	r.out = append(r.out, Value{
		Kind: ValueDegree, Span: ibid.Span{Start: token.start, End: r.tokens[next-1].end},
		Words: strings.Split(name, "|"),
	})
	return next
}

// boundsNumber reports whether token i belongs to a number's bound ("more than 5", "at least 5"), or only modifies the
// word next to it.
func (r *valueReader) boundsNumber(i int) bool {
	switch r.low(i) {
	case "most":
		// At most; the most; most commonly.
		return r.low(i-1) == "at" || isDeterminer(r.low(i-1)) || strings.HasSuffix(r.low(i+1), "ly")
	case "up", "down":
		_, isFigure := r.figureAt(i + 1)
		return !isFigure // up 8 per cent
	case "least":
		return r.low(i-1) == "at"
	case "above", "below":
		return r.kind(i+1) == numberToken
	}
	if !boundWords.has(r.low(i)+" than") || r.low(i+1) != "than" {
		return false
	}
	_, ok := r.figureAt(i + 2)
	return ok || currencyNames.has(r.low(i+2))
}
