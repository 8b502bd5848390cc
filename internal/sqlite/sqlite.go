package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ibidhq/ibid/internal/file"
)

// ErrLocked means that another connection, mostly of another process, has a lock of [Lock].
var ErrLocked = errors.New("it is locked")

// Open opens the SQLite file name, which may contain any character, with the parameters of a URL; nil for none.
func Open(name string, query url.Values) (*sql.DB, error) {
	return sql.Open("sqlite", fileURL(name, query))
}

func fileURL(name string, query url.Values) string {
	path := (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath()
	return (&url.URL{Scheme: "file", Opaque: path, RawQuery: query.Encode()}).String()
}

// BusyTimeout returns the pragma that sets how long SQLite waits for a lock.
func BusyTimeout(wait time.Duration) string {
	return "busy_timeout(" + strconv.FormatInt(wait.Milliseconds(), 10) + ")"
}

// HasCode reports whether an error has one of SQLite's primary result codes.
func HasCode(err error, codes ...int) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(codes, e.Code()&0xff)
}

// IsBusy reports whether another connection holds the lock of a file.
func IsBusy(err error) bool { return HasCode(err, sqlite3.SQLITE_BUSY) }

// IsDamage reports whether SQLite considers a file damaged.
func IsDamage(err error) bool { return HasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) }

// lockWait is how long SQLite waits for a lock at a time; in between, the context is checked.
const lockWait = 100 * time.Millisecond

// Lock locks the file name, which it creates, against other processes and until the end of this one. It is the lock of
// an exclusive transaction, which works wherever SQLite does. While the lock is taken, Lock calls waiting once, unless
// it is nil, and tries again for as long as wait; then it returns [ErrLocked].
func Lock(ctx context.Context, name string, wait time.Duration, waiting func()) (unlock func() error, err error) {
	if err := file.CreatePrivate(name); err != nil {
		return nil, err
	}
	db, err := Open(name, url.Values{"_pragma": {BusyTimeout(min(wait, lockWait))}, "_txlock": {"exclusive"}})
	if err != nil {
		return nil, err
	}
	for begun := time.Now(); ; {
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil) // held for longer than ctx
		if err == nil {
			return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
		}
		switch {
		case !IsBusy(err):
			return nil, errors.Join(err, db.Close())
		case ctx.Err() != nil || time.Since(begun) >= wait:
			return nil, errors.Join(cmp.Or(ctx.Err(), ErrLocked), db.Close())
		case waiting != nil:
			waiting()
			waiting = nil
		}
	}
}

// copyPages is how many pages are copied at a time; in between, the context is checked.
const copyPages = 1024

// Copy copies the database in the file from, which any process may be using and changing meanwhile, to a new file. The
// copy has everything that was committed before, and no part of a later transaction.
func Copy(ctx context.Context, from, to string) error {
	if err := file.CreatePrivate(to); err != nil {
		return err
	}
	db, err := Open(from, url.Values{"mode": {"ro"}, "_pragma": {BusyTimeout(5 * time.Second)}})
	if err != nil {
		return err
	}
	return errors.Join(copyDatabase(ctx, db, to), db.Close())
}

func copyDatabase(ctx context.Context, db *sql.DB, to string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	// Within one transaction, what other processes commit meanwhile does not make the copy begin again.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	defer func() {
		_, rollback := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		err = errors.Join(err, rollback)
	}()
	var tables int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	return conn.Raw(func(raw any) error {
		source, ok := raw.(interface {
			NewBackup(to string) (*sqlite.Backup, error)
		})
		if !ok {
			return fmt.Errorf("%T cannot copy", raw)
		}
		backup, err := source.NewBackup(fileURL(to, url.Values{"mode": {"rw"}}))
		if err != nil {
			return err
		}
		more := true
		for more && err == nil {
			if more, err = backup.Step(copyPages); err == nil {
				err = ctx.Err()
			}
		}
		return errors.Join(err, backup.Finish())
	})
}

// Check reads all pages of a database and reports the first that contradicts others, as an error for which [IsDamage]
// need not hold.
func Check(ctx context.Context, db *sql.DB) error {
	var found string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found); err != nil {
		return err
	}
	if found != "ok" {
		return errors.New(found)
	}
	return nil
}
