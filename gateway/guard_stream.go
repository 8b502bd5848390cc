package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ibidhq/ibid/store"
)

// streamTokenLife is how long a stream token opens streams. A browser's EventSource that reconnects later needs a new
// one.
const streamTokenLife = 5 * time.Minute

// maxStreamToken is how long a stream token can be, in bytes.
const maxStreamToken = 4 << 10

// streamClaims are what a stream token says.
type streamClaims struct {
	Tenant  string `json:"tenant"`
	Run     string `json:"run"`
	Token   string `json:"token,omitempty"` // the id of the access token it was made with
	Expires int64  `json:"expires"`         // Unix seconds
}

// StreamToken returns a token that lets a browser read the events of one run until expires, and nothing else:
// EventSource cannot send headers, so it stands in the URL, which is a bad place for an access token.
func (g *Guard) StreamToken(id Identity, run string) (token string, expires time.Time) {
	expires = time.Now().Add(streamTokenLife).UTC().Truncate(time.Second)
	// strings and a number always can be
	claims, _ := json.Marshal(streamClaims{id.Tenant, run, id.Token, expires.Unix()})
	encode := base64.RawURLEncoding.EncodeToString
	return encode(claims) + "." + encode(g.sign(claims)), expires
}

// Stream says who makes a request for the events of a run: by what [Guard.API] takes, or by a stream token in the query
// parameter access_token.
func (g *Guard) Stream(r *http.Request, run string) (Identity, error) {
	given := r.URL.Query().Get("access_token")
	needed, err := g.NeedsToken(r.Context())
	if err != nil {
		return Identity{}, err
	}
	if !needed || given == "" {
		return g.API(r, store.ScopeRead)
	}
	claims, ok := g.readStreamToken(given)
	id := Identity{Tenant: claims.Tenant, Token: claims.Token, Scopes: []string{store.ScopeRead}}
	if !ok || claims.Run != run || !g.Still(r.Context(), id) {
		return Identity{}, unauthorized(
			"Bearer", "the stream token is not valid for this run",
			"it may have expired: POST /v1/stream-token makes a new one",
		)
	}
	return id, nil
}

// Still reports whether an identity that was let in once would be let in now, as far as tokens go: whether its token
// was revoked since, or the first token made. Streams that last ask it from time to time.
func (g *Guard) Still(ctx context.Context, id Identity) bool {
	switch id.Token {
	case "":
		needed, err := g.NeedsToken(ctx)
		return err != nil || !needed
	case bootstrapID:
		return g.bootstrap != nil
	}
	return g.tokens.isValid(ctx, id.Token)
}

func (g *Guard) readStreamToken(token string) (streamClaims, bool) {
	var claims streamClaims
	payload, mac, found := strings.Cut(token, ".")
	if !found || len(token) > maxStreamToken {
		return claims, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return claims, false
	}
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(sum, g.sign(raw)) || json.Unmarshal(raw, &claims) != nil {
		return streamClaims{}, false
	}
	return claims, time.Now().Unix() < claims.Expires
}

// streamKey returns a key to sign with: the same for the same bootstrap token, another one each time without.
func streamKey(bootstrap string) []byte {
	if bootstrap == "" {
		bootstrap = rand.Text() + rand.Text()
	}
	sum := sha256.Sum256([]byte("ibid stream key 1\n" + bootstrap))
	return sum[:]
}

func (g *Guard) sign(claims []byte) []byte {
	mac := hmac.New(sha256.New, g.key)
	mac.Write([]byte("ibid stream token 1\n"))
	mac.Write(claims)
	return mac.Sum(nil)
}
