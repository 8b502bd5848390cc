package store

import (
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// What PostgreSQL may take for a statement is what the operator says of it, else half a minute; and transactions in which
// nothing is asked for end as soon.
func TestStatementTime(t *testing.T) {
	dsn := testenv.Postgres(t).DSN
	for parameter, want := range map[string]string{"": "30s", "&statement_timeout=700": "700ms"} {
		s := testenv.Must(Open(t.Context(), dsn+parameter, nil))(t)
		for _, setting := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
			var got string
			testenv.OK(t, each(t.Context(), s.db, into(&got), "SHOW "+setting))
			if got != want {
				t.Errorf("%s is %s with %q, not %s", setting, got, parameter, want)
			}
		}
		testenv.OK(t, s.Close())
	}
}
