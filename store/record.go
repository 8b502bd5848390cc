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

// Limits of what may be recorded of one run. Beyond them [Store.Record] returns [ErrLimit].
const (
	MaxSteps    = 10_000    // steps
	MaxNumber   = 1_000_000 // the highest number of a step
	MaxSources  = 1_000     // sources of one step
	MaxRecord   = 1 << 20   // bytes of one step, and of the record of the run itself, as JSON
	maxRecorded = 64 << 20  // bytes of all of these
	MaxStepID   = 256       // bytes of the id of a step
)

// maxInList is how many bytes of a question and of an agent's name appear in a list of runs.
const maxInList = 1 << 10

// Recording is what an agent reports about a run: about the run itself, and any of its steps.
type Recording struct {
	Run string // the run's id; required
	// Trail is what is reported. Its ID is ignored, and stored steps that are not in it stay as they are. Its zero
	// fields leave what was recorded unchanged, except in steps, which are replaced as a whole. A step is identified by
	// its ID, or else by its number; without either it becomes the run's next.
	Trail *trail.Trail
	// AnswerID names the captured answer that is the run's final one, in place of Trail.Answer. Empty means unchanged.
	AnswerID string
	// Finish reports that the run has ended: at Trail.Finished, or else now, unless it had ended before.
	Finish bool
	// Publish requests that the run's final manifest be published even if none of its calls is: when this recording
	// ends the run or sets its final answer, provided that it has one. It applies to this recording only.
	Publish bool
	// Partly leaves out steps that are refused and records the others, for callers who cannot fix them.
	Partly bool
}

// Recorded reports what [Store.Record] did.
type Recorded struct {
	Created bool // nothing of the run was stored before
	Changed bool // the stored record of the run itself was changed
	Steps   []RecordedStep
	Refused int    // with [Recording.Partly], the number of steps left out
	Why     string // why the first of them was
}

// RecordedStep reports what happened to a step.
type RecordedStep struct {
	ID       string
	Number   int  // 0 if it has an id and no number
	Created  bool // it is new
	Replaced bool // it was stored and differed; if neither is set, it was stored already
}

// Record stores what an agent reports about a run, all or, on error, nothing. Recordings may come in any order, before
// the run's first call and after its end, and repeatedly: what is stored already changes nothing and causes no event. A
// later recording of a step replaces the earlier one, whose number stays if the later one has none.
//
// Record fails with [ErrConflict] if a step has the number of another one, or appears twice in the recording with
// different content, and with [ErrLimit] if a limit of what may be recorded would be exceeded. Both errors name the
// step.
func (s *Store) Record(ctx context.Context, tenant string, r *Recording) (*Recorded, error) {
	if r.Run == "" || tenant == "" {
		return nil, errors.New("recording a run: it has no id or no tenant")
	}
	if r.Trail == nil {
		copied := *r
		copied.Trail, r = &trail.Trail{}, &copied
	}
	var done *Recorded
	var err error
	pub := ""
	if r.Publish {
		pub, err = s.Pub(ctx, tenant, r.Run)
	}
	if n := len(r.Trail.Steps); n > MaxSteps && !r.Partly {
		err = refuse(ErrLimit, "%d steps exceed the limit of %d for a run", n, MaxSteps)
	}
	if err == nil {
		err = s.update(ctx, func(tx *transaction) error {
			id := tenantID{lookup(tenant), lookup(r.Run)}
			runs, err := tx.lock(ctx, runTable(), map[tenantID]*group{id: {tenantID: id}}) // it need not exist
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

// stepName describes the i-th step of a recording for error messages.
func stepName(s *trail.Step, i int) string {
	switch {
	case s.ID != "":
		return fmt.Sprintf("the step with the id %.60q", s.ID)
	case s.Number != 0:
		return fmt.Sprintf("step %d", s.Number)
	}
	return fmt.Sprintf("the step at position %d", i+1)
}

// recorder stores a recording in one transaction.
type recorder struct {
	tx   *transaction
	run  *group // locked
	now  int64
	done Recorded
	// Stored records that the recording names, updated, and new ones.
	byID     map[string]*record
	byNumber map[int64]*record
	fresh    []*record // to be inserted
	changed  []*record // to be updated
	events   []Event
	next     int64  // the highest number of a step, including those still to come
	ended    bool   // the recording ended the run
	answered bool   // it has a final answer
	pub      string // its public id if publishing was requested; otherwise empty
	track    bool   // its sources are to be read again
}

func (w *recorder) record(ctx context.Context, r *Recording) error {
	w.done.Created = w.run.answers == 0 && w.run.recorded == 0
	var given []int64
	for i := range r.Trail.Steps {
		if n := r.Trail.Steps[i].Number; n != 0 {
			given = append(given, int64(n))
		}
	}
	if err := w.tx.renumberCounted(ctx, w.run, given); err != nil {
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

// step records the i-th step of the recording.
func (w *recorder) step(s *trail.Step, i int) error {
	named, name := *s, stepName(s, i)
	switch {
	case s.Number < 0 || s.Number > MaxNumber:
		return refuse(ErrLimit, "%s: numbers range from 1 to %d", name, MaxNumber)
	case len(s.Sources) > MaxSources:
		const many = "%s: %d sources exceed the limit of %d"
		return refuse(ErrLimit, many, name, len(s.Sources), MaxSources)
	case len(s.ID) > MaxStepID:
		return refuse(ErrLimit, "%s: its id is limited to %d bytes", name, MaxStepID)
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
		return refuse(ErrLimit, "the steps of the run have reached the highest number, %d", MaxNumber)
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
	w.addTimes(s.Started, s.Started.Add(s.Duration))
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

// find returns the stored record of a step and completes the step's identity; nil if there is none.
func (w *recorder) find(s *trail.Step, name string) (*record, error) {
	old := w.byNumber[int64(s.Number)] // nil for the number 0
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

// setRecord sets the text and number of a record and reports whether that changes it. name describes it in errors.
func (w *recorder) setRecord(r *record, name, text string, number int64) (changed bool, err error) {
	if len(text) > MaxRecord {
		return false, refuse(
			ErrLimit, "%s: %d bytes as JSON exceed the limit of %d", name, len(text), MaxRecord,
		)
	}
	if r.text == text && r.number == number {
		r.given = true
		return false, nil
	}
	if r.given {
		return false, refuse(ErrConflict, "%s: it appears twice with different content", name)
	}
	more := int64(len(text) - len(r.text))
	if size := w.run.size + more; more > 0 && size > maxRecorded {
		return false, refuse(
			ErrLimit, "%s: it would bring the run's records to %d bytes; the limit is %d", name, size, maxRecorded,
		)
	}
	if r.n == 0 && r.id != headID && w.steps() == MaxSteps {
		return false, refuse(
			ErrLimit, "%s: it would bring the run to %d recorded steps; the limit is %d", name, MaxSteps+1, MaxSteps,
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
	r.text, r.given = text, true
	w.number(r, number)
	return true, nil
}

// steps returns the number of recorded steps, including those to be stored.
func (w *recorder) steps() int64 {
	if w.byID[headID] != nil {
		return w.run.recorded - 1
	}
	return w.run.recorded
}

// number changes the number of a record; 0 means none.
func (w *recorder) number(r *record, number int64) {
	delete(w.byNumber, r.number)
	if r.number = number; number != 0 {
		w.byNumber[number] = r
	}
}

// The ids of the records of steps with neither id nor number begin with countedID and sort before countedEnd.
const (
	countedID  = "a:"
	countedEnd = "a;"
)

// recordID returns the id of the record of a step that has an id or a number.
func recordID(s *trail.Step) string {
	if s.ID != "" {
		return "id:" + lookup(s.ID)
	}
	return "n:" + strconv.Itoa(s.Number)
}

// maxIssues is how many issues of a run itself are kept, in case some keep recurring with different details: the first
// ones.
const maxIssues = 100

// headID is the id of the record of a run itself.
const headID = ""

// head is the record of a run itself: a trail without steps.
type head struct {
	trail.Trail
	AnswerID string // the captured answer that is the final one; empty if none is
}

// head records what is reported about the run itself.
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
	changed, err := w.setRecord(old, "the record of the run itself", plain(string(encoded)), 0)
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
	w.addTimes(h.Started, h.Finished)
	if !ended {
		return nil
	}
	w.ended = true
	return w.addEvent(EventFinish, &finishEvent{nullable(h.AnswerID), w.answered})
}

// headRecord is a head as stored.
type headRecord struct {
	Run      json.RawMessage `json:"run"`
	AnswerID string          `json:"answer_id,omitempty"`
}

func decodeHead(text string) (*head, error) {
	var record headRecord
	h := &head{}
	err := decode([]byte(text), &record, "the record of a run")
	if err == nil {
		err = decode(record.Run, &h.Trail, "the record of a run")
	}
	if err != nil {
		return nil, err
	}
	h.AnswerID = record.AnswerID
	h.Issues, err = issuesOf(string(record.Run), h.Issues)
	return h, err
}

// merge applies a recording to the head and reports whether that changes the end of the run or its final answer.
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
			final = h.Final // repeated, it keeps its citations
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

// addTimes extends the run's time span by the begin and end of something, as far as they are known.
func (w *recorder) addTimes(began, ended time.Time) {
	at := knownMicros(began)
	if at != 0 && (w.run.started == 0 || at < w.run.started) {
		w.run.started = at
	}
	w.run.ended = max(w.run.ended, at)
	if at != 0 || !ended.IsZero() {
		w.run.ended = max(w.run.ended, micros(ended))
	}
}

// knownMicros is like micros but returns 0 for the zero time.
func knownMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return micros(t)
}

// beginning returns s as a list of runs shows it: cut to maxInList bytes, including an ellipsis.
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
	given              bool  // appeared in the current recording
	pins               []Pin // of its citations, if it is new or has changed
}

// recordColumns begins a query for records.
const recordColumns = "SELECT n, number, started, id, record FROM "

// scanRecord reads a row of recordColumns.
func scanRecord(rows *sql.Rows, r *record) error {
	return rows.Scan(&r.n, &r.number, &r.started, &r.id, &r.text)
}

// load reads the record of the run itself and those of the named steps.
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

// write stores the changes of the recording.
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

// publish schedules the run's final manifest if the run has ended and any of it is published, or if that was requested.
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

// step returns the step in a record.
func (r *record) step() (*trail.Step, error) {
	s, err := decodeStep(r.text)
	if err == nil {
		s.Number = int(r.number)
	}
	return s, err
}

// stepID returns the id of the step in a record; empty if it has none.
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

// decodeStep decodes the record of a step. Its issues are those recorded with it, not those found again in decoding.
func decodeStep(text string) (*trail.Step, error) {
	s := &trail.Step{}
	err := s.UnmarshalJSON([]byte(text)) // as decode, which would read all of it twice more
	if err != nil {
		return nil, fmt.Errorf("%w: a recorded step: %w", errDamaged, err)
	}
	s.Issues, err = issuesOf(text, s.Issues)
	return s, err
}

// issuesOf returns the issues in a record. found are those of decoding it.
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

// addEvent adds an event of the run.
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
