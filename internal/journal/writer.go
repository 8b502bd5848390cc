package journal

import (
	"errors"
	"log/slog"
	"os"
	"time"
)

const (
	retryWait = 500 * time.Millisecond // after a failed write, before the next try

	// Where several come within gatherWait, a sync is put off until as many have come again, or for gatherWait: much of
	// a sync is processor time, which they share. One who is alone, or one of few, waits for nobody. Who is there shows
	// by itself only where other threads go on while one syncs; so one group of probeEvery waits to see.
	gatherWait = time.Millisecond
	fewWriters = 4
	probeEvery = 32

	// Records are gathered in chunks of this size, or of a larger record's; so many are kept.
	chunkSize  = 256 << 10
	keepChunks = 4

	// Space is set aside by writing zeros, this much at once: the sync after a write into blocks that are there already
	// took 100 µs where one that makes the file longer took 190 (ext4), and fallocate does not help. A large group
	// amortises that anyway, and gets none.
	aheadBytes  = 1 << 20
	aheadGroups = 64 << 10
)

// run writes what is appended, until Close.
func (j *Journal) run() {
	defer close(j.done)
	for {
		select {
		case <-j.wake:
		case <-j.timer.C:
		}
		for again := true; again; {
			var ended bool
			if again, ended = j.turn(); ended {
				return
			}
		}
	}
}

// turn writes one group, if there is one. It returns whether there is more that must not wait, and whether all is done.
func (j *Journal) turn() (again, ended bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.timer.Stop()
	if j.gather.size > 0 {
		g := j.gather
		j.flying, j.gather = g, &group{done: make(chan struct{})}
		j.urgent = false
		j.mu.Unlock()
		err := j.write(g)
		j.mu.Lock()
		j.settle(g, err)
	}
	if j.drained {
		j.dropLast()
	}
	if j.closed && (j.gather.size == 0 || j.err != nil) {
		j.end()
		return false, true
	}
	return j.err == nil && (j.urgent && j.enough() || j.closed || j.gather.size >= kickSize), false
}

// enough reports whether as many records are gathered as a sync can be expected to serve. It is called with the lock.
func (j *Journal) enough() bool {
	return !j.probing && (j.usual < fewWriters || j.gather.records >= j.usual)
}

// learn takes from a group that was written how many records come together. It is called with the lock.
func (j *Journal) learn(g *group) {
	together := g.records + j.gather.records
	if j.probing || together > j.usual || g.records < j.usual/2 {
		j.usual = together
	}
	j.groups++
	j.probing = j.groups%probeEvery == 0
}

// hurry sees that the gathered records are written soon, since somebody waits for them. It is called with the lock,
// while nothing is being written.
func (j *Journal) hurry() {
	if j.enough() {
		j.kick()
		return
	}
	j.timer.Reset(gatherWait)
}

// settle is what follows from g having been written, or not. It is called with the lock.
func (j *Journal) settle(g *group, err error) {
	j.flying = nil
	if err != nil {
		if j.err == nil {
			j.log.Error("the journal cannot be written", slog.Any("error", err))
		}
		j.fail(g, err)
		return
	}
	if j.err != nil {
		j.err = nil
		j.log.Info("the journal can be written again")
	}
	j.durable = g.last
	j.queued -= g.size
	j.learn(g)
	j.segments[len(j.segments)-1].size = j.size
	for _, chunk := range g.chunks {
		if cap(chunk) == chunkSize && len(j.spare) < keepChunks {
			j.spare = append(j.spare, chunk[:0])
		}
	}
	close(g.done)
	switch {
	case j.gather.size == 0:
	case !j.urgent:
		j.timer.Reset(j.options.GroupWait)
	case !j.enough():
		j.timer.Reset(gatherWait)
	}
	j.wakeReaders()
}

// fail keeps what could not be written, tells those who wait for it, and sees that it is tried again.
func (j *Journal) fail(g *group, err error) {
	j.err = err
	waiting := j.gather
	j.gather = &group{
		chunks: append(g.chunks, waiting.chunks...), size: g.size + waiting.size, last: max(g.last, waiting.last),
		records: g.records + waiting.records, done: make(chan struct{}),
	}
	j.urgent = false
	for _, failed := range []*group{g, waiting} {
		failed.err = err
		close(failed.done)
	}
	j.timer.Reset(retryWait)
}

// end is the last the writer does. It is called with the lock.
func (j *Journal) end() {
	j.closeFile()
	if j.gather.size == 0 {
		j.err = nil
	}
	j.ended = true
	j.wakeReaders()
}

func (j *Journal) wakeReaders() {
	for r := range j.readers {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// write makes g durable. If it fails, nothing of g counts as written, and the next group begins a new segment: what a
// disk has of a file after a failed sync, nobody knows.
func (j *Journal) write(g *group) error {
	size := int64(g.size)
	if j.file != nil && j.size > 0 && j.size+size > j.options.SegmentBytes {
		j.closeFile()
	}
	if j.file == nil {
		if err := j.begin(); err != nil {
			return err
		}
	}
	if err := j.put(g); err != nil {
		j.abandon()
		return err
	}
	j.size += size
	return nil
}

// put writes g at the end of the file and syncs it.
func (j *Journal) put(g *group) error {
	at := j.size
	for _, chunk := range g.chunks {
		if err := j.disk.write(j.file, chunk, at); err != nil {
			return err
		}
		at += int64(len(chunk))
	}
	j.setAside(at)
	return j.disk.sync(j.file)
}

// setAside writes zeros after end, where the file's space is used up.
func (j *Journal) setAside(end int64) {
	if end <= j.zero {
		return
	}
	j.zero = end
	limit := min(end+aheadBytes, j.options.SegmentBytes)
	if end-j.size > aheadGroups || limit <= end {
		return
	}
	if err := j.disk.write(j.file, make([]byte, limit-end), end); err == nil { // else it is tried without
		j.zero = limit
	}
}

// begin makes a new segment.
func (j *Journal) begin() error {
	j.mu.Lock()
	j.number++
	base := j.durable + 1
	s := &segment{number: j.number, base: base, salt: j.salt}
	j.mu.Unlock()
	name := s.path(j.dir)
	f, err := j.disk.create(name)
	if err != nil {
		return err
	}
	if err := j.disk.syncDir(j.dir); err != nil {
		return errors.Join(err, f.Close(), removeFile(name))
	}
	j.file, j.size, j.zero = f, 0, 0
	j.mu.Lock()
	j.segments = append(j.segments, s)
	j.mu.Unlock()
	return nil
}

// abandon gives up the last segment after a failure: it keeps what was durable before.
func (j *Journal) abandon() {
	j.closeFile()
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.segments); j.segments[n-1].size == 0 {
		j.removeLast()
	}
}

// closeFile closes the last segment. That the space it set aside stays, or what failed to be written, is no harm: what
// is not before the next segment's first record is not read.
func (j *Journal) closeFile() {
	if j.file == nil {
		return
	}
	err := j.file.Truncate(j.size)
	if err = errors.Join(err, j.file.Close()); err != nil {
		j.log.Warn("closing a segment of the journal", slog.Any("error", err))
	}
	j.file = nil
}

// dropLast removes the last segment, if nothing was appended since that was asked for. It is called with the lock.
func (j *Journal) dropLast() {
	j.drained = false
	if len(j.segments) == 1 && j.released == j.durable {
		j.closeFile()
		j.bytes -= j.segments[0].size
		j.removeLast()
		j.full = false
	}
}

func (j *Journal) removeLast() {
	n := len(j.segments)
	name := j.segments[n-1].path(j.dir)
	j.segments = j.segments[:n-1]
	if err := os.Remove(name); err != nil {
		j.log.Warn("removing a segment of the journal", slog.Any("error", err))
	}
}
