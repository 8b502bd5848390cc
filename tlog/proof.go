package tlog

import (
	"encoding/base64"
	"fmt"
	"strings"

	merkle "golang.org/x/mod/sumdb/tlog"
)

// maxProof is how many octets a proof may have: a checkpoint, 48 hashes and some extra data.
const maxProof = MaxCheckpoint + 16<<10

// maxPath is how many hashes an inclusion proof in a tree of MaxSize leaves has.
const maxPath = 48

const proofHeader = "c2sp.org/tlog-proof@v1"

// proof is an inclusion proof with the checkpoint it leads to (c2sp.org/tlog-proof@v1). It says nothing by itself: see
// [VerifyProof].
type proof struct {
	Index      int64  // of the leaf
	Extra      []byte // what nobody signed; ibid writes none
	Hashes     []Hash // from the leaf's sibling to the root's child
	Checkpoint []byte // the signed note
}

// parseProof reads a proof and verifies nothing. Errors are [ErrMalformed].
func parseProof(b []byte) (*proof, error) {
	if len(b) > maxProof {
		return nil, fmt.Errorf("%w: %d octets, at most %d", ErrMalformed, len(b), maxProof)
	}
	head, checkpoint, ok := strings.Cut(string(b), "\n\n")
	if !ok || checkpoint == "" {
		return nil, fmt.Errorf("%w: no empty line with a checkpoint behind it", ErrMalformed)
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
			return nil, fmt.Errorf("%w: the extra data are none, or not base64", ErrMalformed)
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

// format writes the proof as it is served.
func (p *proof) format() []byte {
	var b strings.Builder
	b.WriteString(proofHeader + "\n")
	if len(p.Extra) > 0 {
		fmt.Fprintf(&b, "extra %s\n", toBase64(p.Extra))
	}
	fmt.Fprintf(&b, "index %d\n", p.Index)
	for _, h := range p.Hashes {
		fmt.Fprintf(&b, "%s\n", h)
	}
	b.WriteByte('\n')
	b.Write(p.Checkpoint)
	return []byte(b.String())
}

// VerifyProof verifies that a digest was in the log of vkey, with what stands in the proof and nothing else, and
// returns the checkpoint that says so. Errors are [ErrMalformed], [ErrUnsigned] or [ErrNotIncluded].
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
