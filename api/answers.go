package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/export"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
)

// answers lists answers, the last stored first.
func (a *API) answers(w http.ResponseWriter, r *request) error {
	query, err := r.params.query()
	if err != nil {
		return err
	}
	opts, err := r.params.document()
	if err != nil {
		return err
	}
	answers, next, err := list(a, r, "list answers", func(ctx context.Context) (*store.Page[*store.Call], error) {
		return a.store.Calls(ctx, r.who.Tenant, query)
	}, func(c **store.Call) answerBody { return showCall(*c, opts) })
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, struct {
		Answers    []answerBody `json:"answers"`
		NextCursor *string      `json:"next_cursor"`
	}{answers, next})
}

// list reads a page of what the store has, once what was captured before is in it, and shows its items. What was being
// done, it says where it fails. The cursor is of the page that follows.
func list[T, B any](
	a *API, r *request, doing string, read func(context.Context) (*store.Page[T], error), show func(*T) B,
) (items []B, next *string, err error) {
	ctx, cancel := within(r)
	defer cancel()
	a.settle(ctx)
	page, err := read(ctx)
	if err != nil {
		return nil, nil, storeError(doing, err)
	}
	items = make([]B, len(page.Items)) // not nil: an empty list is [], not null
	for i := range page.Items {
		items[i] = show(&page.Items[i])
	}
	return items, orNull(page.Next), nil
}

// answer shows one answer, as soon as it was captured.
func (a *API) answer(w http.ResponseWriter, r *request) error {
	form, err := r.params.form()
	if err != nil {
		return err
	}
	opts, err := r.params.document()
	if err != nil {
		return err
	}
	id, err := r.pathID()
	if err != nil {
		return err
	}
	call, err := a.findCall(r, id)
	if err != nil {
		return err
	}
	body, err := renderCall(call, form, opts)
	if err != nil {
		return err
	}
	if form == asJSON {
		a.cite(w.Header(), r, call)
	}
	writeTagged(w, r, mediaType(form), body)
	return nil
}

func (a *API) findCall(r *request, id string) (*store.Call, error) {
	ctx, cancel := within(r)
	defer cancel()
	return a.callOf(ctx, r.who.Tenant, id)
}

func renderCall(call *store.Call, form string, opts ibid.DocumentOptions) ([]byte, error) {
	if form != asJSON {
		return renderAnswer(call.Answer, form, &export.Options{Unit: opts.Unit, ID: call.AnswerID})
	}
	return encode(showCall(call, opts))
}

// deleteAnswer removes an answer with what was derived from it.
func (a *API) deleteAnswer(w http.ResponseWriter, r *request) error {
	id, err := r.pathID()
	if err != nil {
		return err
	}
	ctx, cancel := within(r)
	defer cancel()
	a.settle(ctx) // what is not stored yet could not be deleted
	early := false
	if a.gateway != nil { // asked before the store: while that is being deleted from, the answer may get there
		_, early = a.gateway.Find(r.who.Tenant, id)
	}
	err = a.store.Delete(ctx, r.who.Tenant, id)
	if early && errors.Is(err, store.ErrNotFound) {
		return gateway.Unavailable("the answer is not in the store yet, and could not be deleted from it")
	}
	if err != nil {
		return storeError("delete an answer", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
