package store_test

import (
	"compress/gzip"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// testdata/v1.db.gz is a store as version 1 of the tables has it. Every later version opens it, reads it and finds what
// is in it.
func TestVersion1(t *testing.T) {
	packed, err := os.Open(filepath.Join("testdata", "v1.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
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

// A database from before the first release is refused, and stays as it is.
func TestOlder(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ibid.db")
	db := testenv.Must(sql.Open("sqlite", name))(t)
	defer db.Close()
	testenv.Must(db.Exec("CREATE TABLE calls (n INTEGER PRIMARY KEY); CREATE TABLE goose_db_version (version_id INTEGER)"))(t)
	if _, err := store.Open(t.Context(), name, nil); !errors.Is(err, store.ErrOlder) || store.IsTemporary(err) {
		t.Errorf("Open: %v", err)
	}
	var n int
	if err := db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE name = 'conversations'").Scan(&n); err != nil || n != 0 {
		t.Errorf("it was changed: %d, %v", n, err)
	}
}
