package tlog

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"
	merkle "golang.org/x/mod/sumdb/tlog"
)

// Append adds the digests of manifests, signs a checkpoint that covers them and returns their indexes. A digest that is
// already in the log keeps its index, so an Append whose outcome is unknown can simply be repeated. More than
// [MaxLeaves] digests are added in several transactions. An [ErrInconsistent] means that the log was tampered with or
// restored from a backup; nothing was signed.
func (l *Log) Append(ctx context.Context, digests ...Leaf) ([]int64, error) {
	if err := l.opened(ctx); err != nil {
		return nil, fmt.Errorf("appending to the log: %w", err)
	}
	return l.appendAll(ctx, digests)
}

// appendAll is Append for a log that may not be open yet.
func (l *Log) appendAll(ctx context.Context, digests []Leaf) ([]int64, error) {
	var indexes []int64
	for first := true; first || len(digests) > 0; first = false {
		n := min(len(digests), MaxLeaves)
		at, err := l.append(ctx, digests[:n])
		if err != nil {
			return nil, fmt.Errorf("appending to the log: %w", err)
		}
		indexes, digests = append(indexes, at...), digests[n:]
	}
	if err := l.save(ctx); err != nil {
		return nil, fmt.Errorf("appending to the log: %w", err)
	}
	return indexes, nil
}

func (l *Log) append(ctx context.Context, digests []Leaf) ([]int64, error) {
	k, err := l.keys()
	if err != nil {
		return nil, err
	}
	seen := l.seen()
	var indexes []int64
	var head *Checkpoint
	err = l.tiles.Update(ctx, digests, func(b *Before) (*Growth, error) {
		var err error
		if head, err = l.checkHead(seen, b.Size, b.Checkpoint, hashesOf(b)); err != nil {
			return nil, err
		}
		var fresh []Leaf
		indexes, fresh = place(digests, b)
		if len(fresh) == 0 && k.signed(b.Checkpoint) {
			return nil, nil
		}
		var growth *Growth
		growth, head, err = l.grow(b, head, fresh, k.signer)
		return growth, err
	})
	if err != nil {
		return nil, err
	}
	l.setSeen(head)
	return indexes, nil
}

// place returns the index that each digest has or gets, and the new digests.
func place(digests []Leaf, b *Before) (indexes []int64, fresh []Leaf) {
	indexes = make([]int64, len(digests))
	added := make(map[Leaf]int64)
	for i, digest := range digests {
		at, ok := b.Known[digest]
		if !ok {
			at, ok = added[digest]
		}
		if !ok {
			at = b.Size + int64(len(fresh))
			added[digest] = at
			fresh = append(fresh, digest)
		}
		indexes[i] = at
	}
	return indexes, fresh
}

// signed reports whether a checkpoint has the signature of the current key, not just of a former one.
func (k *keys) signed(checkpoint []byte) bool {
	if checkpoint == nil {
		return false
	}
	_, err := ParseCheckpoint(checkpoint, k.vkeys[0])
	return err == nil
}

// grow computes the hashes that leaves add to the tree of a checkpoint, and signs the checkpoint of the new tree.
func (l *Log) grow(b *Before, from *Checkpoint, leaves []Leaf, by *signer) (*Growth, *Checkpoint, error) {
	size := b.Size + int64(len(leaves))
	if size > maxSize {
		return nil, nil, fmt.Errorf("the log is full: %d leaves", b.Size)
	}
	g := &Growth{Leaves: leaves, FirstHash: merkle.StoredHashCount(b.Size)}
	// The hashes needed are those that make up the root, which one query reads, and those just computed.
	var edge edgeReader
	switch root, err := merkle.TreeHash(b.Size, edge.learn(hashesOf(b))); {
	case err != nil:
		return nil, nil, fmt.Errorf("reading the edge of the tree: %w", err)
	case root != from.Root:
		return nil, nil, fmt.Errorf(
			"%w: the root of its %d leaves is %s, but %s was signed", ErrRewritten, b.Size, root, from.Root,
		)
	}
	edge.first, edge.added = g.FirstHash, &g.Hashes
	for i, leaf := range leaves {
		hashes, err := merkle.StoredHashes(b.Size+int64(i), leaf[:], &edge)
		if err != nil {
			return nil, nil, fmt.Errorf("hashing leaf %d: %w", b.Size+int64(i), err)
		}
		g.Hashes = append(g.Hashes, hashes...)
	}
	root, err := merkle.TreeHash(size, &edge)
	if err != nil {
		return nil, nil, fmt.Errorf("hashing the tree: %w", err)
	}
	head := &Checkpoint{Origin: l.origin, Size: size, Root: root}
	head.Note, err = note.Sign(&note.Note{Text: head.text()}, by)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the checkpoint: %w", err)
	}
	g.Checkpoint = head.Note
	return g, head, nil
}

// hashesOf reads within the transaction.
func hashesOf(b *Before) merkle.HashReader {
	return merkle.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		if len(indexes) == 0 {
			return nil, nil
		}
		return b.Hashes(indexes)
	})
}

// edgeReader holds the hashes that make up a tree's root, and those added since.
type edgeReader struct {
	known map[int64]Hash
	first int64   // index of the first added hash
	added *[]Hash // the added hashes
}

// learn returns a reader that stores in e what it reads from r.
func (e *edgeReader) learn(r merkle.HashReader) merkle.HashReader {
	e.known = make(map[int64]Hash)
	return merkle.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		hashes, err := r.ReadHashes(indexes)
		if err != nil {
			return nil, err
		}
		for i := range hashes {
			e.known[indexes[i]] = hashes[i]
		}
		return hashes, nil
	})
}

// ReadHashes implements [merkle.HashReader].
func (e *edgeReader) ReadHashes(indexes []int64) ([]Hash, error) {
	hashes := make([]Hash, len(indexes))
	for i, index := range indexes {
		if at := index - e.first; at >= 0 && at < int64(len(*e.added)) {
			hashes[i] = (*e.added)[at]
			continue
		}
		h, ok := e.known[index]
		if !ok {
			return nil, fmt.Errorf("hash %d is not on the tree's edge", index)
		}
		hashes[i] = h
	}
	return hashes, nil
}

// maxHashes is how many hashes are read from a store at a time: a tile.
const maxHashes = tileWidth

// Check recomputes the tree from all leaves and compares it with the stored checkpoint and every stored hash. It reads
// the whole log, in linear time and nearly constant memory. Appends may continue meanwhile.
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
			"%w: the leaves' root is %s, but %s was signed for these %d", ErrRewritten, root, head.Root, head.Size,
		)
	}
	return nil
}

// compareHashes compares stored hashes from index first with the expected ones.
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
				return fmt.Errorf("%w: hash %d does not match its leaves", ErrRewritten, indexes[i])
			}
		}
		first += int64(len(chunk))
	}
	return nil
}

// add advances the edge by the leaves that follow it. Of the earlier hashes, it keeps only those that make up the
// tree's root.
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
