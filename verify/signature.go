package verify

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ibidhq/ibid/internal/httpsig"
	"github.com/ibidhq/ibid/keyring"
	"github.com/ibidhq/ibid/manifest"
)

// verdict is what came of one signature: its key, or why it is not good.
type verdict struct {
	code Status // empty: it is good
	why  string
	open bool // it may be good, if the log could be asked
	key  *keyring.Key
	sig  *httpsig.Signature
}

// late reports whether the signature holds, by a key that was revoked later than it says to be made: so does one that a
// thief made since.
func (v *verdict) late() bool { return v.code == "" && !v.key.RevokedAt.IsZero() }

// attested keeps a signature of a key that was revoked since only if the manifest is in the publisher's log, to which a
// thief of the key has no access.
func (m *checked) attested(ctx context.Context, v *verdict) error {
	if err := m.logged(ctx); err != nil || m.out.Logged {
		return err
	}
	v.code, v.open = KeyRevoked, m.unasked
	at := v.key.RevokedAt.Format(time.RFC3339)
	v.why = "The key was revoked at " + at + ", and no log proves that the manifest was made before: whoever stole the key can write any date."
	if v.open {
		v.why = "The key was revoked at " + at + ", and whether the manifest is in the publisher's log could not be looked up."
	}
	return nil
}

// signed verifies the signature.
func (m *checked) signed(ctx context.Context) error {
	message := m.message()
	all, err := ours(message)
	switch {
	case err != nil:
		m.signature = CountFailure
		m.fail(SignatureInvalid, "%s", sentence("The signature cannot be read", err))
		return nil
	case len(all) == 0:
		m.unsigned()
		return nil
	}
	first := m.verify(ctx, message, all[0])
	for _, s := range all[1:min(len(all), maxSignatures)] {
		if first.code == "" && !first.late() {
			break
		}
		if v := m.verify(ctx, message, s); v.code == "" && (first.code != "" || !v.late()) {
			first = v
		}
	}
	if first.late() {
		if err := m.attested(ctx, &first); err != nil {
			return err
		}
	}
	m.out.KeyID = first.sig.KeyID
	if first.sig.Created != nil {
		m.out.SignedAt = time.Unix(*first.sig.Created, 0).UTC().Format(time.RFC3339)
	}
	if first.code != "" {
		m.signature = CountFailure
		if first.code == KeyUnavailable || first.open {
			m.signature = CountUnverifiable
		}
		m.found(first.code, m.signature, first.why)
		return nil
	}
	m.out.Verified = true
	m.found(
		SignatureValid, CountPass,
		"The signature of key "+first.key.ID+" holds, and the key was good when it was made.",
	)
	if !m.seen {
		m.found(
			KeyFromBundle, CountInfo, "The key comes from the bundle; that it is the publisher's was not looked up.",
		)
	}
	if m.man.EmittedAt.Time().After(time.Unix(*first.sig.Created, 0).Add(skew)) {
		m.fail(
			ManifestInconsistent, "The manifest says that it was emitted at %s, after it was signed.", m.man.EmittedAt,
		)
	}
	return nil
}

// ours returns the signatures with our tag. One that cannot be read may be one of them, if there is no other.
func ours(message *httpsig.Message) ([]*httpsig.Signature, error) {
	all, err := httpsig.Parse(message)
	if err != nil {
		return nil, err
	}
	var list []*httpsig.Signature
	for _, s := range all {
		switch {
		case s.Tag == manifest.SignatureTag:
			list = append(list, s)
		case !s.Readable && s.Tag == "":
			err = s.Err
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	return nil, err
}

// maxSignatures is how many signatures of one manifest are tried: a publisher may sign with the old key and the new
// one.
const maxSignatures = 4

func (m *checked) unsigned() {
	switch {
	case m.RequireLevel >= 3:
		m.fail(Unsigned, "The manifest is not signed, and a signature is required.")
	case m.bare:
		m.found(Unsigned, CountInfo, "The file has no signature: that stands in the header of the manifest's URL.")
	default:
		m.found(Unsigned, CountInfo, "Nobody signed the manifest.")
	}
}

// message returns what a signature covers. Of a stored manifest only what is stored is known.
func (m *checked) message() *httpsig.Message {
	header := m.header
	if header == nil {
		header = http.Header{}
		for name, value := range map[string]string{
			"Content-Type": m.served.ContentType, "Content-Digest": m.served.ContentDigest,
			"Signature-Input": m.served.SignatureInput, "Signature": m.served.Signature,
		} {
			if value != "" {
				header.Set(name, value)
			}
		}
	}
	return &httpsig.Message{
		Status: m.served.Status, Header: header,
		Request: &httpsig.Message{Method: http.MethodGet, TargetURI: m.served.TargetURI},
	}
}

func (m *checked) verify(ctx context.Context, message *httpsig.Message, s *httpsig.Signature) verdict {
	v := verdict{sig: s}
	bad := func(code Status, why string) verdict {
		v.code, v.why = code, why
		return v
	}
	if s.Err != nil {
		return bad(SignatureInvalid, sentence("The signature cannot be read", s.Err))
	}
	if err := httpsig.CheckDigest(message.Header.Values("Content-Digest"), m.served.Body, "sha-256"); err != nil {
		return bad(SignatureInvalid, sentence("The body is not the one that was signed", err))
	}
	if s.Alg != "" && s.Alg != keyring.Ed25519 && s.Alg != keyring.ECDSAP256 {
		return bad(SignatureInvalid, "The algorithm of the signature, "+s.Alg+", is not allowed.")
	}
	if lacks := uncovered(s); lacks != "" {
		return bad(CoverageInsufficient, "The signature does not cover "+lacks+", which it must.")
	}
	key, code, why := m.key(ctx, s.KeyID)
	if key == nil {
		return bad(code, why)
	}
	v.key = key
	if err := s.Verify(message, key.Public); err != nil {
		return bad(SignatureInvalid, sentence("The signature does not hold", err))
	}
	return m.timely(v)
}

// timely says whether a signature that holds was made in time and by a good key.
func (m *checked) timely(v verdict) verdict {
	created := time.Unix(*v.sig.Created, 0).UTC()
	word, good := v.key.Good(created)
	switch {
	case !good && word == keyring.Revoked:
		v.code, v.why = KeyRevoked, "The key was revoked at "+v.key.RevokedAt.Format(
			time.RFC3339,
		)+", before the signature was made."
	case v.sig.Expires != nil && m.now.After(time.Unix(*v.sig.Expires, 0).Add(skew)):
		v.code, v.why = SignatureExpired, "The signature expired at "+time.Unix(*v.sig.Expires, 0).
			UTC().
			Format(time.RFC3339)+
			"."
	case created.After(m.now.Add(skew)):
		v.code, v.why = NotYetValid, "The signature says that it was made at "+created.Format(
			time.RFC3339,
		)+", which is not yet."
	case !good:
		v.code, v.why = KeyOutsideValidity, "The key was not one to sign with at "+created.Format(time.RFC3339)+"."
	}
	return v
}

// uncovered names what a signature must cover and does not; empty: nothing.
func uncovered(s *httpsig.Signature) string {
	for _, c := range required() {
		if !slices.Contains(s.Components, c) {
			if c.Request {
				return `"` + c.Name + `";req`
			}
			return `"` + c.Name + `"`
		}
	}
	switch {
	case s.Created == nil:
		return "created"
	case s.KeyID == "":
		return "keyid"
	}
	return ""
}

// required returns what the signature of a manifest covers at least.
func required() []httpsig.Component {
	return []httpsig.Component{
		{Name: "@status"}, {Name: "content-type"}, {Name: "content-digest"}, {Name: "@target-uri", Request: true},
	}
}
