package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/ibidhq/ibid/internal/file"
)

// ErrFile means that the file of a SQLite database was deleted, replaced or damaged since it was opened. Nothing more
// is written to it, because that would be lost. The error is temporary ([IsTemporary]): the same calls can be stored
// once a good file is in place.
var ErrFile = errors.New("the database file is damaged or gone")

const (
	sqliteMagic  = "SQLite format 3\x00"
	sqliteHeader = 100 // bytes at the beginning of a database file
	logMagic     = 0x377f0682
	logHeader    = 32 // bytes at the beginning of a write-ahead log, unless it is empty
)

// sqliteFile watches the file of an open database and the log beside it. SQLite silently continues with a file that was
// deleted or replaced, and with the pages in memory while the file is overwritten. It does not read a log whose
// beginning is gone when it opens the file again.
type sqliteFile struct {
	name   string
	logger *slog.Logger

	mu        sync.Mutex
	opened    map[string]fs.FileInfo // by name
	size      int64                  // of the file when it was last checked
	damaged   error                  // the error of the last write if it found damage; nil otherwise
	reported  bool                   // the problem was logged
	saveTried bool                   // the file was deleted, and saving it was attempted
	closed    bool                   // the database is closed
}

// watchFile starts watching an open database file.
func watchFile(name string, logger *slog.Logger) (*sqliteFile, error) {
	f := &sqliteFile{name: name, logger: logger, opened: map[string]fs.FileInfo{}}
	for _, one := range []string{name, name + "-wal"} {
		info, err := os.Stat(one)
		if errors.Is(err, fs.ErrNotExist) && one != name {
			continue // created by the first write
		}
		if err != nil {
			return nil, err
		}
		f.opened[one] = info
	}
	return f, nil
}

// check verifies that the file is still the one that was opened. It logs a problem once.
func (f *sqliteFile) check(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.inspect()
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
	case isDamage(err) && !errors.Is(err, errDamaged):
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
	hint := "stop ibid, put a backup in its place or move it away with its -wal and -shm, and start ibid again: " +
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

func (f *sqliteFile) inspect() error {
	if f.closed {
		return nil
	}
	for name, opened := range f.opened {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %s was deleted", ErrFile, name)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrFile, err)
		case !os.SameFile(opened, info):
			return fmt.Errorf("%w: %s was replaced by another file", ErrFile, name)
		case name == f.name:
			if err := f.checkHeader(info.Size()); err != nil {
				return err
			}
		default:
			if err := f.checkLog(); err != nil {
				return err
			}
		}
	}
	if name := f.name + "-wal"; f.opened[name] == nil {
		if info, err := os.Stat(name); err == nil {
			f.opened[name] = info
		}
	}
	return nil
}

// checkHeader checks the beginning of the file, which has size bytes.
func (f *sqliteFile) checkHeader(size int64) error {
	in, err := os.Open(f.name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer in.Close() //nolint:errcheck // read only
	var head [sqliteHeader]byte
	if _, err := in.ReadAt(head[:], 0); err != nil || string(head[:len(sqliteMagic)]) != sqliteMagic {
		return fmt.Errorf("%w: %s was overwritten or cut", ErrFile, f.name)
	}
	// SQLite itself may shorten the file, and then updates its header.
	page := int64(binary.BigEndian.Uint16(head[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if pages := int64(binary.BigEndian.Uint32(head[28:])); size < f.size && size < page*pages {
		return fmt.Errorf("%w: %s was cut", ErrFile, f.name)
	}
	f.size = size
	return nil
}

// checkLog checks the beginning of the log. An empty log is as good as none: another process may have moved its content
// into the file.
func (f *sqliteFile) checkLog() error {
	name := f.name + "-wal"
	in, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer in.Close() //nolint:errcheck // read only
	var head [logHeader]byte
	switch n, err := in.ReadAt(head[:], 0); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil, binary.BigEndian.Uint32(head[:])&^1 != logMagic:
		return fmt.Errorf("%w: %s was overwritten or cut", ErrFile, name)
	}
	return nil
}

// saveDeleted rewrites a database whose file was deleted: this process still has it open, but its content is lost when
// the process ends. The new file is for the next process; this one stores nothing more. The caller must be the writer.
func (s *Store) saveDeleted(ctx context.Context) {
	f := s.file
	if f.saveTried {
		return
	}
	if _, err := os.Stat(f.name); !errors.Is(err, fs.ErrNotExist) {
		if err := f.checkLog(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // the file would receive invalid pages
		}
		// If only the log was deleted, the file may still receive all of it.
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
	out, err := os.OpenFile(draft, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := os.Link(draft, name); err != nil { // a file that exists by now stays
		return err
	}
	return file.SyncDir(filepath.Dir(name))
}
