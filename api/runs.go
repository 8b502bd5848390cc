package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// runItem is a run in a list.
type runItem struct {
	ID         string     `json:"id"`
	Agent      *string    `json:"agent"`
	Question   *string    `json:"original_question"` // in a list its beginning
	Strategy   *string    `json:"strategy"`
	StartedAt  *time.Time `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at"`       // when the last thing of it that is known ended
	FinishedAt *time.Time `json:"finished_at"`    // when the agent said that it ended
	Answers    int        `json:"answers"`        // how many
	Recorded   int        `json:"recorded_steps"` // how many
}

// runBody is a run with its steps as JSON.
type runBody struct {
	runItem

	Parent     *string    `json:"parent_run_id"`
	Final      *string    `json:"final_answer"`
	AnswerID   *string    `json:"answer_id"`
	Steps      []stepBody `json:"steps"`
	NextCursor *string    `json:"next_cursor"` // of the page with the steps before these
}

// stepBody is a step: the answer that it led to, or what was recorded of it. Several calls that named the same step
// have one element each, and so has what was recorded of it.
type stepBody struct {
	Number   *int        `json:"number"`
	Tool     *string     `json:"tool"`
	After    []int       `json:"after"`
	AnswerID *string     `json:"answer_id"`
	Answer   *answerBody `json:"answer"`
	Recorded *trail.Step `json:"recorded"`
}

// runs lists runs, the one with the latest call or record first.
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

// run shows a run with its latest steps: each one's answer with its sources, and what was recorded of it.
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
	return writeJSON(w, r, http.StatusOK, runBody{
		showRun(
			run,
		),
		orNull(run.Parent), orNull(run.Answer), orNull(run.AnswerID), showSteps(run, opts), orNull(run.Next),
	})
}

func showRun(run *store.Run) runItem {
	return runItem{
		run.ID, orNull(run.Agent), orNull(run.Question), orNull(run.Strategy), timeOrNull(run.Started),
		timeOrNull(run.Ended), timeOrNull(run.Finished), run.Answers, run.Recorded,
	}
}

// showSteps shows the steps of a page by their numbers, what was recorded of one before its answers.
func showSteps(run *store.Run, opts ibid.DocumentOptions) []stepBody {
	all := make([]stepBody, 0, len(run.Calls)+len(run.Recordings))
	for i := range run.Recordings {
		s := &run.Recordings[i]
		all = append(all, stepBody{orNull(s.Number), orNull(s.Tool), s.After, nil, nil, s})
	}
	calls := run.Calls // by step
	for _, step := range run.Steps {
		for ; len(calls) > 0 && calls[0].Step.Number == step.Number; calls = calls[1:] {
			answer := showCall(calls[0], opts)
			all = append(
				all,
				stepBody{orNull(step.Number), orNull(step.Tool), step.After, &calls[0].AnswerID, &answer, nil},
			)
		}
	}
	slices.SortStableFunc(all, func(a, b stepBody) int {
		if a.Number == nil || b.Number == nil { // those without come last
			return cmp.Compare(flag(a.Number == nil), flag(b.Number == nil))
		}
		return cmp.Compare(*a.Number, *b.Number)
	})
	return all
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
