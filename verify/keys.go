package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
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

// directory returns what an origin publishes: fetched by this job, or remembered. A failed fetch takes nothing away:
// then the keys that are kept are good for a day.
func (j *job) directory(ctx context.Context, at string, again bool) *directory {
	j.all.mu.Lock()
	d := j.all.from[at]
	j.all.mu.Unlock()
	if d != nil && (d.fresh || !again) {
		return d
	}
	var kept *directory
	if b, err := j.Memory.Recall(ctx, memoryKeys, at); err == nil && b != nil {
		kept = &directory{}
		if json.Unmarshal(b, kept) != nil || kept.Active == nil || kept.FetchedAt.After(j.now.Add(skew)) {
			kept = nil
		}
	}
	if d = kept; kept == nil || again || j.now.Sub(kept.FetchedAt) > keyFresh {
		d = j.fetchKeys(ctx, at)
		if d.err == nil {
			if b, err := json.Marshal(d); err == nil {
				_ = j.Memory.Replace(ctx, memoryKeys, at, b) // what is not remembered is fetched again
			}
		} else if kept != nil && j.now.Sub(kept.FetchedAt) <= keyCache {
			d, kept.fresh = kept, true
		}
	}
	j.all.mu.Lock()
	defer j.all.mu.Unlock()
	j.all.from[at] = d
	return d
}

// origin returns what the origin of the manifest publishes.
func (m *checked) origin(ctx context.Context) *directory {
	if m.known != nil {
		return m.known
	}
	return m.directory(ctx, origin(m.url), false)
}

func (j *job) fetchKeys(ctx context.Context, at string) *directory {
	d := &directory{FetchedAt: j.now, fresh: true}
	snap, err := j.fetchOK(ctx, at+manifest.DiscoveryPath)
	if err == nil {
		d.Discovery, err = readDiscovery(snap.Octets)
	}
	if err != nil && !isMissing(err) {
		d.err = fmt.Errorf("reading what %s says of itself: %w", at, err)
		return d
	}
	address, former := at+manifest.DirectoryPath, ""
	if d.Discovery != nil {
		address, former = cmp.Or(d.Discovery.JWKSURI, address), d.Discovery.ManifestKeysURI
	}
	if d.Active, d.err = j.fetchKeySet(ctx, at, address); d.err != nil || former == "" {
		return d
	}
	if d.Former, err = j.fetchKeySet(ctx, at, former); err != nil {
		d.FormerErr = err.Error()
	}
	return d
}

// fetchKeySet fetches a directory of keys.
func (j *job) fetchKeySet(ctx context.Context, at, address string) (json.RawMessage, error) {
	if origin(address) != at {
		return nil, fmt.Errorf("fetching the keys of %s: its URL is of another origin", at)
	}
	snap, err := j.fetchOK(ctx, address)
	if err != nil {
		return nil, err
	}
	if _, err := keyring.ParseDirectory(snap.Octets, &keyring.ParseOptions{TestKeys: true}); err != nil {
		return nil, fmt.Errorf("reading the keys at %s: %w", address, err)
	}
	return snap.Octets, nil
}

// fetchOK fetches a trust document that must be there, with 200.
func (j *job) fetchOK(ctx context.Context, address string) (*snapshot.Snapshot, error) {
	snap, err := j.fetchTrusted(ctx, address, maxDirectory)
	if err == nil && snap.Status != http.StatusOK {
		return nil, fmt.Errorf("fetching %s: the answer is %d and not 200", address, snap.Status)
	}
	return snap, err
}

// isMissing reports whether a fetch failed because there is nothing.
func isMissing(err error) bool {
	f, ok := errors.AsType[*snapshot.FetchError](err)
	return ok && f.Kind == snapshot.Gone
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

// promised returns the highest level that is promised; 0: none.
func (d *directory) promised() int {
	if d.Discovery == nil || len(d.Discovery.Levels) == 0 {
		return 0
	}
	return min(max(slices.Max(d.Discovery.Levels), 0), 3)
}

// delegates reports whether the origin lets another one speak for it.
func (d *directory) delegates(to string) bool {
	return d.Discovery != nil &&
		slices.ContainsFunc(d.Discovery.ManifestOrigins, func(other string) bool { return origin(other) == to })
}

// findKey finds the key of a signature. Without one, code says why.
func (m *checked) findKey(ctx context.Context, id string) (key *keyring.Key, code Status, why string) {
	at := origin(m.url)
	d := m.directory(ctx, at, false)
	key, code, why = m.keyIn(d, id)
	if key == nil && !d.fresh {
		d = m.directory(ctx, at, true) // it may be new
		key, code, why = m.keyIn(d, id)
	}
	m.known = d
	switch {
	case key != nil:
		m.seen = true
		if m.served.JWKS == nil {
			m.served.JWKS = d.Active
			if pick(d.Active, id, m.TestKeys) == nil {
				m.served.JWKS = d.Former
			}
		}
	case m.stored && code == KeyUnavailable:
		key = pick(m.served.JWKS, id, m.TestKeys)
	}
	return key, code, why
}

func (m *checked) keyIn(d *directory, id string) (*keyring.Key, Status, string) {
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
		return nil, KeyUnavailable,
			"The key is not one that signs now, and the publisher's former keys cannot be read: " + d.FormerErr + "."
	case !m.TestKeys && (pick(d.Active, id, true) != nil || pick(d.Former, id, true) != nil):
		return nil, KeyUnknown, "The key is published in RFC 9421: everybody can sign with it."
	}
	return nil, KeyUnknown, "The publisher's keys do not have the key " + id + "."
}

// pick finds a key in a directory; nil: it is not there.
func pick(set []byte, id string, testKeys bool) *keyring.Key {
	if set == nil {
		return nil
	}
	keys, err := keyring.ParseDirectory(set, &keyring.ParseOptions{TestKeys: testKeys})
	if i := slices.IndexFunc(keys, func(k keyring.Key) bool { return k.ID == id }); err == nil && i >= 0 {
		return &keys[i]
	}
	return nil
}
