package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ibidhq/ibid/store"
)

// runItem is a run in a list.
type runItem struct {
	ID        string     `json:"id"`
	Agent     *string    `json:"agent"`
	StartedAt *time.Time `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"` // when its last answer so far was there
	Answers   int        `json:"answers"`  // how many
}

// runBody is a run with its steps as JSON.
type runBody struct {
	runItem

	Steps      []stepBody `json:"steps"`
	NextCursor *string    `json:"next_cursor"` // of the page with the steps before these
}

// stepBody is a step with the answer that it led to. Several calls that named the same step have one element each.
type stepBody struct {
	Number   int         `json:"number"`
	Tool     *string     `json:"tool"`
	After    []int       `json:"after"`
	AnswerID string      `json:"answer_id"`
	Answer   *answerBody `json:"answer"`
}

// runs lists runs, the one with the latest call first.
func (a *API) runs(w http.ResponseWriter, r *request) error {
	query, err := r.params.query()
	if err != nil {
		return err
	}
	runs, next, err := list(a, r, "list runs", func(ctx context.Context) (*store.Page[store.Run], error) {
		return a.store.Runs(ctx, r.who.Tenant, query)
	}, showRun)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, struct {
		Runs       []runItem `json:"runs"`
		NextCursor *string   `json:"next_cursor"`
	}{runs, next})
}

// run shows a run with its latest steps, and each step's answer with its sources.
func (a *API) run(w http.ResponseWriter, r *request) error {
	opts, err := r.params.document()
	if err != nil {
		return err
	}
	query, err := r.params.page(maxLimit)
	if err != nil {
		return err
	}
	id, err := r.pathID()
	if err != nil {
		return err
	}
	ctx, cancel := within(r)
	defer cancel()
	a.settle(ctx)
	run, err := a.store.Run(ctx, r.who.Tenant, id, query)
	if err != nil {
		return storeError("read a run", err)
	}
	body := runBody{showRun(run), []stepBody{}, orNull(run.Next)}
	calls := run.Calls // by step
	for _, step := range run.Steps {
		for ; len(calls) > 0 && calls[0].Step.Number == step.Number; calls = calls[1:] {
			answer := showCall(calls[0], opts)
			body.Steps = append(body.Steps, stepBody{step.Number, orNull(step.Tool), step.After, calls[0].AnswerID, &answer})
		}
	}
	return writeJSON(w, r, http.StatusOK, body)
}

func showRun(run *store.Run) runItem {
	return runItem{run.ID, orNull(run.Agent), timeOrNull(run.Started), timeOrNull(run.Ended), run.Answers}
}
