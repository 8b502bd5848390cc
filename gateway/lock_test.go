package gateway_test

import (
	"database/sql"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// lockDatabase keeps everybody else from writing to a SQLite file until unlock is called. The store brings the driver.
func lockDatabase(tb testing.TB, name string) (unlock func()) {
	tb.Helper()
	db := testenv.Must(sql.Open("sqlite", "file:"+name+"?_pragma=busy_timeout(10000)"))(tb)
	conn := testenv.Must(db.Conn(tb.Context()))(tb)
	testenv.Must(conn.ExecContext(tb.Context(), "BEGIN IMMEDIATE"))(tb)
	return func() {
		tb.Helper()
		if _, err := conn.ExecContext(tb.Context(), "ROLLBACK"); err != nil {
			tb.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}
