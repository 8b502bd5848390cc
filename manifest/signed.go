package manifest

import (
	"crypto"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/internal/wire"
	"github.com/ibidhq/ibid/keyring"
)

// Signed is a manifest as it is served, with all that a later verification needs: the stored bundle.
//
// Its JSON has the members target_uri, status, content_type, content_digest, signature_input, signature, body,
// jwks_seen, tlog_proof and sources; absent ones are left out. body is a string; a body that is not UTF-8 is in
// body_base64 instead, in base64. jwks_seen is the directory itself, or a string if it is not JSON.
type Signed struct {
	TargetURI      string
	Status         int
	ContentType    string
	ContentDigest  string
	SignatureInput string // empty if unsigned
	Signature      string
	Body           []byte
	JWKS           []byte // the key directory as a verifier saw it; nil if it did not
	Proof          []byte // of inclusion in the log (C2SP tlog-proof); nil if none
	Sources        []SignedSource
}

// SignedSource is the content of a source, for verification without a network.
type SignedSource struct {
	URL       string `json:"url"`
	MediaType string `json:"media_type"`
	Hash      string `json:"hash"`
	Octets    []byte `json:"octets"` // base64
}

// bundle is the JSON form of Signed.
type bundle struct {
	TargetURI      string          `json:"target_uri"`
	Status         int             `json:"status"`
	ContentType    string          `json:"content_type"`
	ContentDigest  string          `json:"content_digest"`
	SignatureInput string          `json:"signature_input,omitempty"`
	Signature      string          `json:"signature,omitempty"`
	Body           *string         `json:"body,omitempty"`
	BodyBase64     []byte          `json:"body_base64,omitempty"`
	JWKS           json.RawMessage `json:"jwks_seen,omitempty"`
	Proof          string          `json:"tlog_proof,omitempty"`
	Sources        []SignedSource  `json:"sources,omitempty"`
}

// Digest returns the SHA-256 of the body, which is the leaf in the log.
func (s *Signed) Digest() [32]byte { return sha256.Sum256(s.Body) }

// MarshalJSON returns the stored bundle.
func (s *Signed) MarshalJSON() ([]byte, error) {
	b := bundle{
		TargetURI:      s.TargetURI,
		Status:         s.Status,
		ContentType:    s.ContentType,
		ContentDigest:  s.ContentDigest,
		SignatureInput: s.SignatureInput,
		Signature:      s.Signature,
		JWKS:           s.JWKS,
		Proof:          string(s.Proof),
		Sources:        s.Sources,
	}
	if utf8.Valid(s.Body) {
		body := string(s.Body)
		b.Body = &body
	} else {
		b.BodyBase64 = s.Body
	}
	if len(s.JWKS) > 0 && (s.JWKS[0] == '"' || !json.Valid(s.JWKS)) {
		text, err := json.Marshal(string(s.JWKS))
		if err != nil {
			return nil, err
		}
		b.JWKS = text
	}
	out, err := wire.Encode(&b)
	if err != nil {
		return nil, fmt.Errorf("writing a bundle: %w", err)
	}
	return out, nil
}

// UnmarshalJSON reads a stored bundle. It checks neither its content nor whether the body is a manifest.
func (s *Signed) UnmarshalJSON(raw []byte) error {
	var b bundle
	if err := json.Unmarshal(raw, &b); err != nil {
		return fmt.Errorf("reading a bundle: %w", err)
	}
	*s = Signed{
		TargetURI: b.TargetURI, Status: b.Status, ContentType: b.ContentType, ContentDigest: b.ContentDigest,
		SignatureInput: b.SignatureInput, Signature: b.Signature, Body: b.BodyBase64, Sources: b.Sources,
	}
	switch {
	case b.Body != nil && b.BodyBase64 != nil:
		return errors.New("reading a bundle: it has two bodies")
	case b.Body != nil:
		s.Body = []byte(*b.Body)
	case b.BodyBase64 == nil:
		return errors.New("reading a bundle: it has no body")
	}
	if b.Proof != "" {
		s.Proof = []byte(b.Proof)
	}
	s.JWKS = b.JWKS
	if len(b.JWKS) > 0 && b.JWKS[0] == '"' {
		var text string
		if err := json.Unmarshal(b.JWKS, &text); err != nil {
			return fmt.Errorf("reading a bundle: %w", err)
		}
		s.JWKS = []byte(text)
	}
	return nil
}

// SignatureTag is the tag of a manifest's signature, which distinguishes it from other signatures of the same response.
const SignatureTag = "agent-citation-manifest"

// signatureLabel is the label of manifests' signatures. Readers use the tag instead.
const signatureLabel = "manifest"

// ContentType is the media type of served manifests.
const ContentType = "application/json"

// Sign returns m as it is served, signed with the key at the given time. The signature covers the status, the content
// type, the digest of the body and m.Self, its URL. Sign does not check m for contradictions; Problems does.
func Sign(m *Manifest, key *keyring.Key, signer crypto.Signer, at time.Time) (*Signed, error) {
	s, err := Unsigned(m)
	if err != nil {
		return nil, err
	}
	if err := s.sign(key, signer, at); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Signed) sign(key *keyring.Key, signer crypto.Signer, at time.Time) error {
	if s.TargetURI == "" {
		return errors.New("signing a manifest: it has no URL")
	}
	created := at.Unix()
	message := &httpsig.Message{
		Status: s.Status, Header: http.Header{"Content-Type": {s.ContentType}, "Content-Digest": {s.ContentDigest}},
		Request: &httpsig.Message{Method: http.MethodGet, TargetURI: s.TargetURI},
	}
	input, signature, err := httpsig.Sign(message, signatureLabel, &httpsig.Params{
		Components: []httpsig.Component{
			{Name: "@status"}, {Name: "content-type"}, {Name: "content-digest"}, {Name: "@target-uri", Request: true},
		},
		Created: &created, KeyID: key.ID, Tag: SignatureTag,
	}, signer)
	if err != nil {
		return fmt.Errorf("signing a manifest: %w", err)
	}
	s.SignatureInput, s.Signature = input, signature
	return nil
}

// Unsigned returns m as it is served without a signature, at Level 2.
func Unsigned(m *Manifest) (*Signed, error) {
	body, err := m.Canonical()
	if err != nil {
		return nil, fmt.Errorf("writing a manifest: %w", err)
	}
	return &Signed{
		TargetURI:     m.Self,
		Status:        http.StatusOK,
		ContentType:   ContentType,
		ContentDigest: httpsig.ContentDigest(body),
		Body:          body,
	}, nil
}
