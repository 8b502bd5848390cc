package httpsig_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/internal/testenv"
)

// The vectors of RFC 9421 appendix B.2: bases and results are as published. Those by RSA and HMAC are verified here,
// because the package refuses them.
func TestAppendixB(t *testing.T) {
	keys := testKeys(t)
	pss := func(text, value []byte) error {
		digest := sha512.Sum512(text)
		return rsa.VerifyPSS(keys["test-key-rsa-pss"].rsa(), crypto.SHA512, digest[:], value, nil)
	}
	for _, test := range []struct {
		file  string
		key   crypto.PublicKey
		check func(text, value []byte) error // for algorithms that the package refuses
	}{
		{"b21_request", keys["test-key-rsa-pss"].rsa(), pss},
		{"b22_request", keys["test-key-rsa-pss"].rsa(), pss},
		{"b23_request", keys["test-key-rsa-pss"].rsa(), pss},
		{"b24_response", keys["test-key-ecc-p256"].p256().Public(), nil},
		{"b25_request", decode(keys["test-shared-secret"].K), func(text, value []byte) error {
			h := hmac.New(sha256.New, decode(keys["test-shared-secret"].K))
			h.Write(text)
			if !hmac.Equal(h.Sum(nil), value) {
				t.Error("the HMAC differs")
			}
			return nil
		}},
		{"b26_request", keys["test-key-ed25519"].ed25519().Public(), nil},
	} {
		t.Run(test.file, func(t *testing.T) {
			m, body := readMessage(t, string(published(t, "rfc9421", test.file+"_signed.txt")))
			s := one(t, m)
			text, err := s.Base(m)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(string(published(t, "rfc9421", test.file+"_sigbase.txt")), "\r\n", "\n")
			testenv.Equal(t, "base", want, string(text))
			if again, err := httpsig.Base(m, &s.Params); err != nil || string(again) != want {
				t.Errorf("Base of the parameters as read = %s, %v", again, err)
			}
			err = s.Verify(m, test.key)
			if test.check == nil && err != nil {
				t.Errorf("Verify: %v", err)
			}
			if test.check != nil {
				if err == nil {
					t.Errorf("Verify takes a %T", test.key)
				}
				if err := test.check(text, s.Value); err != nil {
					t.Error(err)
				}
			}
			if err := httpsig.CheckDigest(m.Header["Content-Digest"], []byte(strings.TrimSuffix(string(body), "\n"))); err != nil {
				t.Error(err)
			}
		})
	}
}

// The messages of RFC 9421 §2.4: a response that is bound to its request.
const (
	bindingRequest = `POST /foo?param=Value&Pet=dog HTTP/1.1
Host: example.com
Date: Tue, 20 Apr 2021 02:07:55 GMT
Content-Digest: sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:
Content-Type: application/json
Content-Length: 18

{"hello": "world"}`
	bindingResponse = `HTTP/1.1 503 Service Unavailable
Date: Tue, 20 Apr 2021 02:07:56 GMT
Content-Type: application/json
Content-Length: 62
Content-Digest: sha-512=:0Y6iCBzGg5rZtoXS95Ijz03mslf6KAMCloESHObfwnHJDbkkWWQz6PhhU9kxsTbARtY2PTBOzq24uJFpHsMuAg==:
Signature-Input: reqres=("@status" "content-digest" "content-type" "@authority";req "@method";req "@path";req "content-digest";req);created=1618884479;keyid="test-key-ecc-p256"
Signature: reqres=:dMT/A/76ehrdBTD/2Xx8QuKV6FoyzEP/I9hdzKN8LQJLNgzU4W767HK05rx1i8meNQQgQPgQp8wq2ive3tV5Ag==:

{"busy": true, "message": "Your call is very important to us"}`
	bindingBase = `"@status": 503
"content-digest": sha-512=:0Y6iCBzGg5rZtoXS95Ijz03mslf6KAMCloESHObfwnHJDbkkWWQz6PhhU9kxsTbARtY2PTBOzq24uJFpHsMuAg==:
"content-type": application/json
"@authority";req: example.com
"@method";req: POST
"@path";req: /foo
"content-digest";req: sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:
"@signature-params": ("@status" "content-digest" "content-type" "@authority";req "@method";req "@path";req "content-digest";req);created=1618884479;keyid="test-key-ecc-p256"`
)

func TestRequestBinding(t *testing.T) {
	key := testKeys(t)["test-key-ecc-p256"].p256().Public()
	m, body := readMessage(t, bindingResponse)
	if err := httpsig.CheckDigest(m.Header["Content-Digest"], body); err != nil {
		t.Error(err)
	}
	s := one(t, m)
	if err := s.Verify(m, key); err == nil {
		t.Error("it verifies without its request")
	}
	m.Request, _ = readMessage(t, bindingRequest)
	text := testenv.Must(s.Base(m))(t)
	testenv.Equal(t, "base", bindingBase, string(text))
	if err := s.Verify(m, key); err != nil {
		t.Error(err)
	}
	for about, change := range map[string]func(r *httpsig.Message){
		"authority": func(r *httpsig.Message) { r.TargetURI = "https://example.org/foo" },
		"path":      func(r *httpsig.Message) { r.TargetURI = "https://example.com/bar" },
		"method":    func(r *httpsig.Message) { r.Method = "PUT" },
		"digest":    func(r *httpsig.Message) { r.Header.Set("Content-Digest", httpsig.ContentDigest(nil)) },
		"no digest": func(r *httpsig.Message) { r.Header.Del("Content-Digest") },
		"empty":     func(r *httpsig.Message) { *r = httpsig.Message{} },
	} {
		m.Request, _ = readMessage(t, bindingRequest)
		change(m.Request)
		if err := s.Verify(m, key); err == nil {
			t.Errorf("it verifies with another request: %s", about)
		}
	}
}

// The signed manifest of the specification's example.
func TestGolden(t *testing.T) {
	text := string(published(t, "golden", "headers.txt"))
	section := func(name string) string {
		_, after, ok := strings.Cut(text, "# "+name+"\n")
		if !ok {
			t.Fatalf("the example has no %s", name)
		}
		inside, _, _ := strings.Cut(after, "\n\n")
		return inside
	}
	m, _ := readMessage(t, section("manifest response"))
	m.Request = &httpsig.Message{Method: "GET", TargetURI: "https://agent.example/runs/123/cite/a"}
	body := published(t, "golden", "manifest.json")
	if err := httpsig.CheckDigest(m.Header["Content-Digest"], body); err != nil {
		t.Error(err)
	}
	if got := strings.TrimSpace(m.Header.Get("Content-Digest")); got != httpsig.ContentDigest(body) {
		t.Errorf("ContentDigest = %s, want %s", httpsig.ContentDigest(body), got)
	}
	s := one(t, m)
	base, err := s.Base(m)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Equal(t, "base", section("signature base"), string(base))
	var set struct{ Keys []*jwk }
	testenv.OK(t, json.Unmarshal(published(t, "golden", "jwks.json"), &set))
	key := testKeys(t)["test-key-ed25519"].ed25519()
	if got := string(decode(set.Keys[0].X)); got != string(key[32:]) {
		t.Fatal("the example is signed by another key")
	}
	if err := s.Verify(m, key.Public()); err != nil {
		t.Error(err)
	}
	input, signature, err := httpsig.Sign(m, s.Label, &s.Params, key)
	want := [2]string{strings.TrimSpace(m.Header.Get("Signature-Input")), strings.TrimSpace(m.Header.Get("Signature"))}
	if diff := cmp.Diff(want, [2]string{input, signature}); err != nil || diff != "" {
		t.Errorf("signing it again: %v (-want +got):\n%s", err, diff)
	}
}
