package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/internal/sqlite"
)

// ErrFile means that the file of a SQLite database was deleted, replaced or damaged since it was opened. Nothing more
// is written to it, because that would be lost. The error is temporary ([IsTemporary]): the same calls can be stored
// once a good file is in place.
var ErrFile = errors.New("the database file is damaged or gone")

// sqliteFile watches the file of an open database and those beside it. SQLite silently continues with a file that was
// deleted or replaced, and with the pages in memory while the file is overwritten.
//
// It watches by stat and through SQLite: any other descriptor of the file would, when closed, drop the locks of this
// process (see package internal/sqlite).
type sqliteFile struct {
	name   string
	logger *slog.Logger

	mu        sync.Mutex
	opened    map[string]fs.FileInfo // by name
	seen      map[string]fs.FileInfo // the state at which the content was last looked at, or written by this process
	writing   bool                   // this process is in a transaction, which changes the log
	damaged   error                  // the error of the last write if it found damage; nil otherwise
	reported  bool                   // the problem was logged
	saveTried bool                   // the file was deleted, and saving it was attempted
	closed    bool                   // the database is closed
}

// settled is how old a file's time must be for a later change to show in it.
const settled = 100 * time.Millisecond

// parts returns the names of the file, its log and the index of the log.
func (f *sqliteFile) parts() []string { return []string{f.name, f.name + "-wal", f.name + "-shm"} }

// watchFile starts watching an open database file.
func watchFile(name string, logger *slog.Logger) (*sqliteFile, error) {
	f := &sqliteFile{
		name: name, logger: logger, opened: map[string]fs.FileInfo{}, seen: map[string]fs.FileInfo{},
	}
	for _, part := range f.parts() {
		info, err := os.Stat(part)
		if errors.Is(err, fs.ErrNotExist) && part != name {
			continue // created by the first write
		}
		if err != nil {
			return nil, err
		}
		f.opened[part], f.seen[part] = info, info
	}
	return f, nil
}

// begin is like check; the caller then writes, until end.
func (f *sqliteFile) begin(ctx context.Context) error {
	if err := f.check(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing = true
	return nil
}

// end records that the log is as this process has written it.
func (f *sqliteFile) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing = false
	if info, err := os.Stat(f.name + "-wal"); err == nil {
		f.seen[f.name+"-wal"] = info
	}
}

// check verifies that the file is still the one that was opened. It logs a problem once.
func (f *sqliteFile) check(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.inspect(ctx)
	if err != nil {
		f.report(ctx, err)
	}
	return err
}

// health returns what is known to be wrong with the file; nil if nothing.
func (f *sqliteFile) health(ctx context.Context) error {
	if err := f.check(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damaged
}

// recordWrite records how a write ended, and returns its error: with [ErrFile] if SQLite reports that the file is
// damaged. A damaged search index is not such an error.
func (f *sqliteFile) recordWrite(ctx context.Context, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.damaged, f.reported = nil, false
	case sqlite.IsDamage(err) && !errors.Is(err, errDamaged):
		err = fmt.Errorf("%w: %w", ErrFile, err)
		f.damaged = err
		f.report(ctx, err)
	}
	return err
}

// report logs what is wrong and what to do about it, once. f.mu must be held.
func (f *sqliteFile) report(ctx context.Context, err error) {
	if f.reported {
		return
	}
	f.reported = true
	hint := "first find out whether the file is whole: stop ibid and run `ibid backup --db " + f.name +
		" COPY`, which checks it, or `sqlite3 FILE 'PRAGMA integrity_check'`. If it is, start ibid again. If not, " +
		"put a backup in its place, or move it away, in both cases without its -wal and -shm, and start ibid: " +
		"the answers waiting in the journal are then stored; `sqlite3 " + f.name + " .recover` salvages what is left"
	f.logger.LogAttrs(
		ctx, slog.LevelError, "the database file cannot be used any more; answers stay in the journal",
		slog.Any("error", err), slog.String("hint", hint),
	)
}

// close stops watching the file, because SQLite deletes its log on closing.
func (f *sqliteFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

func (f *sqliteFile) inspect(ctx context.Context) error {
	if f.closed {
		return nil
	}
	changed := false
	now := map[string]fs.FileInfo{}
	for _, part := range f.parts() {
		opened := f.opened[part]
		info, err := os.Stat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist) && opened == nil:
			continue
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was deleted", ErrFile, part)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrFile, err)
		case opened == nil:
			f.opened[part] = info
		case !os.SameFile(opened, info):
			return fmt.Errorf("%w: %s was replaced by another file", ErrFile, part)
		}
		if part == f.name || part == f.name+"-wal" && !f.writing {
			now[part] = info
			changed = changed || isChanged(f.seen[part], info)
		}
	}
	if !changed {
		return nil
	}
	if err := f.look(ctx, now[f.name]); err != nil {
		return err
	}
	for part, info := range now {
		if time.Since(info.ModTime()) > settled { // else it is looked at again
			f.seen[part] = info
		}
	}
	return nil
}

// isChanged reports whether the content of a file may have changed.
func isChanged(before, now fs.FileInfo) bool {
	return before == nil || before.Size() != now.Size() || !before.ModTime().Equal(now.ModTime())
}

// look reads, with connections that have nothing in memory, the beginning of the file, whose state is info, and what
// the log has of a table that every answer changes. It finds a file that was overwritten or cut. Errors that do not
// mean damage are ignored.
func (f *sqliteFile) look(ctx context.Context, info fs.FileInfo) error {
	// The file alone, without its log: as a file that nobody changes. Until the first checkpoint it may be empty but
	// for its first page. A checkpoint writes the first page, with the number of pages, before the last ones: only a
	// file that has become shorter is too short.
	var pages, size int64
	err := f.query(ctx, url.Values{"mode": {"ro"}, "immutable": {"1"}},
		"SELECT page_count, page_size FROM pragma_page_count, pragma_page_size", &pages, &size)
	isShorter := f.seen[f.name] != nil && info.Size() < f.seen[f.name].Size()
	switch {
	case sqlite.HasCode(err, sqlite3.SQLITE_NOTADB), info.Size() == 0:
		return fmt.Errorf("%w: %s was overwritten or cut", ErrFile, f.name)
	case isShorter && (sqlite.IsDamage(err) || info.Size() < pages*size):
		return fmt.Errorf("%w: %s was cut", ErrFile, f.name)
	}
	var tenants int
	err = f.query(ctx, url.Values{"mode": {"rw"}, "_pragma": {"query_only(1)", sqlite.BusyTimeout(lockWait)}},
		"SELECT count(*) FROM usage", &tenants)
	if sqlite.IsDamage(err) || sqlite.HasCode(err, sqlite3.SQLITE_IOERR) { // a log that ends too early is an I/O error
		return fmt.Errorf("%w: %s or its log was overwritten or cut: %w", ErrFile, f.name, err)
	}
	return nil
}

// query reads one row with a new connection.
func (f *sqliteFile) query(ctx context.Context, how url.Values, query string, dest ...any) error {
	db, err := sqlite.Open(f.name, how)
	if err != nil {
		return err
	}
	return errors.Join(db.QueryRowContext(context.WithoutCancel(ctx), query).Scan(dest...), db.Close())
}

// saveDeleted rewrites a database whose file was deleted: this process still has it open, but its content is lost when
// the process ends. The new file is for the next process; this one stores nothing more. The caller must be the writer.
func (s *Store) saveDeleted(ctx context.Context) {
	f := s.file
	if f.saveTried {
		return
	}
	if info, err := os.Stat(f.name); !errors.Is(err, fs.ErrNotExist) {
		_, noLog := os.Stat(f.name + "-wal")
		if err != nil || !errors.Is(noLog, fs.ErrNotExist) || !os.SameFile(f.opened[f.name], info) {
			return // the file would receive invalid pages
		}
		// Only the log was deleted: the file may still receive all of it.
		_, _ = s.writer.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint(FULL)")
		return
	}
	f.saveTried = true
	err := s.rewrite(context.WithoutCancel(ctx), f.name)
	if err != nil {
		s.logger.LogAttrs(
			ctx, slog.LevelError, "the database file was deleted and cannot be rewritten",
			slog.String("file", f.name), slog.Any("error", err),
			slog.String("hint", "its answers are lost when this process ends: read them through the API first"),
		)
		return
	}
	s.logger.LogAttrs(
		ctx, slog.LevelWarn, "the database file was deleted; it was rewritten from the open database",
		slog.String("file", f.name),
		slog.String("hint", "restart ibid: until then answers wait in the journal. To remove all answers for good, "+
			"stop ibid first"),
	)
}

// rewrite writes the current database to a file that does not exist.
func (s *Store) rewrite(ctx context.Context, name string) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	draft := name + "-anew"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := file.CreatePrivate(draft); err != nil {
		return err
	}
	defer os.Remove(draft) //nolint:errcheck // linked under its name, or useless
	if _, err := s.writer.conn.ExecContext(ctx, "VACUUM INTO ?", draft); err != nil {
		return err
	}
	return file.Publish(draft, name)
}
