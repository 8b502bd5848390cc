package tlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	merkle "golang.org/x/mod/sumdb/tlog"
)

const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight

	entriesLevel = -1 // entry bundles; x/mod's level of the data

	// maxTilePath is slightly more than the length of a tile's path in a log of maxSize leaves.
	maxTilePath = 48
)

// tilePath returns the path of a tile in C2SP's form. x/mod's form also has the height, which C2SP fixes, and calls
// entries data.
func tilePath(t merkle.Tile) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(t.Path(), "tile/"), "/")
	if t.L == entriesLevel {
		rest = "entries" + strings.TrimPrefix(rest, "data")
	}
	return "tile/" + rest
}

// parseTilePath parses a path in its canonical form.
func parseTilePath(path string) (merkle.Tile, bool) {
	rest, ok := strings.CutPrefix(path, "tile/")
	if !ok || len(path) > maxTilePath {
		return merkle.Tile{}, false
	}
	if after, ok := strings.CutPrefix(rest, "entries/"); ok {
		rest = "data/" + after
	} else if strings.HasPrefix(rest, "data/") {
		return merkle.Tile{}, false
	}
	t, err := merkle.ParseTilePath("tile/" + strconv.Itoa(tileHeight) + "/" + rest)
	return t, err == nil
}

// inTree reports whether a tree of size leaves has a tile.
func inTree(t merkle.Tile, size int64) bool {
	level := max(t.L, 0)
	if level >= 8 || t.N > maxSize>>tileHeight {
		return false
	}
	return t.N<<tileHeight+int64(t.W) <= size>>(tileHeight*level)
}

// Handler serves the log as in c2sp.org/tlog-tiles: /checkpoint, /tile/<L>/<N>, /tile/entries/<N>, and partial tiles as
// …/<N>.p/<W>. Paths are relative to the root: use [http.StripPrefix] if the log is elsewhere. It uses only the method
// and path of a request, and reads at most one tile for it. Tiles never change and may be cached forever.
func (l *Log) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Access-Control-Allow-Origin", "*") // so that a page in a browser can verify
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed)
			return
		}
		path := strings.TrimPrefix(r.URL.Path, "/")
		b, err := l.serve(r.Context(), path)
		switch {
		case errors.Is(err, ErrNotFound):
			refuse(w, http.StatusNotFound)
			return
		case err != nil:
			if r.Context().Err() == nil {
				l.logger.LogAttrs(
					r.Context(), slog.LevelError, "the log could not be served", slog.String("path", path),
					slog.Any("error", err),
				)
			}
			refuse(w, http.StatusInternalServerError)
			return
		}
		if path == "checkpoint" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-cache")
		} else {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(b)))
		w.Write(b) //nolint:errcheck,gosec // the client is gone; browsers do not render these types
	})
}

// refuse prevents caching: a tile that is missing now may exist in a minute.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(status), status)
}

func (l *Log) serve(ctx context.Context, path string) ([]byte, error) {
	if path == "checkpoint" {
		return l.Checkpoint(ctx)
	}
	t, ok := parseTilePath(path)
	if !ok {
		return nil, ErrNotFound
	}
	size := l.seen().Size
	if !inTree(t, size) { // another process may have created it
		head, err := l.head(ctx)
		if err != nil {
			return nil, err
		}
		size = head.Size
	}
	if !inTree(t, size) {
		return nil, ErrNotFound
	}
	if t.L == entriesLevel {
		return l.bundle(ctx, t)
	}
	b, err := merkle.ReadTileData(t, l.reader(ctx))
	if err != nil {
		return nil, fmt.Errorf("reading a tile: %w", err)
	}
	return b, nil
}

// bundle returns leaves, each prefixed with its length.
func (l *Log) bundle(ctx context.Context, t merkle.Tile) ([]byte, error) {
	leaves, err := l.tiles.Leaves(ctx, t.N<<tileHeight, t.W)
	if err != nil {
		return nil, fmt.Errorf("reading entries: %w", err)
	}
	b := make([]byte, 0, len(leaves)*(2+len(Leaf{})))
	for _, leaf := range leaves {
		b = binary.BigEndian.AppendUint16(b, uint16(len(leaf)))
		b = append(b, leaf[:]...)
	}
	return b, nil
}

// parseBundle parses n leaves.
func parseBundle(b []byte, n int) ([]Leaf, error) {
	const entry = 2 + len(Leaf{})
	if len(b) != n*entry {
		return nil, fmt.Errorf("%w: %d octets, not %d entries of %d", ErrMalformed, len(b), n, entry)
	}
	leaves := make([]Leaf, n)
	for i := range leaves {
		if got := binary.BigEndian.Uint16(b[i*entry:]); int(got) != len(Leaf{}) {
			return nil, fmt.Errorf("%w: an entry of %d octets, not %d", ErrMalformed, got, len(Leaf{}))
		}
		copy(leaves[i][:], b[i*entry+2:])
	}
	return leaves, nil
}
