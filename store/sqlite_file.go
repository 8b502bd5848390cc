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

// ErrFile says that the file of an SQLite database was deleted, replaced or damaged since it was opened. Nothing
// is written to it any more, because it would be lost. The error is temporary ([IsTemporary]): the same calls can be
// stored once a good file is in place.
var ErrFile = errors.New("the database file is damaged or gone")

const (
	sqliteMagic  = "SQLite format 3\x00"
	sqliteHeader = 100 // bytes that a file of SQLite's begins with
	logMagic     = 0x377f0682
	logHeader    = 32 // bytes that a log of SQLite's begins with, once there is something in it
)

// sqliteFile is the file of a database that is open, with the log beside it. SQLite goes on with a file that was
// deleted or replaced, and with its pages in memory while the file is overwritten, and says nothing. Of a log whose
// beginning is gone nothing is read when the file is opened again.
type sqliteFile struct {
	name   string
	logger *slog.Logger

	mu      sync.Mutex
	opened  map[string]fs.FileInfo // by name
	size    int64                  // of the file when it was looked at last
	damaged error                  // with which the last write failed, where that is damage; nil: it was none
	told    bool                   // the log says what is wrong
	lost    bool                   // the file was deleted, and saving it was tried
	closed  bool                   // the database is closed
}

// watchFile begins to look after the file of that name, which is open.
func watchFile(name string, logger *slog.Logger) (*sqliteFile, error) {
	f := &sqliteFile{name: name, logger: logger, opened: map[string]fs.FileInfo{}}
	for _, one := range []string{name, name + "-wal"} {
		info, err := os.Stat(one)
		if errors.Is(err, fs.ErrNotExist) && one != name {
			continue // it is made when something is written
		}
		if err != nil {
			return nil, err
		}
		f.opened[one] = info
	}
	return f, nil
}

// check looks whether the file is still the one that was opened. It logs what it finds once.
func (f *sqliteFile) check(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.look()
	if err != nil {
		f.tell(ctx, err)
	}
	return err
}

// health returns what is wrong with the file, as far as is known; nil: nothing.
func (f *sqliteFile) health(ctx context.Context) error {
	if err := f.check(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.damaged
}

// wrote notes how a write ended, and returns its error: with [ErrFile] where SQLite says that the file is damaged. A
// damaged search index is not such an error.
func (f *sqliteFile) wrote(ctx context.Context, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.damaged, f.told = nil, false
	case isDamage(err) && !errors.Is(err, errDamaged):
		err = fmt.Errorf("%w: %w", ErrFile, err)
		f.damaged = err
		f.tell(ctx, err)
	}
	return err
}

// tell tells the operator what is wrong and what to do about it, once. f.mu is held.
func (f *sqliteFile) tell(ctx context.Context, err error) {
	if f.told {
		return
	}
	f.told = true
	hint := "stop ibid, put a backup in its place or move it away with its -wal and -shm, and start ibid again: " +
		"the answers that wait in the journal are stored then; `sqlite3 " + f.name + " .recover` reads what is left"
	f.logger.LogAttrs(
		ctx, slog.LevelError, "the database file is not as it was; answers stay in the journal",
		slog.Any("error", err), slog.String("hint", hint),
	)
}

// close ends looking after the file: SQLite deletes its log when it is closed.
func (f *sqliteFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

func (f *sqliteFile) look() error {
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
			if err := f.lookInto(info.Size()); err != nil {
				return err
			}
		default:
			if err := f.lookIntoLog(); err != nil {
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

// lookInto looks at the beginning of the file, which has size bytes.
func (f *sqliteFile) lookInto(size int64) error {
	in, err := os.Open(f.name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	var head [sqliteHeader]byte
	if _, err := in.ReadAt(head[:], 0); err != nil || string(head[:len(sqliteMagic)]) != sqliteMagic {
		return fmt.Errorf("%w: %s was overwritten or cut", ErrFile, f.name)
	}
	// SQLite makes it shorter, too, and then says so in it.
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

// lookIntoLog looks at the beginning of the log. An empty one is as good as none: another process may have moved what
// it had into the file.
func (f *sqliteFile) lookIntoLog() error {
	name := f.name + "-wal"
	in, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	var head [logHeader]byte
	switch n, err := in.ReadAt(head[:], 0); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil, binary.BigEndian.Uint32(head[:])&^1 != logMagic:
		return fmt.Errorf("%w: %s was overwritten or cut", ErrFile, name)
	}
	return nil
}

// saveDeleted writes a database anew whose file was deleted: the process has it open, and its content is gone for good
// when that ends. The new file is for the next process; this one stores nothing more. The caller is the writer.
func (s *Store) saveDeleted(ctx context.Context) {
	f := s.file
	if f.lost {
		return
	}
	if _, err := os.Stat(f.name); !errors.Is(err, fs.ErrNotExist) {
		if err := f.lookIntoLog(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return // the file would get pages that are none
		}
		// Of its log, if that was deleted, the file may have everything yet.
		_, _ = s.writer.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint(FULL)")
		return
	}
	f.lost = true
	err := s.writeAnew(context.WithoutCancel(ctx), f.name)
	if err != nil {
		s.logger.LogAttrs(
			ctx, slog.LevelError, "the database file was deleted and cannot be written anew",
			slog.String("file", f.name), slog.Any("error", err),
			slog.String("hint", "its answers are gone when this process ends: read them by the API before"),
		)
		return
	}
	s.logger.LogAttrs(
		ctx, slog.LevelWarn, "the database file was deleted, and written anew from what was open",
		slog.String("file", f.name),
		slog.String("hint", "restart ibid: until then answers wait in the journal. To remove all answers for good, "+
			"stop ibid first"),
	)
}

// writeAnew writes the database as it is to a file that is not there.
func (s *Store) writeAnew(ctx context.Context, name string) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	draft := name + "-anew"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := private(draft); err != nil {
		return err
	}
	defer os.Remove(draft) //nolint:errcheck // it has got its name, or is of no use
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
	if err := os.Link(draft, name); err != nil { // where a file is there by now, that stays
		return err
	}
	return file.SyncDir(filepath.Dir(name))
}
