package store_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

func readFile(t *testing.T, name string) string {
	t.Helper()
	b := testenv.Must(os.ReadFile(name))(t)
	return string(b)
}

// Several processes open a store that does not exist yet: one creates its tables, the others wait for it.
func TestOpenByProcesses(t *testing.T) {
	if dsn := os.Getenv("IBID_TEST_STORE"); dsn != "" { // this is one of them
		s := testenv.Must(store.Open(t.Context(), dsn, nil))(t)
		put(t, s, call(os.Getpid(), "Hello."))
		testenv.OK(t, s.Close())
		return
	}
	engines(t, func(t *testing.T, dsn func(*testing.T) string) {
		t.Helper()
		name := dsn(t)
		var processes []*exec.Cmd
		var outputs []*strings.Builder
		for range 4 {
			p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenByProcesses$")
			p.Env = append(os.Environ(), "IBID_TEST_STORE="+name)
			out := &strings.Builder{}
			p.Stdout, p.Stderr = out, out
			testenv.OK(t, p.Start())
			processes, outputs = append(processes, p), append(outputs, out)
		}
		for i, p := range processes {
			if err := p.Wait(); err != nil {
				t.Errorf("%v\n%s", err, outputs[i])
			}
		}
		s := open(t, name)
		if n := len(ids(t, s, store.Query{})); n != 4 {
			t.Errorf("%d answers", n)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	testenv.OK(t, os.WriteFile(text, []byte(strings.Repeat("This is no database. ", 100)), 0o600))
	for _, dsn := range []string{
		"", ":memory:", "mysql://localhost/x", dir, filepath.Join(dir, "no", "such", "directory.db"), text,
		"postgres://user:hunter2@127.0.0.1:1/x?connect_timeout=1", "postgres://user:hunter2@[::1/x", "postgres://%zz:hunter2@/",
	} {
		s, err := store.Open(t.Context(), dsn, nil)
		if err == nil {
			t.Errorf("%q is opened", dsn)
			_ = s.Close()
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error contains the password: %v", dsn, err)
		}
	}
	if got := readFile(t, text); !strings.HasPrefix(got, "This is no database.") {
		t.Error("the file was changed")
	}
}

// A file name may contain any character.
func TestOpenOddName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a b?mode=ro#x%20y.db", "ünï&_pragma=x.db", filepath.Join(dir, "100%.db")} {
		s := open(t, name)
		put(t, s, call(1, "Kept."))
		info := testenv.Must(os.Stat(name))(t)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v", name, info.Mode())
		}
	}
}

// What was put is on disk when Put returns, and in a copy made as described in docs/store.md.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "ibid.db"))
	put(t, s, call(1, "Kept.", "a.example"))
	db := raw(t, filepath.Join(dir, "ibid.db"))
	testenv.Must(db.Exec("VACUUM INTO ?", filepath.Join(dir, "copy.db")))(t)
	var sound string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("%s, %v", sound, err)
	}
	copied := open(t, filepath.Join(dir, "copy.db"))
	if got := ids(t, copied, store.Query{Text: "kept", Source: "https://a.example/page"}); len(got) != 1 {
		t.Errorf("the copy has %q", got)
	}
}

// A store that another program is writing to is busy, and a server may come back: neither is the fault of the answers.
func TestTemporary(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "ibid.db")
		s := open(t, name)
		db := testenv.Must(sql.Open("sqlite", "file:"+name+"?_txlock=exclusive"))(t)
		defer db.Close()
		tx := testenv.Must(db.Begin())(t)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.Put(ctx, []*store.Call{call(1, "Wait.")}); !store.IsTemporary(err) {
			t.Errorf("while another writes: %v", err)
		}
		testenv.OK(t, tx.Rollback())
		put(t, s, call(1, "Wait."))
	})
	t.Run("postgres", func(t *testing.T) {
		server := testenv.Postgres(t)
		s := open(t, server.DSN)
		put(t, s, call(1, "Before."))
		server.Stop(t)
		if err := s.Put(t.Context(), []*store.Call{call(2, "Away.")}); !store.IsTemporary(err) {
			t.Errorf("while it is away: %v", err)
		}
		if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_0001"); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("while it is away: %v", err)
		}
		if err := s.Ping(t.Context()); err == nil {
			t.Error("Ping succeeds")
		}
		server.Start(t)
		put(t, s, call(2, "Back."))
		if got := ids(t, s, store.Query{}); len(got) != 2 {
			t.Errorf("after it came back: %q", got)
		}
	})
}

// Connections made before a server died are dead when it is back. No reader or writer notices, however many connections
// there are and however soon they are used.
func TestReconnect(t *testing.T) {
	server := testenv.Postgres(t)
	s := open(t, server.DSN)
	put(t, s, call(1, "Before."))
	admin := testenv.Must(sql.Open("pgx", server.DSN))(t)
	defer admin.Close()
	testenv.OK(t, admin.Ping())
	for n := range 10 {
		var all sync.WaitGroup
		for range 20 { // readers, so that there are many connections
			all.Go(func() {
				if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_0001"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		var ended int
		const end = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ibid'"
		if err := admin.QueryRow(end).Scan(&ended); err != nil || ended == 0 {
			t.Fatalf("ended %d connections, %v", ended, err)
		}
		if n%2 == 0 {
			put(t, s, call(2+n, "After."))
		} else if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_0001"); err != nil {
			t.Error(err)
		}
	}
	server.Stop(t)
	if _, err := store.Open(t.Context(), server.DSN, nil); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("opening: %v", err)
	}
	server.Start(t)
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	server.Stop(t)
	server.Start(t)
	put(t, s, call(20, "Back."))
}

// Opening waits for another process that is migrating, as long as its context allows.
func TestOpenWaits(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	db := testenv.Must(sql.Open("sqlite", "file:"+name+"-lock?_txlock=exclusive"))(t)
	defer db.Close()
	tx := testenv.Must(db.Begin())(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := store.Open(ctx, name, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, %v", s, err)
	}
	opened := make(chan error)
	go func() {
		s, err := store.Open(t.Context(), name, nil)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	testenv.OK(t, tx.Rollback())
	testenv.OK(t, <-opened)
}

// Options.Wait is how long a write waits for another process.
func TestWait(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	s := testenv.Must(store.Open(t.Context(), name, &store.Options{Wait: time.Millisecond}))(t)
	defer s.Close()
	patient := testenv.Must(store.Open(t.Context(), name, &store.Options{Wait: time.Hour}))(t)
	defer patient.Close()
	db := testenv.Must(sql.Open("sqlite", "file:"+name+"?_txlock=immediate"))(t)
	defer db.Close()
	tx := testenv.Must(db.Begin())(t)
	waited := make(chan error)
	go func() { waited <- patient.Put(t.Context(), []*store.Call{call(1, "Patient.")}) }()
	if err := s.Put(t.Context(), []*store.Call{call(2, "Hasty.")}); err == nil || !store.IsTemporary(err) {
		t.Errorf("while another writes: %v", err)
	}
	testenv.OK(t, tx.Rollback())
	testenv.OK(t, <-waited)
}

// testdata/v1.db.gz is a store with version 1 of the tables. Every later version opens it, reads it and finds its
// content.
func TestVersion1(t *testing.T) {
	packed := testenv.Must(os.Open(filepath.Join("testdata", "v1.db.gz")))(t)
	defer packed.Close()
	unpacked := testenv.Must(gzip.NewReader(packed))(t)
	b := testenv.Must(io.ReadAll(unpacked))(t)
	name := filepath.Join(t.TempDir(), "ibid.db")
	testenv.OK(t, os.WriteFile(name, b, 0o600))
	s := open(t, name)
	got, err := s.Call(t.Context(), store.DefaultTenant, "ans_0001")
	if err != nil || got.Answer.Text != "Herons build in March." {
		t.Errorf("the first answer: %+v, %v", got, err)
	}
	put(t, s, call(3, "Herons fly."))
	diff(t, "found", ids(t, s, store.Query{Text: "herons"}), []string{"3", "1"})
}

// testdata has a store with version 6 of the tables, of SQLite and, from pg_dump --inserts, of PostgreSQL: seven answers,
// of which six are of one run, a token, and what a verifier remembers. This version opens it and finds all of it.
func (suite) Version6(t *testing.T, dsn string) {
	t.Helper()
	name := "v6.db.gz"
	if strings.HasPrefix(dsn, "postgres") {
		name = "v6.postgres.sql.gz"
	}
	packed := testenv.Must(os.Open(filepath.Join("testdata", name)))(t)
	defer packed.Close()
	b := testenv.Must(io.ReadAll(testenv.Must(gzip.NewReader(packed))(t)))(t)
	if strings.HasPrefix(dsn, "postgres") {
		db := testenv.Must(sql.Open("pgx", dsn))(t)
		testenv.Must(db.ExecContext(t.Context(), string(b)))(t)
		testenv.OK(t, db.Close()) // the dump has changed the session's settings
	} else {
		testenv.OK(t, os.WriteFile(dsn, b, 0o600))
	}
	for range 2 { // it is migrated once
		s := open(t, dsn)
		diff(t, "found", len(ids(t, s, store.Query{Text: "herons"})), 6)
		diff(t, "of the run", len(ids(t, s, store.Query{Run: "run"})), 6)
		talk, err := s.Conversation(t.Context(), store.DefaultTenant, "talk", nil)
		if err != nil || talk.Answers != 6 {
			t.Errorf("conversation: %+v, %v", talk, err)
		}
		if tokens, err := s.Tokens(t.Context()); err != nil || len(tokens) != 1 || tokens[0].Name != "fixture" {
			t.Errorf("tokens: %+v, %v", tokens, err)
		}
		if b, err := s.Memory(store.DefaultTenant).Recall(t.Context(), "manifest", "https://a.example/"); err != nil || string(b) != "seen" {
			t.Errorf("remembered: %q, %v", b, err)
		}
		testenv.OK(t, s.Close())
	}
	s := open(t, dsn)
	put(t, s, call(8, "Herons fly south."))
	diff(t, "found with the next", len(ids(t, s, store.Query{Text: "herons"})), 7)
}

// A database from before the first release is refused and left unchanged.
func TestOlder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	db := raw(t, name)
	testenv.Must(db.Exec("CREATE TABLE calls (n INTEGER PRIMARY KEY); CREATE TABLE goose_db_version (version_id INTEGER)"))(t)
	if _, err := store.Open(t.Context(), name, nil); !errors.Is(err, store.ErrOlder) || store.IsTemporary(err) {
		t.Errorf("Open: %v", err)
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'conversations'").Scan(&n); err != nil || n != 0 {
		t.Errorf("it was changed: %d, %v", n, err)
	}
}

// Several nodes of a gateway prune at once: groups that still have answers stay.
func (suite) PruneTogether(t *testing.T, dsn string) {
	t.Helper()
	stores := []*store.Store{open(t, dsn), open(t, dsn), open(t, dsn)}
	var calls []*store.Call
	for n := range 600 {
		c := call(n, "Old or new.", fmt.Sprintf("s%d.example", n%9))
		c.Run, c.Conversation = fmt.Sprint("run", n%5), fmt.Sprint("talk", n%5)
		if n >= 590 {
			c.Started = c.Started.Add(1000 * time.Hour)
		}
		calls = append(calls, c)
	}
	put(t, stores[0], calls...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum store.PruneReport
	for _, s := range stores {
		wg.Go(func() {
			report, err := s.Prune(t.Context(), &store.Retention{Default: time.Hour, Now: noon().Add(10 * time.Hour)})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum.Answers += report.Answers
			sum.Conversations += report.Conversations
		})
	}
	wg.Wait()
	diff(t, "together", sum, store.PruneReport{Answers: 590})
	for n := range 5 {
		talk, err := stores[1].Conversation(t.Context(), store.DefaultTenant, fmt.Sprint("talk", n), nil)
		if err != nil || talk.Answers != 2 || len(talk.Calls) != 2 || len(talk.Numbering) != 9 {
			t.Errorf("conversation: %+v, %v", talk, err)
		}
		run, err := stores[2].Run(t.Context(), store.DefaultTenant, fmt.Sprint("run", n), nil)
		if err != nil || run.Answers != 2 || len(run.Calls) != 2 {
			t.Errorf("run: %+v, %v", run, err)
		}
	}
}

// An answer that is deleted while it is fetched again stays deleted, and so does its conversation.
func (suite) RefetchOfDeleted(t *testing.T, dsn string) {
	t.Helper()
	one, other := open(t, dsn), open(t, dsn)
	for n := range 40 {
		first := call(n, "First.", "a.example")
		first.Conversation, first.Run = fmt.Sprint("talk", n), fmt.Sprint("talk", n)
		put(t, one, first)
		later := call(1000+n, "Later.", "b.example")
		later.Refetch, later.Answer.ID = true, first.Answer.ID
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := one.Delete(t.Context(), store.DefaultTenant, first.AnswerID); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := other.Put(t.Context(), []*store.Call{later}); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if _, err := one.Call(t.Context(), store.DefaultTenant, first.AnswerID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%d: %v", n, err)
		}
		if _, err := one.Conversation(t.Context(), store.DefaultTenant, first.Conversation, nil); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%d: its conversation: %v", n, err)
		}
	}
}

// An answer may have more sources than are indexed by name.
func (suite) ManySources(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	c := call(1, "Very many.")
	for n := range 20_500 {
		id := fmt.Sprintf("source-%d", n)
		c.Answer.Sources = append(c.Answer.Sources, ibid.Source{ID: id, Kind: ibid.Web, URL: "https://many.example/" + id})
	}
	put(t, s, c)
	for _, q := range []store.Query{{Source: "https://many.example/source-0"}, {Text: "very many"}} {
		if got := ids(t, s, q); len(got) != 1 {
			t.Errorf("%+v finds %q", q, got)
		}
	}
}

// A refetch whose earlier answer cannot be read because it is damaged is dropped and does not block others.
func (suite) Damaged(t *testing.T, dsn string) {
	t.Helper()
	s := open(t, dsn)
	c := call(1, "First.")
	c.Conversation = "talk"
	put(t, s, c)
	db := raw(t, dsn)
	testenv.Must(db.Exec("UPDATE calls SET call = '{'"))(t)
	if _, err := s.Call(t.Context(), c.Tenant, c.AnswerID); err == nil || store.IsTemporary(err) {
		t.Errorf("reading it: %v", err)
	}
	again, of := call(2, "Later."), call(3, "Later.")
	again.Refetch, again.Answer.ID, of.Of = true, c.Answer.ID, c.AnswerID
	put(t, s, again, of, call(4, "Another."))
	if got, err := s.Call(t.Context(), store.DefaultTenant, "ans_0004"); err != nil || got.Answer.Text != "Another." {
		t.Errorf("another: %+v, %v", got, err)
	}
}

// So is one that the damaged index does not find.
func TestIndexDamagedRefetch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	s := open(t, name)
	put(t, s, call(1, "First."))
	db := raw(t, name)
	testenv.Must(db.Exec("UPDATE words_data SET block = x'ff00ff' WHERE id > 10"))(t)
	again := call(2, "Later.")
	again.Refetch, again.Answer.ID = true, "resp_1"
	put(t, s, again, call(3, "Another."))
	if _, err := s.Call(t.Context(), store.DefaultTenant, "ans_0003"); err != nil {
		t.Error(err)
	}
	if _, err := s.Calls(t.Context(), store.DefaultTenant, &store.Query{Text: "first"}); err == nil || store.IsTemporary(err) {
		t.Errorf("searching: %v", err)
	}
}
