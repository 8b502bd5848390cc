package keyring

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	json2 "github.com/go-json-experiment/json"

	"github.com/ibidhq/ibid/internal/httpsig"
)

// MediaType is the media type of a published directory of keys.
const MediaType = "application/http-message-signatures-directory+json"

// Limits of a published directory, for readers and so for writers.
const (
	maxDirectory = 64 << 10 // bytes
	MaxKeys      = 32       // keys, including ignored ones
)

// jwk is a public key in a JWK Set: RFC 7517, with the times of Web Bot Auth's directories and our revoked_at.
type jwk struct {
	Kty       string `json:"kty"`
	Crv       string `json:"crv"`
	X         string `json:"x"`
	Y         string `json:"y,omitempty"`
	Kid       string `json:"kid,omitempty"`
	Use       string `json:"use,omitempty"`
	Alg       string `json:"alg,omitempty"`
	NotBefore *int64 `json:"nbf,omitempty"`
	NotAfter  *int64 `json:"exp,omitempty"`
	RevokedAt *int64 `json:"revoked_at,omitempty"`
}

// newJWK returns a JWK with only the members of the key itself.
func newJWK(pub crypto.PublicKey) (*jwk, error) {
	encode := base64.RawURLEncoding.EncodeToString
	if _, err := httpsig.Algorithm(pub); err != nil {
		return nil, err
	}
	if k, ok := pub.(ed25519.PublicKey); ok {
		return &jwk{Kty: "OKP", Crv: "Ed25519", X: encode(k)}, nil
	}
	point, err := pub.(*ecdsa.PublicKey).Bytes() // 4, x, y
	if err != nil {
		return nil, fmt.Errorf("writing a key: %w", err)
	}
	n := 1 + len(point)/2
	return &jwk{Kty: "EC", Crv: "P-256", X: encode(point[1:n]), Y: encode(point[n:])}, nil
}

func unix(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.Unix()
	return &n
}

// Directory returns the JWK Set to publish. If all is set, it has every manifest key there ever was, with nbf, exp and
// revoked_at, so that signatures of retired keys can be verified for years. Otherwise it has those that are neither
// revoked nor retired, including keys that become valid later, because readers cache it for a day.
func (r *Ring) Directory(all bool) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.reload(); err != nil {
		return nil, err
	}
	set := struct {
		Keys []*jwk `json:"keys"`
	}{[]*jwk{}}
	now := r.now()
	for i := range r.keys {
		k := &r.keys[i]
		active := k.RevokedAt.IsZero() && (k.NotAfter.IsZero() || !now.After(k.NotAfter))
		if k.Use != Manifest || !all && !active {
			continue
		}
		j, err := newJWK(k.Public)
		if err != nil {
			return nil, fmt.Errorf("publishing the key %s: %w", k.ID, err)
		}
		j.Kid, j.Use, j.Alg = k.ID, "sig", "EdDSA"
		if k.Algorithm == ECDSAP256 {
			j.Alg = "ES256"
		}
		j.NotBefore, j.NotAfter, j.RevokedAt = unix(k.NotBefore), unix(k.NotAfter), unix(k.RevokedAt)
		set.Keys = append(set.Keys, j)
	}
	return json.Marshal(set)
}

// ParseOptions configures [ParseDirectory]; nil means the defaults.
type ParseOptions struct {
	TestKeys bool // only for tests: accept keys whose private half is printed in a standard
}

// ParseDirectory parses a published JWK Set, including those of others. It ignores keys that are not for signatures, or
// neither Ed25519 nor P-256. Any other fault invalidates the whole directory: a private member in any key, a well-known
// or duplicate key, an id that is not the thumbprint, another algorithm, a time not in whole seconds.
func ParseDirectory(b []byte, o *ParseOptions) ([]Key, error) {
	if o == nil {
		o = &ParseOptions{}
	}
	if len(b) > maxDirectory {
		return nil, fmt.Errorf("reading a directory of keys: it is longer than %d bytes", maxDirectory)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("reading a directory of keys: %w", err)
	}
	if set.Keys == nil || len(set.Keys) > MaxKeys {
		return nil, fmt.Errorf("reading a directory of keys: it has no list of keys, or more than %d", MaxKeys)
	}
	var keys []Key
	seen := map[string]bool{}
	for i, raw := range set.Keys {
		k, err := parsePublished(raw, o)
		if err == nil && k != nil && seen[k.ID] {
			err = errors.New("it appears twice")
		}
		if err != nil {
			return nil, fmt.Errorf("reading a directory of keys: key %d: %w", i, err)
		}
		if k != nil {
			seen[k.ID] = true
			keys = append(keys, *k)
		}
	}
	return keys, nil
}

// parsePublished parses a published key; nil if it is to be ignored.
func parsePublished(raw []byte, o *ParseOptions) (*Key, error) {
	var members map[string]json.RawMessage
	if err := unmarshal(raw, &members); err != nil {
		return nil, err
	}
	if members == nil {
		return nil, errors.New("it is null")
	}
	for _, name := range []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"} {
		if _, ok := members[name]; ok {
			return nil, errors.New("it has members of a private key")
		}
	}
	var j jwk
	if err := unmarshal(raw, &j); err != nil {
		return nil, err
	}
	if j.Use != "" && j.Use != "sig" || (j.Kty != "OKP" || j.Crv != "Ed25519") && (j.Kty != "EC" || j.Crv != "P-256") {
		return nil, nil //nolint:nilnil // ignored: RFC 7517 §5
	}
	k, err := j.key(o.TestKeys)
	if err != nil {
		return nil, err
	}
	for _, t := range []struct {
		to    *time.Time
		value *int64
	}{{&k.NotBefore, j.NotBefore}, {&k.NotAfter, j.NotAfter}, {&k.RevokedAt, j.RevokedAt}} {
		const year10000 = 253402300800
		switch {
		case t.value == nil:
		case *t.value < 0 || *t.value >= year10000:
			return nil, errors.New("a time is not in seconds since 1970")
		default:
			*t.to = time.Unix(*t.value, 0).UTC()
		}
	}
	k.Use, k.Created = Manifest, k.NotBefore
	return k, nil
}

// key returns the key in the members of j, verified.
func (j *jwk) key(testKeys bool) (*Key, error) {
	if slices.Contains(published, j.X) && !testKeys {
		return nil, errors.New("the private half of this test key is public")
	}
	plain, err := json.Marshal(&jwk{Kty: j.Kty, Crv: j.Crv, X: j.X, Y: j.Y})
	if err != nil {
		return nil, err
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(plain); err != nil {
		return nil, errors.New("it is not a point of its curve")
	}
	alg, err := httpsig.Algorithm(parsed.Key)
	if err != nil {
		return nil, err
	}
	again, err := newJWK(parsed.Key)
	if err != nil {
		return nil, err
	}
	id, err := Thumbprint(parsed.Key)
	if err != nil {
		return nil, err
	}
	named := ""
	switch j.Alg {
	case "EdDSA", "Ed25519", Ed25519:
		named = Ed25519
	case "ES256", ECDSAP256:
		named = ECDSAP256
	}
	switch {
	case again.X != j.X || again.Y != j.Y:
		return nil, errors.New("its numbers are not in canonical form")
	case j.Kid != "" && j.Kid != id:
		return nil, fmt.Errorf("its id is not its thumbprint, %s", id)
	case j.Alg != "" && named != alg:
		return nil, errors.New("its algorithm does not match")
	}
	return &Key{ID: id, Algorithm: alg, Public: parsed.Key}, nil
}

// unmarshal decodes JSON whose names are unique and case-sensitive. Its errors do not quote the input.
func unmarshal(b []byte, to any) error {
	if json2.Unmarshal(b, to) != nil {
		return errors.New("it is not JSON of the right form, or has a duplicate name")
	}
	return nil
}
