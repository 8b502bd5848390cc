package tlog

import (
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	merkle "golang.org/x/mod/sumdb/tlog"
)

// What comes from outside is refused beyond these limits.
const (
	// MaxSize is how many leaves a checkpoint may speak of. It keeps the arithmetic of hash indexes far from overflow.
	MaxSize = 1 << 48

	// MaxCheckpoint is how many octets a checkpoint may have. Witnesses add their signatures to it.
	MaxCheckpoint = 64 << 10
)

// Checkpoint is what a log signed: how large its tree was, and with which root. It comes from [ParseCheckpoint] or
// [VerifyProof], which verify the signature; who makes one by hand vouches for it.
type Checkpoint struct {
	Origin string // the log's name
	Size   int64  // leaves
	Root   Hash
	Note   []byte // the signed note, as it was read
}

// ParseCheckpoint reads a signed checkpoint (c2sp.org/tlog-checkpoint) and verifies that the log of vkey signed it.
// Signatures of others, such as witnesses, are not looked at, nor are extension lines. Errors are [ErrMalformed] or
// [ErrUnsigned].
func ParseCheckpoint(signed []byte, vkey string) (*Checkpoint, error) {
	verifier, err := newVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("reading a checkpoint: %w", err)
	}
	return openCheckpoint(signed, verifier.Name(), note.VerifierList(verifier))
}

// newVerifier wants an Ed25519 key, the one algorithm that x/mod knows.
func newVerifier(vkey string) (note.Verifier, error) {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("the verifier key: %w: %w", ErrMalformed, err)
	}
	return verifier, nil
}

func openCheckpoint(signed []byte, origin string, known note.Verifiers) (*Checkpoint, error) {
	if len(signed) > MaxCheckpoint {
		return nil, fmt.Errorf(
			"reading a checkpoint: %w: %d octets, at most %d", ErrMalformed, len(signed), MaxCheckpoint,
		)
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
	c, err := parseTree(n.Text)
	if err != nil {
		return nil, fmt.Errorf("reading a checkpoint: %w", err)
	}
	// A key may have been used for another log's name in the text: only the log that the key is for can speak for
	// itself.
	if c.Origin != origin {
		return nil, fmt.Errorf("reading a checkpoint: %w: it is of %q, not of %q", ErrUnsigned, c.Origin, origin)
	}
	c.Note = []byte(string(signed))
	return c, nil
}

// parseTree reads the text of a checkpoint: origin, size, root, and extension lines that nobody looks at.
func parseTree(text string) (*Checkpoint, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 3 {
		return nil, fmt.Errorf("%w: %d lines, not origin, size and root", ErrMalformed, len(lines))
	}
	for i, line := range lines {
		if line == "" {
			return nil, fmt.Errorf("%w: line %d is empty", ErrMalformed, i+1)
		}
	}
	size, err := parseCount(lines[1])
	if err != nil {
		return nil, fmt.Errorf("the size: %w", err)
	}
	root, err := parseHash(lines[2])
	if err != nil {
		return nil, fmt.Errorf("the root: %w", err)
	}
	return &Checkpoint{Origin: lines[0], Size: size, Root: root}, nil
}

// text is what is signed.
func (c *Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
}

// parseCount reads a number of leaves in the one way it may be written.
func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > MaxSize || strconv.FormatInt(n, 10) != s {
		return 0, fmt.Errorf("%w: %.40q is no number from 0 to 2^48", ErrMalformed, s)
	}
	return n, nil
}

// parseHash reads a hash in the one way it may be written.
func parseHash(s string) (Hash, error) {
	h, err := merkle.ParseHash(s)
	if err != nil || h.String() != s {
		return Hash{}, fmt.Errorf("%w: %.60q is no hash in base64", ErrMalformed, s)
	}
	return h, nil
}

// signer signs notes with a key that may live elsewhere.
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

// vkeyOf writes the verifier key of a log.
func vkeyOf(origin string, public crypto.PublicKey) (string, error) {
	key, ok := public.(ed25519.PublicKey)
	if !ok || len(key) != ed25519.PublicKeySize {
		return "", fmt.Errorf("a log's key is Ed25519, not %T", public)
	}
	vkey, err := note.NewEd25519VerifierKey(origin, key)
	if err != nil {
		return "", fmt.Errorf("the verifier key: %w", err)
	}
	if _, err := note.NewVerifier(vkey); err != nil { // NewEd25519VerifierKey takes names that nobody can read again
		return "", fmt.Errorf("%q cannot be an origin: it may have no white space, no plus and not be empty", origin)
	}
	return vkey, nil
}

// toBase64 is the one encoding that logs use.
func toBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
