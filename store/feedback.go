package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The verdicts on a citation.
const (
	VerdictRight       = "right"
	VerdictWrongSource = "wrong-source" // another source supports it
	VerdictNotSaid     = "not-said"     // the source does not say this
	VerdictOther       = "other"        // see the note
)

// Verdicts returns all verdicts.
func Verdicts() []string {
	return []string{VerdictRight, VerdictWrongSource, VerdictNotSaid, VerdictOther}
}

const (
	// MaxNote is how many bytes the note of a feedback may have.
	MaxNote = 8 << 10
	// maxFeedbackName is how many bytes each id and name in a feedback may have.
	maxFeedbackName = 2 << 10
)

// Feedback is a person's judgement: a verdict on a citation of an answer, or the relevance of a source to a step of a
// run.
type Feedback struct {
	ID       string    `json:"id"` // set by [Store.AddFeedback]
	At       time.Time `json:"at"` // set by [Store.AddFeedback]
	By       string    `json:"by,omitempty"`
	AnswerID string    `json:"answer_id,omitempty"`
	Citation string    `json:"citation,omitempty"` // its id in the answer's document; empty for the answer as a whole
	Run      string    `json:"run,omitempty"`
	Step     int       `json:"step,omitempty"`   // 0 for none
	Source   string    `json:"source,omitempty"` // the document's id in the run, or the source's key
	// Verdict is one of [Verdicts]; empty in a rating.
	Verdict   string   `json:"verdict,omitempty"`
	Relevance *float64 `json:"relevance,omitempty"` // in 0…1; nil in a verdict
	Note      string   `json:"note,omitempty"`
}

// Check validates a feedback. The error is meant for its sender.
func (f *Feedback) Check() error {
	names := []struct{ name, value string }{
		{"by", f.By}, {"answer_id", f.AnswerID}, {"citation", f.Citation}, {"run", f.Run}, {"source", f.Source},
	}
	for _, n := range names {
		if len(n.value) > maxFeedbackName || !utf8.ValidString(n.value) {
			return fmt.Errorf("%s: it must be text of up to %d bytes", n.name, maxFeedbackName)
		}
	}
	switch {
	case len(f.Note) > MaxNote || !utf8.ValidString(f.Note):
		return fmt.Errorf("note: it must be text of up to %d bytes", MaxNote)
	case (f.Verdict == "") == (f.Relevance == nil):
		return errors.New("there must be either a verdict or a relevance")
	case f.Step < 0 || f.Step > MaxNumber:
		return fmt.Errorf("step: it must be a number from 1 to %d", MaxNumber)
	case f.Relevance != nil && (math.IsNaN(*f.Relevance) || *f.Relevance < 0 || *f.Relevance > 1):
		return errors.New("relevance: it must be a number from 0 to 1")
	case f.Relevance != nil && (f.Run == "" || f.Source == ""):
		return errors.New("a relevance rates a source for a run or one of its steps: run and source are required")
	case f.Verdict != "" && !slices.Contains(Verdicts(), f.Verdict):
		return fmt.Errorf("verdict: %.40q is not one of %s", f.Verdict, strings.Join(Verdicts(), ", "))
	case f.Verdict != "" && f.AnswerID == "":
		return errors.New("a verdict is about a citation of an answer: answer_id is required")
	}
	return nil
}

// subject is the hash of what was judged and by whom. Among feedbacks with the same subject, the last counts. An
// unsigned one has a subject of its own.
func (f *Feedback) subject() string {
	if f.By == "" {
		return f.ID
	}
	b, _ := json.Marshal([]string{ // strings always encode
		f.By, f.AnswerID, f.Citation, f.Run, strconv.Itoa(f.Step), f.Source, strconv.FormatBool(f.Verdict == ""),
	})
	return hash(string(b))
}

// AddFeedback stores a feedback in addition to earlier ones and sets its id and time. It fails with [ErrNotFound] if
// the answer or the run does not exist, and with [ErrConflict] if the run is not the answer's. The run of a verdict
// defaults to that of its answer.
func (s *Store) AddFeedback(ctx context.Context, tenant string, f *Feedback) (err error) {
	defer wrapResult(&err, "storing feedback")
	if err := f.Check(); err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	f.ID, f.At = "fb_"+id.String(), instant(micros(s.now()))
	return s.update(ctx, func(tx *transaction) error { return tx.addFeedback(ctx, lookup(tenant), f) })
}

func (tx *transaction) addFeedback(ctx context.Context, tenant string, f *Feedback) error {
	exists := func(query string, args ...any) error {
		found := false
		err := each(ctx, tx, func(rows *sql.Rows) error {
			var run sql.NullString
			found = true
			err := rows.Scan(&run)
			if err == nil && f.Run != "" && run.String != lookup(f.Run) {
				err = refuse(ErrConflict, "run: the answer belongs to another run")
			}
			f.Run = cmp.Or(f.Run, run.String)
			return err
		}, query, args...)
		if err == nil && !found {
			err = ErrNotFound
		}
		return err
	}
	lock := tx.ifPostgres(" FOR SHARE") // feedback is deleted with them, so they must not be deleted now
	if f.AnswerID != "" {
		if err := exists(
			"SELECT run FROM calls WHERE tenant = $1 AND answer_id = $2"+lock, tenant, lookup(f.AnswerID),
		); err != nil {
			return err
		}
	}
	if f.Run != "" {
		if err := exists("SELECT id FROM runs WHERE tenant = $1 AND id = $2"+lock, tenant, lookup(f.Run)); err != nil {
			return err
		}
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return tx.insertNumbered(
		ctx, "feedback", "tenant, run, answer_id, citation, source, subject, verdict, relevance, feedback",
		tenant, orNull(f.Run), orNull(f.AnswerID), orNull(f.Citation), orNull(f.Source), f.subject(), f.Verdict,
		f.Relevance, plain(string(text)),
	)
}

// FeedbackQuery selects feedback. Nil and the zero value select all. Conditions in several fields must all hold.
type FeedbackQuery struct {
	AnswerID string
	Run      string
	Source   string
	Strategy string // of the run: name@version
	Cursor   string // Page.Next of the page before; empty for the first page
	Limit    int    // 0 means DefaultLimit; capped at MaxLimit
}

func (q *FeedbackQuery) conditions(tenant string) *conditions {
	c := conditionsOf(tenant)
	c.andIfSet("answer_id = $", lookup(q.AnswerID))
	c.andIfSet("run = $", lookup(q.Run))
	c.andIfSet("source = $", lookup(q.Source))
	c.andIfSet("run IN (SELECT id FROM runs WHERE tenant = $1 AND strategy = $)", lookup(q.Strategy))
	return c
}

// Feedback returns feedback, newest first, including what the same person later replaced.
func (s *Store) Feedback(ctx context.Context, tenant string, q *FeedbackQuery) (*Page[Feedback], error) {
	q = cmp.Or(q, &FeedbackQuery{})
	type item struct {
		Feedback
		n int64
	}
	all := numberedList[item, Feedback]{
		letter: "f", query: "SELECT n, feedback FROM feedback", column: "n",
		scan: func(rows *sql.Rows, i *item) error {
			var text []byte
			if err := rows.Scan(&i.n, &text); err != nil {
				return err
			}
			return decode(text, &i.Feedback, "a feedback")
		},
		item: func(i *item) (Feedback, int64) { return i.Feedback, i.n },
	}
	page, err := all.page(ctx, s.db, q.conditions(tenant), q.Cursor, q.Limit)
	return page, wrap(err, "listing feedback")
}

// FeedbackCounts summarizes feedback.
type FeedbackCounts struct {
	Verdicts  map[string]int // by verdict, including those with a count of 0
	Ratings   int            // of relevance
	Relevance *float64       // their mean; nil if there are none
	// Citations counts the citations judged, each once, and Right those whose latest verdict, from anyone, is
	// [VerdictRight]. [VerdictOther] counts for neither.
	Citations, Right int
}

// FeedbackCounts counts feedback. A person's later feedback on the same subject replaces the earlier one; every
// unsigned one counts. The cursor and the limit of q are ignored.
func (s *Store) FeedbackCounts(
	ctx context.Context, tenant string, q *FeedbackQuery,
) (counts *FeedbackCounts, err error) {
	defer wrapResult(&err, "counting feedback")
	q = cmp.Or(q, &FeedbackQuery{})
	counts = &FeedbackCounts{Verdicts: map[string]int{}}
	for _, v := range Verdicts() {
		counts.Verdicts[v] = 0
	}
	c := q.conditions(tenant)
	err = each(ctx, s.db, func(rows *sql.Rows) error {
		var verdict string
		var n int
		var mean sql.NullFloat64
		if err := rows.Scan(&verdict, &n, &mean); err != nil {
			return err
		}
		if verdict != "" {
			counts.Verdicts[verdict] = n
			return nil
		}
		counts.Ratings, counts.Relevance = n, &mean.Float64
		return nil
	}, "SELECT verdict, count(*), avg(relevance) FROM feedback WHERE "+c.text()+
		" AND n = (SELECT max(n) FROM feedback f WHERE f.tenant = feedback.tenant AND f.subject = "+
		"feedback.subject) GROUP BY verdict", c.args...)
	if err == nil {
		const judged = " IN ('" + VerdictRight + "', '" + VerdictWrongSource + "', '" + VerdictNotSaid + "')"
		err = each(
			ctx, s.db,
			into(&counts.Citations, &counts.Right),
			"SELECT count(*), count(CASE verdict WHEN '"+VerdictRight+"' THEN 1 END) FROM feedback WHERE "+c.text()+
				" AND verdict"+judged+" AND n = (SELECT max(n) FROM feedback f WHERE f.tenant = feedback.tenant"+
				" AND f.answer_id = feedback.answer_id AND f.citation = feedback.citation AND f.verdict"+judged+")",
			c.args...)
	}
	if err != nil {
		return nil, err
	}
	return counts, nil
}
