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

	entriesLevel = -1 // entry bundles, as x/mod names the level of the data

	// maxTilePath is as long as the path of a tile in a log of maxSize leaves can be, and a little more.
	maxTilePath = 48
)

// tilePath writes the path of a tile as C2SP has it. That of x/mod also has the height, which C2SP fixes, and calls
// entries data.
func tilePath(t merkle.Tile) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(t.Path(), "tile/"), "/")
	if t.L == entriesLevel {
		rest = "entries" + strings.TrimPrefix(rest, "data")
	}
	return "tile/" + rest
}

// parseTilePath reads a path in the one way it may be written.
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

// inTree reports whether a tree of so many leaves has a tile.
func inTree(t merkle.Tile, size int64) bool {
	level := max(t.L, 0)
	if level >= 8 || t.N > maxSize>>tileHeight {
		return false
	}
	return t.N<<tileHeight+int64(t.W) <= size>>(tileHeight*level)
}

// Handler serves the log as c2sp.org/tlog-tiles has it: /checkpoint, /tile/<L>/<N>, /tile/entries/<N>, and tiles that
// are not full yet as …/<N>.p/<W>. It takes paths from the root on: put an [http.StripPrefix] before it where the log
// has another place. It reads nothing of a request but method and path, and at most one tile for it. Tiles never change
// and may be kept forever.
func (l *Log) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Access-Control-Allow-Origin", "*") // a page in a browser can verify
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
		w.Write(b) //nolint:errcheck,gosec // the client has gone; no browser shows these types as a page
	})
}

// refuse keeps what is not there from being remembered: a tile that is missing now may be there in a minute.
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
	if !inTree(t, size) { // another process may have made it
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

// bundle returns leaves, each with its length before it.
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

// parseBundle reads n leaves.
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
