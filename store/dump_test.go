package store_test

import (
	"database/sql"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
)

// What pg_dump wrote is restored into an empty database, as ibid backup says: answers, search and the audit log are
// there, new answers are stored, and opening it migrates nothing.
func TestDumpRestored(t *testing.T) {
	server := testenv.Postgres(t)
	const bin = "/usr/lib/postgresql/15/bin/"
	dump, restore := testenv.Tool(t, bin+"pg_dump"), testenv.Tool(t, bin+"pg_restore")
	s := open(t, server.DSN)
	put(t, s, call(1, "The heron stands in the reeds."), call(2, "The ferry leaves at 7:40."))
	testenv.OK(t, s.Audit(t.Context(), store.DefaultTenant, store.AuditEntry{Action: store.AuditPruned}))
	file := filepath.Join(t.TempDir(), "ibid.dump")
	run := func(name string, args ...string) {
		t.Helper()
		if said, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v, %s", name, err, said)
		}
	}
	run(dump, "--format=custom", "--file="+file, server.DSN)
	put(t, s, call(3, "After the dump."))

	admin := testenv.Must(sql.Open("pgx", server.DSN))(t)
	defer admin.Close()
	_ = testenv.Must(admin.Exec("CREATE DATABASE restored"))(t)
	dsn := strings.Replace(server.DSN, "///ibid", "///restored", 1)
	run(restore, "--exit-on-error", "--dbname="+dsn, file)
	schema := testenv.Must(store.Inspect(t.Context(), dsn))(t)
	if schema.Version != schema.Newest {
		t.Errorf("version %d, not %d", schema.Version, schema.Newest)
	}
	restored := open(t, dsn)
	if got := ids(t, restored, store.Query{}); len(got) != 2 {
		t.Errorf("answers %q", got)
	}
	if got := ids(t, restored, store.Query{Text: "heron"}); len(got) != 1 {
		t.Errorf("found %q", got)
	}
	log := testenv.Must(restored.AuditLog(t.Context(), store.DefaultTenant, "", 0))(t)
	if len(log.Items) != 1 {
		t.Errorf("audit log %+v", log.Items)
	}
	put(t, restored, call(4, "After the restore."))
	if got := ids(t, restored, store.Query{}); len(got) != 3 {
		t.Errorf("answers %q", got)
	}
}
