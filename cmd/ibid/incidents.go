package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

func newIncidents(w world) *cobra.Command {
	c := server.Defaults()
	f := &logFlags{}
	var query store.IncidentQuery
	cmd := &cobra.Command{
		Use:   "incidents",
		Short: "List failures found when answers and sources were verified",
		Long: `Every failure found by a verification is kept once, in an append-only list: by
ibid serve, when it fetches cited sources again or is asked to verify something,
and by ibid verify with --data. Each has the hash of the previous one, so that none
can be changed or removed without a trace; --audit checks this. Keep the id of the
last one elsewhere to notice if the end of the list is cut off.

Exit codes: 0 done, 1 the list was tampered with (--audit), 2 it cannot be read.`,
		Example: `  ibid incidents
  ibid incidents --source https://example.org/page --json
  ibid incidents --audit`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, c, w, func(ctx context.Context, s *store.Store) error {
				if f.check {
					return f.checkIncidents(ctx, s, w)
				}
				return writeLatest(w, f, func(cursor string, limit int) (*store.Page[verify.Incident], error) {
					query.Cursor, query.Limit = cursor, limit
					return s.Incidents(ctx, f.tenant, &query)
				}, "there are no such incidents", func(i *verify.Incident) []string {
					where := cmp.Or(i.SourceURL, i.ManifestURL, i.ResponseURL)
					return []string{i.ObservedAt.UTC().Format(time.RFC3339), string(i.Status), where, i.Detail}
				}, "OBSERVED", "STATUS", "WHERE", "WHAT")
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&query.Manifest, "manifest", "", "only incidents of the manifest with this hexadecimal `SHA256`")
	flags.StringVar(&query.Source, "source", "", "only incidents of the source with this `URL`")
	flags.StringVar(&query.Status, "status", "", "only incidents with this status `WORD`, such as excerpt-altered")
	flags.StringVar(&query.AnswerID, "answer", "", "only incidents of the answer with this `ID`")
	f.add(flags, "audit", "list nothing; check that no incident was changed, removed or inserted")
	flags.BoolVar(&f.json, "json", false, "one JSON object per line; with --audit one object")
	withoutVariable(flags, "manifest", "source", "status", "answer")
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

// incidentStatuses returns the statuses that count as failures, which incidents can have.
func incidentStatuses() []verify.Status {
	return []verify.Status{
		verify.HeaderMalformed, verify.ManifestTooLarge, verify.ManifestMutated, verify.ManifestMalformed,
		verify.VersionUnsupported, verify.ManifestInconsistent, verify.ManifestMismatch, verify.OutputMismatch,
		verify.Replayed, verify.Unsigned, verify.SignatureInvalid, verify.CoverageInsufficient, verify.KeyUnknown,
		verify.KeyRevoked, verify.KeyOutsideValidity, verify.SignatureExpired, verify.NotYetValid, verify.Expired,
		verify.AuthorityMismatch, verify.LogProofInvalid, verify.LogInconsistent, verify.ChainInvalid, verify.ChainGap,
		verify.LevelNotMet, verify.UpstreamInvalid, verify.ExcerptMismatch, verify.ExcerptAltered,
		verify.ExcerptMissing, verify.ClaimDiffers,
	}
}

// checkIncidents checks the whole list.
func (f *logFlags) checkIncidents(ctx context.Context, s *store.Store, w world) error {
	n, err := s.CheckIncidents(ctx, f.tenant)
	if ctx.Err() != nil || store.IsTemporary(err) {
		return err
	}
	var last string
	if page, err := s.Incidents(ctx, f.tenant, &store.IncidentQuery{Limit: 1}); err == nil && len(page.Items) > 0 {
		last = page.Items[0].ID
	}
	if f.json {
		out := struct {
			InOrder int     `json:"in_order"` // the number of valid incidents from the start
			Last    string  `json:"last"`     // the id of the last one; empty if there is none
			Error   *string `json:"error"`    // the problem with the next one; null if there is none
		}{InOrder: n, Last: last}
		if err != nil {
			out.Error = new(err.Error())
		}
		if failed := json.NewEncoder(w.out).Encode(out); failed != nil || err == nil {
			return failed
		}
	}
	return writeOrder(w, plural(n, "incident"), last, err)
}

// logFlags are the flags of a command that lists a hash-chained log of the store.
type logFlags struct {
	limit       int
	json, check bool
	tenant      string
}

// add adds the flags. The name of the one that checks the log differs between commands.
func (f *logFlags) add(flags *pflag.FlagSet, check, usage string) {
	flags.IntVar(&f.limit, "limit", 100, "list the latest `N`")
	flags.BoolVar(&f.check, check, false, usage)
	addTenantFlag(flags, &f.tenant)
	withoutVariable(flags, check, "limit")
}

func (f *logFlags) run(
	cmd *cobra.Command, c *server.Config, w world, do func(context.Context, *store.Store) error,
) error {
	if f.limit < 1 {
		return usagef("", "--limit %d: must be at least 1", f.limit)
	}
	return withStore(cmd, c, w, false, do)
}

// writeLatest writes the latest entries of a log, most recent first, as [writeList] does. It reads page by page.
func writeLatest[T any](
	w world, f *logFlags, read func(cursor string, limit int) (*store.Page[T], error),
	none string, cells func(*T) []string, columns ...string,
) error {
	var list []T
	cursor, more := "", true
	for more && len(list) < f.limit {
		page, err := read(cursor, min(f.limit-len(list), store.MaxLimit))
		if err != nil {
			return err
		}
		list = append(list, page.Items...)
		cursor, more = page.Next, page.Next != ""
	}
	if err := writeList(w, f.json, list, none, cells, columns...); err != nil {
		return err
	}
	if more { // --limit was reached
		hint(w.err, fmt.Sprintf("there are more than %d; use --limit to list them", len(list)))
	}
	return nil
}

// writeOrder reports how many entries of a log are in order, and the last one or the problem with the next.
func writeOrder(w world, entries, last string, wrong error) error {
	if wrong != nil {
		say(w.err, "%s in order, the next is not: %v", entries, wrong)
		return errNo
	}
	if last != "" {
		last = ", the last is " + last
	}
	_, err := fmt.Fprintf(w.out, "%s in order%s\n", entries, last)
	return err
}

// writeList writes a list as JSON lines, or as a table for people, or reports that it is empty.
func writeList[T any](
	w world, asJSON bool, list []T, none string, cells func(*T) []string, columns ...string,
) error {
	if asJSON {
		e := json.NewEncoder(w.out)
		for i := range list {
			if err := e.Encode(&list[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		say(w.err, "%s", none)
		return nil
	}
	rows := [][]string{columns}
	for i := range list {
		rows = append(rows, cells(&list[i]))
	}
	return writeTable(w.out, 2, rows)
}

// writeTable writes rows of cells in columns separated by apart spaces.
func writeTable(w io.Writer, apart int, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, apart, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = oneLine(cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func newAudit(w world) *cobra.Command {
	c := server.Defaults()
	f := &logFlags{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List the actions of administrators",
		Long: `Lists the creation and revocation of tokens and signing keys, the deletion and
pruning of answers, alerts marked as seen, settings changed between server starts,
and refused access tokens, each with its actor and time, from an append-only log.
Each entry has the hash of the previous one, so that none can be changed or removed
without a trace; --verify checks this. Keep the id of the last one elsewhere to
notice if the end of the log is cut off.

Exit codes: 0 done, 1 the log was tampered with (--verify), 2 it cannot be read.`,
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
	f.add(flags, "verify", "list nothing; check that no entry was changed, removed or inserted")
	flags.BoolVar(&f.json, "json", false, "one JSON object per line")
	cmd.MarkFlagsMutuallyExclusive("verify", "json")
	c.AddStoreFlags(cmd.Flags())
	return cmd
}

// checkAudit checks the whole log.
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
