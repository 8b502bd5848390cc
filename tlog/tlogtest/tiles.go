package tlogtest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ibidhq/ibid/tlog"
)

// Opener returns a handle on the store with a name. In one test the first handle of a name has an empty store, and
// later ones the same store, as if another process had opened it.
type Opener func(name string) tlog.Tiles

// TestTiles tests a store. It calls start once for each of its subtests, all of whose stores are new.
func TestTiles(t *testing.T, start func(t *testing.T) Opener) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open Opener)
	}{
		{"empty", exerciseEmpty},
		{"update", exerciseUpdate},
		{"nothing", exerciseNothing},
		{"missing", exerciseMissing},
		{"large", exerciseLarge},
		{"log", exerciseLog},
		{"together", exerciseTogether},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, start(t)) })
	}
}

// Digest returns the digest of an imaginary manifest.
func Digest(i int) tlog.Leaf { return sha256.Sum256(fmt.Appendf(nil, "manifest %d", i)) }

// Key returns a well-known key, different for each seed.
func Key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// growth has a meaningless checkpoint and hashes: to a store they are octets.
func growth(checkpoint string, firstHash int64, hashes []tlog.Hash, leaves ...tlog.Leaf) *tlog.Growth {
	return &tlog.Growth{Leaves: leaves, FirstHash: firstHash, Hashes: hashes, Checkpoint: []byte(checkpoint)}
}

func put(t *testing.T, tiles tlog.Tiles, g *tlog.Growth) {
	t.Helper()
	if err := tiles.Update(
		t.Context(), g.Leaves, func(*tlog.Before) (*tlog.Growth, error) { return g, nil },
	); err != nil {
		t.Fatal(err)
	}
}

func checkHead(t *testing.T, tiles tlog.Tiles, size int64, checkpoint string) {
	t.Helper()
	n, b, err := tiles.Head(t.Context())
	if err != nil || n != size || string(b) != checkpoint || (b == nil) != (checkpoint == "") {
		t.Errorf("Head() = %d, %q, %v, want %d, %q", n, b, err, size, checkpoint)
	}
}

func exerciseEmpty(t *testing.T, open Opener) {
	t.Helper()
	tiles := open("log")
	checkHead(t, tiles, 0, "")
	if leaves, err := tiles.Leaves(t.Context(), 0, 0); err != nil || len(leaves) > 0 {
		t.Errorf("Leaves(0, 0) = %v, %v, want none", leaves, err)
	}
	if hashes, err := tiles.Hashes(t.Context(), nil); err != nil || len(hashes) > 0 {
		t.Errorf("Hashes() = %v, %v, want none", hashes, err)
	}
	err := tiles.Update(t.Context(), []tlog.Leaf{Digest(0)}, func(b *tlog.Before) (*tlog.Growth, error) {
		if b.Size != 0 || b.Checkpoint != nil || len(b.Known) > 0 {
			t.Errorf("an empty store has %+v", b)
		}
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
	checkHead(t, tiles, 0, "")
}

func exerciseUpdate(t *testing.T, open Opener) {
	t.Helper()
	tiles := open("log")
	put(t, tiles, growth("one", 0, []tlog.Hash{{1}, {2}, {3}}, Digest(0), Digest(1)))
	put(t, tiles, growth("two", 3, []tlog.Hash{{4}, {5}}, Digest(2)))
	checkReads(t, tiles)
	checkReads(t, open("log"))
	err := tiles.Update(
		t.Context(),
		[]tlog.Leaf{Digest(7), Digest(2), Digest(0)},
		func(b *tlog.Before) (*tlog.Growth, error) {
			want := map[tlog.Leaf]int64{Digest(0): 0, Digest(2): 2}
			if b.Size != 3 || string(b.Checkpoint) != "two" || !maps.Equal(b.Known, want) {
				t.Errorf("Update has read %+v", b)
			}
			if got, err := b.Hashes([]int64{2, 1}); err != nil || !slices.Equal(got, []tlog.Hash{{3}, {2}}) {
				t.Errorf("Hashes(2, 1) = %v, %v inside Update", got, err)
			}
			if got, err := b.Hashes([]int64{5}); err == nil {
				t.Errorf("Hashes(5) = %v inside Update, want an error", got)
			}
			return &tlog.Growth{FirstHash: 5, Checkpoint: []byte("three")}, nil // the checkpoint alone
		},
	)
	if err != nil {
		t.Error(err)
	}
	checkHead(t, tiles, 3, "three")
}

func checkReads(t *testing.T, tiles tlog.Tiles) {
	t.Helper()
	checkHead(t, tiles, 3, "two")
	if got, err := tiles.Hashes(t.Context(), []int64{4, 0, 3}); err != nil ||
		!slices.Equal(got, []tlog.Hash{{5}, {1}, {4}}) {
		t.Errorf("Hashes(4, 0, 3) = %v, %v", got, err)
	}
	if got, err := tiles.Leaves(t.Context(), 1, 2); err != nil ||
		!slices.Equal(got, []tlog.Leaf{Digest(1), Digest(2)}) {
		t.Errorf("Leaves(1, 2) = %x, %v", got, err)
	}
	for i := range 3 {
		if at, err := tiles.Find(t.Context(), Digest(i)); err != nil || at != int64(i) {
			t.Errorf("Find(%d) = %d, %v", i, at, err)
		}
	}
}

func exerciseNothing(t *testing.T, open Opener) {
	t.Helper()
	tiles := open("log")
	put(t, tiles, growth("one", 0, []tlog.Hash{{1}}, Digest(0)))
	wrong := errors.New("wrong")
	err := tiles.Update(t.Context(), []tlog.Leaf{Digest(1)},
		func(*tlog.Before) (*tlog.Growth, error) { return nil, wrong })
	if !errors.Is(err, wrong) {
		t.Errorf("Update = %v, want the error of grow", err)
	}
	// A growth that does not fit, because the leaf exists or because hashes before its own are missing, is refused as a
	// whole.
	for _, g := range []*tlog.Growth{
		growth("two", 1, []tlog.Hash{{2}, {3}}, Digest(1), Digest(0)),
		growth("two", 0, []tlog.Hash{{2}}, Digest(1)),
	} {
		err := tiles.Update(t.Context(), nil, func(*tlog.Before) (*tlog.Growth, error) { return g, nil })
		if err == nil {
			t.Errorf("Update took %+v", g)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = tiles.Update(ctx, nil, func(*tlog.Before) (*tlog.Growth, error) {
		return &tlog.Growth{FirstHash: 1, Checkpoint: []byte("late")}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Update = %v after its context was cancelled", err)
	}
	checkHead(t, tiles, 1, "one")
	if got, err := tiles.Find(t.Context(), Digest(1)); !errors.Is(err, tlog.ErrNotFound) {
		t.Errorf("Find = %d, %v, want ErrNotFound", got, err)
	}
}

func exerciseMissing(t *testing.T, open Opener) {
	t.Helper()
	tiles := open("log")
	put(t, tiles, growth("one", 0, []tlog.Hash{{1}, {2}, {3}}, Digest(0), Digest(1)))
	for _, indexes := range [][]int64{{3}, {0, 99}, {-1}} {
		if got, err := tiles.Hashes(t.Context(), indexes); err == nil {
			t.Errorf("Hashes(%d) = %v, want an error", indexes, got)
		}
	}
	for _, r := range [][2]int64{{2, 1}, {0, 3}, {-1, 1}, {1 << 62, 1}} {
		if got, err := tiles.Leaves(t.Context(), r[0], int(r[1])); err == nil {
			t.Errorf("Leaves(%d) = %x, want an error", r, got)
		}
	}
	if at, err := tiles.Find(t.Context(), tlog.Leaf{}); !errors.Is(err, tlog.ErrNotFound) {
		t.Errorf("Find = %d, %v, want ErrNotFound", at, err)
	}
}

// exerciseLarge writes and reads one more than the maximum at a time.
func exerciseLarge(t *testing.T, open Opener) {
	t.Helper()
	l := openLog(t, open("log"), "")
	digests := make([]tlog.Leaf, tlog.MaxLeaves+1)
	for i := range digests {
		digests[i] = Digest(i)
	}
	checkAppend(t, l, 0, digests)
	checkAppend(t, l, 0, digests) // again: nothing new
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
	checkProof(t, l, tlog.MaxLeaves, tlog.MaxLeaves+1)
}

func exerciseLog(t *testing.T, open Opener) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "checkpoint")
	for i := range 20 {
		l := openLog(t, open("log"), file) // each time as after a start
		checkAppend(t, l, 0, []tlog.Leaf{Digest(0)})
		checkAppend(t, l, int64(i), []tlog.Leaf{Digest(i)})
		checkProof(t, l, i, int64(i+1))
		if err := l.Check(t.Context()); err != nil {
			t.Fatalf("%d leaves: %v", i+1, err)
		}
	}
	if _, err := tlog.Open(t.Context(),
		&tlog.Options{Origin: origin, Tiles: open("other"), Key: Key(1), File: file}); !errors.Is(
		err, tlog.ErrShorter,
	) {
		t.Errorf("Open = %v with another store, want ErrShorter", err)
	}
}

// exerciseTogether appends to one log from two processes at once, with some leaves in common.
func exerciseTogether(t *testing.T, open Opener) {
	t.Helper()
	const each, common = 40, 10
	file := filepath.Join(t.TempDir(), "checkpoint")
	var g sync.WaitGroup
	for process := range 2 {
		l := openLog(t, open("log"), file)
		for worker := range 2 {
			g.Go(func() {
				from := (2*process + worker) * (each - common)
				for i := range each {
					if _, err := l.Append(t.Context(), Digest(from+i)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	g.Wait()
	l := openLog(t, open("log"), file)
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
	const all = 4*(each-common) + common
	for i := range all {
		checkProof(t, l, i, all)
	}
}

const origin = "agent.example/ibid"

func openLog(t *testing.T, tiles tlog.Tiles, file string) *tlog.Log {
	t.Helper()
	l, err := tlog.Open(t.Context(), &tlog.Options{Origin: origin, Tiles: tiles, Key: Key(1), File: file})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func checkAppend(t *testing.T, l *tlog.Log, want int64, digests []tlog.Leaf) {
	t.Helper()
	indexes, err := l.Append(t.Context(), digests...)
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range indexes {
		if at != want+int64(i) {
			t.Fatalf("Append = index %d for digest %d, want %d", at, i, want+int64(i))
		}
	}
}

func checkProof(t *testing.T, l *tlog.Log, i int, size int64) {
	t.Helper()
	proof, err := l.Proof(t.Context(), Digest(i))
	if err != nil {
		t.Errorf("the proof of digest %d: %v", i, err)
		return
	}
	c, err := tlog.VerifyProof(proof, Digest(i), l.VerifierKey())
	if err != nil || c.Size != size {
		t.Errorf("VerifyProof = %+v, %v for digest %d, want a tree of %d", c, err, i, size)
	}
}
