package keyring

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/ibidhq/ibid/internal/httpsig"
)

// Use is what a key signs. A key has only one use, so that a signature of one kind cannot pass for another.
type Use string

// The uses.
const (
	Manifest Use = "manifest" // provenance manifests and incident reports
	Log      Use = "log"      // checkpoints of the transparency log: Ed25519 only, and not in the published directory
)

// The algorithms, by their names in RFC 9421 §3.3.
const (
	Ed25519   = httpsig.Ed25519
	ECDSAP256 = httpsig.ECDSAP256
)

// The reasons that Good returns.
const (
	OutsideValidity = "key-outside-validity" // it was not yet valid, or no longer
	Revoked         = "key-revoked"          // it was no longer to be trusted
)

// Key is a public key with its facts. It is plain data; times are UTC, in whole seconds.
type Key struct {
	ID        string    `json:"id"`                  // base64url of the SHA-256 JWK thumbprint: RFC 7638
	Use       Use       `json:"use"`                 // Manifest for a published key
	Algorithm string    `json:"algorithm"`           // Ed25519 or ECDSAP256
	Created   time.Time `json:"created_at"`          // NotBefore for a published key
	NotBefore time.Time `json:"not_before,omitzero"` // zero means unlimited
	NotAfter  time.Time `json:"not_after,omitzero"`  // zero means unlimited; RetiredAt for a retired key
	RetiredAt time.Time `json:"retired_at,omitzero"` // zero if not retired, or unknown for a published key
	// zero if not revoked; otherwise untrusted from then on, and before that only trusted for what is in a log
	RevokedAt time.Time        `json:"revoked_at,omitzero"`
	Reason    string           `json:"reason,omitempty"` // why it was revoked; not published
	Public    crypto.PublicKey `json:"-"`
	// where the private key is: "file", "env:NAME", "memory", or empty if it is not available
	Private string `json:"private"`
}

// Good reports whether the key was valid for signing at the time created; if not, why is OutsideValidity or Revoked.
// For a key with RevokedAt, that is not enough: whoever stole it may have back-dated a signature. Such a signature
// counts only with a proof that what was signed is in a transparency log.
func (k *Key) Good(created time.Time) (why string, ok bool) {
	switch {
	case !k.RevokedAt.IsZero() && !created.Before(k.RevokedAt):
		return Revoked, false
	case created.Before(k.NotBefore), !k.NotAfter.IsZero() && created.After(k.NotAfter):
		return OutsideValidity, false
	}
	return "", true
}

// Thumbprint returns the base64url SHA-256 JWK thumbprint of an Ed25519 or P-256 key, which is its id.
func Thumbprint(pub crypto.PublicKey) (string, error) {
	if _, err := httpsig.Algorithm(pub); err != nil {
		return "", err
	}
	sum, err := (&jose.JSONWebKey{Key: pub}).Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("computing a key's thumbprint: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sum), nil
}

// published are the x coordinates of keys whose private half is printed in a standard: RFC 9421, 8037 (which has it
// from 8032), 7515 and 7517, in this order. Their signatures prove nothing.
var published = []string{
	"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs", "qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA",
	"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
	"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
}

// errPrivate is the only error for a private key that cannot be parsed: a parser's error may quote it.
var errPrivate = errors.New("it is not an Ed25519 or P-256 private key as PKCS#8 in PEM or as a JWK")

// generate generates a private key.
func generate(alg string) (crypto.Signer, error) {
	switch alg {
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case ECDSAP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return nil, fmt.Errorf("there is no algorithm %q; use %s or %s", alg, Ed25519, ECDSAP256)
}

// parsePrivate parses a private key: PKCS#8 in PEM, or a private JWK.
func parsePrivate(b []byte) (key crypto.Signer, err error) {
	defer func() {
		if recover() != nil {
			key, err = nil, errPrivate
		}
	}()
	b = bytes.TrimSpace(b)
	if bytes.HasPrefix(b, []byte("{")) {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(b) != nil {
			return nil, errPrivate
		}
		return checkPrivate(k.Key)
	}
	block, rest := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" || len(block.Headers) > 0 || len(rest) > 0 ||
		!bytes.HasPrefix(b, []byte("-----BEGIN")) {
		return nil, errPrivate
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errPrivate
	}
	return checkPrivate(parsed)
}

// checkPrivate recomputes the public half. Signing with Ed25519 and a wrong public half would reveal the private key.
func checkPrivate(key any) (crypto.Signer, error) {
	switch k := key.(type) {
	case ed25519.PrivateKey:
		if len(k) == ed25519.PrivateKeySize && ed25519.NewKeyFromSeed(k.Seed()).Equal(k) {
			return k, nil
		}
	case *ecdsa.PrivateKey:
		if k.Curve != elliptic.P256() {
			return nil, errPrivate
		}
		d, err := k.Bytes()
		if err != nil {
			return nil, errPrivate
		}
		again, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d)
		if err == nil && again.PublicKey.Equal(&k.PublicKey) {
			return k, nil
		}
	}
	return nil, errPrivate
}
