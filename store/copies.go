package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid/snapshot"
	"github.com/ibidhq/ibid/verify"
)

const (
	// MaxCopy is how many octets of a document are kept. Of a larger one only the facts are.
	MaxCopy = 32 << 20
	// maxVersion is how many bytes the facts of a version may have, as JSON. Beyond it header fields are left out.
	maxVersion = 64 << 10
	// worthCoding is how many octets a document must have to be compressed.
	worthCoding = 256
)

// codingZstd is the coding of octets that are compressed.
const codingZstd = "zstd"

// Version says that a source had other octets, or was found elsewhere, than before.
type Version struct {
	snapshot.Snapshot           // as it was read first; without Octets in a list
	LastSeen          time.Time // when it was read last, or the server said that it still holds
	Kept              bool      // the store has the octets: see [Store.Copy]
}

// Copies returns what keeps the sources that a tenant's answers cite, for a snapshot.Fetcher. Equal octets are kept
// once, whoever reads them, and can be read by tenants only that have read them themselves.
func (s *Store) Copies(tenant string) snapshot.Copies { return tenantCopies{s, tenant} }

type tenantCopies struct {
	store  *Store
	tenant string
}

// storedVersion is a row of versions.
type storedVersion struct {
	Version
	n int64
}

const versionColumns = "SELECT n, last_seen, version, EXISTS (SELECT 1 FROM copies WHERE copies.hash = " +
	"versions.hash) FROM versions"

// scanVersion reads a row of versionColumns.
func scanVersion(rows *sql.Rows, v *storedVersion) error {
	var seen int64
	var text []byte
	if err := rows.Scan(&v.n, &seen, &text, &v.Kept); err != nil {
		return err
	}
	v.LastSeen = instant(seen)
	return decode(text, &v.Snapshot, "a version of a source")
}

// latestVersion returns the version that was stored last of those that where chooses; [ErrNotFound]: there is none.
func latestVersion(ctx context.Context, q querier, where string, args ...any) (*storedVersion, error) {
	return readOne(ctx, q, scanVersion, versionColumns+" WHERE "+where, args...)
}

// latestOfURL chooses the last version of a source.
const latestOfURL = "tenant = $1 AND url = $2 ORDER BY n DESC LIMIT 1"

// Latest implements [snapshot.Copies]. FetchedAt is when the version was seen last.
func (c tenantCopies) Latest(ctx context.Context, url string) (*snapshot.Snapshot, error) {
	v, err := latestVersion(ctx, c.store.db, latestOfURL, lookup(c.tenant), lookup(url))
	if errors.Is(err, ErrNotFound) {
		return nil, nil //nolint:nilnil // as snapshot.Copies says it
	}
	if err == nil && v.Kept {
		v.Octets, err = c.store.octets(ctx, v.Hash)
		if errors.Is(err, ErrNotFound) { // they have just gone
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy of %.200s: %w", url, err)
	}
	v.FetchedAt = v.LastSeen
	return &v.Snapshot, nil
}

// Keep implements [snapshot.Copies]. What was read is a new version if its octets, its media type, its status or where
// it was found differ from the version before; else that one was seen again.
func (c tenantCopies) Keep(ctx context.Context, s *snapshot.Snapshot) error {
	octets, err := c.fresh(ctx, s)
	if err == nil {
		err = c.insertCopy(ctx, s, octets)
	}
	if errors.Is(err, errExpired) {
		err = c.insertCopy(ctx, s, c.pack(s))
	}
	return about(err, "keeping a copy of %.200s", s.URL)
}

// insertCopy stores s. Nil octets are those that are there already, unless they are not to be kept; if they are not
// there any more, the error is errExpired.
func (c tenantCopies) insertCopy(ctx context.Context, s *snapshot.Snapshot, octets *packedOctets) error {
	return c.store.update(ctx, func(tx *transaction) error {
		tenant, url, seen := lookup(c.tenant), lookup(s.URL), micros(s.FetchedAt)
		if err := tx.alone(ctx, "versions", tenant, url); err != nil {
			return err
		}
		if err := tx.keepVersion(ctx, tenant, s); err != nil {
			return err
		}
		if octets != nil {
			return tx.execAll(ctx, tx.insertion("copies", "hash, coding, size, seen, octets",
				" ON CONFLICT (hash) DO UPDATE SET seen = excluded.seen WHERE copies.seen < excluded.seen",
			), [][]any{{s.Hash, octets.coding, len(s.Octets), seen, octets.packed}})
		}
		// Octets that are there are not written again.
		err := tx.exec(ctx, "UPDATE copies SET seen = $1 WHERE hash = $2 AND seen < $1", seen, lookup(s.Hash))
		if err != nil || !isKept(s) {
			return err
		}
		there, err := exists(ctx, tx, "SELECT 1 FROM copies WHERE hash = $1"+tx.forUpdate(), s.Hash)
		if err == nil && !there {
			err = errExpired
		}
		return err
	})
}

// errExpired says that octets were removed between two looks at them.
var errExpired = errors.New("the octets have expired")

// isKept reports whether the octets of s are to be kept: they are not too many, and what their hash says.
func isKept(s *snapshot.Snapshot) bool {
	return len(s.Octets) <= MaxCopy && snapshot.Hash(s.Octets) == s.Hash
}

// packedOctets are octets as they are stored.
type packedOctets struct {
	coding string
	packed []byte
}

// fresh returns the octets of s as they are to be stored; nil: they are there, or are not to be kept.
func (c tenantCopies) fresh(ctx context.Context, s *snapshot.Snapshot) (*packedOctets, error) {
	if !isKept(s) {
		return nil, nil //nolint:nilnil // as it says
	}
	there, err := exists(ctx, c.store.db, "SELECT 1 FROM copies WHERE hash = $1", s.Hash)
	if there || err != nil {
		return nil, err
	}
	return c.pack(s), nil
}

func (c tenantCopies) pack(s *snapshot.Snapshot) *packedOctets {
	coding, packed := c.store.packed(s.Octets)
	return &packedOctets{coding, packed}
}

// keepVersion stores s as a version, or as a sighting of the last one.
func (tx *transaction) keepVersion(ctx context.Context, tenant string, s *snapshot.Snapshot) error {
	// Locked: whoever removes old versions must not have it between this look and the change.
	old, err := latestVersion(ctx, tx, latestOfURL+tx.forUpdate(), tenant, lookup(s.URL))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	seen := micros(s.FetchedAt)
	if old != nil && old.Hash == s.Hash {
		same := old.FinalURL == s.FinalURL && old.Status == s.Status && old.MediaType == s.MediaType
		if same || s.NotModified {
			old.ETag, old.LastModified = s.ETag, s.LastModified // by which it is asked for the next time
			text, err := versionText(old.Snapshot)
			if err != nil {
				return err
			}
			return tx.exec(
				ctx, "UPDATE versions SET last_seen = $1, version = $2 WHERE n = $3", max(seen, micros(old.LastSeen)),
				text, old.n,
			)
		}
	}
	text, err := versionText(*s)
	if err != nil {
		return err
	}
	return tx.insertNumbered(
		ctx, "versions", "tenant, url, hash, media, last_seen, version", tenant, lookup(s.URL), lookup(s.Hash),
		lookup(s.MediaType), seen, text,
	)
}

// versionText returns a version as it is stored.
func versionText(s snapshot.Snapshot) (string, error) {
	s.FetchedAt = s.FetchedAt.UTC()
	b, err := json.Marshal(&s)
	if err == nil && len(b) > maxVersion {
		s.Header, s.Hops = nil, nil
		if b, err = json.Marshal(&s); err == nil && len(b) > maxVersion {
			err = refuse(ErrLimit, "what is known of a version has %d bytes, and may have %d", len(b), maxVersion)
		}
	}
	return plain(string(b)), err
}

// Versions returns the versions of a source, by its address as snapshot.CleanURL returns it, the latest first.
func (s *Store) Versions(ctx context.Context, tenant, url string, q *Query) (*Page[Version], error) {
	q = cmp.Or(q, &Query{})
	versions := numberedList[storedVersion, Version]{
		letter: "v", query: versionColumns, column: "n", scan: scanVersion,
		item: func(v *storedVersion) (Version, int64) { return v.Version, v.n },
	}
	c := conditionsOf(tenant)
	c.and("url = $", lookup(url))
	page, err := versions.page(ctx, s.db, c, q.Cursor, q.Limit)
	return page, about(err, "listing versions of %.200s", url)
}

// Copy returns the latest version of a tenant's sources that had these octets, with them. [ErrNotFound] is that the
// tenant has none, or that they are not kept (any more).
func (s *Store) Copy(ctx context.Context, tenant, hash string) (*Version, error) {
	v, err := latestVersion(
		ctx, s.db, "tenant = $1 AND hash = $2 ORDER BY n DESC LIMIT 1", lookup(tenant), lookup(hash),
	)
	if err == nil {
		v.Octets, err = s.octets(ctx, hash)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy %.80s: %w", hash, err)
	}
	return &v.Version, nil
}

// octets returns what has a hash.
func (s *Store) octets(ctx context.Context, hash string) ([]byte, error) {
	coding, size := "", 0
	var packed []byte
	there, err := find(ctx, s.db, []any{&coding, &size, &packed},
		"SELECT coding, size, octets FROM copies WHERE hash = $1", lookup(hash))
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, ErrNotFound
	case coding == codingZstd:
		packed, err = s.packer.Unpack(packed, size)
	case packed == nil: // none is not the same as not kept
		packed = []byte{}
	}
	if err != nil || snapshot.Hash(packed) != hash {
		return nil, fmt.Errorf("%w: the octets with the hash %.80s", errDamaged, hash)
	}
	return packed, nil
}

// packed returns octets as they are stored: compressed if that makes them shorter.
func (s *Store) packed(octets []byte) (coding string, packed []byte) {
	if len(octets) >= worthCoding {
		if packed = s.packer.Pack(octets, len(octets)-1); packed != nil {
			return codingZstd, packed
		}
	}
	if octets == nil { // there are some, and there are none of them
		octets = []byte{}
	}
	return "", octets
}

// alone keeps other transactions of PostgreSQL that say the same words waiting for the end of this one; SQLite has one
// at a time.
func (tx *transaction) alone(ctx context.Context, words ...string) error {
	if !tx.postgres {
		return nil
	}
	return tx.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", strings.Join(words, "\n"))
}

const (
	// MaxRemembered is how many bytes a value that a verifier remembers may have.
	MaxRemembered = 1 << 20
	// MaxOfKind is how many values of one kind are remembered of a tenant. What is over goes with the next
	// [Store.Prune].
	MaxOfKind = 100_000
	// rememberedFor is how long what was only remembered to save work is kept.
	rememberedFor = 30 * 24 * time.Hour
)

// remembered lists the kinds of memory that only save work. All others say what must not change or come again, and stay
// until there are more than [MaxOfKind] of a tenant's kind: the oldest goes.
const remembered = "('keys', 'verdict')"

// Memory returns what a tenant's verifiers remember. A value over [MaxRemembered] is [ErrLimit]. Of each kind the
// newest [MaxOfKind] are kept.
func (s *Store) Memory(tenant string) verify.Memory { return &tenantMemory{s, lookup(tenant)} }

type tenantMemory struct {
	store  *Store
	tenant string
}

// Recall implements [verify.Memory].
func (m *tenantMemory) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	value, err := recall(ctx, m.store.db, m.tenant, kind, key)
	return value, about(err, "recalling the %s of %.200s", kind, key)
}

func recall(ctx context.Context, q querier, tenant, kind, key string) ([]byte, error) {
	var value []byte
	err := each(ctx, q, func(rows *sql.Rows) error {
		err := rows.Scan(&value)
		if value == nil { // an empty one is one
			value = []byte{}
		}
		return err
	}, "SELECT value FROM memory WHERE tenant = $1 AND kind = $2 AND key = $3", tenant, lookup(kind), lookup(key))
	return value, err
}

// Remember implements [verify.Memory].
func (m *tenantMemory) Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error) {
	there, err := m.Recall(ctx, kind, key)
	if there != nil || err != nil {
		return there, err
	}
	return m.remember(ctx, kind, key, value, "DO NOTHING")
}

// Replace implements [verify.Memory].
func (m *tenantMemory) Replace(ctx context.Context, kind, key string, value []byte) error {
	_, err := m.remember(
		ctx, kind, key, value, "(tenant, kind, key) DO UPDATE SET at = excluded.at, value = excluded.value",
	)
	return err
}

// remember stores a value, and returns what is there then. Otherwise says what becomes of one that is there.
func (m *tenantMemory) remember(
	ctx context.Context, kind, key string, value []byte, otherwise string,
) (there []byte, err error) {
	if len(value) > MaxRemembered {
		err = refuse(ErrLimit, "%d bytes are more than the %d that are remembered", len(value), MaxRemembered)
	} else {
		err = m.store.update(ctx, func(tx *transaction) error {
			row := []any{m.tenant, lookup(kind), lookup(key), micros(time.Now()), append([]byte{}, value...)}
			statement := tx.insertion("memory", "tenant, kind, key, at, value", " ON CONFLICT "+otherwise)
			if err := tx.execAll(ctx, statement, [][]any{row}); err != nil {
				return err
			}
			there, err = recall(ctx, tx, m.tenant, kind, key)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("remembering the %s of %.200s: %w", kind, key, err)
	}
	return there, nil
}
