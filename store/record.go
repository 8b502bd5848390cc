package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/trail"
)

// What may be recorded of one run. Beyond it [Store.Record] returns [ErrLimit].
const (
	MaxSteps    = 10_000    // steps
	MaxNumber   = 1_000_000 // the highest number of a step
	MaxSources  = 1_000     // sources of one step
	MaxRecord   = 1 << 20   // bytes of one step, and of what is said of the run itself, as JSON
	maxRecorded = 64 << 20  // bytes of all of them
	MaxStepID   = 256       // bytes of the id of a step
)

// maxInList is how many bytes of a question and of an agent's name a list of runs shows.
const maxInList = 1 << 10

// Recording is what an agent says of a run: of the run itself what is given, and any of its steps.
type Recording struct {
	Run string // the run's id; needed
	// Trail has what is said. Its ID is not looked at, and neither are steps that are not in it. What is zero in it was
	// not said and stays as it was, but for steps: each stands for the whole of it. A step is known by its ID, else by
	// its number; with neither it is the run's next.
	Trail *trail.Trail
	// AnswerID names the captured answer that is the run's final one, in the place of Trail.Answer. Empty: not said.
	AnswerID string
	// Finish says that the run has ended: at Trail.Finished, else now, unless it had ended before.
	Finish bool
	// Publish says that the run's final manifest is to be published even if no call of the run is: once it has ended,
	// or its final answer is said, and if it has one. It counts in that recording only.
	Publish bool
	// Partly says that steps that are refused are left out, and the others recorded: for whoever cannot mend them.
	Partly bool
}

// Recorded says what [Store.Record] did.
type Recorded struct {
	Created bool // there was nothing of the run
	Changed bool // of the run itself something was said that was not known
	Steps   []RecordedStep
	Refused int    // with [Recording.Partly]: how many steps were left out
	Why     string // why the first of them was
}

// RecordedStep says what became of a step.
type RecordedStep struct {
	ID       string
	Number   int  // 0: it has an id and no number
	Created  bool // it was not there
	Replaced bool // it was there and said something else; with neither, it was there already
}

// Record stores what an agent says of a run, all of it or, with an error, nothing. It may come in any order, before the
// run's first call and after its end, and again: what is stored already changes nothing and is told by no event. A
// later word about a step takes the place of the earlier one; its number stays if the later one has none.
//
// [ErrConflict] is that a step has the number of another one, or stands twice in the recording with different words;
// [ErrLimit] that there would be more than may be recorded of a run. Both say of which step.
func (s *Store) Record(ctx context.Context, tenant string, r *Recording) (*Recorded, error) {
	if r.Run == "" || tenant == "" {
		return nil, errors.New("recording a run: it has no id or no tenant")
	}
	if r.Trail == nil {
		said := *r
		said.Trail, r = &trail.Trail{}, &said
	}
	var done *Recorded
	var err error
	pub := ""
	if r.Publish {
		pub, err = s.Pub(ctx, tenant, r.Run)
	}
	if n := len(r.Trail.Steps); n > MaxSteps && !r.Partly {
		err = refuse(ErrLimit, "%d steps are more than the %d that a run may have", n, MaxSteps)
	}
	if err == nil {
		err = s.update(ctx, func(tx *transaction) error {
			id := tenantID{lookup(tenant), lookup(r.Run)}
			runs, err := tx.lock(ctx, runTable(), map[tenantID]*group{id: {tenantID: id}}) // it need not be there
			if err != nil {
				return err
			}
			w := &recorder{
				tx: tx, run: runs[0], now: micros(tx.now()), byID: map[string]*record{}, byNumber: map[int64]*record{},
				pub: pub, track: s.track,
			}
			if err := w.record(ctx, r); err != nil {
				return err
			}
			done = &w.done
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("recording run %.60q: %w", r.Run, err)
	}
	return done, nil
}

// stepName says which step is meant, the i-th of those that were given.
func stepName(s *trail.Step, i int) string {
	switch {
	case s.ID != "":
		return fmt.Sprintf("the step with the id %.60q", s.ID)
	case s.Number != 0:
		return fmt.Sprintf("step %d", s.Number)
	}
	return fmt.Sprintf("the step in place %d", i+1)
}

// recorder records in one transaction.
type recorder struct {
	tx   *transaction
	run  *group // it is kept from changing
	now  int64
	done Recorded
	// What is stored of what the recording names, with what is made of it.
	byID     map[string]*record
	byNumber map[int64]*record
	fresh    []*record // that are to be stored
	changed  []*record // that are stored and have changed
	events   []Event
	next     int64  // the highest number of a step, also of those that are still to come
	ended    bool   // the run was said to have ended
	answered bool   // it has a final answer
	pub      string // its public id, if it is to be published; empty: not unless it is
	track    bool   // its sources are to be read again
}

func (w *recorder) record(ctx context.Context, r *Recording) error {
	w.done.Created = w.run.answers == 0 && w.run.recorded == 0
	var said []int64
	for i := range r.Trail.Steps {
		if n := r.Trail.Steps[i].Number; n != 0 {
			said = append(said, int64(n))
		}
	}
	if err := w.tx.giveWay(ctx, w.run, said); err != nil {
		return err
	}
	w.next = w.run.steps
	if err := w.load(ctx, r); err != nil {
		return err
	}
	for i := range r.Trail.Steps {
		err := w.step(&r.Trail.Steps[i], i)
		if refused, ok := errors.AsType[*RefusedError](err); ok && r.Partly {
			w.done.Refused++
			w.done.Why = cmp.Or(w.done.Why, refused.Detail)
		} else if err != nil {
			return err
		}
	}
	if err := w.head(r); err != nil {
		return err
	}
	if len(w.fresh)+len(w.changed) > 0 {
		if err := w.write(ctx); err != nil {
			return err
		}
	}
	return w.publish(ctx, r)
}

// step records one step, the i-th of the recording.
func (w *recorder) step(s *trail.Step, i int) error {
	named, name := *s, stepName(s, i)
	switch {
	case s.Number < 0 || s.Number > MaxNumber:
		return refuse(ErrLimit, "%s: numbers go from 1 to %d", name, MaxNumber)
	case len(s.Sources) > MaxSources:
		const many = "%s: %d sources are more than the %d that it may have"
		return refuse(ErrLimit, many, name, len(s.Sources), MaxSources)
	case len(s.ID) > MaxStepID:
		return refuse(ErrLimit, "%s: its id may have %d bytes", name, MaxStepID)
	}
	old, err := w.find(&named, name)
	if err != nil {
		return err
	}
	id := recordID(&named)
	if named.ID == "" && named.Number == 0 {
		w.next++
		w.run.counted++
		named.Number = int(w.next)
		id = countedID + strconv.Itoa(named.Number)
	}
	if named.Number > MaxNumber {
		return refuse(ErrLimit, "the steps of the run have come to the number %d, which is the highest", MaxNumber)
	}
	withoutChecks(&named, 0)
	encoded, err := json.Marshal(&named)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if old == nil {
		old = &record{id: id, started: cmp.Or(knownMicros(s.Started), w.now)}
	}
	isNew := old.text == ""
	changed, err := w.setRecord(old, name, plain(string(encoded)), int64(named.Number))
	if err != nil {
		return err
	}
	w.run.steps = max(w.run.steps, int64(named.Number))
	w.done.Steps = append(w.done.Steps, RecordedStep{named.ID, named.Number, isNew, changed && !isNew})
	if !changed {
		return nil
	}
	if w.track {
		old.pins = passagesOf(w.run.id, old.id, &named)
	}
	w.seen(s.Started, s.Started.Add(s.Duration))
	event := stepEvent{
		nullable(named.Number), nullable(named.ID), nullable(named.Tool), len(named.Sources), 0, named.Error != "",
		!isNew,
	}
	for i := range named.Sources {
		if named.Sources[i].Cited {
			event.Cited++
		}
	}
	return w.addEvent(EventStep, &event)
}

// find returns what is stored of a step, and completes its identity; nil: nothing is.
func (w *recorder) find(s *trail.Step, name string) (*record, error) {
	old := w.byNumber[int64(s.Number)] // there is none with the number 0
	if s.ID == "" {
		if old == nil {
			return nil, nil
		}
		var err error
		s.ID, err = old.stepID()
		return old, err
	}
	byID := w.byID[recordID(s)]
	if old != nil && old != byID {
		return nil, refuse(ErrConflict, "%s: another step of the run has the number %d", name, s.Number)
	}
	if byID != nil && s.Number == 0 {
		s.Number = int(byID.number)
	}
	return byID, nil
}

// setRecord gives a record a text and a number, and reports whether that is new. Name says what it is, for people.
func (w *recorder) setRecord(r *record, name, text string, number int64) (changed bool, err error) {
	if len(text) > MaxRecord {
		return false, refuse(
			ErrLimit, "%s: %d bytes as JSON are more than the %d that it may have", name, len(text), MaxRecord,
		)
	}
	if r.text == text && r.number == number {
		r.said = true
		return false, nil
	}
	if r.said {
		return false, refuse(ErrConflict, "%s: it comes twice and says different things", name)
	}
	more := int64(len(text) - len(r.text))
	if size := w.run.size + more; more > 0 && size > maxRecorded {
		return false, refuse(
			ErrLimit, "%s: with it %d bytes would be recorded of the run, and %d may be", name, size, maxRecorded,
		)
	}
	if r.n == 0 && r.id != headID && w.steps() == MaxSteps {
		return false, refuse(
			ErrLimit, "%s: with it the run would have %d recorded steps, and may have %d", name, MaxSteps+1, MaxSteps,
		)
	}
	if r.n != 0 {
		w.changed = append(w.changed, r)
	} else {
		w.run.recorded++
		w.byID[r.id] = r
		w.fresh = append(w.fresh, r)
	}
	w.run.size += more
	r.text, r.said = text, true
	w.number(r, number)
	return true, nil
}

// steps returns how many steps are recorded, with those that are to be.
func (w *recorder) steps() int64 {
	if w.byID[headID] != nil {
		return w.run.recorded - 1
	}
	return w.run.recorded
}

// number gives a record another number; 0 is none.
func (w *recorder) number(r *record, number int64) {
	delete(w.byNumber, r.number)
	if r.number = number; number != 0 {
		w.byNumber[number] = r
	}
}

// The ids of the records of steps that nobody named begin with countedID, and come before countedEnd.
const (
	countedID  = "a:"
	countedEnd = "a;"
)

// recordID is what the record of a step is known by that has an id or a number.
func recordID(s *trail.Step) string {
	if s.ID != "" {
		return "id:" + lookup(s.ID)
	}
	return "n:" + strconv.Itoa(s.Number)
}

// maxIssues is how many issues of a run itself are kept: of those that come again and again with another detail, the
// first.
const maxIssues = 100

// headID is the id of the record of a run itself.
const headID = ""

// head is what was recorded of a run itself: a trail without steps.
type head struct {
	trail.Trail
	AnswerID string // the captured answer that is the final one; empty: none is
}

// head records what is said of the run itself.
func (w *recorder) head(r *Recording) error {
	old, h := w.byID[headID], &head{}
	if old == nil {
		old = &record{id: headID, started: w.now}
	} else {
		var err error
		if h, err = decodeHead(old.text); err != nil {
			return err
		}
	}
	ended := h.merge(r, w.now)
	w.answered = h.AnswerID != "" || h.Answer != "" || h.Final != nil
	encoded, err := json.Marshal(&h.Trail)
	if err == nil {
		encoded, err = json.Marshal(&headRecord{encoded, h.AnswerID})
	}
	if err != nil {
		return err
	}
	isNew := old.text == ""
	changed, err := w.setRecord(old, "what is said of the run itself", plain(string(encoded)), 0)
	if err != nil || !changed {
		return err
	}
	w.done.Changed = !isNew
	if w.track {
		old.pins = citationsOf(w.run.id, h.Final)
	}
	t := w.run
	t.agent = cmp.Or(beginning(plain(h.Agent)), t.agent)
	t.question = cmp.Or(beginning(plain(h.Question)), t.question)
	t.strategy = cmp.Or(t.captured, lookup(h.Strategy), t.strategy)
	t.finished = cmp.Or(knownMicros(h.Finished), t.finished)
	w.seen(h.Started, h.Finished)
	if !ended {
		return nil
	}
	w.ended = true
	return w.addEvent(EventFinish, &finishEvent{nullable(h.AnswerID), w.answered})
}

// headRecord is a head as JSON.
type headRecord struct {
	Run      json.RawMessage `json:"run"`
	AnswerID string          `json:"answer_id,omitempty"`
}

func decodeHead(text string) (*head, error) {
	var record headRecord
	h := &head{}
	err := decode([]byte(text), &record, "what was recorded of a run")
	if err == nil {
		err = decode(record.Run, &h.Trail, "what was recorded of a run")
	}
	if err != nil {
		return nil, err
	}
	h.AnswerID = record.AnswerID
	h.Issues, err = issuesOf(string(record.Run), h.Issues)
	return h, err
}

// merge takes up what a recording says of the run itself, and reports whether it tells of its end what was not known.
func (h *head) merge(r *Recording, now int64) (ended bool) {
	t, before := r.Trail, *h
	h.Agent, h.Question = cmp.Or(t.Agent, h.Agent), cmp.Or(t.Question, h.Question)
	h.Parent, h.Strategy = cmp.Or(t.Parent, h.Parent), cmp.Or(t.Strategy, h.Strategy)
	if !t.Started.IsZero() {
		h.Started = t.Started
	}
	if !t.Finished.IsZero() {
		h.Finished = t.Finished
	}
	if r.Finish && h.Finished.IsZero() {
		h.Finished = instant(now)
	}
	switch {
	case r.AnswerID != "":
		h.AnswerID, h.Answer, h.Final = r.AnswerID, "", nil
	case t.Answer != "" || t.Final != nil:
		final := t.Final
		if final == nil && h.Final != nil && strings.TrimSpace(h.Final.Text) == strings.TrimSpace(t.Answer) {
			final = h.Final // said again, it keeps its citations
		}
		h.AnswerID, h.Answer, h.Final = "", t.Answer, uncheckedAnswer(final)
	}
	for _, issue := range t.Issues {
		if len(h.Issues) < maxIssues && !slices.Contains(h.Issues, issue) {
			h.Issues = append(h.Issues, issue)
		}
	}
	if len(t.Extra) > 0 {
		h.Extra = maps.Clone(h.Extra)
		if h.Extra == nil {
			h.Extra = map[string]json.RawMessage{}
		}
		maps.Copy(h.Extra, t.Extra)
	}
	return !h.Finished.Equal(before.Finished) || h.AnswerID != before.AnswerID || h.Answer != before.Answer
}

// seen takes up when something of the run began and ended, as far as that is known.
func (w *recorder) seen(began, ended time.Time) {
	at := knownMicros(began)
	if at != 0 && (w.run.started == 0 || at < w.run.started) {
		w.run.started = at
	}
	w.run.ended = max(w.run.ended, at)
	if at != 0 || !ended.IsZero() {
		w.run.ended = max(w.run.ended, micros(ended))
	}
}

// knownMicros is micros, and 0 for a time that is not known.
func knownMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return micros(t)
}

// beginning returns what a list of runs shows of s: its first maxInList bytes, an ellipsis included.
func beginning(s string) string {
	const more = "…"
	if len(s) <= maxInList {
		return s
	}
	return text.Head(s, maxInList-len(more)) + more
}

// record is a row of records.
type record struct {
	n, number, started int64 // n is 0 until it is stored
	id, text           string
	said               bool  // in the recording that is under way
	pins               []Pin // of what it cites, if it is new or has changed
}

// recordColumns begins a query for records.
const recordColumns = "SELECT n, number, started, id, record FROM "

// scanRecord reads a row of recordColumns.
func scanRecord(rows *sql.Rows, r *record) error {
	return rows.Scan(&r.n, &r.number, &r.started, &r.id, &r.text)
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
		r := &record{}
		if err := scanRecord(rows, r); err != nil {
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
	next, err := w.tx.nextNumbers(ctx, "calls_n", len(w.fresh)+1)
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
		err := w.tx.exec(ctx, "UPDATE records SET number = $1, record = $2 WHERE n = $3", r.number, r.text, r.n)
		if err != nil {
			return err
		}
	}
	if err := w.tx.execAll(
		ctx, w.tx.insertion("records", "n, tenant, run, id, number, started, record", ""), values,
	); err != nil {
		return err
	}
	if w.track {
		if err := w.tx.putPassages(ctx, t.tenantID, slices.Concat(w.fresh, w.changed)); err != nil {
			return err
		}
	}
	if err := w.tx.addEvents(ctx, w.events); err != nil {
		return err
	}
	return w.tx.putGroups(ctx, runTable(), []*group{t})
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

// decodeStep reads the record of a step. Its issues are those that it had, and not what reading it finds again.
func decodeStep(text string) (*trail.Step, error) {
	s := &trail.Step{}
	if err := decode([]byte(text), s, "a recorded step"); err != nil {
		return nil, err
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
	err := decode([]byte(text), &record, "the issues of a record")
	return record.Issues, err
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

// addEvent writes down an event of the run.
func (w *recorder) addEvent(kind string, data any) error {
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
