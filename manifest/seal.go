package manifest

import (
	"context"
	"fmt"
	"time"

	"github.com/ibidhq/ibid/keyring"
)

// Seal makes of m what is served at path, which must be that of m.Self: it signs it at Level 3 and logs its digest if
// there is a log. It is for who keeps manifests in a way of their own; [Publisher.Publish] keeps it, too. What is
// inconsistent is an error.
//
// The digest is logged before anybody can keep the manifest, so that whatever is served is in the log.
func (p *Publisher) Seal(ctx context.Context, path string, m *Manifest) (*Signed, error) {
	now := p.now()
	if err := p.checkManifest(path, m, now); err != nil {
		return nil, fmt.Errorf("sealing the manifest %s: %w", path, err)
	}
	s, err := Unsigned(m)
	if err == nil {
		err = p.seal(ctx, s, now)
	}
	if err != nil {
		return nil, fmt.Errorf("sealing the manifest %s: %w", path, err)
	}
	return s, nil
}

// seal signs and logs what is not signed yet, as the level demands.
func (p *Publisher) seal(ctx context.Context, s *Signed, at time.Time) error {
	if p.Level == 3 {
		key, signer, err := p.Keys.Signer(keyring.Manifest)
		if err != nil {
			return err
		}
		if err := s.sign(key, signer, at); err != nil {
			return err
		}
	}
	if p.Log == nil {
		return nil
	}
	return p.log(ctx, s)
}

func (p *Publisher) log(ctx context.Context, s *Signed) error {
	if _, err := p.Log.Append(ctx, s.Digest()); err != nil {
		return fmt.Errorf("logging it: %w", err)
	}
	proof, err := p.Log.Proof(ctx, s.Digest())
	if err != nil {
		return fmt.Errorf("proving that it is logged: %w", err)
	}
	s.Proof = proof
	return nil
}
