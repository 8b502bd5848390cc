package gateway_test

import (
	"database/sql"
	"testing"
)

// lockDatabase keeps everybody else from writing to a SQLite file until unlock is called. The store brings the driver.
func lockDatabase(tb testing.TB, name string) (unlock func()) {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+name+"?_pragma=busy_timeout(10000)")
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := db.Conn(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := conn.ExecContext(tb.Context(), "BEGIN IMMEDIATE"); err != nil {
		tb.Fatal(err)
	}
	return func() {
		tb.Helper()
		if _, err := conn.ExecContext(tb.Context(), "ROLLBACK"); err != nil {
			tb.Error(err)
		}
		_ = conn.Close()
		_ = db.Close()
	}
}
