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
	if current == 0 { // an earlier ibid kept its version elsewhere
		if rows, err := db.QueryContext(ctx, "SELECT 1 FROM calls WHERE n < 0"); err == nil {
			return errors.Join(fmt.Errorf("%w: start with an empty data directory or database", ErrOlder), rows.Close())
		}
	}
	_, err = provider.Up(ctx)
	return err
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
		goose.WithTableName("ibid_version"))
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
