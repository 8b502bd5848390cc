package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ibidhq/ibid/internal/sqlite"
)

// Copy copies the journal in dir, which another process may have open, to a new file for [Records]. The error is
// [os.ErrNotExist] if there is none.
func Copy(ctx context.Context, dir, to string) error {
	name := filepath.Join(dir, fileName)
	_, err := os.Stat(name)
	if err == nil {
		err = sqlite.Copy(ctx, name, to)
	}
	if err != nil {
		return fmt.Errorf("copying journal %s: %w", dir, err)
	}
	return nil
}

// Records calls do with each record of a copy whose checksum is right, in order.
func Records(ctx context.Context, name string, do func(record []byte) error) (err error) {
	db, err := openFile(name, "query_only(1)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "SELECT position, sum, record FROM records ORDER BY position")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e entry
		var at, sum int64
		if err := rows.Scan(&at, &sum, &e.record); err != nil {
			return err
		}
		if e.at = Position(at); e.sum() != sum { //nolint:gosec // it counts from 1
			continue
		}
		if err := do(e.record); err != nil {
			return err
		}
	}
	return rows.Err()
}
