package httpsig

import (
	"crypto"
	"errors"
	"fmt"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Limits of what is read.
const (
	// MaxField is how many bytes the lines of a field may have that is covered, Signature-Input, Signature or
	// Content-Digest.
	MaxField      = 16 << 10
	MaxComponents = 64 // components of a signature
)

// Params says what a signature covers and what is said about it.
type Params struct {
	Components       []Component
	Created, Expires *int64 // seconds since 1970; nil: not said
	KeyID            string // empty: not said, as with those that follow
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

func integer(v any) (*int64, bool) {
	n, ok := v.(int64)
	return &n, ok
}

// Signature is one signature of a message, as [Parse] found it.
type Signature struct {
	Label string
	Params
	Value []byte // 64 octets with both algorithms

	Readable bool  // its Params could be read: a Tag that is empty is none
	Err      error // why it cannot be verified; nil: it can be tried. Base and Verify return it

	covered []covered
	params  string
}

// Parse finds the signatures of a message in the fields Signature-Input and Signature, in their order; there are none
// where the fields are absent. An error says that a field as a whole cannot be read. What is wrong about one signature,
// as a component that is unknown, is the Err of that signature.
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
		switch name { // those that are unknown say nothing, and are signed
		case "created":
			s.Created, ok = integer(v)
		case "expires":
			s.Expires, ok = integer(v)
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
			return fmt.Errorf("parameter %s is not of its type", name)
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

// Base returns the text that was signed, if the signature is one of this message.
func (s *Signature) Base(m *Message) ([]byte, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	if s.params == "" {
		return nil, errors.New("making the base of a signature: it does not come from Parse")
	}
	return base(m, s.covered, s.params)
}

// Verify returns an error unless this is a signature of the message by the owner of pub, an [ed25519.PublicKey] or a
// P-256 *[ecdsa.PublicKey]. Alg, if it is said, must be that of the key. Nothing else is looked at: neither the times,
// nor whether the components are enough, nor whether Content-Digest is that of the body.
func (s *Signature) Verify(m *Message, pub crypto.PublicKey) error {
	text, err := s.Base(m)
	if err != nil {
		return err
	}
	if err := verify(pub, s.Alg, text, s.Value); err != nil {
		return fmt.Errorf("verifying the signature %s: %w", s.Label, err)
	}
	return nil
}

// Sign signs a message. It returns the values of Signature-Input and Signature, each a dictionary with the one member
// label. The key is Ed25519 or P-256; Alg, if it is said, must be that of the key.
func Sign(m *Message, label string, p *Params, key crypto.Signer) (input, signature string, err error) {
	text, err := textFor(m, p)
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

// textFor returns the text that [Sign] signs.
func textFor(m *Message, p *Params) ([]byte, error) {
	list := p.inner()
	components, err := readItems(list.Items)
	if err != nil {
		return nil, fmt.Errorf("making the base of a signature: %w", err)
	}
	params, err := httpsfv.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("making the base of a signature: %w", err)
	}
	return base(m, components, params)
}

// base makes the text that is signed: RFC 9421 §2.5.
func base(m *Message, components []covered, params string) ([]byte, error) {
	if m.Status != 0 && (m.Method != "" || m.TargetURI != "") {
		return nil, errors.New("making the base of a signature: the message is a response and a request")
	}
	var b strings.Builder
	for _, c := range components {
		value, err := m.value(c.Component)
		if err != nil {
			return nil, fmt.Errorf("making the base of a signature: component %s: %w", c.id, err)
		}
		b.WriteString(c.id + ": " + value + "\n")
	}
	b.WriteString(`"@signature-params": ` + params)
	return []byte(b.String()), nil
}
