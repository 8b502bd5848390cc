package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/internal/text"
	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
	"github.com/ibidhq/ibid/verify"
)

// incidentsFlags are the flags of ibid incidents.
type incidentsFlags struct {
	query       store.IncidentQuery
	limit       int
	json, audit bool
	tenant      string
}

// defaultIncidents is how many incidents are listed unless told otherwise.
const defaultIncidents = 100

func newIncidents(w world) *cobra.Command {
	c := server.Defaults()
	f := &incidentsFlags{}
	cmd := &cobra.Command{
		Use:   "incidents",
		Short: "List what failed when answers and their sources were verified",
		Long: `Every failure that a verification finds is kept once, in a list that is only
added to: by ibid serve, when it reads cited sources again or is asked to verify
something, and by ibid verify with --data. Each has the hash of the one before, so
that none can be changed or left out without a trace; --audit looks for such.
Keep the id of the last one elsewhere to notice when the list's end is cut off.

Exit codes: 0 done, 1 the list is not in order (--audit), 2 it cannot be read.`,
		Example: `  ibid incidents
  ibid incidents --source https://example.org/page --json
  ibid incidents --audit`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.limit < 1 {
				return &usageError{fmt.Errorf("--limit %d: there must be at least one", f.limit), ""}
			}
			return withStore(cmd, c, w, false, func(ctx context.Context, s *store.Store) error {
				if f.audit {
					return f.auditAll(ctx, s, w)
				}
				return f.list(ctx, s, w)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.query.Manifest, "manifest", "", "only those of the manifest with this `SHA256`, in hexadecimal")
	flags.StringVar(&f.query.Source, "source", "", "only those of the source with this `URL`")
	flags.StringVar(&f.query.Status, "status", "", "only those with this status `WORD`, as excerpt-altered")
	flags.StringVar(&f.query.AnswerID, "answer", "", "only those of the answer with this `ID`")
	flags.IntVar(&f.limit, "limit", defaultIncidents, "list the latest `N`")
	flags.BoolVar(&f.audit, "audit", false, "list nothing; check that none was changed, left out or put in between")
	addTenantFlag(flags, &f.tenant)
	flags.BoolVar(&f.json, "json", false, "one JSON object a line; with --audit one object")
	if err := cmd.RegisterFlagCompletionFunc(
		"status",
		cobra.FixedCompletions(text.Strings(incidentStatuses()), cobra.ShellCompDirectiveNoFileComp),
	); err != nil {
		panic(err) // the flag was added above
	}
	withoutVariable(flags, "manifest", "source", "status", "answer", "audit", "limit")
	addStoreFlags(cmd, c)
	return cmd
}

// incidentStatuses returns the words that may count as a failure: those that an incident can have.
func incidentStatuses() []verify.Status {
	return []verify.Status{
		verify.HeaderMalformed, verify.ManifestTooLarge, verify.ManifestMutated, verify.ManifestMalformed,
		verify.VersionUnsupported, verify.ManifestInconsistent, verify.ManifestMismatch, verify.OutputMismatch,
		verify.Replayed, verify.Unsigned, verify.SignatureInvalid, verify.CoverageInsufficient, verify.KeyUnknown,
		verify.KeyRevoked, verify.KeyOutsideValidity, verify.SignatureExpired, verify.NotYetValid, verify.Expired,
		verify.AuthorityMismatch, verify.LogProofInvalid, verify.LogInconsistent, verify.ChainInvalid, verify.ChainGap,
		verify.LevelNotMet, verify.UpstreamInvalid, verify.ExcerptMismatch, verify.ExcerptAltered,
		verify.ExcerptMissing, verify.UnsupportedClaim, verify.ClaimDoubtful,
	}
}

// list shows the latest incidents, the last first.
func (f *incidentsFlags) list(ctx context.Context, s *store.Store, w world) error {
	q := f.query
	list, more, err := latest(f.limit, func(cursor string, limit int) (*store.Page[verify.Incident], error) {
		q.Cursor, q.Limit = cursor, limit
		return s.Incidents(ctx, f.tenant, &q)
	})
	if err != nil {
		return err
	}
	return writeLatest(w, list, f.json, f.table, more)
}

// latest returns up to limit items of a list of the store, and whether it has more. It reads page by page.
func latest[T any](
	limit int, read func(cursor string, limit int) (*store.Page[T], error),
) (list []T, more bool, err error) {
	for cursor := ""; len(list) < limit; {
		page, err := read(cursor, min(limit-len(list), store.MaxLimit))
		if err != nil {
			return nil, false, err
		}
		list = append(list, page.Items...)
		if cursor = page.Next; cursor == "" {
			return list, false, nil
		}
	}
	return list, true, nil
}

// writeLatest writes what latest returned, as lines of JSON or as a table.
func writeLatest[T any](w world, list []T, asJSON bool, table func([]T, world) error, more bool) error {
	var err error
	if asJSON {
		err = writeLines(w.out, list)
	} else {
		err = table(list, w)
	}
	if err == nil && more { // as many as --limit says are there
		hint(w.err, fmt.Sprintf("there are more than %d: --limit lists them", len(list)))
	}
	return err
}

// writeLines writes each item of a list as a line of JSON.
func writeLines[T any](w io.Writer, list []T) error {
	e := json.NewEncoder(w)
	for i := range list {
		if err := e.Encode(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (f *incidentsFlags) table(list []verify.Incident, w world) error {
	if len(list) == 0 {
		say(w.err, "there are no such incidents")
		return nil
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "OBSERVED\tSTATUS\tWHERE\tWHAT")
	for i := range list {
		one := &list[i]
		where := cmp.Or(one.SourceURL, one.ManifestURL, one.ResponseURL)
		fmt.Fprintf(
			t, "%s\t%s\t%s\t%s\n", one.ObservedAt.UTC().Format(time.RFC3339), oneLine(string(one.Status)),
			oneLine(where), oneLine(one.Detail),
		)
	}
	return t.Flush()
}

// auditAll checks the whole list.
func (f *incidentsFlags) auditAll(ctx context.Context, s *store.Store, w world) error {
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
			InOrder int     `json:"in_order"` // how many, from the first on
			Last    string  `json:"last"`     // the id of the last one; empty: there is none
			Error   *string `json:"error"`    // what is wrong with the next; null: nothing
		}{InOrder: n, Last: last}
		if err != nil {
			out.Error = new(err.Error())
		}
		if err := json.NewEncoder(w.out).Encode(out); err != nil {
			return err
		}
	}
	if err != nil {
		say(w.err, "%s in order, the next is not: %v", plural(n, "incident"), err)
		return errNo
	}
	if !f.json {
		fmt.Fprintf(w.out, "%s in order", plural(n, "incident"))
		if last != "" {
			fmt.Fprintf(w.out, ", the last is %s", last)
		}
		fmt.Fprintln(w.out)
	}
	return nil
}
