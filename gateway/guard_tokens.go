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
	// tokenFresh is how long an answer of the store about tokens is believed. With askFor it stays below the 30 seconds
	// after which a revoked token is refused everywhere.
	tokenFresh = 25 * time.Second
	// unknownFresh is the same for a secret that the store does not know: its token may just be about to be made.
	unknownFresh = 2 * time.Second
	// askFor is how long a call waits for the store's word on a token.
	askFor = time.Second
	// askAgain is how long the store is left alone after it did not answer, so that few calls wait for one that hangs.
	askAgain = 5 * time.Second
	// maxTokens and maxUnknown bound how many secrets are remembered.
	maxTokens  = 4096
	maxUnknown = 512
	// maxSecret is how long a token can be, in bytes.
	maxSecret = 256
)

// tokenCache keeps what the store says about tokens.
type tokenCache struct {
	store  *store.Store
	logger *slog.Logger
	asking singleflight.Group // one question at a time for each secret

	mu       sync.Mutex
	known    map[[sha256.Size]byte]knownToken
	unknown  map[[sha256.Size]byte]time.Time // when the store said so
	listed   []store.Token
	listedAt time.Time // when the store said so; zero: never
	downAt   time.Time // when the store last did not answer; zero: it did
	version  int       // goes up by forget: what was asked before is not kept

	exist atomic.Bool // there are tokens; never false again

	file   string      // of the copy; empty: none
	copied *tokenCopy  // what the file had when the process began; nil: there was none
	saved  []byte      // what the file has; of copyOut alone
	warned atomic.Bool // that the store has lost its tokens
}

type knownToken struct {
	token *store.Token
	at    time.Time
}

// newTokenCache returns a cache, with what the copy says. One that cannot be read is none, but there were tokens.
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

// list returns all tokens, as the store said not long ago. The error says that it never did.
func (c *tokenCache) list(ctx context.Context) ([]store.Token, error) {
	if c.store == nil {
		return nil, nil
	}
	c.mu.Lock()
	listed, said, down, version := c.listed, !c.listedAt.IsZero(), c.isDown(), c.version
	fresh := time.Since(c.listedAt) < tokenFresh
	c.mu.Unlock()
	switch {
	case said && (fresh || down):
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
	case err != nil && !said:
		return c.copied.list()
	}
	return listed, nil
}

// find returns the token with that secret; nil if there is none that is valid. The error says that nobody knows.
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

// makeRoom removes some entry of a full map. Which one does not matter: there are never so many in use.
func makeRoom[K comparable, V any](m map[K]V, limit int) {
	if len(m) < limit {
		return
	}
	for key := range m {
		delete(m, key)
		return
	}
}

// askStore asks the store, once for all who want to know the same, and remembers whether it answered.
func (c *tokenCache) askStore(
	ctx context.Context, what string, question func(context.Context) (any, error),
) (any, error) {
	v, err, _ := c.asking.Do(what, func() (any, error) {
		// The one who asked first may leave while others wait for the same answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
		defer cancel()
		answer, err := question(ctx)
		c.mu.Lock()
		wasDown := !c.downAt.IsZero()
		c.downAt = time.Time{}
		if err != nil {
			c.downAt = time.Now()
		}
		c.mu.Unlock()
		if err != nil && !wasDown {
			c.logger.LogAttrs(
				ctx, slog.LevelWarn, "the store does not say which tokens are valid; known ones are let in",
				slog.Any("error", err),
			)
		}
		return answer, err
	})
	return v, err
}

// isDown reports whether the store did not answer a moment ago. c.mu is held.
func (c *tokenCache) isDown() bool { return !c.downAt.IsZero() && time.Since(c.downAt) < askAgain }

func errNoTokens() error {
	return Unavailable("the store cannot be asked whether the access token is valid")
}

// tokenCopy is what a file knows of the tokens that are valid. A gateway that starts while its database is away lets
// their holders in by it, as one that runs would.
type tokenCopy struct {
	Made   bool          `json:"made"` // tokens were made once: requests need one, also if none is left
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

// list returns the tokens. Without a copy nobody knows whether there are any.
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

// find returns the token whose secret has that SHA-256. What is not in the copy may have been made since.
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

// copyOut writes the copy anew where the store says something else than it has.
func (c *tokenCache) copyOut(ctx context.Context) {
	if c.store == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, tokenFresh)
	defer cancel()
	tokens, err := c.store.HashedTokens(asking)
	if err != nil {
		return // the copy is for that
	}
	if len(tokens) == 0 && c.exist.Load() && !c.warned.Swap(true) {
		c.logger.LogAttrs(
			ctx, slog.LevelWarn, "the database has no access token, but there was one: calls are refused",
			slog.String("hint", "was the database lost? `ibid token new --name NAME --scope all` makes another token"),
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
