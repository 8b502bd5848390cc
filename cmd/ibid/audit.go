package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

func newAudit(w world) *cobra.Command {
	c := server.Defaults()
	f := &logFlags{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List what administrators did",
		Long: `Tokens and signing keys that were made or revoked, answers that were deleted or
pruned, alerts that somebody has seen, other settings at a server's start, and
access tokens that were refused: each with who did it and when, in a list that is
only added to. Each entry has the hash of the one before, so that none can be
changed or left out without a trace; --verify looks for such. Keep the id of the
last one elsewhere to notice when the list's end is cut off.

Exit codes: 0 done, 1 the list is not in order (--verify), 2 it cannot be read.`,
		Example: `  ibid audit
  ibid audit --verify`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, c, w, func(ctx context.Context, s *store.Store) error {
				if f.check {
					return f.checkAudit(ctx, s, w)
				}
				return writeLatest(w, f, func(cursor string, limit int) (*store.Page[store.AuditEntry], error) {
					return s.AuditLog(ctx, f.tenant, cursor, limit)
				}, "the audit log is empty", func(e *store.AuditEntry) []string {
					return []string{e.At.Format(time.RFC3339), e.Actor, string(e.Action), e.Object, e.Detail}
				}, "AT", "ACTOR", "ACTION", "OBJECT", "DETAIL")
			})
		},
	}
	flags := cmd.Flags()
	f.add(flags, "verify", "list nothing; check that no entry was changed, left out or put in between")
	flags.BoolVar(&f.json, "json", false, "one JSON object a line")
	cmd.MarkFlagsMutuallyExclusive("verify", "json")
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

// checkAudit checks the whole list.
func (f *logFlags) checkAudit(ctx context.Context, s *store.Store, w world) error {
	n, err := s.CheckAudit(ctx, f.tenant)
	if ctx.Err() != nil || store.IsTemporary(err) {
		return err
	}
	entries, last := fmt.Sprintf("%d entries of the audit log", n), ""
	if n == 1 {
		entries = "1 entry of the audit log"
	}
	if page, err := s.AuditLog(ctx, f.tenant, "", 1); err == nil && len(page.Items) > 0 {
		last = page.Items[0].ID
	}
	return writeOrder(w, entries, last, err)
}
