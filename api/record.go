package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/gateway"
	"github.com/ibidhq/ibid/internal/httpx"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/trail"
)

// maxRun is how many bytes the body may have that records a run, steps of it, or spans, before and after it is
// unpacked. How large one step may be is the store's to say.
const maxRun = 32 << 20

// recordedBody says what was recorded.
type recordedBody struct {
	ID      string             `json:"id"`
	Created bool               `json:"created"` // there was nothing of the run before
	Steps   []recordedStepBody `json:"steps"`
	Issues  []ibid.Issue       `json:"issues"` // what was odd about the body
}

type recordedStepBody struct {
	Number   *int    `json:"step_number"` // null: it gets one when the run is read
	ID       *string `json:"id"`
	Created  bool    `json:"created"`
	Replaced bool    `json:"replaced"`
}

// newRun records a run: what is known of it at its beginning, or all of it.
func (a *API) newRun(w *httpx.Reply, r *httpx.Request) error {
	return a.recordBody(w, r, "", func(body []byte) (*store.Recording, error) {
		said, err := readRun(body)
		if err != nil {
			return nil, err
		}
		if said.Run = said.Trail.ID; said.Run == "" {
			said.Run = gateway.NewRunID()
		}
		if err := a.checkAnswer(r, said.AnswerID); err != nil {
			return nil, err
		}
		if t := said.Trail; len(t.Steps) > 0 && (t.Answer != "" || t.Final != nil || said.AnswerID != "") {
			said.Finish = true // all of it was posted at once: it ended with its last step, where that is known
			var ended time.Time
			for i := range t.Steps {
				s := &t.Steps[i]
				if end := s.Started.Add(s.Duration); !s.Started.IsZero() && end.After(ended) {
					ended = end
				}
			}
			if t.Finished.IsZero() {
				t.Finished = ended
			}
		}
		return said, a.publishRun(r, said)
	})
}

// newSteps records steps of a run.
func (a *API) newSteps(w *httpx.Reply, r *httpx.Request) error {
	return a.recordBody(w, r, r.PathValue("id"), func(body []byte) (*store.Recording, error) {
		steps, err := trail.ReadSteps(body)
		if err != nil {
			return nil, badRun(err)
		}
		return &store.Recording{Trail: &trail.Trail{Steps: steps}}, nil
	})
}

// finishRun records that a run has ended, and its final answer.
func (a *API) finishRun(w *httpx.Reply, r *httpx.Request) error {
	a.reader.CatchUp(r.Context()) // what is published of a run that has ended should have its last answer
	return a.recordBody(w, r, r.PathValue("id"), func(body []byte) (*store.Recording, error) {
		if len(bytes.TrimSpace(body)) == 0 {
			body = []byte("{}")
		}
		said, err := readRun(body)
		if err != nil {
			return nil, err
		}
		if id := said.Trail.ID; id != "" && id != r.PathValue("id") {
			return nil, aboutAnotherRun("id", id)
		}
		said.Finish, said.Run = true, r.PathValue("id")
		if err := a.checkAnswer(r, said.AnswerID); err != nil {
			return nil, err
		}
		return said, a.publishRun(r, said)
	})
}

// publishRun says whether a run that has its final answer is to be published. As its header says, else as the token
// does; but without a header, captured calls say so for themselves: what they kept back stays back.
func (a *API) publishRun(r *httpx.Request, said *store.Recording) error {
	publish, err := r.Who.Publishes(r.Header)
	ends := said.Finish || said.AnswerID != "" || said.Trail.Answer != "" || said.Trail.Final != nil
	if err != nil || !publish || !ends || a.publisher == nil || a.publisher.Level < 2 {
		return err
	}
	if r.Header.Get(gateway.PublishHeader) == "" && gateway.CheckID(said.Run) == "" {
		a.reader.CatchUp(r.Context())
		ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
		defer cancel()
		run, err := a.store.Run(ctx, r.Who.Tenant, said.Run, &store.Query{Limit: 1})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return httpx.StoreError("read a run", err)
		}
		publish = err != nil || run.Answers == 0
	}
	said.Publish = publish
	return nil
}

// recordBody reads a body, stores what it says of a run, and answers with what became of it. The run is that of id,
// else the one that read names.
func (a *API) recordBody(
	w *httpx.Reply, r *httpx.Request, id string, read func(body []byte) (*store.Recording, error),
) error {
	body, release, err := a.bodies.Read(w, r, maxRun)
	if err != nil {
		return err
	}
	defer release()
	if err := checkRun(body, id); err != nil {
		return err
	}
	valid := utf8.Valid(body)
	if !valid {
		body = bytes.ToValidUTF8(body, []byte("\ufffd"))
	}
	said, err := read(body)
	if err != nil {
		return err
	}
	if id != "" {
		said.Run = id
	}
	if !valid {
		said.Trail.Issues = append(said.Trail.Issues, ibid.Issue{
			Code: issueNotUTF8, Detail: "the body has bytes that are not UTF-8; they are replacement characters now",
		})
	}
	if why := gateway.CheckID(said.Run); why != "" {
		return httpx.BadRequest(
			fmt.Sprintf("id: %q cannot be that of a run: %s", httpx.Said(said.Run), why),
			"leave it out, and the run gets one",
		)
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	if a.o.Choose != nil && said.Trail.Strategy == "" {
		if s := a.o.Choose(said.Run); s != nil {
			said.Trail.Strategy = s.ID()
		}
	}
	done, err := a.store.Record(ctx, r.Who.Tenant, said)
	if err != nil {
		return httpx.StoreError("record a run", err)
	}
	a.o.Bus.Wake()
	status, shown := http.StatusOK, recordedBody{
		ID:      said.Run,
		Created: done.Created,
		Steps:   []recordedStepBody{},
		Issues:  append([]ibid.Issue{}, said.Trail.Issues...), // what was odd about it when it was read
	}
	for i := range said.Trail.Steps {
		shown.Issues = append(shown.Issues, said.Trail.Steps[i].Issues...)
	}
	if done.Created {
		status = http.StatusCreated
	}
	for _, s := range done.Steps {
		if s.Created {
			status = http.StatusCreated
		}
		shown.Steps = append(
			shown.Steps, recordedStepBody{httpx.OrNull(s.Number), httpx.OrNull(s.ID), s.Created, s.Replaced})
	}
	return w.JSON(status, shown)
}

// issueNotUTF8 is the code of the issue that a body is no text.
const issueNotUTF8 = "invalid-utf8"

// checkRun says where a body is not made of JSON values, or has a step that cannot be recorded of the run. From a file
// what is whole would be taken; a client can send the rest again.
func checkRun(body []byte, run string) error {
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // some editors begin a file with it
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil:
			if err := checkSteps(value, run); err != nil {
				return err
			}
		default:
			bad := len(body) - len(bytes.TrimLeft(body[d.InputOffset():], " \t\r\n"))
			line := 1 + bytes.Count(body[:bad], []byte("\n"))
			return httpx.BadRequest(
				fmt.Sprintf("line %d and what follows is not JSON: %v", line, err),
				"nothing was recorded; send one object, an array of them, or one a line",
			)
		}
	}
}

// checkSteps says what is wrong with the steps in a value: with one of them, a list of them, or a run. What has another
// form is for whoever reads it.
func checkSteps(value json.RawMessage, run string) error {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		for i, step := range list {
			if err := checkStep(step, run, fmt.Sprintf("[%d].", i)); err != nil {
				return err
			}
		}
		return nil
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(value, &members) // of what is no object there are none
	for _, name := range []string{"reasoning_steps", "steps"} {
		if json.Unmarshal(members[name], &list) != nil {
			continue
		}
		for i, step := range list {
			if err := checkStep(step, run, fmt.Sprintf("%s[%d].", name, i)); err != nil {
				return err
			}
		}
	}
	return checkStep(value, run, "")
}

// checkStep says what is wrong with the number and the run of a step. Zero is no number: it would be the one of a step
// without.
func checkStep(value json.RawMessage, run, place string) error {
	var step struct {
		RunID  json.RawMessage `json:"run_id"`
		Run    json.RawMessage `json:"run"`
		Number json.RawMessage `json:"step_number"`
		Step   json.RawMessage `json:"step"`
	}
	_ = json.Unmarshal(value, &step) // what is no object has none of these
	for _, of := range []struct {
		name string
		raw  json.RawMessage
	}{{"step_number", step.Number}, {"step", step.Step}} {
		if n, err := strconv.ParseFloat(strings.Trim(string(of.raw), "\" "), 64); err == nil && n == 0 {
			return httpx.BadRequest(
				place+of.name+": steps are numbered from 1",
				"count from 1, or leave the numbers out: a step without one is the next",
			)
		}
	}
	for _, of := range []struct {
		name string
		raw  json.RawMessage
	}{{"run_id", step.RunID}, {"run", step.Run}} {
		if id, err := strconv.Unquote(string(of.raw)); err == nil && run != "" && id != "" && id != run {
			return aboutAnotherRun(place+of.name, id)
		}
	}
	return nil
}

// aboutAnotherRun says that a body names a run that is not the one of the path.
func aboutAnotherRun(name, id string) error {
	return httpx.BadRequest(
		fmt.Sprintf("%s: the body is about the run %q", name, httpx.Said(id)), "leave it out: the path has it")
}

// readRun reads a run in any form that package trail knows. Besides it may have an answer_id, and it need not have
// anything.
func readRun(body []byte) (*store.Recording, error) {
	said := &store.Recording{}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) == nil && members != nil { // else it is a list or lines of steps, or wrong
		if raw, ok := members["answer_id"]; ok && json.Unmarshal(raw, &said.AnswerID) != nil {
			return nil, httpx.BadRequest("answer_id: it must be a string", "")
		}
		delete(members, "answer_id")
		if members["reasoning_steps"] == nil && members["steps"] == nil {
			members["reasoning_steps"] = json.RawMessage("[]") // by this it is known as a run
		}
		var err error
		if body, err = json.Marshal(members); err != nil {
			return nil, err
		}
	}
	t, err := trail.Read(body)
	if err != nil {
		return nil, badRun(err)
	}
	if said.AnswerID != "" && (t.Answer != "" || t.Final != nil) {
		return nil, httpx.BadRequest(
			"both final_answer and answer_id say which the final answer is", "send one of them")
	}
	said.Trail = t
	return said, nil
}

// badRun says what is wrong with a body.
func badRun(err error) error {
	if errors.Is(err, trail.ErrLimit) {
		return gateway.NewProblem(gateway.CodeTooLarge, err.Error(), "send it in several parts")
	}
	return httpx.BadRequest(err.Error(), "the names are those of docs/trail.md: "+
		`{"step_number": 1, "question": "…", "intermediate_answer": "…", `+
		`"source_attributions": [{"document_id": "…", "relevance_score": 0.9}]}`)
}

// checkAnswer says that there is no such answer: a final answer that nobody finds is a mistake that shows too late
// otherwise.
func (a *API) checkAnswer(r *httpx.Request, id string) error {
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	_, err := a.reader.Call(ctx, r.Who.Tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return httpx.BadRequest(
			fmt.Sprintf("answer_id: there is no answer %q", httpx.Said(id)),
			"it is the Ibid-Answer of a response; final_answer takes a text",
		)
	}
	return err
}
