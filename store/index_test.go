package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// A search finds what reading everything would find, through merges, deletion and retention.
func TestIndexAgainstReading(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "ibid.db"))
	random := rand.New(rand.NewPCG(1, 2))
	type stored struct{ id, text string }
	var all []stored // oldest first
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
			testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, all[i].id))
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
	middle := len(all) / 2
	first := testenv.Must(s.Call(t.Context(), store.DefaultTenant, all[middle].id))(t)
	testenv.Must(s.Prune(t.Context(), &store.Retention{Default: time.Second, Now: first.Started.Add(time.Second)}))(t)
	all = all[middle:]
	check()
}

// Deleted answers are no longer in the file, except for their words, which are removed when the index is rebuilt.
func TestDeletedIsGone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	s := open(t, name)
	secret := call(1, "xylophonistic secrets")
	put(t, s, secret)
	put(t, s, call(2, "something else"))
	testenv.OK(t, s.Delete(t.Context(), store.DefaultTenant, secret.AnswerID))
	db := raw(t, name)
	var n int
	if err := db.QueryRow("SELECT count(*) FROM calls WHERE instr(call, 'xylophon') > 0").Scan(&n); err != nil || n > 0 {
		t.Errorf("calls: %d, %v", n, err)
	}
	testenv.OK(t, s.Reindex(t.Context()))
	diff(t, "found", ids(t, s, store.Query{Text: "something"}), []string{"2"})
	db.Close()
	testenv.OK(t, s.Close()) // which moves the log into the file
	if b := readFile(t, name); strings.Contains(b, "xylophon") {
		t.Error("it is still in the file")
	}
}

// A damaged index makes searches fail; answers are stored and read all the same, and Reindex repairs it.
func TestIndexDamaged(t *testing.T) {
	for _, damage := range []string{
		"UPDATE words_data SET block = x'ff00ff' WHERE id > 10", "DELETE FROM words_data WHERE id > 10",
	} {
		name := filepath.Join(t.TempDir(), "ibid.db")
		s := open(t, name)
		for n := range 4 {
			put(t, s, call(n, "some words"))
		}
		db := raw(t, name)
		testenv.Must(db.Exec(damage))(t)
		s.Close()
		s = open(t, name)
		if _, err := s.Calls(t.Context(), store.DefaultTenant, &store.Query{Text: "words"}); err == nil || store.IsTemporary(err) {
			t.Errorf("%s: %v", damage, err)
		}
		for n := range 10 {
			put(t, s, call(100+n, "more words"))
		}
		if n := len(ids(t, s, store.Query{})); n != 14 {
			t.Errorf("%d answers", n)
		}
		testenv.OK(t, s.Reindex(t.Context()))
		if n := len(ids(t, s, store.Query{Text: "words"})); n != 14 {
			t.Errorf("%s: %d answers are found after rebuilding", damage, n)
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
		db := raw(t, name)
		var text string
		err := db.QueryRowContext(context.Background(), "SELECT c.cited_text || ' ' || c.quote || ' ' || s.title FROM sources s JOIN citations c"+
			" ON c.answer_id = s.answer_id AND c.source_id = s.id WHERE s.url = 'https://wasps.example/page' AND s.cited").Scan(&text)
		if err != nil || text != "Bees dance. as said by wasps.example About wasps.example" {
			t.Errorf("%q, %v", text, err)
		}
		var unit, created string
		var start, end, claimed int
		var confidence *float64
		err = db.QueryRowContext(context.Background(), "SELECT c.unit, c.text_start, c.text_end, c.claim_end, c.confidence, CAST(c.created_at AS TEXT)"+
			" FROM citations c WHERE c.source_title = 'About wasps.example'").Scan(&unit, &start, &end, &claimed, &confidence, &created)
		if err != nil || unit != "utf-8" || start != 0 || end != len("Bees dance.") || claimed != end || confidence != nil || !strings.HasPrefix(created, "20") {
			t.Errorf("%s %d to %d, claim to %d, confidence %v, at %s: %v", unit, start, end, claimed, confidence, created, err)
		}
	})
}
