package api

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// runItem is a run in a list.
type runItem struct {
	ID         string     `json:"id"`
	Agent      *string    `json:"agent"`
	Question   *string    `json:"original_question"` // in a list, its beginning
	Strategy   *string    `json:"strategy"`
	StartedAt  *time.Time `json:"started_at"`
	EndedAt    *time.Time `json:"ended_at"`       // when its last known call or step ended
	FinishedAt *time.Time `json:"finished_at"`    // when the agent reported its end
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
	NextCursor *string    `json:"next_cursor"` // of the page with earlier steps
}

// stepBody is a step: the answer that it produced, or its recording. A step with several calls has one element for
// each, and one for its recording.
type stepBody struct {
	Number   *int        `json:"number"`
	Tool     *string     `json:"tool"`
	After    []int       `json:"after"` // the steps that it builds on; null means the previous one, or unknown
	AnswerID *string     `json:"answer_id"`
	Answer   *answerBody `json:"answer"`
	Recorded *trail.Step `json:"recorded"`
}

// run returns a run with its latest steps: the answer of each with its sources, and its recording.
func (a *API) run(ctx context.Context, r *httpx.Request) (*runBody, error) {
	id, err := r.PathID()
	if err != nil {
		return nil, err
	}
	a.reader.CatchUp(ctx)
	run, err := a.store.Run(ctx, r.Who.Tenant, id, r.Params.Query())
	if err != nil {
		return nil, err
	}
	return &runBody{
		showRun(r, run), httpx.OrNull(run.Parent), httpx.OrNull(run.Answer), httpx.OrNull(run.AnswerID),
		showSteps(run, documentOptions(r)),
		httpx.OrNull(run.Next),
	}, nil
}

func showRun(_ *httpx.Request, run *store.Run) runItem {
	return runItem{
		run.ID, httpx.OrNull(run.Agent), httpx.OrNull(run.Question), httpx.OrNull(run.Strategy),
		httpx.TimeOrNull(run.Started),
		httpx.TimeOrNull(run.Ended), httpx.TimeOrNull(run.Finished), run.Answers, run.Recorded,
	}
}

// showSteps returns the steps of a page ordered by number, the recording of a step before its answers.
func showSteps(run *store.Run, opts ibid.DocumentOptions) []stepBody {
	all := make([]stepBody, 0, len(run.Calls)+len(run.Recordings))
	for i := range run.Recordings {
		s := &run.Recordings[i]
		all = append(all, stepBody{httpx.OrNull(s.Number), httpx.OrNull(s.Tool), s.After, nil, nil, s})
	}
	calls := run.Calls // by step
	for _, step := range run.Steps {
		for ; len(calls) > 0 && calls[0].Step.Number == step.Number; calls = calls[1:] {
			answer := showCall(calls[0], opts)
			all = append(all, stepBody{
				httpx.OrNull(step.Number), httpx.OrNull(step.Tool), step.After, &calls[0].AnswerID, &answer, nil,
			})
		}
	}
	slices.SortStableFunc(all, func(a, b stepBody) int {
		const last = math.MaxInt // those without a number
		return cmp.Compare(*cmp.Or(a.Number, new(last)), *cmp.Or(b.Number, new(last)))
	})
	return all
}
