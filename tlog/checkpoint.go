package tlog

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	merkle "golang.org/x/mod/sumdb/tlog"
)

// Limits on input from outside.
const (
	// maxSize is the largest tree size in a checkpoint. It keeps the arithmetic of hash indexes far from overflow.
	maxSize = 1 << 48

	// MaxCheckpoint is how many octets a checkpoint may have. Witnesses add their signatures to it.
	MaxCheckpoint = 64 << 10
)

// Checkpoint is a state signed by a log: the size and root of its tree. [ParseCheckpoint] and [VerifyProof] return it
// only after verifying the signature; callers that construct one vouch for it.
type Checkpoint struct {
	Origin string // the log's name
	Size   int64  // number of leaves
	Root   Hash
	Note   []byte // the signed note, as read
}

// ParseCheckpoint parses a signed checkpoint (c2sp.org/tlog-checkpoint) and verifies that the log of vkey signed it. It
// ignores extension lines and the signatures of others, such as witnesses. Errors are [ErrMalformed] or [ErrUnsigned].
func ParseCheckpoint(signed []byte, vkey string) (*Checkpoint, error) {
	verifier, err := newVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("reading a checkpoint: %w", err)
	}
	return openCheckpoint(signed, verifier.Name(), note.VerifierList(verifier))
}

// newVerifier accepts an Ed25519 key, the only algorithm that x/mod supports.
func newVerifier(vkey string) (note.Verifier, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("the verifier key: %w: %w", ErrMalformed, err)
	}
	return verifier, nil
}

func openCheckpoint(signed []byte, origin string, known note.Verifiers) (*Checkpoint, error) {
	if len(signed) > MaxCheckpoint {
		return nil, fmt.Errorf("reading a checkpoint: %w: %d octets, at most %d",
			ErrMalformed, len(signed), MaxCheckpoint)
	}
	n, err := note.Open(signed, known)
	if err != nil {
		var unverified *note.UnverifiedNoteError
		var invalid *note.InvalidSignatureError
		if errors.As(err, &unverified) || errors.As(err, &invalid) {
			return nil, fmt.Errorf("reading a checkpoint: %w", ErrUnsigned)
		}
		return nil, fmt.Errorf("reading a checkpoint: %w: %w", ErrMalformed, err)
	}
	lines := strings.Split(strings.TrimSuffix(n.Text, "\n"), "\n") // extensions may follow the third
	if len(lines) < 3 {
		return nil, fmt.Errorf("reading a checkpoint: %w: %d lines, not origin, size and root",
			ErrMalformed, len(lines))
	}
	if i := slices.Index(lines, ""); i >= 0 {
		return nil, fmt.Errorf("reading a checkpoint: %w: line %d is empty", ErrMalformed, i+1)
	}
	c := &Checkpoint{Origin: lines[0], Note: bytes.Clone(signed)}
	if c.Size, err = parseCount(lines[1]); err != nil {
		return nil, fmt.Errorf("reading a checkpoint: the size: %w", err)
	}
	if c.Root, err = parseHash(lines[2]); err != nil {
		return nil, fmt.Errorf("reading a checkpoint: the root: %w", err)
	}
	// A key may have signed text with another log's name: a log's key is valid only for that log.
	if c.Origin != origin {
		return nil, fmt.Errorf("reading a checkpoint: %w: its origin is %q, not %q", ErrUnsigned, c.Origin, origin)
	}
	return c, nil
}

// text returns the text to be signed.
func (c *Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
}

// parseCount parses a number of leaves in its canonical form.
func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > maxSize || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%w: %.40q is not a number from 0 to 2^48", ErrMalformed, s)
	}
	return n, nil
}

// parseHash parses a hash in its canonical form.
func parseHash(s string) (Hash, error) {
	h, err := merkle.ParseHash(s)
	if err != nil || h.String() != s {
		return Hash{}, fmt.Errorf("%w: %.60q is not a hash in base64", ErrMalformed, s)
	}
	return h, nil
}

// signer signs notes with a key that may be held elsewhere.
type signer struct {
	name string
	hash uint32
	key  crypto.Signer
}

func (s *signer) Name() string    { return s.name }
func (s *signer) KeyHash() uint32 { return s.hash }

func (s *signer) Sign(msg []byte) ([]byte, error) {
	return s.key.Sign(nil, msg, crypto.Hash(0))
}

// vkeyOf returns the verifier key of a log.
func vkeyOf(origin string, public crypto.PublicKey) (string, error) {
	key, ok := public.(ed25519.PublicKey)
	if !ok || len(key) != ed25519.PublicKeySize {
		return "", fmt.Errorf("a log's key is Ed25519, not %T", public)
	}
	vkey, err := note.NewEd25519VerifierKey(origin, key)
	if err != nil {
		return "", fmt.Errorf("the verifier key: %w", err)
	}
	if _, err := note.NewVerifier(vkey); err != nil { // NewEd25519VerifierKey accepts names that cannot be parsed again
		return "", fmt.Errorf("%q cannot be an origin: it must not be empty or contain white space or a plus", origin)
	}
	return vkey, nil
}

// maxProof is how many octets a proof may have: a checkpoint, 48 hashes and some extra data.
const maxProof = MaxCheckpoint + 16<<10

// maxPath is how many hashes an inclusion proof in a tree of maxSize leaves has.
const maxPath = 48

const proofHeader = "c2sp.org/tlog-proof@v1"

// proof is an inclusion proof with its checkpoint (c2sp.org/tlog-proof@v1). It is unverified: see [VerifyProof].
type proof struct {
	Index      int64  // of the leaf
	Extra      []byte // unsigned; ibid writes none
	Hashes     []Hash // from the leaf's sibling to the root's child
	Checkpoint []byte // the signed note
}

// parseProof parses a proof without verifying it. Errors are [ErrMalformed].
func parseProof(b []byte) (*proof, error) {
	if len(b) > maxProof {
		return nil, fmt.Errorf("%w: %d octets, at most %d", ErrMalformed, len(b), maxProof)
	}
	head, checkpoint, ok := strings.Cut(string(b), "\n\n")
	if !ok || checkpoint == "" {
		return nil, fmt.Errorf("%w: no empty line followed by a checkpoint", ErrMalformed)
	}
	lines := strings.Split(head, "\n")
	if lines[0] != proofHeader {
		return nil, fmt.Errorf("%w: the first line is not %s", ErrMalformed, proofHeader)
	}
	lines = lines[1:]
	p := &proof{Checkpoint: []byte(checkpoint)}
	if len(lines) > 0 && strings.HasPrefix(lines[0], "extra ") {
		extra, err := base64.StdEncoding.Strict().DecodeString(strings.TrimPrefix(lines[0], "extra "))
		if err != nil || len(extra) == 0 || strings.Contains(lines[0], "\r") { // the decoder reads over line ends
			return nil, fmt.Errorf("%w: the extra data are empty or not base64", ErrMalformed)
		}
		p.Extra, lines = extra, lines[1:]
	}
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "index ") {
		return nil, fmt.Errorf("%w: no line with the index", ErrMalformed)
	}
	index, err := parseCount(strings.TrimPrefix(lines[0], "index "))
	if err != nil {
		return nil, fmt.Errorf("the index: %w", err)
	}
	p.Index, lines = index, lines[1:]
	if len(lines) > maxPath {
		return nil, fmt.Errorf("%w: %d hashes, at most %d", ErrMalformed, len(lines), maxPath)
	}
	for i, line := range lines {
		h, err := parseHash(line)
		if err != nil {
			return nil, fmt.Errorf("hash %d: %w", i+1, err)
		}
		p.Hashes = append(p.Hashes, h)
	}
	return p, nil
}

// format returns the proof as served.
func (p *proof) format() []byte {
	var b strings.Builder
	b.WriteString(proofHeader + "\n")
	if len(p.Extra) > 0 {
		fmt.Fprintf(&b, "extra %s\n", base64.StdEncoding.EncodeToString(p.Extra))
	}
	fmt.Fprintf(&b, "index %d\n", p.Index)
	for _, h := range p.Hashes {
		fmt.Fprintf(&b, "%s\n", h)
	}
	b.WriteByte('\n')
	b.Write(p.Checkpoint)
	return []byte(b.String())
}

// VerifyProof verifies that a digest is in the log of vkey, using only the proof, and returns its checkpoint. Errors
// are [ErrMalformed], [ErrUnsigned] or [ErrNotIncluded].
func VerifyProof(b []byte, digest Leaf, vkey string) (*Checkpoint, error) {
	p, err := parseProof(b)
	if err != nil {
		return nil, fmt.Errorf("reading a proof: %w", err)
	}
	c, err := ParseCheckpoint(p.Checkpoint, vkey)
	if err != nil {
		return nil, fmt.Errorf("verifying a proof: %w", err)
	}
	if err := merkle.CheckRecord(p.Hashes, c.Size, c.Root, p.Index, merkle.RecordHash(digest[:])); err != nil {
		return nil, fmt.Errorf("verifying a proof: leaf %d of %d: %w", p.Index, c.Size, ErrNotIncluded)
	}
	return c, nil
}

// VerifyConsistency verifies that the tree of newer begins with the tree of older: that nothing was changed or removed
// in between. It reads tiles through get and accepts only those that lead to newer's root. It needs at most about two
// for each level of tiles, so a dozen for a billion leaves. If the log is inconsistent, the error is [ErrShorter],
// [ErrRewritten] or [ErrForeign]; any other error means that the check could not be completed.
func VerifyConsistency(ctx context.Context, older, newer *Checkpoint, get Get) error {
	switch {
	case older.Origin != newer.Origin:
		return fmt.Errorf(
			"comparing checkpoints: %w: one is from %q, the other from %q", ErrForeign, older.Origin, newer.Origin,
		)
	case older.Size < 0 || newer.Size > maxSize:
		return fmt.Errorf("comparing checkpoints: %w: sizes %d and %d", ErrMalformed, older.Size, newer.Size)
	case older.Size > newer.Size:
		return fmt.Errorf(
			"comparing checkpoints: %w: %d leaves, before there were %d", ErrShorter, newer.Size, older.Size,
		)
	}
	root := newer.Root
	if older.Size < newer.Size {
		var err error
		if root, err = merkle.TreeHash(older.Size, newTileReader(ctx, newer, get)); err != nil {
			return fmt.Errorf("comparing checkpoints: %w", err)
		}
	}
	if root != older.Root {
		return fmt.Errorf("comparing checkpoints: %w: the root of the first %d leaves is %s, but %s was signed",
			ErrRewritten, older.Size, root, older.Root)
	}
	return nil
}
