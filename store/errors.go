package store

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What callers branch on.
var (
	ErrNotFound = errors.New("not found")      // or another tenant's
	ErrCursor   = errors.New("no such cursor") // a Cursor that is not from a page of this list
	ErrNewer    = errors.New("the store was changed by a newer ibid")
)

// errCall marks what is wrong with a call itself.
var errCall = errors.New("call cannot be stored")

// IsTemporary reports whether what err says has nothing to do with what was asked, so that it may succeed another time: the
// engine is away, busy, broken or out of space. After any other error of [Store.Put], trying the same calls again is in vain:
// one of them is at fault.
func IsTemporary(err error) bool {
	for _, not := range []error{nil, ErrNotFound, ErrCursor, ErrNewer, errCall} {
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
		case "21", "22", "23", "54": // cardinality, data, constraint, program limit
			return isConflict(err)
		}
	}
	return true
}

// isConflict reports whether PostgreSQL refused a transaction because of another one at the same time.
func isConflict(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pg.Code {
	case "40001", "40P01", "23505": // serialization, deadlock, unique: both of us stored the same answer
		return true
	default:
		return false
	}
}
