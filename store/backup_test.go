package store_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/store/journal"
)

// A backup has what is stored and what is only in the journal, while both are open and another connection holds the
// lock for writing.
func TestBackupOfOpenStore(t *testing.T) {
	dir := t.TempDir()
	name, journalDir, to := filepath.Join(dir, "ibid.db"), filepath.Join(dir, "journal"), filepath.Join(dir, "copy.db")
	s := testenv.Must(store.Open(t.Context(), name, nil))(t)
	defer func() { testenv.OK(t, s.Close()) }()
	put(t, s, call(1, "Stored."))
	put(t, s, call(2, "Stored, and still in the journal."))
	j := testenv.Must(journal.Open(journalDir, nil))(t)
	defer func() { testenv.OK(t, j.Close()) }()
	for _, c := range []*store.Call{call(2, "Stored, and still in the journal."), call(3, "Only in the journal.")} {
		testenv.Must(j.Append(testenv.Must(c.Encode())(t)))(t)
	}
	last := testenv.Must(j.Append([]byte("nonsense")))(t)
	testenv.OK(t, j.Sync(t.Context(), last))
	other := testenv.Must(sql.Open("sqlite", "file:"+name+"?_txlock=immediate"))(t)
	defer other.Close()
	tx := testenv.Must(other.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback() // nothing was changed

	report := testenv.Must(store.Backup(t.Context(), name, journalDir, to))(t)
	testenv.Equal(t, "the report", &store.BackupReport{Answers: 3, Journal: 2, Unread: 1}, report)
	if info := testenv.Must(os.Stat(to))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if left := testenv.Must(filepath.Glob(filepath.Join(dir, ".ibid-backup-*")))(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if got := ids(t, open(t, to), store.Query{}); len(got) != 3 {
		t.Errorf("the copy has %q", got)
	}
	if _, err := store.Backup(t.Context(), name, journalDir, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("to a file that exists: %v", err)
	}
}

// Two servers cannot use one file, whatever they call it. Other processes can.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	name, link := filepath.Join(dir, "ibid.db"), filepath.Join(dir, "link.db")
	testenv.OK(t, os.Symlink(name, link))
	s := testenv.Must(store.Open(t.Context(), link, &store.Options{Serve: 1}))(t)
	if _, err := store.Open(t.Context(), name, &store.Options{Serve: 1}); !errors.Is(err, store.ErrServed) {
		t.Errorf("a second server: %v", err)
	}
	put(t, open(t, name), call(1, "Hello."))
	testenv.OK(t, s.Close())
	testenv.OK(t, testenv.Must(store.Open(t.Context(), name, &store.Options{Serve: 1}))(t).Close())
}
