package httpsig

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

// The algorithms, by their names in RFC 9421 §3.3.
const (
	Ed25519   = "ed25519"
	ECDSAP256 = "ecdsa-p256-sha256"
)

// half is the length of the two numbers of an ECDSA signature with P-256.
const half = 32

// algorithm returns the algorithm of a key. A key has one, so that nobody can choose a weaker one for it.
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

// choose returns the algorithm of a key, which must be what the signature says, if it says one.
func choose(pub crypto.PublicKey, said string) (string, error) {
	alg, err := algorithm(pub)
	if err == nil && said != "" && said != alg {
		err = fmt.Errorf("the signature says algorithm %q and the key's is %s", said, alg)
	}
	return alg, err
}

func verify(pub crypto.PublicKey, said string, text, value []byte) error {
	alg, err := choose(pub, said)
	if err != nil {
		return err
	}
	ok := false
	switch k := pub.(type) {
	case ed25519.PublicKey:
		ok = ed25519.Verify(k, text, value)
	case *ecdsa.PublicKey:
		digest := sha256.Sum256(text)
		ok = len(value) == 2*half &&
			ecdsa.Verify(k, digest[:], new(big.Int).SetBytes(value[:half]), new(big.Int).SetBytes(value[half:]))
	}
	if !ok {
		return fmt.Errorf("it is not an %s signature of this message by this key", alg)
	}
	return nil
}

func sign(key crypto.Signer, said string, text []byte) ([]byte, error) {
	alg, err := choose(key.Public(), said)
	if err != nil {
		return nil, err
	}
	if alg == Ed25519 {
		return key.Sign(rand.Reader, text, crypto.Hash(0))
	}
	digest := sha256.Sum256(text)
	der, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	var n struct{ R, S *big.Int }
	if rest, err := asn1.Unmarshal(
		der, &n,
	); err != nil || len(rest) > 0 || n.R.BitLen() > 8*half ||
		n.S.BitLen() > 8*half {
		return nil, errors.New("what the key made is not a P-256 signature")
	}
	value := make([]byte, 2*half)
	n.R.FillBytes(value[:half])
	n.S.FillBytes(value[half:])
	return value, nil
}
