package gateway

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/store"
)

// TokenHeader names the header that holds the caller's access token on the pass-through, where Authorization is always
// the provider's. It is accepted on the API too.
const TokenHeader = "Ibid-Token"

// bootstrapID stands for the bootstrap token where a token's id is shown.
const bootstrapID = "bootstrap"

// Identity is who makes a request, as far as ibid knows.
type Identity struct {
	Tenant string   // whose rows it sees and writes
	Token  string   // the id of the token; empty: none was needed
	Scopes []string // what it may do
	// Publish says that its answers are published, where attribution is on, unless a call says otherwise.
	Publish bool
}

// May reports whether the scope is among the identity's. No scope includes another.
func (id Identity) May(scope string) bool { return slices.Contains(id.Scopes, scope) }

// Publishes reports whether what a request brings is to be published: as its [PublishHeader] says, else as the token
// does. The error is a problem.
func (id Identity) Publishes(h http.Header) (bool, error) {
	said, err := readLabel(h, PublishHeader, checkPublish)
	if err != nil {
		return false, err
	}
	return id.publishes(said)
}

// publishes reports whether the answer of a call is to be published, of which its header said so or not. Only who has
// the scope may ask for it. The error is a problem.
func (id Identity) publishes(said string) (bool, error) {
	switch {
	case said == publishYes && !id.Publish && !id.May(store.ScopePublish):
		return false, NewProblem(CodeScope,
			"the access token may not publish, and header "+PublishHeader+" asks for it",
			"`ibid token new --publishes` makes one that may")
	case said == "":
		return id.Publish, nil
	}
	return said == publishYes, nil
}

// GuardOptions says whom a Guard lets in.
type GuardOptions struct {
	Store     *store.Store // keeps the tokens
	Bootstrap string       // a token that needs no store: all scopes, tenant default; empty: none
	// Origins are the web pages that may call from a browser: "https://app.example". "*" is any, and counts only where
	// a token is needed.
	Origins []string
	// Exposed says that others than the users of this machine reach ibid, by its address or its public URL: then every
	// request needs a token, also where none was ever made or the database of tokens was lost.
	Exposed bool
	// Key signs stream tokens, at least 32 bytes, the same on all nodes. Empty: it is made of the bootstrap token, and
	// without one at random, so that a stream token is valid in this process only.
	Key []byte
	// Copy is a file that [Guard.Run] copies the tokens to, as hashes, and that is read at once: it says who is let in
	// as long as the store could not be asked, and that there were tokens where the store has lost them. Empty: none.
	Copy   string
	Logger *slog.Logger // nil: nothing is logged
	// Refused is told of an access token that was not valid, once for each, and of the network that it came from. It is
	// called while the client waits; nil: nobody is told.
	Refused func(ctx context.Context, from netip.Prefix)
}

// Guard decides who may make a request. As long as no token was ever made it lets everybody in, as the tenant default
// with all scopes, but only under a loopback name, and not on behalf of a foreign web page: that is what keeps pages
// away that a user of this machine happens to visit (DNS rebinding, forged requests). Once there is a token, even a
// revoked one, and always where ibid is exposed, every request needs a token that is valid.
//
// Wrong tokens are logged, and an address that sends many different ones gets a 429 for a while.
//
// What the store says of a token is kept for 25 seconds, and for as long as the store cannot be asked: a database that
// stops fails no call of a token that was used before, and a revoked token is refused within 30 seconds.
//
// Its methods may be called at the same time. The errors are problems, to be answered as they are.
type Guard struct {
	bootstrap *[sha256.Size]byte // nil: none
	origins   []string
	anyOrigin bool
	exposed   bool
	key       []byte
	tokens    *tokenCache
	failures  *failures
}

// NewGuard returns a guard. Without options, or without a store in them, it knows no token but the bootstrap token.
func NewGuard(o *GuardOptions) *Guard {
	o = cmp.Or(o, &GuardOptions{})
	g := &Guard{
		tokens: newTokenCache(o.Store, o.Copy, o.Logger), failures: newFailures(o.Logger, o.Refused),
		key:     slices.Clone(o.Key),
		exposed: o.Exposed,
	}
	for _, origin := range o.Origins {
		if origin == "*" {
			g.anyOrigin = true
			continue
		}
		g.origins = append(g.origins, strings.ToLower(strings.TrimSuffix(origin, "/")))
	}
	if o.Bootstrap != "" {
		sum := sha256.Sum256([]byte(o.Bootstrap))
		g.bootstrap = &sum
	}
	if len(g.key) == 0 { // the same for the same bootstrap token, another one each time without
		sum := sha256.Sum256([]byte("ibid stream key 1\n" + cmp.Or(o.Bootstrap, rand.Text()+rand.Text())))
		g.key = sum[:]
	}
	return g
}

// Proxy says who makes a request of the pass-through. The token is in [TokenHeader].
func (g *Guard) Proxy(r *http.Request) (Identity, error) {
	return g.admit(r, store.ScopeProxy, r.Header.Get(TokenHeader), TokenHeader)
}

// API says who makes a request of ibid's own API, and that the scope is theirs. The token is a bearer token, or in
// [TokenHeader]. An empty scope asks only for a valid token.
func (g *Guard) API(r *http.Request, scope string) (Identity, error) {
	return g.admit(r, scope, bearer(r), "Bearer")
}

// bearer returns the token in the header of a request.
func bearer(r *http.Request) string {
	if kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(kind, "Bearer") {
		return strings.TrimSpace(value)
	}
	return r.Header.Get(TokenHeader)
}

// Local checks a request that needs no token: that it does not come from a foreign web page, while no tokens are
// configured.
func (g *Guard) Local(r *http.Request) error {
	needed, err := g.NeedsToken(r.Context())
	if err != nil || needed {
		return nil //nolint:nilerr // whether the store answers is what such requests may want to know
	}
	return g.foreign(r)
}

// Run keeps GuardOptions.Copy up to date until ctx ends, and returns nil. Without a copy it does nothing.
func (g *Guard) Run(ctx context.Context) error {
	if g.tokens.file == "" {
		return nil
	}
	tick := time.NewTicker(tokenFresh)
	defer tick.Stop()
	for {
		g.tokens.copyOut(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Forget drops what is kept about tokens, so that a change made through this process counts at once.
func (g *Guard) Forget() {
	c := g.tokens
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
	clear(c.unknown)
	c.listedAt = time.Time{}
	c.version++
}

// NeedsToken reports whether requests need a token: whether one was ever made, there is a bootstrap token, or others
// reach ibid. The error is a problem: the store cannot be asked.
func (g *Guard) NeedsToken(ctx context.Context) (bool, error) {
	if g.bootstrap != nil || g.exposed {
		return true, nil
	}
	// That tokens were made cannot be undone, so that revoking the last one opens nothing.
	if g.tokens.exist.Load() {
		return true, nil
	}
	tokens, err := g.tokens.list(ctx)
	if len(tokens) > 0 {
		g.tokens.exist.Store(true)
	}
	return len(tokens) > 0, err
}

func (g *Guard) admit(r *http.Request, scope, secret, scheme string) (Identity, error) {
	if err := g.checkOrigin(r); err != nil {
		return Identity{}, err
	}
	needed, err := g.NeedsToken(r.Context())
	if err != nil {
		return Identity{}, err
	}
	if !needed {
		if err := g.foreign(r); err != nil {
			return Identity{}, err
		}
		return Identity{Tenant: store.DefaultTenant, Scopes: store.Scopes(), Publish: true}, nil
	}
	if secret == "" {
		credentials := "`Authorization: Bearer TOKEN`"
		if scheme == TokenHeader {
			credentials = "`" + TokenHeader + ": TOKEN`"
		}
		return Identity{}, unauthorized(
			scheme, "this needs an access token", "send it as "+credentials+"; `ibid token new` makes one")
	}
	sum := sha256.Sum256([]byte(secret))
	if err := g.failures.check(r, sum); err != nil {
		return Identity{}, err
	}
	id := Identity{store.DefaultTenant, bootstrapID, store.Scopes(), true}
	if g.bootstrap == nil || subtle.ConstantTimeCompare(sum[:], g.bootstrap[:]) != 1 {
		token, err := g.tokens.find(r.Context(), secret, sum)
		if err != nil {
			return Identity{}, err
		}
		if token == nil {
			g.failures.failed(r.Context(), r, sum)
			return Identity{}, unauthorized(
				scheme, "the access token is not valid",
				"it may have been revoked; `ibid token list` shows which there are",
			)
		}
		id = Identity{token.Tenant, token.ID, slices.Clone(token.Scopes), token.Publish}
	}
	g.failures.right(sum)
	if scope != "" && !id.May(scope) {
		return Identity{}, NewProblem(CodeScope,
			"the access token lacks the scope "+scope, "`ibid token new` makes one that has it")
	}
	return id, nil
}

func unauthorized(scheme, detail, hint string) *Problem {
	p := NewProblem(CodeToken, detail, hint)
	p.Header = http.Header{"Www-Authenticate": {scheme + ` realm="ibid"`}}
	return p
}

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
	tokens, err := g.tokens.list(ctx)
	return err != nil ||
		slices.ContainsFunc(tokens, func(t store.Token) bool { return t.ID == id.Token && t.Revoked.IsZero() })
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

func (g *Guard) sign(claims []byte) []byte {
	mac := hmac.New(sha256.New, g.key)
	mac.Write([]byte("ibid stream token 1\n"))
	mac.Write(claims)
	return mac.Sum(nil)
}
