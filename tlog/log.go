package tlog

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/mod/sumdb/note"
	merkle "golang.org/x/mod/sumdb/tlog"

	"github.com/ibidhq/ibid/internal/file"
)

// ErrInconsistent means that a log contradicts what it signed before. It is wrapped by the errors below, which tell
// how.
var ErrInconsistent = errors.New("the log is inconsistent")

// The ways in which a log can be inconsistent.
var (
	// ErrShorter means that there are fewer leaves than in a checkpoint, or that the later of two checkpoints has the
	// smaller tree. Restoring an earlier state of the database causes it.
	ErrShorter = fmt.Errorf("%w: the tree is shorter than in a signed checkpoint", ErrInconsistent)

	// ErrRewritten means that the leaves covered by a checkpoint are no longer the first of the tree.
	ErrRewritten = fmt.Errorf("%w: the tree does not match a signed checkpoint", ErrInconsistent)

	// ErrForeign means that the last stored checkpoint was not signed with this log's key, or is for another origin.
	ErrForeign = fmt.Errorf("%w: the checkpoint is not this log's", ErrInconsistent)
)

// Errors of proofs and checkpoints from outside.
var (
	ErrNotFound = errors.New("not in the log")
	// ErrMalformed means that the format is wrong or a limit is exceeded.
	ErrMalformed = errors.New("malformed")
	// ErrUnsigned means that no valid signature of the log was found.
	ErrUnsigned = errors.New("not signed with the log's key")
	// ErrNotIncluded means that a proof is for another leaf or another tree, or forged.
	ErrNotIncluded = errors.New("the proof does not lead to the checkpoint's root")
)

// maxOpenCheck is the number of leaves up to which Open rehashes all of them, which takes half a second in memory. In a
// longer log it checks only the hashes that make up the root; [Log.Check] checks everything.
const maxOpenCheck = 1 << 20

// Options configures a log.
type Options struct {
	Origin string        // the log's name, as a host and path without a scheme: agent.example/ibid
	Tiles  Tiles         // where it is stored
	Key    crypto.Signer // Ed25519; signs checkpoints

	// Former are the public Ed25519 keys used before Key. What they signed remains valid for this log.
	Former []crypto.PublicKey

	// Keys, if set, replaces Key and Former and returns the current signer and the former keys. It is called at each
	// Append, and after reading a checkpoint that another process signed, so that keys can be replaced while the log is
	// open. former may include the signer's own key, and is used even with an error; then nothing is signed. Keys must
	// be safe for concurrent use.
	Keys func() (signer crypto.Signer, former []crypto.PublicKey, err error)

	// File is a copy of the last checkpoint outside of the database; empty for none. It is created if missing.
	// Processes that share a log may share the file or use one each.
	File string

	// Later reports whether an error of Tiles only means that they are unavailable now. Then [Open] returns the log all
	// the same, and the first Append compares it with the checkpoints before it adds anything. Nil means that no error
	// does.
	Later func(error) bool

	Logger *slog.Logger // logs what the handler could not serve; nil disables logging
}

// Log is a transparency log to write to. It is safe for concurrent use, and several processes may have the same log
// open.
type Log struct {
	origin string
	tiles  Tiles
	ask    func() (crypto.Signer, []crypto.PublicKey, error)
	logger *slog.Logger

	opening  sync.Mutex
	unopened bool // the tree has not been compared with the checkpoints yet; guarded by opening

	mu   sync.Mutex
	last *Checkpoint // the largest one known to be right

	file checkpointCopy
}

// Open opens a log, or starts one in an empty store. It compares the tree with the checkpoints in the store and in the
// file; if one of them contradicts the tree, the error is an [ErrInconsistent].
func Open(ctx context.Context, o *Options) (*Log, error) {
	l, err := newLog(o)
	if err != nil {
		return nil, fmt.Errorf("opening the log %q: %w", o.Origin, err)
	}
	if err := l.open(ctx); err != nil {
		if o.Later == nil || !o.Later(err) {
			return nil, fmt.Errorf("opening the log %q: %w", o.Origin, err)
		}
		l.unopened = true
	}
	return l, nil
}

func newLog(o *Options) (*Log, error) {
	l := &Log{
		origin: o.Origin,
		tiles:  o.Tiles,
		ask:    o.Keys,
		logger: o.Logger,
		last:   &Checkpoint{Origin: o.Origin, Root: emptyRoot()},
		file:   checkpointCopy{name: o.File},
	}
	if l.ask == nil && o.Key != nil {
		l.ask = func() (crypto.Signer, []crypto.PublicKey, error) { return o.Key, o.Former, nil }
	}
	if l.ask == nil || o.Tiles == nil {
		return nil, errors.New("it needs a key and a store")
	}
	if l.logger == nil {
		l.logger = slog.New(slog.DiscardHandler)
	}
	_, err := l.keys()
	return l, err
}

// emptyRoot is the root of the tree without leaves.
func emptyRoot() Hash {
	root, _ := merkle.TreeHash(0, nil) // reads nothing
	return root
}

func (l *Log) open(ctx context.Context) error {
	kept, err := l.file.read()
	if err != nil {
		return err
	}
	if kept != nil {
		// The checkpoint in the file counts as seen: the store may have grown since, but not shrunk or diverged.
		if l.last, err = l.parse(kept); err != nil {
			return fmt.Errorf("the checkpoint in %s: %w", l.file.name, err)
		}
		l.last.Note = nil // so that the store's is read, even if it is the same
	}
	return l.compare(ctx)
}

// opened compares the tree with the checkpoints if [Open] could not.
func (l *Log) opened(ctx context.Context) error {
	l.opening.Lock()
	defer l.opening.Unlock()
	if !l.unopened {
		return nil
	}
	if err := l.compare(ctx); err != nil {
		return err
	}
	l.unopened = false
	return nil
}

// compare compares the tree with the checkpoints in the store and in the file.
func (l *Log) compare(ctx context.Context) error {
	// signs the empty tree, or one signed by a former key, and creates the copy
	if _, err := l.appendAll(ctx, nil); err != nil {
		return err
	}
	if head := l.seen(); head.Size <= maxOpenCheck {
		return l.checkLeaves(ctx, head, false)
	}
	return nil
}

// VerifierKey returns the log's vkey, which verifies its checkpoints and proofs: origin, key hash and key. After a key
// change, it is the one that signed the newest checkpoint.
func (l *Log) VerifierKey() string {
	k, err := l.keys()
	if err != nil && k == nil {
		return ""
	}
	signed := l.seen().Note
	for _, vkey := range k.vkeys {
		if _, err := ParseCheckpoint(signed, vkey); err == nil {
			return vkey
		}
	}
	return k.vkeys[0]
}

// parse parses a checkpoint that must be ours.
func (l *Log) parse(signed []byte) (*Checkpoint, error) {
	k, err := l.keys()
	if k == nil {
		return nil, err
	}
	c, err := openCheckpoint(signed, l.origin, k.ours)
	if err != nil {
		origin, _, _ := bytes.Cut(signed[:min(len(signed), MaxCheckpoint)], []byte("\n"))
		if string(origin) != l.origin {
			err = fmt.Errorf("its origin is %.80q: %w", origin, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	return c, nil
}

func (l *Log) seen() *Checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *Log) setSeen(c *Checkpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Size >= l.last.Size {
		l.last = c
	}
}

// checkHead checks that a head of the store extends the checkpoint that was seen before it was read. A tree without
// leaves needs no checkpoint; then the head is returned without a note.
func (l *Log) checkHead(seen *Checkpoint, size int64, signed []byte, hashes merkle.HashReader) (*Checkpoint, error) {
	if signed != nil && bytes.Equal(signed, seen.Note) && size == seen.Size {
		return seen, nil
	}
	head := &Checkpoint{Origin: l.origin, Root: emptyRoot()}
	if signed != nil {
		var err error
		if head, err = l.parse(signed); err != nil {
			return nil, fmt.Errorf("the checkpoint in the store: %w", err)
		}
	}
	switch {
	case size < head.Size:
		return nil, fmt.Errorf("%w: it has %d leaves, the store's checkpoint %d", ErrShorter, size, head.Size)
	case size > head.Size:
		return nil, fmt.Errorf("%w: it has %d leaves, the store's checkpoint %d", ErrRewritten, size, head.Size)
	case size < seen.Size:
		return nil, fmt.Errorf("%w: it has %d leaves, a checkpoint seen before %d", ErrShorter, size, seen.Size)
	}
	for _, c := range []*Checkpoint{head, seen} {
		root, err := merkle.TreeHash(c.Size, hashes)
		if err != nil {
			return nil, fmt.Errorf("hashing the first %d leaves: %w", c.Size, err)
		}
		if root != c.Root {
			return nil, fmt.Errorf(
				"%w: the root of the first %d leaves is %s, but %s was signed", ErrRewritten, c.Size, root, c.Root,
			)
		}
	}
	return head, nil
}

// head returns the newest checkpoint after comparing it with the one seen before.
func (l *Log) head(ctx context.Context) (*Checkpoint, error) {
	seen := l.seen() // before the head is read, which then cannot be older
	size, signed, err := l.tiles.Head(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the log's head: %w", err)
	}
	head, err := l.checkHead(seen, size, signed, l.reader(ctx))
	if err != nil {
		return nil, err
	}
	l.setSeen(head)
	return head, nil
}

func (l *Log) reader(ctx context.Context) merkle.HashReader {
	return merkle.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		if len(indexes) == 0 {
			return nil, nil
		}
		return l.tiles.Hashes(ctx, indexes)
	})
}

// Checkpoint returns the newest checkpoint, whichever process signed it.
func (l *Log) Checkpoint(ctx context.Context) ([]byte, error) {
	head, err := l.head(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint: %w", err)
	}
	return slices.Clone(head.Note), nil
}

// Proof returns the proof that a digest is in the log, as c2sp.org/tlog-proof@v1 with the newest checkpoint. It fails
// with [ErrNotFound] if the digest is not in the log.
func (l *Log) Proof(ctx context.Context, digest Leaf) ([]byte, error) {
	index, err := l.tiles.Find(ctx, digest)
	if err != nil {
		return nil, fmt.Errorf("proving a leaf: %w", err)
	}
	head, err := l.head(ctx)
	if err != nil {
		return nil, fmt.Errorf("proving leaf %d: %w", index, err)
	}
	hashes, err := merkle.ProveRecord(head.Size, index, l.reader(ctx))
	if err != nil {
		return nil, fmt.Errorf("proving leaf %d: %w", index, err)
	}
	// Never return a proof that does not hold.
	if err := merkle.CheckRecord(hashes, head.Size, head.Root, index, merkle.RecordHash(digest[:])); err != nil {
		return nil, fmt.Errorf("proving leaf %d of %d: %w", index, head.Size, ErrRewritten)
	}
	return (&proof{Index: index, Hashes: hashes, Checkpoint: head.Note}).format(), nil
}

// keys are the keys of a log at one moment.
type keys struct {
	signer *signer  // nil if there is none
	vkeys  []string // of the signer and the former signers
	ours   note.Verifiers
}

// keys returns the current keys. Without a signer it returns an error, too, and what the former keys signed can still
// be read; the keys are nil if there are none at all, or if one is invalid.
func (l *Log) keys() (*keys, error) {
	private, former, missing := l.ask()
	if missing != nil {
		missing = fmt.Errorf("getting the log's key: %w", missing)
	} else if private == nil {
		missing = errors.New("getting the log's key: there is none")
	} else {
		former = append([]crypto.PublicKey{private.Public()}, former...)
	}
	k := &keys{}
	var verifiers []note.Verifier
	for _, public := range former {
		vkey, err := vkeyOf(l.origin, public)
		if err != nil {
			return nil, err
		}
		if slices.Contains(k.vkeys, vkey) {
			continue
		}
		v, err := newVerifier(vkey)
		if err != nil {
			return nil, err
		}
		k.vkeys, verifiers = append(k.vkeys, vkey), append(verifiers, v)
	}
	if len(verifiers) == 0 {
		return nil, missing
	}
	if missing == nil {
		k.signer = &signer{name: l.origin, hash: verifiers[0].KeyHash(), key: private}
	}
	k.ours = note.VerifierList(verifiers...)
	return k, missing
}

// checkpointCopy is the copy of the last checkpoint in a file beside the database.
type checkpointCopy struct {
	name string // empty for none

	mu      sync.Mutex
	written []byte // what this process last wrote
}

// read returns the content of the file; nil if there is none.
func (c *checkpointCopy) read() ([]byte, error) {
	if c.name == "" {
		return nil, nil
	}
	f, err := os.Open(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy of the checkpoint: %w", err)
	}
	defer f.Close()                                          //nolint:errcheck // read only
	b, err := io.ReadAll(io.LimitReader(f, MaxCheckpoint+1)) // longer content is refused by the parser
	if err != nil {
		return nil, fmt.Errorf("reading the copy of the checkpoint: %w", err)
	}
	if b == nil {
		b = []byte{} // an empty file is not a missing one
	}
	return b, nil
}

// save copies the store's checkpoint to the file. Other processes may write to the same file: each checks again after
// writing, so that the last writer has written the newest checkpoint.
func (l *Log) save(ctx context.Context) error {
	if l.file.name == "" {
		return nil
	}
	l.file.mu.Lock()
	defer l.file.mu.Unlock()
	for {
		head, err := l.head(ctx)
		if err != nil {
			return fmt.Errorf("copying the checkpoint: %w", err)
		}
		if bytes.Equal(head.Note, l.file.written) {
			return nil
		}
		if err := file.Replace(l.file.name, head.Note, 0o644); err != nil {
			return fmt.Errorf("copying the checkpoint: %w", err)
		}
		l.file.written = head.Note
	}
}

// Leaf is an entry of the log: the SHA-256 of a manifest's octets.
type Leaf = [32]byte

// Hash is a hash of the tree.
type Hash = merkle.Hash

// Tiles stores a log: its leaves, the hashes of its tree and the last signed checkpoint. A store need not understand
// Merkle trees; it reads and writes what the log tells it to. [MemoryTiles] is an implementation in memory; package
// tlogtest tests others.
//
// In SQL it is two tables and a row: leaves (index, leaf; both unique), hashes (index, hash) and the head (size,
// checkpoint). Implementations are safe for concurrent use, by several processes if their storage is.
type Tiles interface {
	// Update runs one transaction that no other Update overlaps, in any process (SELECT … FOR UPDATE of the head, BEGIN
	// IMMEDIATE). It reads the head and which of leaves exist, calls grow with them, and writes what grow returns, all
	// or nothing. If grow returns an error or a nil Growth, it writes nothing; the error is returned wrapped. It
	// refuses a growth with a leaf or the index of a hash that exists. It may call grow again if it has to repeat the
	// transaction. There are at most MaxLeaves leaves.
	Update(ctx context.Context, leaves []Leaf, grow func(*Before) (*Growth, error)) error

	// Head returns the head that the last Update wrote; 0 and nil for a new log.
	Head(ctx context.Context) (size int64, checkpoint []byte, err error)

	// Hashes returns the hashes at indexes, in their order. A missing one is an error. There are up to 256 indexes, in
	// any order.
	Hashes(ctx context.Context, indexes []int64) ([]Hash, error)

	// Leaves returns the n leaves from index from on. A missing one is an error. n is at most MaxLeaves.
	Leaves(ctx context.Context, from int64, n int) ([]Leaf, error)

	// Find returns the index of a leaf, or an error that is ErrNotFound.
	Find(ctx context.Context, leaf Leaf) (int64, error)
}

// MaxLeaves is how many leaves are read from a store, or passed to one Update, at a time.
const MaxLeaves = 4096

// Before is what an Update has read.
type Before struct {
	Size       int64          // the number of leaves
	Checkpoint []byte         // the last one signed; nil if none yet
	Known      map[Leaf]int64 // the indexes of those given leaves that are in the log

	// Hashes reads within the transaction, like Tiles.Hashes.
	Hashes func(indexes []int64) ([]Hash, error)
}

// Growth is what an Update writes.
type Growth struct {
	Leaves     []Leaf // the first has the index Before.Size; all are new and distinct
	FirstHash  int64  // index of the first hash: the number of existing hashes
	Hashes     []Hash
	Checkpoint []byte // replaces the one before
}

// MemoryTiles keeps a log in memory. The zero value is an empty log. It must not be copied, and is safe for concurrent
// use.
type MemoryTiles struct {
	mu         sync.RWMutex
	leaves     []Leaf
	at         map[Leaf]int64
	hashes     []Hash
	checkpoint []byte
}

// Update implements [Tiles].
func (m *MemoryTiles) Update(ctx context.Context, leaves []Leaf, grow func(*Before) (*Growth, error)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("updating the log: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := &Before{
		Size:       int64(len(m.leaves)),
		Checkpoint: slices.Clone(m.checkpoint),
		Known:      map[Leaf]int64{},
		Hashes:     m.read,
	}
	for _, leaf := range leaves {
		if at, ok := m.at[leaf]; ok {
			before.Known[leaf] = at
		}
	}
	growth, err := grow(before)
	if err != nil {
		return fmt.Errorf("updating the log: %w", err)
	}
	if growth == nil {
		return nil
	}
	if growth.FirstHash != int64(len(m.hashes)) {
		return fmt.Errorf("updating the log: the first hash is %d, there are %d", growth.FirstHash, len(m.hashes))
	}
	at := make(map[Leaf]int64, len(growth.Leaves))
	for i, leaf := range growth.Leaves {
		_, old := m.at[leaf]
		if _, twice := at[leaf]; old || twice {
			return fmt.Errorf("updating the log: leaf %x already exists", leaf[:4])
		}
		at[leaf] = before.Size + int64(i)
	}
	if m.at == nil {
		m.at = at
	} else {
		maps.Copy(m.at, at)
	}
	m.leaves = append(m.leaves, growth.Leaves...)
	m.hashes = append(m.hashes, growth.Hashes...)
	m.checkpoint = slices.Clone(growth.Checkpoint)
	return nil
}

// Head implements [Tiles].
func (m *MemoryTiles) Head(context.Context) (int64, []byte, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return int64(len(m.leaves)), slices.Clone(m.checkpoint), nil
}

// Hashes implements [Tiles].
func (m *MemoryTiles) Hashes(_ context.Context, indexes []int64) ([]Hash, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.read(indexes)
}

// read requires the lock to be held.
func (m *MemoryTiles) read(indexes []int64) ([]Hash, error) {
	hashes := make([]Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(m.hashes)) {
			return nil, fmt.Errorf("reading the log: no hash %d of %d", at, len(m.hashes))
		}
		hashes[i] = m.hashes[at]
	}
	return hashes, nil
}

// Leaves implements [Tiles].
func (m *MemoryTiles) Leaves(_ context.Context, from int64, n int) ([]Leaf, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if size := int64(len(m.leaves)); from < 0 || n < 0 || from > size || int64(n) > size-from {
		return nil, fmt.Errorf("reading the log: no leaves %d to %d of %d", from, from+int64(n), size)
	}
	return slices.Clone(m.leaves[from : from+int64(n)]), nil
}

// Find implements [Tiles].
func (m *MemoryTiles) Find(_ context.Context, leaf Leaf) (int64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	at, ok := m.at[leaf]
	if !ok {
		return 0, fmt.Errorf("reading the log: leaf %x: %w", leaf[:4], ErrNotFound)
	}
	return at, nil
}
