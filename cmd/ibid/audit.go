package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

// auditFlags are the flags of ibid audit.
type auditFlags struct {
	limit        int
	json, verify bool
	tenant       string
}

// defaultAudit is how many entries are listed unless told otherwise.
const defaultAudit = 100

func newAudit(w world) *cobra.Command {
	c := server.Defaults()
	f := &auditFlags{}
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
			if f.limit < 1 {
				return &usageError{fmt.Errorf("--limit %d: there must be at least one", f.limit), ""}
			}
			return withStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
				if f.verify {
					return f.check(ctx, s, w)
				}
				return f.list(ctx, s, w)
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.limit, "limit", defaultAudit, "list the latest `N`")
	flags.BoolVar(
		&f.verify, "verify", false, "list nothing; check that no entry was changed, left out or put in between",
	)
	addTenantFlag(flags, &f.tenant)
	flags.BoolVar(&f.json, "json", false, "one JSON object a line")
	cmd.MarkFlagsMutuallyExclusive("verify", "json")
	withoutVariable(flags, "verify", "limit")
	addStoreFlags(cmd, c)
	return cmd
}

// list shows the latest entries, the last first.
func (f *auditFlags) list(ctx context.Context, s *store.Store, w world) error {
	list, more, err := latest(f.limit, func(cursor string, limit int) (*store.Page[store.AuditEntry], error) {
		return s.AuditLog(ctx, f.tenant, cursor, limit)
	})
	if err != nil {
		return err
	}
	return writeLatest(w, list, f.json, f.table, more)
}

func (*auditFlags) table(list []store.AuditEntry, w world) error {
	if len(list) == 0 {
		say(w.err, "the audit log is empty")
		return nil
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "AT\tACTOR\tACTION\tOBJECT\tDETAIL")
	for i := range list {
		one := &list[i]
		fmt.Fprintf(
			t, "%s\t%s\t%s\t%s\t%s\n", one.At.Format(time.RFC3339), oneLine(one.Actor), oneLine(string(one.Action)),
			oneLine(one.Object), oneLine(one.Detail),
		)
	}
	return t.Flush()
}

// check checks the whole list.
func (f *auditFlags) check(ctx context.Context, s *store.Store, w world) error {
	n, err := s.CheckAudit(ctx, f.tenant)
	if ctx.Err() != nil || store.IsTemporary(err) {
		return err
	}
	entries := fmt.Sprintf("%d entries of the audit log", n)
	if n == 1 {
		entries = "1 entry of the audit log"
	}
	if err != nil {
		say(w.err, "%s in order, the next is not: %v", entries, err)
		return errNo
	}
	fmt.Fprintf(w.out, "%s in order", entries)
	if page, err := s.AuditLog(ctx, f.tenant, "", 1); err == nil && len(page.Items) > 0 {
		fmt.Fprintf(w.out, ", the last is %s", page.Items[0].ID)
	}
	fmt.Fprintln(w.out)
	return nil
}
