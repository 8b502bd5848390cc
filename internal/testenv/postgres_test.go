package testenv

import (
	"os"
	"testing"
)

func TestPostgres(t *testing.T) {
	p := Postgres(t)
	p.Database(t, "another")
	p.Stop(t)
	if p.running() {
		t.Error("it runs after Stop")
	}
	p.Start(t)
	p.mustAs(t, postgresBin+"psql", "-h", p.dir, "-U", "postgres", "-c", "SELECT 1", "another")
	if _, err := os.Stat(p.dir); err != nil {
		t.Fatal(err)
	}
}
