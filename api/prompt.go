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
	// maxPrompt limits the bytes of the documents for a prompt.
	maxPrompt = 8 << 20
	// maxPromptSources limits the stored sources of a prompt.
	maxPromptSources = 100
)

// promptRequest is the input of a prompt block: documents, followed by sources of stored answers.
type promptRequest struct {
	Documents json.RawMessage `json:"documents"` // an array, as for decoding
	Sources   []string        `json:"sources"`   // keys, global ids or URLs, as in GET /v1/sources
}

// promptBody is the prompt block.
type promptBody struct {
	Prompt string `json:"prompt"`
}

// prompt formats documents and stored sources as XML for a prompt.
func (a *API) prompt(w *httpx.Reply, r *httpx.Request) error {
	const hint = `send {"documents": […], "sources": ["KEY", …]}, with at least one of them`
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
			return httpx.BadRequest(err.Error(), "documents are strings, flat objects, or objects with id and data")
		}
	}
	switch {
	case len(list)+len(q.Sources) == 0:
		return httpx.BadRequest("there are neither documents nor sources", hint)
	case slices.Contains(q.Sources, ""):
		return httpx.BadRequest("sources: one of them is empty", hint)
	case len(q.Sources) > maxPromptSources:
		return httpx.BadRequest(
			fmt.Sprintf("sources: more than %d", maxPromptSources), "send several requests",
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
	return nil, gateway.NewProblem(gateway.CodeNotFound, fmt.Sprintf("no such source: %q", httpx.Said(id)),
		"GET /v1/sources?id= or ?url= lists the answers that have a source")
}
