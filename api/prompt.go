package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
)

const (
	// maxPrompt is how many bytes the documents for a prompt may have.
	maxPrompt = 8 << 20
	// maxPromptSources is how many stored sources one prompt may have.
	maxPromptSources = 100
)

// promptRequest is what a prompt's block is made of: documents, and behind them sources of stored answers.
type promptRequest struct {
	Documents json.RawMessage `json:"documents"` // an array, as for decoding
	Sources   []string        `json:"sources"`   // keys, global ids or addresses, as GET /v1/sources knows them
}

// promptBody is the block.
type promptBody struct {
	Prompt string `json:"prompt"`
}

// prompt writes documents and stored sources as XML to put into a prompt.
func (a *API) prompt(w *httpx.Reply, r *httpx.Request) error {
	const hint = `the body is {"documents": […], "sources": ["KEY", …]}, with one of them at least`
	body, release, err := a.bodies.Read(w, r, maxPrompt)
	if err != nil {
		return err
	}
	defer release()
	var q promptRequest
	if err := httpx.DecodeJSON(bytes.NewReader(body), &q); err != nil {
		return err
	}
	var list []ibid.Source
	if len(q.Documents) > 0 && string(q.Documents) != "null" {
		if list, err = ibid.ReadDocuments(q.Documents); err != nil {
			return httpx.BadRequest(err.Error(), "documents are strings, flat objects, or objects of id and data")
		}
	}
	switch {
	case len(list)+len(q.Sources) == 0:
		return httpx.BadRequest("there are neither documents nor sources", hint)
	case slices.Contains(q.Sources, ""):
		return httpx.BadRequest("sources: one of them is empty", hint)
	case len(q.Sources) > maxPromptSources:
		return httpx.BadRequest(
			fmt.Sprintf("sources: there are more than %d", maxPromptSources), "ask in several requests",
		)
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	a.reader.CatchUp(ctx)
	seen := map[string]bool{}
	for _, id := range q.Sources {
		s, err := a.storedSource(ctx, r.Who.Tenant, id)
		if err != nil {
			return err
		}
		if !seen[s.Key()] {
			seen[s.Key()] = true
			list = append(list, *s)
		}
	}
	return w.JSON(http.StatusOK, promptBody{ibid.PromptSources(list)})
}

// storedSource returns a source as the latest answer has it.
func (a *API) storedSource(ctx context.Context, tenant, id string) (*ibid.Source, error) {
	q := &store.SourceQuery{ID: id, Limit: 1}
	if strings.HasPrefix(id, "https://") || strings.HasPrefix(id, "http://") {
		q = &store.SourceQuery{URL: id, Limit: 1}
	}
	page, err := a.store.Sources(ctx, tenant, q)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, httpx.StoreError("find a source", err)
	}
	if page != nil && len(page.Items) > 0 {
		use := &page.Items[0]
		call, err := a.store.Call(ctx, tenant, use.AnswerID)
		if err != nil {
			return nil, httpx.StoreError("read an answer", err)
		}
		for i := range call.Answer.Sources {
			if s := &call.Answer.Sources[i]; s.Key() == use.Key {
				return s, nil
			}
		}
	}
	return nil, gateway.NewProblem(gateway.CodeNotFound, fmt.Sprintf("there is no source %q", httpx.Said(id)),
		"GET /v1/sources?id= or ?url= says which answers have it")
}
