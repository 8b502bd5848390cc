package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/ibidhq/ibid/server"
	"github.com/ibidhq/ibid/store"
)

func newBackup(w world) *cobra.Command {
	c := server.Defaults()
	asJSON := false
	cmd := &cobra.Command{
		Use:   "backup COPY",
		Short: "Copy the SQLite database of a server, also while it runs",
		Long: `Makes a complete copy of the database, with all answers whose end a client has
seen, including those that the server has only in its journal (--data), and checks
that the copy is whole. The server continues meanwhile. The file COPY must not
exist; nothing is left of a copy that fails.

The exit code is 1 if the database is damaged. The copy has no keys and no
configuration; it says which files to keep as well. A PostgreSQL database is copied
by pg_dump.`,
		Example: `  ibid backup /backup/ibid-2026-11-29.db
  ibid backup --config /etc/ibid.yaml /backup/ibid.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.ResolveStore(cmd.Flags(), w.env); err != nil {
				return err
			}
			to := args[0]
			if to == "-" {
				return usagef("name a file that does not exist", "a copy cannot be written to standard output")
			}
			if store.IsPostgres(c.DB) {
				return usagef(
					"pg_dump --format=custom --file="+to+" '"+server.Redacted(c.DB)+"', and pg_restore --dbname=URL "+
						to+" into an empty database; "+c.BesideDatabase(),
					"ibid backup is for SQLite databases",
				)
			}
			if _, err := os.Stat(c.DB); err != nil {
				return usagef("--data or --db names the database of ibid serve", "there is no database: %w", err)
			}
			report, err := store.Backup(cmd.Context(), c.DB, c.JournalDir(), to)
			switch {
			case errors.Is(err, store.ErrDamaged):
				say(w.err, "%v; it was not copied", err)
				hint(w.err, "restore an earlier copy; `sqlite3 "+c.DB+" .recover` reads what is left")
				return errNo
			case errors.Is(err, fs.ErrExist):
				return usagef("name a file that does not exist", "%w", err)
			case err != nil:
				return err
			}
			words := fmt.Sprintf("copied %s to %s, which is whole", plural(report.Answers, "answer"), to)
			if report.Unread > 0 {
				words += fmt.Sprintf("; %s of the journal cannot be stored", plural(report.Unread, "record"))
			}
			say(w.err, "%s", words)
			if report.NoJournal {
				say(w.err, "there is no journal in %s: if a server has one, name its --data", c.JournalDir())
			}
			hint(w.err, c.BesideDatabase())
			if !asJSON {
				return nil
			}
			return json.NewEncoder(w.out).Encode(backupLine{to, report.Answers, report.Unread, !report.NoJournal})
		},
	}
	c.AddStoreFlags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "also write what the copy has as one JSON object")
	return cmd
}

// backupLine is a copy in the output of ibid backup --json. Its members must not be renamed.
type backupLine struct {
	Copy       string `json:"copy"`
	Answers    int    `json:"answers"`
	Unread     int    `json:"unread"`      // records of the journal that cannot be stored
	HasJournal bool   `json:"has_journal"` // the answers in the server's journal are in the copy
}
