package httpsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/yaronf/httpsign"

	"github.com/ibidhq/ibid/internal/httpsig"
)

// mutants is the number of mutated messages that both implementations verify.
const mutants = 10_000

func keys(tb testing.TB) (ed25519.PrivateKey, *ecdsa.PrivateKey) {
	tb.Helper()
	seed := bytes.Repeat([]byte{7}, 32)
	ec, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed)
	if err != nil {
		tb.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed), ec
}

// originals returns the kinds of messages that are mutated: a manifest, a request that uses everything, a request of an
// agent in both forms of Web Bot Auth, and a response with a trailer.
func originals(tb testing.TB) []*message {
	tb.Helper()
	ed, ec := keys(tb)
	body := []byte(`{"version":"1.0"}`)
	common := func() http.Header {
		return http.Header{
			"Content-Type": {"application/json"}, "Content-Digest": {httpsig.ContentDigest(body)}, "Date": {"Tue, 28 Apr 2026 10:00:01 GMT"},
			"Priority": {"u=1, i"}, "X-List": {"a, b", "c"}, "X-Empty": {""}, "Cache-Status": {`"cdn";hit, origin`}, "Example-Dict": {"a=1, b=(1 2)"},
		}
	}
	const uri = "https://agent.example/runs/1/cite?q=1&twice=1&twice=2&sp%20ace=a+b&tilde=~&star=*&plus=%2B"
	manifest := &message{
		status: 200, method: "GET", uri: uri, header: common(), request: common(), body: body,
		components: []string{`"@status"`, `"content-type"`, `"content-digest"`, `"@target-uri";req`},
		params:     []string{";created=1777370401", `;keyid="k"`, `;tag="agent-citation-manifest"`}, key: ed,
	}
	request := &message{
		method: "POST", uri: uri, header: common(), body: body, trailer: http.Header{"Expires": {"Wed, 29 Apr 2026 10:00:00 GMT"}},
		components: []string{
			`"date"`, `"@method"`, `"@path"`, `"@query"`, `"@authority"`, `"@query-param";name="q"`, `"content-type"`, `"content-digest"`, `"x-list"`,
			`"x-empty"`, `"priority";key="u"`, `"x-list";bs`, `"priority";sf`, `"expires";tr`, `"@scheme"`, `"@request-target"`,
		},
		params: []string{";created=1777370401", ";expires=1777370402", `;keyid="k"`, `;nonce="n"`}, key: ec,
	}
	bot := func(agent, component string, key crypto.Signer) *message {
		h := common()
		h["Signature-Agent"] = []string{agent}
		return &message{
			method: "GET", uri: uri, header: h, body: body,
			components: []string{`"@authority"`, component},
			params:     []string{";created=1735689600", `;keyid="k"`, ";expires=1735693200", `;nonce="n"`, `;tag="web-bot-auth"`}, key: key,
		}
	}
	answer := &message{
		status: 503, method: "POST", uri: uri, header: common(), request: common(), body: body, trailer: http.Header{"Expires": {"never"}},
		components: []string{`"@status"`, `"content-digest"`, `"@authority";req`, `"@method";req`, `"@path";req`, `"content-digest";req`, `"priority";key="i";req`, `"expires";tr`},
		params:     []string{";created=1", `;keyid="k"`, `;heron="unknown"`}, key: ec,
	}
	list := []*message{
		manifest, request, bot(`"https://agent.example"`, `"signature-agent"`, ed),
		bot(`one="https://agent.example", two="https://b.example"`, `"signature-agent";key="one"`, ed), answer,
	}
	for _, m := range list {
		m.label = "sig"
		m.sign()
	}
	return list
}

// Both implementations verify the unchanged messages.
func TestOriginals(t *testing.T) {
	for i, m := range originals(t) {
		if ours, theirs := m.verifyOurs(), m.verifyTheirs(); ours != nil || theirs != nil {
			t.Errorf("message %d: ours %v, theirs %v\n%s", i, ours, theirs, m.describe())
		}
	}
}

// We verify what they sign.
func TestTheirSignatures(t *testing.T) {
	ed, ec := keys(t)
	fields := httpsign.Headers("@method", "@target-uri", "@authority", "@path", "@query", "content-type", "x-list")
	fields.AddQueryParam("sp ace").AddDictHeader("priority", "u").AddStructuredField("priority").AddHeaderExt("x-list", false, true, false, false)
	config := httpsign.NewSignConfig().SignAlg(true).SetKeyID("k").SetTag("agent-citation-manifest").SetNonce("n")
	edSigner, err := httpsign.NewEd25519Signer(ed, config, fields)
	if err != nil {
		t.Fatal(err)
	}
	ecSigner, err := httpsign.NewP256Signer(*ec, config, fields)
	if err != nil {
		t.Fatal(err)
	}
	for key, signer := range map[crypto.Signer]*httpsign.Signer{&ed: edSigner, ec: ecSigner} {
		m := originals(t)[1]
		u, err := url.Parse(m.uri)
		if err != nil {
			t.Fatal(err)
		}
		input, signature, err := httpsign.SignRequest("sig", *signer, &http.Request{
			Method: m.method, URL: u, Host: u.Host, Header: m.header, Body: io.NopCloser(bytes.NewReader(m.body)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ours := &httpsig.Message{Method: m.method, TargetURI: m.uri, Header: m.header.Clone()}
		ours.Header.Set("Signature-Input", input)
		ours.Header.Set("Signature", signature)
		list, err := httpsig.Parse(ours)
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
		if err := list[0].Verify(ours, key.Public()); err != nil {
			t.Errorf("%v\n%s", err, input)
		}
	}
}

// Both agree on mutated messages, half of them signed again after the mutation, except for the known disagreements.
func TestMutants(t *testing.T) {
	r := rand.New(rand.NewPCG(9421, 9530))
	list := originals(t)
	counts := map[string]int{}
	unexplained := 0
	for n := range mutants {
		m := pick(r, list).clone()
		var kinds []string
		for range 1 + r.IntN(2) {
			kinds = append(kinds, mutate(r, m))
		}
		if r.IntN(2) == 0 && !slices.Contains(kinds, "signature") {
			m.sign()
		}
		for _, pair := range []struct {
			about        string
			ours, theirs error
		}{{"signature", m.verifyOurs(), m.verifyTheirs()}, {"digest", m.digestOurs(), m.digestTheirs()}} {
			switch {
			case pair.ours == nil && pair.theirs == nil:
				counts[pair.about+": both verify"]++
			case pair.ours != nil && pair.theirs != nil:
				counts[pair.about+": both refuse"]++
			default:
				name := explain(m, pair.about, pair.ours, pair.theirs)
				counts[name]++
				if name == "" {
					if unexplained++; unexplained < 20 {
						t.Errorf("mutant %d, %v: %s: ours %v, theirs %v\n%s", n, kinds, pair.about, pair.ours, pair.theirs, m.describe())
					}
				}
			}
		}
	}
	for _, d := range disagreements() {
		if counts[d.name] == 0 {
			t.Errorf("no message is %s", d.name)
		}
	}
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Logf("%6d %s", counts[name], name)
	}
}

func explain(m *message, about string, ours, theirs error) string {
	refusal := fmt.Sprint(about, ": ", ours)
	if ours == nil {
		refusal = fmt.Sprint(about, ": ", theirs)
	}
	for _, d := range disagreements() {
		if d.weTake == (ours == nil) && strings.Contains(refusal, d.word) && (d.when == nil || d.when(m)) {
			return d.name
		}
	}
	return ""
}
