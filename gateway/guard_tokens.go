package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/store"
)

const (
	// tokenFresh is how long a token read from the store is cached. Together with askTimeout, it stays below the 30
	// seconds after which a revoked token is refused everywhere.
	tokenFresh = 25 * time.Second
	// unknownFresh is the same for a secret without a token, since the token may be about to be created.
	unknownFresh = 2 * time.Second
	// askTimeout is how long a call waits for the store to check a token.
	askTimeout = time.Second
	// retryAfter is how long the store is not asked after it failed, so that few calls wait for one that hangs.
	retryAfter = 5 * time.Second
	// maxTokens and maxUnknown limit how many secrets are remembered.
	maxTokens  = 4096
	maxUnknown = 512
	// maxSecret is the largest length of a token, in bytes.
	maxSecret = 256
)

// tokenCache caches the tokens in the store.
type tokenCache struct {
	store  *store.Store
	logger *slog.Logger
	asking singleflight.Group // one query at a time per secret

	mu       sync.Mutex
	known    map[[sha256.Size]byte]knownToken
	unknown  map[[sha256.Size]byte]time.Time // when the store was asked
	listed   []store.Token
	listedAt time.Time // when listed was read; zero if never
	downAt   time.Time // when the store last failed; zero if it answered since
	version  int       // incremented by Forget; results of earlier queries are not cached

	exist atomic.Bool // tokens exist or existed; never reset

	file   string      // the copy's name; may be empty
	copied *tokenCopy  // the copy when the process started; nil if there was none
	saved  []byte      // the copy's current content; used by copyOut alone
	warned atomic.Bool // a warning that the store has lost its tokens was logged
}

type knownToken struct {
	token *store.Token
	at    time.Time
}

// newTokenCache returns a cache, and reads the copy. An unreadable copy counts as none, but proves that there were
// tokens.
func newTokenCache(s *store.Store, copied string, logger *slog.Logger) *tokenCache {
	c := &tokenCache{
		store: s, file: copied, logger: cmp.Or(logger, slog.New(slog.DiscardHandler)),
		known: map[[sha256.Size]byte]knownToken{}, unknown: map[[sha256.Size]byte]time.Time{},
	}
	if copied == "" {
		return c
	}
	data, err := os.ReadFile(copied)
	if errors.Is(err, fs.ErrNotExist) {
		return c
	}
	read := &tokenCopy{}
	if err == nil {
		err = json.Unmarshal(data, read)
	}
	if err != nil {
		c.logger.Error("the copy of the tokens cannot be read", slog.String("file", copied), slog.Any("error", err))
		c.exist.Store(true)
		return c
	}
	c.copied, c.saved = read, data
	c.exist.Store(read.Made)
	return c
}

// list returns all tokens as the store recently listed them. The error means that it never did.
func (c *tokenCache) list(ctx context.Context) ([]store.Token, error) {
	if c.store == nil {
		return nil, nil
	}
	c.mu.Lock()
	listed, known, down, version := c.listed, !c.listedAt.IsZero(), c.isDown(), c.version
	fresh := time.Since(c.listedAt) < tokenFresh
	c.mu.Unlock()
	switch {
	case known && (fresh || down):
		return listed, nil
	case down:
		return c.copied.list()
	}
	v, err := c.askStore(ctx, "", func(ctx context.Context) (any, error) {
		asked := time.Now()
		tokens, err := c.store.Tokens(ctx)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if version == c.version {
			c.listed, c.listedAt = tokens, asked
		}
		return tokens, nil
	})
	switch tokens, ok := v.([]store.Token); {
	case ok:
		return tokens, nil
	case err != nil && !known:
		return c.copied.list()
	}
	return listed, nil
}

// find returns the token with that secret, or nil if there is no valid one. The error means that this cannot be
// determined.
func (c *tokenCache) find(ctx context.Context, secret string, sum [sha256.Size]byte) (*store.Token, error) {
	if c.store == nil || len(secret) > maxSecret || !strings.HasPrefix(secret, "ibid_") {
		return nil, nil
	}
	c.mu.Lock()
	entry, isKnown := c.known[sum]
	isUnknown := time.Since(c.unknown[sum]) < unknownFresh
	down, version := c.isDown(), c.version
	c.mu.Unlock()
	switch {
	case isKnown && (down || time.Since(entry.at) < tokenFresh):
		return entry.token, nil
	case isUnknown:
		return nil, nil
	case down:
		return c.copied.find(sum)
	}
	asked := time.Now()
	v, err := c.askStore(ctx, string(sum[:]), func(ctx context.Context) (any, error) {
		token, err := c.store.TokenBySecret(ctx, secret)
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil
		}
		return token, err
	})
	token, _ := v.(*store.Token)
	if err != nil {
		if isKnown {
			return entry.token, nil
		}
		return c.copied.find(sum)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != c.version {
		return token, nil
	}
	delete(c.known, sum)
	delete(c.unknown, sum)
	if token == nil {
		makeRoom(c.unknown, maxUnknown)
		c.unknown[sum] = asked
	} else {
		makeRoom(c.known, maxTokens)
		c.known[sum] = knownToken{token, asked}
	}
	return token, nil
}

// makeRoom removes an arbitrary entry from a full map. Which one does not matter: there are never so many in use.
func makeRoom[K comparable, V any](m map[K]V, limit int) {
	if len(m) < limit {
		return
	}
	for key := range m {
		delete(m, key)
		return
	}
}

// askStore queries the store, once for all concurrent callers with the same key, and records whether it answered.
func (c *tokenCache) askStore(
	ctx context.Context, key string, query func(context.Context) (any, error),
) (any, error) {
	v, err, _ := c.asking.Do(key, func() (any, error) {
		// The first caller may leave while others wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		answer, err := query(ctx)
		c.mu.Lock()
		wasDown := !c.downAt.IsZero()
		c.downAt = time.Time{}
		if err != nil {
			c.downAt = time.Now()
		}
		c.mu.Unlock()
		if err != nil && !wasDown {
			c.logger.LogAttrs(
				ctx, slog.LevelWarn, "the store cannot check access tokens; known ones are accepted",
				slog.Any("error", err),
			)
		}
		return answer, err
	})
	return v, err
}

// isDown reports whether the store has just failed. c.mu must be held.
func (c *tokenCache) isDown() bool { return !c.downAt.IsZero() && time.Since(c.downAt) < retryAfter }

func errNoTokens() error {
	return Unavailable("the store cannot check the access token")
}

// tokenCopy is a file's list of the valid tokens. With it, a gateway that starts while its database is down admits
// their holders, as a running one would.
type tokenCopy struct {
	Made   bool          `json:"made"` // tokens were created at some time: requests need one, even if none is left
	Tokens []copiedToken `json:"tokens"`
}

// copiedToken is a token, and the SHA-256 of its secret in hexadecimal.
type copiedToken struct {
	ID      string   `json:"id"`
	Tenant  string   `json:"tenant"`
	Scopes  []string `json:"scopes"`
	Publish bool     `json:"publish"`
	Hash    string   `json:"hash"`
}

func (t *copiedToken) token() store.Token {
	return store.Token{ID: t.ID, Tenant: t.Tenant, Scopes: t.Scopes, Publish: t.Publish}
}

// list returns the tokens. Without a copy, it is unknown whether there are any.
func (c *tokenCopy) list() ([]store.Token, error) {
	if c == nil {
		return nil, errNoTokens()
	}
	list := make([]store.Token, len(c.Tokens))
	for i := range c.Tokens {
		list[i] = c.Tokens[i].token()
	}
	return list, nil
}

// find returns the token whose secret has that SHA-256. One that is not in the copy may have been created since.
func (c *tokenCopy) find(sum [sha256.Size]byte) (*store.Token, error) {
	if c == nil {
		return nil, errNoTokens()
	}
	hash := hex.EncodeToString(sum[:])
	for i := range c.Tokens {
		if c.Tokens[i].Hash == hash {
			token := c.Tokens[i].token()
			return &token, nil
		}
	}
	return nil, errNoTokens()
}

// copyOut updates the copy if the store's tokens have changed.
func (c *tokenCache) copyOut(ctx context.Context) {
	if c.store == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, tokenFresh)
	defer cancel()
	tokens, err := c.store.HashedTokens(asking)
	if err != nil {
		return // the copy exists for this case
	}
	if len(tokens) == 0 && c.exist.Load() && !c.warned.Swap(true) {
		c.logger.LogAttrs(
			ctx, slog.LevelWarn, "the database has no access tokens, but had some before: calls are refused",
			slog.String("hint", "was the database lost? `ibid token new --name NAME --scope all` creates a new token"),
		)
	}
	out := tokenCopy{Made: len(tokens) > 0 || c.exist.Load(), Tokens: []copiedToken{}}
	for i := range tokens {
		if t := &tokens[i]; t.Revoked.IsZero() {
			out.Tokens = append(out.Tokens, copiedToken{t.ID, t.Tenant, t.Scopes, t.Publish, t.Hash})
		}
	}
	data, err := json.Marshal(&out)
	if err != nil || bytes.Equal(data, c.saved) {
		return
	}
	if err := file.Replace(c.file, data, 0o600); err != nil {
		c.logger.LogAttrs(ctx, slog.LevelError, "the tokens cannot be copied", slog.Any("error", err))
		return
	}
	c.saved = data
}
