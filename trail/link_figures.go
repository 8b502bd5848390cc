package trail

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid/support"
)

// rounds reports whether a figure is another one with fewer decimals: 41 of 41.2, but not 40 of 41.
func rounds(figure, other string) bool {
	if strings.Contains(figure, ":") || decimals(other) <= decimals(figure) {
		return false
	}
	n, of, scale := parseFigure(figure), parseFigure(other), math.Pow10(decimals(figure))
	return math.Abs(n*scale-math.Round(of*scale)) < 1e-6
}

// decimals returns how many digits a figure has behind its decimal sign. A group of three is one of thousands.
func decimals(figure string) int {
	at := strings.LastIndexAny(figure, ".,")
	if at < 0 || len(figure)-at == 4 {
		return 0
	}
	return len(figure) - at - 1
}

// hasFigure reports whether a list of figures has one, or one that it rounds.
func hasFigure(all []string, figure string) bool {
	return slices.ContainsFunc(all, func(f string) bool { return f == figure || rounds(figure, f) })
}

// covering returns the texts near a sentence that have all its figures between them, each of them one that the others
// lack: "38 people were killed, though another report speaks of 43." It returns nil if a single one has all of them.
func (l *linker) covering(s *Sentence, c comparison, answers *comparison) (all []hit) {
	const most = 4
	var left []string
	for _, f := range figures.FindAllString(s.Text, maxTried) {
		if !slices.Contains(left, f) {
			left = append(left, f)
		}
	}
	if len(left) < 2 {
		return nil
	}
	near := false
	for i := range c.Candidates {
		one := &c.Candidates[i]
		if one.Verdict.Label == support.Unsupported || one.Verdict.Label == support.Contradicted ||
			one.Relevance < leastOfAll {
			continue
		}
		n := len(left)
		has := figures.FindAllString(c.text(one), maxFigures)
		left = slices.DeleteFunc(left, func(f string) bool { return hasFigure(has, f) })
		if len(left) == n {
			continue
		}
		near = near || l.near(s.Text, one, c.pool, answers)
		h := l.hit(one, &one.Verdict, c.pool)
		h.threshold, h.near, h.together = 0, true, true
		if all = append(all, h); len(left) == 0 || len(all) == most {
			break
		}
	}
	if len(left) > 0 || len(all) < 2 || !near || l.crossed(s.Text, all) {
		return nil
	}
	return all
}

// clauses matches what parts the clauses of a sentence; capitals matches words that may be names.
var (
	clauses = regexp.MustCompile(
		`[,;:] |[，；、]| (?:and|but|while|though|although|whereas|und|et|y|e|en|aber|mais|pero) `,
	)
	capitals = regexp.MustCompile(`\p{Lu}\pL{2,}`)
)

// crossed reports whether a clause of a sentence has the figure of one passage and a name that only another one has.
func (l *linker) crossed(sentence string, hits []hit) bool {
	for _, clause := range clauses.Split(sentence, -1) {
		of := figures.FindAllString(clause, maxTried)
		names := capitals.FindAllString(clause, -1)
		for i := range hits {
			text := l.rows[hits[i].row].text()
			has := figures.FindAllString(text, maxFigures)
			if !slices.ContainsFunc(of, func(f string) bool { return hasFigure(has, f) }) {
				continue
			}
			for _, name := range names {
				another := func(h hit) bool { return strings.Contains(l.rows[h.row].text(), name) }
				if !strings.Contains(text, name) && slices.ContainsFunc(hits, another) {
					return true
				}
			}
		}
	}
	return false
}

// ratios matches a ratio to something that was said before, with what it is a ratio of: "almost a third more", "31 %
// less", "twice as much".
var ratios = regexp.MustCompile(`(?i)(?:\b(almost|nearly|about|around|roughly|approximately|some|over|under)\s+)?` +
	`(?:\b(?:(a|one|two|three)[ -])?(half|thirds?|quarters?|fifths?|tenths?)\b|` +
	`([0-9]+(?:[.,][0-9]+)?)\s?(?:%|per ?cent\b))` +
	`\s+(?:as\s+)?(more|higher|greater|larger|longer|up|less|fewer|lower|smaller|shorter|down)\b|` +
	`\b(twice|double|doubled|triple|tripled|three times|half)\b`)

// pointing matches what refers to the sentence before: a ratio of "that" is one of what was said there.
var pointing = regexp.MustCompile(`(?i)^\W*(?:that|this|these|those|it|which)\b`)

// ratioOf returns the factor between two figures that a sentence states, and how far it may be off; 0 if it states
// none, or does not refer to a figure before it.
func ratioOf(sentence string) (factor, slack float64) {
	m := ratios.FindStringSubmatch(sentence)
	if m == nil || !pointing.MatchString(sentence) {
		return 0, 0
	}
	switch strings.ToLower(m[6]) {
	case "twice", "double", "doubled":
		return 2, .1
	case "triple", "tripled", "three times":
		return 3, .15
	case "half":
		return .5, .03
	}
	var share float64
	if m[4] != "" {
		share, slack = parseFigure(m[4])/100, .5/100/math.Pow10(decimals(m[4]))
	} else {
		slack = .03
		parts := map[string]float64{"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
		share = 1 / parts[strings.TrimSuffix(strings.ToLower(m[3]), "s")]
		if n := map[string]float64{"two": 2, "three": 3}[strings.ToLower(m[2])]; n > 0 {
			share *= n
		}
	}
	if m[1] != "" {
		slack = max(slack, .1*share)
	}
	switch strings.ToLower(m[5]) {
	case "less", "fewer", "lower", "smaller", "shorter", "down":
		share = -share
	}
	return 1 + share, slack
}

// hasRatio reports whether a text has two figures before the same word of which one is as many times the other as a
// sentence says.
func hasRatio(text string, factor, slack float64) bool {
	type measured struct {
		size float64
		unit string
	}
	var all []measured
	for _, at := range figures.FindAllStringIndex(text, maxTried) {
		all = append(all, measured{parseFigure(text[at[0]:at[1]]), wordAfter(text[at[1]:])})
	}
	for _, a := range all {
		for _, b := range all {
			if a.unit != "" && a.unit == b.unit && b.size != 0 && math.Abs(a.size/b.size-factor) <= slack {
				return true
			}
		}
	}
	return false
}

// calculatedFrom returns the passages with the two figures that a ratio in a sentence is calculated from, those of the
// sentence before first, and whether the sentence states such a ratio: then nothing else is its source.
func (l *linker) calculatedFrom(s, before *Sentence, passages comparison) (all []hit, states bool) {
	factor, slack := ratioOf(s.Text)
	if factor == 0 {
		return nil, false
	}
	if before != nil {
		for i := range before.Passages {
			if p := &before.Passages[i]; p.Differs == "" && hasRatio(p.Text(), factor, slack) {
				link := *p
				link.Reason, link.By = ReasonInferred, l.links.By
				link.Score, link.Threshold, link.Via, link.Steps = nil, 0, nil, nil
				s.add(link)
			}
		}
	}
	if len(s.Passages) > 0 {
		return nil, true
	}
	for i := range passages.Candidates {
		c := &passages.Candidates[i]
		if hasRatio(passages.text(c), factor, slack) {
			h := l.hit(c, &c.Verdict, passages.pool)
			h.score, h.threshold, h.near = nil, 0, true
			all = append(all, h)
		}
	}
	return all, true
}
