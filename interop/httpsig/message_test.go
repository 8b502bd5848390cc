package httpsig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dunglas/httpsfv"
	"github.com/yaronf/httpsign"

	"github.com/ibidhq/ibid/internal/httpsig"
)

// message is a signed message in pieces that can be mutated. A response includes the request that it answers.
type message struct {
	status      int
	method, uri string
	header      http.Header
	trailer     http.Header
	request     http.Header // header of the request that a response answers
	noRequest   bool        // on a response: its request is not known
	body        []byte

	label      string
	components []string // as written
	params     []string
	signature  string // the member's value
	extra      string // appended to Signature-Input
	key        crypto.Signer
}

func (m *message) clone() *message {
	c := *m
	c.header, c.trailer, c.request = m.header.Clone(), m.trailer.Clone(), m.request.Clone()
	c.components, c.params, c.body = slices.Clone(m.components), slices.Clone(m.params), bytes.Clone(m.body)
	return &c
}

func (m *message) input() string {
	return m.label + "=(" + strings.Join(m.components, " ") + ")" + strings.Join(m.params, "") + m.extra
}

func (m *message) fields() http.Header {
	h := m.header.Clone()
	h["Signature-Input"] = []string{m.input()}
	h["Signature"] = []string{m.label + "=" + m.signature}
	return h
}

// ours converts the message for our package.
func (m *message) ours() *httpsig.Message {
	if m.status == 0 {
		return &httpsig.Message{Method: m.method, TargetURI: m.uri, Header: m.fields(), Trailer: m.trailer}
	}
	r := &httpsig.Message{Status: m.status, Header: m.fields(), Trailer: m.trailer}
	if !m.noRequest {
		r.Request = &httpsig.Message{Method: m.method, TargetURI: m.uri, Header: m.request}
	}
	return r
}

// verifyOurs verifies the message with our package.
func (m *message) verifyOurs() error {
	list, err := httpsig.Parse(m.ours())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(s *httpsig.Signature) bool { return s.Label == "sig" })
	if i < 0 {
		return errors.New("there is no signature sig")
	}
	return list[i].Verify(m.ours(), m.key.Public())
}

// verifyTheirs verifies the message with the other implementation.
func (m *message) verifyTheirs() error {
	u, err := url.Parse(m.uri)
	if err != nil {
		return fmt.Errorf("net/http has no such URL: %w", err)
	}
	config := httpsign.NewVerifyConfig().SetVerifyCreated(false).SetRejectExpired(false)
	var v *httpsign.Verifier
	switch k := m.key.Public().(type) {
	case ed25519.PublicKey:
		v, err = httpsign.NewEd25519Verifier(k, config, *httpsign.NewFields())
	case *ecdsa.PublicKey:
		v, err = httpsign.NewP256Verifier(*k, config, *httpsign.NewFields())
	}
	if err != nil {
		return err
	}
	body := io.NopCloser(bytes.NewReader(m.body))
	if m.status == 0 {
		r := &http.Request{Method: m.method, URL: u, Host: u.Host, Header: m.fields(), Trailer: m.trailer, Body: body}
		return httpsign.VerifyRequest("sig", *v, r)
	}
	r := &http.Response{StatusCode: m.status, Header: m.fields(), Trailer: m.trailer, Body: body}
	if m.noRequest {
		return httpsign.VerifyResponse("sig", *v, r, nil)
	}
	return httpsign.VerifyResponse("sig", *v, r, &http.Request{Method: m.method, URL: u, Host: u.Host, Header: m.request})
}

// digestOurs and digestTheirs check that Content-Digest matches the body.
func (m *message) digestOurs() error {
	return httpsig.CheckDigest(m.header["Content-Digest"], m.body)
}

func (m *message) digestTheirs() error {
	body := io.NopCloser(bytes.NewReader(m.body))
	return httpsign.ValidateContentDigestHeader(m.header["Content-Digest"], &body, []string{httpsign.DigestSha256, httpsign.DigestSha512})
}

// sign signs the message in its present state: over our signature base or, if we refuse to create one, over the base
// that a lenient reader would create.
func (m *message) sign() {
	kept := m.signature
	m.signature = ":AAAA:"
	text := m.lenientBase()
	if list, err := httpsig.Parse(m.ours()); err == nil {
		if i := slices.IndexFunc(list, func(s *httpsig.Signature) bool { return s.Label == "sig" }); i >= 0 {
			if base, err := list[i].Base(m.ours()); err == nil {
				text = string(base)
			}
		}
	}
	m.signature = kept
	if text != "" {
		m.signature = ":" + base64.StdEncoding.EncodeToString(signText(m.key, []byte(text))) + ":"
	}
}

func signText(key crypto.Signer, text []byte) []byte {
	if k, ok := key.(ed25519.PrivateKey); ok {
		return ed25519.Sign(k, text)
	}
	sum := sha256.Sum256(text)
	der, err := key.Sign(nil, sum[:], crypto.SHA256) // nil makes the signature deterministic
	if err != nil {
		panic(err)
	}
	var n struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &n); err != nil {
		panic(err)
	}
	return append(n.R.FillBytes(make([]byte, 32)), n.S.FillBytes(make([]byte, 32))...)
}

// lenientBase creates a signature base if that is possible at all, and otherwise returns "".
func (m *message) lenientBase() string {
	d, err := httpsfv.UnmarshalDictionary([]string{m.input()})
	if err != nil {
		return ""
	}
	v, _ := d.Get("sig")
	list, ok := v.(httpsfv.InnerList)
	if !ok {
		return ""
	}
	var b strings.Builder
	for _, item := range list.Items {
		id, _ := httpsfv.Marshal(item)
		b.WriteString(id + ": " + m.lenientValue(item) + "\n")
	}
	params, _ := httpsfv.Marshal(list)
	return b.String() + `"@signature-params": ` + params
}

func (m *message) lenientValue(item httpsfv.Item) string {
	name, _ := item.Value.(string)
	has := func(param string) bool { v, ok := item.Params.Get(param); return ok && v != false }
	if strings.HasPrefix(name, "@") {
		u, err := url.Parse(m.uri)
		if err != nil {
			return ""
		}
		query, _ := item.Params.Get("name")
		text, _ := query.(string)
		return map[string]string{
			"@status": strconv.Itoa(m.status), "@method": m.method, "@target-uri": u.String(), "@authority": u.Host, "@scheme": u.Scheme,
			"@path": u.EscapedPath(), "@query": "?" + u.RawQuery, "@request-target": u.RequestURI(),
			"@query-param": httpsign.QueryEscapeForSignature(u.Query().Get(text)),
		}[name]
	}
	fields := m.fields()
	if has("req") {
		fields = m.request
	}
	if has("tr") {
		fields = m.trailer
	}
	lines := slices.Clone(fields.Values(name))
	key, _ := item.Params.Get("key")
	if key, ok := key.(string); ok || has("sf") {
		d, err := httpsfv.UnmarshalDictionary(lines)
		if err != nil {
			return ""
		}
		v, _ := d.Get(key)
		switch v := v.(type) {
		case httpsfv.Item:
			text, _ := httpsfv.Marshal(v)
			return text
		case httpsfv.InnerList:
			text, _ := httpsfv.Marshal(v)
			return text
		}
		text, _ := httpsfv.Marshal(d)
		return text
	}
	for i := range lines {
		if has("bs") {
			lines[i] = ":" + base64.StdEncoding.EncodeToString([]byte(lines[i])) + ":"
		} else {
			lines[i] = strings.TrimSpace(lines[i])
		}
	}
	return strings.Join(lines, ", ")
}
