package keyring

import (
	"crypto"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/file"
)

// Errors that callers can test for. They are returned wrapped.
var (
	ErrNoKey    = errors.New("there is no usable key")
	ErrNotFound = errors.New("there is no such key")
	ErrExists   = errors.New("the key exists already")
	ErrFull     = errors.New("readers do not accept a directory of more keys; forget one whose manifests are gone")
)

// maxReason is how many bytes the reason of a revocation may have.
const maxReason = 1024

// Options configures a ring; nil means the defaults.
type Options struct {
	Getenv   func(name string) string // looks up env:NAME; nil means an empty environment
	Now      func() time.Time         // nil means time.Now
	TestKeys bool                     // only for tests: accept keys whose private half is printed in a standard
}

// Ring holds the keys of one publisher. It is safe for concurrent use. Several processes may use one directory; each
// sees the changes of the others at its next call.
type Ring struct {
	dir string // empty if in memory
	o   Options

	mu      sync.Mutex
	keys    []Key // newest first
	stamp   os.FileInfo
	signers map[string]crypto.Signer // by id, loaded on demand
}

func newRing(dir string, o *Options) *Ring {
	r := &Ring{dir: dir, signers: map[string]crypto.Signer{}}
	if o != nil {
		r.o = *o
	}
	return r
}

// Open opens the ring in a directory, which the first [Ring.New] creates if necessary. It refuses a directory that
// others can write to, and private keys that others can read.
func Open(dir string, o *Options) (*Ring, error) {
	if dir == "" {
		return nil, errors.New("opening the keys: no directory is named")
	}
	r := newRing(dir, o)
	if err := r.reload(); err != nil {
		return nil, err
	}
	return r, nil
}

// Memory returns an empty ring that lives only in the process: for examples, tests, and agents without a disk, which
// pass their key to [Ring.New].
func Memory(o *Options) *Ring { return newRing("", o) }

// NewOptions describes the key to create; nil means an Ed25519 key for manifests, valid from now on.
type NewOptions struct {
	Use       Use       // empty means Manifest
	Algorithm string    // empty means that of Import or Env, or else Ed25519
	At        time.Time // since when it is valid; zero means now
	// the environment variable with the private key, as PKCS#8 in PEM or a private JWK; the ring stores only its name
	Env    string
	Import []byte // a private key to store, in the same forms; nil to generate one
	// only if there is no key of this use, not even a retired or revoked one; otherwise the error is ErrExists
	First bool
}

// New creates or imports a key.
func (r *Ring) New(o *NewOptions) (*Key, error) {
	if o == nil {
		o = &NewOptions{}
	}
	k, private, err := r.make(o)
	for err == nil && o.Env == "" && o.Import == nil && k.ID[0] == '-' { // the id would look like a flag
		k, private, err = r.make(o)
	}
	if err == nil {
		err = r.change(func() error { return r.add(k, private, o.First) })
	}
	if err != nil {
		return nil, fmt.Errorf("creating a key: %w", err)
	}
	return k, nil
}

// make creates the key without adding it to the ring.
func (r *Ring) make(o *NewOptions) (*Key, crypto.Signer, error) {
	k := &Key{Use: o.Use, Created: o.At.UTC().Truncate(time.Second), Private: "file"}
	if k.Use == "" {
		k.Use = Manifest
	}
	if o.At.IsZero() {
		k.Created = r.now()
	}
	k.NotBefore = k.Created
	private, err := r.privateFor(o, k)
	if err != nil {
		return nil, nil, err
	}
	j, err := newJWK(private.Public())
	if err != nil {
		return nil, nil, err
	}
	public, err := j.key(r.o.TestKeys)
	if err != nil {
		return nil, nil, err
	}
	k.ID, k.Algorithm, k.Public = public.ID, public.Algorithm, public.Public
	if o.Algorithm != "" && o.Algorithm != k.Algorithm {
		return nil, nil, fmt.Errorf("the key is %s, not %s", k.Algorithm, o.Algorithm)
	}
	return k, private, k.check()
}

// privateFor returns the private key for o and sets in k where it is stored.
func (r *Ring) privateFor(o *NewOptions, k *Key) (crypto.Signer, error) {
	if r.dir == "" {
		k.Private = "memory"
	}
	switch {
	case o.Env != "" && o.Import != nil:
		return nil, errors.New("it cannot come both from a variable and from elsewhere")
	case o.Env != "":
		k.Private = "env:" + o.Env
		return r.fromEnv(o.Env)
	case o.Import != nil:
		return parsePrivate(o.Import)
	case o.Algorithm == "":
		return generate(Ed25519)
	}
	return generate(o.Algorithm)
}

func (r *Ring) add(k *Key, private crypto.Signer, first bool) error {
	published := 0
	for i := range r.keys {
		if r.keys[i].ID == k.ID || first && r.keys[i].Use == k.Use {
			return fmt.Errorf("%w: %s", ErrExists, r.keys[i].ID)
		}
		if r.keys[i].Use == Manifest {
			published++
		}
	}
	if k.Use == Manifest && published >= MaxKeys {
		return fmt.Errorf("there are %d: %w", MaxKeys, ErrFull)
	}
	if k.Private == "file" {
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return errors.New("the private key cannot be written as PKCS#8")
		}
		b := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		if err := file.Replace(r.privatePath(k.ID), b, 0o600); err != nil {
			return fmt.Errorf("writing the private key: %w", err)
		}
	}
	r.signers[k.ID] = private
	r.keys = append(r.keys, *k)
	return nil
}

// Retire ends a key's signing at a time, which may be in the future; zero means now. What it signed until then stays
// valid.
func (r *Ring) Retire(id string, at time.Time) error {
	err := r.changeKey(id, func(k *Key) error {
		at := r.orNow(at)
		switch {
		case !k.RetiredAt.IsZero():
			return errors.New("it is retired already")
		case !k.RevokedAt.IsZero():
			return errors.New("it is revoked")
		case at.Before(k.NotBefore):
			return errors.New("it was not yet valid at that time")
		}
		k.RetiredAt, k.NotAfter = at, at
		return nil
	})
	if err != nil {
		return fmt.Errorf("retiring the key %s: %w", id, err)
	}
	return nil
}

// Revoke declares a key untrusted for signatures made at a time or later; zero means now, and the future is not
// allowed. A revocation can be moved to an earlier time but never to a later one.
func (r *Ring) Revoke(id string, at time.Time, reason string) error {
	err := r.changeKey(id, func(k *Key) error {
		at := r.orNow(at)
		switch {
		case at.After(r.now()):
			return errors.New("that time is in the future")
		case !k.RevokedAt.IsZero() && !at.Before(k.RevokedAt):
			return errors.New("it is revoked already")
		case len(reason) > maxReason || !utf8.ValidString(reason):
			return fmt.Errorf("the reason is longer than %d bytes, or not UTF-8", maxReason)
		}
		k.RevokedAt, k.Reason = at, reason
		return nil
	})
	if err != nil {
		return fmt.Errorf("revoking the key %s: %w", id, err)
	}
	return nil
}

// Forget removes a key that has signed nothing since a time, and its private half if the ring has it. It must be a
// manifest key, retired or revoked before that time. What it signed can no longer be verified.
func (r *Ring) Forget(id string, since time.Time) error {
	err := r.change(func() error {
		i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
		if i < 0 {
			return ErrNotFound
		}
		k := &r.keys[i]
		end := k.NotAfter
		if end.IsZero() || !k.RevokedAt.IsZero() && k.RevokedAt.Before(end) {
			end = k.RevokedAt
		}
		switch {
		case k.Use != Manifest:
			return errors.New("a log needs all its keys to verify its checkpoints")
		case end.IsZero():
			return errors.New("it is neither retired nor revoked")
		case !end.Before(since):
			return fmt.Errorf("it signed until %s", end.Format(time.RFC3339))
		}
		delete(r.signers, id)
		r.keys = slices.Delete(r.keys, i, i+1)
		return nil
	})
	if err == nil && r.dir != "" {
		if err = os.Remove(r.privatePath(id)); errors.Is(err, fs.ErrNotExist) { // it may be in a variable
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("forgetting the key %s: %w", id, err)
	}
	return nil
}

// List returns the keys, newest first. If the directory cannot be read any more, it returns those read last.
func (r *Ring) List() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.reload() // Signer and Directory report the error
	return slices.Clone(r.keys)
}

// Signer returns the newest key of a use that is valid now and neither retired nor revoked, with its private half: an
// [ed25519.PrivateKey] or *[ecdsa.PrivateKey]. The error is [ErrNoKey] if there is none. If its private key cannot be
// read, Signer fails: it never falls back to an older key.
func (r *Ring) Signer(use Use) (*Key, crypto.Signer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.reload(); err != nil {
		return nil, nil, err
	}
	now := r.now()
	for _, k := range r.keys {
		_, good := k.Good(now) // a key that was ever revoked is excluded whatever the clock says
		if k.Use != use || !good || !k.RevokedAt.IsZero() || k.Private == "" {
			continue
		}
		s, err := r.signer(&k)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the private key of %s: %w", k.ID, err)
		}
		return &k, s, nil
	}
	return nil, nil, fmt.Errorf("looking for a key to sign a %s: %w", use, ErrNoKey)
}

// signer returns the private key, which must match the public one.
func (r *Ring) signer(k *Key) (crypto.Signer, error) {
	if s := r.signers[k.ID]; s != nil {
		return s, nil
	}
	var s crypto.Signer
	var err error
	if name, ok := strings.CutPrefix(k.Private, "env:"); ok {
		s, err = r.fromEnv(name)
	} else {
		s, err = r.readPrivate(k.ID)
	}
	if err != nil {
		return nil, err
	}
	if id, err := Thumbprint(s.Public()); err != nil || id != k.ID {
		return nil, errors.New("it is the private key of another key")
	}
	r.signers[k.ID] = s
	return s, nil
}

func (r *Ring) fromEnv(name string) (crypto.Signer, error) {
	value := ""
	if r.o.Getenv != nil {
		value = r.o.Getenv(name)
	}
	if value == "" {
		return nil, fmt.Errorf("the environment variable %s is not set", name)
	}
	s, err := parsePrivate([]byte(value))
	if err != nil {
		return nil, fmt.Errorf("the environment variable %s: %w", name, err)
	}
	return s, nil
}

// now returns the time in whole seconds, as in signatures and directories: otherwise the first signatures of a new key
// would seem older than the key.
func (r *Ring) now() time.Time { return r.orNow(time.Time{}) }

func (r *Ring) orNow(t time.Time) time.Time {
	switch {
	case !t.IsZero():
	case r.o.Now != nil:
		t = r.o.Now()
	default:
		t = time.Now()
	}
	return t.UTC().Truncate(time.Second)
}

func (r *Ring) changeKey(id string, f func(*Key) error) error {
	return r.change(func() error {
		i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
		if i < 0 {
			return ErrNotFound
		}
		return f(&r.keys[i])
	})
}

// maxFile is how many bytes of a file are read: enough for thousands of keys.
const maxFile = 4 << 20

// content is the content of keys.json: everything about the keys that is not secret.
type content struct {
	Version int      `json:"version"` // 1
	Keys    []record `json:"keys"`
}

// record is a Key in keys.json.
type record struct {
	Key
	Public *jwk `json:"public"`
}

// checked returns the key, with its public half.
func (f *record) checked(testKeys bool) (*Key, error) {
	if f.Public == nil {
		return nil, errors.New("it has no public key")
	}
	public, err := f.Public.key(testKeys)
	if err != nil {
		return nil, err
	}
	k := f.Key
	if k.ID != public.ID || k.Algorithm != public.Algorithm {
		return nil, errors.New("its id or algorithm is not that of the public key")
	}
	k.Public = public.Public
	for _, t := range []*time.Time{&k.Created, &k.NotBefore, &k.NotAfter, &k.RetiredAt, &k.RevokedAt} {
		*t = t.UTC()
	}
	return &k, k.check()
}

// check refuses keys that could not have been created by this package.
func (k *Key) check() error {
	env, fromEnv := strings.CutPrefix(k.Private, "env:")
	switch {
	case k.Use != Manifest && k.Use != Log:
		return fmt.Errorf("there is no use %q; the uses are %s and %s", k.Use, Manifest, Log)
	case k.Use == Log && k.Algorithm != Ed25519:
		return fmt.Errorf("a log key must be %s", Ed25519)
	case fromEnv && !variable.MatchString(env):
		return fmt.Errorf("%q is not the name of an environment variable", env)
	case !fromEnv && k.Private != "file" && k.Private != "memory" && k.Private != "":
		return errors.New("the location of its private key is not valid")
	}
	return nil
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (r *Ring) path(name string) string { return filepath.Join(r.dir, name) }

// reload reads keys.json unless it is the file that was read last.
func (r *Ring) reload() error {
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
		return nil, nil, fmt.Errorf("%s: others can write to it; use chmod 700", r.dir)
	}
	b, stamp, err := readFile(r.path("keys.json"), 0o022)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var f content
	if err := unmarshal(b, &f); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", r.path("keys.json"), err)
	}
	if f.Version != 1 {
		return nil, nil, fmt.Errorf("%s: its version is %d, not 1", r.path("keys.json"), f.Version)
	}
	var keys []Key
	for i := range f.Keys {
		k, err := f.Keys[i].checked(r.o.TestKeys)
		if err == nil && slices.ContainsFunc(keys, func(o Key) bool { return o.ID == k.ID }) {
			err = errors.New("it appears twice")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: key %d: %w", r.path("keys.json"), i, err)
		}
		if info, err := os.Stat(r.privatePath(k.ID)); err == nil && others(info, 0o077) {
			return nil, nil, fmt.Errorf(
				"%s: others can read it and may have copied it; use chmod 600", r.privatePath(k.ID),
			)
		}
		keys = append(keys, *k)
	}
	sortKeys(keys)
	return keys, stamp, nil
}

// sortKeys sorts keys newest first; of those created in the same second, the one added last comes first.
func sortKeys(keys []Key) {
	slices.Reverse(keys)
	slices.SortStableFunc(keys, func(a, b Key) int { return b.Created.Compare(a.Created) })
}

// others reports whether anyone but the owner has one of these permissions.
func others(info os.FileInfo, rights fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&rights != 0 // Windows has other permissions
}

// readFile reads a file of limited size that must not grant anyone but the owner one of these permissions.
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
		return nil, nil, fmt.Errorf("%s: it is not a private file, or longer than %d bytes", name, maxFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return b, info, err
}

// change changes the keys by f, excluding other processes, and writes them. On error, nothing has changed.
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
			return fmt.Errorf("creating the directory: %w", err)
		}
		lock, err := file.Lock(r.path("lock"))
		if err != nil {
			return fmt.Errorf("locking the keys: %w", err)
		}
		defer func() { _ = lock.Close() }() // unlocks
		r.stamp = nil
		if err := r.reload(); err != nil {
			return err
		}
		before = r.keys
	}
	r.keys = slices.Clone(r.keys)
	slices.Reverse(r.keys) // in the order of the file
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
	f := content{Version: 1}
	for i := range r.keys {
		public, err := newJWK(r.keys[i].Public)
		if err != nil {
			return fmt.Errorf("writing the key %s: %w", r.keys[i].ID, err)
		}
		f.Keys = append(f.Keys, record{r.keys[i], public})
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	if err := file.Replace(r.path("keys.json"), append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the keys: %w", err)
	}
	r.stamp = nil // the next call reads what was written
	return nil
}

func (r *Ring) privatePath(id string) string { return r.path(id + ".pem") }

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
