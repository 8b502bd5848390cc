package tlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	merkle "golang.org/x/mod/sumdb/tlog"
)

// MaxResource is how many octets [HTTP] reads of one resource: the limit of a checkpoint, and more than any tile.
const MaxResource = MaxCheckpoint

// Get reads one resource of a log by its path below the log's URL: checkpoint, tile/0/000, tile/entries/x001/234.p/56.
// The error for a missing one is [ErrNotFound].
type Get = func(ctx context.Context, path string) ([]byte, error)

// HTTP returns a Get for the log at a URL. It reads at most [MaxResource] octets of a response and accepts only status
// 200. The client controls which networks may be reached, timeouts and redirects; nil means [http.DefaultClient].
func HTTP(client *http.Client, url string) Get {
	if client == nil {
		client = http.DefaultClient
	}
	return func(ctx context.Context, path string) ([]byte, error) {
		b, err := get(ctx, client, strings.TrimSuffix(url, "/")+"/"+path)
		if err != nil {
			return nil, fmt.Errorf("reading %s of a log: %w", path, err)
		}
		return b, nil
	}
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, ErrNotFound
	default:
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxResource+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxResource {
		return nil, fmt.Errorf("%w: more than %d octets", ErrMalformed, MaxResource)
	}
	return b, nil
}

// Monitor watches a log, including those of others, through Get. It is not safe for concurrent use.
type Monitor struct {
	VerifierKey string // the log's vkey
	Get         Get    // reads the log: see HTTP
	// Last is the last verified checkpoint. To watch over restarts, store its Note and parse it again with
	// ParseCheckpoint. If it is nil, the first checkpoint is trusted.
	Last *Checkpoint
}

// Update reads the log's checkpoint, verifies its signature and that its tree extends the one of Last, and makes it
// Last. An [ErrInconsistent] proves that the log was rewritten: keep both notes, that of Last and the one returned.
func (m *Monitor) Update(ctx context.Context) (*Checkpoint, error) {
	signed, err := m.Get(ctx, "checkpoint")
	if err != nil {
		return nil, fmt.Errorf("watching a log: %w", err)
	}
	c, err := ParseCheckpoint(signed, m.VerifierKey)
	if err != nil {
		return nil, fmt.Errorf("watching a log: %w", err)
	}
	if m.Last != nil {
		if err := VerifyConsistency(ctx, m.Last, c, m.Get); err != nil {
			return c, fmt.Errorf("watching a log: %w", err)
		}
	}
	m.Last = c
	return c, nil
}

// Leaves returns the leaves of Last from an index on, in order, each verified. It reads at most 256 leaves at a time,
// and ends with the first error.
func (m *Monitor) Leaves(ctx context.Context, from int64) iter.Seq2[Leaf, error] {
	return func(yield func(Leaf, error) bool) {
		if m.Last == nil || from < 0 {
			yield(Leaf{}, errors.New("reading a log's leaves: there is no verified checkpoint, or no such leaf"))
			return
		}
		for from < m.Last.Size {
			first := from &^ (tileWidth - 1)
			n := int(min(tileWidth, m.Last.Size-first))
			leaves, err := readLeaves(
				ctx, m.Last, merkle.Tile{H: tileHeight, L: entriesLevel, N: first >> tileHeight, W: n}, m.Get,
			)
			if err != nil {
				yield(Leaf{}, fmt.Errorf("reading a log's leaves: %w", err))
				return
			}
			for _, leaf := range leaves[from-first:] {
				if !yield(leaf, nil) {
					return
				}
			}
			from = first + int64(n)
		}
	}
}

// readLeaves reads an entry bundle and verifies it against the hashes of the tree.
func readLeaves(ctx context.Context, c *Checkpoint, t merkle.Tile, get Get) ([]Leaf, error) {
	b, err := getTile(ctx, t, 2+len(Leaf{}), get)
	if err != nil {
		return nil, err
	}
	leaves, err := parseBundle(b, t.W)
	if err != nil {
		return nil, err
	}
	indexes := make([]int64, t.W)
	for i := range indexes {
		indexes[i] = merkle.StoredHashIndex(0, t.N<<tileHeight+int64(i))
	}
	hashes, err := newTileReader(ctx, c, get).ReadHashes(indexes)
	if err != nil {
		return nil, err
	}
	for i, leaf := range leaves {
		if merkle.RecordHash(leaf[:]) != hashes[i] {
			return nil, fmt.Errorf("%w: entry %d is not the leaf in the tree", ErrRewritten, t.N<<tileHeight+int64(i))
		}
	}
	return leaves, nil
}

// getTile reads a tile with rows of row octets. A log may have dropped a partial tile that is full by now, so the full
// one is tried next.
func getTile(ctx context.Context, t merkle.Tile, row int, get Get) ([]byte, error) {
	b, err := get(ctx, tilePath(t))
	if errors.Is(err, ErrNotFound) && t.W < tileWidth {
		full := t
		full.W = tileWidth
		if b, err = get(ctx, tilePath(full)); err == nil && len(b) == tileWidth*row {
			b = b[:t.W*row]
		}
	}
	if err != nil {
		return nil, err
	}
	if len(b) != t.W*row {
		return nil, fmt.Errorf("%s: %w: %d octets, not %d", tilePath(t), ErrMalformed, len(b), t.W*row)
	}
	return b, nil
}

// tileReader reads hashes from tiles, and verifies that they belong to the tree.
type tileReader struct {
	merkle.HashReader
	fetch *tileFetch
}

func newTileReader(ctx context.Context, c *Checkpoint, get Get) *tileReader {
	fetch := &tileFetch{ctx: ctx, get: get}
	return &tileReader{merkle.TileHashReader(merkle.Tree{N: c.Size, Hash: c.Root}, fetch), fetch}
}

// ReadHashes implements [merkle.HashReader]. It distinguishes tiles that could not be read from wrong ones.
func (r *tileReader) ReadHashes(indexes []int64) ([]Hash, error) {
	if len(indexes) == 0 {
		return nil, nil
	}
	hashes, err := r.HashReader.ReadHashes(indexes)
	if err != nil && r.fetch.err == nil {
		return nil, fmt.Errorf("%w: %w", ErrRewritten, err)
	}
	return hashes, err
}

// tileFetch implements [merkle.TileReader].
type tileFetch struct {
	ctx context.Context //nolint:containedctx // x/mod's interface has none
	get Get
	err error
}

func (f *tileFetch) Height() int                       { return tileHeight }
func (f *tileFetch) SaveTiles([]merkle.Tile, [][]byte) {}

func (f *tileFetch) ReadTiles(tiles []merkle.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, t := range tiles {
		b, err := getTile(f.ctx, t, merkle.HashSize, f.get)
		if err != nil {
			f.err = err
			return nil, err
		}
		data[i] = b
	}
	return data, nil
}
