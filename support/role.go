package support

import (
	"maps"
	"strings"
)

// roles are the words of a clause by what they are to one of its words: "left" and "right" of it, or behind a
// preposition. In a passive, left is who does it.
type roles map[string]map[uint32]int // the token of each key

// maxClause is how many words to either side of a word are looked at, and maxConnections how many connectives of a
// text.
const (
	maxClause      = 24
	maxConnections = 64
)

var (
	prepositions   = lists["preposition"]
	clauseWords    = lists["clause-break"]
	auxiliaryWords = lists["auxiliary"]
	symmetricWords = lists["symmetric"]
	connectives    = lists["connective"]
)

// rolesOf returns the roles of the words around token i.
func (t *valuedText) rolesOf(i int) roles {
	from, to := i, i+1
	s := &t.sentences[t.sentenceOf(i)]
	for from > max(s.tokens[0], i-maxClause) && !clauseWords.has(t.tokens[from-1].low) {
		from--
	}
	for to < min(s.tokens[1], i+maxClause) && !clauseWords.has(t.tokens[to].low) {
		to++
	}
	r, role, passive := roles{}, "left", false
	for k := from; k < to; k++ {
		token := &t.tokens[k]
		switch low := token.low; {
		case k == i:
			role = "right"
		case prepositions.has(low):
			role = prepositions[low].name
		case auxiliaryWords.has(low):
			passive = passive || k >= i-3 && k < i
		case token.key != 0:
			if r[role] == nil {
				r[role] = map[uint32]int{}
			}
			r[role][token.key] = k
		}
	}
	low := t.tokens[i].low
	if n := len(low); passive && r["than"] == nil && n > 3 && low[n-3:] != "ing" && low[n-2:] != "er" {
		r["right"], r["left"] = r["left"], r["by"]
		delete(r, "by")
	}
	return r
}

// others are the words in the roles opposite to left.
func (r roles) others() map[uint32]int {
	all := map[uint32]int{}
	for _, role := range [...]string{"right", "to", "than", "over", "from"} {
		maps.Copy(all, r[role])
	}
	return all
}

// swapped reports whether the evidence has words of two roles of the claim the other way round, and hardly any as the
// claim has them. It returns a word of the first role and the evidence's there.
func (c *comparison) swapped(a, b, otherA, otherB map[uint32]int) (x, otherX int, ok bool) {
	across := func(in, notIn, there, notThere map[uint32]int) (weight float64, place int) {
		for key, at := range in {
			_, both := notIn[key]
			_, same := notThere[key]
			if i, is := there[key]; is && !same && !both {
				weight, place = weight+c.claim.tokens[at].weight, i
			}
		}
		return weight, place
	}
	x1, place := across(a, b, otherB, otherA)
	x2, otherX := across(b, a, otherA, otherB)
	straight, _ := across(a, b, otherA, otherB)
	alsoStraight, _ := across(b, a, otherB, otherA)
	for _, at := range a {
		if c.claim.tokens[at].key == c.evidence.tokens[place].key {
			x = at
		}
	}
	return x, otherX, x1 > 0 && x2 > 0 && x1+x2 > straight+alsoStraight
}

// turned reports whether two opposite relations say the same, because they turn round what they relate: A beat B, B
// lost to A.
func (c *comparison) turned(i, j int) bool {
	a, b := c.claim.rolesOf(i), c.evidence.rolesOf(j)
	return meets(a["left"], b.others()) || meets(a.others(), b["left"])
}

// relations compares who does what to whom, what comes first, and what is the cause of what.
func (c *comparison) relations() {
	for i := range c.claim.tokens {
		if !c.claim.verb(i) || symmetricWords.has(c.claim.tokens[i].low) {
			continue
		}
		a := c.claim.rolesOf(i)
		for _, j := range c.at[c.claim.tokens[i].key] {
			if !c.evidence.verb(j) || c.overlap[c.evidence.sentenceOf(j)] < roleOverlap {
				continue
			}
			b := c.evidence.rolesOf(j)
			x, otherX, ok := c.swapped(a["left"], a.others(), b["left"], b.others())
			if !ok {
				x, otherX, ok = c.swapped(a["from"], a["to"], b["from"], b["to"])
			}
			if ok {
				c.addSpan(ConflictRole, c.claim.tokens[x].span(), x, c.evidence.tokens[otherX].span(), otherX)
				c.note("role: %s", c.claim.tokens[x].low)
				return
			}
		}
	}
	c.connected()
}

// verb reports whether token i is written as a verb is, or a comparative before than.
func (t *valuedText) verb(i int) bool {
	token, before := t.token(i), t.token(i-1)
	low := token.low
	switch n := len(low); {
	case token.key == 0 || token.upper || n < 3 || determiners.has(before.low) || prepositions.has(before.low) &&
		before.low != "to":
		return false
	case t.low(i+1) == "than":
		return true
	case low[n-2:] == "ed", lists["same"].has(low), relationWords.has(sideOf(low)):
		return true
	case low[n-1] == 's':
		return low[n-2] != 's'
	}
	return before.low == "to" || auxiliaryWords.has(before.low) || modalWords.has(before.low)
}

// sideOf is the name of a word's side of its opposites.
func sideOf(low string) string {
	side, _, _ := strings.Cut(oppositeWords[low].name, "|")
	return side
}

const roleOverlap = .3

// connection is two parts of a sentence of which the first comes before the other, or is its cause.
type connection struct {
	kind          string
	place         int
	first, second map[uint32]int
}

// connections returns what the connectives of a text connect.
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
			if low := t.low(i + n); low == "which" || low == "that" || low == "this" {
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

// keys returns the keys of a range of tokens.
func (t *valuedText) keys(from, to int) map[uint32]int {
	keys := map[uint32]int{}
	for i := from; i < to; i++ {
		if key := t.tokens[i].key; key != 0 {
			keys[key] = i
		}
	}
	return keys
}

// connected compares the order of time and of cause.
func (c *comparison) connected() {
	there := c.evidence.connections()
	for _, a := range c.claim.connections() {
		for _, b := range there {
			if a.kind != b.kind || c.overlap[c.evidence.sentenceOf(b.place)] < roleOverlap {
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

const connectedShare = .5

// weight is what the words of a part of a text weigh.
func (t *valuedText) weight(keys map[uint32]int) (sum float64) {
	for _, i := range keys {
		sum += t.tokens[i].weight
	}
	return sum
}

// common is the weight of the words that two parts have in common, and their other parts do not.
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
