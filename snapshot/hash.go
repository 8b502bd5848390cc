package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash returns how octets are named everywhere: "sha256:" and 64 lower-case hexadecimal digits.
func Hash(b []byte) string {
	const prefix = "sha256:"
	sum := sha256.Sum256(b)
	out := make([]byte, len(prefix)+hex.EncodedLen(len(sum)))
	hex.Encode(out[copy(out, prefix):], sum[:])
	return string(out)
}
