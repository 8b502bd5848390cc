package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	mathbits "math/bits"
	"slices"
)

// maxRange is how far apart the numbers of a segment's answers may be: what nobody puts in one batch.
const maxRange = 1 << 31

// segment is a segment in the store.
type segment struct {
	first, last, answers int64
	page                 int64    // its first page
	starts               [][]byte // the first term of each page
	damaged              bool
}

const segmentColumns = "SELECT first, last, answers, page, starts FROM segments "

func scanSegment(rows *sql.Rows) (segment, error) {
	var s segment
	var starts []byte
	if err := rows.Scan(&s.first, &s.last, &s.answers, &s.page, &starts); err != nil {
		return s, err
	}
	s.damaged = s.last < s.first || s.last-s.first > maxRange
	for len(starts) > 0 && !s.damaged {
		size, n := binary.Uvarint(starts)
		if s.damaged = n <= 0 || size > uint64(len(starts)-n); s.damaged {
			break
		}
		s.starts = append(s.starts, starts[n:n+int(size)]) //nolint:gosec // it is within starts
		starts = starts[n+int(size):]                      //nolint:gosec // likewise
	}
	return s, nil
}

func (tx *transaction) writeSegment(ctx context.Context, w *segmentWriter) error {
	w.flush()
	if len(w.pages) == 0 {
		return nil
	}
	next := int64(0)
	if err := each(
		ctx, tx,
		func(rows *sql.Rows) error { return rows.Scan(&next) },
		"SELECT coalesce(max(id), 0) + 1 FROM pages",
	); err != nil {
		return err
	}
	rows := make([][]any, 0, len(w.pages))
	for i, page := range w.pages {
		rows = append(rows, []any{next + int64(i), page})
	}
	if err := tx.exec(ctx, &tuples{before: tx.insertInto("pages", "id, data"), row: "($, $)"}, rows); err != nil {
		return err
	}
	_, err := tx.ExecContext(
		ctx,
		tx.insertInto("segments", "first, last, answers, deleted, size, page, starts")+"($1, $2, $3, 0, $4, $5, $6)",
		w.first, w.last, w.answers, len(w.pages), next, w.starts,
	)
	return err
}

// merge makes one of the last segments, if there are enough of a size. Of a size count those that are no smaller than
// what the size below becomes; smaller ones between them are merged as well, but nothing waits for them. So an answer
// is written once for each size.
func (tx *transaction) merge(ctx context.Context) error {
	type size struct{ answers, pages int64 }
	var latest []size
	if err := each(ctx, tx, func(rows *sql.Rows) error {
		var s size
		err := rows.Scan(&s.answers, &s.pages)
		latest = append(latest, s)
		return err
	}, "SELECT answers, size FROM segments WHERE last > coalesce("+
		"(SELECT last FROM segments WHERE answers >= $1 OR size >= $2 ORDER BY last DESC LIMIT 1), -1) ORDER BY last DESC",
		mergeWidth*mergeWidth, maxMerge/2); err != nil {
		return err
	}
	for limit := int64(mergeWidth); limit <= mergeWidth*mergeWidth; limit *= mergeWidth {
		segments, count := 0, 0
		for _, s := range latest {
			if s.answers >= limit {
				break
			}
			if segments++; s.answers >= limit/mergeWidth {
				count++
			}
		}
		if count >= mergeWidth {
			return tx.mergeLast(ctx, segments)
		}
	}
	return nil
}

// mergeLast makes one of the last so many segments, but for the newest where it would become too large.
func (tx *transaction) mergeLast(ctx context.Context, count int) error {
	var segments []segment
	if err := each(ctx, tx, func(rows *sql.Rows) error {
		s, err := scanSegment(rows)
		segments = append(segments, s)
		return err
	}, segmentColumns+"ORDER BY last DESC LIMIT $1", count); err != nil {
		return err
	}
	slices.Reverse(segments)
	answers, pages := int64(0), 0
	for i := range segments {
		answers += segments[i].answers
		if pages += len(segments[i].starts); answers > maxSegment || pages > maxMerge {
			segments = segments[:i]
			break
		}
	}
	return tx.mergeSegments(ctx, segments)
}

// mergeSegments makes one of segments that follow each other, without what was deleted.
func (tx *transaction) mergeSegments(ctx context.Context, segments []segment) error {
	if slices.ContainsFunc(segments, func(s segment) bool { return s.damaged }) {
		return errIndex
	}
	first, last := segments[0].first, segments[len(segments)-1].last
	live, err := tx.live(ctx, segments)
	if err != nil {
		return err
	}
	w := segmentWriter{first: first, last: last, answers: live.count()}
	readers := make([]*mergeReader, 0, len(segments))
	for i := range segments {
		pages, err := readPages(ctx, tx, segments[i].page, len(segments[i].starts))
		if err != nil {
			return err
		}
		readers = append(
			readers,
			&mergeReader{entryReader: entryReader{pages: pages}, offset: uint64(segments[i].first - first)},
		) //nolint:gosec // first is the least
	}
	if err := mergeEntries(&w, readers, live); err != nil {
		return err
	}
	for i := range segments {
		if err := tx.dropSegment(ctx, &segments[i]); err != nil {
			return err
		}
	}
	return tx.writeSegment(ctx, &w)
}

// live returns which answers of segments are still there, counted from the first one's first.
func (tx *transaction) live(ctx context.Context, segments []segment) (bits, error) {
	first, last := segments[0].first, segments[len(segments)-1].last
	live := newBits(last - first + 1)
	err := each(ctx, tx, func(rows *sql.Rows) error {
		var n int64
		err := rows.Scan(&n)
		live.set(uint64(n - first)) //nolint:gosec // the query says so
		return err
	}, "SELECT n FROM calls WHERE n BETWEEN $1 AND $2", first, last)
	return live, err
}

func (tx *transaction) dropSegment(ctx context.Context, s *segment) error {
	if _, err := tx.ExecContext(
		ctx, "DELETE FROM pages WHERE id BETWEEN $1 AND $2", s.page,
		s.page+int64(len(s.starts))-1,
	); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM segments WHERE last = $1", s.last)
	return err
}

// readPages returns pages that follow each other.
func readPages(ctx context.Context, q querier, first int64, count int) ([][]byte, error) {
	pages := make([][]byte, 0, count)
	err := each(ctx, q, func(rows *sql.Rows) error {
		var page []byte
		err := rows.Scan(&page)
		pages = append(pages, page)
		return err
	}, "SELECT data FROM pages WHERE id BETWEEN $1 AND $2 ORDER BY id", first, first+int64(count)-1)
	if err == nil && len(pages) != count {
		err = errIndex
	}
	return pages, err
}

// mergeReader reads a segment that is merged.
type mergeReader struct {
	entryReader
	offset uint64 // from the merged segment's first answer to its own
}

func (r *mergeReader) less(other *mergeReader) bool {
	if r.head != other.head {
		return r.head < other.head
	}
	c := bytes.Compare(r.term, other.term)
	return c < 0 || c == 0 && r.offset < other.offset
}

// mergeEntries writes the entries of all readers, those of one term as one. The readers are a heap by term, and by
// offset where it is the same, so that the answers of a term come in order.
func mergeEntries(w *segmentWriter, readers []*mergeReader, live bits) error {
	heap := make([]*mergeReader, 0, len(readers))
	for _, r := range readers {
		if r.next() {
			heap = append(heap, r)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for first := true; len(heap) > 0; first = false {
		r := heap[0]
		if first || !bytes.Equal(w.term, r.term) {
			w.end()
			w.term = append(w.term[:0], r.term...)
			w.begin()
		}
		r.eachPosting(func(n uint64) {
			if n += r.offset; live.has(n) {
				w.add(uint32(n)) //nolint:gosec // live has it
			}
		})
		if !r.next() {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(heap, 0)
	}
	w.end()
	if slices.ContainsFunc(readers, func(r *mergeReader) bool { return r.fail }) {
		return errIndex
	}
	return nil
}

// sink restores the order of a heap in which only the reader at i may be too far up.
func sink(heap []*mergeReader, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if heap[child].less(heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// markDeleted counts answers that are deleted in their segments, and rewrites those of which less than half is left, so
// that nothing of what was deleted stays for long.
func (tx *transaction) markDeleted(ctx context.Context, ns []int64) error {
	if tx.postgres {
		return nil
	}
	for _, n := range ns {
		if _, err := tx.ExecContext(
			ctx,
			"UPDATE segments SET deleted = deleted + 1 WHERE last = (SELECT min(last) FROM segments WHERE last >= $1)",
			n,
		); err != nil {
			return err
		}
	}
	var sparse []segment
	err := each(ctx, tx, func(rows *sql.Rows) error {
		s, err := scanSegment(rows)
		sparse = append(sparse, s)
		return err
	}, segmentColumns+"WHERE 2 * deleted > answers")
	if err != nil {
		return err
	}
	for i := range sparse {
		if err := tx.mergeSegments(ctx, sparse[i:i+1]); err != nil && !errors.Is(err, errIndex) {
			return err
		}
	}
	return nil
}

// bits is a set of small numbers.
type bits []uint64

func newBits(size int64) bits { return make(bits, (size+63)/64) }

func (b bits) set(n uint64) {
	if n/64 < uint64(len(b)) {
		b[n/64] |= 1 << (n % 64)
	}
}

func (b bits) has(n uint64) bool { return n/64 < uint64(len(b)) && b[n/64]&(1<<(n%64)) != 0 }

// count returns how many are in the set.
func (b bits) count() int64 {
	n := 0
	for _, word := range b {
		n += mathbits.OnesCount64(word)
	}
	return int64(n)
}

// and takes out what is not in c, and reports whether anything is left.
func (b bits) and(c bits) bool {
	left := uint64(0)
	for i := range b {
		b[i] &= c[i]
		left |= b[i]
	}
	return left != 0
}
