package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
)

// Reader gets the records of a journal in their order, once they are durable. One goroutine at a time may use it. It
// must be closed.
type Reader struct {
	j       *Journal
	wake    chan struct{}
	last    Position // that was read, or is known to be lost
	segment *segment // that is being read; nil: none yet
	next    Position // the first of the segment after it; 0: there is none
	file    *os.File
	scan    scanner
	tries   int // to read at scan.off
	closed  bool
}

// readTries is how often reading one place may fail before it counts as damage.
const readTries = 3

// diskBlock is what is skipped where a disk cannot be read.
const diskBlock = 4096

// Reader returns a reader that begins with the first record that is not released. Several may read at once, each all
// records.
func (j *Journal) Reader() *Reader {
	r := &Reader{j: j, wake: make(chan struct{}, 1)}
	j.mu.Lock()
	defer j.mu.Unlock()
	r.last = j.released
	r.closed = j.lock == nil
	if !r.closed {
		j.readers[r] = struct{}{}
	}
	return r
}

// Close lets go of the directory. It must not be called during Next.
func (r *Reader) Close() error {
	r.closed = true
	err := r.closeFile()
	r.j.mu.Lock()
	delete(r.j.readers, r)
	r.j.mu.Unlock()
	if err = errors.Join(err, r.j.unlock()); err != nil {
		return fmt.Errorf("closing reader of journal: %w", err)
	}
	return nil
}

func (r *Reader) closeFile() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}

// Next returns the next record, which belongs to the caller, and its position. It waits until there is one. After
// [Journal.Close] it returns io.EOF once all is read; after Close ErrClosed. Damaged records are skipped, counted and
// logged. Any other error is ctx's or one of reading; calling again tries again, and a place that cannot be read three
// times is damaged.
func (r *Reader) Next(ctx context.Context) (Position, []byte, error) {
	p, record, err := r.read(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("reading journal: %w", err)
	}
	return p, record, err
}

func (r *Reader) read(ctx context.Context) (Position, []byte, error) {
	if r.closed {
		return 0, nil, ErrClosed
	}
	for {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
		}
		found, ended := r.locate()
		if found {
			p, record, err := r.readSegment()
			if !errors.Is(err, errNoRecord) {
				return p, record, err
			}
			if r.next > 0 {
				err := r.closeFile()
				r.segment = nil
				r.skipTo(r.next)
				if err != nil {
					return 0, nil, err
				}
				continue
			}
		}
		if ended {
			return 0, nil, io.EOF
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
		}
	}
}

// locate finds the segment to read and how far it can be read. Ended says that nothing will be added.
func (r *Reader) locate() (found, ended bool) {
	j := r.j
	j.mu.Lock()
	defer j.mu.Unlock()
	at := -1
	for i, s := range j.segments {
		if r.segment != nil && s.number > r.segment.number {
			break
		}
		if r.segment != nil || at < 0 || s.base <= r.last+1 {
			at = i
		}
	}
	if r.segment == nil {
		if at < 0 {
			return false, j.ended
		}
		r.segment = j.segments[at]
		r.scan = scanner{salt: r.segment.salt, window: r.scan.window[:0]}
		r.tries = 0
	}
	r.scan.end = r.segment.size
	r.next = 0
	if at+1 < len(j.segments) {
		r.next = j.segments[at+1].base
	} else if at < 0 || j.segments[at] != r.segment {
		r.next = j.durable + 1 // it is removed, and all in it is released
	}
	return true, j.ended
}

// readSegment returns the next record of the segment.
func (r *Reader) readSegment() (Position, []byte, error) {
	if r.file == nil {
		f, err := os.Open(r.segment.path(r.j.dir))
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil, errNoRecord
		}
		if err != nil {
			return 0, nil, err
		}
		r.file, r.scan.src = f, f
	}
	for {
		p, payload, err := r.scan.next()
		switch {
		case errors.Is(err, errNoRecord):
			return 0, nil, err
		case err != nil:
			if r.tries++; r.tries < readTries {
				return 0, nil, err
			}
			r.tries = 0
			r.scan.off += diskBlock - r.scan.off%diskBlock
		case r.next > 0 && p >= r.next:
			return 0, nil, errNoRecord // left over from a failed write: the next segment has it
		case p > r.last:
			r.tries = 0
			r.skipTo(p)
			r.last = p
			return p, bytes.Clone(payload), nil
		}
	}
}

// skipTo is told that p is the next record there is. Those between were damaged, unless they are released.
func (r *Reader) skipTo(p Position) {
	j := r.j
	j.mu.Lock()
	from := max(r.last, j.released, j.missed)
	lost := int64(0)
	if p > from+1 {
		lost = int64(p - from - 1)
		j.damaged += lost
		j.missed = p - 1
	}
	j.mu.Unlock()
	r.last = max(r.last, p-1)
	if lost > 0 {
		j.log.Error(
			"records of the journal are damaged and lost", slog.Int64("records", lost),
			slog.Uint64("before", uint64(p)),
		)
	}
}
