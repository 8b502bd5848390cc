package keyring

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// errPrivate is all that is said about a private key that cannot be read: no parser's words, which may quote it.
var errPrivate = errors.New("it is not the private key of Ed25519 or P-256 as PKCS#8 in PEM or as a JWK")

// generate makes a private key.
func generate(alg string) (crypto.Signer, error) {
	switch alg {
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case ECDSAP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return nil, fmt.Errorf("there is no algorithm %q; there are %s and %s", alg, Ed25519, ECDSAP256)
}

// parsePrivate reads a private key: PKCS#8 in PEM, or a private JWK.
func parsePrivate(b []byte) (key crypto.Signer, err error) {
	defer func() {
		if recover() != nil {
			key, err = nil, errPrivate
		}
	}()
	b = bytes.TrimSpace(b)
	if bytes.HasPrefix(b, []byte("{")) {
		return parsePrivateJWK(b)
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

func parsePrivateJWK(b []byte) (crypto.Signer, error) {
	var k jose.JSONWebKey
	if k.UnmarshalJSON(b) != nil {
		return nil, errPrivate
	}
	return checkPrivate(k.Key)
}

// checkPrivate computes the public half anew. Signing with Ed25519 and another public half than one's own would give
// the private key away.
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
		if again, err := ecdsa.ParseRawPrivateKey(
			elliptic.P256(), d,
		); err == nil &&
			again.PublicKey.Equal(&k.PublicKey) {
			return k, nil
		}
	}
	return nil, errPrivate
}

func marshalPrivate(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, errors.New("the private key cannot be written as PKCS#8")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
