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
	if err := p.runAs(t.Context(), "psql", "-h", p.dir, "-U", "postgres", "-c", "SELECT 1", "another"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.dir); err != nil {
		t.Fatal(err)
	}
}
