package httpsig_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/internal/testenv"
)

// published reads a file of the published test vectors.
func published(tb testing.TB, name ...string) []byte {
	tb.Helper()
	return testenv.Must(os.ReadFile(filepath.Join(append([]string{testenv.Shared(tb), "spec"}, name...)...)))(tb)
}

// readMessage reads a message in wire format, except for line ends. Requests are to https.
func readMessage(tb testing.TB, text string) (*httpsig.Message, []byte) {
	tb.Helper()
	head, body, _ := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n")
	lines := strings.Split(head, "\n")
	m := &httpsig.Message{Header: http.Header{}}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			tb.Fatalf("not a field: %q", line)
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		m.Header[name] = append(m.Header[name], value)
	}
	start := strings.Fields(lines[0])
	if strings.HasPrefix(start[0], "HTTP/") {
		status := testenv.Must(strconv.Atoi(start[1]))(tb)
		m.Status = status
		return m, []byte(body)
	}
	m.Method, m.TargetURI = start[0], "https://"+strings.TrimSpace(m.Header.Get("Host"))+start[1]
	delete(m.Header, "Host")
	return m, []byte(body)
}

type jwk struct{ Kty, D, X, Y, N, E, K string }

func (k *jwk) ed25519() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(decode(k.D)) }

func (k *jwk) p256() *ecdsa.PrivateKey {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), decode(k.D))
	if err != nil {
		panic(err)
	}
	return key
}

func (k *jwk) rsa() *rsa.PublicKey {
	return &rsa.PublicKey{N: new(big.Int).SetBytes(decode(k.N)), E: int(new(big.Int).SetBytes(decode(k.E)).Int64())}
}

func decode(s string) []byte {
	s = strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(s, "="))
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// testKeys reads the keys that RFC 9421 publishes, including the private keys.
func testKeys(tb testing.TB) map[string]*jwk {
	tb.Helper()
	var keys map[string]*jwk
	testenv.OK(tb, json.Unmarshal(published(tb, "rfc9421", "keys.json"), &keys))
	return keys
}

// newKey returns a key that is the same in each run.
func newKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// one returns the only signature of a message.
func one(tb testing.TB, m *httpsig.Message) *httpsig.Signature {
	tb.Helper()
	list := testenv.Must(httpsig.Parse(m))(tb)
	if len(list) != 1 {
		tb.Fatalf("the message has %d signatures, want 1", len(list))
	}
	return list[0]
}

// signed signs a message and adds the signature to its header.
func signed(tb testing.TB, m *httpsig.Message, p *httpsig.Params, key crypto.Signer) {
	tb.Helper()
	input, signature, err := httpsig.Sign(m, "sig", p, key)
	if err != nil {
		tb.Fatal(err)
	}
	m.Header.Set("Signature-Input", input)
	m.Header.Set("Signature", signature)
}

// components returns the components with these names.
func components(names ...string) []httpsig.Component {
	var list []httpsig.Component
	for _, name := range names {
		list = append(list, httpsig.Component{Name: name})
	}
	return list
}
