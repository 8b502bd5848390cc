package api

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// incidents lists what failed, the last that was recorded first.
func (a *API) incidents(w http.ResponseWriter, r *request) error {
	query, err := r.params.query()
	if err != nil {
		return err
	}
	sum := strings.TrimPrefix(r.params["manifest"], "sha256:")
	if b, err := hex.DecodeString(sum); sum != "" && (err != nil || len(b) != 32) {
		return badRequest(
			"manifest: it is not the SHA-256 of a manifest's body", "64 hexadecimal digits, with or without sha256:",
		)
	}
	q := &store.IncidentQuery{
		Manifest: strings.ToLower(
			sum,
		),
		Source:   r.params["source"],
		Status:   r.params["status"],
		AnswerID: r.params["answer"],
		Cursor:   query.Cursor,
		Limit:    query.Limit,
	}
	items, next, err := list(a, r, "list incidents", func(ctx context.Context) (*store.Page[verify.Incident], error) {
		return a.store.Incidents(ctx, r.who.Tenant, q)
	}, func(i *verify.Incident) verify.Incident { return *i })
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, struct {
		Incidents  []verify.Incident `json:"incidents"`
		NextCursor *string           `json:"next_cursor"`
	}{items, next})
}
