package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/trail"
)

// record is a row of records.
type record struct {
	n, number, started int64 // n is 0 until it is stored
	id, text           string
	said               bool // in the recording that is under way
}

// recordColumns begins a query for records.
const recordColumns = "SELECT n, number, started, id, record FROM "

func scanRecord(rows *sql.Rows) (*record, error) {
	r := &record{}
	err := rows.Scan(&r.n, &r.number, &r.started, &r.id, &r.text)
	return r, err
}

// load reads what is stored of the run itself and of the steps that are named.
func (w *recorder) load(ctx context.Context, r *Recording) error {
	if w.run.recorded == 0 {
		return nil
	}
	ids, numbers := [][]any{{w.run.tenant, w.run.id, headID}}, [][]any{}
	for i := range r.Trail.Steps {
		s := &r.Trail.Steps[i]
		if s.ID != "" {
			ids = append(ids, []any{w.run.tenant, w.run.id, recordID(s)})
		}
		if s.Number != 0 {
			numbers = append(numbers, []any{w.run.tenant, w.run.id, s.Number})
		}
	}
	known := map[int64]*record{}
	scan := func(rows *sql.Rows) error {
		r, err := scanRecord(rows)
		if err != nil {
			return err
		}
		if known[r.n] == nil {
			known[r.n] = r
			w.byID[r.id] = r
			w.number(r, r.number)
		}
		return nil
	}
	err := w.tx.list(ctx, &tuples{
		before: recordColumns + "(VALUES ",
		row:    "($, $, $)",
		after:  ") AS v JOIN records ON tenant = column1 AND run = column2 AND id = column3",
	}, ids, scan)
	if err != nil {
		return err
	}
	return w.tx.list(ctx, &tuples{
		before: recordColumns + "(VALUES ", row: "($, $, CAST($ AS BIGINT))",
		after: ") AS v JOIN records ON tenant = column1 AND run = column2 AND number = column3 AND number > 0",
	}, numbers, scan)
}

// write stores what the recording has changed.
func (w *recorder) write(ctx context.Context) error {
	t := w.run
	next, err := w.tx.take(ctx, "calls_n", len(w.fresh)+1)
	if err != nil {
		return err
	}
	t.last, t.touched = next[len(w.fresh)], w.now
	t.made = cmp.Or(t.made, w.now)
	values := make([][]any, 0, len(w.fresh))
	for i, r := range w.fresh {
		r.n = next[i]
		values = append(values, []any{r.n, t.tenant, t.id, r.id, r.number, r.started, r.text})
	}
	for _, r := range w.changed {
		_, err := w.tx.ExecContext(
			ctx, "UPDATE records SET number = $1, record = $2 WHERE n = $3", r.number, r.text, r.n,
		)
		if err != nil {
			return err
		}
	}
	err = w.tx.exec(ctx, &tuples{
		before: w.tx.insertInto("records", "n, tenant, run, id, number, started, record"), row: "($, $, $, $, $, $, $)",
	}, values)
	if err != nil {
		return err
	}
	if err := w.tx.addEvents(ctx, w.events); err != nil {
		return err
	}
	return w.tx.putThreads(ctx, runTable(), []*thread{t})
}

// publish notes that the run has ended, if any of it is published or it is to be.
func (w *recorder) publish(ctx context.Context, r *Recording) error {
	ends := r.Finish || r.AnswerID != "" || r.Trail.Answer != "" || r.Trail.Final != nil
	asked := w.pub != "" && ends && (w.answered || w.run.answers > 0)
	if !w.ended && !asked {
		return nil
	}
	pub, err := w.tx.pubOf(ctx, "tenant = $1 AND run = $2", w.run.tenant, w.run.id)
	if pub == "" && asked {
		pub = w.pub
	} else if !w.ended {
		pub = "" // that is noted
	}
	if err != nil || pub == "" {
		return err
	}
	return w.tx.publish(ctx, &publicationKey{pub, w.run.tenant, w.run.id, ""}, statePending, w.now)
}

// step returns the step that a record is of.
func (r *record) step() (*trail.Step, error) {
	s, err := decodeStep(r.text)
	if err == nil {
		s.Number = int(r.number)
	}
	return s, err
}

// stepID returns the id of the step that a record is of; empty: it has none.
func (r *record) stepID() (string, error) {
	id, ok := strings.CutPrefix(r.id, "id:")
	switch {
	case !ok:
		return "", nil
	case !strings.Contains(id, hashMark):
		return id, nil
	}
	s, err := decodeStep(r.text)
	if err != nil {
		return "", err
	}
	return s.ID, nil
}

// encodeStep returns the record of a step.
func encodeStep(s *trail.Step) (string, error) {
	b, err := json.Marshal(s)
	return plain(string(b)), err
}

// decodeStep reads the record of a step. Its issues are those that it had, and not what reading it finds again.
func decodeStep(text string) (*trail.Step, error) {
	s := &trail.Step{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("%w: a recorded step: %w", errDamaged, err)
	}
	var err error
	s.Issues, err = issuesOf(text, s.Issues)
	return s, err
}

// issuesOf returns the issues that a record has. Found are those of reading it.
func issuesOf(text string, found []ibid.Issue) ([]ibid.Issue, error) {
	if len(found) == 0 {
		return nil, nil
	}
	var record struct{ Issues []ibid.Issue }
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return nil, fmt.Errorf("%w: the issues of a record: %w", errDamaged, err)
	}
	return record.Issues, nil
}

// stepEvent is the data of an [EventStep].
type stepEvent struct {
	Step     *int    `json:"step"`
	ID       *string `json:"id"`
	Tool     *string `json:"tool"`
	Sources  int     `json:"sources"`
	Cited    int     `json:"cited"`
	Error    bool    `json:"error"`
	Replaced bool    `json:"replaced"`
}

// finishEvent is the data of an [EventFinish].
type finishEvent struct {
	AnswerID *string `json:"answer_id"`
	Answered bool    `json:"answered"`
}

func newStepEvent(s *trail.Step, replaced bool) *stepEvent {
	e := &stepEvent{
		Step: orNoNumber(
			s.Number,
		),
		ID:       nullable(s.ID),
		Tool:     nullable(s.Tool),
		Sources:  len(s.Sources),
		Error:    s.Error != "",
		Replaced: replaced,
	}
	for i := range s.Sources {
		if s.Sources[i].Cited {
			e.Cited++
		}
	}
	return e
}

func orNoNumber(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// tell writes down an event of the run.
func (w *recorder) tell(kind string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	w.run.seq++
	w.events = append(
		w.events,
		Event{Tenant: w.run.tenant, Run: w.run.id, Seq: w.run.seq, Kind: kind, At: time.UnixMicro(w.now), Data: b},
	)
	return nil
}
