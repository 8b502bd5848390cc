package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"
)

// Schema says how far the tables of a database are.
type Schema struct {
	Version int64 // of the tables; 0: there are none yet
	Newest  int64 // what [Open] would bring them to
	Tokens  int   // access tokens, also revoked ones
}

// Inspect looks at the database that dsn names, as [Open] takes it, and changes nothing: it is not made if it is not
// there. One that a newer ibid has changed is [ErrNewer].
func Inspect(ctx context.Context, dsn string) (*Schema, error) {
	db, d, err := inspected(dsn)
	if err != nil {
		return nil, fmt.Errorf("looking at the store: %w", err)
	}
	s, err := inspect(ctx, db, d)
	if err := errors.Join(unreachable(err), db.Close()); err != nil {
		return nil, fmt.Errorf("looking at the store: %w", err)
	}
	return s, nil
}

// inspected opens a database for reading.
func inspected(dsn string) (*sql.DB, dialect, error) {
	if IsPostgres(dsn) {
		config, err := parsePostgres(dsn)
		if err != nil {
			return nil, dialect{}, err
		}
		config.RuntimeParams["default_transaction_read_only"] = "on"
		return stdlib.OpenDB(*config), newDialect(true), nil
	}
	db, err := sql.Open("sqlite", fileURL(dsn, "mode=ro&_pragma=busy_timeout(5000)"))
	return db, newDialect(false), err
}

func inspect(ctx context.Context, db *sql.DB, d dialect) (*Schema, error) {
	provider, err := d.provider(db)
	if err != nil {
		return nil, err
	}
	s := &Schema{}
	for _, source := range provider.ListSources() {
		s.Newest = max(s.Newest, source.Version)
	}
	if there, err := d.hasTable(ctx, db, versionTable); err != nil || !there {
		return s, errors.Join(err, d.refuseOlder(ctx, db))
	}
	if err := db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+versionTable).
		Scan(&s.Version); err != nil ||
		s.Version == 0 {
		return s, err
	}
	if s.Version > s.Newest {
		return s, fmt.Errorf("%w: its tables are of version %d, and this ibid knows %d", ErrNewer, s.Version, s.Newest)
	}
	return s, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM tokens").Scan(&s.Tokens)
}
