package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ibidhq/ibid/store"
)

// maxOrder is how long the JSON of a request for a token can be, in bytes.
const maxOrder = 64 << 10

// tokenBody is a token as JSON. Its secret is shown once, when it is made.
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
		ID: t.ID, Tenant: t.Tenant, Name: t.Name, Scopes: orEmpty(t.Scopes), Publish: t.Publish,
		CreatedAt: t.Created.UTC(), RevokedAt: timeOrNull(t.Revoked),
	}
}

// mayManage reports whether an administrator is one of that tenant. The tenant default is the operator's: its
// administrators manage the tokens of all.
func mayManage(r *request, tenant string) bool {
	return r.who.Tenant == tenant || r.who.Tenant == store.DefaultTenant
}

// tokens lists the tokens that the caller manages, revoked ones too.
func (a *API) tokens(w http.ResponseWriter, r *request) error {
	ctx, cancel := within(r)
	defer cancel()
	all, err := a.store.Tokens(ctx)
	if err != nil {
		return storeError("list tokens", err)
	}
	body := struct {
		Tokens []tokenBody `json:"tokens"`
	}{[]tokenBody{}}
	for i := range all {
		if mayManage(r, all[i].Tenant) {
			body.Tokens = append(body.Tokens, showToken(&all[i]))
		}
	}
	return writeJSON(w, r, http.StatusOK, body)
}

// newToken makes a token. The first one closes the doors.
func (a *API) newToken(w http.ResponseWriter, r *request) error {
	var order struct {
		Name    string   `json:"name"`
		Tenant  string   `json:"tenant"`
		Scopes  []string `json:"scopes"`
		Publish bool     `json:"publish"`
	}
	if err := readJSON(w, r, &order); err != nil {
		return err
	}
	if order.Tenant == "" {
		order.Tenant = r.who.Tenant
	}
	if !mayManage(r, order.Tenant) {
		return badRequest(
			"tenant: it is not that of the access token",
			"only administrators of the tenant default make tokens of others",
		)
	}
	slices.Sort(order.Scopes)
	t := &store.Token{
		Tenant:  order.Tenant,
		Name:    order.Name,
		Scopes:  slices.Compact(order.Scopes),
		Publish: order.Publish,
	}
	if err := t.Check(); err != nil {
		return badRequest(err.Error(), "")
	}
	ctx, cancel := within(r)
	defer cancel()
	secret, err := a.store.NewToken(ctx, t)
	if err != nil {
		return storeError("make a token", err)
	}
	a.guard.Forget()
	body := showToken(t)
	body.Secret = secret
	return writeJSON(w, r, http.StatusCreated, body)
}

// revokeToken makes a token invalid: here at once, on other nodes within 30 seconds.
func (a *API) revokeToken(w http.ResponseWriter, r *request) error {
	id, err := r.pathID()
	if err != nil {
		return err
	}
	ctx, cancel := within(r)
	defer cancel()
	all, err := a.store.Tokens(ctx)
	if err != nil {
		return storeError("list tokens", err)
	}
	if !slices.ContainsFunc(all, func(t store.Token) bool { return t.ID == id && mayManage(r, t.Tenant) }) {
		return store.ErrNotFound
	}
	if err := a.store.RevokeToken(ctx, id); err != nil {
		return storeError("revoke a token", err)
	}
	a.guard.Forget()
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// streamToken makes a token for the events of one run, to stand in the URL of an EventSource.
func (a *API) streamToken(w http.ResponseWriter, r *request) error {
	var order struct {
		Run string `json:"run"`
	}
	if err := readJSON(w, r, &order); err != nil {
		return err
	}
	if order.Run == "" || len(order.Run) > maxID || !isClean(order.Run) {
		return badRequest("run: it is not a run's id", `send {"run": "run_…"}`)
	}
	token, expires := a.guard.StreamToken(r.who, order.Run)
	return writeJSON(w, r, http.StatusCreated, struct {
		AccessToken string    `json:"access_token"`
		Run         string    `json:"run"`
		ExpiresAt   time.Time `json:"expires_at"`
	}{token, order.Run, expires})
}

// readJSON reads a small JSON object from the request's body.
func readJSON(w http.ResponseWriter, r *request, v any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("something follows the object")
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return large
	}
	why := cut(strings.TrimPrefix(err.Error(), "json: "))
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its words are about Go
		why = fmt.Sprintf("%s: it must not be a JSON %s", cmp.Or(cut(kind.Field), "all of it"), kind.Value)
	}
	return badRequest("the body is not the JSON object that is needed: "+why, "docs/http.md lists its members")
}
