package support

import (
	"cmp"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

const (
	// maxPassage is how many bytes of a passage are read. Verdicts on longer ones have the issue passage-truncated.
	maxPassage = 8 << 20
	// maxSentence is the most tokens in one sentence: longer ones are split, so that evidence stays readable.
	maxSentence = 64
	// maxProbes limits the search in a passage's table of terms. Only a text made to defeat the table reaches it; terms
	// without a slot are left out.
	maxProbes = 64
)

// indexedPassage is an indexed passage. It is immutable, and any number of pairs may share it.
type indexedPassage struct {
	text      string // without HTML entities
	moved     []moved
	truncated bool
	tokens    int
	sentences []sentence
	table     []slot   // of terms, with open addressing; its length is a power of two
	places    []uint32 // the tokens of each term, ascending; slot.from and slot.to delimit them
	sentence  []uint32 // of each token
	follow    []uint32 // for each token, the slot of the next one that is not a stop word, or noSlot
	prefixes  []uint32 // for each hash of a prefix, the first slot with it, plus one; slot.next links the others
	detected  detection
}

// sentence is a sentence of a passage, or a piece of a long one.
type sentence struct {
	start, end int32  // bytes
	first      uint32 // token
}

func (s *sentence) span() ibid.Span { return ibid.Span{Start: int(s.start), End: int(s.end)} }

type slot struct {
	key      uint32 // 0 if the slot is free
	prefix   uint32 // 0 if none
	from, to uint32 // in places
	next     uint32 // the next slot whose prefix has the same hash, plus one
}

// indexPassage indexes a passage. It keeps the text.
func indexPassage(passage string) *indexedPassage {
	x := &indexedPassage{truncated: len(passage) > maxPassage}
	x.text, x.moved = withoutEntities(text.Head(passage, maxPassage))
	b := builder{indexedPassage: x}
	b.read()
	b.collect()
	return x
}

// moved is a place from which on the offsets of a passage are greater than those of its text without entities.
type moved struct{ at, by int }

// maxEntity is the most bytes of an HTML entity: the longest name has 31 letters.
const maxEntity = 33

// withoutEntities replaces HTML entities, which some providers leave in their quotes.
func withoutEntities(passage string) (plain string, all []moved) {
	if !strings.Contains(passage, "&") {
		return passage, nil
	}
	var b strings.Builder
	by := 0
	for {
		before, rest, found := strings.Cut(passage, "&")
		b.WriteString(before)
		if !found {
			return b.String(), all
		}
		end := strings.IndexByte(rest[:min(len(rest), maxEntity)], ';') + 1
		entity := "&" + rest[:end]
		sign := html.UnescapeString(entity)
		b.WriteString(sign)
		if passage = rest[end:]; sign != entity {
			by += len(entity) - len(sign)
			all = append(all, moved{b.Len(), by})
		}
	}
}

// original returns the span in the passage of one in its text.
func (x *indexedPassage) original(s ibid.Span) ibid.Span {
	back := func(at int) int {
		n, _ := slices.BinarySearchFunc(x.moved, at+1, func(m moved, at int) int { return cmp.Compare(m.at, at) })
		if n == 0 {
			return at
		}
		return at + x.moved[n-1].by
	}
	return ibid.Span{Start: back(s.Start), End: back(s.End)}
}

// builder holds what is only needed while an index is built.
type builder struct {
	*indexedPassage

	last   int         // the end of the previous token
	bounds []ibid.Span // of the sentences, as prose finds them
	keys   []uint32    // of each token; then its slot
	marks  []uint32    // of each token: its prefix, or markStop
}

// read finds the sentences and tokens.
func (b *builder) read() {
	b.bounds = make([]ibid.Span, 0, len(b.text)/96+4)
	for start, end := range prose.Sentences(b.text) {
		b.bounds = append(b.bounds, ibid.Span{Start: start, End: end})
	}
	if len(b.bounds) == 0 {
		b.bounds = append(b.bounds, ibid.Span{Start: 0, End: len(b.text)})
	}
	b.sentences = make([]sentence, 0, len(b.bounds)+len(b.text)/512)
	b.keys = make([]uint32, 0, len(b.text)/5+8)
	b.sentence = make([]uint32, 0, len(b.text)/5+8)
	b.marks = make([]uint32, 0, len(b.text)/5+8)
	r := reader{text: b.text}
	var v votes
	at, opened := 0, -1 // the bound with the token, and the last one that a sentence was opened for
	for t := (token{}); r.next(&t); {
		for at+1 < len(b.bounds) && t.start >= b.bounds[at].End {
			at++
		}
		if at != opened {
			b.open(min(t.start, b.bounds[at].Start), b.bounds[at].End)
			opened = at
		} else if s := &b.sentences[len(b.sentences)-1]; len(b.keys)-int(s.first) >= maxSentence {
			end := int(s.end)
			s.end = int32(b.last)
			b.open(t.start, end)
		}
		b.add(&t)
		if t.start < languageSample {
			v.add(b.text, &t)
		}
	}
	b.tokens, b.detected = len(b.keys), v.detected()
}

// open begins a sentence at the next token.
func (b *builder) open(start, end int) {
	b.sentences = append(b.sentences, sentence{start: int32(start), end: int32(end), first: uint32(len(b.keys))})
}

func (b *builder) add(t *token) {
	s := &b.sentences[len(b.sentences)-1]
	b.last = t.end
	s.end = max(s.end, int32(t.end))
	b.keys = append(b.keys, t.key)
	b.sentence = append(b.sentence, uint32(len(b.sentences)-1))
	mark := t.prefix
	if t.flags&flagStop != 0 {
		mark = markStop
	}
	b.marks = append(b.marks, mark)
}

const markStop = 1

// collect builds the table of terms.
func (b *builder) collect() {
	size := 16
	for 3*size < 4*len(b.keys) {
		size *= 2
	}
	b.table, b.prefixes = make([]slot, size), make([]uint32, size)
	for i, key := range b.keys {
		n := b.place(key)
		b.keys[i] = n
		if n == noSlot {
			continue
		}
		s := &b.table[n]
		if s.key == 0 {
			s.key = key
			if p := b.marks[i]; p > markStop {
				first := &b.prefixes[b.hash(p)]
				s.prefix, s.next, *first = p, *first, n+1
			}
		}
		s.to++
	}
	total := uint32(0)
	for i := range b.table {
		s := &b.table[i]
		s.from, s.to, total = total, total, total+s.to
	}
	b.places = make([]uint32, total)
	b.follow = b.marks // marks are no longer needed where follow is written
	for i, n := range b.keys {
		if n != noSlot {
			s := &b.table[n]
			b.places[s.to] = uint32(i)
			s.to++
		}
	}
	next := noSlot
	for i := len(b.keys) - 1; i >= 0; i-- {
		stop := b.marks[i] == markStop
		b.follow[i] = next
		if !stop {
			next = b.keys[i]
		}
	}
}

const noSlot = ^uint32(0)

// place returns the slot of a term, or the free one it belongs in.
func (x *indexedPassage) place(key uint32) uint32 {
	mask := uint32(len(x.table) - 1)
	at := x.hash(key)
	for range maxProbes {
		if k := x.table[at].key; k == key || k == 0 {
			return at
		}
		at = (at + 1) & mask
	}
	return noSlot
}

// hash returns where the search for a key starts, in the table and in prefixes.
func (x *indexedPassage) hash(key uint32) uint32 {
	return key * 0x85EBCA6B >> 7 & uint32(len(x.table)-1)
}

// at returns the tokens of the term in a slot, ascending.
func (x *indexedPassage) at(slot uint32) []uint32 {
	if slot == noSlot {
		return nil
	}
	s := &x.table[slot]
	return x.places[s.from:s.to]
}

// eachLike calls f for each term of x with e's prefix but another stem.
func (x *indexedPassage) eachLike(e *term, f func(*slot)) {
	left := maxNear
	for n := x.prefixes[x.hash(e.prefix)]; n != 0 && left > 0; left-- {
		o := &x.table[n-1]
		if o.prefix == e.prefix && o.key != e.key {
			f(o)
		}
		n = o.next
	}
}

// maxClaim is how many bytes of a claim are read. Longer ones get the issue claim-truncated and are never [Supported],
// since their end was not read.
const maxClaim = 64 << 10

// parsedClaim is a parsed claim. It is immutable, and any number of scorers may share it.
type parsedClaim struct {
	text      string // the question it answers, if any, and the claim, as far as it is read
	question  int    // the length of the question in text
	truncated bool
	tokens    []claimToken
	terms     []term
	pairs     []neighbours // sorted by the first term and the key of the second; without stop words
	total     float64      // weight of all terms
	persons   int          // tokens that refer to the speaker or listener
	detected  detection    // of the claim without the question
}

// claimToken is one token of a claim.
type claimToken struct {
	start, end int32
	term       int32
	flags      tokenFlags
}

// neighbours are two adjacent terms of a claim, in order, and how often they occur so.
type neighbours struct{ first, second, times int32 }

// term is what all tokens with one key share.
type term struct {
	key    uint32
	prefix uint32  // 0 if none
	weight float64 // 0 for a stop word
	kind   TermKind
	token  int32 // the first
}

// parseClaim parses a claim, preceded by the question it answers, with terms weighted by the given function.
func parseClaim(question, claim string, weight func(key uint32) float64) *parsedClaim {
	c := &parsedClaim{text: claim}
	if len(claim) > maxClaim {
		c.text, c.truncated = wholeWords(claim, maxClaim), true
	}
	if question != "" {
		c.text = question + "\n" + c.text
		c.question = len(question) + 1
	}
	c.read(weight)
	c.pair()
	return c
}

// wholeWords returns at most n bytes of a claim, ending at white space: only a word of more than maxWord bytes is cut.
func wholeWords(claim string, n int) string {
	head := text.Head(claim, n)
	if i := strings.LastIndexAny(head, " \t\r\n"); i >= max(0, len(head)-maxWord) {
		return head[:i]
	}
	return head
}

func (c *parsedClaim) read(weight func(key uint32) float64) {
	estimate := len(c.text)/6 + 4
	c.tokens, c.terms = make([]claimToken, 0, estimate), make([]term, 0, estimate)
	known := map[uint32]int32{} // index in terms; used only for long claims
	var v votes
	r := reader{text: c.text}
	for t := (token{}); r.next(&t); {
		if at := t.start - c.question; at >= 0 && at < languageSample {
			v.add(c.text, &t)
		}
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
	c.detected = v.detected()
	c.findNames()
}

// maxScanned is up to how many terms of a claim are searched linearly, which is faster than a map.
const maxScanned = 48

func (c *parsedClaim) lookUp(known map[uint32]int32, key uint32) int32 {
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

func (c *parsedClaim) addTerm(t *token, weight func(key uint32) float64) int32 {
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

// rareName is the least weight of a capitalised word at the beginning of a sentence that counts as a name by itself:
// about 8,000 words are commoner.
const rareName = 9 / maxIDF

// findNames marks the terms that are names: capitalised words inside a sentence, and at its beginning those that are
// rare or precede another capitalised word.
func (c *parsedClaim) findNames() {
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
func (c *parsedClaim) opens(i int) bool {
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

// pair collects the neighbours in the claim.
func (c *parsedClaim) pair() {
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
	compare := func(a, b neighbours) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(c.terms[a.second].key, c.terms[b.second].key))
	}
	slices.SortFunc(c.pairs, compare)
	distinct := c.pairs[:0]
	for _, p := range c.pairs {
		if n := len(distinct) - 1; n >= 0 && compare(distinct[n], p) == 0 {
			distinct[n].times++
			continue
		}
		distinct = append(distinct, p)
	}
	c.pairs = distinct
}

// claim returns the claim without the question, as far as it is read.
func (c *parsedClaim) claim() string { return c.text[c.question:] }

const (
	// maxShort is the most words in a claim that is read as an answer to a question, such as "Anna Petersen".
	maxShort    = 4
	maxQuestion = 1 << 10 // bytes
)

// questionWords are the words that begin a question.
var questionWords = lists["question"]

// questionOf returns the question that a pair's claim is a short answer to, or "" if it is not one.
func questionOf(p *Pair) string {
	if p.Context == "" || len(p.Context) > maxQuestion || len(p.Claim) > maxQuestion {
		return ""
	}
	r := reader{text: p.Context}
	var t token
	if !r.next(&t) || !questionWords.has(strings.TrimSpace(string(t.word))) {
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

const (
	// partWeight is the least weight of a part of a claim before the next one begins, lastPart that of the last one:
	// about two words and one.
	partWeight = 14 / maxIDF
	lastPart   = 10 / maxIDF
	// maxParts is the most parts of a claim; the last one has the rest.
	maxParts = 64
)

// splitClaim splits an English claim into parts that can be true or false on their own: sentences, clauses and
// enumerated phrases ("was born in Leeds, | moved to York | and died there in 1990"). It goes by punctuation and
// conjunctions, so a part need not be a whole clause; each has about two or more words with content. The parts are in
// order and do not overlap. A claim without words has none.
func splitClaim(claim string) (parts []ibid.Span) {
	c := parseClaim("", claim, english().weight)
	seen := make([]bool, len(c.terms))
	weight := 0. // of the terms that first occur in the last part
	for i := range c.tokens {
		t := &c.tokens[i]
		begins := i > 0 && (t.flags&flagClause != 0 || t.start-c.tokens[i-1].end >= 2)
		if i == 0 || begins && weight > partWeight && len(parts) < maxParts {
			parts = append(parts, ibid.Span{Start: int(t.start)})
			weight = 0
		}
		parts[len(parts)-1].End = int(t.end)
		if !seen[t.term] {
			seen[t.term] = true
			weight += c.terms[t.term].weight
		}
	}
	if n := len(parts); n > 1 && weight < lastPart {
		parts[n-2].End = parts[n-1].End
		parts = parts[:n-1]
	}
	return parts
}
