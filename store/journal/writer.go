package journal

import (
	"log/slog"
	"time"
)

// run writes what is appended, until Close. It alone changes the file.
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

// writeQueue writes what is queued, group by group, and returns after how long there is something to do again; under 0:
// never.
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
			j.tellChange()
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
			j.tellChange()
			return -1
		case len(j.queue) == 0 && j.released > deleted: // there is something to delete, or to give back
			return idleWait
		case len(j.queue) == 0:
			return time.Hour // until somebody wakes it
		}
		if first && !j.urgent && !j.closed && j.queued < groupSize { // nobody waits: more may come
			j.mu.Unlock()
			select {
			case <-j.wake:
			case <-time.After(groupWait):
			}
			j.mu.Lock()
		} else if len(j.queue) < j.company { // a commit costs much more than a record more
			j.mu.Unlock()
			time.Sleep(companyWait) //nolint:forbidigo // records gather meanwhile; it waits for no event
			j.mu.Lock()
		}
		first = false
		group := j.queue
		j.company = len(group)
		j.urgent = false
		j.mu.Unlock()
		err := j.db.write(group, j.options.commit)
		if isDamage(err) {
			if err = j.replaceFile(err); err == nil {
				err = j.db.write(group, j.options.commit)
			}
		}
		j.mu.Lock()
		j.noteError(err)
		if err == nil {
			j.durable, written = group[len(group)-1].at, Position(len(group))
			j.queue = append([]entry(nil), j.queue[len(group):]...)
			for i := range group {
				j.queued -= len(group[i].record)
			}
		}
		j.tellChange()
		switch {
		case err == nil:
		case j.closed:
			j.ended = true
			j.tellChange()
			return -1
		default:
			return retryWait
		}
	}
}

// noteError keeps why the file cannot be written, and logs when that begins and ends. j.mu is held.
func (j *Journal) noteError(err error) {
	switch {
	case err != nil && j.err == nil:
		j.log.Error("the journal cannot be written", slog.Any("error", err))
	case err == nil && j.err != nil:
		j.log.Info("the journal can be written again")
	}
	j.err = err
}

// deleteReleased deletes what was released, up to a position. j.mu is held, but not meanwhile.
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

// replaceFile puts the file aside, which is damaged, and goes on with a new one that has every record which can still
// be read.
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
	j.log.Error("the journal was damaged: it was set aside, and what can be read of it is in a new one",
		slog.String("file", aside), slog.Int64("bytes", bytes), slog.Any("error", why))
	return nil
}
