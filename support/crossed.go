package support

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
)

// clause is a part of a sentence between coordinating words: what it says of what.
type clause struct {
	sentence int
	from     int                       // its first token
	verb     bool                      // it has one
	listed   bool                      // it may begin within a list of names
	relative bool                      // it says more of something before it
	slots    map[string]map[uint32]int // the token of each key by what it is in the part: see clausesOf
	all      map[uint32]int
}

// maxClauses is how many clauses of a text are compared with each other, and clauseReach how many sentences apart. What
// has no verb is joined to the clause before it up to maxClauseTokens.
const (
	maxClauses      = 48
	maxClauseTokens = 128
	clauseReach     = 1
)

// clausesOf returns the clauses of a text. The slots of a clause are "left", which is all before its verb, "right"
// behind it, the roles of prepositions behind the verb, and "cause" from a connective on.
func (t *valuedText) clausesOf() (clauses []clause) {
	for n, s := range t.sentences {
		for from := s.tokens[0]; from < s.tokens[1] && len(clauses) < maxClauses; {
			to, brackets := from, 0
			for ; to < s.tokens[1]; to++ {
				low := t.tokens[to].low
				switch low {
				case "(":
					brackets++
				case ")":
					brackets--
				}
				if brackets <= 0 && (coordinating.has(low) || relative.has(low)) {
					break
				}
			}
			p := t.clause(n, from, to)
			if last := len(clauses) - 1; last >= 0 && clauses[last].sentence == n && !p.whole(t) && !p.relative &&
				to-clauses[last].from <= maxClauseTokens {
				clauses[last] = t.clause(n, clauses[last].from, to) // "and" joins two words
			} else if len(p.all) > 0 {
				clauses = append(clauses, p)
			}
			from = to + 1
		}
	}
	return clauses
}

// whole reports whether a clause has a verb, or goes on without one with something else in its place: and Blok for
// Vantage.
func (a *clause) whole(t *valuedText) bool {
	first := t.token(a.from)
	return a.verb || len(a.slots) > 1 && (first.upper || determiners.has(first.low))
}

// listed reports whether token i is of a name behind another and "and": they may be one, or one subject.
func (t *valuedText) listed(i int) bool {
	name := i
	if determiners.has(t.low(i)) {
		name++
	}
	return !t.token(i).opens && t.token(name).upper && t.token(i-2).upper
}

var relative = lists["relative"]

func (t *valuedText) clause(sentence, from, to int) clause {
	verb := t.firstVerb(from, to)
	p := clause{
		sentence, from, verb >= 0, verb >= 0 && t.listed(from), relative.has(t.low(from - 1)),
		map[string]map[uint32]int{},
		t.keys(from, to),
	}
	slot := "left"
	for i := from; i < to; i++ {
		low := t.tokens[i].low
		switch {
		case i == verb:
			slot = "verb"
		case slot == "cause":
		case i > from && (connectives[low].name == "cause" || connectives[low+" "+t.low(i+1)].name == "cause"):
			slot = "cause"
		case (slot != "left" || verb < 0) && prepositions.has(low):
			slot = prepositions[low].name + " " + low
		case slot == "verb":
			slot = "right"
		}
		if key := t.tokens[i].key; key != 0 {
			if p.slots[slot] == nil {
				p.slots[slot] = map[uint32]int{}
			}
			p.slots[slot][key] = i
		}
	}
	return p
}

// firstVerb returns the first token of a range that is a verb, but no participle behind what it describes; -1: there is
// none. What ends in s is one only behind a name: it may be the plural of a noun.
func (t *valuedText) firstVerb(from, to int) int {
	for i := from; i < to; i++ {
		low, before := t.tokens[i].low, t.low(i-1)
		switch {
		case auxiliaryWords.has(low), modalWords.has(low), low == "has", low == "have", low == "had":
			return i
		case !t.verb(i), (i == from || before == "," || before == "(" || adverb(before)) &&
			(prepositions.has(t.low(i+1)) || t.low(i+1) == "as"):
			continue
		case low[len(low)-1] != 's', i > from && t.tokens[i-1].upper:
			return i
		}
	}
	return -1
}

// crossed looks for a claim that says of one thing what the evidence says of another, where the evidence says of the
// first something else: A clause of the claim has the words of one clause of the evidence, but instead of what stands
// in one of its slots, that of another clause, and nothing else of that.
func (c *comparison) crossed() {
	claims, clauses := c.claim.clausesOf(), c.evidence.clausesOf()
	for _, k := range claims {
		if k.relative || c.claim.listed(k.from) {
			continue
		}
		for i := range clauses {
			for j := range clauses {
				a, b := &clauses[i], &clauses[j]
				if i != j && (max(i-j, j-i) == 1 || a.sentence != b.sentence) && a.contrasts(b) &&
					c.crossedBy(&k, a, b, clauses) {
					return
				}
			}
		}
	}
}

// contrasts reports whether two clauses may say the same of two things: Each has a verb, or goes on without one.
func (a *clause) contrasts(b *clause) bool {
	d := a.sentence - b.sentence
	return !a.relative && !b.relative && !a.listed && !b.listed && max(d, -d) <= clauseReach && (a.verb && b.verb ||
		d == 0 && (a.verb && b.from > a.from || b.verb && a.from > b.from))
}

// crossedBy compares a clause of the claim with the clause a of the evidence that has its words, and the clause b that
// has what stands in their place.
func (c *comparison) crossedBy(k, a, b *clause, clauses []clause) bool {
	ofA, ofB, share := c.dividedWords(k, a, b)
	if len(ofA) == 0 || len(ofB) == 0 || share < crossedShare {
		return false
	}
	slot := b.slotWith(ofB)
	place := slot
	if _, ok := a.slots["cause"]; ok && within(ofB, k.slots["cause"]) {
		place = "cause"
	}
	switch {
	case slot == "" || slot == "verb", slot != "left" && len(b.slots["left"]) == 0 && !meets(ofA, a.slots["verb"]),
		slot == "left" && place == slot && !within(ofB, k.slots["left"]) && !within(ofB, k.slots["by by"]),
		slot != "left" && 2*c.claim.weight(ofB) < c.evidence.weight(b.slots[slot]):
		return false
	}
	// What stands there in a, and what else b says.
	var others []int
	claimed, claimedName := false, false
	for key, at := range a.slots[place] {
		if _, ok := k.all[key]; !ok && !adverb(c.evidence.tokens[at].low) {
			others = append(others, at)
		} else if _, shared := b.slots[slot][key]; ok && !shared {
			claimed, claimedName = true, claimedName || c.evidence.named(at)
		}
	}
	if len(others) == 0 || !c.saysElse(k, a, b, slot) {
		return false
	}
	slices.Sort(others)
	names := slices.ContainsFunc(others, func(at int) bool { return c.evidence.named(at) })
	theirs := false
	for key := range ofB {
		theirs = theirs || c.evidence.named(b.all[key])
	}
	switch {
	case claimedName, a.sentence != b.sentence && slot != "left":
		return false
	case names && theirs:
		others = slices.DeleteFunc(others, func(at int) bool { return !c.evidence.named(at) })
	case names != theirs && slot != "left", claimed, a.sentence != b.sentence, theirs && c.before(ofB, a):
		return false // the company may be the name before it
	}
	for i := range clauses {
		p := &clauses[i]
		if p.sentence != a.sentence && p.sentence != b.sentence && meets(p.all, ofA) && meets(p.all, ofB) {
			return false
		}
	}
	kind := ConflictRole
	if names && theirs {
		kind = ConflictName
	}
	first := len(c.claim.tokens)
	for _, at := range ofB {
		first = min(first, at)
	}
	c.addSpan(kind, c.claim.run(first, ofB), first, c.evidence.run(others[0], a.slots[place]), others[0])
	return true
}

// slotWith returns the slot of a clause that has all of some words; empty: none has. Of several it is always the same.
func (a *clause) slotWith(keys map[uint32]int) (slot string) {
	for name, has := range a.slots {
		if within(keys, has) && name > slot {
			slot = name
		}
	}
	return slot
}

// dividedWords returns the words of the claim's clause that only one of two clauses of the evidence has, and how much
// of what b does not bring a has, by weight.
func (c *comparison) dividedWords(k, a, b *clause) (ofA, ofB map[uint32]int, share float64) {
	ofA, ofB = map[uint32]int{}, map[uint32]int{}
	rest, said := 0., 0.
	for key, at := range k.all {
		_, inA := a.all[key]
		_, inB := b.all[key]
		switch {
		case inB && !inA:
			ofB[key] = at
			continue
		case inA && !inB:
			ofA[key] = at
		}
		rest += c.claim.tokens[at].weight
		if inA {
			said += c.claim.tokens[at].weight
		}
	}
	return ofA, ofB, said / max(rest, 1e-9)
}

// crossedShare is how much of the rest of the claim's clause the evidence's clause must say.
const crossedShare = .6

func adverb(low string) bool { return strings.HasSuffix(low, "ly") || lists["adverb"].has(low) }

// saysElse reports whether b says something of what it has in a slot that the claim does not say.
func (c *comparison) saysElse(k, a, b *clause, slot string) bool {
	for name, keys := range b.slots {
		for key, at := range keys {
			_, claimed := k.all[key]
			_, inA := a.all[key]
			if name != slot && !claimed && !inA && !adverb(c.evidence.tokens[at].low) {
				return true
			}
		}
	}
	return false
}

// before reports whether the evidence has one of the keys before a clause of it.
func (c *comparison) before(keys map[uint32]int, a *clause) bool {
	first := c.evidence.sentences[a.sentence].tokens[0]
	for key := range keys {
		if at := c.at[key]; len(at) > 0 && at[0] < first {
			return true
		}
	}
	return false
}

// named reports whether token i is of a name.
func (t *valuedText) named(i int) bool {
	token := &t.tokens[i]
	n, _ := slices.BinarySearchFunc(t.values, token.end, func(v Value, end int) int {
		return cmp.Compare(v.Span.Start, end)
	})
	for n--; n >= 0; n-- {
		if v := &t.values[n]; v.Kind == ValueName {
			return token.end <= v.Span.End+len("’s") && !v.Unsure
		}
	}
	return false
}

// run is the span of the tokens from i on that have one of the keys.
func (t *valuedText) run(i int, keys map[uint32]int) ibid.Span {
	span := t.tokens[i].span()
	for i++; i < len(t.tokens); i++ {
		if _, ok := keys[t.tokens[i].key]; !ok {
			break
		}
		span.End = t.tokens[i].end
	}
	return span
}

func within(a, b map[uint32]int) bool {
	for key := range a {
		if _, ok := b[key]; !ok {
			return false
		}
	}
	return true
}

func meets(a, b map[uint32]int) bool {
	for key := range a {
		if _, ok := b[key]; ok {
			return true
		}
	}
	return false
}
