package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/ibidhq/ibid/internal/sqlite"
)

// maxMigration is how long opening waits for another process that is migrating a SQLite file.
const maxMigration = time.Minute

// migrations run once each, in the order of their numbers. They only go forward, and a released one never changes;
// testdata has a database of each version, which the tests open.
//
//go:embed migrations/*.sql
var migrations embed.FS

// versionTable holds the number of the last migration.
const versionTable = "ibid_version"

// dialect holds what differs between the engines in the migrations.
type dialect struct {
	Postgres  bool
	Number    string // a 64-bit integer; in SQLite, one that as a primary key is the rowid
	Bytes     string // binary data
	Clustered string // stores a table in the order of its primary key
}

func newDialect(postgres bool) dialect {
	if postgres {
		return dialect{true, "BIGINT", "BYTEA", ""}
	}
	return dialect{false, "INTEGER", "BLOB", " WITHOUT ROWID"}
}

// migrate brings the tables of db up to date. lock excludes other processes until the function that it returns is
// called.
func (d dialect) migrate(
	ctx context.Context, db *sql.DB, lock func(context.Context) (func() error, error),
) (err error) {
	provider, err := d.provider(db)
	if err != nil {
		return err
	}
	unlock, err := lock(ctx)
	if err != nil {
		return fmt.Errorf("waiting for another migration: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	current, target, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return newerError(current, target)
	}
	if current == 0 {
		if err := d.refuseOlder(ctx, db); err != nil {
			return err
		}
	}
	_, err = provider.Up(ctx)
	return err
}

// migratePostgres brings the tables up to date, excluding other processes. It uses connections of its own, because a
// migration may take any time.
func migratePostgres(ctx context.Context, config *pgx.ConnConfig) error {
	db := openPGX(config)
	err := newDialect(true).migrate(ctx, db, func(ctx context.Context) (func() error, error) {
		conn, err := db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return func() error {
			_, err := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
			return errors.Join(err, conn.Close())
		}, nil
	})
	return unreachable(errors.Join(err, db.Close()))
}

// sqliteLock returns a lock between processes: on an empty file beside the database. A lock on the database itself
// would block the migration.
func sqliteLock(name string) func(context.Context) (func() error, error) {
	return func(ctx context.Context) (func() error, error) {
		return sqlite.Lock(ctx, name+"-lock", maxMigration, nil)
	}
}

// newerError returns the error for tables that a newer ibid has changed.
func newerError(is, known int64) error {
	return fmt.Errorf("%w: its tables have version %d, and this ibid knows up to %d: use the newer ibid, or a copy "+
		"from before it ran", ErrNewer, is, known)
}

// refuseOlder fails if db has tables but no version: before the first release, the version was stored elsewhere.
func (d dialect) refuseOlder(ctx context.Context, db *sql.DB) error {
	older, err := d.hasTable(ctx, db, "calls")
	if err == nil && older {
		err = fmt.Errorf("%w: start with an empty data directory or database", ErrOlder)
	}
	return err
}

func (d dialect) hasTable(ctx context.Context, db *sql.DB, name string) (bool, error) {
	query := "SELECT count(*) FROM sqlite_schema WHERE name = $1"
	if d.Postgres {
		query = "SELECT count(*) FROM pg_class WHERE oid = to_regclass($1)"
	}
	var count int
	err := db.QueryRowContext(ctx, query, name).Scan(&count)
	return count > 0, err
}

func (d dialect) provider(db *sql.DB) (*goose.Provider, error) {
	kind := goose.DialectSQLite3
	if d.Postgres {
		kind = goose.DialectPostgres
	}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]*goose.Migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		var b strings.Builder
		t, err := template.ParseFS(migrations, name)
		if err == nil {
			err = t.Execute(&b, d)
		}
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		steps = append(
			steps,
			goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, b.String())
				if err == nil && version == 5 && !d.Postgres { // SQLite's index is new and empty
					err = (&transaction{querier: tx, logger: slog.New(slog.DiscardHandler)}).reindex(ctx)
				}
				return err
			}}, nil),
		)
	}
	return goose.NewProvider(kind, db, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true),
		goose.WithTableName(versionTable))
}

// Schema is the state of a database's tables.
type Schema struct {
	Version int64 // of the tables; 0 if there are none yet
	Newest  int64 // the version to which [Open] would migrate them
	Tokens  int   // access tokens, including revoked ones
}

// Inspect examines the database that dsn names, like [Open], without creating or changing anything. It fails with
// [ErrNewer] if a newer ibid has changed the database.
func Inspect(ctx context.Context, dsn string) (*Schema, error) {
	d := newDialect(IsPostgres(dsn))
	var db *sql.DB
	var err error
	if d.Postgres {
		var config *pgx.ConnConfig
		if config, err = parsePostgres(dsn); err == nil {
			config.RuntimeParams["default_transaction_read_only"] = "on"
			db = openPGX(config)
		}
	} else {
		db, err = sqlite.Open(dsn, url.Values{"mode": {"ro"}, "_pragma": {sqlite.BusyTimeout(5 * time.Second)}})
	}
	var s *Schema
	if err == nil {
		s, err = inspect(ctx, db, d)
		err = errors.Join(unreachable(err), db.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("inspecting the store: %w", err)
	}
	return s, nil
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
	switch found, err := d.hasTable(ctx, db, versionTable); {
	case err != nil:
		return s, err
	case !found:
		return s, d.refuseOlder(ctx, db)
	}
	err = db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+versionTable).Scan(&s.Version)
	if err != nil || s.Version == 0 {
		return s, err
	}
	if s.Version > s.Newest {
		return s, newerError(s.Version, s.Newest)
	}
	return s, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM tokens").Scan(&s.Tokens)
}
