package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
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

// maxRun limits the body that records a run, steps or spans, before and after decompression. The store limits the size
// of a step.
const maxRun = 32 << 20

// recordMemory is how many bytes of memory each byte of a recorded run takes besides itself.
const recordMemory = 6

// recordedBody is the result of a recording.
type recordedBody struct {
	ID      string             `json:"id"`
	Created bool               `json:"created"` // the run was new
	Steps   []recordedStepBody `json:"steps"`
	Issues  []ibid.Issue       `json:"issues"` // found when the body was read
}

type recordedStepBody struct {
	Number   *int    `json:"step_number"` // null if it is numbered when the run is read
	ID       *string `json:"id"`
	Created  bool    `json:"created"`
	Replaced bool    `json:"replaced"`
}

// newRun records a run: as much as is known when it begins, or all of it.
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
			said.Finish = true // posted all at once: it ended with its last step, if that has a time
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
	a.reader.CatchUp(r.Context()) // so that the published manifest of a finished run includes its last answer
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

// publishRun sets whether a finished run is published: as its header says, else as its token does. Without a header, a
// run with captured calls is left to these: what they withheld is not published.
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

// recordBody reads a body, records its contents and returns the result. The run is that of id, else the one that read
// returns.
func (a *API) recordBody(
	w *httpx.Reply, r *httpx.Request, id string, read func(body []byte) (*store.Recording, error),
) error {
	body, release, err := a.bodies.Read(w, r, maxRun)
	if err != nil {
		return err
	}
	defer release()
	parsed, err := a.bodies.HoldWork(r.Who, len(body), recordMemory)
	if err != nil {
		return err
	}
	defer parsed()
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
			Code: issueNotUTF8, Detail: "bytes that are not UTF-8 were replaced with replacement characters",
		})
	}
	if why := gateway.CheckID(said.Run); why != "" {
		return httpx.BadRequest(
			fmt.Sprintf("id: %q is not a valid run id: %s", httpx.Said(said.Run), why),
			"leave it out to have one generated",
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
		Issues:  append([]ibid.Issue{}, said.Trail.Issues...), // found when it was read
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

// issueNotUTF8 is the code of the issue that a body is not valid UTF-8.
const issueNotUTF8 = "invalid-utf8"

// checkRun returns an error if a body is not a sequence of JSON values, or has a step that cannot be recorded in the
// run. A file would be read as far as possible; a client can send it again.
func checkRun(body []byte, run string) error {
	body = bytes.TrimPrefix(body, []byte("\ufeff")) // a byte order mark, which some editors write
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
				fmt.Sprintf("not JSON from line %d on: %v", line, err),
				"nothing was recorded; send one object, an array of objects, or one object per line",
			)
		}
	}
}

// checkSteps checks the steps in a value: a single step, a list of steps, or a run. Other forms are left to the reader
// of the value.
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
	_ = json.Unmarshal(value, &members) // only objects have members
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

// checkStep checks the number and the run of a step. Zero is refused as a number, since it would mean that the step has
// none.
func checkStep(value json.RawMessage, run, place string) error {
	var step struct {
		RunID  json.RawMessage `json:"run_id"`
		Run    json.RawMessage `json:"run"`
		Number json.RawMessage `json:"step_number"`
		Step   json.RawMessage `json:"step"`
	}
	_ = json.Unmarshal(value, &step) // only objects have members
	for _, of := range []struct {
		name string
		raw  json.RawMessage
	}{{"step_number", step.Number}, {"step", step.Step}} {
		if n, err := strconv.ParseFloat(strings.Trim(string(of.raw), "\" "), 64); err == nil && n == 0 {
			return httpx.BadRequest(
				place+of.name+": steps are numbered from 1",
				"count from 1, or leave the number out: such a step comes next",
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

// aboutAnotherRun returns the problem of a body that names a run other than that of the path.
func aboutAnotherRun(name, id string) error {
	return httpx.BadRequest(
		fmt.Sprintf("%s: the body names another run, %q", name, httpx.Said(id)), "leave it out: it is in the path")
}

// readRun reads a run in any form that package trail accepts, optionally with an answer_id. All members are optional.
func readRun(body []byte) (*store.Recording, error) {
	said := &store.Recording{}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) == nil && members != nil { // else it is a list or lines of steps, or invalid
		if raw, ok := members["answer_id"]; ok && json.Unmarshal(raw, &said.AnswerID) != nil {
			return nil, httpx.BadRequest("answer_id: must be a string", "")
		}
		delete(members, "answer_id")
		if members["reasoning_steps"] == nil && members["steps"] == nil {
			members["reasoning_steps"] = json.RawMessage("[]") // marks it as a run
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
			"final_answer and answer_id cannot be combined", "send one of them")
	}
	if len(t.Steps) == 0 && t.Question == "" && t.Answer == "" && t.Final == nil && said.AnswerID == "" {
		for _, issue := range t.Issues {
			if issue.Code == "result-unread" {
				return nil, httpx.BadRequest("nothing was recorded: "+issue.Detail, runHint)
			}
		}
	}
	if names := unknownOnly(members, t); names != "" && said.AnswerID == "" {
		return nil, httpx.BadRequest("nothing was recorded: a run has none of these members: "+names, runHint)
	}
	said.Trail = t
	return said, nil
}

// unknownOnly returns the members of a run that has no known ones.
func unknownOnly(members map[string]json.RawMessage, t *trail.Trail) string {
	left := len(members)
	if _, marked := members["reasoning_steps"]; marked && len(t.Steps) == 0 {
		left--
	}
	if left == 0 || len(t.Extra) < left || len(t.Issues) > 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(t.Extra))
	return httpx.Said(strings.Join(names[:min(len(names), 10)], ", "))
}

// runHint is the hint for bodies that are no run.
const runHint = "docs/trail.md lists the members: " +
	`{"step_number": 1, "question": "…", "intermediate_answer": "…", ` +
	`"source_attributions": [{"document_id": "…", "relevance_score": 0.9}]}`

// badRun returns the problem of an invalid body.
func badRun(err error) error {
	if errors.Is(err, trail.ErrLimit) {
		return gateway.NewProblem(gateway.CodeTooLarge, err.Error(), "send it in several parts")
	}
	return httpx.BadRequest(err.Error(), runHint)
}

// checkAnswer returns an error if the answer does not exist: otherwise a wrong final answer would be noticed too late.
func (a *API) checkAnswer(r *httpx.Request, id string) error {
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), httpx.StoreTime)
	defer cancel()
	_, err := a.reader.Call(ctx, r.Who.Tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return httpx.BadRequest(
			fmt.Sprintf("answer_id: no such answer: %q", httpx.Said(id)),
			"use the Ibid-Answer of a response; to give a text, use final_answer",
		)
	}
	return err
}
