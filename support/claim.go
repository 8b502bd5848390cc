package support

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
)

// MaxClaim is how many bytes of a claim are read. What is longer gets the issue claim-truncated and is never
// [Supported]: nobody looked at its end.
const MaxClaim = 64 << 10

// Claim is a claim, read once. It is immutable, and any number of scorers may share it.
type Claim struct {
	text      string // as far as it is read, behind the question it answers
	question  int    // bytes of text that are the question
	truncated bool
	tokens    []claimToken
	terms     []term
	pairs     []neighbours // sorted; stop words left out
	parts     []part
	total     float64 // weight of all terms
	persons   int     // tokens that speak of the speaker or to the listener
}

// claimToken is one token of a claim.
type claimToken struct {
	start, end int32
	term       int32
	flags      tokenFlags
}

// neighbours are two terms of which one stands before the other in a claim, and how often.
type neighbours struct{ first, second, times int32 }

// term is what tokens with one key have in common.
type term struct {
	key    uint32
	prefix uint32  // 0: none
	weight float64 // 0: a stop word
	kind   TermKind
	token  int32 // the first
}

// part is a part of a claim, as the terms that first occur in it.
type part struct {
	span   ibid.Span
	terms  []int32
	weight float64
}

// NewClaim reads a claim in English. For claims in other languages see [Lexical], which weighs their words by how
// rare they are in the passages at hand.
func NewClaim(text string) *Claim { return newClaim("", text, english().weight) }

// newClaim reads a claim, with the question it answers before it, whose terms weigh what the function says.
func newClaim(question, text string, weight func(key uint32) float64) *Claim {
	c := &Claim{text: text}
	if len(text) > MaxClaim {
		c.text, c.truncated = wholeWords(text[:MaxClaim]), true
	}
	if question != "" {
		c.text = question + "\n" + c.text
		c.question = len(question) + 1
	}
	c.read(weight)
	c.pair()
	c.split()
	return c
}

// wholeWords returns text up to its last white space, without a word that its end may cut: a word of more than maxWord
// bytes is cut.
func wholeWords(text string) string {
	if i := strings.LastIndexAny(text, " \t\r\n"); i >= len(text)-maxWord {
		return text[:i]
	}
	return wholeRunes(text)
}

func (c *Claim) read(weight func(key uint32) float64) {
	estimate := len(c.text)/6 + 4
	c.tokens, c.terms = make([]claimToken, 0, estimate), make([]term, 0, estimate)
	known := map[uint32]int32{} // index in terms; only of long claims
	r := reader{text: c.text}
	for t := (token{}); r.next(&t); {
		n := c.lookUp(known, t.key)
		if n < 0 {
			n = c.addTerm(&t, weight)
			if len(c.terms) > maxScanned {
				known[t.key] = n
			}
		}
		if t.flags&flagPerson != 0 {
			c.persons++
		}
		c.tokens = append(c.tokens, claimToken{start: int32(t.start), end: int32(t.end), term: n, flags: t.flags})
	}
	c.findNames()
}

// maxScanned is up to how many terms a claim's terms are searched one after the other, which is faster than a map.
const maxScanned = 48

func (c *Claim) lookUp(known map[uint32]int32, key uint32) int32 {
	for i := range c.terms[:min(len(c.terms), maxScanned)] {
		if c.terms[i].key == key {
			return int32(i)
		}
	}
	if n, ok := known[key]; ok {
		return n
	}
	return -1
}

func (c *Claim) addTerm(t *token, weight func(key uint32) float64) int32 {
	e := term{key: t.key, prefix: t.prefix, kind: TermWord, token: int32(len(c.tokens))}
	if t.flags&flagStop == 0 {
		e.weight = weight(t.key)
		c.total += e.weight
	}
	if t.flags&flagNumber != 0 {
		e.kind = TermNumber
	}
	c.terms = append(c.terms, e)
	return int32(len(c.terms) - 1)
}

// rareName is what a word at the beginning of a sentence weighs at least to be a name for its capital alone: about
// 8,000 words are commoner.
const rareName = 9 / maxIDF

// findNames marks the terms that are names: capitals inside a sentence, and at its beginning rare words and those
// before another capital.
func (c *Claim) findNames() {
	for i := range c.tokens {
		t := &c.tokens[i]
		e := &c.terms[t.term]
		if t.flags&flagCapital == 0 || e.kind != TermWord || e.weight == 0 || int(e.token) != i {
			continue
		}
		if c.opens(i) && e.weight < rareName {
			if i+1 == len(c.tokens) || c.tokens[i+1].flags&(flagCapital|flagStop) != flagCapital {
				continue
			}
		}
		e.kind = TermName
	}
}

// opens reports whether a token is the first of the claim or of a sentence in it.
func (c *Claim) opens(i int) bool {
	if i == 0 {
		return true
	}
	end := int(c.tokens[i-1].end)
	if end >= len(c.text) {
		return false
	}
	ch, _ := utf8.DecodeRuneInString(c.text[end:])
	return strings.ContainsRune(".!?\n:؟？！。", ch)
}

// pair finds the neighbours in the claim.
func (c *Claim) pair() {
	c.pairs = make([]neighbours, 0, len(c.tokens))
	last := int32(-1)
	for i := range c.tokens {
		n := c.tokens[i].term
		if c.terms[n].weight == 0 {
			continue
		}
		if last >= 0 {
			c.pairs = append(c.pairs, neighbours{last, n, 1})
		}
		last = n
	}
	slices.SortFunc(c.pairs, func(a, b neighbours) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second))
	})
	distinct := c.pairs[:0]
	for _, p := range c.pairs {
		if n := len(distinct) - 1; n >= 0 && distinct[n].first == p.first && distinct[n].second == p.second {
			distinct[n].times++
			continue
		}
		distinct = append(distinct, p)
	}
	c.pairs = distinct
}

// said is the claim itself, as far as it is read.
func (c *Claim) said() string { return c.text[c.question:] }

const (
	// maxShort is how many words a claim has at most to be read as an answer: "Anna Petersen", to a question.
	maxShort    = 4
	maxQuestion = 1 << 10 // bytes
	// questionWords begin a question.
	questionWords = " who whom whose what when where which why how is are was were do does did can could in on name at "
)

// asked returns the question that a pair's claim is a short answer to, "" where it is not one.
func asked(p *Pair) string {
	if p.Context == "" || len(p.Context) > maxQuestion || len(p.Claim) > maxQuestion {
		return ""
	}
	r := reader{text: p.Context}
	var t token
	if !r.next(&t) || !strings.Contains(questionWords, string(t.word)) {
		return ""
	}
	r = reader{text: p.Claim}
	n := 0
	for r.next(&t) {
		if n++; n > maxShort || t.flags&flagPerson != 0 {
			return ""
		}
	}
	return p.Context
}
