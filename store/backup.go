package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/internal/sqlite"
	"github.com/ibidhq/ibid/store/journal"
)

// BackupReport says what a backup has.
type BackupReport struct {
	Answers int // all of them
	Journal int // records of the journal that were added; most had been stored already
	Unread  int // records of the journal that cannot be stored, which a server would set aside

	NoJournal bool // there is no journal
}

// ErrDamaged means that a copy of a database was made, and is not whole: nor is the original.
var ErrDamaged = errors.New("the database is damaged")

// backupBatch is how many records of the journal are stored in one transaction.
const backupBatch = 500

// Backup copies a SQLite database, which a server may be using, to the file to, which must not exist. The copy also has
// the answers that are still in the server's journal in the directory journalDir, so that it has every answer that was
// acknowledged before. If the copy is not whole, the error is [ErrDamaged] and there is no file.
func Backup(ctx context.Context, name, journalDir, to string) (report *BackupReport, err error) {
	defer wrapResult(&err, "copying the database")
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("%s: %w", to, fs.ErrExist)
	}
	work, err := os.MkdirTemp(filepath.Dir(to), ".ibid-backup-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	draft, records := filepath.Join(work, "database"), filepath.Join(work, "journal")
	// The journal first: an answer that leaves it meanwhile is in the database by then.
	switch err := journal.Copy(ctx, journalDir, records); {
	case errors.Is(err, fs.ErrNotExist):
		records = ""
	case err != nil:
		return nil, err
	}
	if err := sqlite.Copy(ctx, name, draft); err != nil {
		if sqlite.IsDamage(err) {
			err = fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		return nil, err
	}
	report = &BackupReport{NoJournal: records == ""}
	if records != "" {
		if err := report.addJournal(ctx, draft, records); err != nil {
			return nil, err
		}
	}
	if err := report.check(ctx, draft); err != nil {
		return nil, err
	}
	return report, file.Publish(draft, to)
}

// addJournal stores the records of a copy of the journal in a copy of the database.
func (r *BackupReport) addJournal(ctx context.Context, draft, records string) (err error) {
	var calls []*Call
	err = journal.Records(ctx, records, func(record []byte) error {
		if call, err := DecodeCall(record); err == nil {
			calls = append(calls, call)
		} else {
			r.Unread++
		}
		return nil
	})
	if err != nil || len(calls) == 0 {
		return err
	}
	schema, err := Inspect(ctx, draft)
	if err != nil {
		return err
	}
	if schema.Version < schema.Newest {
		return fmt.Errorf("%d answers are still in the journal, and its tables have version %d, which this ibid would "+
			"change to %d: use the ibid that serves the database", len(calls), schema.Version, schema.Newest)
	}
	s, err := Open(ctx, draft, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for len(calls) > 0 {
		batch := calls[:min(len(calls), backupBatch)]
		calls = calls[len(batch):]
		err := s.Put(ctx, batch)
		if err != nil && !IsTemporary(err) { // one of them is at fault
			for i := range batch {
				if err = s.Put(ctx, batch[i:i+1]); err != nil && !IsTemporary(err) {
					r.Unread++
					r.Journal--
					err = nil
				}
				if err != nil {
					break
				}
			}
		}
		if err != nil {
			return err
		}
		r.Journal += len(batch)
	}
	return nil
}

// check checks a copy and counts its answers.
func (r *BackupReport) check(ctx context.Context, draft string) (err error) {
	db, err := sqliteDB(draft, "synchronous(FULL)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }() // and the last connection removes the log
	if err := sqlite.Check(ctx, db); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return db.QueryRowContext(ctx, "SELECT count(*) FROM calls").Scan(&r.Answers)
}
