package manifest

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/ibidhq/ibid/snapshot"
)

// ClaimID returns the id of a claim with the given text: "c-" and 16 hexadecimal digits of the SHA-256 of the
// normalised text. The same words have the same id in every run.
func ClaimID(text string) string {
	sum := sha256.Sum256([]byte(snapshot.Normalize(text)))
	return "c-" + hex.EncodeToString(sum[:8])
}
