package support

import (
	"fmt"
	"slices"
)

// The limits of an alignment, and the thresholds for close wording between a sentence of the claim and one of the
// evidence, as tuned on the open halves of the suites in testdata.
const (
	maxUnits       = 120 // units of a sentence
	maxAligned     = 16  // sentences of each side
	maxInGap       = 4   // words of a gap
	closeWording   = .5  // share of the claim's sentence that the evidence's contains
	orderlyWording = .4  // the same, in its order
	tightWording   = .8  // the same, not counting the current gap
	asCloseAsBest  = .05 // how much less of the claim a sentence may contain to be compared as well as the best one
	matchedContent = .5  // added to the word's weight for a match of content
	matchedFigure  = 1.2 // the weight of a figure
	matchedGrammar = .12 // the weight of a match of grammar
	matchedRun     = .2  // added for a match that directly follows another: runs take precedence over single matches
	derivedLetters = 4   // shared initial letters of forms of one word
)

// alignment is a sentence of the claim beside one of the evidence. Units that say the same, in the same order, are
// matched; what is between two matched ones, on both sides, is a gap.
type alignment struct {
	c            *comparison
	a, b         []unit
	of           []int   // for each unit of a, the unit of b that it matches, or -1
	all          float64 // the weight of the claim's sentence
	has          float64 // the weight of what the evidence's sentence contains of it, in any order
	inOrder      float64 // the weight of what is matched
	voiceDiffers bool    // only one of them is a passive, so subject and agent are swapped
}

// reworded returns how a claim differs from its evidence where the two are in close wording: a word in place of
// another, names swapped, the beginning of one clause with the end of another, or another operator. It is empty if
// there is none, or if one sentence of the evidence says it all. Another word may mean the same, so this is a doubt,
// not a difference.
func (c *comparison) reworded() string {
	for i := range c.claim.sentences[:min(len(c.claim.sentences), maxAligned)] {
		if note := c.rewordedSentence(c.claim.units(i)); note != "" {
			return note
		}
	}
	return ""
}

func (c *comparison) rewordedSentence(a []unit) (note string) {
	most, aligned := 0., 0
	for j := range c.evidence.sentences {
		if c.overlap[j] == 0 || aligned == maxAligned {
			continue
		}
		aligned++
		x := c.align(a, c.evidence.units(j))
		orderly := x.inOrder / x.all
		if x.has < closeWording*x.all || orderly < max(orderlyWording, most-asCloseAsBest) {
			continue
		}
		if found := x.differs(); most == 0 || orderly > most+asCloseAsBest || found == "" {
			note = found
		}
		most = max(most, orderly)
	}
	return note
}

// weightOf returns the weight of a unit of the claim.
func (c *comparison) weightOf(u *unit) float64 {
	if u.kind == figureUnit {
		return matchedFigure
	}
	return c.claim.tokens[u.token].weight
}

// align matches the units of two sentences so that the total weight of the matches is greatest.
func (c *comparison) align(a, b []unit) *alignment {
	x := &alignment{c: c, a: a, b: b, of: make([]int, len(a)), all: 1e-9}
	best := make([][]float64, len(a)+1) // the best total for the first units of both
	run := make([][]float64, len(a)+1)  // the same if the last ones are matched; 0 if they cannot be
	for i := range best {
		best[i], run[i] = make([]float64, len(b)+1), make([]float64, len(b)+1)
	}
	for i := range a {
		weight := matchedGrammar
		if a[i].hasContent() {
			weight = matchedContent + c.weightOf(&a[i])
		}
		for j := range b {
			best[i+1][j+1] = max(best[i][j+1], best[i+1][j])
			if c.sameUnit(&a[i], &b[j]) {
				run[i+1][j+1] = weight + best[i][j]
				if run[i][j] > 0 {
					run[i+1][j+1] = weight + max(best[i][j], run[i][j]+matchedRun)
				}
				best[i+1][j+1] = max(best[i+1][j+1], run[i+1][j+1])
			}
		}
	}
	x.trace(best, run)
	x.dropLooseGrammar()
	for i := range a {
		if !a[i].hasContent() {
			continue
		}
		weight := c.weightOf(&a[i])
		x.all += weight
		if x.of[i] >= 0 {
			x.inOrder += weight
		}
		if x.of[i] >= 0 || slices.ContainsFunc(b, func(u unit) bool { return c.sameUnit(&a[i], &u) }) {
			x.has += weight
		}
	}
	x.voiceDiffers = passive(a) != passive(b)
	return x
}

// trace reconstructs the best matches from the end.
func (x *alignment) trace(best, run [][]float64) {
	for i := range x.of {
		x.of[i] = -1
	}
	inRun := false
	for i, j := len(x.a), len(x.b); i > 0 && j > 0; {
		switch {
		case run[i][j] > 0 && (inRun || best[i][j] == run[i][j]):
			x.of[i-1] = j - 1
			inRun = run[i-1][j-1] > 0 && run[i-1][j-1]+matchedRun >= best[i-1][j-1]
			i, j = i-1, j-1
		case best[i][j] == best[i-1][j]:
			i--
		default:
			j--
		}
	}
}

// dropLooseGrammar removes matches of grammar that are not followed by another match.
func (x *alignment) dropLooseGrammar() {
	for i, j := range x.of {
		if j >= 0 && !x.a[i].hasContent() && (i+1 == len(x.a) || x.of[i+1] < 0 || x.of[i+1]-j > 2) {
			x.of[i] = -1
		}
	}
}

// gap is what is between two matched units: half-open ranges of both sides.
type gap struct{ a, b [2]int }

// gaps returns the gaps in order. Before the first match and after the last one, the evidence's side is the rest of the
// clause with that match.
func (x *alignment) gaps() (gaps []gap) {
	from, fromB := 0, 0
	for i, j := range x.of {
		if j >= 0 {
			gaps = append(gaps, gap{[2]int{from, i}, [2]int{fromB, j}})
			from, fromB = i+1, j+1
		}
	}
	if len(gaps) == 0 {
		return nil
	}
	first, last := &gaps[0], gap{[2]int{from, len(x.a)}, [2]int{fromB, len(x.b)}}
	for i := first.b[1]; i > first.b[0]; i-- {
		if x.b[i].begins {
			first.b[0] = i
			break
		}
	}
	for i := last.b[0]; i < last.b[1]; i++ {
		if x.b[i].begins {
			last.b[1] = i
			break
		}
	}
	return append(gaps, last)
}

// differs returns how the claim's sentence differs; empty if it does not.
func (x *alignment) differs() string {
	for _, g := range x.gaps() {
		for _, compare := range [...]func(gap) string{x.substituted, x.crossed, x.operatorsDiffer} {
			if note := compare(g); note != "" {
				return note
			}
		}
	}
	return ""
}

// note describes which words differ. A nil side has none.
func (x *alignment) note(a, b *unit) string {
	switch {
	case a == nil:
		return fmt.Sprintf("the evidence also says %q there", x.c.evidence.word(b))
	case b == nil:
		return fmt.Sprintf("the evidence does not say %q there", x.c.claim.word(a))
	default:
		return fmt.Sprintf("%q, where the evidence says %q", x.c.claim.word(a), x.c.evidence.word(b))
	}
}

func (t *valuedText) word(u *unit) string {
	if u.kind == figureUnit {
		return textAt(t.text, t.values[u.value].figure)
	}
	return textAt(t.text, t.tokens[u.token].span())
}

// evidenceHas reports whether the evidence contains a unit of the claim anywhere.
func (c *comparison) evidenceHas(u *unit) bool { return c.hasWord(foldWord(u.low)) }

// claimIndex returns the first unit of the claim that says the same as one of the evidence, or -1.
func (x *alignment) claimIndex(u *unit) int {
	return slices.IndexFunc(x.a, func(a unit) bool { return x.c.sameUnit(&a, u) })
}

// substituted compares the words of a gap. A word of the claim differs from one of the evidence that the claim lacks,
// or has elsewhere, if the rest is in close wording. A name never differs from a noun, which may be what it names.
func (x *alignment) substituted(g gap) string {
	as, bs := contentUnits(x.a[g.a[0]:g.a[1]]), contentUnits(x.b[g.b[0]:g.b[1]])
	if len(as) == 0 || len(bs) == 0 || len(as) > maxInGap || len(bs) > maxInGap {
		return ""
	}
	rest := x.all
	for _, a := range as {
		rest -= x.c.weightOf(a)
	}
	for i := range x.a { // names for which the evidence's sentence may have a pronoun
		if u := &x.a[i]; u.kind == nameUnit && x.of[i] < 0 && (i < g.a[0] || i >= g.a[1]) && x.c.evidenceHas(u) {
			rest -= x.c.weightOf(u)
		}
	}
	tight := x.inOrder >= tightWording*rest
	alone := len(as) == 1 && len(bs) == 1 && g.a[1]-g.a[0] <= 2 && g.b[1]-g.b[0] <= 2
	for _, a := range as {
		moved := x.c.evidenceHas(a)
		for _, b := range bs {
			other := x.claimIndex(b)
			switch {
			case a.kind != b.kind && other < 0:
			case other < 0 && tight && (moved || alone),
				other >= 0 && moved && x.of[other] < 0 && !x.voiceDiffers:
				return x.note(a, b)
			}
		}
	}
	return ""
}

// crossed finds a claim that joins the beginning of one part of a sentence with the end of another, leaving out the
// other's beginning: "41 per cent of owners" from "41 per cent of tenants and 17 per cent of owners".
func (x *alignment) crossed(g gap) string {
	if g.b[0] == 0 || g.b[1] == len(x.b) || len(contentUnits(x.a[g.a[0]:g.a[1]])) > 0 {
		return ""
	}
	last := g.b[1] + 1
	for i := max(g.b[0]+1, 2); i <= g.b[1]; i++ {
		// Two names or figures with "and" between them are one thing.
		if b := &x.b[i]; b.joins && (b.kind == contentUnit || b.kind != x.b[i-2].kind) {
			last = i
		}
	}
	if last > g.b[1] || len(contentUnits(x.b[g.b[0]:last])) == 0 {
		return ""
	}
	for i := last; i < g.b[1]; i++ {
		b, next := &x.b[i], &x.b[g.b[1]]
		// A part of the name that follows is not a thing of its own.
		isPart := b.kind == nameUnit && next.kind == nameUnit && next.token-b.token == g.b[1]-i
		if !isPart && b.hasContent() && (b.kind != contentUnit || x.c.evidence.verb(b.token)) && x.claimIndex(b) < 0 {
			return x.note(nil, b)
		}
	}
	return ""
}

// operatorsDiffer compares the operators of a gap. A claim may add those in the list "weakening", unless it lacks the
// evidence's there, and leave out those in "omissible".
func (x *alignment) operatorsDiffer(g gap) string {
	lacks := func(units []unit, u *unit) bool {
		return u.kind == operatorUnit && !slices.ContainsFunc(units, func(other unit) bool {
			return other.kind == operatorUnit && other.low == u.low
		})
	}
	as, bs := x.a[g.a[0]:g.a[1]], x.b[g.b[0]:g.b[1]]
	other := func(u unit) bool { return lacks(x.a, &u) }
	for i := range as {
		if u := &as[i]; lacks(x.b, u) && (!weakening.has(u.low) || slices.ContainsFunc(bs, other)) &&
			!x.operatorElsewhere(g.a[0]+i) {
			return x.note(u, nil)
		}
	}
	if g.b[1] == len(x.b) {
		return ""
	}
	for i := range bs {
		u, at := &bs[i], g.b[0]+i
		switch following := x.b[at+1 : g.b[1]+1]; {
		case u.kind == figureUnit && at > 0 && x.b[at-1].low == "always": // every two years
			return x.note(nil, u)
		case !lacks(x.a, u), omissible.has(u.low),
			following[0].kind == figureUnit, slices.ContainsFunc(following, func(u unit) bool { return u.begins }):
		default:
			return x.note(nil, u)
		}
	}
	return ""
}

// operatorElsewhere reports whether another sentence of the evidence has operator i of the claim before the same word.
func (x *alignment) operatorElsewhere(i int) bool {
	for k := i + 1; k < len(x.a); k++ {
		if !x.a[k].hasContent() {
			continue
		}
		t := x.c.evidence
		return slices.ContainsFunc(x.c.at[x.c.claim.tokens[x.a[k].token].key], func(at int) bool {
			s := &t.sentences[t.tokens[at].sentence]
			return slices.ContainsFunc([]int{at - 2, at - 1}, func(before int) bool {
				return before >= s.tokens[0] && t.operatorAt(before, s) == x.a[i].low
			})
		})
	}
	return false
}

var (
	weakening = lists["weakening"]
	omissible = lists["omissible"]
)
