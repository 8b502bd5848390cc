package httpsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/http"

	"github.com/dunglas/httpsfv"
)

// The algorithms, by their names in RFC 9421 §3.3.
const (
	Ed25519   = "ed25519"
	ECDSAP256 = "ecdsa-p256-sha256"
)

// half is the length of the two numbers of an ECDSA signature with P-256.
const half = 32

// Algorithm returns the algorithm of a public key. A key has one, so that nobody can choose a weaker one for it.
func Algorithm(pub crypto.PublicKey) (string, error) {
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
	alg, err := Algorithm(pub)
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
	rest, err := asn1.Unmarshal(der, &n)
	if err != nil || len(rest) > 0 || n.R.BitLen() > 8*half || n.S.BitLen() > 8*half {
		return nil, errors.New("what the key made is not a P-256 signature")
	}
	value := make([]byte, 2*half)
	n.R.FillBytes(value[:half])
	n.S.FillBytes(value[half:])
	return value, nil
}

// ContentDigest returns the value of Content-Digest for the octets of a body as it is sent, by sha-256.
func ContentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// CheckDigest returns an error unless the lines of a Content-Digest field are of this body: RFC 9530. Each digest by
// sha-256 or sha-512 must be right, and there must be one, and one by each of the algorithms in must. Those by other
// algorithms prove nothing and are passed over.
func CheckDigest(field []string, body []byte, must ...string) error {
	d, err := readDictionary(http.Header{"Content-Digest": field}, "Content-Digest")
	if err != nil {
		return err
	}
	known := false
	for _, name := range d.Names() {
		var sum []byte
		switch name {
		case "sha-256":
			s := sha256.Sum256(body)
			sum = s[:]
		case "sha-512":
			s := sha512.Sum512(body)
			sum = s[:]
		default:
			continue
		}
		v, _ := d.Get(name)
		item, _ := v.(httpsfv.Item)
		if said, ok := item.Value.([]byte); !ok || !bytes.Equal(said, sum) {
			return fmt.Errorf("checking Content-Digest: the body does not have this %s", name)
		}
		known = true
	}
	if !known {
		return errors.New("checking Content-Digest: it has neither sha-256 nor sha-512")
	}
	for _, name := range must {
		if _, has := d.Get(name); !has {
			return fmt.Errorf("checking Content-Digest: it has no %s", name)
		}
	}
	return nil
}
