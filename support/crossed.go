package support

import (
	"cmp"
	"slices"

	"github.com/ibidhq/ibid"
)

// clause is a part of a sentence between coordinating words: what it says of what.
type clause struct {
	sentence int
	from     int // its first token
	verb     bool // it has one
	relative bool // it says more of something before it
	slots    map[string]map[uint32]int // the token of each key by what it is in the part: see clausesOf
	all      map[uint32]int
}

// maxClauses is how many clauses of a text are compared with each other, and clauseReach how many sentences apart.
const (
	maxClauses  = 48
	clauseReach = 2
)

// clausesOf returns the clauses of a text. The slots of a clause are "left", which is all before its verb, "right" behind it,
// the roles of prepositions behind the verb, and "cause" from a connective on.
func (t *valuedText) clausesOf() (clauses []clause) {
	for n, s := range t.sentences {
		for from := s.tokens[0]; from < s.tokens[1] && len(clauses) < maxClauses; {
			to := from
			for to < s.tokens[1] && !coordinating.has(t.tokens[to].low) && !relative.has(t.tokens[to].low) {
				to++
			}
			if p := t.clause(n, from, to); len(p.all) > 0 {
				clauses = append(clauses, p)
			}
			from = to + 1
		}
	}
	return clauses
}

var relative = lists["relative"]

func (t *valuedText) clause(sentence, from, to int) clause {
	verb := t.firstVerb(from, to)
	p := clause{
		sentence, from, verb > from, relative.has(t.low(from - 1)), map[string]map[uint32]int{}, t.keys(from, to),
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
		case slot != "left" && prepositions.has(low):
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

// firstVerb returns the first token of a range that is a verb; if none is written as only verbs are, the first that may
// be one or the plural of a noun, and from if there is none.
func (t *valuedText) firstVerb(from, to int) int {
	plural := from
	for i := from; i < to; i++ {
		low := t.tokens[i].low
		switch {
		case auxiliaryWords.has(low), modalWords.has(low), low == "has", low == "have", low == "had":
			return i
		case t.verb(i) && low[len(low)-1] != 's':
			return i
		case t.verb(i) && plural == from && i > from:
			plural = i
		}
	}
	return plural
}

// crossed looks for a claim that says of one thing what the evidence says of another, where the evidence says of the
// first something else: A clause of the claim has the words of one clause of the evidence, but instead of what stands in one
// of its slots, that of another clause, and nothing else of that.
func (c *comparison) crossed() {
	claims, clauses := c.claim.clausesOf(), c.evidence.clausesOf()
	for _, k := range claims {
		if k.relative {
			continue
		}
		for i := range clauses {
			for j := range clauses {
				if i != j && clauses[i].contrasts(&clauses[j]) && c.crossedBy(&k, &clauses[i], &clauses[j], clauses) {
					return
				}
			}
		}
	}
}

// contrasts reports whether two clauses may say the same of two things: Each has a verb, or goes on without one.
func (a *clause) contrasts(b *clause) bool {
	d := a.sentence - b.sentence
	return !a.relative && !b.relative && max(d, -d) <= clauseReach && (a.verb && b.verb ||
		d == 0 && (a.verb && b.from > a.from || b.verb && a.from > b.from))
}

// crossedBy compares a clause of the claim with the clause a of the evidence that has its words, and the clause b that has
// what stands in their place.
func (c *comparison) crossedBy(k, a, b *clause, clauses []clause) bool {
	ofA, ofB := map[uint32]int{}, map[uint32]int{}
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
	if len(ofA) == 0 || len(ofB) == 0 || said < crossedShare*rest {
		return false
	}
	slot := ""
	for name, keys := range b.slots {
		if within(ofB, keys) {
			slot = name
		}
	}
	place := slot
	if _, ok := a.slots["cause"]; ok && within(ofB, k.slots["cause"]) {
		place = "cause"
	}
	if slot == "" || slot == "verb" {
		return false
	}
	// What stands there in a, and what else b says.
	var others []int
	claimed, claimedName := false, false
	for key, at := range a.slots[place] {
		if _, ok := k.all[key]; !ok && !adverbs.has(c.evidence.tokens[at].low) {
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
	case claimed, a.sentence != b.sentence, theirs && c.before(ofB, a):
		return false // the company may be the name before it
	}
	for i := range clauses {
		if p := &clauses[i]; p.sentence != a.sentence && p.sentence != b.sentence && meets(p.all, ofA) && meets(p.all, ofB) {
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

// crossedShare is how much of the rest of the claim's clause the evidence's clause must say.
const crossedShare = .6

var adverbs = lists["adverb"]

// saysElse reports whether b says something of what it has in a slot that the claim does not say.
func (c *comparison) saysElse(k, a, b *clause, slot string) bool {
	for name, keys := range b.slots {
		for key, at := range keys {
			_, claimed := k.all[key]
			_, inA := a.all[key]
			if name != slot && !claimed && !inA && !adverbs.has(c.evidence.tokens[at].low) {
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
	n, _ := slices.BinarySearchFunc(t.values, token.end, func(v Value, end int) int { return cmp.Compare(v.Span.Start, end) })
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
