package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
	"github.com/ibidhq/ibid/snapshot"
)

// directory is what an origin publishes of itself: what it promises, and its keys. It is kept in memory as JSON.
type directory struct {
	FetchedAt time.Time           `json:"fetched_at"` // of Active
	Discovery *manifest.Discovery `json:"discovery"`  // nil: there is none, or it cannot be read
	Active    json.RawMessage     `json:"active"`     // the keys that sign now; nil: they could not be fetched
	Former    json.RawMessage     `json:"former"`     // those that signed once, too
	// FormerErr is why Former could not be fetched although there is such a list: a key may be in it.
	FormerErr string `json:"former_err"`

	err   error // why Active could not be fetched
	fresh bool  // fetched by this job
}

// of returns what an origin publishes: fetched by this job, or remembered.
func (j *job) of(ctx context.Context, at string, again bool) *directory {
	j.all.mu.Lock()
	d := j.all.from[at]
	j.all.mu.Unlock()
	if d != nil && (d.fresh || !again) {
		return d
	}
	d = j.recallKeys(ctx, at)
	if d == nil || again || j.now.Sub(d.FetchedAt) > keyFresh {
		d = j.renew(ctx, at, d)
	}
	j.all.mu.Lock()
	defer j.all.mu.Unlock()
	j.all.from[at] = d
	return d
}

// renew fetches the keys of an origin. A failed fetch takes nothing away: then those that are kept are good for a day.
func (j *job) renew(ctx context.Context, at string, kept *directory) *directory {
	d := j.fetchKeys(ctx, at)
	switch {
	case d.err == nil:
		if b, err := json.Marshal(d); err == nil {
			_ = j.Memory.Replace(ctx, memoryKeys, at, b) // what is not remembered is fetched again
		}
	case kept != nil && j.now.Sub(kept.FetchedAt) <= keyCache:
		kept.fresh = true
		return kept
	}
	return d
}

func (j *job) recallKeys(ctx context.Context, at string) *directory {
	b, err := j.Memory.Recall(ctx, memoryKeys, at)
	if err != nil || b == nil {
		return nil
	}
	var d directory
	if json.Unmarshal(b, &d) != nil || d.Active == nil || d.FetchedAt.After(j.now.Add(skew)) {
		return nil
	}
	return &d
}

func (j *job) fetchKeys(ctx context.Context, at string) *directory {
	d := &directory{FetchedAt: j.now, fresh: true}
	address := at + manifest.DirectoryPath
	snap, err := j.ok(ctx, at+manifest.DiscoveryPath)
	if err == nil {
		d.Discovery, err = readDiscovery(snap.Octets)
	}
	if err != nil && !missing(err) {
		d.err = fmt.Errorf("reading what %s says of itself: %w", at, err)
		return d
	}
	if d.Discovery != nil && d.Discovery.JWKSURI != "" {
		address = d.Discovery.JWKSURI
	}
	d.Active, d.err = j.keySet(ctx, at, address)
	if d.err != nil || d.Discovery == nil || d.Discovery.ManifestKeysURI == "" {
		return d
	}
	if d.Former, err = j.keySet(ctx, at, d.Discovery.ManifestKeysURI); err != nil {
		d.FormerErr = err.Error()
	}
	return d
}

var errElsewhere = errors.New("its URL is of another origin")

// keySet fetches a directory of keys.
func (j *job) keySet(ctx context.Context, at, address string) (json.RawMessage, error) {
	if origin(address) != at {
		return nil, fmt.Errorf("fetching the keys of %s: %w", at, errElsewhere)
	}
	snap, err := j.ok(ctx, address)
	if err != nil {
		return nil, err
	}
	if _, err := keyring.ParseDirectory(snap.Octets, &keyring.ParseOptions{TestKeys: true}); err != nil {
		return nil, fmt.Errorf("reading the keys at %s: %w", address, err)
	}
	return snap.Octets, nil
}

// ok fetches a trust document that must be there, with 200.
func (j *job) ok(ctx context.Context, address string) (*snapshot.Snapshot, error) {
	snap, err := j.trusted(ctx, address, MaxDirectory)
	if err == nil && snap.Status != http.StatusOK {
		return nil, fmt.Errorf("fetching %s: the answer is %d and not 200", address, snap.Status)
	}
	return snap, err
}

// missing reports whether a fetch failed because there is nothing.
func missing(err error) bool {
	var f *snapshot.FetchError
	return errors.As(err, &f) && f.Kind == snapshot.Gone
}

func readDiscovery(b []byte) (*manifest.Discovery, error) {
	var d manifest.Discovery
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("reading a discovery document: %w", err)
	}
	if major, _, _ := strings.Cut(d.Version, "."); major != "1" {
		return nil, fmt.Errorf("reading a discovery document: its version is %q and not 1", d.Version)
	}
	return &d, nil
}

// promises returns the highest level that is promised; 0: none.
func (d *directory) promises() int {
	most := 0
	if d != nil && d.Discovery != nil {
		for _, level := range d.Discovery.Levels {
			most = max(most, min(level, 3))
		}
	}
	return most
}

// key finds the key of a signature. Without one, code says why.
func (m *checked) key(ctx context.Context, id string) (key *keyring.Key, code Status, why string) {
	at := origin(m.url)
	d := m.of(ctx, at, false)
	key, code, why = m.find(d, id)
	if key == nil && !d.fresh {
		d = m.of(ctx, at, true) // it may be new
		key, code, why = m.find(d, id)
	}
	m.known = d
	if key != nil {
		m.seen = true
		if m.served.JWKS == nil {
			m.served.JWKS = d.set(id, m.TestKeys)
		}
		return key, "", ""
	}
	if m.stored && code == KeyUnavailable && m.served.JWKS != nil {
		if key := pick(m.served.JWKS, id, m.TestKeys); key != nil {
			return key, "", ""
		}
	}
	return nil, code, why
}

func (m *checked) find(d *directory, id string) (*keyring.Key, Status, string) {
	if d.err != nil {
		return nil, KeyUnavailable, sentence("The publisher's keys cannot be read", d.err)
	}
	key, former := pick(d.Active, id, m.TestKeys), pick(d.Former, id, m.TestKeys)
	switch {
	case former != nil && (key == nil || !former.RevokedAt.IsZero()):
		return former, "", ""
	case key != nil:
		return key, "", ""
	case d.FormerErr != "":
		return nil, KeyUnavailable, "The key is not one that signs now, and the publisher's former keys cannot be read: " + d.FormerErr + "."
	case !m.TestKeys && (pick(d.Active, id, true) != nil || pick(d.Former, id, true) != nil):
		return nil, KeyUnknown, "The key is published in RFC 9421: everybody can sign with it."
	default:
		return nil, KeyUnknown, "The publisher's keys do not have the key " + id + "."
	}
}

// set returns the directory that has a key.
func (d *directory) set(id string, testKeys bool) []byte {
	if pick(d.Active, id, testKeys) == nil {
		return d.Former
	}
	return d.Active
}

// pick finds a key in a directory; nil: it is not there.
func pick(set []byte, id string, testKeys bool) *keyring.Key {
	if set == nil {
		return nil
	}
	keys, err := keyring.ParseDirectory(set, &keyring.ParseOptions{TestKeys: testKeys})
	if err != nil {
		return nil
	}
	for i := range keys {
		if keys[i].ID == id {
			return &keys[i]
		}
	}
	return nil
}
