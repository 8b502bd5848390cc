package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ibidhq/ibid/internal/file"
	"github.com/ibidhq/ibid/internal/sqlite"
)

const (
	fileName = "journal.db"
	version  = 1 // of the tables, in user_version

	// A checkpoint begins after this many bytes of records; SQLite's log is truncated to walBytes.
	checkpointBytes = 4 << 20
	walBytes        = 64 << 20

	deleteRows  = 64       // deleted together
	pageSize    = 16 << 10 // a group takes fewer system calls than with SQLite's default of 4 KiB
	shrinkPages = 256      // free pages that may stay: 4 MiB
	pageBytes   = 4 << 20  // how many bytes of records a reader reads ahead
	maxGap      = 100_000  // consecutive positions missing in a damaged file before the search ends
)

// openFile opens the file of a journal.
func openFile(name string, pragmas ...string) (*sql.DB, error) {
	return sqlite.Open(name, url.Values{"_txlock": {"exclusive"}, "_pragma": pragmas})
}

// database is the file. Only the journal's writer calls methods that change it.
type database struct {
	writes, reads *sql.DB
	conn, lazy    *sql.Conn // of writes; lazy does not wait for the disk
	insert        *sql.Stmt
	closed        bool
	unchecked     int // bytes written since the last checkpoint

	checkpoints chan struct{} // requests one
	ready       chan struct{} // signals that all but the end of the log is copied
	stop        sync.WaitGroup
}

func openDatabase(dir string) (_ *database, err error) {
	name := filepath.Join(dir, fileName)
	if err := file.CreatePrivate(name); err != nil {
		return nil, err
	}
	d := &database{checkpoints: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.closeAll())
		}
	}()
	if d.writes, err = openFile(
		name, fmt.Sprintf("page_size(%d)", pageSize), "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)",
		"synchronous(FULL)", "wal_autocheckpoint(0)", fmt.Sprintf("journal_size_limit(%d)", walBytes),
		"cache_size(-4096)",
	); err != nil {
		return nil, err
	}
	if d.reads, err = openFile(name, "query_only(1)", "busy_timeout(1000)"); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if d.conn, err = d.writes.Conn(ctx); err != nil {
		return nil, err
	}
	if err = d.prepare(ctx); err != nil {
		return nil, err
	}
	if d.lazy, err = d.writes.Conn(ctx); err != nil {
		return nil, err
	}
	if _, err = d.lazy.ExecContext(ctx, "PRAGMA synchronous=NORMAL"); err != nil {
		return nil, err
	}
	if err = file.SyncDir(dir); err != nil {
		return nil, err
	}
	d.stop.Go(d.checkpoint)
	return d, nil
}

// prepare creates the tables if there are none.
func (d *database) prepare(ctx context.Context) (err error) {
	var found int
	if err := d.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return err
	}
	switch found {
	case 0:
		_, err = d.conn.ExecContext(ctx, fmt.Sprintf(`BEGIN;
			CREATE TABLE records (
				position INTEGER PRIMARY KEY AUTOINCREMENT, -- never reused
				sum      INTEGER NOT NULL, -- CRC-32C, seeded with the position
				record   BLOB NOT NULL
			);
			PRAGMA user_version = %d;
			COMMIT`, version))
	case version:
	default:
		err = fmt.Errorf("%w: its tables have version %d, and this ibid knows up to %d", ErrVersion, found, version)
	}
	if err == nil {
		d.insert, err = d.conn.PrepareContext(ctx, "INSERT INTO records (position, sum, record) VALUES (?, ?, ?)")
	}
	return err
}

// close closes the file. It may be called twice.
func (d *database) close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	close(d.checkpoints)
	d.stop.Wait()
	return d.closeAll()
}

func (d *database) closeAll() error {
	var errs []error
	if d.insert != nil {
		errs = append(errs, d.insert.Close())
	}
	for _, conn := range []*sql.Conn{d.conn, d.lazy} {
		if conn != nil {
			errs = append(errs, conn.Close())
		}
	}
	for _, db := range []*sql.DB{d.reads, d.writes} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// extent returns the position before the first record, the last position, and the size of all records in bytes.
func (d *database) extent() (before, last Position, bytes int64, err error) {
	var first, given int64
	err = d.conn.QueryRowContext(context.Background(),
		`SELECT coalesce(min(position), 0), coalesce(sum(length(record)), 0),
			coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'records'), 0) FROM records`).
		Scan(&first, &bytes, &given)
	if first == 0 {
		first = given + 1
	}
	return Position(first - 1), Position(given), bytes, err //nolint:gosec // they count from 0
}

// write commits entries, all or none.
func (d *database) write(entries []entry, beforeCommit func() error) error {
	ctx := context.Background()
	select {
	case <-d.ready: // a checkpoint has copied all but the end of SQLite's log: restart the log
		_, _ = d.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(RESTART)") // or after the next one
	default:
	}
	if _, err := d.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	var err error
	for i := 0; i < len(entries) && err == nil; i++ {
		e := &entries[i]
		record := e.record
		if record == nil {
			record = []byte{}
		}
		_, err = d.insert.ExecContext(ctx, int64(e.at), e.sum(), record) //nolint:gosec // few
	}
	if err == nil && beforeCommit != nil {
		err = beforeCommit()
	}
	if err == nil {
		_, err = d.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = d.conn.ExecContext(ctx, "ROLLBACK") // an error may have ended the transaction by itself
		return err
	}
	for i := range entries {
		d.unchecked += len(entries[i].record)
	}
	if d.unchecked >= checkpointBytes {
		d.unchecked = 0
		select {
		case d.checkpoints <- struct{}{}:
		default:
		}
	}
	return nil
}

// checkpoint copies SQLite's log into the file, concurrently with commits. The second run has little left to copy.
func (d *database) checkpoint() {
	for range d.checkpoints {
		for range 2 {
			_, _ = d.reads.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)") // or the next one does
		}
		select {
		case d.ready <- struct{}{}:
		default:
		}
	}
}

// deleteTo deletes the records up to p and returns how many bytes that freed. After a power cut they may reappear.
func (d *database) deleteTo(p Position) (freed int64) {
	rows, err := d.lazy.QueryContext(context.Background(),
		"DELETE FROM records WHERE position <= ? RETURNING length(record)", int64(p)) //nolint:gosec // few
	if err != nil {
		return 0 // retried later
	}
	defer rows.Close() //nolint:errcheck // see Err
	for rows.Next() {
		var size int64
		if rows.Scan(&size) == nil {
			freed += size
		}
	}
	if rows.Err() != nil {
		return 0
	}
	return freed
}

// shrink releases some of the free pages, if there are many, and reports whether there still are.
func (d *database) shrink() (more bool) {
	ctx := context.Background()
	var free int
	if err := d.lazy.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil || free <= shrinkPages {
		return false
	}
	rows, err := d.lazy.QueryContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", shrinkPages))
	if err != nil {
		return false
	}
	for rows.Next() { // each frees one page
	}
	//nolint:sqlclosecheck // the statement must end before what follows
	if errors.Join(rows.Err(), rows.Close()) != nil {
		return false
	}
	select {
	case d.checkpoints <- struct{}{}: // only then is the file shorter
	default:
	}
	return free > 2*shrinkPages
}

// page returns some of the records after one position and up to another whose checksums are right, and the position up
// to which it has read.
func (d *database) page(after, durable Position) (to Position, page []entry, err error) {
	rows, err := d.reads.QueryContext(context.Background(),
		"SELECT position, sum, record FROM records WHERE position > ? AND position <= ? ORDER BY position",
		int64(after), int64(durable)) //nolint:gosec // few
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	to = durable
	for size := 0; rows.Next(); {
		var e entry
		var at, sum int64
		if err := rows.Scan(&at, &sum, &e.record); err != nil {
			return 0, nil, err
		}
		if e.at = Position(at); e.sum() == sum { //nolint:gosec // it counts from 1
			page = append(page, e)
		}
		if size += len(e.record) + 64; size >= pageBytes {
			return e.at, page, nil
		}
	}
	return to, page, rows.Err()
}

// setAside renames the file and those beside it, and returns the new name.
func setAside(dir string) (string, error) {
	name := filepath.Join(dir, fileName)
	aside := filepath.Join(dir, "damaged-"+time.Now().UTC().Format("20060102T150405.000000000Z")+".db")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(name+suffix, aside+suffix); err != nil &&
			(suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return "", err
		}
	}
	return aside, nil
}

// salvage copies the readable records of a damaged file, one by one, into d, which is empty: those after from and up to
// to, or up to the last known position if to is 0. It returns what extent would.
func (d *database) salvage(name string, from, to Position) (released, last Position, bytes int64, err error) {
	damaged, err := openFile(name, "query_only(1)")
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, damaged.Close()) }()
	known := to > 0
	if !known {
		to = lastOf(damaged)
	}
	released, gap := to, 0
	var group []entry
	size := 0
	flush := func() error {
		err := d.write(group, nil)
		group, size = nil, 0
		return err
	}
	// Backwards, because it may be unknown how far back the records go.
	for at := to; at > from && gap < maxGap; at-- {
		e := entry{at: at}
		var sum int64
		row := damaged.QueryRowContext(context.Background(), "SELECT sum, record FROM records WHERE position = ?",
			int64(at)) //nolint:gosec // few
		if row.Scan(&sum, &e.record) != nil || e.sum() != sum {
			gap++
			continue
		}
		gap = 0
		released = at - 1
		bytes += int64(len(e.record))
		if group, size = append(group, e), size+len(e.record); size >= pageBytes {
			if err := flush(); err != nil {
				return 0, 0, 0, err
			}
		}
	}
	if known {
		released = from
	}
	if err := flush(); err != nil {
		return 0, 0, 0, err
	}
	_, err = d.conn.ExecContext(context.Background(), `DELETE FROM sqlite_sequence WHERE name = 'records';
		INSERT INTO sqlite_sequence (name, seq) VALUES ('records', ?)`, int64(to)) //nolint:gosec // few
	return released, to, bytes, err
}

// lastOf returns the highest position found in a damaged file.
func lastOf(damaged *sql.DB) (last Position) {
	for _, query := range []string{
		"SELECT max(position) FROM records", "SELECT seq FROM sqlite_sequence WHERE name = 'records'",
	} {
		var at sql.NullInt64
		if damaged.QueryRowContext(context.Background(), query).Scan(&at) == nil {
			last = max(last, Position(at.Int64)) //nolint:gosec // it counts from 1
		}
	}
	return last
}
