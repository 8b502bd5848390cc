package store

import (
	"bytes"
	"context"
	"database/sql"
	"math"
	mathbits "math/bits"
	"slices"
	"sort"
)

// searchIndex calls take with the numbers of answers before a number that have what is looked for, the newest first and
// some hundred at a time, until it reports that it has enough. It is for SQLite; q is a transaction, so that all of it
// is as of one moment.
func searchIndex(
	ctx context.Context, q querier, what termQuery, before int64, take func(ns []int64) (enough bool, err error),
) error {
	for last := int64(math.MaxInt64); ; {
		var segments []segment
		err := each(ctx, q, func(rows *sql.Rows) error {
			s, err := scanSegment(rows)
			segments = append(segments, s)
			return err
		}, segmentColumns+"WHERE last < $1 AND first < $2 ORDER BY last DESC LIMIT 64", last, before)
		if err != nil || len(segments) == 0 {
			return err
		}
		for i := range segments {
			s := &segments[i]
			last = s.last
			ns, err := s.match(ctx, q, what, before)
			if err != nil {
				return err
			}
			for part := range slices.Chunk(ns, 256) {
				if enough, err := take(part); enough || err != nil {
					return err
				}
			}
		}
	}
}

// match returns the answers of s before a number that have what is looked for, the newest first.
func (s *segment) match(ctx context.Context, q querier, what termQuery, before int64) ([]int64, error) {
	if s.damaged {
		return nil, errIndex
	}
	var all bits
	for _, list := range what {
		some := newBits(s.last - s.first + 1)
		for _, term := range list {
			if err := s.postings(ctx, q, term, some); err != nil {
				return nil, err
			}
		}
		if all == nil {
			all = some
		}
		if !all.and(some) {
			return nil, nil
		}
	}
	var ns []int64
	for i, word := range slices.Backward(all) {
		for word != 0 {
			bit := 63 - mathbits.LeadingZeros64(word)
			word &^= 1 << bit
			if n := s.first + int64(64*i+bit); n < before {
				ns = append(ns, n)
			}
		}
	}
	return ns, nil
}

// postings adds the answers that have a term.
func (s *segment) postings(ctx context.Context, q querier, term queryTerm, found bits) error {
	text := []byte(term.text)
	// The last page that begins before the term or with it; or the first, if the term is the beginning of its first.
	page := max(0, sort.Search(len(s.starts), func(i int) bool { return bytes.Compare(s.starts[i], text) > 0 })-1)
	for ; page < len(s.starts); page++ {
		if start := s.starts[page]; bytes.Compare(start, text) > 0 && (!term.prefix || !bytes.HasPrefix(start, text)) {
			return nil
		}
		pages, err := readPages(ctx, q, s.page+int64(page), 1)
		if err != nil {
			return err
		}
		r := entryReader{pages: pages}
		for r.next() {
			if bytes.Equal(r.term, text) || term.prefix && bytes.HasPrefix(r.term, text) {
				r.eachPosting(found.set)
			} else if bytes.Compare(r.term, text) > 0 {
				return nil
			}
		}
		if r.fail {
			return errIndex
		}
	}
	return nil
}
