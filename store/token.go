package store

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The scopes of a [Token].
const (
	ScopeProxy   = "proxy"   // calls to the upstreams
	ScopeRead    = "read"    // what is stored
	ScopeWrite   = "write"   // runs, feedback, deletion
	ScopeVerify  = "verify"  // fetching and checking sources
	ScopeAdmin   = "admin"   // tokens
	ScopePublish = "publish" // manifests
)

// secretPrefix begins every secret, so that it can be recognized.
const secretPrefix = "ibid_"

// The maximum lengths of a token's name and of a tenant, in bytes.
const (
	maxTokenName = 200
	maxTenant    = 128
)

// Scopes returns all scopes.
func Scopes() []string {
	return []string{ScopeProxy, ScopeRead, ScopeWrite, ScopeVerify, ScopeAdmin, ScopePublish}
}

// Token is an access token of a gateway. Only its holder has the secret: the store has a hash of it.
type Token struct {
	ID      string // tok_ and a UUIDv7
	Tenant  string
	Name    string // for people
	Scopes  []string
	Publish bool // answers to its calls are published by default
	Created time.Time
	Revoked time.Time // zero if valid
}

// NewToken stores t and returns its secret: "ibid_" and 43 characters, of which only the SHA-256 is stored. It sets
// t.ID and t.Created, and t.Tenant to [DefaultTenant] if empty. It fails if [Token.Check] does.
func (s *Store) NewToken(ctx context.Context, t *Token) (secret string, err error) {
	defer wrapResult(&err, "creating a token")
	if t.Tenant == "" {
		t.Tenant = DefaultTenant
	}
	if err := t.Check(); err != nil {
		return "", err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails, as documented
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	t.ID, t.Created, t.Revoked = "tok_"+id.String(), instant(micros(s.now())), time.Time{}
	return secret, s.update(ctx, func(tx *transaction) error {
		if err := tx.insert(
			ctx, "tokens", "id, tenant, name, scopes, publish, created, revoked, hash", t.ID, t.Tenant, t.Name,
			strings.Join(t.Scopes, " "), oneIf(t.Publish), micros(t.Created), 0, hash(secret),
		); err != nil {
			return err
		}
		detail := strings.Join(t.Scopes, ", ") + " for " + t.Name
		return tx.audit(ctx, t.Tenant, AuditEntry{Action: AuditTokenMade, Object: t.ID, Detail: detail})
	})
}

// Check validates a new token. The error is meant for its creator. The name is up to 200 bytes of text without control
// characters, the tenant up to 128 printable ASCII characters without spaces, and there is at least one of [Scopes].
func (t *Token) Check() error {
	switch {
	case len(t.Name) > maxTokenName || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, unicode.IsControl):
		return fmt.Errorf("the name must be text of up to %d bytes, without control characters", maxTokenName)
	case t.Tenant == "" || len(t.Tenant) > maxTenant ||
		strings.ContainsFunc(t.Tenant, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf(
			"the tenant must be a name of up to %d printable characters of ASCII, without spaces", maxTenant,
		)
	case len(t.Scopes) == 0:
		return fmt.Errorf("at least one scope is required: %s", strings.Join(Scopes(), ", "))
	}
	for _, scope := range t.Scopes {
		if !slices.Contains(Scopes(), scope) {
			return fmt.Errorf("there is no scope %.40q; the scopes are %s", scope, strings.Join(Scopes(), ", "))
		}
	}
	return nil
}

// Tokens returns all tokens, including revoked ones, oldest first.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	found, err := s.tokens(ctx, "1 = 1 ORDER BY created, id")
	list := make([]Token, 0, len(found))
	for _, t := range found {
		list = append(list, t.Token)
	}
	return list, wrap(err, "listing tokens")
}

// HashedToken is a token with the SHA-256 of its secret, in hexadecimal.
type HashedToken struct {
	Token
	Hash string
}

// HashedTokens is like [Store.Tokens], with hashes by which others can recognize a secret.
func (s *Store) HashedTokens(ctx context.Context) ([]HashedToken, error) {
	list, err := s.tokens(ctx, "1 = 1 ORDER BY created, id")
	return list, wrap(err, "listing tokens")
}

// TokenBySecret returns the token with a secret. It fails with [ErrNotFound] if the token is revoked or unknown.
func (s *Store) TokenBySecret(ctx context.Context, secret string) (*Token, error) {
	sum := hash(secret)
	found, err := s.tokens(ctx, "hash = $1 AND revoked = 0", sum)
	if err != nil {
		return nil, fmt.Errorf("looking up a token: %w", err)
	}
	for i := range found {
		if subtle.ConstantTimeCompare([]byte(found[i].Hash), []byte(sum)) == 1 {
			return &found[i].Token, nil
		}
	}
	return nil, fmt.Errorf("token: %w", ErrNotFound)
}

// RevokeToken revokes a token. It does nothing if the token is revoked already, and fails with [ErrNotFound] if it is
// unknown.
func (s *Store) RevokeToken(ctx context.Context, id string) error {
	err := s.update(ctx, func(tx *transaction) error {
		var tenant string
		var revoked int64
		found, err := find(ctx, tx, []any{&tenant, &revoked},
			"SELECT tenant, revoked FROM tokens WHERE id = $1"+tx.forUpdate(), lookup(id))
		switch {
		case err != nil:
			return err
		case !found:
			return ErrNotFound
		case revoked != 0:
			return nil
		}
		if err := tx.exec(
			ctx, "UPDATE tokens SET revoked = $1 WHERE id = $2", micros(tx.now()), lookup(id),
		); err != nil {
			return err
		}
		return tx.audit(ctx, tenant, AuditEntry{Action: AuditTokenRevoked, Object: id})
	})
	return wrap(err, "revoking token %.60q", id)
}

func (s *Store) tokens(ctx context.Context, where string, args ...any) ([]HashedToken, error) {
	return collect(ctx, s.urgent, func(rows *sql.Rows, t *HashedToken) error {
		var scopes string
		var publish int
		var created, revoked int64
		err := rows.Scan(&t.ID, &t.Tenant, &t.Name, &scopes, &publish, &created, &revoked, &t.Hash)
		t.Scopes, t.Publish = strings.Fields(scopes), publish != 0
		t.Created, t.Revoked = instant(created), instant(revoked)
		return err
	}, "SELECT id, tenant, name, scopes, publish, created, revoked, hash FROM tokens WHERE "+where, args...)
}
