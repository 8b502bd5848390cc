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
	// MaxCopy is how many octets of a document are kept. Of a larger document, only the metadata is.
	MaxCopy = 32 << 20
	// maxVersion is how many bytes the metadata of a version may have as JSON. Beyond it, header fields are left out.
	maxVersion = 64 << 10
	// worthCoding is how many octets a document must have to be worth compressing.
	worthCoding = 256
)

// codingZstd is the coding of compressed octets.
const codingZstd = "zstd"

// Version is a state of a source: its octets or its location differ from those of the version before.
type Version struct {
	snapshot.Snapshot           // as first read; without Octets in a list
	LastSeen          time.Time // when it was last read, or the server last confirmed it
	Kept              bool      // the store has the octets: see [Store.Copy]
}

// Copies returns the storage of the sources that a tenant's answers cite, for a snapshot.Fetcher. Equal octets are
// stored once, whoever reads them, but only tenants that have read them themselves can retrieve them.
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

// latestVersion returns the latest version that where selects, or [ErrNotFound].
func latestVersion(ctx context.Context, q querier, where string, args ...any) (*storedVersion, error) {
	return readOne(ctx, q, scanVersion, versionColumns+" WHERE "+where, args...)
}

// latestOfURL selects the latest version of a source.
const latestOfURL = "tenant = $1 AND url = $2 ORDER BY n DESC LIMIT 1"

// Latest implements [snapshot.Copies]. FetchedAt is when the version was last seen.
func (c tenantCopies) Latest(ctx context.Context, url string) (*snapshot.Snapshot, error) {
	v, err := latestVersion(ctx, c.store.db, latestOfURL, lookup(c.tenant), lookup(url))
	if errors.Is(err, ErrNotFound) {
		return nil, nil //nolint:nilnil // as snapshot.Copies specifies
	}
	if err == nil && v.Kept {
		v.Octets, err = c.store.octets(ctx, v.Hash)
		if errors.Is(err, ErrNotFound) { // they have just been removed
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy of %.200s: %w", url, err)
	}
	v.FetchedAt = v.LastSeen
	return &v.Snapshot, nil
}

// Keep implements [snapshot.Copies]. What was read is a new version if its octets, media type, status or location
// differ from the version before; otherwise that one is marked as seen again.
func (c tenantCopies) Keep(ctx context.Context, s *snapshot.Snapshot) error {
	octets, err := c.newOctets(ctx, s)
	if err == nil {
		err = c.insertCopy(ctx, s, octets)
	}
	if errors.Is(err, errExpired) {
		err = c.insertCopy(ctx, s, c.pack(s))
	}
	return wrap(err, "keeping a copy of %.200s", s.URL)
}

// insertCopy stores s. Octets is nil if they are stored already or are not to be kept; if they have been removed in the
// meantime, the error is errExpired.
func (c tenantCopies) insertCopy(ctx context.Context, s *snapshot.Snapshot, octets *packedOctets) error {
	return c.store.update(ctx, func(tx *transaction) error {
		tenant, url, seen := lookup(c.tenant), lookup(s.URL), micros(s.FetchedAt)
		if err := tx.serialize(ctx, "versions", tenant, url); err != nil {
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
		// Octets that are stored are not written again.
		err := tx.exec(ctx, "UPDATE copies SET seen = $1 WHERE hash = $2 AND seen < $1", seen, lookup(s.Hash))
		if err != nil || !isKept(s) {
			return err
		}
		found, err := exists(ctx, tx, "SELECT 1 FROM copies WHERE hash = $1"+tx.forUpdate(), s.Hash)
		if err == nil && !found {
			err = errExpired
		}
		return err
	})
}

// errExpired means that octets were removed between two queries.
var errExpired = errors.New("the octets have expired")

// isKept reports whether the octets of s are to be kept: they are not too many, and they match the hash.
func isKept(s *snapshot.Snapshot) bool {
	return len(s.Octets) <= MaxCopy && snapshot.Hash(s.Octets) == s.Hash
}

// packedOctets are octets in their stored form.
type packedOctets struct {
	coding string
	packed []byte
}

// newOctets returns the octets of s in their stored form; nil if they are stored already or are not to be kept.
func (c tenantCopies) newOctets(ctx context.Context, s *snapshot.Snapshot) (*packedOctets, error) {
	if !isKept(s) {
		return nil, nil //nolint:nilnil // documented
	}
	found, err := exists(ctx, c.store.db, "SELECT 1 FROM copies WHERE hash = $1", s.Hash)
	if found || err != nil {
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
	// Locked, so that the version is not removed as old between this query and the change.
	old, err := latestVersion(ctx, tx, latestOfURL+tx.forUpdate(), tenant, lookup(s.URL))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	seen := micros(s.FetchedAt)
	if old != nil && old.Hash == s.Hash {
		same := old.FinalURL == s.FinalURL && old.Status == s.Status && old.MediaType == s.MediaType
		if same || s.NotModified {
			old.ETag, old.LastModified = s.ETag, s.LastModified // for the next conditional request
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

// versionText returns a version in its stored form.
func versionText(s snapshot.Snapshot) (string, error) {
	s.FetchedAt = s.FetchedAt.UTC()
	b, err := json.Marshal(&s)
	if err == nil && len(b) > maxVersion {
		s.Header, s.Hops = nil, nil
		if b, err = json.Marshal(&s); err == nil && len(b) > maxVersion {
			err = refuse(ErrLimit, "the metadata of a version has %d bytes; the limit is %d", len(b), maxVersion)
		}
	}
	return plain(string(b)), err
}

// Versions returns the versions of a source, by its address as returned by snapshot.CleanURL, latest first.
func (s *Store) Versions(ctx context.Context, tenant, url string, q *Query) (*Page[Version], error) {
	q = cmp.Or(q, &Query{})
	versions := numberedList[storedVersion, Version]{
		letter: "v", query: versionColumns, column: "n", scan: scanVersion,
		item: func(v *storedVersion) (Version, int64) { return v.Version, v.n },
	}
	c := conditionsOf(tenant)
	c.and("url = $", lookup(url))
	page, err := versions.page(ctx, s.db, c, q.Cursor, q.Limit)
	return page, wrap(err, "listing versions of %.200s", url)
}

// Copy returns the latest version, of any of the tenant's sources, that had these octets, with them. It fails with
// [ErrNotFound] if the tenant has none, or if the octets are not, or no longer, kept.
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

// octets returns the octets with a hash.
func (s *Store) octets(ctx context.Context, hash string) ([]byte, error) {
	coding, size := "", 0
	var packed []byte
	found, err := find(ctx, s.db, []any{&coding, &size, &packed},
		"SELECT coding, size, octets FROM copies WHERE hash = $1", lookup(hash))
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, ErrNotFound
	case coding == codingZstd:
		packed, err = s.packer.Unpack(packed, size)
	case packed == nil: // empty is not the same as not kept
		packed = []byte{}
	}
	if err != nil || snapshot.Hash(packed) != hash {
		return nil, fmt.Errorf("%w: the octets with the hash %.80s", errDamaged, hash)
	}
	return packed, nil
}

// packed returns octets in their stored form: compressed if that makes them shorter.
func (s *Store) packed(octets []byte) (coding string, packed []byte) {
	if len(octets) >= worthCoding {
		if packed = s.packer.Pack(octets, len(octets)-1); packed != nil {
			return codingZstd, packed
		}
	}
	if octets == nil { // kept, but empty
		octets = []byte{}
	}
	return "", octets
}

// serialize makes other transactions of PostgreSQL with the same key wait for the end of this one. SQLite runs only one
// at a time.
func (tx *transaction) serialize(ctx context.Context, key ...string) error {
	if !tx.postgres {
		return nil
	}
	return tx.exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", strings.Join(key, "\n"))
}

const (
	// MaxRemembered is how many bytes a value that a verifier remembers may have.
	MaxRemembered = 1 << 20
	// MaxOfKind is how many values of one kind are remembered for a tenant. [Store.Prune] removes the excess.
	MaxOfKind = 100_000
	// rememberedFor is how long values that only save work are kept.
	rememberedFor = 30 * 24 * time.Hour
)

// remembered lists the kinds of memory that only save work. All others record what must not change or be repeated; they
// are kept, up to [MaxOfKind] values of a tenant's kind, and the oldest are removed beyond that.
const remembered = "('keys', 'verdict', 'judged')"

// Memory returns what a tenant's verifiers remember. A value over [MaxRemembered] is [ErrLimit]. Of each kind the
// newest [MaxOfKind] values are kept.
func (s *Store) Memory(tenant string) verify.Memory { return &tenantMemory{s, lookup(tenant)} }

type tenantMemory struct {
	store  *Store
	tenant string
}

// Recall implements [verify.Memory].
func (m *tenantMemory) Recall(ctx context.Context, kind, key string) ([]byte, error) {
	value, err := recall(ctx, m.store.db, m.tenant, kind, key)
	return value, wrap(err, "recalling the %s of %.200s", kind, key)
}

func recall(ctx context.Context, q querier, tenant, kind, key string) ([]byte, error) {
	var value []byte
	err := each(ctx, q, func(rows *sql.Rows) error {
		err := rows.Scan(&value)
		if value == nil { // an empty value, not a missing one
			value = []byte{}
		}
		return err
	}, "SELECT value FROM memory WHERE tenant = $1 AND kind = $2 AND key = $3", tenant, lookup(kind), lookup(key))
	return value, err
}

// Remember implements [verify.Memory].
func (m *tenantMemory) Remember(ctx context.Context, kind, key string, value []byte) ([]byte, error) {
	stored, err := m.Recall(ctx, kind, key)
	if stored != nil || err != nil {
		return stored, err
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

// remember stores a value and returns the one stored then. Otherwise is the conflict action of the INSERT.
func (m *tenantMemory) remember(
	ctx context.Context, kind, key string, value []byte, otherwise string,
) (stored []byte, err error) {
	if len(value) > MaxRemembered {
		err = refuse(ErrLimit, "%d bytes are over the limit of %d", len(value), MaxRemembered)
	} else {
		err = m.store.update(ctx, func(tx *transaction) error {
			row := []any{m.tenant, lookup(kind), lookup(key), micros(time.Now()), append([]byte{}, value...)}
			statement := tx.insertion("memory", "tenant, kind, key, at, value", " ON CONFLICT "+otherwise)
			if err := tx.execAll(ctx, statement, [][]any{row}); err != nil {
				return err
			}
			stored, err = recall(ctx, tx, m.tenant, kind, key)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("remembering the %s of %.200s: %w", kind, key, err)
	}
	return stored, nil
}
