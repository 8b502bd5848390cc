package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/ibidhq/ibid/internal/sqlite"
)

// Errors that callers distinguish.
var (
	// ErrFull means that Options.MaxBytes is reached. Records are accepted again after some are released.
	ErrFull = errors.New("the journal is full")
	// ErrBusy means that 64 MiB are waiting to be written: the disk is slower than the appends, or stalled.
	ErrBusy = errors.New("the journal cannot keep up with new records")
	// ErrTooLarge means that a record is larger than [MaxRecord], or than an empty journal can hold.
	ErrTooLarge = errors.New("the record is too large for the journal")
	// ErrClosed means that [Journal.Close] was called before.
	ErrClosed = errors.New("the journal is closed")
	// ErrLocked means that the directory is already open: in another process, or in this one until all its [Reader]s
	// are closed.
	ErrLocked = errors.New("the journal is in use")
	// ErrVersion means that the directory was written by an incompatible version of ibid.
	ErrVersion = errors.New("the journal belongs to another version of ibid")
)

const (
	// MaxRecord is how many bytes a record may have.
	MaxRecord = 64 << 20
	// maxQueued is how many bytes of records may wait in memory to be written.
	maxQueued = 64 << 20
	// defaultMaxBytes is the default of [Options].MaxBytes.
	defaultMaxBytes = 8 << 30

	groupWait  = 2 * time.Millisecond   // how long a record may stay unwritten if Sync is not called
	groupSize  = 1 << 20                // bytes that are written at once, even without Sync
	gatherWait = 300 * time.Microsecond // how long a commit smaller than the last one waits for more records
	retryWait  = 500 * time.Millisecond // delay after a failed commit
	idleWait   = 100 * time.Millisecond // delay from the last commit to deleting what was released

	// maxRecent is how many bytes of durable records are kept in memory for readers that keep up.
	maxRecent = 4 << 20
)

// Position is the position of a record in a journal: the first has 1, the next 2. It survives restarts, but the
// position of a record that did not become durable is reused.
type Position uint64

// Options configures a journal. Nil and zero values are the defaults.
type Options struct {
	MaxBytes int64        // of all records that are not deleted; 0 means 8 GiB
	Logger   *slog.Logger // logs damage, a full journal and failing disks, once each; nil disables logging
	// Wait is how long Open waits for a process that has the directory open: the system may take seconds to end one
	// that was killed.
	Wait time.Duration

	commit func() error // set by tests: called before each commit, which fails if it does
}

// Stats is the state of a journal.
type Stats struct {
	Bytes   int64 // of the records that are not deleted
	Records int64 // appended and not released; damaged ones count until later ones are released
	Damaged int64 // records lost to damage that Readers have found since Open
	Err     error // why records are refused or not written: ErrFull or the disk's error; nil if the journal is healthy
}

// Journal is a queue of records on disk. Use [Open] to create one. Its methods may be called concurrently.
type Journal struct {
	dir     string
	options Options
	log     *slog.Logger

	wake chan struct{} // for the writer
	done chan struct{} // closed when the writer has ended

	mu        sync.Mutex
	db        *database
	lock      func() error  // unlocks the directory; nil once called
	changed   chan struct{} // closed and replaced when something below changes that Sync and Readers wait for
	queue     []entry       // appended but not yet durable
	queued    int           // bytes of queue
	recent    []entry       // the last durable records, without gaps, for readers: see maxRecent
	lastGroup int           // records in the last group
	bytes     int64         // Stats.Bytes
	last      Position      // the last position assigned
	durable   Position      // everything up to it is on disk
	released  Position
	deleted   Position // how much of released was deleted
	urgent    bool     // a Sync is waiting for the queue
	damage    bool     // a reader found the file damaged
	err       error    // of the last commit; nil if it succeeded
	full      bool     // ErrFull was returned, and nothing was deleted since
	damaged   int64
	counted   Position // the last damaged position counted, so that other readers do not count again
	readers   int
	closed    bool // no more records are accepted
	ended     bool // and nothing more is written
}

// entry is a record with its position.
type entry struct {
	at     Position
	record []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum includes the position, so that no record is mistaken for another.
func (e *entry) sum() int64 {
	return int64(crc32.Update(uint32(e.at), castagnoli, e.record)) //nolint:gosec // the low bits suffice
}

// Open opens the journal in dir, which it creates if necessary, with mode 0700 and its files with 0600. It fails with
// ErrLocked if the directory is still open elsewhere after Options.Wait, and with ErrVersion if it has a journal
// of an incompatible version.
func Open(dir string, o *Options) (*Journal, error) {
	j, err := open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("opening journal %s: %w", dir, err)
	}
	return j, nil
}

func open(dir string, o *Options) (*Journal, error) {
	o = cmp.Or(o, &Options{})
	if o.MaxBytes < 0 {
		return nil, errors.New("a negative limit")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // the operator names it
		return nil, err
	}
	if old, _ := filepath.Glob(filepath.Join(dir, "*.segment")); len(old) > 0 {
		return nil, fmt.Errorf("%w: an earlier version left %s there; start with an empty directory, "+
			"or let the ibid that wrote it store what is in it first", ErrVersion, filepath.Base(old[0]))
	}
	log := cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	lock, err := sqlite.Lock(context.Background(), filepath.Join(dir, "lock"), o.Wait, func() {
		log.Warn("the journal is in use by another process, which may be ending: waiting for it",
			slog.String("directory", dir), slog.Duration("at_most", o.Wait))
	})
	if errors.Is(err, sqlite.ErrLocked) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	j := &Journal{
		dir:     dir,
		options: *o,
		log:     log,
		lock:    lock,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		changed: make(chan struct{}),
	}
	j.options.MaxBytes = cmp.Or(o.MaxBytes, defaultMaxBytes)
	if err := j.load(); err != nil {
		return nil, errors.Join(err, lock())
	}
	go j.run()
	return j, nil
}

// load opens the file and reads its extent. A damaged file is replaced.
func (j *Journal) load() (err error) {
	if j.db, err = openDatabase(j.dir); err == nil {
		if j.released, j.durable, j.bytes, err = j.db.extent(); err != nil {
			_ = j.db.close()
		}
	}
	if sqlite.IsDamage(err) {
		err = j.replaceFile(err)
	}
	j.last, j.deleted = j.durable, j.released
	return err
}

// Append queues a record, which must not change afterwards, and returns its position. It does not wait for the disk:
// use [Journal.Sync] for that. Without Sync, the record is written a moment later.
//
// The error is ErrTooLarge, ErrFull, ErrBusy (joined with the disk's error if writing fails) or ErrClosed; then the
// record is not in the journal. While writing fails, records are accepted until the queue is full, and are written once
// the disk works again.
func (j *Journal) Append(record []byte) (Position, error) {
	size := int64(len(record))
	if size > MaxRecord || size > j.options.MaxBytes {
		return 0, fmt.Errorf("appending %d bytes to journal: %w", size, ErrTooLarge)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var refused error
	switch {
	case j.closed:
		refused = ErrClosed
	case j.bytes+size > j.options.MaxBytes:
		if !j.full {
			j.full = true
			j.log.Error("the journal is full and accepts no more records", slog.Int64("bytes", j.bytes))
		}
		j.wakeWriter() // there may be something to delete
		refused = ErrFull
	case j.queued > 0 && int64(j.queued)+size > maxQueued:
		refused = errors.Join(ErrBusy, j.err)
	}
	if refused != nil {
		return 0, fmt.Errorf("appending to journal: %w", refused)
	}
	j.last++
	j.queue = append(j.queue, entry{j.last, record})
	j.queued += len(record)
	j.bytes += size
	if len(j.queue) == 1 || j.queued >= groupSize {
		j.wakeWriter()
	}
	return j.last, nil
}

func (j *Journal) wakeWriter() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// notify wakes all who wait for the writer. j.mu must be held.
func (j *Journal) notify() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// Sync waits until the record at p and all before it are on disk. Concurrent callers share the next commit. The error
// is ctx's, the disk's, or ErrClosed; then the state of the record is unknown: it may become durable later, because
// failed writes are retried. While writing fails, Sync does not wait.
func (j *Journal) Sync(ctx context.Context, p Position) error {
	for {
		j.mu.Lock()
		var err error
		switch {
		case p <= j.durable:
			j.mu.Unlock()
			return nil
		case p > j.last:
			err = fmt.Errorf("there is no record at position %d: the last is at %d", p, j.last)
		case j.err != nil:
			err = j.err
		case j.ended:
			err = ErrClosed
		case !j.urgent:
			j.urgent = true
			j.wakeWriter()
		}
		changed := j.changed
		j.mu.Unlock()
		if err == nil {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		return fmt.Errorf("syncing journal: %w", err)
	}
}

// Release declares everything up to and including p as stored elsewhere: it may be deleted, and is not read again after
// a restart, unless the process ends soon. Releasing p again does nothing. It is an error if p is not yet durable.
// Release works after Close while a [Reader] is open.
func (j *Journal) Release(p Position) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case p > j.durable:
		return fmt.Errorf("releasing journal: position %d is not yet durable", p)
	case j.lock == nil:
		return fmt.Errorf("releasing journal: %w", ErrClosed)
	}
	if p > j.released {
		j.released = p
		j.forget()
		j.wakeWriter()
	}
	return nil
}

// remember keeps durable records for readers. j.mu must be held.
func (j *Journal) remember(group []entry) {
	if j.readers == 0 {
		j.recent = nil
		return
	}
	j.recent = append(j.recent, group...)
	j.forget()
}

// forget drops the oldest recent records that are released, or too much. j.mu must be held.
func (j *Journal) forget() {
	bytes := 0
	first := len(j.recent)
	for first > 0 && j.recent[first-1].at > j.released && bytes+len(j.recent[first-1].record) <= maxRecent {
		first--
		bytes += len(j.recent[first].record)
	}
	clear(j.recent[:first])
	j.recent = slices.Delete(j.recent, 0, first)
}

// recentAfter returns the recent records after a position, or nil if they do not begin there. j.mu must be held.
func (j *Journal) recentAfter(p Position) []entry {
	if len(j.recent) == 0 || p+1 < j.recent[0].at || p >= j.recent[len(j.recent)-1].at {
		return nil
	}
	return slices.Clone(j.recent[p+1-j.recent[0].at:])
}

// Stats returns the current state of the journal.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{
		Bytes:   j.bytes,
		Records: int64(j.last - j.released), //nolint:gosec // few
		Damaged: j.damaged,
		Err:     j.err,
	}
	if s.Err == nil && j.full {
		s.Err = ErrFull
	}
	return s
}

// Close writes what was appended, and closes the journal once all readers are closed. If it returns a write error, what
// could not be written is lost.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.wakeWriter()
	<-j.done
	j.mu.Lock()
	err := j.err
	j.mu.Unlock()
	if err = errors.Join(err, j.unlock()); err != nil {
		return fmt.Errorf("closing journal: %w", err)
	}
	return nil
}

// unlock closes the file and unlocks the directory when neither is in use any more.
func (j *Journal) unlock() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended || j.readers > 0 || j.lock == nil {
		return nil
	}
	j.db.deleteTo(j.released)
	err := errors.Join(j.db.close(), j.lock())
	j.lock = nil
	return err
}

// Reader returns the records of a journal in order, once they are durable. It must be closed, and is not safe for
// concurrent use.
type Reader struct {
	j      *Journal
	last   Position // position last read, or known to be lost
	page   []entry  // read ahead
	closed bool
}

// Reader returns a reader that begins with the first record that is not released. Several readers may be open at once;
// each returns all records.
func (j *Journal) Reader() *Reader {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &Reader{j: j, last: j.released, closed: j.lock == nil}
	if !r.closed {
		j.readers++
	}
	return r
}

// Close closes the reader. It must not be called during Next.
func (r *Reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.j.mu.Lock()
	r.j.readers--
	r.j.mu.Unlock()
	if err := r.j.unlock(); err != nil {
		return fmt.Errorf("closing reader of journal: %w", err)
	}
	return nil
}

// Next returns the next record, which must not be changed, and its position. It waits until there is one. An
// available record is returned even if ctx has ended, so an error of ctx means that there was none. After
// [Journal.Close], Next returns io.EOF once all is read; after Close, ErrClosed. Damaged records are skipped, counted
// and logged. Any other error is ctx's or a read error; calling Next again retries.
func (r *Reader) Next(ctx context.Context) (Position, []byte, error) {
	for !r.closed {
		if len(r.page) > 0 {
			e := r.page[0]
			r.page = r.page[1:]
			r.skipTo(e.at)
			r.last = e.at
			return e.at, e.record, nil
		}
		r.j.mu.Lock()
		db, durable, ended, changed := r.j.db, r.j.durable, r.j.ended, r.j.changed
		r.last = max(r.last, r.j.released)
		r.page = r.j.recentAfter(r.last)
		r.j.mu.Unlock()
		if len(r.page) > 0 {
			continue
		}
		if r.last < durable {
			to, page, err := db.page(r.last, durable) //nolint:contextcheck // a read of a few rows
			if err == nil {
				if r.page = page; len(page) == 0 {
					r.skipTo(to + 1)
				}
				continue
			}
			if again := r.j.reportDamage(db, err); !again || ended {
				return 0, nil, fmt.Errorf("reading journal: %w", err)
			}
		} else if ended {
			return 0, nil, io.EOF
		}
		if err := ctx.Err(); err != nil {
			return 0, nil, fmt.Errorf("reading journal: %w", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return 0, nil, fmt.Errorf("reading journal: %w", ErrClosed)
}

// reportDamage makes the writer replace the file if err means that it is damaged, and reports whether reading is to be
// retried after that.
func (j *Journal) reportDamage(db *database, err error) (again bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db != db { // it was replaced meanwhile
		j.notify()
		return true
	}
	if !sqlite.IsDamage(err) {
		return false
	}
	j.damage = true
	j.wakeWriter()
	return true
}

// skipTo records that p is the next existing record. Those in between were damaged, unless they are released.
func (r *Reader) skipTo(p Position) {
	j := r.j
	j.mu.Lock()
	from := max(r.last, j.released, j.counted)
	lost := int64(0)
	if p > from+1 {
		lost = int64(p - from - 1) //nolint:gosec // few
		j.damaged += lost
		j.counted = p - 1
	}
	j.mu.Unlock()
	r.last = max(r.last, p-1)
	if lost > 0 {
		j.log.Error("records of the journal are damaged and lost",
			slog.Int64("records", lost), slog.Uint64("before", uint64(p)))
	}
}
