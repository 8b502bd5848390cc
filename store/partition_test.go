package store_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// seven is the span of a partition of calls: some seven weeks.
const seven = time.Duration(1<<32) * time.Millisecond

// border is when the partition of ids with ans_01a2 begins.
func border() time.Time { return time.UnixMilli(0x01a2 << 32).UTC() }

// timedID is an id as the gateway makes it at a time.
func timedID(at time.Time, n int) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("ans_%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, n)
}

// timed is the n-th call of a test, made at a time.
func timed(at time.Time, n int, sites ...string) *store.Call {
	c := call(n, fmt.Sprintf("Answer %d says things.", n), sites...)
	c.AnswerID, c.Started = timedID(at, n), at
	return c
}

// clock is a store's clock.
type clock struct{ ms atomic.Int64 }

func clockAt(t time.Time) *clock {
	c := &clock{}
	c.set(t)
	return c
}

func (c *clock) set(t time.Time) { c.ms.Store(t.UnixMilli()) }
func (c *clock) now() time.Time  { return time.UnixMilli(c.ms.Load()) }

// openAt opens a store with a clock.
func openAt(t *testing.T, dsn string, c *clock) *store.Store {
	t.Helper()
	s := testenv.Must(store.Open(t.Context(), dsn, &store.Options{Wait: time.Minute, Now: c.now}))(t)
	t.Cleanup(func() { testenv.OK(t, s.Close()) })
	return s
}

// texts returns the rows of a query for one text column.
func texts(t *testing.T, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows := testenv.Must(db.QueryContext(t.Context(), query, args...))(t)
	defer rows.Close()
	list := []string{}
	for rows.Next() {
		var text string
		testenv.OK(t, rows.Scan(&text))
		list = append(list, text)
	}
	testenv.OK(t, rows.Err())
	return list
}

// partitions lists the tables that hold answers, and the detached ones.
func partitions(t *testing.T, db *sql.DB) string {
	t.Helper()
	return strings.Join(texts(t, db, "SELECT relname FROM pg_class WHERE relkind = 'r' AND (relname LIKE 'calls\\_%' "+
		"OR relname LIKE 'gone\\_%') ORDER BY relname"), " ")
}

// tableOf returns the table that holds an answer.
func tableOf(t *testing.T, db *sql.DB, id string) string {
	t.Helper()
	return strings.Join(texts(t, db, "SELECT tableoid::regclass::text FROM calls WHERE answer_id = $1", id), " ")
}

// A partition is created long before it is needed, each answer is stored in the partition of its id, and answers with
// ids without a time are stored, found and deleted like all others.
func TestPartitions(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	c := clockAt(border().Add(-time.Hour))
	s, db := openAt(t, dsn, c), raw(t, dsn)
	diff(t, "at the beginning", partitions(t, db), "calls_01a1 calls_01a2 calls_other")
	odd := []string{"ans_0001", "ans_zzzz", "ANS_01a1", "x", timedID(border().Add(9*seven), 7), timedID(border().Add(-9*seven), 8)}
	want := map[string]string{
		timedID(border().Add(-time.Millisecond), 1):      "calls_01a1",
		timedID(border(), 2):                             "calls_01a2",
		timedID(border().Add(seven-time.Millisecond), 3): "calls_01a2",
	}
	for _, id := range odd {
		want[id] = "calls_other"
	}
	n := 0
	for id := range want {
		n++
		one := call(n, "Somewhere.", "a.example")
		one.AnswerID = id
		put(t, s, one)
		put(t, s, one) // which changes nothing
	}
	diff(t, "listed", len(ids(t, s, store.Query{})), len(want))
	diff(t, "found", len(ids(t, s, store.Query{Text: "somewhere", Source: "https://a.example/page", Limit: 2})), len(want))
	for id, table := range want {
		diff(t, id, tableOf(t, db, id), table)
		if got, err := s.Call(t.Context(), store.DefaultTenant, id); err != nil || got.AnswerID != id {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	c.set(border())
	put(t, s, timed(c.now(), 20))
	diff(t, "past the border", partitions(t, db), "calls_01a1 calls_01a2 calls_01a3 calls_other")
	diff(t, "ids of every table", texts(t, db, "SELECT count(DISTINCT tableoid)::text FROM calls"), []string{"3"})
	for id := range want {
		testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, id))
	}
	diff(t, "left", len(ids(t, s, store.Query{})), 1)
	// Answers stored where a partition would have to be block only that partition.
	c.set(border().Add(9 * seven))
	ahead := timed(c.now().Add(seven), 21)
	c.set(border())
	put(t, s, ahead)
	diff(t, "ahead of its time", tableOf(t, db, ahead.AnswerID), "calls_other")
	c.set(border().Add(9 * seven))
	put(t, s, timed(c.now(), 22))
	diff(t, "one of two", partitions(t, db), "calls_01a1 calls_01a2 calls_01a3 calls_01ab calls_other")
	c.set(border().Add(10 * seven))
	put(t, s, timed(c.now(), 23))
	diff(t, "the next", partitions(t, db), "calls_01a1 calls_01a2 calls_01a3 calls_01ab calls_01ad calls_other")
	if got := tableOf(t, db, timedID(c.now(), 23)); got != "calls_other" {
		t.Errorf("without a partition of its own it is in %s", got)
	}
}

// Answers are stored while a partition cannot be created, and it is created once it can be.
func TestPartitionLater(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	c := clockAt(border())
	var log strings.Builder
	s := testenv.Must(store.Open(t.Context(), dsn, &store.Options{Now: c.now, Logger: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	db := raw(t, dsn)
	reader := testenv.Must(db.BeginTx(t.Context(), nil))(t)
	testenv.Must(reader.ExecContext(t.Context(), "SELECT 1 FROM calls"))(t)
	c.set(border().Add(seven))
	put(t, s, timed(c.now(), 1))
	diff(t, "during a read", partitions(t, db), "calls_01a2 calls_01a3 calls_other")
	if !strings.Contains(log.String(), "partition=calls_01a4") {
		t.Errorf("the log: %s", log.String())
	}
	testenv.OK(t, reader.Rollback())
	put(t, s, timed(c.now(), 2))
	diff(t, "it is not tried at once", partitions(t, db), "calls_01a2 calls_01a3 calls_other")
	c.set(c.now().Add(time.Minute))
	put(t, s, timed(c.now(), 3))
	diff(t, "later", partitions(t, db), "calls_01a2 calls_01a3 calls_01a4 calls_other")
	testenv.OK(t, s.Close())
}

// Nodes create partitions and store at the same time.
func TestPartitionsTogether(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	c := clockAt(border())
	stores := []*store.Store{openAt(t, dsn, c), openAt(t, dsn, c), openAt(t, dsn, c)}
	for step := range 3 {
		c.set(border().Add(time.Duration(step) * seven))
		var all sync.WaitGroup
		for i, s := range stores {
			all.Go(func() {
				for n := range 5 {
					if err := s.Put(t.Context(), []*store.Call{timed(c.now(), 100*step+10*i+n), timed(c.now(), 100*step+50)}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		c.set(c.now().Add(time.Minute))
		put(t, stores[0], timed(c.now(), 100*step+60)) // if it could not be created at once, it is now
	}
	db := raw(t, dsn)
	diff(t, "made", partitions(t, db), "calls_01a2 calls_01a3 calls_01a4 calls_01a5 calls_other")
	diff(t, "each of them", texts(t, db, "SELECT tableoid::regclass || ' ' || count(*) FROM calls GROUP BY tableoid ORDER BY 1"),
		[]string{"calls_01a2 17", "calls_01a3 17", "calls_01a4 17"})
}

// full stores answers of two partitions with everything that belongs to answers, and returns those of the first.
func full(t *testing.T, s *store.Store, answers int) []*store.Call {
	t.Helper()
	ctx := t.Context()
	var old []*store.Call
	for n := range answers {
		c := timed(border().Add(time.Duration(n)*time.Second), n, "bees.example", fmt.Sprintf("s%d.example", n%7))
		c.Run, c.Conversation = fmt.Sprint("run", n%9), fmt.Sprint("talk", n%5)
		c.Publish = n < 4
		old = append(old, c)
	}
	put(t, s, old...)
	var fresh []*store.Call
	for n := range 6 { // in some of the same runs and conversations
		c := timed(border().Add(seven+time.Duration(n)*time.Second), answers+n, "bees.example")
		c.Run, c.Conversation, c.Publish = fmt.Sprint("run", n%3), fmt.Sprint("talk", n%2), n == 0
		fresh = append(fresh, c)
	}
	put(t, s, fresh...)
	list, _ := due(t, s, time.Hour)
	for i := range list {
		if list[i].AnswerID != old[3].AnswerID { // which is being built
			keep(t, s, &list[i], list[i].Path)
		}
	}
	for _, c := range []*store.Call{old[0], old[4], fresh[0]} {
		testenv.OK(t, s.AddPins(ctx, store.DefaultTenant, pinsOf(c)))
		f := &store.Feedback{AnswerID: c.AnswerID, Verdict: store.VerdictRight, By: "ann"}
		testenv.OK(t, s.AddFeedback(ctx, store.DefaultTenant, f))
		testenv.Must(s.AddAlerts(ctx, []store.Alert{{
			Kind: store.AlertDiffers, Tenant: store.DefaultTenant, Subject: store.AlertSubject{AnswerID: c.AnswerID},
			CreatedAt: border().Add(2 * seven), // alerts have a retention of their own
		}}))(t)
	}
	testenv.Must(s.AddIncidents(ctx, store.DefaultTenant, []verify.Incident{incident(1, verify.ExcerptMissing)}))(t)
	for {
		events := testenv.Must(s.Outbox(ctx, 500, 0))(t)
		if len(events) == 0 {
			return old
		}
		var relayed []int64
		for _, e := range events {
			relayed = append(relayed, e.ID)
		}
		testenv.OK(t, s.Relayed(ctx, relayed))
	}
}

// state returns the content of a store except for random and time-dependent values: public ids of runs, salts, and when
// rows were made.
func state(t *testing.T, db *sql.DB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for name, columns := range map[string]string{
		"calls":         "answer_id",
		"sources":       "answer_id || id || url || cited",
		"citations":     "answer_id || cited_text || source_title",
		"conversations": "id || ' ' || answers || ' ' || numbered || ' ' || started || ' ' || ended",
		"numbers":       "conversation || ' ' || number || ' ' || keys",
		"runs":          "id || ' ' || answers || ' ' || seq || ' ' || steps || ' ' || started || ' ' || ended",
		"events":        "run || ' ' || seq || ' ' || kind || ' ' || relayed",
		"feedback":      "answer_id || ' ' || verdict",
		"pins":          "answer_id || ' ' || url || ' ' || citation",
		"publications":  "answer_id || ' ' || run || ' ' || state || ' ' || (salt <> '') || ' ' || (due = 0)",
		"alerts":        "answer_id || ' ' || kind",
		"incidents":     "seq || ' ' || status || ' ' || incident",
		"usage":         "tenant || ' ' || bytes",
		"marks":         "name || value",
		"log_head":      "one || ' ' || size",
	} {
		all[name] = texts(t, db, "SELECT "+columns+" FROM "+name+" ORDER BY 1")
	}
	return all
}

// An expired partition is removed as a whole, with exactly what deleting its answers would have removed.
func TestPartitionExpires(t *testing.T) {
	server := testenv.Postgres(t)
	var got [2]map[string][]string
	for i := range got {
		dsn := server.Database(t, fmt.Sprint("drop", i))
		c := clockAt(border())
		s, db := openAt(t, dsn, c), raw(t, dsn)
		old := full(t, s, 600)
		c.set(border().Add(2 * seven))
		if i == 1 {
			for _, c := range old {
				testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, c.AnswerID))
			}
			got[i] = state(t, db)
			continue
		}
		r := &store.Retention{Default: seven + seven/2, Now: c.now()}
		r.DryRun = true
		report := testenv.Must(s.Prune(t.Context(), r))(t)
		diff(t, "dry run", report.Answers, 600)
		r.DryRun = false
		// It is interrupted after the first batch and resumes the next time.
		ctx, cancel := context.WithCancel(t.Context())
		r.Progress = func(store.PruneReport) { cancel() }
		if report, err := s.Prune(ctx, r); !errors.Is(err, context.Canceled) || report.Answers != 256 {
			t.Errorf("interrupted: %+v, %v", report, err)
		}
		diff(t, "taken out", partitions(t, db), "calls_01a3 calls_other gone_calls_01a2")
		diff(t, "at once", len(ids(t, s, store.Query{})), 6)
		if _, err := s.Call(t.Context(), store.DefaultTenant, old[599].AnswerID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("one that was taken out: %v", err)
		}
		r.Progress = nil
		report = testenv.Must(s.Prune(t.Context(), r))(t)
		diff(t, "the rest", report.Answers, 344)
		diff(t, "removed", partitions(t, db), "calls_01a3 calls_other")
		got[i] = state(t, db)
		if report = testenv.Must(s.Prune(t.Context(), r))(t); report != (store.PruneReport{}) {
			t.Errorf("once more: %+v", report)
		}
		put(t, s, old[0]) // from an old journal
		diff(t, "without a partition", tableOf(t, db, old[0].AnswerID), "calls_other")
	}
	for name := range got[0] {
		diff(t, name, got[0][name], got[1][name])
	}
}

// A partition with one answer that is kept stays, and its other answers are removed; so does one that is being read.
func TestPartitionKept(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	c := clockAt(border())
	s, db := openAt(t, dsn, c), raw(t, dsn)
	kept := timed(border(), 9999, "a.example")
	kept.Answer.Provider = "cohere"
	old := full(t, s, 20)
	put(t, s, kept)
	c.set(border().Add(2 * seven))
	r := &store.Retention{Default: seven + seven/2, ByProvider: map[string]time.Duration{"cohere": 0}, Now: c.now()}
	report := testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "one by one", report.Answers, len(old))
	diff(t, "all are there", partitions(t, db), "calls_01a2 calls_01a3 calls_other")
	diff(t, "what is kept", tableOf(t, db, kept.AnswerID), "calls_01a2")
	// Its answer has not expired when its partition has.
	r.ByProvider = nil
	late := timed(border().Add(seven), 10_000)
	late.AnswerID = timedID(border(), 10_000)
	put(t, s, late)
	report = testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "but for one that began later", report.Answers, 1)
	diff(t, "before it expires", tableOf(t, db, late.AnswerID), "calls_01a2")
	// Pruning does not wait for a reader.
	reader := testenv.Must(db.BeginTx(t.Context(), nil))(t)
	testenv.Must(reader.ExecContext(t.Context(), "SELECT 1 FROM calls"))(t)
	r.Now = c.now().Add(seven)
	report = testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "during a read", report.Answers, 7)
	diff(t, "empty", partitions(t, db), "calls_01a2 calls_01a3 calls_01a4 calls_01a5 calls_other")
	testenv.OK(t, reader.Rollback())
	testenv.Must(s.Prune(t.Context(), r))(t)
	diff(t, "after the read", partitions(t, db), "calls_01a5 calls_other")
}

// Nodes remove the same partitions while others store.
func TestPartitionsExpireTogether(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	c := clockAt(border())
	stores := []*store.Store{openAt(t, dsn, c), openAt(t, dsn, c), openAt(t, dsn, c)}
	old := full(t, stores[0], 600)
	c.set(border().Add(2 * seven))
	put(t, stores[0], timed(c.now(), 999)) // creates the current partitions
	r := store.Retention{Default: seven + seven/2, Now: c.now()}
	removed := make([]int, len(stores))
	var all sync.WaitGroup
	for i, s := range stores {
		all.Go(func() {
			mine := r
			report, err := s.Prune(t.Context(), &mine)
			if err != nil {
				t.Error(err)
			}
			removed[i] = report.Answers
			for n := range 20 {
				one := timed(c.now(), 1000+20*i+n)
				one.Conversation = "talk0"
				if err := s.Put(t.Context(), []*store.Call{one}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	left := testenv.Must(stores[0].Prune(t.Context(), &r))(t) // what one left to another that had already ended
	diff(t, "once each", removed[0]+removed[1]+removed[2]+left.Answers, len(old))
	diff(t, "left", partitions(t, raw(t, dsn)), "calls_01a3 calls_01a4 calls_01a5 calls_other")
	talk, err := stores[1].Conversation(t.Context(), store.DefaultTenant, "talk0", nil)
	if err != nil || talk.Answers != 63 {
		t.Errorf("conversation: %+v, %v", talk, err)
	}
}

// testdata/v3.postgres.sql.gz is a database with version 3 of the tables, from pg_dump --inserts. Its answers are moved
// to partitions without loss.
func TestVersion3Postgres(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	packed := testenv.Must(os.Open(filepath.Join("testdata", "v3.postgres.sql.gz")))(t)
	defer packed.Close()
	dump := testenv.Must(io.ReadAll(testenv.Must(gzip.NewReader(packed))(t)))(t)
	restored := testenv.Must(sql.Open("pgx", dsn))(t)
	testenv.Must(restored.ExecContext(t.Context(), string(dump)))(t)
	testenv.OK(t, restored.Close()) // the dump has changed the session's settings

	content := func() map[string][]string {
		db := raw(t, dsn) // its statements are not prepared for other tables
		all := state(t, db)
		all["n"] = texts(t, db, "SELECT n || ' ' || answer_id || ' ' || call FROM calls ORDER BY n")
		return all
	}
	before := content()
	c := clockAt(noon())
	s := openAt(t, dsn, c)
	db := raw(t, dsn)
	for name, rows := range content() {
		diff(t, name, rows, before[name])
	}
	diff(t, "answers", len(before["calls"]), 4)
	diff(t, "partitions", texts(t, db, "SELECT tableoid::regclass || ' ' || count(*) FROM calls GROUP BY tableoid ORDER BY 1"),
		[]string{"calls_019f 1", "calls_01a1 2", "calls_other 1"})
	diff(t, "with the next", partitions(t, db), "calls_019f calls_01a1 calls_01a2 calls_other")
	later := timed(noon().Add(time.Hour), 5)
	later.Answer.Text = "Herons fly."
	later.Answer.Parts[0].End = len(later.Answer.Text)
	put(t, s, later)
	diff(t, "found", len(ids(t, s, store.Query{Text: "herons"})), 5)
	diff(t, "by source", len(ids(t, s, store.Query{Source: "https://heron.example/page"})), 4)
	talk, err := s.Conversation(t.Context(), store.DefaultTenant, "talk", nil)
	if err != nil || talk.Answers != 4 || len(talk.Calls) != 4 {
		t.Errorf("conversation: %+v, %v", talk, err)
	}
}

// Pruning updates the planner's statistics of all partitions together, once a day.
func TestPartitionsAnalyzed(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	c := clockAt(border().Add(-time.Hour))
	s, db := openAt(t, dsn, c), raw(t, dsn)
	known := func() string {
		testenv.Must(s.Prune(t.Context(), &store.Retention{}))(t)
		return texts(t, db, "SELECT reltuples::int8::text FROM pg_class WHERE oid = 'calls'::regclass")[0]
	}
	for n := range 3 {
		put(t, s, timed(border().Add(time.Duration(n-1)*time.Minute), n))
	}
	diff(t, "the first time", known(), "3")
	put(t, s, timed(border(), 4))
	diff(t, "the same day", known(), "3")

	// The index is used for rare words only if the planner knows the frequencies of many.
	diff(t, "what has another target", texts(t, db, "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class c ON c.oid = attrelid "+
		"WHERE attname = 'terms' AND relname LIKE 'calls%' AND relkind IN ('r', 'p') AND attstattarget <> 1000"), []string{})
}
