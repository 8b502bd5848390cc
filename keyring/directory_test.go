package keyring_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/keyring"
)

// The published directory has the standard members, and parses to the same keys.
func TestDirectory(t *testing.T) {
	r, _, at := openRing(t)
	ed := newKey(t, r, nil)
	at.Time = noon.Add(time.Hour)
	ec := newKey(t, r, &keyring.NewOptions{Algorithm: keyring.ECDSAP256})
	check(t, r.Retire(ed.ID, noon.Add(2*time.Hour)))
	at.Time = noon.Add(3 * time.Hour)
	check(t, r.Revoke(ec.ID, time.Time{}, "private reason"))
	b, err := r.Directory(true)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string][]map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	list := got["keys"]
	if len(list) != 2 {
		t.Fatalf("%s has %d keys", b, len(list))
	}
	want := []map[string]any{
		{"kty": "EC", "crv": "P-256", "x": list[0]["x"], "y": list[0]["y"], "kid": ec.ID, "use": "sig", "alg": "ES256", "nbf": unix(1), "revoked_at": unix(3)},
		{"kty": "OKP", "crv": "Ed25519", "x": x(t, ed), "kid": ed.ID, "use": "sig", "alg": "EdDSA", "nbf": unix(0), "exp": unix(2)},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	keys, err := keyring.ParseDirectory(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantKeys := []keyring.Key{
		{ID: ec.ID, Use: keyring.Manifest, Algorithm: ec.Algorithm, Public: ec.Public, Created: ec.Created, NotBefore: ec.NotBefore, RevokedAt: noon.Add(3 * time.Hour)},
		{ID: ed.ID, Use: keyring.Manifest, Algorithm: ed.Algorithm, Public: ed.Public, Created: ed.Created, NotBefore: ed.NotBefore, NotAfter: noon.Add(2 * time.Hour)},
	}
	if diff := cmp.Diff(wantKeys, keys, cmp.Comparer(func(a, b *ecdsa.PublicKey) bool { return a.Equal(b) })); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if b, err := keyring.Memory(nil).Directory(false); err != nil || string(b) != `{"keys":[]}` {
		t.Errorf("the directory of no keys: %s, %v", b, err)
	}
}

func unix(hours int) float64 { return float64(noon.Unix() + int64(hours)*3600) }

// The RFC's key, by its published thumbprint, which is also that of the specification's example.
func TestGoldenDirectory(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testenv.Shared(t), "spec", "golden", "jwks.json"))
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := keyring.ParseDirectory(b, nil); err == nil {
		t.Errorf("a test key is accepted: %v", keys)
	}
	keys, err := keyring.ParseDirectory(b, &keyring.ParseOptions{TestKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 1 || keys[0].ID != "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U" {
		t.Errorf("keys %v", keys)
	}
}

func TestParseDirectory(t *testing.T) {
	key := newKey(t, keyring.Memory(nil), nil)
	ec := newKey(t, keyring.Memory(nil), &keyring.NewOptions{Algorithm: keyring.ECDSAP256})
	point, err := ec.Public.(*ecdsa.PublicKey).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	good := fmt.Sprintf(`"kty":"OKP","crv":"Ed25519","x":%q`, x(t, key))
	goodEC := fmt.Sprintf(`"kty":"EC","crv":"P-256","x":%q,"y":%q`, b64(point[1:33]), b64(point[33:]))
	const rsa = `{"kty":"RSA","n":"AQAB","e":"AQAB"}`
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	for about, test := range map[string]struct {
		text string
		want int // keys; -1 if refused
	}{
		"plain":                   {set("{" + good + "}"), 1},
		"P-256":                   {set("{" + goodEC + "}"), 1},
		"both":                    {set("{"+good+"}", "{"+goodEC+"}"), 2},
		"none":                    {set(), 0},
		"all members":             {set("{" + good + `,"kid":"` + key.ID + `","use":"sig","alg":"EdDSA","nbf":1,"exp":2,"revoked_at":3}`), 1},
		"other names of alg":      {set("{"+good+`,"alg":"Ed25519"}`, "{"+goodEC+`,"alg":"ES256"}`), 2},
		"unknown members":         {`{"purpose":"heron","keys":[{` + good + `,"x5c":[],"heron":{"d":1}}]}`, 1},
		"other kinds":             {set(rsa, `{"kty":"OKP","crv":"X25519","x":"AA"}`, `{"kty":"heron"}`, `{}`, "{"+good+"}"), 1},
		"for encryption":          {set("{" + good + `,"use":"enc"}`), 0},
		"as many as may be":       {set(strings.Split(strings.Repeat(rsa+"\n", keyring.MaxKeys-1)+"{"+good+"}", "\n")...), 1},
		"more":                    {set(strings.Split(strings.Repeat(rsa+"\n", keyring.MaxKeys)+"{"+good+"}", "\n")...), -1},
		"as long as may be":       {set("{" + good + "}" + strings.Repeat(" ", keyring.MaxDirectory-len(set("{"+good+"}")))), 1},
		"longer":                  {set("{" + good + "}" + strings.Repeat(" ", keyring.MaxDirectory+1-len(set("{"+good+"}")))), -1},
		"no JSON":                 {"<html>", -1},
		"more than one":           {set() + set(), -1},
		"a list":                  {"[]", -1},
		"no keys":                 {"{}", -1},
		"null":                    {"null", -1},
		"keys are null":           {`{"keys":null}`, -1},
		"KEYS":                    {`{"KEYS":[]}`, -1},
		"keys twice":              {`{"keys":[],"keys":[{` + good + `}]}`, -1},
		"key is null":             {set("null"), -1},
		"key is a text":           {set(`"heron"`), -1},
		"member twice":            {set("{" + good + `,"kty":"OKP"}`), -1},
		"key twice":               {set("{"+good+"}", "{"+good+`,"alg":"EdDSA"}`), -1},
		"private":                 {set("{" + good + `,"d":"AA"}`), -1},
		"private of another kind": {set("{"+good+"}", `{"kty":"RSA","p":"AA"}`), -1},
		"secret":                  {set(`{"kty":"oct","k":"AA"}`), -1},
		"another id":              {set("{" + good + `,"kid":"heron"}`), -1},
		"another algorithm":       {set("{" + good + `,"alg":"ES256"}`), -1},
		"algorithm of the RFC":    {set("{" + good + `,"alg":"HS256"}`), -1},
		"short":                   {set(`{"kty":"OKP","crv":"Ed25519","x":"AA"}`), -1},
		"empty x":                 {set(`{"kty":"OKP","crv":"Ed25519"}`), -1},
		"no point":                {set(fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q,"y":%q}`, b64(point[1:33]), b64(point[1:33]))), -1},
		"no y":                    {set(fmt.Sprintf(`{"kty":"EC","crv":"P-256","x":%q}`, b64(point[1:33]))), -1},
		"y of Ed25519":            {set("{" + good + `,"y":"AA"}`), -1},
		"padded":                  {set(strings.Replace("{"+good+"}", x(t, key), x(t, key)+"=", 1)), -1},
		"time as text":            {set("{" + good + `,"nbf":"1"}`), -1},
		"time as a fraction":      {set("{" + good + `,"exp":1.5}`), -1},
		"time in milliseconds":    {set("{" + good + `,"exp":1777370401000}`), -1},
		"time before 1970":        {set("{" + good + `,"revoked_at":-1}`), -1},
		"test key": {set(`{"kty":"EC","crv":"P-256","x":"qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA",` +
			`"y":"Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0"}`), -1},
		"deep": {`{"keys":[],"heron":` + strings.Repeat("[", 30000) + strings.Repeat("]", 30000) + "}", -1},
	} {
		keys, err := keyring.ParseDirectory([]byte(test.text), nil)
		if err != nil && test.want >= 0 || err == nil && len(keys) != test.want {
			t.Errorf("%s: %v, %v; want %d keys", about, keys, err, test.want)
		}
	}
}

func TestThumbprint(t *testing.T) {
	// RFC 8037 appendix A.3.
	const x = "\xd7\x5a\x98\x01\x82\xb1\x0a\xb7\xd5\x4b\xfe\xd3\xc9\x64\x07\x3a\x0e\xe1\x72\xf3\xda\xa6\x23\x25\xaf\x02\x1a\x68\xf7\x07\x51\x1a"
	if got, err := keyring.Thumbprint(ed25519.PublicKey(x)); err != nil || got != "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k" {
		t.Errorf("Thumbprint = %s, %v", got, err)
	}
	for _, key := range []any{nil, "heron", ed25519.PublicKey{1}, &newP384(t).PublicKey, (*ecdsa.PublicKey)(nil)} {
		if got, err := keyring.Thumbprint(key); err == nil {
			t.Errorf("Thumbprint(%T) = %s", key, got)
		}
	}
}

func FuzzParseDirectory(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","nbf":1}]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"qIVYZVLCrPZHGHjP17CTW0_-D9Lfw0EkjqF7xB4FivA","y":"Mc4nN9LTDOBhfoUeg8Ye9WedFRhnZXZJA12Qp0zZ6F0"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := keyring.ParseDirectory(b, &keyring.ParseOptions{TestKeys: true})
		if err != nil {
			return
		}
		for _, k := range keys {
			if id, err := keyring.Thumbprint(k.Public); err != nil || id != k.ID {
				t.Errorf("the key %s has the thumbprint %s, %v", k.ID, id, err)
			}
		}
	})
}
