package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ibidhq/ibid/manifest"
)

// What callers branch on.
var (
	ErrNotFound = errors.New("not found")      // or another tenant's
	ErrCursor   = errors.New("no such cursor") // a Cursor that is not from a page of this list
	ErrNewer    = errors.New("the store was changed by a newer ibid")
	ErrOlder    = errors.New("the store was made by an ibid from before its first release")
	ErrConflict = errors.New("in conflict") // with what is stored, or with itself: see [RefusedError]
	ErrLimit    = errors.New("over a limit")
	// ErrUnreachable says that no PostgreSQL server takes connections at the address of the DSN.
	ErrUnreachable = errors.New("the database cannot be reached")
)

var (
	// errCall marks what is wrong with a call itself.
	errCall = errors.New("call cannot be stored")
	// errDamaged marks what is wrong with a row that is stored.
	errDamaged = errors.New("the store is damaged")
	// errIndex says that the index cannot be read.
	errIndex = fmt.Errorf("%w: the index of terms", errDamaged)
	// errChanged says that another transaction came first.
	errChanged = errors.New("another transaction changed the answer")
)

// RefusedError says why something cannot be recorded, in words for whoever sent it. It is [ErrConflict] or [ErrLimit].
type RefusedError struct {
	Detail string
	cause  error
}

// Error returns the detail.
func (e *RefusedError) Error() string { return e.Detail }

// Unwrap returns which sort of refusal it is.
func (e *RefusedError) Unwrap() error { return e.cause }

// refuse returns a refusal.
func refuse(cause error, format string, args ...any) error {
	return &RefusedError{fmt.Sprintf(format, args...), cause}
}

// about says what was being done when err happened; nil stays nil.
func about(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// explain is about for the error that a function returns, which defers it.
func explain(err *error, format string, args ...any) { *err = about(*err, format, args...) }

// IsTemporary reports whether what err says has nothing to do with what was asked, so that it may succeed another time:
// the engine is away, busy, broken or out of space. After any other error of [Store.Put], trying the same calls again
// does not help: one of them is at fault, or what is stored of its conversation is damaged.
func IsTemporary(err error) bool {
	if errors.Is(err, errNotReady) || errors.Is(err, ErrFile) {
		return true
	}
	for _, not := range []error{
		nil, ErrNotFound, ErrCursor, ErrNewer, ErrOlder, ErrConflict, ErrLimit, errCall, errDamaged,
		manifest.ErrMutated,
	} {
		if errors.Is(err, not) {
			return false
		}
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		switch lite.Code() & 0xff { // the rest is the extended code
		case sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
			return false
		}
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && len(pg.Code) == 5 {
		switch pg.Code[:2] {
		case "21", "22", "23",
			"54": // cardinality, data, constraint (update has tried again if it was a race), program limit
			return false
		}
	}
	return true
}

// isConflict reports whether a transaction failed because of another one of PostgreSQL's at the same time.
func isConflict(err error) bool {
	return errors.Is(err, errChanged) ||
		hasState(err, "40001", "40P01", "23505") // serialization, deadlock, unique: both of us stored the same answer
}

// hasState reports whether PostgreSQL refused something with one of these codes (SQLSTATE).
func hasState(err error, codes ...string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, pg.Code)
}

// isBusy reports whether another connection holds the lock of a SQLite file.
func isBusy(err error) bool { return hasCode(err, sqlite3.SQLITE_BUSY) }

// isDamage reports whether SQLite says that a file is damaged.
func isDamage(err error) bool { return hasCode(err, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) }

// hasCode reports whether an error has one of SQLite's primary result codes.
func hasCode(err error, codes ...int) bool {
	lite, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(codes, lite.Code()&0xff)
}
