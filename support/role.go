package support

import (
	"slices"
	"strings"
)

// maxClause is the most words to look at on either side of a connective, maxConnections the most connectives of a text.
const (
	maxClause      = 24
	maxConnections = 64
)

var (
	prepositions   = lists["preposition"]
	clauseWords    = lists["clause-break"]
	auxiliaryWords = lists["auxiliary"]
	symmetricWords = lists["symmetric"]
	dividingWords  = lists["dividing"]
	connectives    = lists["connective"]
)

// relations compares who does what to whom, what is where, what comes first, and what causes what.
func (c *comparison) relations() {
	for i := range c.claim.sentences[:min(len(c.claim.sentences), maxAligned)] {
		x := &alignment{c: c, a: c.claim.units(i)}
		for j := range c.evidence.sentences {
			if c.overlap[j] < topicOverlap {
				continue
			}
			x.b = c.evidence.units(j)
			if a, b := x.inverted(); a != nil {
				c.addSpan(ConflictRole, c.claim.tokens[a.token].span(), a.token,
					c.evidence.tokens[b.token].span(), b.token)
				return
			}
		}
	}
	c.compareConnections()
}

// inverted finds a word of the claim that is on the other side of a verb or preposition than in the evidence, and that
// traded places with another: from Warna for Paris. It returns the two words that claim and evidence have on the same
// side, or nil.
func (x *alignment) inverted() (a, b *unit) {
	for i := range x.a {
		for j := range x.b {
			m, n := &x.a[i], &x.b[j]
			if !x.c.sameUnit(m, n) || !x.relates(m, n) {
				continue
			}
			if maybePassive(x.a, i) != maybePassive(x.b, j) && !passive(x.a[i:]) && !passive(x.b[j:]) {
				continue
			}
			al, ar := sides(x.a, i)
			bl, br := sides(x.b, j)
			a, other := x.across(al, ar, bl, br), x.across(ar, al, br, bl)
			if a != nil && other != nil {
				return a, &bl[slices.IndexFunc(bl, func(u unit) bool { return x.c.sameUnit(other, &u) })]
			}
		}
	}
	return nil, nil
}

// relates reports whether two equal words are verbs, or prepositions of direction, purpose or comparison.
func (x *alignment) relates(m, n *unit) bool {
	if m.kind != contentUnit {
		return m.kind == grammarUnit && dividingWords.has(m.low)
	}
	plurals := isPlural(x.c.claim.low(m.token-1)) && isPlural(x.c.evidence.low(n.token-1)) // otters eat
	return !symmetricWords.has(m.low) && (plurals || x.c.evidence.verb(n.token))
}

// maxSide is the most units that say something to look at on either side of a word, within its clause.
const maxSide = 4

// sides returns the units before and after unit i in its clause, swapped for a passive with an agent.
func sides(units []unit, i int) (left, right []unit) {
	from, to := i, i+1
	for n := 0; from > 0 && !units[from].begins && n < maxSide; from-- {
		if units[from-1].hasContent() {
			n++
		}
	}
	for n := 0; to < len(units) && !units[to].begins && n < maxSide; to++ {
		if units[to].hasContent() {
			n++
		}
	}
	left, right = units[from:i], units[i+1:to]
	if by := slices.IndexFunc(right, func(u unit) bool { return u.low == "by" }); by >= 0 && maybePassive(units, i) {
		return right[by:], left
	}
	return left, right
}

// maybePassive reports whether unit i may be part of a passive: after an auxiliary, or before "by".
func maybePassive(units []unit, i int) bool {
	return i+1 < len(units) && units[i+1].low == "by" ||
		slices.ContainsFunc(units[max(0, i-3):i], func(u unit) bool { return auxiliaryWords.has(u.low) })
}

// across returns a unit of one side of the claim that the evidence has on the other side only, or nil.
func (x *alignment) across(side, other, there, otherThere []unit) *unit {
	has := func(units []unit, a *unit) bool {
		return slices.ContainsFunc(units, func(u unit) bool { return x.c.sameUnit(a, &u) })
	}
	for i := range side {
		a := &side[i]
		if a.kind <= nameUnit && has(otherThere, a) && !has(there, a) &&
			!slices.ContainsFunc(other, func(u unit) bool { return u.low == a.low }) {
			return a
		}
	}
	return nil
}

// sidesSwapped reports whether two opposite relations say the same, because the things they relate are swapped too: A
// beat B, B lost to A.
func (c *comparison) sidesSwapped(i, j int) bool {
	there := c.evidence.units(c.evidence.tokens[j].sentence)
	x := &alignment{c: c, a: c.claim.units(c.claim.tokens[i].sentence), b: there}
	at := func(units []unit, token int) int {
		return max(0, slices.IndexFunc(units, func(u unit) bool { return u.token == token }))
	}
	left, _ := sides(x.a, at(x.a, i))
	_, right := sides(x.b, at(x.b, j))
	return x.across(left, nil, nil, right) != nil
}

// verb reports whether token i looks like a verb.
func (t *valuedText) verb(i int) bool {
	token, before := t.at(i), t.low(i-1)
	if token.key == 0 || token.upper || determiners.has(before) || prepositions.has(before) && before != "to" {
		return false
	}
	return strings.HasSuffix(token.low, "ed") || lists["same"].has(token.low) || relationWords.has(sideOf(token.low)) ||
		strings.HasSuffix(token.low, "s") && !strings.HasSuffix(token.low, "ss")
}

// sideOf returns the name of a word's side of its opposites.
func sideOf(low string) string {
	side, _, _ := strings.Cut(oppositeWords[low].name, "|")
	return side
}

// connection is two parts of a sentence of which the first precedes or causes the second.
type connection struct {
	kind          string
	place         int
	first, second map[uint32]int
}

// connections returns the parts that the connectives of a text connect.
func (t *valuedText) connections() (found []connection) {
	for _, s := range t.sentences {
		for i := s.tokens[0]; i < s.tokens[1] && len(found) < maxConnections; i++ {
			m, n := connectives[t.low(i)+" "+t.low(i+1)], 2
			if m.name == "" {
				m, n = connectives[t.low(i)], 1
			}
			if m.name == "" {
				continue
			}
			if t.low(i+n) == "which" {
				continue
			}
			left := t.keys(max(s.tokens[0], i-maxClause), i)
			right := t.keys(i+n, min(s.tokens[1], i+n+maxClause))
			if len(left) == 0 {
				comma := i
				for comma < min(s.tokens[1], i+maxClause) && t.tokens[comma].low != "," {
					comma++
				}
				right, left = t.keys(i+n, comma), t.keys(comma, min(s.tokens[1], comma+maxClause))
			}
			if m.number < 0 {
				left, right = right, left
			}
			found = append(found, connection{m.name, i, left, right})
			i += n - 1
		}
	}
	return found
}

// keys returns the keys of a range of tokens, each with its last token.
func (t *valuedText) keys(from, to int) map[uint32]int {
	keys := map[uint32]int{}
	for i := from; i < to; i++ {
		if key := t.tokens[i].key; key != 0 {
			keys[key] = i
		}
	}
	return keys
}

// compareConnections compares the order of events, and of cause and effect.
func (c *comparison) compareConnections() {
	there := c.evidence.connections()
	for _, a := range c.claim.connections() {
		for _, b := range there {
			if a.kind != b.kind {
				continue
			}
			straight := c.common(a.first, b.first, a.second, b.second) + c.common(a.second, b.second, a.first, b.first)
			one, two := c.common(a.first, b.second, a.second, b.first), c.common(a.second, b.first, a.first, b.second)
			least := connectedShare * min(c.claim.weight(a.first), c.claim.weight(a.second))
			if min(one, two) > least && one+two > 2*straight {
				c.addSpan(ConflictRole, c.claim.tokens[a.place].span(), a.place, c.evidence.tokens[b.place].span(),
					b.place)
				return
			}
		}
	}
}

const (
	connectedShare = .5
	// topicOverlap is the least share of the claim in a sentence of the evidence for their roles to be compared.
	topicOverlap = .5
)

// weight returns the weight of the words of a part of a text.
func (t *valuedText) weight(keys map[uint32]int) (sum float64) {
	for _, i := range keys {
		sum += t.tokens[i].weight
	}
	return sum
}

// common returns the weight of the words that two parts share and their other parts lack.
func (c *comparison) common(a, b, notA, notB map[uint32]int) float64 {
	sum := 0.
	for key, i := range a {
		_, is := b[key]
		_, x := notA[key]
		_, y := notB[key]
		if is && !x && !y {
			sum += c.claim.tokens[i].weight
		}
	}
	return sum
}
