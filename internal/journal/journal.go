package journal

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
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
	// ErrBusy says that [MaxQueued] bytes wait to be written: the disk is slower than what is appended, or stands
	// still.
	ErrBusy = errors.New("the journal cannot write as fast as records come")
	// ErrTooLarge says that a record has more than [MaxRecord] bytes, or more than fits in an empty journal.
	ErrTooLarge = errors.New("the record is too large for the journal")
	// ErrClosed says that [Journal.Close] was called before.
	ErrClosed = errors.New("the journal is closed")
	// ErrLocked says that the directory is open already: in another process, or in this one, where a [Reader] that is
	// not closed keeps it so.
	ErrLocked = errors.New("the journal is in use")
)

// The defaults of [Options].
const (
	DefaultMaxBytes     = 8 << 30
	DefaultSegmentBytes = 64 << 20
	DefaultGroupWait    = 2 * time.Millisecond
)

// MaxQueued is how many bytes of records may wait in memory to be written.
const MaxQueued = 64 << 20

// Position is the place of a record in the order of a journal: the first has 1, the next 2. It lasts over restarts, but
// that of a record that was not durable is given again.
type Position uint64

// Options says how a journal is kept. Nil and zero values mean the defaults.
type Options struct {
	// MaxBytes is how large all segments may be together; 0: [DefaultMaxBytes]. What is released goes by whole
	// segments.
	MaxBytes int64
	// after which a new segment begins; 0: [DefaultSegmentBytes]; never over a quarter of MaxBytes
	SegmentBytes int64
	// how long a record for which nobody calls Sync may stay unwritten; 0: [DefaultGroupWait]
	GroupWait time.Duration
	Logger    *slog.Logger // told of damage, a full journal and failing disks, once each; nil: nobody is
}

// Stats says how a journal is.
type Stats struct {
	Bytes   int64 // of all segments, and of what waits to be written
	Records int64 // appended and not released; damaged ones count until what follows them is released
	Damaged int64 // records lost to damage, as far as Readers came upon them since Open
	Torn    int64 // bytes that Open cut off at the end, left there by a process that died while it wrote
	Err     error // why records are not taken or not written: ErrFull or the disk's error; nil: the journal is healthy
}

// Journal is a queue of records on disk; [Open] makes one. Its methods may be called by many goroutines at once.
type Journal struct {
	dir        string
	options    Options
	log        *slog.Logger
	disk       *disk
	salt       uint32 // of the segments that this process writes
	lock       *os.File
	checkpoint *checkpoint
	torn       int64

	wake chan struct{} // for the writer
	done chan struct{} // closed when the writer has ended
	file *os.File      // of the last segment; nil: the next write begins a new one. The writer's
	size int64         // of file: what is written and durable. The writer's
	zero int64         // up to where file is known to have space. The writer's

	release sync.Mutex // held while a checkpoint is written

	mu       sync.Mutex
	segments []*segment // in order
	number   uint64     // of the last segment there was
	bytes    int64      // Stats.Bytes
	queued   int        // bytes that wait
	last     Position   // that was given
	durable  Position   // up to which all is on disk
	released Position
	gather   *group      // what is appended and not yet being written
	flying   *group      // what is being written; nil: nothing
	spare    [][]byte    // chunks to be used again
	timer    *time.Timer // wakes the writer when gather has waited for long enough, or to try again
	urgent   bool        // somebody waits for gather
	usual    int         // how many records come together
	groups   int         // that were written
	probing  bool        // the next group waits to see how many come
	drained  bool        // the last segment has nothing that is not released, and may go
	err      error       // with which writing failed; nil: it did not
	full     bool        // ErrFull was returned, and nothing was freed since
	damaged  int64
	missed   Position // the last of the damaged, so that a second reader does not count them again
	closed   bool     // no more is taken
	ended    bool     // and nothing is written any more
	readers  map[*Reader]struct{}
}

// group is what is written and synced at once.
type group struct {
	chunks  [][]byte // whole records
	size    int      // of all chunks
	records int
	last    Position
	done    chan struct{} // closed when err is known
	err     error
}

// Open opens the journal in dir, which it makes if it is not there: of mode 0700, its files 0600. It fails with
// ErrLocked while the directory is open elsewhere. What a process that died left half written at the end is cut off,
// counted in [Stats] and logged.
func Open(dir string, o *Options) (*Journal, error) {
	j, err := open(dir, o, realDisk())
	if err != nil {
		return nil, fmt.Errorf("opening journal %s: %w", dir, err)
	}
	return j, nil
}

func open(dir string, o *Options, disk *disk) (*Journal, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	var salt [4]byte
	rand.Read(salt[:]) // never fails
	j := &Journal{
		dir:     dir,
		options: options,
		log:     options.Logger,
		disk:    disk,
		lock:    lock,
		salt:    binary.LittleEndian.Uint32(salt[:]),
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		gather:  &group{done: make(chan struct{})},
		readers: make(map[*Reader]struct{}),
		timer:   time.NewTimer(time.Hour),
	}
	j.timer.Stop()
	if err := j.load(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	go j.run()
	return j, nil
}

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	if options.MaxBytes < 0 || options.SegmentBytes < 0 || options.GroupWait < 0 {
		return options, errors.New("a negative limit")
	}
	if options.MaxBytes == 0 {
		options.MaxBytes = DefaultMaxBytes
	}
	if options.SegmentBytes == 0 {
		options.SegmentBytes = DefaultSegmentBytes
	}
	options.SegmentBytes = min(options.SegmentBytes, options.MaxBytes/4)
	if options.GroupWait == 0 {
		options.GroupWait = DefaultGroupWait
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return options, nil
}

// load finds out what the directory has.
func (j *Journal) load() (err error) {
	if j.checkpoint, j.released, err = openCheckpoint(filepath.Join(j.dir, "checkpoint")); err != nil {
		return err
	}
	if err := j.loadSegments(); err != nil {
		return errors.Join(err, j.checkpoint.file.Close())
	}
	return nil
}

func (j *Journal) loadSegments() (err error) {
	if j.segments, err = listSegments(j.dir); err != nil {
		return err
	}
	j.last = j.released
	for n := len(j.segments); n > 0; n = len(j.segments) {
		s := j.segments[n-1]
		j.number = max(j.number, s.number)
		last, torn, err := s.repair(j.dir, j.disk)
		if err != nil {
			return fmt.Errorf("repairing the last segment: %w", err)
		}
		if torn > 0 {
			j.torn += torn
			j.log.Warn(
				"the end of the journal was torn and is cut off",
				slog.String("segment", s.path(j.dir)),
				slog.Int64("bytes", torn),
			)
		}
		if last > 0 {
			j.last = last
			break
		}
		if err := removeFile(s.path(j.dir)); err != nil {
			return err
		}
		j.segments = j.segments[:n-1]
	}
	if len(j.segments) > 0 {
		if first := j.segments[0].base; j.released > j.last || j.released < first-1 {
			j.released = first - 1 // the checkpoint is lost, or is of another journal: better to read twice
		}
	}
	j.durable = j.last
	for _, s := range j.segments {
		j.bytes += s.size
	}
	return j.removeReleased()
}

// removeReleased removes the segments of which everything is released. Only the last, which may be being written,
// stays.
func (j *Journal) removeReleased() error {
	j.mu.Lock()
	var gone []*segment
	for len(j.segments) > 1 && j.segments[1].base <= j.released+1 {
		gone = append(gone, j.segments[0])
		j.full = false
		j.bytes -= j.segments[0].size
		j.segments = j.segments[1:]
	}
	j.mu.Unlock()
	var errs []error
	for _, s := range gone {
		errs = append(errs, removeFile(s.path(j.dir)))
	}
	return errors.Join(errs...)
}

// Append queues a copy of record and returns its position. It does not wait for the disk: when Append returns, the
// record is in memory, and [Journal.Sync] says when it is durable. Without that it is written after Options.GroupWait.
//
// The error is ErrTooLarge, ErrFull, ErrBusy (joined by the disk's error, if writing fails) or ErrClosed; then the
// record is not in the journal. While writing fails records are still taken until the queue is full, and are written
// when it works again.
func (j *Journal) Append(record []byte) (Position, error) {
	size := headerSize + len(record)
	if len(record) > MaxRecord || int64(size) > j.options.MaxBytes {
		return 0, fmt.Errorf("appending %d bytes to journal: %w", len(record), ErrTooLarge)
	}
	sum := checksum(j.salt, record)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.mayAppend(size); err != nil {
		return 0, fmt.Errorf("appending to journal: %w", err)
	}
	g := j.gather
	before := g.size
	j.last++
	chunk := j.room(g, size)
	*chunk = appendRecord(*chunk, j.salt, j.last, record, sum)
	g.size += size
	g.records++
	g.last = j.last
	j.bytes += int64(size)
	j.queued += size
	switch {
	case j.err != nil: // the writer tries again by itself
	case before == 0:
		j.timer.Reset(j.options.GroupWait)
	case before < kickSize && g.size >= kickSize, j.urgent && j.flying == nil && g.records == j.usual && j.enough():
		j.kick()
	}
	return j.last, nil
}

// kickSize is how much makes the writer write at once.
const kickSize = 1 << 20

func (j *Journal) mayAppend(size int) error {
	switch {
	case j.closed:
		return ErrClosed
	case j.bytes+int64(size) > j.options.MaxBytes:
		if !j.full {
			j.full = true
			j.log.Error("the journal is full and takes no more records", slog.Int64("bytes", j.bytes))
		}
		j.drain()
		return ErrFull
	case j.queued > 0 && j.queued+size > MaxQueued:
		return errors.Join(ErrBusy, j.err)
	}
	return nil
}

// room returns a chunk of g that has room for size bytes.
func (j *Journal) room(g *group, size int) *[]byte {
	n := len(g.chunks)
	if n > 0 && cap(g.chunks[n-1])-len(g.chunks[n-1]) >= size {
		return &g.chunks[n-1]
	}
	if spare := len(j.spare); spare > 0 && size <= chunkSize {
		g.chunks = append(g.chunks, j.spare[spare-1])
		j.spare = j.spare[:spare-1]
	} else {
		g.chunks = append(g.chunks, make([]byte, 0, max(size, chunkSize)))
	}
	return &g.chunks[n]
}

// kick wakes the writer.
func (j *Journal) kick() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Sync returns nil when the record at p and all before it are on disk. All who call it while the disk is at work share
// the next write. The error is ctx's, the disk's, or ErrClosed; then nothing is known of the record: it may become
// durable later, for records that could not be written are tried again. While writing fails Sync does not wait.
func (j *Journal) Sync(ctx context.Context, p Position) error {
	j.mu.Lock()
	g, err := j.groupOf(p)
	if g == nil {
		j.mu.Unlock()
		if err != nil {
			return fmt.Errorf("syncing journal: %w", err)
		}
		return nil
	}
	if g == j.gather && !j.urgent {
		j.urgent = true
		if j.flying == nil { // else it looks when it has landed
			j.hurry()
		}
	}
	j.mu.Unlock()
	select {
	case <-g.done:
		err = g.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("syncing journal: %w", err)
	}
	return nil
}

// groupOf returns the group with the record at p; nil without an error: it is durable.
func (j *Journal) groupOf(p Position) (*group, error) {
	switch {
	case p <= j.durable:
		return nil, nil
	case p > j.last:
		return nil, fmt.Errorf("there is no record at position %d: the last is at %d", p, j.last)
	case j.err != nil:
		return nil, j.err
	case j.ended:
		return nil, ErrClosed
	case j.flying != nil && p <= j.flying.last:
		return j.flying, nil
	}
	return j.gather, nil
}

// Release says that everything up to and including p is kept elsewhere. It is not read again after a restart, unless
// the machine stops soon after, and segments of which nothing else is left are removed. Where p was released before, it
// does nothing. It is an error if p is not yet durable. It works after Close for as long as a [Reader] is open.
func (j *Journal) Release(p Position) error {
	j.release.Lock()
	defer j.release.Unlock()
	j.mu.Lock()
	err := error(nil)
	switch {
	case p > j.durable:
		err = fmt.Errorf("position %d is not yet durable", p)
	case j.lock == nil:
		err = ErrClosed
	}
	if p <= j.released || err != nil {
		j.mu.Unlock()
		if err != nil {
			return fmt.Errorf("releasing journal: %w", err)
		}
		return nil
	}
	j.released = p
	j.mu.Unlock()
	err = errors.Join(j.checkpoint.write(p), j.removeReleased())
	j.mu.Lock()
	j.drain()
	j.mu.Unlock()
	if err != nil {
		return fmt.Errorf("releasing journal: %w", err)
	}
	return nil
}

// drain asks the writer to give up the last segment, if nothing in it is needed and it is large or in the way. It is
// called with the lock.
func (j *Journal) drain() {
	if n := len(
		j.segments,
	); !j.closed && j.released == j.last && n > 0 &&
		(j.full || j.segments[n-1].size >= j.options.SegmentBytes/2) {
		j.drained = true
		j.kick()
	}
}

// Stats says how the journal is. It is cheap.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{Bytes: j.bytes, Records: int64(j.last - j.released), Damaged: j.damaged, Torn: j.torn, Err: j.err}
	if s.Err == nil && j.full {
		s.Err = ErrFull
	}
	return s
}

// Close takes no more records, writes and syncs those that wait, and returns the error if that cannot be done. Readers
// get what there is and then io.EOF. The directory stays locked until they are closed.
func (j *Journal) Close() error {
	j.mu.Lock()
	j.closed = true
	j.kick()
	j.mu.Unlock()
	<-j.done
	j.mu.Lock()
	err := j.err
	j.mu.Unlock()
	if unlock := j.unlock(); err == nil {
		err = unlock
	}
	if err != nil {
		return fmt.Errorf("closing journal: %w", err)
	}
	return nil
}

// unlock gives up the directory, if nobody needs it.
func (j *Journal) unlock() error {
	j.release.Lock()
	defer j.release.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.ended || len(j.readers) > 0 || j.lock == nil {
		return nil
	}
	lock := j.lock
	j.lock = nil
	return errors.Join(j.checkpoint.file.Close(), lock.Close())
}
