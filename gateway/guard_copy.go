package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/store"
)

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

// copyIn reads the copy. One that cannot be read is none, but there were tokens.
func (c *tokenCache) copyIn() {
	if c.file == "" {
		return
	}
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	read := &tokenCopy{}
	if err == nil {
		err = json.Unmarshal(data, read)
	}
	if err != nil {
		c.logger.Error("the copy of the tokens cannot be read", slog.String("file", c.file), slog.Any("error", err))
		c.exist.Store(true)
		return
	}
	c.copied, c.saved = read, data
	c.exist.Store(read.Made)
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
