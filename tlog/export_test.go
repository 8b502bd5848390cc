package tlog

// Proof is proof, for tests.
type Proof = proof

// MaxProof is maxProof, for tests.
const MaxProof = maxProof

// ParseProof is parseProof, for tests.
func ParseProof(b []byte) (*Proof, error) { return parseProof(b) }

// Format is format, for tests.
func (p *proof) Format() []byte { return p.format() }

// MaxSize is maxSize, for tests.
const MaxSize = maxSize
