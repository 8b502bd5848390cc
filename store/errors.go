package store

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ibidhq/ibid/internal/sqlite"
	"github.com/ibidhq/ibid/manifest"
)

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("not found")      // or another tenant's
	ErrCursor   = errors.New("no such cursor") // not from a page of this list
	ErrNewer    = errors.New("the store was changed by a newer ibid")
	ErrOlder    = errors.New("the store was created by an ibid from before the first release")
	ErrConflict = errors.New("in conflict") // with what is stored, or with itself; see [RefusedError]
	ErrLimit    = errors.New("over a limit")
	// ErrUnreachable means that no PostgreSQL server accepts connections at the address in the DSN.
	ErrUnreachable = errors.New("the database cannot be reached")
	// ErrServed means that another process serves the SQLite file: see [Options].Serve.
	ErrServed = errors.New("another ibid serve uses the database")
)

var (
	// errCall marks faults of the call itself.
	errCall = errors.New("call cannot be stored")
	// errDamaged marks faults of a stored row.
	errDamaged = errors.New("the store is damaged")
	// errIndex means that the index cannot be read.
	errIndex = fmt.Errorf("%w: the index of terms", errDamaged)
	// errChanged means that another transaction came first.
	errChanged = errors.New("another transaction changed the answer")
)

// RefusedError explains to a client why something cannot be recorded. It wraps [ErrConflict] or [ErrLimit].
type RefusedError struct {
	Detail string
	cause  error
}

// Error returns the detail.
func (e *RefusedError) Error() string { return e.Detail }

// Unwrap returns [ErrConflict] or [ErrLimit].
func (e *RefusedError) Unwrap() error { return e.cause }

func refuse(cause error, format string, args ...any) error {
	return &RefusedError{fmt.Sprintf(format, args...), cause}
}

// wrap wraps err with what was being done; nil stays nil.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// wrapResult wraps the error that a function returns. It is meant to be deferred.
func wrapResult(err *error, format string, args ...any) { *err = wrap(*err, format, args...) }

// IsTemporary reports whether err is unrelated to what was asked, so that a retry may succeed: the engine is
// unreachable, busy, broken or out of space. After any other error of [Store.Put], retrying the same calls does not
// help: one of them is at fault, or what is stored of its conversation is damaged.
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
	if sqlite.HasCode(
		err, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE,
	) {
		return false
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && len(pg.Code) == 5 {
		switch pg.Code[:2] {
		case "21", "22", "23", "54": // cardinality, data, constraint (update has already retried races), program limit
			return false
		}
	}
	return true
}

// isConflict reports whether a transaction failed because of a concurrent one in PostgreSQL.
func isConflict(err error) bool {
	return errors.Is(err, errChanged) ||
		hasState(err, "40001", "40P01", "23505") // serialization, deadlock, unique: both of us stored the same answer
}

// hasState reports whether PostgreSQL returned one of these codes (SQLSTATE).
func hasState(err error, codes ...string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, pg.Code)
}
