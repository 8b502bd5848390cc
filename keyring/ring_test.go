package keyring_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/keyring"
)

var noon = time.Date(2026, 4, 28, 12, 0, 0, 0, time.UTC)

// clock is a clock that stands still until it is set.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// openRing opens a ring of its own directory at noon.
func openRing(tb testing.TB) (ring *keyring.Ring, dir string, at *clock) {
	tb.Helper()
	dir, at = filepath.Join(tb.TempDir(), "keys"), &clock{noon.Add(700 * time.Millisecond)}
	return reopen(tb, dir, at), dir, at
}

func reopen(tb testing.TB, dir string, at *clock) *keyring.Ring {
	tb.Helper()
	r, err := keyring.Open(dir, &keyring.Options{Now: at.now})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// newKey makes a key; no generated id looks like a flag on a command line.
func newKey(tb testing.TB, r *keyring.Ring, o *keyring.NewOptions) *keyring.Key {
	tb.Helper()
	k, err := r.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	if strings.HasPrefix(k.ID, "-") {
		tb.Errorf("the id %s looks like a flag", k.ID)
	}
	return k
}

// signs reports an error unless the signer's signatures verify with the key.
func signs(tb testing.TB, k *keyring.Key, s crypto.Signer) {
	tb.Helper()
	text := []byte("heron")
	switch pub := k.Public.(type) {
	case ed25519.PublicKey:
		if value, err := s.Sign(rand.Reader, text, crypto.Hash(0)); err != nil || !ed25519.Verify(pub, text, value) {
			tb.Errorf("the signer is not that of %s: %v", k.ID, err)
		}
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(text)
		if value, err := s.Sign(rand.Reader, sum[:], crypto.SHA256); err != nil || !ecdsa.VerifyASN1(pub, sum[:], value) {
			tb.Errorf("the signer is not that of %s: %v", k.ID, err)
		}
	default:
		tb.Errorf("the public key is a %T", pub)
	}
}

// The life of a key: created, followed by another, retired, revoked. It is the same in memory, and on disk as read
// after each step by another ring, as by another process.
func TestLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	at := &clock{noon.Add(700 * time.Millisecond)}
	memory := keyring.Memory(&keyring.Options{Now: at.now})
	for name, open := range map[string]func() *keyring.Ring{
		"memory": func() *keyring.Ring { return memory },
		"disk":   func() *keyring.Ring { return reopen(t, dir, at) },
	} {
		t.Run(name, func(t *testing.T) {
			at.Time = noon.Add(700 * time.Millisecond)
			if _, _, err := open().Signer(keyring.Manifest); !errors.Is(err, keyring.ErrNoKey) {
				t.Errorf("Signer of no keys = %v", err)
			}
			first := newKey(t, open(), nil)
			want := keyring.Key{
				ID: first.ID, Use: keyring.Manifest, Algorithm: keyring.Ed25519, Created: noon, NotBefore: noon,
				Public: first.Public, Private: map[string]string{"memory": "memory", "disk": "file"}[name],
			}
			if diff := cmp.Diff(want, *first); diff != "" {
				t.Errorf("a new key (-want +got):\n%s", diff)
			}
			if why, ok := first.Good(noon); !ok {
				t.Errorf("what it signs in its first second is %s", why)
			}
			at.Time = noon.Add(time.Hour)
			second := newKey(t, open(), &keyring.NewOptions{Algorithm: keyring.ECDSAP256})
			log := newKey(t, open(), &keyring.NewOptions{Use: keyring.Log})
			later := newKey(t, open(), &keyring.NewOptions{At: noon.Add(48 * time.Hour)})
			for use, want := range map[keyring.Use]*keyring.Key{keyring.Manifest: second, keyring.Log: log} {
				k, s, err := open().Signer(use)
				if err != nil || k.ID != want.ID {
					t.Fatalf("Signer(%s) = %v, %v; want the newest, %s", use, k, err, want.ID)
				}
				signs(t, k, s)
			}
			if got := ids(t, open(), false); got != names(later, second, first) {
				t.Errorf("the directory has %s", got)
			}

			check(t, open().Retire(second.ID, noon.Add(2*time.Hour)))
			if k, _, err := open().Signer(keyring.Manifest); err != nil || k.ID != second.ID {
				t.Errorf("a key to be retired does not sign until then: %v, %v", k, err)
			}
			at.Time = noon.Add(3 * time.Hour)
			if k, _, err := open().Signer(keyring.Manifest); err != nil || k.ID != first.ID {
				t.Errorf("after the newest is retired %v signs, %v", k, err)
			}
			check(t, open().Revoke(first.ID, noon.Add(time.Minute), "it was on a laptop"))
			if k, _, err := open().Signer(keyring.Manifest); !errors.Is(err, keyring.ErrNoKey) {
				t.Errorf("after all are gone %v signs, %v", k, err)
			}
			if got := ids(t, open(), false); got != names(later) {
				t.Errorf("the directory of the active keys has %s", got)
			}
			if got := ids(t, open(), true); got != names(later, second, first) {
				t.Errorf("the directory of all keys has %s", got)
			}
			check(t, open().Revoke(first.ID, noon.Add(time.Second), "earlier"))

			list := open().List()
			want.RevokedAt, want.Reason = noon.Add(time.Second), "earlier"
			if diff := cmp.Diff(want, list[len(list)-1]); len(list) != 4 || diff != "" {
				t.Errorf("List has %d; the first one (-want +got):\n%s", len(list), diff)
			}
		})
	}
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Error(err)
	}
}

func names(keys ...*keyring.Key) string {
	var list []string
	for _, k := range keys {
		list = append(list, k.ID)
	}
	return strings.Join(list, " ")
}

// ids returns the ids in a ring's published directory.
func ids(tb testing.TB, r *keyring.Ring, all bool) string {
	tb.Helper()
	b, err := r.Directory(all)
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := keyring.ParseDirectory(b, nil)
	if err != nil {
		tb.Fatal(err)
	}
	var list []*keyring.Key
	for i := range keys {
		list = append(list, &keys[i])
	}
	return names(list...)
}

func TestGood(t *testing.T) {
	k := &keyring.Key{NotBefore: noon, NotAfter: noon.Add(time.Hour)}
	revoked := &keyring.Key{NotBefore: noon, NotAfter: noon.Add(time.Hour), RevokedAt: noon.Add(time.Minute)}
	for _, test := range []struct {
		about   string
		k       *keyring.Key
		created time.Time
		want    string
	}{
		{"open", &keyring.Key{}, noon, ""},
		{"before", k, noon.Add(-time.Second), keyring.OutsideValidity},
		{"at the start", k, noon, ""},
		{"at the end", k, noon.Add(time.Hour), ""},
		{"after", k, noon.Add(time.Hour + time.Second), keyring.OutsideValidity},
		{"before it was revoked", revoked, noon.Add(time.Minute - time.Second), ""},
		{"when it was revoked", revoked, noon.Add(time.Minute), keyring.Revoked},
		{"revoked and after", revoked, noon.Add(2 * time.Hour), keyring.Revoked},
	} {
		if why, ok := test.k.Good(test.created); why != test.want || ok != (test.want == "") {
			t.Errorf("%s: %q, %t; want %q", test.about, why, ok, test.want)
		}
	}
}

// Invalid requests return errors and change nothing.
func TestRefused(t *testing.T) {
	r, dir, at := openRing(t)
	retired, revoked, good := newKey(t, r, nil), newKey(t, r, nil), newKey(t, r, nil)
	check(t, r.Retire(retired.ID, time.Time{}))
	check(t, r.Revoke(revoked.ID, time.Time{}, ""))
	private, err := os.ReadFile(filepath.Join(dir, good.ID+".pem"))
	if err != nil {
		t.Fatal(err)
	}
	want := r.List()
	for about, err := range map[string]error{
		"retire nobody":        r.Retire("heron", time.Time{}),
		"retire again":         r.Retire(retired.ID, noon.Add(time.Hour)),
		"retire a revoked":     r.Retire(revoked.ID, time.Time{}),
		"retire before":        r.Retire(good.ID, noon.Add(-time.Second)),
		"revoke nobody":        r.Revoke("heron", time.Time{}, ""),
		"revoke later":         r.Revoke(revoked.ID, noon, ""),
		"revoke in the future": r.Revoke(good.ID, noon.Add(time.Second), ""),
		"revoke at length":     r.Revoke(good.ID, noon, strings.Repeat("x", keyring.MaxReason+1)),
		"revoke unreadably":    r.Revoke(good.ID, noon, "\xff"),
		"algorithm":            second(r.New(&keyring.NewOptions{Algorithm: "rsa-pss-sha512"})),
		"use":                  second(r.New(&keyring.NewOptions{Use: "heron"})),
		"log with P-256":       second(r.New(&keyring.NewOptions{Use: keyring.Log, Algorithm: keyring.ECDSAP256})),
		"another algorithm":    second(r.New(&keyring.NewOptions{Import: private, Algorithm: keyring.ECDSAP256})),
		"there already":        second(r.New(&keyring.NewOptions{Import: private})),
		"variable and file":    second(r.New(&keyring.NewOptions{Import: private, Env: "KEY"})),
		"no environment":       second(r.New(&keyring.NewOptions{Env: "KEY"})),
		"no directory":         second(keyring.Open("", nil)),
	} {
		if err == nil {
			t.Errorf("%s: no error", about)
		}
		if strings.Contains(about, "nobody") && !errors.Is(err, keyring.ErrNotFound) || about == "there already" && !errors.Is(err, keyring.ErrExists) {
			t.Errorf("%s: %v", about, err)
		}
	}
	if diff := cmp.Diff(want, r.List()); diff != "" {
		t.Errorf("the keys have changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, reopen(t, dir, at).List()); diff != "" {
		t.Errorf("the files have changed (-want +got):\n%s", diff)
	}
}

func second[T any](_ T, err error) error { return err }

// There are never more keys than readers of a directory accept, and there is room for another once one is no longer
// needed.
func TestMaxKeys(t *testing.T) {
	r := keyring.Memory(nil)
	old := newKey(t, r, &keyring.NewOptions{At: noon})
	for range keyring.MaxKeys - 1 {
		newKey(t, r, nil)
	}
	if _, err := r.New(nil); !errors.Is(err, keyring.ErrFull) {
		t.Errorf("there can be more keys than can be published: %v", err)
	}
	check(t, r.Retire(old.ID, noon))
	check(t, r.Forget(old.ID, noon.Add(time.Second)))
	newKey(t, r, nil)
	newKey(t, r, &keyring.NewOptions{Use: keyring.Log})
	if got := len(strings.Fields(ids(t, r, true))); got != keyring.MaxKeys {
		t.Errorf("%d keys are published", got)
	}
}

// A key is forgotten with its private half once it has signed nothing for the requested time, and not before.
func TestForget(t *testing.T) {
	r, dir, at := openRing(t)
	retired, revoked, both, good := newKey(t, r, nil), newKey(t, r, nil), newKey(t, r, nil), newKey(t, r, nil)
	log := newKey(t, r, &keyring.NewOptions{Use: keyring.Log})
	at.Time = noon.Add(24 * time.Hour)
	check(t, r.Retire(retired.ID, noon.Add(time.Hour)))
	check(t, r.Revoke(revoked.ID, noon.Add(time.Hour), ""))
	check(t, r.Retire(both.ID, noon.Add(2*time.Hour)))
	check(t, r.Revoke(both.ID, noon.Add(time.Hour), ""))
	check(t, r.Retire(log.ID, noon.Add(time.Hour)))
	later := noon.Add(time.Hour + time.Second)
	for about, err := range map[string]error{
		"nobody":      r.Forget("heron", later),
		"a good one":  r.Forget(good.ID, later),
		"the log's":   r.Forget(log.ID, later),
		"too soon":    r.Forget(retired.ID, noon.Add(time.Hour)),
		"revoked now": r.Forget(revoked.ID, noon.Add(time.Hour)),
	} {
		if err == nil || (about == "nobody") != errors.Is(err, keyring.ErrNotFound) {
			t.Errorf("%s is forgotten: %v", about, err)
		}
	}
	for _, k := range []*keyring.Key{retired, revoked, both} {
		check(t, r.Forget(k.ID, later))
		if _, err := os.Stat(filepath.Join(dir, k.ID+".pem")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the private key is still there: %v", err)
		}
	}
	if got, want := len(reopen(t, dir, at).List()), 2; got != want {
		t.Errorf("%d keys are left, want %d", got, want)
	}
	if k, _, err := r.Signer(keyring.Manifest); err != nil || k.ID != good.ID {
		t.Errorf("Signer = %v, %v", k, err)
	}
}

// If many processes start at once on one directory, one creates the first key.
func TestFirst(t *testing.T) {
	_, dir, at := openRing(t)
	var all sync.WaitGroup
	for range 8 {
		r := reopen(t, dir, at)
		for _, use := range []keyring.Use{keyring.Manifest, keyring.Log} {
			all.Go(func() {
				if _, err := r.New(&keyring.NewOptions{Use: use, First: true}); err != nil && !errors.Is(err, keyring.ErrExists) {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	r := reopen(t, dir, at)
	if list := r.List(); len(list) != 2 || list[0].Use == list[1].Use {
		t.Errorf("there are %d keys", len(list))
	}
	for _, k := range r.List() {
		check(t, r.Retire(k.ID, time.Time{}))
		if _, err := r.New(&keyring.NewOptions{Use: k.Use, First: true}); !errors.Is(err, keyring.ErrExists) {
			t.Errorf("a first key after one that is retired: %v", err)
		}
	}
}

// Two rings of one directory, like two processes, see each other's changes, and none is lost.
func TestConcurrent(t *testing.T) {
	r, dir, at := openRing(t)
	other := reopen(t, dir, at)
	k := newKey(t, other, nil)
	if got, _, err := r.Signer(keyring.Manifest); err != nil || got.ID != k.ID {
		t.Errorf("the key that another made is not seen: %v, %v", got, err)
	}
	check(t, other.Revoke(k.ID, time.Time{}, ""))
	if got, _, err := r.Signer(keyring.Manifest); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("the key that another revoked signs: %v, %v", got, err)
	}

	var all sync.WaitGroup
	const each = 5
	for range 4 {
		r := reopen(t, dir, at)
		all.Go(func() {
			for range each {
				k, err := r.New(nil)
				if err == nil {
					_, _, err = r.Signer(keyring.Manifest)
				}
				if err == nil {
					err = r.Retire(k.ID, time.Time{})
				}
				if err != nil {
					t.Error(err)
				}
				_, _ = r.List(), other.List()
			}
		})
	}
	all.Wait()
	if got := len(r.List()); got != 4*each+1 {
		t.Errorf("there are %d keys, want %d", got, 4*each+1)
	}
	for _, k := range r.List() {
		if k.RetiredAt.IsZero() && k.RevokedAt.IsZero() {
			t.Errorf("the retirement of %s is lost", k.ID)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 4*each+1+2 { // a file per key, keys.json, lock
		t.Errorf("the directory has %d files: %v", len(entries), entries)
	}
}

// Others can neither read the private keys nor write anything.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other rights")
	}
	r, dir, at := openRing(t)
	k := newKey(t, r, nil)
	private, public := filepath.Join(dir, k.ID+".pem"), filepath.Join(dir, "keys.json")
	for name, want := range map[string]os.FileMode{dir: 0o700, private: 0o600, public: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	for _, test := range []struct {
		name        string
		good, wrong os.FileMode
	}{{private, 0o600, 0o640}, {private, 0o400, 0o604}, {public, 0o644, 0o664}, {dir, 0o755, 0o777}} {
		if err := os.Chmod(test.name, test.wrong); err != nil {
			t.Fatal(err)
		}
		if _, err := keyring.Open(dir, nil); err == nil {
			t.Errorf("%s with mode %o is accepted", test.name, test.wrong)
		}
		if err := os.Chmod(test.name, test.good); err != nil {
			t.Fatal(err)
		}
		if _, err := keyring.Open(dir, nil); err != nil {
			t.Errorf("%s with mode %o: %v", test.name, test.good, err)
		}
	}
	// This holds even if it happens after the ring was opened but before the key was needed.
	fresh := reopen(t, dir, at)
	if err := os.Chmod(private, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fresh.Signer(keyring.Manifest); err == nil {
		t.Error("a key that others can read signs")
	}
}

// Invalid content of the directory is refused, and never replaced by something older.
func TestDamaged(t *testing.T) {
	source, from, _ := openRing(t)
	old := newKey(t, source, nil)
	k := newKey(t, source, nil)
	public, err := os.ReadFile(filepath.Join(from, "keys.json"))
	if err != nil {
		t.Fatal(err)
	}
	for about, test := range map[string]struct {
		file, old, with string // of keys.json: replaced once; of a private key: replaced as a whole, removed if empty
		opens           bool
	}{
		"no JSON":                {"keys.json", "{", "[", false},
		"another version":        {"keys.json", `"version": 1`, `"version": 2`, false},
		"name twice":             {"keys.json", `"version": 1`, `"version": 1, "version": 1`, false},
		"name in upper case":     {"keys.json", `"public"`, `"PUBLIC"`, false},
		"another id":             {"keys.json", `"id": "`, `"id": "x`, false},
		"id of a file elsewhere": {"keys.json", `"id": "` + old.ID, `"id": "../` + old.ID, false},
		"another algorithm":      {"keys.json", `"algorithm": "ed25519"`, `"algorithm": "ecdsa-p256-sha256"`, false},
		"another use":            {"keys.json", `"use": "manifest"`, `"use": "everything"`, false},
		"another place":          {"keys.json", `"private": "file"`, `"private": "nail"`, false},
		"no variable":            {"keys.json", `"private": "file"`, `"private": "env:a b"`, false},
		"no point":               {"keys.json", `"kty": "OKP"`, `"kty": "EC"`, false},
		"twice":                  {"keys.json", old.ID + `",`, k.ID + `",`, false},
		"a test key":             {"keys.json", x(t, old), "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs", false},
		"private key is gone":    {k.ID + ".pem", "", "", true},
		"private key is empty":   {k.ID + ".pem", "", " ", true},
		"another private key":    {k.ID + ".pem", "", read(t, filepath.Join(from, old.ID+".pem")), true},
		"a long private key":     {k.ID + ".pem", "", strings.Repeat("x", 5<<20), true},
	} {
		t.Run(about, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{old.ID + ".pem", k.ID + ".pem"} {
				write(t, filepath.Join(dir, name), read(t, filepath.Join(from, name)))
			}
			write(t, filepath.Join(dir, "keys.json"), string(public))
			r := reopen(t, dir, &clock{noon})
			switch {
			case test.file == "keys.json":
				if !strings.Contains(string(public), test.old) {
					t.Fatalf("the file has no %s:\n%s", test.old, public)
				}
				write(t, filepath.Join(dir, test.file), strings.Replace(string(public), test.old, test.with, 1))
			case test.with == "":
				if err := os.Remove(filepath.Join(dir, test.file)); err != nil {
					t.Fatal(err)
				}
			default:
				write(t, filepath.Join(dir, test.file), test.with)
			}
			if _, _, err := r.Signer(keyring.Manifest); err == nil || errors.Is(err, keyring.ErrNoKey) {
				t.Errorf("Signer: %v", err)
			}
			if _, err := keyring.Open(dir, nil); (err == nil) != test.opens {
				t.Errorf("Open: %v", err)
			}
			if test.opens {
				return
			}
			if _, err := r.Directory(true); err == nil {
				t.Error("Directory publishes something")
			}
			if _, err := r.New(nil); err == nil {
				t.Error("New writes over it")
			}
			if len(r.List()) != 2 {
				t.Error("List has forgotten what was there")
			}
		})
	}
}

func read(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func write(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func x(tb testing.TB, k *keyring.Key) string {
	tb.Helper()
	return base64.RawURLEncoding.EncodeToString(k.Public.(ed25519.PublicKey))
}

// A key can be imported from an environment variable, or from a file of another program. No part of it ever appears in
// an error or in keys.json.
func TestImport(t *testing.T) {
	ed := ed25519.NewKeyFromSeed([]byte("heron heron heron heron heron he"))
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d, err := ec.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	point, err := ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	edJWK := fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q,"d":%q}`, b64(ed[32:]), b64(ed.Seed()))
	ecJWK := fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q,"d":%q,"kid":"mine"}`, b64(point[1:33]), b64(point[33:]), b64(d))
	for about, test := range map[string]struct {
		text string
		alg  string // empty if refused
	}{
		"Ed25519 as PEM":        {pkcs8(t, ed), keyring.Ed25519},
		"P-256 as PEM":          {"\n" + pkcs8(t, ec) + "\n", keyring.ECDSAP256},
		"Ed25519 as JWK":        {edJWK, keyring.Ed25519},
		"P-256 as JWK":          {" " + ecJWK, keyring.ECDSAP256},
		"another public half":   {strings.Replace(edJWK, b64(ed[32:]), b64(make([]byte, 32)), 1), ""},
		"another private half":  {strings.Replace(ecJWK, b64(d), b64(append([]byte{1}, make([]byte, 31)...)), 1), ""},
		"public JWK":            {strings.Replace(edJWK, `"d"`, `"e"`, 1), ""},
		"broken JWK":            {strings.Replace(edJWK, "}", ",", 1), ""},
		"secret":                {`{"kty":"oct","k":"aGVyb24"}`, ""},
		"P-384":                 {pkcs8(t, newP384(t)), ""},
		"two PEM blocks":        {pkcs8(t, ed) + pkcs8(t, ec), ""},
		"words before it":       {"key: " + pkcs8(t, ed), ""},
		"another type":          {strings.ReplaceAll(pkcs8(t, ed), "PRIVATE KEY", "EC PRIVATE KEY"), ""},
		"half":                  {pkcs8(t, ed)[:60], ""},
		"half of the octets":    {string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ed})), ""},
		"text":                  {"heron-heron-heron", ""},
		"a key of a standard":   {`{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`, ""},
		"another of a standard": {`{"kty":"EC","crv":"P-256","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`, ""},
	} {
		t.Run(about, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "keys")
			o := &keyring.Options{Getenv: func(name string) string { return map[string]string{"IBID_KEY": test.text}[name] }}
			for _, how := range []*keyring.NewOptions{{Env: "IBID_KEY"}, {Import: []byte(test.text)}} {
				r, err := keyring.Open(dir, o)
				if err != nil {
					t.Fatal(err)
				}
				k, err := r.New(how)
				if err == nil {
					if k.Algorithm != test.alg {
						t.Fatalf("it is taken for %s, want %q", k.Algorithm, test.alg)
					}
					imported(t, dir, o, k)
					noSecret(t, read(t, filepath.Join(dir, "keys.json")), test.text)
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
					continue
				}
				noSecret(t, err.Error(), test.text)
				if test.alg != "" {
					t.Error(err)
				}
				if _, err := os.Stat(dir); err == nil {
					t.Error("a directory was made for nothing")
				}
			}
		})
	}
}

// imported checks that an imported key signs, and one from a variable only where that is set.
func imported(tb testing.TB, dir string, o *keyring.Options, k *keyring.Key) {
	tb.Helper()
	again, s, err := must(keyring.Open(dir, o)).Signer(keyring.Manifest)
	if err != nil || again.ID != k.ID {
		tb.Fatalf("%v, %v; want %v", again, err, k)
	}
	signs(tb, k, s)
	if k.Private != "file" {
		err := second3(must(keyring.Open(dir, nil)).Signer(keyring.Manifest))
		if err == nil || !strings.Contains(err.Error(), "IBID_KEY is not set") {
			tb.Errorf("without the variable: %v", err)
		}
	}
}

func second3[A, B any](_ A, _ B, err error) error { return err }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newP384(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func pkcs8(tb testing.TB, key any) string {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// noSecret reports an error if any eight characters of the private key appear in a text.
func noSecret(tb testing.TB, text, secret string) {
	tb.Helper()
	var values map[string]string
	if json.Unmarshal([]byte(secret), &values) == nil {
		secret = values["d"] + values["k"] // the rest is public
	} else {
		secret = strings.NewReplacer("-----BEGIN", "", "-----END", "", "PRIVATE KEY", "").Replace(secret)
	}
	for i := 0; i+8 <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+8]) {
			tb.Fatalf("%q has %q of the private key", text, secret[i:i+8])
		}
	}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
