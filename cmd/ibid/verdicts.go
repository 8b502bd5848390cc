package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/support"
)

// maxVerdicts is how many verdicts of judges are kept; when there are more, the older half is removed.
const maxVerdicts = 20_000

// verdictDir keeps the verdicts of judges in a directory, one file for each. It is a cache: what cannot be read or
// written is asked again.
type verdictDir string

// openVerdicts returns the user's verdicts, or nil if there is no directory for them.
func openVerdicts(cache string) support.Cache {
	if cache == "" {
		return nil
	}
	dir := verdictDir(filepath.Join(cache, "verdicts"))
	if os.MkdirAll(string(dir), 0o700) != nil {
		return nil
	}
	dir.prune()
	return dir
}

func (d verdictDir) path(key [sha256.Size]byte) string {
	return filepath.Join(string(d), hex.EncodeToString(key[:]))
}

// Get implements [support.Cache].
func (d verdictDir) Get(_ context.Context, key [sha256.Size]byte) ([]byte, bool) {
	value, err := os.ReadFile(d.path(key))
	return value, err == nil
}

// Put implements [support.Cache].
func (d verdictDir) Put(_ context.Context, key [sha256.Size]byte, value []byte) {
	_ = file.Replace(d.path(key), value, 0o600) // without it the judge is asked again
}

// prune removes the older half if there are too many.
func (d verdictDir) prune() {
	entries, err := os.ReadDir(string(d))
	if err != nil || len(entries) <= maxVerdicts {
		return
	}
	written := func(e os.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return written(a).Compare(written(b)) })
	for _, e := range entries[:len(entries)/2] {
		_ = os.Remove(filepath.Join(string(d), e.Name()))
	}
}
