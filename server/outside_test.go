package server_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // opens the copies

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/server/servertest"
)

// Other programs read, copy and lock the database of a running server, as an operator does: Debian's sqlite3 and
// Python's module, each in processes of its own, while answers are captured. The server's own locks once were dropped,
// so that the first of them deleted its log.
//
// By default each program copies five times each way and holds the lock of three seconds once; IBID_ROUNDS=50 does all
// of that 50 times.
func TestOtherPrograms(t *testing.T) {
	copies, locks := 5, 1
	if s := os.Getenv("IBID_ROUNDS"); s != "" {
		copies = testenv.Must(strconv.Atoi(s))(t)
		locks = copies
	}
	sqlite3, python := testenv.Tool(t, "sqlite3"), testenv.Tool(t, "python3")
	w := servertest.Start(t, nil)
	db := filepath.Join(w.Data(), "ibid.db")
	own := testenv.Must(sql.Open("sqlite", db))(t)
	defer own.Close()
	script := filepath.Join(t.TempDir(), "program.py")
	testenv.OK(t, os.WriteFile(script, []byte(`import sqlite3, sys, time
what, name, copy = sys.argv[1:]
db = sqlite3.connect(name, isolation_level=None, timeout=10)
if what == 'select':
	print(db.execute('SELECT count(*) FROM calls').fetchone()[0])
elif what == 'vacuum':
	db.execute('VACUUM INTO ?', (copy,))
elif what == 'backup':
	db.backup(sqlite3.connect(copy), pages=-1)
else:
	db.execute('BEGIN IMMEDIATE')
	time.sleep(3)
	db.execute('COMMIT')
db.close()
`), 0o600))

	// The load: an acknowledged answer is one whose end the client saw.
	var acknowledged atomic.Int64
	ctx, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			r, err := http.Post(w.URL+"/openai/v1/responses", "application/json",
				strings.NewReader(`{"model":"gpt-5","input":"When does the ferry leave?"}`))
			if err == nil {
				_, err = io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
			}
			if err != nil || r.StatusCode != http.StatusOK || r.Header.Get("Ibid-Answer") == "" {
				t.Errorf("a call failed: %v", err)
				return
			}
			acknowledged.Add(1)
			<-tick.C
		}
	})
	defer func() {
		end()
		load.Wait()
	}()
	testenv.Until(t, "an answer is stored", func() bool { return count(t, own) > 0 })

	dir := t.TempDir()
	run := func(program, what string, n int) {
		t.Helper()
		to := filepath.Join(dir, fmt.Sprintf("%s-%s-%d.db", filepath.Base(program), what, n))
		var cmd *exec.Cmd
		if program == python {
			cmd = exec.CommandContext(t.Context(), python, script, what, db, to)
		} else {
			cmd = exec.CommandContext(t.Context(), sqlite3, "-bail", db)
			cmd.Stdin = strings.NewReader(".timeout 10000\n" + map[string]string{
				"select": "SELECT count(*) FROM calls;",
				"vacuum": "VACUUM INTO '" + to + "';",
				"backup": ".backup " + to,
				"lock":   "BEGIN IMMEDIATE;\n.shell sleep 3\nCOMMIT;",
			}[what])
		}
		before := count(t, own)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v: %s", program, what, err, out)
		}
		switch what {
		case "select":
			// sqlite3 prints nothing else
			if n := testenv.Must(strconv.Atoi(strings.TrimSpace(string(out))))(t); n < before {
				t.Errorf("%s: %d answers, and there were %d before", cmd, n, before)
			}
		case "vacuum", "backup":
			if got := inspectCopy(t, to); got < before {
				t.Errorf("%s has %d answers, and there were %d before", to, got, before)
			}
			testenv.OK(t, os.Remove(to))
		}
		for _, suffix := range []string{"-wal", "-shm"} {
			if _, err := os.Stat(db + suffix); err != nil {
				t.Fatalf("after %s %s: %v", program, what, err)
			}
		}
		if body := get(t, w.URL+"/readyz"); !strings.Contains(body, `"status":"ready"`) {
			t.Fatalf("after %s %s: %s", program, what, body)
		}
	}
	for n := range copies {
		for _, program := range []string{sqlite3, python} {
			for _, what := range []string{"select", "vacuum", "backup"} {
				run(program, what, n)
			}
		}
	}
	for n := range locks {
		for _, program := range []string{sqlite3, python} {
			run(program, "lock", n)
		}
	}
	end()
	load.Wait()
	want := int(acknowledged.Load())
	testenv.Until(t, "every answer is stored", func() bool { return count(t, own) >= want })
	if got := count(t, own); got != want {
		t.Errorf("%d answers are stored, %d were acknowledged", got, want)
	}
	if log := w.Log.String(); strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("an error was logged")
	}
	t.Logf("%d answers", want)
}

// count returns the number of stored answers.
func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	testenv.OK(t, db.QueryRow("SELECT count(*) FROM calls").Scan(&n))
	return n
}

// inspectCopy checks a copy of a database and returns how many answers it has.
func inspectCopy(t *testing.T, name string) (answers int) {
	t.Helper()
	db := testenv.Must(sql.Open("sqlite", name))(t)
	defer db.Close()
	var whole string
	testenv.OK(t, db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&whole))
	if whole != "ok" {
		t.Errorf("%s is not whole: %s", name, whole)
	}
	return count(t, db)
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	testenv.OK(t, err)
	defer r.Body.Close()
	return string(testenv.Must(io.ReadAll(r.Body))(t))
}
