package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
)

// The index of terms in SQLite. Its own FTS5 was measured first: at more than 100 µs of processor time for 4 KB of text
// it took more than all the rest of storing an answer.
//
// Every batch of answers becomes a segment: its terms in order, each with the answers that have it, on pages of about 4
// KB. When mergeWidth segments of a size are at the end they become one of the next size: of mergeWidth answers or
// more, and then of mergeWidth² or more, up to maxSegment. A merge reads at most maxMerge pages, so that no one waits
// long for it. So a search looks at one segment for a thousand answers, the newest first, and stops when it has enough.
//
// An answer has its number n for good, and an answer that changes gets a new one. So nothing is ever taken out of a
// segment: what is found is looked up in calls, and is not there if it was deleted. Merging leaves out what is deleted,
// and so does markDeleted, once most of a segment is.
const (
	mergeWidth = 32
	maxSegment = 8192 // answers
	maxMerge   = 4096 // pages
	pageSize   = 3900 // bytes, so that a row fits into a page of SQLite's
)

// vocabulary collects the terms of a batch.
type vocabulary struct {
	words    tokenizer
	ids      map[string]int32
	terms    []term
	postings []posting
	n        uint32 // the answer that is read, from the batch's first

	keys, spare []sortKey
}

// term is a term with its postings.
type term struct {
	text        string
	first, last int32 // in postings
}

// posting is an answer that has a term, and the next one that has it.
type posting struct {
	n    uint32
	next int32
}

// add takes the terms of an answer. Answers come in their order.
func (v *vocabulary) add(c *Call, n uint32) {
	v.n = n
	v.words.eachTerm(c, v.put)
}

func (v *vocabulary) put(word []byte) bool {
	id, known := v.ids[string(word)]
	if known && v.postings[v.terms[id].last].n == v.n {
		return false
	}
	at := int32(len(v.postings)) //nolint:gosec // bounded by maxWords of each answer
	v.postings = append(v.postings, posting{n: v.n, next: -1})
	if known {
		t := &v.terms[id]
		v.postings[t.last].next, t.last = at, at
		return true
	}
	text := string(word)
	v.ids[text] = int32(len(v.terms)) //nolint:gosec // likewise
	v.terms = append(v.terms, term{text, at, at})
	return true
}

// sortKey is a term with its first bytes, as a number that is in the same order.
type sortKey struct {
	head uint64
	id   int32
}

func headOf(text []byte) uint64 {
	var head [8]byte
	copy(head[:], text)
	return binary.BigEndian.Uint64(head[:])
}

// sorted returns the terms in their order: by their first eight bytes, digit by digit, and then the few that share
// them.
func (v *vocabulary) sorted() []sortKey {
	keys, spare := slices.Grow(v.keys[:0], len(v.terms)), slices.Grow(v.spare[:0], len(v.terms))[:len(v.terms)]
	for i := range v.terms {
		var head [8]byte
		copy(head[:], v.terms[i].text)
		keys = append(keys, sortKey{binary.BigEndian.Uint64(head[:]), int32(i)}) //nolint:gosec // as in put
	}
	for shift := 0; shift < 64; shift += 8 {
		var from [256]int
		for i := range keys {
			from[byte(keys[i].head>>shift)]++
		}
		at := 0
		for digit, count := range from {
			from[digit], at = at, at+count
		}
		for _, k := range keys {
			digit := byte(k.head >> shift)
			spare[from[digit]] = k
			from[digit]++
		}
		keys, spare = spare, keys
	}
	for from, i := 0, 1; i <= len(keys); i++ {
		if i < len(keys) && keys[i].head == keys[from].head {
			continue
		}
		if same := keys[from:i]; len(same) > 1 {
			slices.SortFunc(same, func(a, b sortKey) int { return cmp.Compare(v.terms[a.id].text, v.terms[b.id].text) })
		}
		from = i
	}
	v.keys, v.spare = keys, spare
	return keys
}

// How many terms and postings a vocabulary may have had room for to be used again: a batch of very long answers shall
// not take up memory for ever.
const (
	keptTerms    = 1 << 16
	keptPostings = 1 << 18
)

// reset makes v ready for another batch.
func (v *vocabulary) reset() {
	if v.ids == nil || cap(v.terms) > keptTerms || cap(v.postings) > keptPostings {
		*v = vocabulary{ids: make(map[string]int32)}
	}
	clear(v.ids)
	clear(v.terms)
	v.terms, v.postings = v.terms[:0], v.postings[:0]
}

// index adds answers that were stored just now, in the order of their numbers, to the index.
func (tx *transaction) index(ctx context.Context, rows []*row) error {
	if tx.postgres || len(rows) == 0 { // there the terms are a column
		return nil
	}
	v := tx.vocabulary
	v.reset()
	first := rows[0].n
	for _, r := range rows {
		v.add(r.Call, uint32(r.n-first)) //nolint:gosec // what a batch has
	}
	w := segmentWriter{first: first, last: rows[len(rows)-1].n, answers: int64(len(rows))}
	for _, key := range v.sorted() {
		t := &v.terms[key.id]
		w.term = append(w.term[:0], t.text...)
		w.begin()
		for at := t.first; at >= 0; at = v.postings[at].next {
			w.add(v.postings[at].n)
		}
		w.end()
	}
	if err := tx.writeSegment(ctx, &w); err != nil {
		return err
	}
	if err := tx.merge(ctx); err != nil && !errors.Is(err, errIndex) {
		return err
	}
	return nil // what is damaged stays as it is: searches say so, and no answer waits for it
}

// segmentWriter lays out a segment. For each term, in order, come term, begin, add for each answer in order, and end.
//
// A page is a sequence of entries: how many bytes the term shares with the one before it on the page, how many follow,
// these; then the number of answers and for each how far it is from the one before it, the first from the segment's
// first answer. All numbers are of binary.AppendUvarint.
type segmentWriter struct {
	first, last, answers int64
	pages                [][]byte
	starts               []byte // each page's first term behind its length

	page     []byte
	former   []byte // the last term on page
	term     []byte // the one that is written
	postings []byte // of it
	count    uint64 // of its answers
	n        uint32 // the last of them
}

// begin begins the entry of w.term.
func (w *segmentWriter) begin() { w.postings, w.count, w.n = w.postings[:0], 0, 0 }

func (w *segmentWriter) add(n uint32) {
	w.postings = binary.AppendUvarint(w.postings, uint64(n-w.n))
	w.n = n
	w.count++
}

func (w *segmentWriter) end() {
	if w.count == 0 {
		return
	}
	if len(w.page) > 0 && len(w.page)+len(w.term)+len(w.postings)+8 > pageSize {
		w.flush()
	}
	if len(w.page) == 0 {
		w.starts = append(binary.AppendUvarint(w.starts, uint64(len(w.term))), w.term...)
		w.former = w.former[:0]
	}
	shared := 0
	for shared < len(w.former) && shared < len(w.term) && w.former[shared] == w.term[shared] {
		shared++
	}
	w.page = binary.AppendUvarint(w.page, uint64(shared)) //nolint:gosec // not negative
	w.page = binary.AppendUvarint(w.page, uint64(len(w.term)-shared))
	w.page = append(w.page, w.term[shared:]...)
	w.page = binary.AppendUvarint(w.page, w.count)
	w.page = append(w.page, w.postings...)
	w.former = append(w.former[:0], w.term...)
}

func (w *segmentWriter) flush() {
	if len(w.page) > 0 {
		w.pages = append(w.pages, bytes.Clone(w.page))
		w.page = w.page[:0]
	}
}

// entryReader reads a sequence of pages.
type entryReader struct {
	pages [][]byte
	page  []byte // what is left of the one being read

	term     []byte // valid until the next call of next
	head     uint64 // the first bytes of term, as a number that is in the same order
	postings []byte // of term, likewise
	fail     bool   // the pages are damaged
}

// next goes to the next entry and reports whether there is one.
func (r *entryReader) next() bool {
	for len(r.page) == 0 {
		if len(r.pages) == 0 {
			return false
		}
		r.page, r.pages, r.term = r.pages[0], r.pages[1:], r.term[:0]
	}
	shared, suffix := r.uvarint(), r.uvarint()
	if shared > uint64(len(r.term)) || suffix > uint64(len(r.page)) {
		return r.damaged()
	}
	r.term = append(r.term[:shared], r.page[:suffix]...)
	r.page = r.page[suffix:]
	r.head = headOf(r.term)
	count := r.uvarint()
	from := r.page
	for range count {
		if len(r.page) == 0 {
			return r.damaged()
		}
		r.uvarint()
	}
	r.postings = from[:len(from)-len(r.page)]
	return !r.fail
}

func (r *entryReader) uvarint() uint64 {
	if len(r.page) > 0 && r.page[0] < 0x80 {
		v := r.page[0]
		r.page = r.page[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.page)
	if n <= 0 {
		r.damaged()
		return 0
	}
	r.page = r.page[n:]
	return v
}

func (r *entryReader) damaged() bool {
	r.page, r.pages, r.fail = nil, nil, true
	return false
}

// eachPosting calls f with the answers of the entry that next went to.
func (r *entryReader) eachPosting(f func(n uint64)) {
	n := uint64(0)
	for b := r.postings; len(b) > 0; {
		if b[0] < 0x80 {
			n += uint64(b[0])
			b = b[1:]
		} else {
			delta, size := binary.Uvarint(b)
			n += delta
			b = b[max(size, 1):]
		}
		f(n)
	}
}
