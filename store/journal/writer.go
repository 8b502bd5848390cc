package journal

import (
	"log/slog"
	"time"

	"github.com/ibidhq/ibid/internal/sqlite"
)

// run writes what is appended, until Close. Only run changes the file.
func (j *Journal) run() {
	defer close(j.done)
	timer := time.NewTimer(idleWait)
	defer timer.Stop()
	for {
		more := false
		select {
		case <-j.wake:
		case <-timer.C:
			j.mu.Lock()
			j.deleteReleased(j.released)
			j.mu.Unlock()
			more = j.db.shrink()
		}
		wait := j.writeQueue()
		if wait < 0 {
			return
		}
		if more {
			wait = min(wait, idleWait)
		}
		timer.Reset(wait)
	}
}

// writeQueue writes the queue, group by group, and returns when to call it again; a negative duration means never.
func (j *Journal) writeQueue() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	first, written, deleted := true, Position(0), j.deleted
	for {
		if j.damage {
			j.damage = false
			j.mu.Unlock()
			err := j.replaceFile(nil)
			j.mu.Lock()
			j.noteError(err)
			j.notify()
		}
		switch {
		case j.full:
			j.deleteReleased(j.released)
		case j.released >= j.deleted+deleteRows: // as many as were written, so that no commit waits for long
			j.deleteReleased(min(j.released, j.deleted+max(deleteRows, written)))
		}
		switch {
		case len(j.queue) == 0 && j.closed:
			j.ended, j.err = true, nil
			j.notify()
			return -1
		case len(j.queue) == 0 && j.released > deleted: // there is something to delete or to shrink
			return idleWait
		case len(j.queue) == 0:
			return time.Hour // until woken
		}
		if first && !j.urgent && !j.closed && j.queued < groupSize { // nothing is waiting: more may come
			j.mu.Unlock()
			select {
			case <-j.wake:
			case <-time.After(groupWait):
			}
			j.mu.Lock()
		} else if len(j.queue) < j.lastGroup { // a commit costs much more than one more record
			j.mu.Unlock()
			time.Sleep(gatherWait) //nolint:forbidigo // gathers records; there is no event to wait for
			j.mu.Lock()
		}
		first = false
		group := j.queue
		j.lastGroup = len(group)
		j.urgent = false
		j.mu.Unlock()
		err := j.db.write(group, j.options.commit)
		if sqlite.IsDamage(err) {
			if err = j.replaceFile(err); err == nil {
				err = j.db.write(group, j.options.commit)
			}
		}
		j.mu.Lock()
		j.noteError(err)
		if err == nil {
			j.durable, written = group[len(group)-1].at, Position(len(group))
			j.remember(group)
			j.queue = append([]entry(nil), j.queue[len(group):]...)
			for i := range group {
				j.queued -= len(group[i].record)
			}
		}
		j.notify()
		switch {
		case err == nil:
		case j.closed:
			j.ended = true
			j.notify()
			return -1
		default:
			return retryWait
		}
	}
}

// noteError stores why the file cannot be written, and logs when that begins and ends. j.mu must be held.
func (j *Journal) noteError(err error) {
	switch {
	case err != nil && j.err == nil:
		j.log.Error("the journal cannot be written", slog.Any("error", err))
	case err == nil && j.err != nil:
		j.log.Info("the journal can be written again")
	}
	j.err = err
}

// deleteReleased deletes released records up to a position. j.mu must be held; it is unlocked meanwhile.
func (j *Journal) deleteReleased(to Position) {
	if to == j.deleted {
		return
	}
	j.mu.Unlock()
	freed := j.db.deleteTo(to)
	j.mu.Lock()
	j.deleted = to
	j.bytes -= freed
	j.full = j.full && freed == 0
}

// replaceFile sets the damaged file aside and continues with a new one that has every record that can still be read.
func (j *Journal) replaceFile(why error) error {
	if j.db != nil {
		_ = j.db.close()
	}
	aside, err := setAside(j.dir)
	if err != nil {
		return err
	}
	fresh, err := openDatabase(j.dir)
	if err != nil {
		return err
	}
	j.mu.Lock()
	from, to := j.released, j.durable
	j.mu.Unlock()
	released, last, bytes, err := fresh.salvage(aside, from, to)
	if err != nil {
		_ = fresh.close()
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.queue {
		bytes += int64(len(j.queue[i].record))
	}
	j.db, j.released, j.deleted, j.durable, j.bytes = fresh, released, released, last, bytes
	j.log.Error("the journal was damaged: it was set aside, and its readable records were copied to a new one",
		slog.String("file", aside), slog.Int64("bytes", bytes), slog.Any("error", why))
	return nil
}
