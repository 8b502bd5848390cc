package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/store"
)

// A search finds what reading everything would find, through merges, deletion and retention.
func TestIndexAgainstReading(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ibid.db"))
	random := rand.New(rand.NewPCG(1, 2))
	type stored struct{ id, text string }
	var all []stored // the oldest first
	for n := 0; n < 3000; {
		var batch []*store.Call
		for range 1 + random.IntN(9) + 100*(random.IntN(12)/11) {
			var words []string
			for range 1 + random.IntN(6) {
				words = append(words, fmt.Sprintf("w%x", random.IntN(1<<(1+random.IntN(12)))))
			}
			c := call(n, strings.Join(words, " "))
			c.Run, c.Tenant = "", store.DefaultTenant
			if n%5 == 0 {
				c.Tenant = "other"
			} else {
				all = append(all, stored{c.AnswerID, c.Answer.Text})
			}
			batch = append(batch, c)
			n++
		}
		put(t, s, batch...)
		if random.IntN(4) == 0 {
			i := random.IntN(len(all))
			if err := s.Delete(t.Context(), store.DefaultTenant, all[i].id); err != nil {
				t.Fatal(err)
			}
			all = slices.Delete(all, i, i+1)
		}
	}
	check := func() {
		t.Helper()
		for range 100 {
			word, other := fmt.Sprintf("w%x", random.IntN(1<<(1+random.IntN(12)))), fmt.Sprintf("w%x", random.IntN(4))
			want := map[string][]string{word + " ": {}, word: {}, other + " " + word + ".": {}}
			for _, a := range slices.Backward(all) {
				words := strings.Fields(a.text)
				has := slices.Contains(words, word)
				if has {
					want[word+" "] = append(want[word+" "], a.id)
				}
				if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, word) }) {
					want[word] = append(want[word], a.id)
				}
				if has && slices.Contains(words, other) {
					want[other+" "+word+"."] = append(want[other+" "+word+"."], a.id)
				}
			}
			for query, want := range want {
				got := ids(t, s, store.Query{Text: query, Limit: 20 + random.IntN(480)})
				for i := range want {
					want[i] = strings.TrimPrefix(want[i], "ans_000")
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%q finds %q, want %q", query, got, want)
				}
			}
		}
	}
	check()
	cut := len(all) / 2
	first, err := s.Call(t.Context(), store.DefaultTenant, all[cut].id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(t.Context(), &store.Retention{Default: time.Second, Now: first.Started.Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	all = all[cut:]
	check()
}

// However many answers a batch has: few segments are left, and no answer is in a merge more often than there are sizes.
func TestIndexMerges(t *testing.T) {
	for _, batch := range []int{1, 3, 32, 40} {
		name := filepath.Join(t.TempDir(), "ibid.db")
		s := open(t, name)
		db, err := sql.Open("sqlite", name)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		sizes := map[int]int{} // how many answers the segments had that were written for one of the answers
		before := map[int]int{}
		n := 0
		for n < 1100 {
			var calls []*store.Call
			for range batch {
				calls = append(calls, call(n, "some words"))
				n++
			}
			put(t, s, calls...)
			now := segmentAnswers(t, db)
			for last, answers := range now {
				if before[last] != answers {
					sizes[answers] += answers
				}
			}
			before = now
		}
		written := 0
		for _, answers := range sizes {
			written += answers
		}
		if len(before) > 70 || written > 3*n {
			t.Errorf("batches of %d: %d answers in %d segments, %d written: %v", batch, n, len(before), written, sizes)
		}
		if n := len(ids(t, s, store.Query{Text: "some words"})); n < 1100 {
			t.Errorf("batches of %d: %d answers are found", batch, n)
		}
	}
}

// segmentAnswers returns how many answers each segment has, by its last.
func segmentAnswers(t *testing.T, db *sql.DB) map[int]int {
	t.Helper()
	rows, err := db.Query("SELECT last, answers FROM segments")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[int]int{}
	for rows.Next() {
		var last, answers int
		if err := rows.Scan(&last, &answers); err != nil {
			t.Fatal(err)
		}
		all[last] = answers
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// A merge is bounded by what it reads: no write waits long for one.
func TestIndexMergeOfLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	s := open(t, name)
	var text strings.Builder
	for n := range 40 {
		text.Reset()
		for word := range 60_000 {
			fmt.Fprintf(&text, "%x ", (word*7919+n)%(1<<28))
		}
		put(t, s, call(n, text.String()))
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var segments, largest, pages int
	if err := db.QueryRow("SELECT count(*), max(size), (SELECT count(*) FROM pages) FROM segments").Scan(&segments, &largest, &pages); err != nil {
		t.Fatal(err)
	}
	if segments == 40 || largest > 4096 || pages < 2000 {
		t.Errorf("%d segments, the largest of %d pages, %d pages", segments, largest, pages)
	}
	if got := ids(t, s, store.Query{Text: fmt.Sprintf("%x ", 7919*3+5)}); len(got) == 0 {
		t.Error("nothing is found")
	}
}

// What is deleted is not in the file any more: neither its text nor its words.
func TestDeletedIsGone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	s := open(t, name)
	secret := call(1, "xylophonistic secrets")
	put(t, s, secret)
	put(t, s, call(2, "something else"))
	if err := s.Delete(t.Context(), store.DefaultTenant, secret.AnswerID); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // which moves the log into the file
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for table, column := range map[string]string{"calls": "call", "pages": "data"} {
		var n int
		if err := db.QueryRow("SELECT count(*) FROM " + table + " WHERE instr(CAST(" + column + " AS TEXT), 'xylophon') > 0").Scan(&n); err != nil || n > 0 {
			t.Errorf("%s: %d, %v", table, n, err)
		}
	}
	if b := readFile(t, name); strings.Contains(b, "xylophon") {
		t.Error("it is still in the file")
	}
}

// A damaged index is an error of searches; answers are stored and read all the same.
func TestIndexDamaged(t *testing.T) {
	for _, damage := range []string{
		"UPDATE pages SET data = x'ff00ff' WHERE id = 3", "UPDATE pages SET data = x'00ffffffffffffffffff01' WHERE id = 3", "DELETE FROM pages WHERE id = 3",
		"UPDATE pages SET data = x'000161ffffffffffffffff7f' WHERE id = 3", "UPDATE segments SET starts = x'ff' WHERE last = 3",
		"UPDATE segments SET first = -9000000000000000000 WHERE last = 3",
	} {
		name := filepath.Join(t.TempDir(), "ibid.db")
		s := open(t, name)
		for n := range 4 {
			put(t, s, call(n, "some words"))
		}
		db, err := sql.Open("sqlite", name)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Calls(t.Context(), store.DefaultTenant, &store.Query{Text: "words"}); err == nil {
			t.Errorf("%s: no error", damage)
		}
		for n := range 40 { // enough for a merge
			put(t, s, call(100+n, "more words"))
		}
		if n := len(ids(t, s, store.Query{})); n != 44 {
			t.Errorf("%d answers", n)
		}
		if _, err := s.Calls(t.Context(), store.DefaultTenant, &store.Query{Text: "more words", Limit: 30}); err != nil {
			t.Errorf("%s: what is newer is not found: %v", damage, err)
		}
	}
}

// The views are for people with an SQL client.
func TestViews(t *testing.T) {
	engines(t, func(t *testing.T, dsn func(*testing.T) string) {
		t.Helper()
		name := dsn(t)
		s := open(t, name)
		put(t, s, call(1, "Bees dance.", "bees.example", "wasps.example"))
		driver := "sqlite"
		if strings.HasPrefix(name, "postgres") {
			driver = "pgx"
		}
		db, err := sql.Open(driver, name)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var text string
		err = db.QueryRowContext(context.Background(), "SELECT c.cited_text || ' ' || c.quote || ' ' || s.title FROM sources s JOIN citations c"+
			" ON c.answer_id = s.answer_id AND c.source_id = s.id WHERE s.url = 'https://wasps.example/page' AND s.cited").Scan(&text)
		if err != nil || text != "Bees dance. as said by wasps.example About wasps.example" {
			t.Errorf("%q, %v", text, err)
		}
	})
}
