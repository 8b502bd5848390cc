package tlog

import (
	"context"
	"fmt"
	"slices"

	merkle "golang.org/x/mod/sumdb/tlog"
)

// maxHashes is how many hashes are read from a store at a time: a tile.
const maxHashes = tileWidth

// Check hashes all leaves anew and compares everything that is kept with that: the checkpoint and every hash. It reads
// the whole log, in time linear in its size and memory that hardly depends on it. Appends may go on meanwhile.
func (l *Log) Check(ctx context.Context) error {
	head, err := l.head(ctx)
	if err != nil {
		return fmt.Errorf("checking the log: %w", err)
	}
	return l.checkLeaves(ctx, head, true)
}

// checkLeaves compares the leaves with a checkpoint and, if hashes is set, with the stored hashes.
func (l *Log) checkLeaves(ctx context.Context, head *Checkpoint, hashes bool) error {
	edge := &edgeReader{known: make(map[int64]Hash), added: new([]Hash)}
	for from := int64(0); from < head.Size; from += MaxLeaves {
		n := int(min(MaxLeaves, head.Size-from))
		leaves, err := l.tiles.Leaves(ctx, from, n)
		if err != nil {
			return fmt.Errorf("checking leaves %d to %d: %w", from, from+int64(n), err)
		}
		if err := edge.add(from, leaves); err != nil {
			return fmt.Errorf("checking leaves %d to %d: %w", from, from+int64(n), err)
		}
		if hashes {
			if err := l.compareHashes(ctx, edge.first, *edge.added); err != nil {
				return fmt.Errorf("checking leaves %d to %d: %w", from, from+int64(n), err)
			}
		}
	}
	root, err := merkle.TreeHash(head.Size, edge)
	if err != nil {
		return fmt.Errorf("checking %d leaves: %w", head.Size, err)
	}
	if root != head.Root {
		return fmt.Errorf(
			"%w: the leaves' root is %s, signed was %s for these %d", ErrRewritten, root, head.Root, head.Size,
		)
	}
	return nil
}

// compareHashes compares stored hashes from index first on with what they must be.
func (l *Log) compareHashes(ctx context.Context, first int64, want []Hash) error {
	for chunk := range slices.Chunk(want, maxHashes) {
		indexes := make([]int64, len(chunk))
		for i := range indexes {
			indexes[i] = first + int64(i)
		}
		got, err := l.tiles.Hashes(ctx, indexes)
		if err != nil {
			return err
		}
		for i := range chunk {
			if got[i] != chunk[i] {
				return fmt.Errorf("%w: hash %d is not that of its leaves", ErrRewritten, indexes[i])
			}
		}
		first += int64(len(chunk))
	}
	return nil
}

// add moves the edge on by leaves that follow it: what was known before and added is forgotten but for what the tree's
// root is made of.
func (e *edgeReader) add(from int64, leaves []Leaf) error {
	kept := &edgeReader{}
	if _, err := merkle.TreeHash(from, kept.learn(e)); err != nil {
		return err
	}
	e.known, e.first, *e.added = kept.known, merkle.StoredHashCount(from), (*e.added)[:0]
	for i, leaf := range leaves {
		hashes, err := merkle.StoredHashes(from+int64(i), leaf[:], e)
		if err != nil {
			return err
		}
		*e.added = append(*e.added, hashes...)
	}
	return nil
}
