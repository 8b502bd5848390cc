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

// TokenHeader is the header with the caller's access token on the pass-through, where Authorization is always the
// provider's. The API accepts it too.
const TokenHeader = "Ibid-Token"

// bootstrapID is shown as the id of the bootstrap token.
const bootstrapID = "bootstrap"

// Identity is the caller of a request, as far as ibid knows.
type Identity struct {
	Tenant string   // the tenant whose rows it reads and writes
	Token  string   // the id of its token; empty if none was needed
	Scopes []string // its scopes
	// Publish is the default for whether its answers are published, where attribution is on; a call may override it.
	Publish bool
}

// May reports whether the identity has the scope. No scope includes another.
func (id Identity) May(scope string) bool { return slices.Contains(id.Scopes, scope) }

// Publishes reports whether what a request submits is to be published: as its [PublishHeader] says, else as the token
// does. The error is a problem.
func (id Identity) Publishes(h http.Header) (bool, error) {
	header, err := readLabel(h, PublishHeader, checkPublish)
	if err != nil {
		return false, err
	}
	return id.publishes(header)
}

// publishes reports whether the answer of a call is to be published, given the value of its [PublishHeader]. Asking for
// it needs the scope. The error is a problem.
func (id Identity) publishes(header string) (bool, error) {
	switch {
	case header == publishYes && !id.Publish && !id.May(store.ScopePublish):
		return false, NewProblem(CodeScope,
			"header "+PublishHeader+" asks to publish, which the access token does not allow",
			"`ibid token new --publishes` makes one that may")
	case header == "":
		return id.Publish, nil
	}
	return header == publishYes, nil
}

// GuardOptions configure a [Guard].
type GuardOptions struct {
	Store     *store.Store // stores the tokens
	Bootstrap string       // a token that needs no store, with all scopes and the tenant default; may be empty
	// Origins are the web pages that may call from a browser, such as "https://app.example". "*" allows any, but only
	// where a token is needed.
	Origins []string
	// Exposed means that ibid can be reached from other machines, by its address or its public URL: then every request
	// needs a token, even if none was ever created or the database of tokens was lost.
	Exposed bool
	// Key signs stream tokens. It has at least 32 bytes and must be the same on all nodes. If empty, it is derived from
	// the bootstrap token; without one it is random, so that a stream token is valid in this process only.
	Key []byte
	// Copy is a file to which [Guard.Run] copies the tokens, as hashes, and which NewGuard reads: it determines which
	// tokens are valid until the store can be asked, and proves that tokens existed if the store has lost them. It may
	// be empty.
	Copy   string
	Logger *slog.Logger // nil disables logging
	// Refused is called once for each invalid access token, with the network that it came from. The client waits for
	// it. It may be nil.
	Refused func(ctx context.Context, from netip.Prefix)
}

// Guard decides who may make a request. As long as no token was ever created, it admits everybody as the tenant default
// with all scopes, but only under a loopback name and not on behalf of a foreign web page: this keeps out pages that a
// user of this machine happens to visit (DNS rebinding, forged requests). Once a token exists, even a revoked one, and
// always where ibid is exposed, every request needs a valid token.
//
// Invalid tokens are logged, and an address that sends many different ones gets a 429 for a while.
//
// Tokens read from the store are cached for 25 seconds, and for as long as the store is unreachable: a database outage
// fails no call with a token that was used before, and a revoked token is refused within 30 seconds.
//
// Guard is safe for concurrent use. Its errors are problems, to be written as they are.
type Guard struct {
	bootstrap *[sha256.Size]byte // may be nil
	origins   []string
	anyOrigin bool
	exposed   bool
	key       []byte
	tokens    *tokenCache
	failures  *failures
}

// NewGuard returns a guard. Without options, or without a store in them, only the bootstrap token is valid.
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
	if len(g.key) == 0 { // deterministic with a bootstrap token, else random
		sum := sha256.Sum256([]byte("ibid stream key 1\n" + cmp.Or(o.Bootstrap, rand.Text()+rand.Text())))
		g.key = sum[:]
	}
	return g
}

// Proxy returns the identity of a request to the pass-through. The token is in [TokenHeader].
func (g *Guard) Proxy(r *http.Request) (Identity, error) {
	return g.admit(r, store.ScopeProxy, r.Header.Get(TokenHeader), TokenHeader)
}

// API returns the identity of a request to ibid's own API, which must have the scope. The token is a bearer token, or
// in [TokenHeader]. An empty scope only requires a valid token.
func (g *Guard) API(r *http.Request, scope string) (Identity, error) {
	return g.admit(r, scope, bearer(r), "Bearer")
}

// bearer returns the access token in a request's header.
func bearer(r *http.Request) string {
	if kind, value, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(kind, "Bearer") {
		return strings.TrimSpace(value)
	}
	return r.Header.Get(TokenHeader)
}

// Local checks a request that needs no token: as long as no tokens are configured, it must not come from a foreign
// page.
func (g *Guard) Local(r *http.Request) error {
	needed, err := g.NeedsToken(r.Context())
	if err != nil || needed {
		return nil //nolint:nilerr // such requests may be asking whether the store works
	}
	return g.foreign(r)
}

// Run keeps GuardOptions.Copy up to date until ctx ends, and returns nil. Without a copy it returns at once.
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

// Forget clears the cache of tokens, so that a change made through this process takes effect at once.
func (g *Guard) Forget() {
	c := g.tokens
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
	clear(c.unknown)
	c.listedAt = time.Time{}
	c.version++
}

// NeedsToken reports whether requests need a token: whether one was ever created, there is a bootstrap token, or ibid
// is exposed. The error is a problem: the store cannot be asked.
func (g *Guard) NeedsToken(ctx context.Context) (bool, error) {
	if g.bootstrap != nil || g.exposed {
		return true, nil
	}
	// Once tokens were created, this stays true: revoking the last one opens nothing.
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
				"it may have been revoked; `ibid token list` lists the tokens",
			)
		}
		id = Identity{token.Tenant, token.ID, slices.Clone(token.Scopes), token.Publish}
	}
	g.failures.succeeded(sum)
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

// streamTokenLife is how long a stream token can open streams. An EventSource that reconnects later needs a new one.
const streamTokenLife = 5 * time.Minute

// maxStreamToken is the largest length of a stream token, in bytes.
const maxStreamToken = 4 << 10

// streamClaims are the contents of a stream token.
type streamClaims struct {
	Tenant  string `json:"tenant"`
	Run     string `json:"run"`
	Token   string `json:"token,omitempty"` // the id of the access token that requested it
	Expires int64  `json:"expires"`         // Unix seconds
}

// StreamToken returns a token that allows a browser to read the events of one run until expires, and nothing else.
// Since EventSource cannot send headers, the token is part of the URL, which is a bad place for an access token.
func (g *Guard) StreamToken(id Identity, run string) (token string, expires time.Time) {
	expires = time.Now().Add(streamTokenLife).UTC().Truncate(time.Second)
	// strings and a number always encode
	claims, _ := json.Marshal(streamClaims{id.Tenant, run, id.Token, expires.Unix()})
	encode := base64.RawURLEncoding.EncodeToString
	return encode(claims) + "." + encode(g.sign(claims)), expires
}

// Stream returns the identity of a request for the events of a run. It accepts what [Guard.API] accepts, or a stream
// token in the query parameter access_token.
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

// Still reports whether an identity that was admitted would still be admitted, as far as tokens go: whether its token
// was revoked since, or the first token created. Long-lived streams call it from time to time.
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
