package keyring

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// maxFile is how many bytes of a file are read: thousands of keys.
const maxFile = 4 << 20

// file is what stands in keys.json: everything about the keys that is not secret.
type file struct {
	Version int      `json:"version"` // 1
	Keys    []record `json:"keys"`
}

// record is a Key in keys.json.
type record struct {
	ID        string     `json:"id"`
	Use       Use        `json:"use"`
	Algorithm string     `json:"algorithm"`
	Created   time.Time  `json:"created_at"`
	NotBefore *time.Time `json:"not_before,omitempty"`
	NotAfter  *time.Time `json:"not_after,omitempty"`
	RetiredAt *time.Time `json:"retired_at,omitempty"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Private   string     `json:"private"`
	Public    *jwk       `json:"public"`
}

func (k *Key) record() (*record, error) {
	public, err := newJWK(k.Public)
	if err != nil {
		return nil, err
	}
	return &record{
		k.ID, k.Use, k.Algorithm, k.Created, optional(k.NotBefore), optional(k.NotAfter), optional(k.RetiredAt),
		optional(k.RevokedAt), k.Reason, k.Private, public,
	}, nil
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (f *record) key(testKeys bool) (*Key, error) {
	if f.Public == nil {
		return nil, errors.New("it has no public key")
	}
	k, err := f.Public.key(testKeys)
	if err != nil {
		return nil, err
	}
	if f.ID != k.ID || f.Algorithm != k.Algorithm {
		return nil, errors.New("its id or algorithm is not that of the public key")
	}
	k.Use, k.Created, k.Reason, k.Private = f.Use, f.Created.UTC(), f.Reason, f.Private
	for _, t := range []struct{ to, said *time.Time }{
		{&k.NotBefore, f.NotBefore}, {&k.NotAfter, f.NotAfter}, {&k.RetiredAt, f.RetiredAt}, {&k.RevokedAt, f.RevokedAt},
	} {
		if t.said != nil {
			*t.to = t.said.UTC()
		}
	}
	return k, k.check()
}

// check refuses keys that could not have been made here.
func (k *Key) check() error {
	env, fromEnv := strings.CutPrefix(k.Private, "env:")
	switch {
	case k.Use != Manifest && k.Use != Log:
		return fmt.Errorf("there is no use %q; there are %s and %s", k.Use, Manifest, Log)
	case k.Use == Log && k.Algorithm != Ed25519:
		return fmt.Errorf("a log signs with %s", Ed25519)
	case fromEnv && !isVariable(env):
		return fmt.Errorf("%q is not the name of an environment variable", env)
	case !fromEnv && k.Private != "file" && k.Private != "memory" && k.Private != "":
		return errors.New("where its private key is cannot be understood")
	}
	return nil
}

func isVariable(name string) bool {
	return name != "" && (name[0] < '0' || name[0] > '9') && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

func (r *Ring) path(name string) string { return filepath.Join(r.dir, name) }

// fresh reads keys.json if it is not the file that was read last.
func (r *Ring) fresh() error {
	if r.dir == "" {
		return nil
	}
	now, err := os.Stat(r.path("keys.json"))
	if err == nil && r.stamp != nil && os.SameFile(now, r.stamp) && now.ModTime().Equal(r.stamp.ModTime()) &&
		now.Size() == r.stamp.Size() {
		return nil
	}
	keys, stamp, err := r.load()
	if err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	r.keys, r.stamp = keys, stamp
	return nil
}

func (r *Ring) load() ([]Key, os.FileInfo, error) {
	if info, err := os.Stat(r.dir); err == nil && others(info, 0o022) {
		return nil, nil, fmt.Errorf("%s: others can write to it; chmod 700 ends that", r.dir)
	}
	b, stamp, err := readFile(r.path("keys.json"), 0o022)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var f file
	if err := unmarshal(b, &f); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.path("keys.json"), err)
	}
	if f.Version != 1 {
		return nil, nil, fmt.Errorf("%s: its version is %d, not 1", r.path("keys.json"), f.Version)
	}
	var keys []Key
	for i := range f.Keys {
		k, err := f.Keys[i].key(r.o.TestKeys)
		if err == nil && slices.ContainsFunc(keys, func(o Key) bool { return o.ID == k.ID }) {
			err = errors.New("it is there twice")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: key %d: %w", r.path("keys.json"), i, err)
		}
		if info, err := os.Stat(r.privatePath(k.ID)); err == nil && others(info, 0o077) {
			return nil, nil, fmt.Errorf(
				"%s: others can read it; it may have been copied, and chmod 600 ends that", r.privatePath(k.ID),
			)
		}
		keys = append(keys, *k)
	}
	sortKeys(keys)
	return keys, stamp, nil
}

// sortKeys puts the newest key first; of those made in one second, the one made last.
func sortKeys(keys []Key) {
	slices.Reverse(keys)
	slices.SortStableFunc(keys, func(a, b Key) int { return b.Created.Compare(a.Created) })
}

// others reports whether anybody but the owner has one of these rights.
func others(info os.FileInfo, rights fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&rights != 0 // Windows has other rights
}

// readFile reads a file of limited size on which nobody but the owner has one of these rights.
func readFile(name string, rights fs.FileMode) ([]byte, os.FileInfo, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || others(info, rights) || info.Size() > maxFile {
		return nil, nil, fmt.Errorf("%s: it is not a file of the owner's alone, or longer than %d bytes", name, maxFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return b, info, err
}

// change changes the keys by f, as the only one of all processes, and writes them. If that does not work, nothing has
// changed.
func (r *Ring) change(f func() error) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.keys
	defer func() {
		if err != nil {
			r.keys = before
		}
	}()
	if r.dir != "" {
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return fmt.Errorf("making the directory: %w", err)
		}
		lock, err := lockFile(r.path("lock"))
		if err != nil {
			return fmt.Errorf("locking the keys: %w", err)
		}
		defer func() { _ = lock.Close() }() // unlocks
		r.stamp = nil
		if err := r.fresh(); err != nil {
			return err
		}
		before = r.keys
	}
	r.keys = slices.Clone(r.keys)
	slices.Reverse(r.keys) // as they are in the file
	if err := f(); err != nil {
		return err
	}
	if r.dir != "" {
		if err := r.save(); err != nil {
			return err
		}
	}
	sortKeys(r.keys)
	return nil
}

func (r *Ring) save() error {
	f := file{Version: 1}
	for i := range r.keys {
		k, err := r.keys[i].record()
		if err != nil {
			return fmt.Errorf("writing the key %s: %w", r.keys[i].ID, err)
		}
		f.Keys = append(f.Keys, *k)
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	if err := writeFile(r.path("keys.json"), append(b, '\n')); err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	r.stamp = nil // the next call reads what was written
	return nil
}

func (r *Ring) privatePath(id string) string { return r.path(id + ".pem") }

func (r *Ring) writePrivate(id string, key crypto.Signer) error {
	b, err := marshalPrivate(key)
	if err != nil {
		return err
	}
	if err := writeFile(r.privatePath(id), b); err != nil {
		return fmt.Errorf("writing the private key: %w", err)
	}
	return nil
}

func (r *Ring) readPrivate(id string) (crypto.Signer, error) {
	b, _, err := readFile(r.privatePath(id), 0o077)
	if err != nil {
		return nil, err
	}
	s, err := parsePrivate(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.privatePath(id), err)
	}
	return s, nil
}

// writeFile replaces a file as a whole: whoever reads, and whoever comes after a crash, sees the old one or the new
// one. Only the owner can read it.
func writeFile(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(name))
}
