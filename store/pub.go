package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// pubBytes is how much of the HMAC a public id has: 128 bits cannot be guessed.
const pubBytes = 16

// PubNames gives runs the ids under which their manifests are published. They are the same whenever they are asked for,
// from before anything of the run is stored; they show neither the tenant nor the client's name of the run, and nobody
// who has not the store can work them out. It may be used by many goroutines at once.
type PubNames struct{ secret []byte }

// Of returns the public id of a run: 26 characters of a-z and 2-7. It asks nobody. A call in no run is published under
// that of its answer's id.
func (p *PubNames) Of(tenant, run string) string {
	mac := hmac.New(sha256.New, p.secret)
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(tenant))) // so that no two pairs are the same bytes
	mac.Write(size[:])
	mac.Write([]byte(tenant))
	mac.Write([]byte(run))
	sum := mac.Sum(nil)
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:pubBytes]))
}

// ofCall returns the public id of the run that a call is published in.
func (p *PubNames) ofCall(c *Call) string {
	if c.Run == "" {
		return p.Of(c.Tenant, c.AnswerID)
	}
	return p.Of(c.Tenant, c.Run)
}

// Pub returns the public id of a run, which need not be there: see [PubNames.Of].
func (s *Store) Pub(ctx context.Context, tenant, run string) (string, error) {
	names, err := s.Publications(ctx)
	if err != nil {
		return "", err
	}
	return names.Of(tenant, run), nil
}

// Publications returns what gives runs their public ids. The store is asked for its secret once; the first who asks of
// a new store makes it.
func (s *Store) Publications(ctx context.Context) (*PubNames, error) {
	if names := s.names.Load(); names != nil {
		return names, nil
	}
	secret, err := s.secret(ctx, "publications")
	if err != nil {
		return nil, fmt.Errorf("reading what publications are named by: %w", err)
	}
	names := &PubNames{secret}
	s.names.Store(names)
	return names, nil
}

// secret returns 32 random bytes that are always the same for a name. Of several nodes that make them at the same time
// one does.
func (s *Store) secret(ctx context.Context, name string) ([]byte, error) {
	value, err := readSecret(ctx, s.db, name)
	if err == nil && value == "" {
		err = s.update(ctx, func(ctx context.Context, tx *transaction) error {
			if _, err := tx.ExecContext(
				ctx, "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", name, newSalt(),
			); err != nil {
				return err
			}
			value, err = readSecret(ctx, tx, name)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	secret, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil || len(secret) != sha256.Size {
		return nil, fmt.Errorf("%w: the secret %q", errDamaged, name) // an error would quote it
	}
	return secret, nil
}

func readSecret(ctx context.Context, q querier, name string) (string, error) {
	value := ""
	err := each(
		ctx, q,
		func(rows *sql.Rows) error { return rows.Scan(&value) },
		"SELECT value FROM secrets WHERE name = $1", name,
	)
	return value, err
}

// newSalt returns 32 random bytes as they are stored.
func newSalt() string {
	var random [sha256.Size]byte
	_, _ = rand.Read(random[:]) // never fails: it says so
	return base64.RawURLEncoding.EncodeToString(random[:])
}
