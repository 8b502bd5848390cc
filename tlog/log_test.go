package tlog_test

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"
	merkle "golang.org/x/mod/sumdb/tlog"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/tlog"
	"github.com/ibidhq/ibid/tlog/tlogtest"
)

const origin = "agent.example/ibid"

func open(tb testing.TB, o tlog.Options) *tlog.Log {
	tb.Helper()
	if o.Origin == "" {
		o.Origin = origin
	}
	if o.Key == nil {
		o.Key = tlogtest.Key(1)
	}
	if o.Tiles == nil {
		o.Tiles = new(tlog.MemoryTiles)
	}
	l, err := tlog.Open(tb.Context(), &o)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func appendN(tb testing.TB, l *tlog.Log, from, to int) {
	tb.Helper()
	for i := from; i < to; i++ {
		if at, err := l.Append(tb.Context(), tlogtest.Digest(i)); err != nil || at[0] != int64(i) {
			tb.Fatalf("Append(%d) = %d, %v", i, at, err)
		}
	}
}

func checkpoint(tb testing.TB, l *tlog.Log) *tlog.Checkpoint {
	tb.Helper()
	signed, err := l.Checkpoint(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	c, err := tlog.ParseCheckpoint(signed, l.VerifierKey())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// local reads a log through its handler, without a network.
func local(l *tlog.Log) tlog.Get {
	h := l.Handler()
	return func(ctx context.Context, path string) ([]byte, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+path, http.NoBody))
		if w.Code == http.StatusNotFound {
			return nil, fmt.Errorf("%s: %w", path, tlog.ErrNotFound)
		}
		if w.Code != http.StatusOK {
			return nil, fmt.Errorf("%s: status %d", path, w.Code)
		}
		return w.Body.Bytes(), nil
	}
}

// mth is the Merkle tree hash as defined in RFC 6962, section 2.1.
func mth(leaves []tlog.Leaf) tlog.Hash {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0][:]...))
	}
	k := 1
	for k*2 < len(leaves) {
		k *= 2
	}
	left, right := mth(leaves[:k]), mth(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

// The published example's leaf hash is that of RFC 6962.
func TestLeafHash(t *testing.T) {
	headers, err := os.ReadFile(filepath.Join(testenv.Shared(t), "spec", "golden", "headers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, digest, _ := strings.Cut(string(headers), "digest=:")
	digest, _, _ = strings.Cut(digest, ":")
	b, err := base64.StdEncoding.DecodeString(digest)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(headers)), "\n")

	l := open(t, tlog.Options{})
	if _, err := l.Append(t.Context(), tlog.Leaf(b)); err != nil {
		t.Fatal(err)
	}
	if got, want := checkpoint(t, l).Root.String(), lines[len(lines)-1]; got != want {
		t.Errorf("the root of a log of one leaf is %s, want its leaf hash %s", got, want)
	}
}

// The format of a log, octet by octet. An Ed25519 signature is determined by key and text.
func TestForm(t *testing.T) {
	l := open(t, tlog.Options{})
	if _, err := l.Append(t.Context(), tlogtest.Digest(0), tlogtest.Digest(1), tlogtest.Digest(2)); err != nil {
		t.Fatal(err)
	}
	const vkey = "agent.example/ibid+bb80e200+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"
	if l.VerifierKey() != vkey {
		t.Errorf("VerifierKey() = %s, want %s", l.VerifierKey(), vkey)
	}
	leaves := []tlog.Leaf{tlogtest.Digest(0), tlogtest.Digest(1), tlogtest.Digest(2)}
	c := checkpoint(t, l)
	text, signature, _ := strings.Cut(string(c.Note), "\n\n")
	if want := "agent.example/ibid\n3\n" + mth(leaves).String(); text != want {
		t.Errorf("the checkpoint says\n%s\nwant\n%s", text, want)
	}
	if !strings.HasPrefix(signature, "— agent.example/ibid ") || strings.Count(signature, "\n") != 1 {
		t.Errorf("the signature is %q", signature)
	}
	proof, err := l.Proof(t.Context(), tlogtest.Digest(2))
	if err != nil {
		t.Fatal(err)
	}
	want := "c2sp.org/tlog-proof@v1\nindex 2\n" + mth(leaves[:2]).String() + "\n\n" + string(c.Note)
	if string(proof) != want {
		t.Errorf("the proof is\n%s\nwant\n%s", proof, want)
	}
}

// For every size up to 600, the root matches the definition, every leaf has a proof, and the tree is consistent with
// those before.
func TestAllSizes(t *testing.T) {
	const most = 600
	edges := map[int]bool{1: true, 2: true, 255: true, 256: true, 257: true, 511: true, 512: true, 513: true, most: true}
	l := open(t, tlog.Options{})
	var leaves []tlog.Leaf
	var heads []*tlog.Checkpoint
	for size := 1; size <= most; size++ {
		leaves = append(leaves, tlogtest.Digest(size-1))
		appendN(t, l, size-1, size)
		head := checkpoint(t, l)
		if head.Size != int64(size) || head.Root != mth(leaves) {
			t.Fatalf("size %d: the checkpoint is %+v", size, head)
		}
		every := size < 40 || edges[size]
		for i := range size {
			if !every && i != 0 && i != size/2 && i != size-1 {
				continue
			}
			proof, err := l.Proof(t.Context(), leaves[i])
			if err != nil {
				t.Fatal(err)
			}
			if c, err := tlog.VerifyProof(proof, leaves[i], l.VerifierKey()); err != nil || c.Size != head.Size {
				t.Fatalf("size %d, leaf %d: VerifyProof = %+v, %v", size, i, c, err)
			}
		}
		heads = append(heads, head)
		get := local(l)
		for i, older := range heads {
			if !every && i != 0 && i != size/2 && i != size-2 {
				continue
			}
			if err := tlog.VerifyConsistency(t.Context(), older, head, get); err != nil {
				t.Fatalf("sizes %d and %d: %v", older.Size, size, err)
			}
		}
	}
	// Old checkpoints remain provable from what the grown log serves; one of a changed tree does not.
	get := local(l)
	for _, older := range heads {
		if err := tlog.VerifyConsistency(t.Context(), older, heads[len(heads)-1], get); err != nil {
			t.Fatal(err)
		}
		forged := *older
		forged.Root[0] ^= 1
		if err := tlog.VerifyConsistency(t.Context(), &forged, heads[len(heads)-1], get); !errors.Is(err, tlog.ErrRewritten) {
			t.Fatalf("size %d with another root: %v, want ErrRewritten", older.Size, err)
		}
	}
}

// A proof of one leaf proves no other, whatever is changed in it.
func TestVerifyProofRefuses(t *testing.T) {
	l := open(t, tlog.Options{})
	appendN(t, l, 0, 300)
	proof, err := l.Proof(t.Context(), tlogtest.Digest(7))
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, tlog.Options{Key: tlogtest.Key(2)})
	renamed := open(t, tlog.Options{Origin: "other.example/ibid"})
	head := string(checkpoint(t, l).Note)
	earlier := open(t, tlog.Options{})
	appendN(t, earlier, 0, 299)

	p, err := tlog.ParseProof(proof)
	if err != nil {
		t.Fatal(err)
	}
	change := func(f func(*tlog.Proof)) []byte {
		changed := *p
		changed.Hashes = append([]tlog.Hash(nil), p.Hashes...)
		f(&changed)
		return changed.Format()
	}
	for _, test := range []struct {
		name   string
		proof  []byte
		digest tlog.Leaf
		vkey   string
		want   error
	}{
		{"as it is", proof, tlogtest.Digest(7), l.VerifierKey(), nil},
		{"extra data", change(func(p *tlog.Proof) { p.Extra = []byte("not signed") }), tlogtest.Digest(7), l.VerifierKey(), nil},
		{"another digest", proof, tlogtest.Digest(8), l.VerifierKey(), tlog.ErrNotIncluded},
		{"another index", change(func(p *tlog.Proof) { p.Index = 8 }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrNotIncluded},
		{"an index outside", change(func(p *tlog.Proof) { p.Index = 300 }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrNotIncluded},
		{"a flipped bit", change(func(p *tlog.Proof) { p.Hashes[3][9] ^= 4 }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrNotIncluded},
		{"a hash less", change(func(p *tlog.Proof) { p.Hashes = p.Hashes[1:] }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrNotIncluded},
		{"a hash more", change(func(p *tlog.Proof) { p.Hashes = append(p.Hashes, tlog.Hash{}) }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrNotIncluded},
		{"another tree's checkpoint", change(func(p *tlog.Proof) { p.Checkpoint = checkpoint(t, earlier).Note }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrNotIncluded},
		{"another size", change(func(p *tlog.Proof) { p.Checkpoint = []byte(strings.Replace(head, "\n300\n", "\n301\n", 1)) }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrUnsigned},
		{"no signature", change(func(p *tlog.Proof) { p.Checkpoint = []byte(head[:strings.Index(head, "\n\n")+2]) }), tlogtest.Digest(7), l.VerifierKey(), tlog.ErrMalformed},
		{"another key", proof, tlogtest.Digest(7), other.VerifierKey(), tlog.ErrUnsigned},
		{"another origin", proof, tlogtest.Digest(7), renamed.VerifierKey(), tlog.ErrUnsigned},
		{"no key", proof, tlogtest.Digest(7), "agent.example/ibid", tlog.ErrMalformed},
		{"nothing", nil, tlogtest.Digest(7), l.VerifierKey(), tlog.ErrMalformed},
	} {
		if _, err := tlog.VerifyProof(test.proof, test.digest, test.vkey); !errors.Is(err, test.want) {
			t.Errorf("%s: VerifyProof = %v, want %v", test.name, err, test.want)
		}
	}
}

// A proof that is cut off anywhere, or lacks any of its lines, proves nothing.
func TestTruncatedProof(t *testing.T) {
	l := open(t, tlog.Options{})
	appendN(t, l, 0, 300)
	proof, err := l.Proof(t.Context(), tlogtest.Digest(7))
	if err != nil {
		t.Fatal(err)
	}
	for n := range proof {
		if _, err := tlog.VerifyProof(proof[:n], tlogtest.Digest(7), l.VerifierKey()); err == nil {
			t.Errorf("the first %d bytes of %d are a proof", n, len(proof))
		}
	}
	lines := strings.SplitAfter(string(proof), "\n")
	for i := range len(lines) - 1 {
		cut := strings.Join(append(slices.Clone(lines[:i]), lines[i+1:]...), "")
		if _, err := tlog.VerifyProof([]byte(cut), tlogtest.Digest(7), l.VerifierKey()); err == nil {
			t.Errorf("without its line %d, %q, it is a proof", i, lines[i])
		}
	}
}

// A log of another origin is another log, even if one key signs both.
func TestForeignText(t *testing.T) {
	vkey := open(t, tlog.Options{}).VerifierKey()
	for _, test := range []struct {
		name, text string
		want       error
	}{
		{"as it is", "agent.example/ibid\n0\n" + mth(nil).String() + "\n", nil},
		{"an extension", "agent.example/ibid\n0\n" + mth(nil).String() + "\nmore\n", nil},
		{"another origin", "other.example/log\n0\n" + mth(nil).String() + "\n", tlog.ErrUnsigned},
		{"two lines", "agent.example/ibid\n0\n", tlog.ErrMalformed},
		{"an empty extension", "agent.example/ibid\n0\n" + mth(nil).String() + "\n\nmore\n", tlog.ErrMalformed},
		{"a leading zero", "agent.example/ibid\n00\n" + mth(nil).String() + "\n", tlog.ErrMalformed},
		{"a sign", "agent.example/ibid\n+1\n" + mth(nil).String() + "\n", tlog.ErrMalformed},
		{"less than none", "agent.example/ibid\n-1\n" + mth(nil).String() + "\n", tlog.ErrMalformed},
		{"too many", fmt.Sprintf("agent.example/ibid\n%d\n%s\n", tlog.MaxSize+1, mth(nil)), tlog.ErrMalformed},
		{"a short root", "agent.example/ibid\n0\nAAAA\n", tlog.ErrMalformed},
		{"loose base64", "agent.example/ibid\n0\n" + strings.Repeat("A", 42) + "B=\n", tlog.ErrMalformed},
	} {
		signed, err := note.Sign(&note.Note{Text: test.text}, testSigner{vkey})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tlog.ParseCheckpoint(signed, vkey); !errors.Is(err, test.want) {
			t.Errorf("%s: ParseCheckpoint = %v, want %v", test.name, err, test.want)
		}
	}
	if _, err := tlog.ParseCheckpoint(make([]byte, tlog.MaxCheckpoint+1), vkey); !errors.Is(err, tlog.ErrMalformed) {
		t.Errorf("a long checkpoint: %v, want ErrMalformed", err)
	}
}

// testSigner signs what no log would.
type testSigner struct{ vkey string }

func (s testSigner) Name() string { return origin }

func (s testSigner) KeyHash() uint32 {
	v, err := note.NewVerifier(s.vkey)
	if err != nil {
		panic(err)
	}
	return v.KeyHash()
}

func (s testSigner) Sign(msg []byte) ([]byte, error) {
	return tlogtest.Key(1).Sign(nil, msg, crypto.Hash(0))
}

func TestParseProof(t *testing.T) {
	hash := mth(nil).String()
	for _, test := range []struct{ name, proof string }{
		{"another version", "c2sp.org/tlog-proof@v2\nindex 0\n\nnote\n"},
		{"no index", "c2sp.org/tlog-proof@v1\n\nnote\n"},
		{"no checkpoint", "c2sp.org/tlog-proof@v1\nindex 0\n\n"},
		{"no empty line", "c2sp.org/tlog-proof@v1\nindex 0\n" + hash + "\n"},
		{"a leading zero", "c2sp.org/tlog-proof@v1\nindex 07\n\nnote\n"},
		{"a negative index", "c2sp.org/tlog-proof@v1\nindex -7\n\nnote\n"},
		{"a huge index", "c2sp.org/tlog-proof@v1\nindex 9223372036854775808\n\nnote\n"},
		{"extra data that are none", "c2sp.org/tlog-proof@v1\nextra !\nindex 0\n\nnote\n"},
		{"extra data twice", "c2sp.org/tlog-proof@v1\nextra AA==\nextra AA==\nindex 0\n\nnote\n"},
		{"extra data behind", "c2sp.org/tlog-proof@v1\nindex 0\nextra AA==\n\nnote\n"},
		{"carriage returns", "c2sp.org/tlog-proof@v1\r\nindex 0\r\n\r\nnote\r\n"},
		{"a short hash", "c2sp.org/tlog-proof@v1\nindex 0\nAAAA\n\nnote\n"},
		{"a hash with a space", "c2sp.org/tlog-proof@v1\nindex 0\n" + hash + " \n\nnote\n"},
		{"49 hashes", "c2sp.org/tlog-proof@v1\nindex 0\n" + strings.Repeat(hash+"\n", 49) + "\nnote\n"},
		{"too long", "c2sp.org/tlog-proof@v1\nindex 0\n\n" + strings.Repeat("a", tlog.MaxProof)},
	} {
		if p, err := tlog.ParseProof([]byte(test.proof)); !errors.Is(err, tlog.ErrMalformed) {
			t.Errorf("%s: ParseProof = %+v, %v, want ErrMalformed", test.name, p, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, o := range []tlog.Options{
		{Origin: origin, Key: tlogtest.Key(1)},
		{Origin: origin, Tiles: new(tlog.MemoryTiles)},
		{Origin: "", Key: tlogtest.Key(1), Tiles: new(tlog.MemoryTiles)},
		{Origin: "two words", Key: tlogtest.Key(1), Tiles: new(tlog.MemoryTiles)},
		{Origin: "a+b", Key: tlogtest.Key(1), Tiles: new(tlog.MemoryTiles)},
		{Origin: "a\nb", Key: tlogtest.Key(1), Tiles: new(tlog.MemoryTiles)},
		{Origin: origin, Key: tlogtest.Key(1), Tiles: new(tlog.MemoryTiles), Former: []crypto.PublicKey{"no key"}},
		{Origin: origin, Key: tlogtest.Key(1), Tiles: new(tlog.MemoryTiles), File: t.TempDir()},
		{Origin: origin, Tiles: new(tlog.MemoryTiles), Keys: new(keyring).keys},
	} {
		if _, err := tlog.Open(t.Context(), &o); err == nil {
			t.Errorf("Open took %+v", o)
		}
	}
}

// A log changes its key: the checkpoint signed by the former one counts, and the next one has the new signature.
func TestKeyChange(t *testing.T) {
	tiles, file := new(tlog.MemoryTiles), filepath.Join(t.TempDir(), "checkpoint")
	appendN(t, open(t, tlog.Options{Tiles: tiles, File: file}), 0, 5)

	_, err := tlog.Open(t.Context(), &tlog.Options{Origin: origin, Tiles: tiles, Key: tlogtest.Key(2), File: file})
	if !errors.Is(err, tlog.ErrForeign) {
		t.Errorf("Open = %v with a key that nobody knows, want ErrForeign", err)
	}
	former := []crypto.PublicKey{tlogtest.Key(1).Public()}
	l := open(t, tlog.Options{Tiles: tiles, Key: tlogtest.Key(2), Former: former, File: file})
	if c := checkpoint(t, l); c.Size != 5 {
		t.Errorf("the checkpoint is %+v, want 5 leaves", c)
	}
	appendN(t, open(t, tlog.Options{Tiles: tiles, Key: tlogtest.Key(2), File: file}), 5, 6) // without the former key
}

// keyring holds a log's current keys.
type keyring struct {
	mu     sync.Mutex
	signer crypto.Signer // nil for none
	former []crypto.PublicKey
}

func (k *keyring) set(signer crypto.Signer, former ...byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.signer, k.former = signer, nil
	for _, seed := range former {
		k.former = append(k.former, tlogtest.Key(seed).Public())
	}
}

func (k *keyring) keys() (crypto.Signer, []crypto.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.signer == nil {
		return nil, k.former, errNoKey
	}
	return k.signer, k.former, nil
}

var errNoKey = errors.New("no key signs now")

// An open log notices that its key is replaced: a revoked one signs nothing more, and what another process signs with
// the next one is accepted.
func TestKeyExchange(t *testing.T) {
	tiles, file := new(tlog.MemoryTiles), filepath.Join(t.TempDir(), "checkpoint")
	ring := &keyring{}
	ring.set(tlogtest.Key(1), 1)
	l := open(t, tlog.Options{Tiles: tiles, Keys: ring.keys, File: file})
	appendN(t, l, 0, 3)
	first := l.VerifierKey()

	ring.set(nil, 1)
	if _, err := l.Append(t.Context(), tlogtest.Digest(3)); !errors.Is(err, errNoKey) {
		t.Errorf("Append = %v without a key, want why there is none", err)
	}
	if c := checkpoint(t, l); c.Size != 3 || l.VerifierKey() != first {
		t.Errorf("without a key the log has %d leaves and the vkey %s", c.Size, l.VerifierKey())
	}

	ring.set(tlogtest.Key(2), 2, 1)
	if checkpoint(t, l); l.VerifierKey() != first {
		t.Errorf("the vkey is %s before its key has signed", l.VerifierKey())
	}
	other := open(t, tlog.Options{Tiles: tiles, Keys: ring.keys})
	if checkpoint(t, l); l.VerifierKey() == first || l.VerifierKey() != other.VerifierKey() {
		t.Errorf("the vkey is %s when its key has signed, want %s", l.VerifierKey(), other.VerifierKey())
	}
	appendN(t, other, 3, 5)
	appendN(t, l, 5, 7)
	if _, err := tlog.ParseCheckpoint(checkpoint(t, other).Note, first); !errors.Is(err, tlog.ErrUnsigned) {
		t.Errorf("the revoked key has signed: %v", err)
	}
	open(t, tlog.Options{Tiles: tiles, Keys: ring.keys, File: file})

	if _, err := tlog.Open(t.Context(), &tlog.Options{Origin: "new.example/log", Tiles: tiles, Keys: ring.keys}); !errors.Is(err, tlog.ErrForeign) ||
		!strings.Contains(err.Error(), `its origin is "`+origin+`"`) {
		t.Errorf("Open = %v with another origin, want whose log it is", err)
	}
}

// What x/mod reads from our tiles by C2SP's paths equals what it reads from the log.
func TestTileHashReader(t *testing.T) {
	l := open(t, tlog.Options{})
	digests := make([]tlog.Leaf, 70_000)
	for i := range digests {
		digests[i] = tlogtest.Digest(i)
	}
	if _, err := l.Append(t.Context(), digests...); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(l.Handler())
	defer server.Close()
	c := checkpoint(t, l)
	remote := merkle.TileHashReader(merkle.Tree{N: c.Size, Hash: c.Root}, &webTiles{t: t, get: tlog.HTTP(server.Client(), server.URL)})
	for _, i := range []int64{0, 255, 256, 65_535, 65_536, 69_999} {
		path, err := merkle.ProveRecord(c.Size, i, remote)
		if err != nil {
			t.Fatal(err)
		}
		if err := merkle.CheckRecord(path, c.Size, c.Root, i, merkle.RecordHash(digests[i][:])); err != nil {
			t.Errorf("leaf %d: %v", i, err)
		}
	}
	for _, size := range []int64{1, 256, 65_536, 69_999} {
		root, err := merkle.TreeHash(size, remote)
		if want := mth(digests[:size]); err != nil || root != want {
			t.Errorf("the first %d leaves have the root %s, %v, want %s", size, root, err, want)
		}
	}
	m := &tlog.Monitor{VerifierKey: l.VerifierKey(), Get: tlog.HTTP(server.Client(), server.URL+"/")}
	if _, err := m.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := 69_000
	for leaf, err := range m.Leaves(t.Context(), int64(at)) {
		if err != nil || leaf != digests[at] {
			t.Fatalf("leaf %d is %x, %v", at, leaf, err)
		}
		at++
	}
	if at != len(digests) {
		t.Errorf("the monitor read leaves up to %d, want %d", at, len(digests))
	}
}

// webTiles reads C2SP's paths, which it constructs itself.
type webTiles struct {
	t   *testing.T
	get tlog.Get
}

func (w *webTiles) Height() int                       { return 8 }
func (w *webTiles) SaveTiles([]merkle.Tile, [][]byte) {}

func (w *webTiles) ReadTiles(tiles []merkle.Tile) ([][]byte, error) {
	data := make([][]byte, len(tiles))
	for i, tile := range tiles {
		path := fmt.Sprintf("tile/%d/%03d", tile.L, tile.N)
		if tile.N > 999 {
			path = fmt.Sprintf("tile/%d/x%03d/%03d", tile.L, tile.N/1000, tile.N%1000)
		}
		if tile.W < 256 {
			path += fmt.Sprintf(".p/%d", tile.W)
		}
		b, err := w.get(w.t.Context(), path)
		if err != nil {
			return nil, err
		}
		data[i] = b
	}
	return data, nil
}

func BenchmarkAppend(b *testing.B) {
	l := open(b, tlog.Options{})
	i := 0
	for b.Loop() {
		if _, err := l.Append(b.Context(), tlogtest.Digest(i)); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

func BenchmarkProof(b *testing.B) {
	l := open(b, tlog.Options{})
	digests := make([]tlog.Leaf, 100_000)
	for i := range digests {
		digests[i] = tlogtest.Digest(i)
	}
	if _, err := l.Append(b.Context(), digests...); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := l.Proof(b.Context(), digests[77]); err != nil {
			b.Fatal(err)
		}
	}
}
