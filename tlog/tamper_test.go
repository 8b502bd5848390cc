package tlog

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	merkle "golang.org/x/mod/sumdb/tlog"
)

// Whoever can write to the database can do everything that is done here to MemoryTiles.

func testKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func testOptions(tiles Tiles, file string) *Options {
	return &Options{Origin: "agent.example/ibid", Tiles: tiles, Key: testKey(1), File: file}
}

func testLeaf(i int) Leaf { return sha256.Sum256(fmt.Append(nil, i)) }

func testLeaves(from, to int) []Leaf {
	var leaves []Leaf
	for i := from; i < to; i++ {
		leaves = append(leaves, testLeaf(i))
	}
	return leaves
}

func grown(t *testing.T, tiles *MemoryTiles, file string, to int) *Log {
	t.Helper()
	l, err := Open(t.Context(), testOptions(tiles, file))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), testLeaves(0, to)...); err != nil {
		t.Fatal(err)
	}
	return l
}

// backup is the content of a database backup.
func (m *MemoryTiles) backup() *MemoryTiles {
	return &MemoryTiles{
		leaves: slices.Clone(m.leaves), at: maps.Clone(m.at), hashes: slices.Clone(m.hashes), checkpoint: slices.Clone(m.checkpoint),
	}
}

func (m *MemoryTiles) restore(from *MemoryTiles) {
	m.leaves, m.at, m.hashes, m.checkpoint = from.leaves, from.at, from.hashes, from.checkpoint
}

func handlerGet(l *Log) Get {
	h := l.Handler()
	return func(ctx context.Context, path string) ([]byte, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+path, http.NoBody))
		if w.Code != http.StatusOK {
			return nil, fmt.Errorf("status %d: %w", w.Code, ErrNotFound)
		}
		return w.Body.Bytes(), nil
	}
}

// The changes to a log of 300 leaves, and the results of reopening it, of an Append to the running log and of a full
// check.
func TestTampering(t *testing.T) {
	for _, test := range []struct {
		name              string
		do                func(m, earlier *MemoryTiles)
		open, append, all error
	}{
		{"nothing", func(*MemoryTiles, *MemoryTiles) {}, nil, nil, nil},
		{"a leaf is flipped", func(m, _ *MemoryTiles) { m.leaves[17][0] ^= 1 }, ErrRewritten, nil, ErrRewritten},
		{"a leaf and its hash are flipped", func(m, _ *MemoryTiles) {
			m.leaves[17][0] ^= 1
			m.hashes[merkle.StoredHashIndex(0, 17)] = merkle.RecordHash(m.leaves[17][:])
		}, ErrRewritten, nil, ErrRewritten},
		{"two leaves change places", func(m, _ *MemoryTiles) { m.leaves[3], m.leaves[4] = m.leaves[4], m.leaves[3] }, ErrRewritten, nil, ErrRewritten},
		{"a hash inside the tree is flipped", func(m, _ *MemoryTiles) { m.hashes[5][0] ^= 1 }, nil, nil, ErrRewritten},
		{"a hash at the edge is flipped", func(m, _ *MemoryTiles) {
			m.hashes[merkle.StoredHashIndex(8, 0)][0] ^= 1
		}, ErrRewritten, ErrRewritten, ErrRewritten},
		{"the last leaf is taken out", func(m, _ *MemoryTiles) { m.leaves = m.leaves[:299] }, ErrShorter, ErrShorter, ErrShorter},
		{"a leaf is put in", func(m, _ *MemoryTiles) { m.leaves = append(m.leaves, Leaf{}) }, ErrRewritten, ErrRewritten, ErrRewritten},
		{"the checkpoint is taken out", func(m, _ *MemoryTiles) { m.checkpoint = nil }, ErrRewritten, ErrRewritten, ErrRewritten},
		{"the checkpoint is broken", func(m, _ *MemoryTiles) { m.checkpoint[40] ^= 1 }, ErrForeign, ErrForeign, ErrForeign},
		{"the checkpoint is an earlier one", func(m, e *MemoryTiles) { m.checkpoint = e.checkpoint }, ErrRewritten, ErrRewritten, ErrRewritten},
		{"another key signs", func(m, _ *MemoryTiles) { m.restore(forge(2, "agent.example/ibid", 300)) }, ErrForeign, ErrForeign, ErrForeign},
		{"another log", func(m, _ *MemoryTiles) { m.restore(forge(1, "other.example/ibid", 300)) }, ErrForeign, ErrForeign, ErrForeign},
		{"an earlier state is put back", (*MemoryTiles).restore, ErrShorter, ErrShorter, ErrShorter},
		{"everything is taken out", func(m, _ *MemoryTiles) { m.restore(new(MemoryTiles)) }, ErrShorter, ErrShorter, ErrShorter},
		{"a fork of the same size", func(m, e *MemoryTiles) { m.restore(fork(e, 300)) }, ErrRewritten, ErrRewritten, ErrRewritten},
		{"a longer fork", func(m, e *MemoryTiles) { m.restore(fork(e, 400)) }, ErrRewritten, ErrRewritten, ErrRewritten},
		{"a shorter fork", func(m, e *MemoryTiles) { m.restore(fork(e, 299)) }, ErrShorter, ErrShorter, ErrShorter},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, file := new(MemoryTiles), filepath.Join(t.TempDir(), "checkpoint")
			grown(t, m, file, 200)
			earlier := m.backup()
			l := grown(t, m, file, 300)
			signed := slices.Clone(m.checkpoint)
			test.do(m, earlier)
			before := m.backup()

			if err := l.Check(t.Context()); !errors.Is(err, test.all) || (err == nil) != (test.all == nil) {
				t.Errorf("Check = %v, want %v", err, test.all)
			}
			if _, err := Open(t.Context(), testOptions(m, file)); !errors.Is(err, test.open) {
				t.Errorf("Open = %v, want %v", err, test.open)
			}
			_, err := l.Append(t.Context(), testLeaf(1000))
			if !errors.Is(err, test.append) {
				t.Errorf("Append = %v, want %v", err, test.append)
			}
			if err != nil {
				if !errors.Is(err, ErrInconsistent) {
					t.Errorf("Append = %v, want an ErrInconsistent", err)
				}
				if !bytes.Equal(m.checkpoint, before.checkpoint) || len(m.leaves) != len(before.leaves) {
					t.Error("a log that is inconsistent has signed another checkpoint")
				}
				if got, err := l.Checkpoint(t.Context()); err == nil && !bytes.Equal(got, signed) {
					t.Errorf("a log that is inconsistent serves the checkpoint %q", got)
				}
			}
		})
	}
}

// fork is a log that was restored and continued differently, by a process without the file.
func fork(earlier *MemoryTiles, to int) *MemoryTiles {
	m := earlier.backup()
	l, err := Open(context.Background(), testOptions(m, ""))
	if err == nil {
		_, err = l.Append(context.Background(), testLeaves(1_000_000+len(m.leaves), 1_000_000+to)...)
	}
	if err != nil {
		panic(err)
	}
	return m
}

func forge(key byte, origin string, n int) *MemoryTiles {
	m := new(MemoryTiles)
	l, err := Open(context.Background(), &Options{Origin: origin, Key: testKey(key), Tiles: m})
	if err == nil {
		_, err = l.Append(context.Background(), testLeaves(0, n)...)
	}
	if err != nil {
		panic(err)
	}
	return m
}

// A proof that does not hold is not returned, and a monitor detects a changed entry, as reopening the log would.
func TestTamperedServing(t *testing.T) {
	m := new(MemoryTiles)
	l := grown(t, m, "", 300)
	watch := &Monitor{VerifierKey: l.VerifierKey(), Get: handlerGet(l)}
	if _, err := watch.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.leaves[17][0] ^= 1
	read, err := 0, error(nil)
	for _, err = range watch.Leaves(t.Context(), 0) {
		read++
	}
	if !errors.Is(err, ErrRewritten) || read != 1 {
		t.Errorf("Leaves = %v after %d, want ErrRewritten for the bundle", err, read)
	}
	m.hashes[merkle.StoredHashIndex(0, 17)][0] ^= 1
	if _, err := l.Proof(t.Context(), testLeaf(16)); !errors.Is(err, ErrRewritten) {
		t.Errorf("Proof = %v, want ErrRewritten", err)
	}
}

// A third party detects, with only the vkey and HTTP, that a log was restored, rewritten or forked.
func TestMonitorNotices(t *testing.T) {
	for _, test := range []struct {
		name string
		next func(*MemoryTiles) *MemoryTiles // what is served afterwards
		want error
	}{
		{"it grows", func(m *MemoryTiles) *MemoryTiles {
			l, err := Open(context.Background(), testOptions(m, ""))
			if err == nil {
				_, err = l.Append(context.Background(), testLeaf(5000))
			}
			if err != nil {
				panic(err)
			}
			return m
		}, nil},
		{"an empty log", func(*MemoryTiles) *MemoryTiles { return new(MemoryTiles) }, ErrShorter},
		{"a fork", func(m *MemoryTiles) *MemoryTiles { return fork(forge(1, "agent.example/ibid", 100), 400) }, ErrRewritten},
		{"a fork of the same size", func(m *MemoryTiles) *MemoryTiles { return fork(forge(1, "agent.example/ibid", 100), 300) }, ErrRewritten},
	} {
		m := forge(1, "agent.example/ibid", 300)
		l, err := Open(t.Context(), testOptions(m, ""))
		if err != nil {
			t.Fatal(err)
		}
		watch := &Monitor{VerifierKey: l.VerifierKey(), Get: handlerGet(l)}
		if _, err := watch.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
		last := watch.Last
		served, err := Open(t.Context(), testOptions(test.next(m), ""))
		if err != nil {
			t.Fatal(err)
		}
		watch.Get = handlerGet(served)
		c, err := watch.Update(t.Context())
		if !errors.Is(err, test.want) {
			t.Errorf("%s: Update = %v, want %v", test.name, err, test.want)
		}
		if err != nil && (watch.Last != last || c == nil || !errors.Is(err, ErrInconsistent)) {
			t.Errorf("%s: the evidence is lost: Last %v, the new one %v, %v", test.name, watch.Last, c, err)
		}
	}
}

// A copy that is damaged, of another log or newer than the database prevents opening the log.
func TestCopy(t *testing.T) {
	other := forge(2, "agent.example/ibid", 1)
	for _, test := range []struct {
		name string
		copy []byte
		want error
	}{
		{"missing", nil, nil},
		{"empty", []byte{}, ErrForeign},
		{"another key's", other.checkpoint, ErrForeign},
		{"another log's", forge(1, "other.example/ibid", 1).checkpoint, ErrForeign},
		{"endless", make([]byte, 2*MaxCheckpoint), ErrForeign},
		{"older", forge(1, "agent.example/ibid", 2).checkpoint, nil},
		{"newer", forge(1, "agent.example/ibid", 4).checkpoint, ErrShorter},
		{"a fork's", fork(forge(1, "agent.example/ibid", 1), 2).checkpoint, ErrRewritten},
	} {
		file := filepath.Join(t.TempDir(), "checkpoint")
		if test.copy != nil {
			if err := os.WriteFile(file, test.copy, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m := forge(1, "agent.example/ibid", 3)
		if _, err := Open(t.Context(), testOptions(m, file)); !errors.Is(err, test.want) {
			t.Errorf("%s: Open = %v, want %v", test.name, err, test.want)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if want := test.copy; test.want != nil && !bytes.Equal(got, want) {
			t.Errorf("%s: the copy was replaced", test.name)
		} else if test.want == nil && !bytes.Equal(got, m.checkpoint) {
			t.Errorf("%s: the copy is %q, want the checkpoint", test.name, got)
		}
	}
}
