package keyring

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Use is what a key signs. A key has one use, so that a signature of one kind cannot be passed off as another.
type Use string

// The uses.
const (
	Manifest Use = "manifest" // provenance manifests and incident reports
	Log      Use = "log"      // checkpoints of the transparency log: Ed25519 only, and not in the published directory
)

// The algorithms, by their names in RFC 9421 §3.3.
const (
	Ed25519   = "ed25519"
	ECDSAP256 = "ecdsa-p256-sha256"
)

// What Good can say against a key.
const (
	OutsideValidity = "key-outside-validity" // it was not yet good, or no longer
	Revoked         = "key-revoked"          // it was not to be believed any more
)

// Key is a public key with what is known about it. It is plain data; times are UTC, in whole seconds.
type Key struct {
	ID        string    // base64url of the SHA-256 JWK thumbprint: RFC 7638
	Use       Use       // of a published key: Manifest
	Algorithm string    // Ed25519 or ECDSAP256
	Created   time.Time // of a published key: NotBefore
	NotBefore time.Time // zero: open
	NotAfter  time.Time // zero: open; of a retired key: RetiredAt
	RetiredAt time.Time // zero: it is not retired; of a published key: unknown
	// zero: it is not revoked; otherwise it is not to be believed from then on, and before only of what a log has
	RevokedAt time.Time
	Reason    string // why it was revoked; not published
	Public    crypto.PublicKey
	Private   string // where the private key is: "file", "env:NAME", "memory", or empty if it is not here
}

// Good reports whether the key was good for signing at this time; if not, why is OutsideValidity or Revoked. Of a key
// that has RevokedAt, good is not enough: whoever stole it may have written any time before. Such a signature counts
// only with a proof that a transparency log has what was signed.
func (k *Key) Good(created time.Time) (why string, ok bool) {
	switch {
	case !k.RevokedAt.IsZero() && !created.Before(k.RevokedAt):
		return Revoked, false
	case created.Before(k.NotBefore), !k.NotAfter.IsZero() && created.After(k.NotAfter):
		return OutsideValidity, false
	}
	return "", true
}

// usable reports whether the key is to sign now. A key that was ever revoked is not, whatever the clock says.
func (k *Key) usable(now time.Time) bool {
	_, good := k.Good(now)
	return good && k.RevokedAt.IsZero() && k.Private != ""
}

// Thumbprint returns the base64url SHA-256 JWK thumbprint of an Ed25519 or P-256 key: what its id must be.
func Thumbprint(pub crypto.PublicKey) (string, error) {
	if _, err := algorithm(pub); err != nil {
		return "", err
	}
	sum, err := (&jose.JSONWebKey{Key: pub}).Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("making a key's thumbprint: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

func algorithm(pub crypto.PublicKey) (string, error) {
	switch k := pub.(type) {
	case ed25519.PublicKey:
		if len(k) == ed25519.PublicKeySize {
			return Ed25519, nil
		}
	case *ecdsa.PublicKey:
		if k != nil && k.Curve == elliptic.P256() {
			return ECDSAP256, nil
		}
	}
	return "", errors.New("the key is neither Ed25519 nor P-256")
}

// isPublished reports whether the private half is printed in a standard: RFC 9421, 8037 (which has it from 8032), 7515
// and 7517, in this order. What they sign proves nothing.
func isPublished(k *jwk) bool {
	switch k.X {
	case "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs", "qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA",
		"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
		"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
		"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4":
		return true
	}
	return false
}
