package support

import (
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

const (
	// MaxPassage is how many bytes of a passage are read; its verdicts say passage-truncated where there were more.
	MaxPassage = 8 << 20
	// maxSentence is how many tokens are one sentence at most: what is longer is cut, so that evidence stays readable.
	maxSentence = 64
	// maxProbes bounds the search in a passage's table of terms. Only a text made to defeat the table reaches it; terms
	// that find no place are left out.
	maxProbes = 64
)

// Index is one passage, read once. It is immutable, and any number of pairs may share it.
type Index struct {
	text      string
	truncated bool
	tokens    int
	sentences []sentence
	table     []slot   // of the terms, with open addressing; the length is a power of two
	places    []uint32 // the tokens of each term, ascending; slot.from and slot.to cut it
	sentence  []uint32 // of each token
	follow    []uint32 // of each token, the slot of the next one that is no stop word; noSlot: none
	prefixes  []uint32 // for each hash of a prefix, the first slot with it, plus one; slot.next has the others
	tongue    *tongue  // as recognised; nil: not asked yet
}

// sentence is one sentence of a passage, or a piece of a long one.
type sentence struct {
	start, end int32  // bytes
	first      uint32 // token
}

func (s *sentence) span() ibid.Span { return ibid.Span{Start: int(s.start), End: int(s.end)} }

type slot struct {
	key      uint32 // 0: free
	prefix   uint32 // 0: none
	from, to uint32 // in places
	next     uint32 // slot whose prefix has the same hash, plus one
}

// NewIndex reads a passage, of which it keeps the text.
func NewIndex(text string) *Index {
	x := &Index{text: text}
	if len(text) > MaxPassage {
		x.text, x.truncated = wholeRunes(text[:MaxPassage]), true
	}
	b := builder{Index: x}
	b.read()
	b.collect()
	return x
}

// wholeRunes returns text without a rune that its end cuts.
func wholeRunes(text string) string {
	for n := 0; n < utf8.UTFMax && n < len(text); n++ {
		if p := len(text) - 1 - n; utf8.RuneStart(text[p]) {
			if utf8.FullRuneInString(text[p:]) {
				return text
			}
			return text[:p]
		}
	}
	return text
}

// builder is what an index needs only while it is made.
type builder struct {
	*Index

	last   int         // the end of the token before
	bounds []ibid.Span // of the sentences, as prose finds them
	keys   []uint32    // of each token; then its slot
	marks  []uint32    // of each token: its prefix; 1: a stop word
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
	at, opened := 0, -1 // the bound that the token stands in, and the last one that a sentence was opened for
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
	}
	b.tokens = len(b.keys)
}

// open begins a sentence with the next token.
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

// collect makes the table of terms.
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
	b.follow = b.marks // not needed any more where follow is written
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
func (x *Index) place(key uint32) uint32 {
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

// hash returns where the search for a key begins, in the table and in prefixes.
func (x *Index) hash(key uint32) uint32 { return key * 0x85EBCA6B >> 7 & uint32(len(x.table)-1) }

// at returns the tokens of the term in a slot, ascending.
func (x *Index) at(slot uint32) []uint32 {
	if slot == noSlot {
		return nil
	}
	s := &x.table[slot]
	return x.places[s.from:s.to]
}

// eachLike calls f for each term of x that begins as e does but has another stem.
func (x *Index) eachLike(e *term, f func(*slot)) {
	left := maxNear
	for n := x.prefixes[x.hash(e.prefix)]; n != 0 && left > 0; left-- {
		o := &x.table[n-1]
		if o.prefix == e.prefix && o.key != e.key {
			f(o)
		}
		n = o.next
	}
}
