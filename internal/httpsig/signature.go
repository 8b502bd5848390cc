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
	"strings"

	"github.com/dunglas/httpsfv"
)

// Limits for reading.
const (
	// maxField bounds the lines of a covered field, Signature-Input, Signature or Content-Digest, in bytes.
	maxField      = 16 << 10
	maxComponents = 64 // components of a signature
)

// Params are the components that a signature covers, and its parameters.
type Params struct {
	Components       []Component
	Created, Expires *int64 // seconds since 1970; nil if absent
	KeyID            string // empty if absent, like the following ones
	Alg              string
	Nonce            string
	Tag              string
}

// inner returns the parameters as they are written.
func (p *Params) inner() httpsfv.InnerList {
	list := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, c := range p.Components {
		list.Items = append(list.Items, c.item())
	}
	if p.Created != nil {
		list.Params.Add("created", *p.Created)
	}
	if p.Expires != nil {
		list.Params.Add("expires", *p.Expires)
	}
	for _, text := range [][2]string{{"keyid", p.KeyID}, {"alg", p.Alg}, {"nonce", p.Nonce}, {"tag", p.Tag}} {
		if text[1] != "" {
			list.Params.Add(text[0], text[1])
		}
	}
	return list
}

// Signature is one signature of a message, as returned by [Parse].
type Signature struct {
	Label string
	Params
	Value []byte // 64 octets with both algorithms

	Readable bool  // its Params could be read, so that an empty Tag is absent
	Err      error // why it cannot be verified, returned by Base and Verify; nil if Verify can be tried

	covered []covered
	params  string
}

// Parse returns the signatures of a message in the fields Signature-Input and Signature, in their order; there are none
// if the fields are absent. An error means that a whole field cannot be read. A problem with one signature, such as an
// unknown component, is the Err of that signature.
func Parse(m *Message) ([]*Signature, error) {
	inputs, err := readDictionary(m.Header, "Signature-Input")
	if err != nil {
		return nil, err
	}
	values, err := readDictionary(m.Header, "Signature")
	if err != nil {
		return nil, err
	}
	var list []*Signature
	for _, label := range inputs.Names() {
		s := &Signature{Label: label}
		input, _ := inputs.Get(label)
		value, _ := values.Get(label)
		if err := s.read(input, value); err != nil {
			s.Err = fmt.Errorf("reading the signature %s: %w", label, err)
		}
		list = append(list, s)
	}
	for _, label := range values.Names() {
		if _, ok := inputs.Get(label); !ok {
			list = append(list, &Signature{
				Label: label,
				Err:   fmt.Errorf("reading the signature %s: Signature-Input does not have it", label),
			})
		}
	}
	return list, nil
}

func (s *Signature) read(input, value httpsfv.Member) error {
	list, ok := input.(httpsfv.InnerList)
	if !ok {
		return errors.New("its input is not an inner list")
	}
	for _, name := range list.Params.Names() {
		v, _ := list.Params.Get(name)
		ok := true
		switch name { // unknown ones are ignored, but signed
		case "created", "expires":
			var seconds int64
			if seconds, ok = v.(int64); name == "created" {
				s.Created = &seconds
			} else {
				s.Expires = &seconds
			}
		case "keyid":
			s.KeyID, ok = v.(string)
		case "alg":
			s.Alg, ok = v.(string)
			ok = ok && s.Alg != ""
		case "nonce":
			s.Nonce, ok = v.(string)
		case "tag":
			s.Tag, ok = v.(string)
		}
		if !ok {
			return fmt.Errorf("parameter %s has the wrong type", name)
		}
	}
	s.Readable = true
	item, ok := value.(httpsfv.Item)
	if !ok {
		return errors.New("Signature does not have it as an item")
	}
	if s.Value, ok = item.Value.([]byte); !ok || len(item.Params.Names()) > 0 {
		return errors.New("its value is not a byte sequence without parameters")
	}
	var err error
	if s.covered, err = readItems(list.Items); err != nil {
		return err
	}
	for _, c := range s.covered {
		s.Components = append(s.Components, c.Component)
	}
	s.params, err = httpsfv.Marshal(list)
	return err
}

// Base returns the text that was signed, if the signature is one of this message: RFC 9421 §2.5.
func (s *Signature) Base(m *Message) ([]byte, error) {
	switch {
	case s.Err != nil:
		return nil, s.Err
	case s.params == "":
		return nil, errors.New("making the base of a signature: it does not come from Parse")
	case m.Status != 0 && (m.Method != "" || m.TargetURI != ""):
		return nil, errors.New("making the base of a signature: the message is a response and a request")
	}
	var b strings.Builder
	for _, c := range s.covered {
		value, err := m.value(c.Component)
		if err != nil {
			return nil, fmt.Errorf("making the base of a signature: component %s: %w", c.id, err)
		}
		b.WriteString(c.id + ": " + value + "\n")
	}
	b.WriteString(`"@signature-params": ` + s.params)
	return []byte(b.String()), nil
}

// Verify returns an error unless this is a signature of the message by the owner of pub, an [ed25519.PublicKey] or a
// P-256 *[ecdsa.PublicKey]. Alg, if set, must be the key's algorithm. Verify checks nothing else: neither the times,
// nor whether the components are enough, nor whether Content-Digest is that of the body.
func (s *Signature) Verify(m *Message, pub crypto.PublicKey) error {
	text, err := s.Base(m)
	if err != nil {
		return err
	}
	alg, err := algorithmFor(pub, s.Alg)
	if err != nil {
		return fmt.Errorf("verifying the signature %s: %w", s.Label, err)
	}
	valid := false
	switch k := pub.(type) {
	case ed25519.PublicKey:
		valid = ed25519.Verify(k, text, s.Value)
	case *ecdsa.PublicKey:
		digest := sha256.Sum256(text)
		valid = len(s.Value) == 2*scalarSize && ecdsa.Verify(k, digest[:],
			new(big.Int).SetBytes(s.Value[:scalarSize]), new(big.Int).SetBytes(s.Value[scalarSize:]))
	}
	if !valid {
		return fmt.Errorf(
			"verifying the signature %s: it is not an %s signature of this message by this key", s.Label, alg,
		)
	}
	return nil
}

// Sign signs a message. It returns the values of Signature-Input and Signature, each a dictionary with the single
// member label. The key is Ed25519 or P-256; Alg, if set, must be the key's algorithm.
func Sign(m *Message, label string, p *Params, key crypto.Signer) (input, signature string, err error) {
	text, err := baseFor(m, p)
	if err != nil {
		return "", "", err
	}
	value, err := sign(key, p.Alg, text)
	if err != nil {
		return "", "", fmt.Errorf("signing a message: %w", err)
	}
	if input, err = oneMember(label, p.inner()); err != nil {
		return "", "", fmt.Errorf("writing Signature-Input: %w", err)
	}
	if signature, err = oneMember(label, httpsfv.NewItem(value)); err != nil {
		return "", "", fmt.Errorf("writing Signature: %w", err)
	}
	return input, signature, nil
}

func oneMember(label string, v httpsfv.Member) (string, error) {
	d := httpsfv.NewDictionary()
	d.Add(label, v)
	return httpsfv.Marshal(d)
}

// baseFor returns the text that [Sign] signs.
func baseFor(m *Message, p *Params) ([]byte, error) {
	list := p.inner()
	var s Signature
	var err error
	if s.covered, err = readItems(list.Items); err == nil {
		s.params, err = httpsfv.Marshal(list)
	}
	if err != nil {
		return nil, fmt.Errorf("making the base of a signature: %w", err)
	}
	return s.Base(m)
}

// The algorithms, by their names in RFC 9421 §3.3.
const (
	Ed25519   = "ed25519"
	ECDSAP256 = "ecdsa-p256-sha256"
)

// scalarSize is the length of each of the two numbers of a P-256 ECDSA signature.
const scalarSize = 32

// Algorithm returns the algorithm of a public key. Each key has one, so that nobody can choose a weaker one for it.
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

// algorithmFor returns the algorithm of a key, which must be the one that the signature states, if any.
func algorithmFor(pub crypto.PublicKey, said string) (string, error) {
	alg, err := Algorithm(pub)
	if err == nil && said != "" && said != alg {
		err = fmt.Errorf("the signature's algorithm is %q and the key's is %s", said, alg)
	}
	return alg, err
}

func sign(key crypto.Signer, said string, text []byte) ([]byte, error) {
	alg, err := algorithmFor(key.Public(), said)
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
	if err != nil || len(rest) > 0 || n.R.BitLen() > 8*scalarSize || n.S.BitLen() > 8*scalarSize {
		return nil, errors.New("the key's output is not a P-256 signature")
	}
	value := make([]byte, 2*scalarSize)
	n.R.FillBytes(value[:scalarSize])
	n.S.FillBytes(value[scalarSize:])
	return value, nil
}

// ContentDigest returns the value of Content-Digest for the octets of a body as it is sent, by sha-256.
func ContentDigest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// CheckDigest returns an error unless the lines of a Content-Digest field match this body: RFC 9530. Each digest by
// sha-256 or sha-512 must be right, and there must be at least one, and one by each of the algorithms in must. Those by
// other algorithms are ignored.
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
