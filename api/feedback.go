package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// feedbackBody is a feedback as JSON.
type feedbackBody struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	By        *string   `json:"by"`
	AnswerID  *string   `json:"answer_id"`
	Citation  *string   `json:"citation"`
	Run       *string   `json:"run"`
	Step      *int      `json:"step"`
	Source    *string   `json:"source"`
	Verdict   *string   `json:"verdict"`
	Relevance *float64  `json:"relevance"`
	Note      *string   `json:"note"`
}

func showFeedback(f *store.Feedback) feedbackBody {
	return feedbackBody{
		f.ID, f.At, orNull(f.By), orNull(f.AnswerID), orNull(f.Citation), orNull(f.Run), orNull(f.Step),
		orNull(f.Source), orNull(f.Verdict), f.Relevance, orNull(f.Note),
	}
}

// countsBody adds feedback up.
type countsBody struct {
	Verdicts  map[string]int `json:"verdicts"`
	Ratings   int            `json:"ratings"`
	Relevance *float64       `json:"mean_relevance"`
}

// newFeedback stores what a person says of a citation or a source.
func (a *API) newFeedback(w http.ResponseWriter, r *request) error {
	var said struct {
		By        string   `json:"by"`
		AnswerID  string   `json:"answer_id"`
		Citation  string   `json:"citation"`
		Run       string   `json:"run"`
		Step      *int     `json:"step"`
		Source    string   `json:"source"`
		Verdict   string   `json:"verdict"`
		Relevance *float64 `json:"relevance"`
		Note      string   `json:"note"`
	}
	if err := readJSON(w, r, &said); err != nil {
		return err
	}
	f := &store.Feedback{
		By: said.By, AnswerID: said.AnswerID, Citation: said.Citation, Run: said.Run, Source: said.Source,
		Verdict: said.Verdict, Relevance: said.Relevance, Note: said.Note,
	}
	if said.Step != nil {
		if f.Step = *said.Step; f.Step == 0 {
			return badFeedback(errors.New("step: steps are numbered from 1"))
		}
	}
	if err := a.AddFeedback(r.Context(), r.who.Tenant, f); err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusCreated, showFeedback(f))
}

// badFeedback says what is wrong with a feedback.
func badFeedback(err error) error {
	return badRequest(
		err.Error(),
		`{"answer_id": "ans_…", "citation": "…", "verdict": "wrong-source"} or {"run": "…", "step": 1, "source": "…", "relevance": 0.5}`,
	)
}

// AddFeedback stores what somebody who may write says, as POST /v1/feedback does: what it is about must be there. It
// sets the feedback's id and time. The error is one that [gateway.ProblemOf] knows, unless something went wrong inside.
func (a *API) AddFeedback(ctx context.Context, tenant string, f *store.Feedback) error {
	if err := f.Check(); err != nil {
		return badFeedback(err)
	}
	ctx, cancel := context.WithTimeout(ctx, askStore)
	defer cancel()
	early := false
	if f.AnswerID != "" {
		call, err := a.callOf(ctx, tenant, f.AnswerID)
		if err != nil {
			return err
		}
		if f.Citation != "" && !hasCitation(call.Answer, f.Citation) {
			return badRequest(
				fmt.Sprintf("citation: the answer has none with the id %q", cut(f.Citation)),
				"it is the id of a citation in the answer's document",
			)
		}
		if f.Run != "" && f.Run != call.Run {
			return badRequest(
				fmt.Sprintf("run: the answer is not of the run %q", cut(f.Run)),
				"leave it out: the answer has its run",
			)
		}
		early = call.Step.Number == 0
	}
	a.settle(ctx)
	if err := a.checkSubject(ctx, tenant, f); err != nil {
		return err
	}
	err := a.store.AddFeedback(ctx, tenant, f)
	if early && errors.Is(err, store.ErrNotFound) {
		return gateway.Unavailable("the answer is not in the store yet")
	}
	if err != nil {
		return storeError("store feedback", err)
	}
	return nil
}

// callOf returns an answer as soon as it was captured.
func (a *API) callOf(ctx context.Context, tenant, id string) (*store.Call, error) {
	if a.gateway != nil {
		if call, ok := a.gateway.Find(tenant, id); ok {
			return call, nil
		}
	}
	call, err := a.store.Call(ctx, tenant, id)
	if err != nil {
		return nil, storeError("read an answer", err)
	}
	return call, nil
}

// maxChecked is how many bytes may be stored of a run for a feedback's step and source to be looked for in it.
const maxChecked = 8 << 20

// checkSubject says that the run of a feedback has no such step or source. In a run that is too large it is not looked
// for.
func (a *API) checkSubject(ctx context.Context, tenant string, f *store.Feedback) error {
	if f.Run == "" || f.Step == 0 && f.Source == "" {
		return nil
	}
	weight, err := a.store.Weight(ctx, tenant, f.Run)
	if err != nil {
		return storeError("read a run", err)
	}
	if weight > maxChecked {
		return nil
	}
	t, err := a.store.Trail(ctx, tenant, f.Run)
	if err != nil {
		return storeError("read a run", err)
	}
	found := false
	for i := range t.Steps {
		if step := &t.Steps[i]; f.Step == 0 || step.Number == f.Step {
			if found = true; hasSource(step, f.Source) {
				return nil
			}
		}
	}
	p := &gateway.Problem{
		Status: http.StatusNotFound,
		Code:   gateway.CodeNotFound,
		Detail: fmt.Sprintf("source: there is no %q among those of the run or the step", cut(f.Source)),
		Hint:   "it is the document_id or the key of a source; GET /v1/runs/{run}/summary lists them by step",
	}
	if !found {
		p.Detail = fmt.Sprintf("step: the run has no step %d", f.Step)
	}
	return p
}

// hasSource reports whether a step, or a run nested in it, has a source with that id or key; every step has the empty
// one.
func hasSource(s *trail.Step, id string) bool {
	return id == "" ||
		slices.ContainsFunc(s.Sources, func(f trail.Source) bool { return f.DocumentID == id || f.Key == id }) ||
		s.Nested != nil && slices.ContainsFunc(s.Nested.Steps, func(in trail.Step) bool { return hasSource(&in, id) })
}

// hasCitation reports whether the document of an answer has a citation with that id.
func hasCitation(a *ibid.Answer, id string) bool {
	return slices.ContainsFunc(
		a.Document(&ibid.DocumentOptions{Bare: true}).Citations,
		func(c ibid.DocumentCitation) bool { return c.ID == id },
	)
}

// feedback lists what people said, the last first, and counts it.
func (a *API) feedback(w http.ResponseWriter, r *request) error {
	as, err := r.params.choice("as", []string{asJSON, asCSV, asJSONL})
	if err != nil {
		return err
	}
	query, err := r.params.query()
	if err != nil {
		return err
	}
	q := &store.FeedbackQuery{
		AnswerID: r.params["answer"],
		Run:      query.Run,
		Source:   query.Source,
		Strategy: r.params["strategy"],
		Cursor:   query.Cursor,
		Limit:    query.Limit,
	}
	if as != asJSON {
		_, err := a.exportFeedback(w, r.Request, as, &feedbackExport{a: a, tenant: r.who.Tenant, query: *q})
		return err
	}
	var counts *store.FeedbackCounts
	items, next, err := list(a, r, "list feedback", func(ctx context.Context) (*store.Page[store.Feedback], error) {
		if counts, err = a.store.FeedbackCounts(ctx, r.who.Tenant, q); err != nil {
			return nil, err
		}
		return a.store.Feedback(ctx, r.who.Tenant, q)
	}, showFeedback)
	if err != nil {
		return err
	}
	return writeJSON(w, r, http.StatusOK, struct {
		Feedback   []feedbackBody `json:"feedback"`
		Counts     countsBody     `json:"counts"`
		NextCursor *string        `json:"next_cursor"`
	}{items, countsBody{counts.Verdicts, counts.Ratings, counts.Relevance}, next})
}
