package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ibidhq/ibid/tlog"
)

// Tiles returns the storage of the transparency log. There is one log for the whole store, shared by all tenants.
func (s *Store) Tiles() tlog.Tiles { return (*logTiles)(s) }

type logTiles Store

// Update implements [tlog.Tiles].
func (l *logTiles) Update(
	ctx context.Context, leaves []tlog.Leaf, grow func(*tlog.Before) (*tlog.Growth, error),
) error {
	err := (*Store)(l).update(ctx, func(tx *transaction) error {
		before := &tlog.Before{Known: map[tlog.Leaf]int64{}}
		var err error
		if before.Size, before.Checkpoint, err = logHead(ctx, tx, tx.forUpdate()); err != nil {
			return err
		}
		before.Hashes = func(indexes []int64) ([]tlog.Hash, error) { return logHashes(ctx, tx, indexes) }
		values := rowsOf(leaves, func(leaf tlog.Leaf) []any { return []any{leaf[:]} })
		known := &tuples{before: "SELECT n, leaf FROM log_leaves WHERE leaf IN (", row: "$", after: ")"}
		err = tx.list(ctx, known, values, func(rows *sql.Rows) error {
			n, leaf, err := scanHash(rows)
			before.Known[leaf] = n
			return err
		})
		if err != nil {
			return err
		}
		growth, err := grow(before)
		if growth == nil || err != nil {
			return err
		}
		if err := insertHashes(ctx, tx, "log_leaves", "leaf", before.Size, growth.Leaves); err != nil {
			return err
		}
		if err := insertHashes(ctx, tx, "log_hashes", "hash", growth.FirstHash, growth.Hashes); err != nil {
			return err
		}
		return tx.exec(ctx, "UPDATE log_head SET size = $1, checkpoint = $2 WHERE one = 1",
			before.Size+int64(len(growth.Leaves)), growth.Checkpoint)
	})
	return wrap(err, "writing the log")
}

// insertHashes adds rows numbered from first.
func insertHashes[H ~[32]byte](
	ctx context.Context, tx *transaction, table, column string, first int64, list []H,
) error {
	values := make([][]any, 0, len(list))
	for i, h := range list {
		values = append(values, []any{first + int64(i), h[:]})
	}
	return tx.execAll(ctx, tx.insertion(table, "n, "+column, ""), values)
}

// Head implements [tlog.Tiles].
func (l *logTiles) Head(ctx context.Context) (int64, []byte, error) {
	size, checkpoint, err := logHead(ctx, l.db, "")
	return size, checkpoint, wrap(err, "reading the head of the log")
}

func logHead(ctx context.Context, q querier, lock string) (size int64, checkpoint []byte, err error) {
	found, err := find(ctx, q, []any{&size, &checkpoint}, "SELECT size, checkpoint FROM log_head WHERE one = 1"+lock)
	if err == nil && !found {
		err = fmt.Errorf("%w: the log has no head", errDamaged)
	}
	return size, checkpoint, err
}

// Hashes implements [tlog.Tiles].
func (l *logTiles) Hashes(ctx context.Context, indexes []int64) ([]tlog.Hash, error) {
	list, err := logHashes(ctx, l.db, indexes)
	return list, wrap(err, "reading hashes of the log")
}

func logHashes(ctx context.Context, q querier, indexes []int64) ([]tlog.Hash, error) {
	known := make(map[int64]tlog.Hash, len(indexes))
	for _, n := range indexes {
		known[n] = tlog.Hash{}
	}
	missing := len(known)
	for some := range slices.Chunk(slices.Sorted(maps.Keys(known)), maxTuples) {
		var c conditions
		in(&c, "n", some)
		err := each(ctx, q, func(rows *sql.Rows) error {
			n, hash, err := scanHash(rows)
			known[n] = hash
			missing--
			return err
		}, "SELECT n, hash FROM log_hashes WHERE "+c.where[0], c.args...)
		if err != nil {
			return nil, err
		}
	}
	if missing > 0 {
		return nil, fmt.Errorf("%w: %d of %d hashes of the log are missing", errDamaged, missing, len(known))
	}
	list := make([]tlog.Hash, 0, len(indexes))
	for _, n := range indexes {
		list = append(list, known[n])
	}
	return list, nil
}

// scanHash reads a number and a value of the size of a hash.
func scanHash(rows *sql.Rows) (n int64, hash [32]byte, err error) {
	var b []byte
	if err := rows.Scan(&n, &b); err != nil {
		return 0, hash, err
	}
	if len(b) != len(hash) {
		return 0, hash, fmt.Errorf("%w: a value of the log has %d bytes instead of %d", errDamaged, len(b), len(hash))
	}
	return n, [32]byte(b), nil
}

// Leaves implements [tlog.Tiles].
func (l *logTiles) Leaves(ctx context.Context, from int64, n int) ([]tlog.Leaf, error) {
	list := make([]tlog.Leaf, 0, max(0, min(n, tlog.MaxLeaves)))
	err := each(ctx, l.db, func(rows *sql.Rows) error {
		at, leaf, err := scanHash(rows)
		if err == nil && at != from+int64(len(list)) {
			err = errDamaged
		}
		list = append(list, leaf)
		return err
	}, "SELECT n, leaf FROM log_leaves WHERE n >= $1 AND n < $2 ORDER BY n", from, from+int64(n))
	if err == nil && len(list) != n {
		err = errors.New("the log has fewer")
	}
	return list, wrap(err, "reading leaves %d to %d of the log", from, from+int64(n))
}

// Find implements [tlog.Tiles].
func (l *logTiles) Find(ctx context.Context, leaf tlog.Leaf) (int64, error) {
	var at int64
	found, err := find(ctx, l.db, []any{&at}, "SELECT n FROM log_leaves WHERE leaf = $1", leaf[:])
	if err == nil && !found {
		err = tlog.ErrNotFound
	}
	return at, wrap(err, "looking up a leaf of the log")
}
