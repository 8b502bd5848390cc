package keyring

import (
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// What can be wrong; errors wrap these.
var (
	ErrNoKey    = errors.New("there is no usable key")
	ErrNotFound = errors.New("there is no such key")
	ErrExists   = errors.New("the key is there already")
	ErrFull     = errors.New("nobody reads a directory of more keys; forget one whose manifests are gone")
)

// MaxReason is how many bytes the reason of a revocation may have.
const MaxReason = 1024

// Options are those of a ring; nil is all defaults.
type Options struct {
	Getenv   func(name string) string // looks up env:NAME; nil: there is no environment
	Now      func() time.Time         // nil: time.Now
	TestKeys bool                     // only for tests: keys whose private half is printed in a standard are accepted
}

// Ring is the keys of one publisher. It is safe for concurrent use; several processes may use one directory, and each
// sees what the others change at its next call.
type Ring struct {
	dir string // empty: in memory
	o   Options

	mu      sync.Mutex
	keys    []Key // newest first
	stamp   os.FileInfo
	signers map[string]crypto.Signer // by id, as far as they were needed
}

func newRing(dir string, o *Options) *Ring {
	r := &Ring{dir: dir, signers: map[string]crypto.Signer{}}
	if o != nil {
		r.o = *o
	}
	return r
}

// Open opens the ring in a directory, which the first [Ring.New] makes if it is not there. A directory that others can
// write to is refused, and a private key that others can read.
func Open(dir string, o *Options) (*Ring, error) {
	if dir == "" {
		return nil, errors.New("opening the keys: no directory is named")
	}
	r := newRing(dir, o)
	if err := r.Reload(); err != nil {
		return nil, err
	}
	return r, nil
}

// Memory returns an empty ring that ends with the process: for examples, tests, and agents without a disk, which hand
// their key to [Ring.New].
func Memory(o *Options) *Ring { return newRing("", o) }

// NewOptions says what key is to be made; nil makes an Ed25519 key for manifests that is good from now on.
type NewOptions struct {
	Use       Use       // empty: Manifest
	Algorithm string    // empty: that of Import or Env, otherwise Ed25519
	At        time.Time // since when it is good; zero: now
	// the environment variable that has the private key, as PKCS#8 in PEM or a private JWK; the ring keeps only its
	// name
	Env    string
	Import []byte // a private key to keep, in the same forms; nil: a new one is made
	// only if there is none of this use, whatever has become of it; otherwise the error is ErrExists
	First bool
}

// New makes a key, or takes one in.
func (r *Ring) New(o *NewOptions) (*Key, error) {
	if o == nil {
		o = &NewOptions{}
	}
	k, private, err := r.make(o)
	for err == nil && o.Env == "" && o.Import == nil && k.ID[0] == '-' { // to a command line, its id would be a flag
		k, private, err = r.make(o)
	}
	if err == nil {
		err = r.change(func() error { return r.add(k, private, o.First) })
	}
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return k, nil
}

// make makes the key, without putting it into the ring.
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

// privateFor returns the private key that is meant and says in k where it stays.
func (r *Ring) privateFor(o *NewOptions, k *Key) (crypto.Signer, error) {
	if r.dir == "" {
		k.Private = "memory"
	}
	switch {
	case o.Env != "" && o.Import != nil:
		return nil, errors.New("it is to come from a variable and from somewhere else")
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
		if err := r.writePrivate(k.ID, private); err != nil {
			return err
		}
	}
	r.signers[k.ID] = private
	r.keys = append(r.keys, *k)
	return nil
}

// Retire ends a key's signing at a time, which may be one to come; zero is now. What it signed until then stays good.
func (r *Ring) Retire(id string, at time.Time) error {
	err := r.changeKey(id, func(k *Key) error {
		at := r.orNow(at)
		switch {
		case !k.RetiredAt.IsZero():
			return errors.New("it is retired already")
		case !k.RevokedAt.IsZero():
			return errors.New("it is revoked")
		case at.Before(k.NotBefore):
			return errors.New("it was not yet good at that time")
		}
		k.RetiredAt, k.NotAfter = at, at
		return nil
	})
	if err != nil {
		return fmt.Errorf("retiring the key %s: %w", id, err)
	}
	return nil
}

// Revoke says that nothing is to be believed that a key signed at a time or later; zero is now, a time to come is
// refused. It can be moved to an earlier time and never to a later one.
func (r *Ring) Revoke(id string, at time.Time, reason string) error {
	err := r.changeKey(id, func(k *Key) error {
		at := r.orNow(at)
		switch {
		case at.After(r.now()):
			return errors.New("that time is still to come")
		case !k.RevokedAt.IsZero() && !at.Before(k.RevokedAt):
			return errors.New("it is revoked already")
		case len(reason) > MaxReason || !utf8.ValidString(reason):
			return fmt.Errorf("the reason is longer than %d bytes, or not UTF-8", MaxReason)
		}
		k.RevokedAt, k.Reason = at, reason
		return nil
	})
	if err != nil {
		return fmt.Errorf("revoking the key %s: %w", id, err)
	}
	return nil
}

// Forget takes out a key that has signed nothing since a time, and its private half if the ring has it: a manifest key,
// retired or revoked by then. Nobody can verify any more what it signed.
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
			return errors.New("a log needs all its keys to know its own word")
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

// List returns the keys, newest first. If the directory cannot be read any more they are those that were read last.
func (r *Ring) List() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.fresh() // Signer and Directory say so
	return slices.Clone(r.keys)
}

// Reload reads the directory anew. There is no need for it: the other methods do so when it has changed.
func (r *Ring) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stamp = nil
	return r.fresh()
}

// Signer returns the newest key of this use that is good now and neither retired nor revoked, with what signs: an
// [ed25519.PrivateKey] or *[ecdsa.PrivateKey]. It is [ErrNoKey] if there is none. If there is one whose private key
// cannot be read, that is an error: an older key is never used in its place.
func (r *Ring) Signer(use Use) (*Key, crypto.Signer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fresh(); err != nil {
		return nil, nil, err
	}
	now := r.now()
	for _, k := range r.keys {
		if k.Use != use || !k.usable(now) {
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

// signer returns the private key, which must be that of the public one.
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
		return nil, errors.New("it is the private key of another")
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

// now is cut to whole seconds, as signatures and directories say times: otherwise what a new key signs would seem to be
// older than the key.
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
		for i := range r.keys {
			if r.keys[i].ID == id {
				return f(&r.keys[i])
			}
		}
		return ErrNotFound
	})
}
