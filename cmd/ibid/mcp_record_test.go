package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibidhq/ibid/internal/testenv"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// Failures found by the tool of ibid mcp are recorded even if the caller has left.
func TestRecordFailures(t *testing.T) {
	s := testenv.Must(store.Open(t.Context(), filepath.Join(t.TempDir(), "ibid.db"), nil))(t)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report := &verify.Report{
		CheckedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Verifier: "ibid", VerifierVersion: "1",
		Failure: []verify.Finding{{Code: "output-mismatch", Manifest: "https://agent.example/runs/r", Detail: "other words"}},
	}
	recordFailures(ctx, s, "acme", report, slog.New(slog.DiscardHandler))
	recordFailures(ctx, s, "acme", &verify.Report{}, slog.New(slog.DiscardHandler))
	kept, err := s.Incidents(t.Context(), "acme", nil)
	if err != nil || len(kept.Items) != 1 || kept.Items[0].Status != "output-mismatch" {
		t.Errorf("incidents = %+v, %v", kept, err)
	}
}
