package trail

import (
	"cmp"
	"context"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/support"
)

// addDiffering links a sentence that no passage supports to passages near it that have another value.
func (l *linker) addDiffering(s *Sentence, passages, answers comparison) {
	claim := l.final.Text[passages.Claim.Start:passages.Claim.End]
	if by := l.calculatedBy(s, passages); by != nil {
		s.concluded = by
		return
	}
	var hits []hit
	for i := range passages.Candidates {
		c := &passages.Candidates[i]
		if !l.near(claim, c, passages.pool, &answers) {
			continue
		}
		h := l.hit(c, &c.Verdict, passages.pool)
		for _, other := range otherValues(claim, passages.text(c), &c.Verdict) {
			concluded := func(step int) bool { return strings.Contains(l.t.Steps[step].Answer, other.own) }
			if !slices.ContainsFunc(s.concluded, concluded) || l.slipped(s, &h, &other) {
				h.differs = other.text
				hits = append(hits, h)
				break
			}
		}
	}
	if len(hits) == 0 {
		return
	}
	if len(s.concluded) == 0 {
		s.concluded = l.concluders(s, answers, hits...)
	}
	for _, h := range l.nearestPassages(hits, s.concluded) {
		if len(s.Passages) < l.options.PerSentence {
			link := l.inferredLink(h, nil, nil)
			link.Threshold, link.Differs = 0, h.differs
			s.add(link)
		}
	}
}

// slipped reports whether the other value of a passage looks like one that the step which concluded the sentence copied
// wrongly, rather than one that it calculated with: the digits are similar, and it precedes the same word or comes from
// a passage that the step itself had.
func (l *linker) slipped(s *Sentence, h *hit, other *otherValue) bool {
	_, distance := l.holders[h.row].nearest(l, s.concluded)
	return other.slip && (other.unit || distance == 0)
}

// calculatedBy returns the steps that calculated a figure of a sentence, or nil: those that concluded it, else the one
// that gave the final answer, if the figure [isResult] of figures before the same word in passages that these steps, or
// steps they build on, had.
func (l *linker) calculatedBy(s *Sentence, passages comparison) []int {
	by := s.concluded
	if len(by) == 0 && l.last >= 0 {
		by = []int{l.last}
	}
	claim := l.final.Text[passages.Claim.Start:passages.Claim.End]
	for _, at := range figures.FindAllStringIndex(claim, maxTried) {
		unit := wordAfter(claim[at[1]:])
		if unit == "" {
			continue
		}
		var from []float64
		for k := range passages.Candidates {
			c := &passages.Candidates[k]
			if _, distance := l.holders[passages.of[c.Document].row].nearest(l, by); distance < 0 {
				continue
			}
			text := passages.text(c)
			for _, other := range figures.FindAllStringIndex(text, maxFigures) {
				size := parseFigure(text[other[0]:other[1]])
				if len(from) < maxTried && wordAfter(text[other[1]:]) == unit && !slices.Contains(from, size) {
					from = append(from, size)
				}
			}
		}
		if isResult(parseFigure(claim[at[0]:at[1]]), from) {
			return by
		}
	}
	return nil
}

// isResult reports whether a number is not among others, but is the sum, difference or mean of two of them, or the sum
// or mean of all.
func isResult(n float64, others []float64) bool {
	is := func(result float64) bool { return math.Abs(n-result) <= 1e-9*math.Abs(n) }
	if len(others) < 2 || slices.ContainsFunc(others, is) {
		return false
	}
	sum := 0.
	for i, a := range others {
		sum += a
		for _, b := range others[:i] {
			if is(a+b) || is(math.Abs(a-b)) || is((a+b)/2) {
				return true
			}
		}
	}
	return is(sum) || is(sum/float64(len(others)))
}

// maxDiffering is how many passages named by citations and marks are compared with their sentences.
const maxDiffering = 1000

// markDiffering sets Differs on the passages named by citations and marks that have another value than their sentence.
// A passage with little in common with the sentence is about something else.
func (l *linker) markDiffering(ctx context.Context) error {
	var links []*Link
	var pairs []support.Pair
	for i := range l.links.Sentences {
		s := &l.links.Sentences[i]
		before := ""
		if i > 0 {
			before = l.links.Sentences[i-1].Text
		}
		for k := range s.Passages {
			if text := s.Passages[k].Text(); text != "" && len(pairs) < maxDiffering {
				links = append(links, &s.Passages[k])
				pairs = append(
					pairs, support.Pair{Claim: s.Text, Context: before, Passages: []support.Passage{{Text: text}}},
				)
			}
		}
	}
	verdicts, err := support.CheckPairs(ctx, l.checker, pairs)
	if err != nil {
		return err
	}
	for k := range verdicts {
		v := &verdicts[k]
		if score := jsonNumber(v.Closeness); l.holds(v) || score != nil && *score < leastLikely {
			continue
		}
		if others := otherValues(pairs[k].Claim, pairs[k].Passages[0].Text, v); len(others) > 0 {
			links[k].Differs = others[0].text
		}
	}
	return nil
}

// otherValue is a value that a passage has in place of one in a claim.
type otherValue struct {
	own, text string  // the claim's and the passage's
	apart     float64 // the logarithm of the ratio of figures
	unit      bool    // they precede the same word
	slip      bool    // see isSlip
}

// otherValues returns the values that a passage has in place of those in a claim, according to a verdict:
// [otherFigures], if the passage lacks one figure of the claim, the likeliest first; then the values that conflict with
// the claim, without the words that both share: "62" for 62 turbines instead of 72 turbines.
func otherValues(claim, passage string, v *support.Verdict) []otherValue {
	var lacks []ibid.Span
	for _, t := range v.Missing {
		if at := figures.FindStringIndex(t.Text); isFigure(t) && at != nil && t.Span.Start+at[1] <= len(claim) {
			lacks = append(lacks, ibid.Span{Start: t.Span.Start + at[0], End: t.Span.Start + at[1]})
		}
	}
	var all []otherValue
	if len(lacks) == 1 {
		all = otherFigures(claim, lacks[0], passage)
	}
	var inClaim, inPassage []string
	for i := range v.Differences {
		c := &v.Differences[i]
		if c.A.Passage != support.InClaim || !isValue(*c) {
			continue
		}
		own, other := strings.Fields(c.A.ValueText()), strings.Fields(c.B.ValueText())
		for len(own) > 1 && len(other) > 1 && own[len(own)-1] == other[len(other)-1] {
			own, other = own[:len(own)-1], other[:len(other)-1]
		}
		if len(own) > 0 && len(other) > 0 {
			inClaim, inPassage = append(inClaim, strings.Join(own, " ")), append(inPassage, strings.Join(other, " "))
		}
	}
	if len(inPassage) > 0 {
		all = append(all, otherValue{
			own: inClaim[0], text: strings.Join(inPassage, ", "),
			slip: isSlip(figures.FindString(inClaim[0]), figures.FindString(inPassage[0])),
		})
	}
	return all
}

// isValue reports whether a difference is between values, rather than between what is said about them.
func isValue(c support.Conflict) bool { return c.Kind != support.ConflictNegation }

// otherFigures returns the figures of a passage that the one at a span of a claim may stand for: those of similar size
// before the same word, closest first, and those that look like a slip.
func otherFigures(claim string, at ibid.Span, passage string) []otherValue {
	own, unit := claim[at.Start:at.End], wordAfter(claim[at.End:])
	var others []otherValue
	for _, found := range figures.FindAllStringIndex(passage, maxFigures) {
		text := passage[found[0]:found[1]]
		other := otherValue{own: own, text: text, slip: isSlip(own, text)}
		other.unit = unit != "" && unit == wordAfter(passage[found[1]:])
		if !other.slip {
			other.apart = math.Abs(math.Log(parseFigure(text) / parseFigure(own)))
		}
		isNear := (other.unit || other.slip) && other.apart <= math.Ln2
		if isNear && !strings.Contains(claim, text) && !rounds(own, text) {
			others = append(others, other)
		}
	}
	slices.SortStableFunc(others, func(a, b otherValue) int {
		if a.unit != b.unit {
			if a.unit {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.apart, b.apart)
	})
	return others
}

const (
	maxFigures = 1000 // figures of a passage that are compared
	maxTried   = 8    // figures of a sentence, and figures that one may be calculated from
)

// isSlip reports whether two figures differ in one digit, or only in the order of their digits.
func isSlip(a, b string) bool {
	if len(a) != len(b) || a == b {
		return false
	}
	others := 0
	for i := range len(a) {
		if a[i] != b[i] {
			others++
		}
	}
	return others == 1 || slices.Equal(slices.Sorted(slices.Values([]byte(a))), slices.Sorted(slices.Values([]byte(b))))
}

// parseFigure returns a figure as a number, whatever separates its thousands and decimals, or NaN.
func parseFigure(figure string) float64 {
	if at := strings.LastIndexAny(figure, ".,"); at >= 0 && len(figure)-at == 4 {
		figure = figure[:at] + figure[at+1:]
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(figure, ",", "."), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

// wordAfter returns the word after a figure in lower case, or "".
func wordAfter(text string) string {
	word, _, _ := strings.Cut(strings.TrimLeft(text, " \u00a0-"), " ")
	return strings.ToLower(strings.Trim(word, ".,;:!?)"))
}

// isFigure reports whether a term that a passage lacks is a number, or a date with one.
func isFigure(t support.Term) bool {
	return (t.Kind == support.TermNumber || t.Kind == support.TermDate) && strings.ContainsAny(t.Text, "0123456789")
}

// figures matches numbers, including times of day.
var figures = regexp.MustCompile(`[0-9]+(?:[.,:][0-9]+)*`)

// hasFigures reports whether a text has all figures of a sentence. A text that lacks some is not where the sentence
// comes from, unless they were calculated.
func hasFigures(text, sentence string) bool {
	return commonFigures(sentence, text) == len(figures.FindAllString(sentence, -1))
}

// commonFigures counts the figures of a sentence that a text has.
func commonFigures(sentence, text string) (n int) {
	has := figures.FindAllString(text, -1)
	for _, f := range figures.FindAllString(sentence, -1) {
		if hasFigure(has, f) {
			n++
		}
	}
	return n
}
