package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

// tokenBody is a token as JSON. Its secret is returned only when it is created.
type tokenBody struct {
	ID        string     `json:"id"`
	Tenant    string     `json:"tenant"`
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	Publish   bool       `json:"publish"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	Secret    string     `json:"secret,omitempty"`
}

func showToken(t *store.Token) tokenBody {
	return tokenBody{
		ID: t.ID, Tenant: t.Tenant, Name: t.Name, Scopes: httpx.OrEmpty(t.Scopes), Publish: t.Publish,
		CreatedAt: t.Created.UTC(), RevokedAt: httpx.TimeOrNull(t.Revoked),
	}
}

// mayManage reports whether the caller, an administrator, manages the tenant: their own, or any if theirs is the
// operator's tenant, default.
func mayManage(r *httpx.Request, tenant string) bool {
	return r.Who.Tenant == tenant || r.Who.Tenant == store.DefaultTenant
}

// checkManages refuses a request for a tenant that the caller does not manage. The hint is the rule that applies.
func checkManages(r *httpx.Request, tenant, hint string) error {
	if mayManage(r, tenant) {
		return nil
	}
	return httpx.BadRequest("tenant: not the access token's tenant", hint)
}

// tokenList is the response of GET /v1/tokens.
type tokenList struct {
	Tokens []tokenBody `json:"tokens"`
}

// tokens lists the tokens that the caller manages, including revoked ones.
func (a *API) tokens(ctx context.Context, r *httpx.Request) (*tokenList, error) {
	all, err := a.store.Tokens(ctx)
	body := &tokenList{[]tokenBody{}}
	for i := range all {
		if mayManage(r, all[i].Tenant) {
			body.Tokens = append(body.Tokens, showToken(&all[i]))
		}
	}
	return body, err
}

// tokenOrder is a request for a token.
type tokenOrder struct {
	Name    string   `json:"name"`
	Tenant  string   `json:"tenant"`
	Scopes  []string `json:"scopes"  required:"" minItems:"1"`
	Publish bool     `json:"publish"`
}

// newToken creates a token. Once there is one, every request needs a token, so the first one must be able to create
// others.
func (a *API) newToken(w *httpx.Reply, r *httpx.Request) error {
	var order tokenOrder
	if err := httpx.ReadJSON(w, r.Request, &order); err != nil {
		return err
	}
	if order.Tenant == "" {
		order.Tenant = r.Who.Tenant
	}
	const hint = "only administrators of the tenant default create tokens for other tenants"
	if err := checkManages(r, order.Tenant, hint); err != nil {
		return err
	}
	slices.Sort(order.Scopes)
	t := &store.Token{
		Tenant:  order.Tenant,
		Name:    order.Name,
		Scopes:  slices.Compact(order.Scopes),
		Publish: order.Publish,
	}
	if err := t.Check(); err != nil {
		return httpx.BadRequest(err.Error(), "")
	}
	if r.Who.Token == "" && !slices.Contains(t.Scopes, store.ScopeAdmin) {
		return httpx.BadRequest(
			"scopes: the first token must have admin",
			"every later request needs a token, and only one with admin can create others",
		)
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	secret, err := a.store.NewToken(ctx, t)
	if err != nil {
		return httpx.StoreError("create a token", err)
	}
	a.o.Guard.Forget()
	body := showToken(t)
	body.Secret = secret
	return w.JSON(http.StatusCreated, body)
}

// revokeToken revokes a token: here at once, on other nodes within 30 seconds.
func (a *API) revokeToken(w *httpx.Reply, r *httpx.Request) error {
	id, err := r.PathID()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	all, err := a.store.Tokens(ctx)
	if err != nil {
		return httpx.StoreError("list tokens", err)
	}
	if !slices.ContainsFunc(all, func(t store.Token) bool { return t.ID == id && mayManage(r, t.Tenant) }) {
		return store.ErrNotFound
	}
	if err := a.store.RevokeToken(ctx, id); err != nil {
		return httpx.StoreError("revoke a token", err)
	}
	a.o.Guard.Forget()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// auditLog lists the actions of a tenant's administrators.
func (a *API) auditLog(ctx context.Context, r *httpx.Request) (*store.Page[store.AuditEntry], error) {
	tenant := cmp.Or(r.Params.Get("tenant"), r.Who.Tenant)
	const hint = "only administrators of the tenant default see the audit logs of other tenants"
	if err := checkManages(r, tenant, hint); err != nil {
		return nil, err
	}
	return a.store.AuditLog(ctx, tenant, r.Params.Get("cursor"), r.Params.Int("limit"))
}

// streamOrder is a request for a stream token.
type streamOrder struct {
	Run string `json:"run" minLength:"1" required:""`
}

// streamTokenBody is a token for the events of one run.
type streamTokenBody struct {
	AccessToken string    `json:"access_token"`
	Run         string    `json:"run"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// streamToken creates a token for the events of one run, for use in the URL of an EventSource.
func (a *API) streamToken(w *httpx.Reply, r *httpx.Request) error {
	var order streamOrder
	if err := httpx.ReadJSON(w, r.Request, &order); err != nil {
		return err
	}
	if !httpx.IsID(order.Run) {
		return httpx.BadRequest("run: not the id of a run", `send {"run": "run_…"}`)
	}
	token, expires := a.o.Guard.StreamToken(r.Who, order.Run)
	return w.JSON(http.StatusCreated, streamTokenBody{token, order.Run, expires})
}
