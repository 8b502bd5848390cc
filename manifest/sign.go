package manifest

import (
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
)

// SignatureTag is the tag of a manifest's signature, which tells it from all other signatures of the same response.
const SignatureTag = "agent-citation-manifest"

// signatureLabel is the label that manifests are signed under. Readers go by the tag.
const signatureLabel = "manifest"

// ContentType is what manifests are served as.
const ContentType = "application/json"

// Sign returns m as it is served, signed with the key at the given time. The signature covers the status, the content
// type, the digest of the body and m.Self, the URL that it is served at. Whether m contradicts itself, Problems says.
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
		return errors.New("signing a manifest: it does not say its URL")
	}
	created := at.Unix()
	input, signature, err := httpsig.Sign(s.message(), signatureLabel, &httpsig.Params{
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

// message returns the response that is signed, with the request it answers.
func (s *Signed) message() *httpsig.Message {
	h := http.Header{}
	h.Set("Content-Type", s.ContentType)
	h.Set("Content-Digest", s.ContentDigest)
	return &httpsig.Message{
		Status: s.Status, Header: h,
		Request: &httpsig.Message{Method: http.MethodGet, TargetURI: s.TargetURI},
	}
}
