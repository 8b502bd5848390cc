package httpsig_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/internal/testenv"
)

// manifestResponse returns the response that serves a manifest, signed with key.
func manifestResponse(tb testing.TB, key crypto.Signer) *httpsig.Message {
	tb.Helper()
	m := &httpsig.Message{
		Status: 200,
		Header: http.Header{
			"Content-Type":   {"application/json"},
			"Content-Digest": {httpsig.ContentDigest([]byte(`{"version":"1.0"}`))},
		},
		Request: &httpsig.Message{Method: "GET", TargetURI: "https://agent.example/runs/1/cite"},
	}
	signed(tb, m, &httpsig.Params{
		Components: append(components("@status", "content-type", "content-digest"), httpsig.Component{Name: "@target-uri", Request: true}),
		Created:    new(int64(1777370401)),
		KeyID:      "heron",
		Tag:        "agent-citation-manifest",
	}, key)
	return m
}

func newP256(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	return testenv.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(tb)
}

// Only what was signed verifies: not another URL, status, digest, tag or key.
func TestMoved(t *testing.T) {
	for alg, key := range map[string]crypto.Signer{httpsig.Ed25519: newKey(1), httpsig.ECDSAP256: newP256(t)} {
		if err := one(t, manifestResponse(t, key)).Verify(manifestResponse(t, key), key.Public()); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
		replace := func(name, old, with string) func(m *httpsig.Message) {
			return func(m *httpsig.Message) {
				value := m.Header.Get(name)
				if !strings.Contains(value, old) {
					t.Fatalf("%s is %s", name, value)
				}
				m.Header.Set(name, strings.Replace(value, old, with, 1))
			}
		}
		for about, change := range map[string]func(m *httpsig.Message){
			"":                   func(*httpsig.Message) {},
			"another URL":        func(m *httpsig.Message) { m.Request.TargetURI = "https://agent.example/runs/2/cite" },
			"another host":       func(m *httpsig.Message) { m.Request.TargetURI = "https://other.example/runs/1/cite" },
			"a query":            func(m *httpsig.Message) { m.Request.TargetURI += "?" },
			"no URL":             func(m *httpsig.Message) { m.Request.TargetURI = "" },
			"no request":         func(m *httpsig.Message) { m.Request = nil },
			"another status":     func(m *httpsig.Message) { m.Status = 203 },
			"a request":          func(m *httpsig.Message) { m.Status = 0 },
			"another digest":     func(m *httpsig.Message) { m.Header.Set("Content-Digest", httpsig.ContentDigest([]byte("{}"))) },
			"no digest":          func(m *httpsig.Message) { m.Header.Del("Content-Digest") },
			"another digest too": func(m *httpsig.Message) { m.Header.Add("Content-Digest", "sha-512=::") },
			"another type":       func(m *httpsig.Message) { m.Header.Set("Content-Type", "text/plain") },
			"another tag":        replace("Signature-Input", "agent-citation-manifest", "agent-citation-incident"),
			"another key id":     replace("Signature-Input", "heron", "stork"),
			"another time":       replace("Signature-Input", "1777370401", "1777370402"),
			"no tag":             replace("Signature-Input", `;tag="agent-citation-manifest"`, ""),
			"an algorithm":       replace("Signature-Input", ";tag", `;alg="`+alg+`";tag`),
			"another order":      replace("Signature-Input", `"@status" "content-type"`, `"content-type" "@status"`),
			"less covered":       replace("Signature-Input", `"@status" `, ""),
			"not of the request": replace("Signature-Input", ";req", ""),
			"a parameter":        replace("Signature-Input", ";created", ";x;created"),
			"a bit of it":        func(m *httpsig.Message) { m.Header.Set("Signature", flip(m.Header.Get("Signature"))) },
		} {
			m := manifestResponse(t, key)
			change(m)
			err := one(t, m).Verify(m, key.Public())
			if (err == nil) != (about == "") {
				t.Errorf("%s: %s: %v", alg, about, err)
			}
		}
		m := manifestResponse(t, key)
		for about, other := range map[string]crypto.PublicKey{
			"Ed25519": newKey(2).Public(), "P-256": newP256(t).Public(), "nil": nil, "no key": "key", "short": ed25519.PublicKey{1},
			"nil P-256": (*ecdsa.PublicKey)(nil), "P-384": &ecdsa.PublicKey{Curve: elliptic.P384()}, "octets": []byte("secret"),
		} {
			if err := one(t, m).Verify(m, other); err == nil {
				t.Errorf("%s: it verifies by another key: %s", alg, about)
			}
		}
	}
}

// flip changes one bit in the middle of a signature's base64.
func flip(s string) string {
	i := len(s) / 2
	c := byte('A')
	if s[i] == 'A' {
		c = 'B'
	}
	return s[:i] + string(c) + s[i+1:]
}

// Signatures by agents in the form of Web Bot Auth: with its tag, and the agent as an item or a dictionary member.
func TestWebBotAuth(t *testing.T) {
	key := newKey(3)
	request := func(agent, component string) *httpsig.Message {
		m := &httpsig.Message{
			Method: "GET", TargetURI: "https://example.com/path/to/resource",
			Header: http.Header{"Signature-Agent": {agent}},
		}
		input := `("@authority" ` + component + `);created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";` +
			`expires=1735693200;nonce="gubxywVx7hzbYKatLgzuKDllDAIXAkz41PydU7aOY7vT+Mb3GJNxW0qD4zJ+IOQ1NVtg+BNbTCRUMt1Ojr5BgA==";tag="web-bot-auth"`
		agentValue := agent
		if strings.Contains(component, "key=") {
			_, agentValue, _ = strings.Cut(agent, "=")
		}
		base := `"@authority": example.com` + "\n" + component + ": " + agentValue + "\n" + `"@signature-params": ` + input
		m.Header.Set("Signature-Input", "sig2="+input)
		m.Header.Set("Signature", fmt.Sprintf("sig2=:%s:", base64Of(ed25519.Sign(key, []byte(base)))))
		return m
	}
	for _, test := range [][2]string{
		{`"https://signature-agent.test"`, `"signature-agent"`},
		{`agent2="https://signature-agent.test"`, `"signature-agent";key="agent2"`},
	} {
		m := request(test[0], test[1])
		s := one(t, m)
		if err := s.Verify(m, key.Public()); err != nil {
			t.Error(err)
		}
		got := fmt.Sprint(s.Tag, s.Alg, *s.Created, *s.Expires, len(s.Nonce), s.Label)
		if want := fmt.Sprint("web-bot-auth", "ed25519", 1735689600, 1735693200, 88, "sig2"); got != want {
			t.Errorf("parameters: %s, want %s", got, want)
		}
		m.Header.Set("Signature-Agent", strings.Replace(test[0], "signature-agent.test", "other.test", 1))
		if err := s.Verify(m, key.Public()); err == nil {
			t.Errorf("%s: it verifies with another agent", test[1])
		}
	}
}

// A message can have several signatures, and errors are those of single ones.
func TestParse(t *testing.T) {
	const value = ":AAAA:"
	for about, test := range map[string]struct {
		input, signature []string
		want             string // labels, with ! for those in error; or "error"
	}{
		"none":                       {nil, nil, ""},
		"empty":                      {[]string{""}, []string{""}, ""},
		"two, in the order of input": {[]string{`b=("date"), a=()`}, []string{"a=:AAAA:, b=:AAAA:"}, "b a"},
		"two lines":                  {[]string{`b=("date")`, "a=()"}, []string{"a=:AAAA:", "b=:AAAA:"}, "b a"},
		"white space":                {[]string{"  a=(  \"date\"   \"etag\" ); created=1 ,\tb=()"}, []string{"a=:AAAA:,b=:AAAA:"}, "a b"},
		"only the input":             {[]string{"a=()"}, nil, "!a"},
		"only the value":             {nil, []string{"a=:AAAA:"}, "!a"},
		"another label":              {[]string{"a=()"}, []string{"b=:AAAA:"}, "!a !b"},
		"no list":                    {[]string{`a="date", b=()`}, []string{"a=:AAAA:, b=:AAAA:"}, "!a b"},
		"no octets":                  {[]string{"a=(), b=()"}, []string{`a="AAAA", b=:AAAA:`}, "!a b"},
		"a list of octets":           {[]string{"a=()"}, []string{"a=(:AAAA:)"}, "!a"},
		"octets with a parameter":    {[]string{"a=()"}, []string{"a=:AAAA:;x"}, "!a"},
		"unknown component":          {[]string{`a=("@heron"), b=()`}, []string{"a=:AAAA:, b=:AAAA:"}, "!a b"},
		"token for a component":      {[]string{"a=(date)"}, []string{"a=:AAAA:"}, "!a"},
		"unknown component param":    {[]string{`a=("date";x)`}, []string{"a=:AAAA:"}, "!a"},
		"false flag":                 {[]string{`a=("date";req=?0)`}, []string{"a=:AAAA:"}, "!a"},
		"flag with a value":          {[]string{`a=("date";req=1)`}, []string{"a=:AAAA:"}, "!a"},
		"empty key":                  {[]string{`a=("date";key="")`}, []string{"a=:AAAA:"}, "!a"},
		"key that is a token":        {[]string{`a=("date";key=b)`}, []string{"a=:AAAA:"}, "!a"},
		"empty name":                 {[]string{`a=("@query-param";name="")`}, []string{"a=:AAAA:"}, "!a"},
		"component twice":            {[]string{`a=("date" "etag" "date")`}, []string{"a=:AAAA:"}, "!a"},
		"twice in another order":     {[]string{`a=("date";sf;req "date";req;sf)`}, []string{"a=:AAAA:"}, "!a"},
		"not twice":                  {[]string{`a=("date" "date";tr "date";req "date";bs)`}, []string{"a=:AAAA:"}, "a"},
		"unknown parameter":          {[]string{`a=();heron=("x")`}, []string{"a=:AAAA:"}, "error"},
		"unknown parameter, allowed": {[]string{`a=();heron="x"`}, []string{"a=:AAAA:"}, "a"},
		"created that is no integer": {[]string{`a=();created="1", b=();created=1.5, c=();created, d=();created=@1`}, []string{"a=:AAAA:, b=:AAAA:, c=:AAAA:, d=:AAAA:"}, "!a !b !c !d"},
		"expires that is no integer": {[]string{"a=();expires=soon"}, []string{"a=:AAAA:"}, "!a"},
		"texts that are tokens":      {[]string{"a=();keyid=k, b=();alg=ed25519, c=();nonce=n, d=();tag=t"}, []string{"a=:AAAA:, b=:AAAA:, c=:AAAA:, d=:AAAA:"}, "!a !b !c !d"},
		"empty algorithm":            {[]string{`a=();alg=""`}, []string{"a=:AAAA:"}, "!a"},
		"label twice":                {[]string{"a=(), a=()"}, []string{"a=:AAAA:"}, "error"},
		"label twice in the value":   {[]string{"a=()"}, []string{"a=:AAAA:, a=:BBBB:"}, "error"},
		"parameter twice":            {[]string{"a=();created=1;created=2"}, []string{"a=:AAAA:"}, "error"},
		"component param twice":      {[]string{`a=("date";req;req)`}, []string{"a=:AAAA:"}, "error"},
		"other spelling":             {[]string{"a=();created=01"}, []string{"a=:AAAA:"}, "error"},
		"bits after the end":         {[]string{"a=()"}, []string{"a=:AB==:"}, "error"},
		"no dictionary":              {[]string{`"a"`}, []string{"a=:AAAA:"}, "error"},
		"value is no dictionary":     {[]string{"a=()"}, []string{"AAAA="}, "error"},
		"comma at the end":           {[]string{"a=(),"}, []string{"a=:AAAA:"}, "error"},
		"line break":                 {[]string{"a=()\nb=()"}, []string{"a=:AAAA:"}, "error"},
		"as long as may be":          {[]string{`a=();x="` + strings.Repeat("x", httpsig.MaxField-9) + `"`}, []string{"a=:AAAA:"}, "a"},
		"longer":                     {[]string{`a=();x="` + strings.Repeat("x", httpsig.MaxField-8) + `"`}, []string{"a=:AAAA:"}, "error"},
		"value longer":               {[]string{"a=()"}, []string{"a=:" + strings.Repeat("AAAA", httpsig.MaxField/4) + ":"}, "error"},
		"as many as may be":          {[]string{"a=(" + manyComponents(httpsig.MaxComponents) + ")"}, []string{"a=" + value}, "a"},
		"more":                       {[]string{"a=(" + manyComponents(httpsig.MaxComponents+1) + ")"}, []string{"a=" + value}, "!a"},
	} {
		list, err := httpsig.Parse(&httpsig.Message{Status: 200, Header: http.Header{"Signature-Input": test.input, "Signature": test.signature}})
		var got []string
		for _, s := range list {
			if s.Err != nil {
				s.Label = "!" + s.Label
				if err := s.Verify(&httpsig.Message{}, newKey(1).Public()); !errors.Is(err, s.Err) {
					t.Errorf("%s: Verify = %v, want %v", about, err, s.Err)
				}
			}
			got = append(got, s.Label)
		}
		if err != nil {
			got = []string{"error"}
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: %q, %v; want %q", about, got, err, test.want)
		}
	}
	if err := new(httpsig.Signature).Verify(&httpsig.Message{}, newKey(1).Public()); err == nil {
		t.Error("the zero Signature verifies")
	}
}

func manyComponents(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ` "x-%d"`, i)
	}
	return b.String()
}

// Parameters keep their order, known or not, with those of components.
func TestOrderIsKept(t *testing.T) {
	const input = `("x-a";key="k";req "@query-param";req;name="q");tag="t";heron=:aGVyb24=:;expires=2;stork;created=1;keyid="\"k\\"`
	m := &httpsig.Message{
		Status: 200,
		Header: http.Header{"Signature-Input": {" a=" + strings.ReplaceAll(input, ` "`, `   "`)}, "Signature": {"a=:AAAA:"}},
		Request: &httpsig.Message{
			Method: "GET", TargetURI: "https://a.example/?q=1",
			Header: http.Header{"X-A": {"k=1"}},
		},
	}
	s := one(t, m)
	want := "\"x-a\";key=\"k\";req: 1\n\"@query-param\";req;name=\"q\": 1\n\"@signature-params\": " + input
	got, err := s.Base(m)
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	wantParams := httpsig.Params{
		Components: []httpsig.Component{{Name: "x-a", Key: "k", Request: true}, {Name: "@query-param", QueryName: "q", Request: true}},
		Created:    new(int64(1)), Expires: new(int64(2)), KeyID: `"k\`, Tag: "t",
	}
	testenv.Equal(t, "parameters", wantParams, s.Params)
}

// brokenSigner is a key whose output is not a signature.
type brokenSigner struct {
	crypto.Signer
	value []byte
	err   error
}

func (b brokenSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return b.value, b.err
}

func TestSignRefused(t *testing.T) {
	m := &httpsig.Message{Status: 200}
	gone := errors.New("the key is gone")
	for about, test := range map[string]struct {
		label string
		p     *httpsig.Params
		key   crypto.Signer
	}{
		"label":               {"Sig", &httpsig.Params{}, newKey(1)},
		"no label":            {"", &httpsig.Params{}, newKey(1)},
		"another algorithm":   {"sig", &httpsig.Params{Alg: httpsig.ECDSAP256}, newKey(1)},
		"the RFC's others":    {"sig", &httpsig.Params{Alg: "hmac-sha256"}, newKey(1)},
		"a letter":            {"sig", &httpsig.Params{KeyID: "ä"}, newKey(1)},
		"too long a time":     {"sig", &httpsig.Params{Created: new(int64(1e15))}, newKey(1)},
		"too long an end":     {"sig", &httpsig.Params{Expires: new(int64(1e15))}, newKey(1)},
		"twice":               {"sig", &httpsig.Params{Components: components("@status", "@status")}, newKey(1)},
		"absent":              {"sig", &httpsig.Params{Components: components("date")}, newKey(1)},
		"broken key":          {"sig", &httpsig.Params{}, brokenSigner{newKey(1), nil, gone}},
		"broken P-256":        {"sig", &httpsig.Params{}, brokenSigner{newP256(t), nil, gone}},
		"P-256 without DER":   {"sig", &httpsig.Params{}, brokenSigner{newP256(t), []byte("heron"), nil}},
		"P-256 with too much": {"sig", &httpsig.Params{}, brokenSigner{newP256(t), append([]byte{0x30, 38, 2, 33, 1}, append(make([]byte, 32), 2, 1, 1)...), nil}},
	} {
		if input, signature, err := httpsig.Sign(m, test.label, test.p, test.key); err == nil || input != "" || signature != "" {
			t.Errorf("%s: %s, %s, %v", about, input, signature, err)
		}
	}
}
