package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ibidhq/ibid/trail"
)

// What may be recorded of one run. Beyond it [Store.Record] returns [ErrLimit].
const (
	MaxSteps    = 10_000    // steps
	MaxNumber   = 1_000_000 // the highest number of a step
	MaxSources  = 1_000     // sources of one step
	MaxRecord   = 1 << 20   // bytes of one step, and of what is said of the run itself, as JSON
	MaxRecorded = 64 << 20  // bytes of all of them
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
		if pub, err = s.Pub(ctx, tenant, r.Run); err != nil {
			return nil, fmt.Errorf("recording run %.60q: %w", r.Run, err)
		}
	}
	if n := len(r.Trail.Steps); n > MaxSteps && !r.Partly {
		err = refuse(ErrLimit, "%d steps are more than the %d that a run may have", n, MaxSteps)
	} else {
		err = s.update(ctx, func(ctx context.Context, tx *transaction) error {
			w, err := tx.recorder(ctx, tenantID{lookup(tenant), lookup(r.Run)})
			if err != nil {
				return err
			}
			w.pub = pub
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

// checkStep says what is wrong with a step whatever the store has.
func checkStep(step *trail.Step, name string) error {
	switch {
	case step.Number < 0 || step.Number > MaxNumber:
		return refuse(ErrLimit, "%s: numbers go from 1 to %d", name, MaxNumber)
	case len(step.Sources) > MaxSources:
		return refuse(
			ErrLimit, "%s: %d sources are more than the %d that it may have", name, len(step.Sources), MaxSources,
		)
	case len(step.ID) > MaxStepID:
		return refuse(ErrLimit, "%s: its id may have %d bytes", name, MaxStepID)
	}
	return nil
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
	run  *thread // it is kept from changing
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
}

// recorder locks a run, which need not be there.
func (tx *transaction) recorder(ctx context.Context, id tenantID) (*recorder, error) {
	list, err := tx.lock(ctx, runTable(), map[tenantID]*thread{id: {tenantID: id}})
	if err != nil {
		return nil, err
	}
	return &recorder{
		tx: tx, run: list[0], now: micros(time.Now()), byID: map[string]*record{}, byNumber: map[int64]*record{},
	}, nil
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
	if err := checkStep(s, name); err != nil {
		return err
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
	text, err := encodeStep(&named)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if old == nil {
		old = &record{id: id, started: cmp.Or(knownMicros(s.Started), w.now)}
	}
	isNew := old.text == ""
	changed, err := w.put(old, name, text, int64(named.Number))
	if err != nil {
		return err
	}
	w.run.steps = max(w.run.steps, int64(named.Number))
	w.done.Steps = append(w.done.Steps, RecordedStep{named.ID, named.Number, isNew, changed && !isNew})
	if !changed {
		return nil
	}
	w.seen(s.Started, s.Started.Add(s.Duration))
	return w.tell(EventStep, newStepEvent(&named, !isNew))
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

// put gives a record a text and a number, and reports whether that is new. Name says what it is, for people.
func (w *recorder) put(r *record, name, text string, number int64) (changed bool, err error) {
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
	if size := w.run.size + more; more > 0 && size > MaxRecorded {
		return false, refuse(
			ErrLimit, "%s: with it %d bytes would be recorded of the run, and %d may be", name, size, MaxRecorded,
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
