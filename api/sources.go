package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ibidhq/ibid/store"
)

// sourceBody says that an answer has a source, as JSON.
type sourceBody struct {
	Key          string               `json:"key"`
	URL          *string              `json:"url"`
	Title        *string              `json:"title"`
	AnswerID     string               `json:"answer_id"`
	Conversation *string              `json:"conversation"`
	Run          *string              `json:"run"`
	StartedAt    time.Time            `json:"started_at"`
	Citations    []sourceCitationBody `json:"citations"`
}

type sourceCitationBody struct {
	CitedText *string `json:"cited_text"`
	Quote     *string `json:"quote"`
}

// sources lists which answers used a source.
func (a *API) sources(w http.ResponseWriter, r *request) error {
	if r.params["url"] == "" && r.params["id"] == "" {
		return badRequest("neither url nor id says which source", "/v1/sources?url=https://…")
	}
	query, err := r.params.query()
	if err != nil {
		return err
	}
	uses, next, err := list(
		a, r, "list the uses of a source",
		func(ctx context.Context) (*store.Page[store.SourceUse], error) {
			return a.store.Sources(ctx, r.who.Tenant, &store.SourceQuery{
				URL: r.params["url"], ID: r.params["id"], Cursor: query.Cursor, Limit: query.Limit,
			})
		},
		showUse,
	)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, struct {
		Sources    []sourceBody `json:"sources"`
		NextCursor *string      `json:"next_cursor"`
	}{uses, next})
}

func showUse(u *store.SourceUse) sourceBody {
	body := sourceBody{
		Key:          u.Key,
		URL:          orNull(u.URL),
		Title:        orNull(u.Title),
		AnswerID:     u.AnswerID,
		Conversation: orNull(u.Conversation),
		Run:          orNull(u.Run),
		StartedAt:    u.Started.UTC(),
		Citations:    []sourceCitationBody{},
	}
	for _, c := range u.Citations {
		body.Citations = append(body.Citations, sourceCitationBody{orNull(c.CitedText), orNull(c.Quote)})
	}
	return body
}
