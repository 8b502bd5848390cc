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
	"sync"
	"time"
)

// The errors that callers tell apart.
var (
	// ErrFull says that the journal has Options.MaxBytes: it takes records again when some are released.
	ErrFull = errors.New("the journal is full")
	// ErrBusy says that 64 MiB wait to be written: the disk is slower than what is appended, or stands
	// still.
	ErrBusy = errors.New("the journal cannot write as fast as records come")
	// ErrTooLarge says that a record has more than [MaxRecord] bytes, or more than fits in an empty journal.
	ErrTooLarge = errors.New("the record is too large for the journal")
	// ErrClosed says that [Journal.Close] was called before.
	ErrClosed = errors.New("the journal is closed")
	// ErrLocked says that the directory is open already: in another process, or in this one, where a [Reader] that is
	// not closed keeps it so.
	ErrLocked = errors.New("the journal is in use")
	// ErrVersion says that an ibid of another version wrote the directory, which this one does not read.
	ErrVersion = errors.New("the journal is of another version of ibid")
)

const (
	// MaxRecord is how many bytes a record may have.
	MaxRecord = 64 << 20
	// maxQueued is how many bytes of records may wait in memory to be written.
	maxQueued = 64 << 20
	// defaultMaxBytes is the default of [Options].MaxBytes.
	defaultMaxBytes = 8 << 30

	groupWait   = 2 * time.Millisecond   // how long a record for which nobody calls Sync may stay unwritten
	groupSize   = 1 << 20                // bytes that are written at once, whoever waits
	companyWait = 300 * time.Microsecond // how long a commit smaller than the last one waits for more records
	retryWait   = 500 * time.Millisecond // after a failed commit, before the next try
	idleWait    = 100 * time.Millisecond // after the last commit, until what was released is deleted
)

// Position is the place of a record in the order of a journal: the first has 1, the next 2. It lasts over restarts, but
// that of a record that was not durable is given again.
type Position uint64

// Options says how a journal is kept. Nil and zero values mean the defaults.
type Options struct {
	MaxBytes int64        // of all records that are not deleted, together; 0: 8 GiB
	Logger   *slog.Logger // told of damage, a full journal and failing disks, once each; nil: nobody is

	commit func() error // called before each commit, by tests: an error makes it fail
}

// Stats says how a journal is.
type Stats struct {
	Bytes   int64 // of the records that are not deleted
	Records int64 // appended and not released; damaged ones count until what follows them is released
	Damaged int64 // records lost to damage, as far as Readers came upon them since Open
	Err     error // why records are not taken or not written: ErrFull or the disk's error; nil: the journal is healthy
}

// Journal is a queue of records on disk; [Open] makes one. Its methods may be called by many goroutines at once.
type Journal struct {
	dir     string
	options Options
	log     *slog.Logger

	wake chan struct{} // for the writer
	done chan struct{} // closed when the writer has ended

	mu       sync.Mutex
	db       *database
	lock     func() error  // gives the directory back; nil: that was done
	changed  chan struct{} // closed, and another one made, when something below changes that Sync and Readers wait for
	queue    []entry       // appended and not durable
	queued   int           // bytes of queue
	company  int           // records of the last group
	bytes    int64         // Stats.Bytes
	last     Position      // that was given
	durable  Position      // up to which all is on disk
	released Position
	deleted  Position // of what was released
	urgent   bool     // somebody waits for what is queued
	damage   bool     // a reader found the file damaged
	err      error    // with which the last commit failed; nil: it did not
	full     bool     // ErrFull was returned, and nothing was deleted since
	damaged  int64
	missed   Position // the last of the damaged, so that a second reader does not count them again
	readers  int
	closed   bool // no more is taken
	ended    bool // and nothing is written any more
}

// entry is a record with its place.
type entry struct {
	at     Position
	record []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum covers the position too, so that a record is never taken for another.
func (e *entry) sum() int64 {
	return int64(crc32.Update(uint32(e.at), castagnoli, e.record)) //nolint:gosec // the low bits of it do
}

// Open opens the journal in dir, which it makes if it is not there: of mode 0700, its files 0600. It fails with
// ErrLocked while the directory is open elsewhere, and with ErrVersion where another version's journal is.
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
		return nil, fmt.Errorf("%w: an earlier one left %s there; start with an empty directory, "+
			"or let the ibid that wrote it store what is in it first", ErrVersion, filepath.Base(old[0]))
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{
		dir:     dir,
		options: *o,
		log:     cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
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

// load opens the file and finds out what it has. A damaged one is replaced.
func (j *Journal) load() (err error) {
	if j.db, err = openDatabase(j.dir); err == nil {
		if j.released, j.durable, j.bytes, err = j.db.extent(); err != nil {
			_ = j.db.close()
		}
	}
	if isDamage(err) {
		err = j.replaceFile(err)
	}
	j.last, j.deleted = j.durable, j.released
	return err
}

// Append queues a record, which must not change afterwards, and returns its position. It does not wait for the disk:
// when Append returns, the record is in memory, and [Journal.Sync] says when it is durable. Without that it is written
// a moment later.
//
// The error is ErrTooLarge, ErrFull, ErrBusy (joined by the disk's error, if writing fails) or ErrClosed; then the
// record is not in the journal. While writing fails records are still taken until the queue is full, and are written
// when it works again.
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
			j.log.Error("the journal is full and takes no more records", slog.Int64("bytes", j.bytes))
		}
		j.wakeWriter() // it may have something to delete
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

// tellChange wakes all who wait for the writer. j.mu is held.
func (j *Journal) tellChange() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// Sync returns nil when the record at p and all before it are on disk. All who call it while the disk is at work share
// the next commit. The error is ctx's, the disk's, or ErrClosed; then nothing is known of the record: it may become
// durable later, for records that could not be written are tried again. While writing fails Sync does not wait.
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

// Release says that everything up to and including p is kept elsewhere: it may be deleted, and is not read again after
// a restart, unless the process ends soon after. Where p was released before, it does nothing. It is an error if p is
// not yet durable. It works after Close for as long as a [Reader] is open.
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
		j.wakeWriter()
	}
	return nil
}

// Stats returns how the journal is now.
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

// Close writes what was appended, and closes the journal once all readers are closed. The error is that of writing it;
// then what could not be written is lost.
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

// unlock closes the file and gives the directory back when nobody uses it any more.
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

// Reader gets the records of a journal in their order, once they are durable. One goroutine at a time may use it. It
// must be closed.
type Reader struct {
	j      *Journal
	last   Position // that was read, or is known to be lost
	page   []entry  // read ahead
	closed bool
}

// Reader returns a reader that begins with the first record that is not released. Several may read at once, each all
// records.
func (j *Journal) Reader() *Reader {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := &Reader{j: j, last: j.released, closed: j.lock == nil}
	if !r.closed {
		j.readers++
	}
	return r
}

// Close lets go of the directory. It must not be called during Next.
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

// Next returns the next record, which belongs to the caller, and its position. It waits until there is one; one that is
// there is returned even if ctx has ended, so ctx's error says that there was none. After [Journal.Close] it returns
// io.EOF once all is read; after Close ErrClosed. Damaged records are skipped, counted and logged. Any other error is
// ctx's or one of reading; calling again tries again.
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
		r.j.mu.Unlock()
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

// reportDamage has the writer replace the file where err says that it is damaged, and reports whether reading is to be
// tried again when that is done.
func (j *Journal) reportDamage(db *database, err error) (again bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.db != db { // it was replaced meanwhile
		j.tellChange()
		return true
	}
	if !isDamage(err) {
		return false
	}
	j.damage = true
	j.wakeWriter()
	return true
}

// skipTo is told that p is the next record there is. Those between were damaged, unless they are released.
func (r *Reader) skipTo(p Position) {
	j := r.j
	j.mu.Lock()
	from := max(r.last, j.released, j.missed)
	lost := int64(0)
	if p > from+1 {
		lost = int64(p - from - 1) //nolint:gosec // few
		j.damaged += lost
		j.missed = p - 1
	}
	j.mu.Unlock()
	r.last = max(r.last, p-1)
	if lost > 0 {
		j.log.Error("records of the journal are damaged and lost",
			slog.Int64("records", lost), slog.Uint64("before", uint64(p)))
	}
}
