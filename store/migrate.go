package store

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"text/template"

	"github.com/pressly/goose/v3"
)

// migrations are numbered and run in that order, once. They only go forward: one that is here does not change any more,
// and testdata has a database of each version, which the tests open.
//
//go:embed migrations/*.sql
var migrations embed.FS

// versionTable is where the number of the last migration stands.
const versionTable = "ibid_version"

// dialect is what the migrations say differently for the two engines.
type dialect struct {
	Postgres  bool
	Number    string // an integer of 64 bits; in SQLite one that as a primary key is the row's place
	Bytes     string // any bytes
	Clustered string // how a table is kept in the order of its primary key
}

func newDialect(postgres bool) dialect {
	if postgres {
		return dialect{true, "BIGINT", "BYTEA", ""}
	}
	return dialect{false, "INTEGER", "BLOB", " WITHOUT ROWID"}
}

// migrate brings the tables of db up to date. lock keeps other processes from doing so until what it returns is called.
func (d dialect) migrate(
	ctx context.Context, db *sql.DB,
	lock func(context.Context) (func() error, error),
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
		return fmt.Errorf(
			"%w: its tables are of version %d, and this ibid knows %d: use the newer ibid, or a copy from before it ran",
			ErrNewer,
			current,
			target,
		)
	}
	if current == 0 {
		if err := d.refuseOlder(ctx, db); err != nil {
			return err
		}
	}
	_, err = provider.Up(ctx)
	return err
}

// refuseOlder fails if db, which has no version, has tables all the same: before the first release it was kept elsewhere.
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
		text, err := d.render(name)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		steps = append(
			steps,
			goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, text)
				return err
			}}, nil),
		)
	}
	return goose.NewProvider(kind, db, nil, goose.WithGoMigrations(steps...), goose.WithDisableGlobalRegistry(true),
		goose.WithTableName(versionTable))
}

func (d dialect) render(name string) (string, error) {
	t, err := template.ParseFS(migrations, name)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, d)
	return b.String(), err
}
