package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ibidhq/ibid/internal/testenv"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(dir)
	}
	goleak.VerifyTestMain(m)
}

// openFor opens the journal in dir and closes it with the test.
func openFor(tb testing.TB, dir string, o *Options) *Journal {
	tb.Helper()
	j := testenv.Must(Open(dir, o))(tb)
	tb.Cleanup(func() { j.Close() })
	return j
}

func reader(tb testing.TB, j *Journal) *Reader {
	tb.Helper()
	r := j.Reader()
	tb.Cleanup(func() { r.Close() })
	return r
}

func appendAll(tb testing.TB, j *Journal, records ...string) (last Position) {
	tb.Helper()
	for _, record := range records {
		p := testenv.Must(j.Append([]byte(record)))(tb)
		last = p
	}
	return last
}

func appendSync(tb testing.TB, j *Journal, records ...string) Position {
	tb.Helper()
	p := appendAll(tb, j, records...)
	testenv.OK(tb, j.Sync(tb.Context(), p))
	return p
}

func next(tb testing.TB, r *Reader) (Position, string) {
	tb.Helper()
	p, record, err := r.Next(tb.Context())
	testenv.OK(tb, err)
	return p, string(record)
}

// drain closes j and returns what is left in r, as "position record".
func drain(tb testing.TB, j *Journal, r *Reader) []string {
	tb.Helper()
	testenv.OK(tb, j.Close())
	var got []string
	for {
		p, record, err := r.Next(tb.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		got = append(got, fmt.Sprint(p, " ", string(record)))
	}
	testenv.OK(tb, r.Close())
	return got
}

// readAll opens the journal in dir, returns its records and closes it.
func readAll(tb testing.TB, dir string) ([]string, Stats) {
	tb.Helper()
	j := testenv.Must(Open(dir, nil))(tb)
	got := drain(tb, j, j.Reader())
	return got, j.Stats()
}

func TestJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "journal")
	j := openFor(t, dir, nil)
	r := reader(t, j)
	appendSync(t, j, "one", "", "three")
	for i, want := range []string{"one", "", "three"} {
		if p, got := next(t, r); p != Position(i+1) || got != want {
			t.Errorf("record %d = %d %q, want %q", i+1, p, got, want)
		}
	}
	testenv.OK(t, j.Release(2))
	testenv.Until(t, "what is released is deleted", func() bool { return j.Stats() == Stats{Bytes: 5, Records: 1} })
	for name, want := range map[string]os.FileMode{".": 0o700 | os.ModeDir, "lock": 0o600, fileName: 0o600, fileName + "-wal": 0o600} {
		info := testenv.Must(os.Stat(filepath.Join(dir, name)))(t)
		if runtime.GOOS != "windows" && info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	appendAll(t, j, "four") // written by Close, without Sync
	if diff := cmp.Diff([]string{"4 four"}, drain(t, j, r)); diff != "" {
		t.Error(diff)
	}
	got, stats := readAll(t, dir)
	if diff := cmp.Diff([]string{"3 three", "4 four"}, got); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	if stats.Damaged != 0 || stats.Err != nil {
		t.Errorf("stats = %+v", stats)
	}
}

func TestClosed(t *testing.T) {
	dir := t.TempDir()
	j := openFor(t, dir, nil)
	p := appendSync(t, j, "x")
	r := j.Reader()
	for range 2 {
		testenv.OK(t, j.Close())
	}
	if _, err := j.Append(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("Append: %v", err)
	}
	if err := j.Sync(t.Context(), p); err != nil {
		t.Errorf("Sync of what is durable: %v", err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("Open while a reader is open: %v", err)
	}
	if p, got := next(t, r); got != "x" {
		t.Errorf("Next = %d %q", p, got)
	}
	if err := j.Release(p); err != nil {
		t.Errorf("Release while a reader is open: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := r.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Next of a closed reader: %v", err)
	}
	appendTo := openFor(t, dir, nil)
	if err := j.Release(p); !errors.Is(err, ErrClosed) {
		t.Errorf("Release when nothing is open: %v", err)
	}
	if p := appendSync(t, appendTo, "y"); p != 2 {
		t.Errorf("position %d, want 2", p)
	}
	if _, _, err := j.Reader().Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a late reader: %v", err)
	}
}

func TestErrors(t *testing.T) {
	j := openFor(t, t.TempDir(), nil)
	if err := j.Release(1); err == nil || !strings.Contains(err.Error(), "position 1 is not yet durable") {
		t.Errorf("Release of nothing: %v", err)
	}
	if err := j.Sync(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "no record at position 1") {
		t.Errorf("Sync of nothing: %v", err)
	}
	appendSync(t, j, "x")
	j.Close()
	if err := j.Release(1); !errors.Is(err, ErrClosed) {
		t.Errorf("Release after Close: %v", err)
	}
	if _, err := Open(t.TempDir(), &Options{MaxBytes: -1}); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Errorf("a negative limit: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	testenv.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(file, nil); err == nil || !strings.Contains(err.Error(), "opening journal "+file) {
		t.Errorf("Open of a file: %v", err)
	}
}

// Journals of earlier and later versions of ibid are refused and left unchanged.
func TestVersions(t *testing.T) {
	old := t.TempDir()
	testenv.OK(t, os.WriteFile(filepath.Join(old, "00000001-1-5eed.segment"), []byte("records"), 0o600))
	if _, err := Open(old, nil); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "an earlier version left") {
		t.Errorf("an earlier version's: %v", err)
	}
	if entries, err := os.ReadDir(old); err != nil || len(entries) != 1 {
		t.Errorf("it has %v, %v", entries, err)
	}
	later := t.TempDir()
	j := openFor(t, later, nil)
	appendSync(t, j, "x")
	testenv.Must(j.db.conn.ExecContext(t.Context(), "PRAGMA user_version = 2"))(t)
	j.Close()
	if _, err := Open(later, nil); !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a later version's: %v", err)
	}
}

// testdata/v1.db is a journal with version 1 of the tables. Every later version reads it.
func TestJournalVersion1(t *testing.T) {
	dir := t.TempDir()
	fixture := testenv.Must(os.ReadFile(filepath.Join("testdata", "v1.db")))(t)
	testenv.OK(t, os.WriteFile(filepath.Join(dir, fileName), fixture, 0o600))
	got, stats := readAll(t, dir)
	if diff := cmp.Diff([]string{"3 three", "4 Grüße"}, got); diff != "" || stats.Damaged != 0 {
		t.Errorf("%s%+v", diff, stats)
	}
}

// A record without Sync is written all the same, and a waiting reader gets it.
func TestUnsynced(t *testing.T) {
	j := openFor(t, t.TempDir(), nil)
	r := reader(t, j)
	for i := range 5 {
		appendAll(t, j, fmt.Sprint(i))
		if _, got := next(t, r); got != fmt.Sprint(i) {
			t.Errorf("Next = %q, want %d", got, i)
		}
	}
}

func TestNextIsCancelled(t *testing.T) {
	j := openFor(t, t.TempDir(), nil)
	r := reader(t, j)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, _, err := r.Next(ctx)
		got <- err
	}()
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("Next: %v", err)
	}
	appendSync(t, j, "x")
	if _, got := next(t, r); got != "x" {
		t.Errorf("Next = %q", got)
	}
}

func TestRestarts(t *testing.T) {
	dir := t.TempDir()
	var want []string
	var released Position
	for round := range 30 {
		j := openFor(t, dir, nil)
		for i := range 7 {
			record := fmt.Sprintf("round %d record %d", round, i)
			want = append(want, fmt.Sprint(appendSync(t, j, record), " ", record))
		}
		r := j.Reader()
		for range round % 9 { // sometimes more than there are, sometimes fewer
			released, _ = next(t, r)
			testenv.OK(t, j.Release(released))
		}
		if diff := cmp.Diff(want[released:], drain(t, j, r)); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, diff)
		}
		if stats := j.Stats(); stats.Records != int64(len(want))-int64(released) || stats.Damaged != 0 {
			t.Errorf("round %d: %+v", round, stats)
		}
	}
}

// copyFiles copies the files of the journal in dir in their current state, as a power cut leaves them.
func copyFiles(tb testing.TB, dir string, change func(name string, b []byte) []byte) string {
	tb.Helper()
	to := tb.TempDir()
	for _, name := range []string{fileName, fileName + "-wal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			tb.Fatal(err)
		}
		testenv.OK(tb, os.WriteFile(filepath.Join(to, name), change(name, b), 0o600))
	}
	return to
}

// After a power cut, what was durable is there and what was half written is not, wherever the log ends.
func TestPowerCut(t *testing.T) {
	dir := t.TempDir()
	j := openFor(t, dir, nil)
	appendSync(t, j, "first", "second")
	size := func() int64 {
		info := testenv.Must(os.Stat(filepath.Join(dir, fileName+"-wal")))(t)
		return info.Size()
	}
	durable := size()
	appendSync(t, j, "the last record")
	for cut := durable; cut < size(); cut += 997 {
		for _, tail := range [][]byte{nil, make([]byte, 5000), bytes.Repeat([]byte{0xff}, 99)} {
			left := copyFiles(t, dir, func(name string, b []byte) []byte {
				if name == fileName {
					return b
				}
				return append(b[:cut:cut], tail...)
			})
			again := openFor(t, left, nil)
			if p := appendSync(t, again, "instead"); p != 3 {
				t.Errorf("cut at %d: position %d, want 3", cut, p)
			}
			if diff := cmp.Diff([]string{"1 first", "2 second", "3 instead"}, drain(t, again, again.Reader())); diff != "" {
				t.Fatalf("cut at %d (-want +got):\n%s", cut, diff)
			}
		}
	}
}

// A record whose bytes have changed is skipped, and counted once.
func TestFlippedByte(t *testing.T) {
	dir := t.TempDir()
	j := openFor(t, dir, nil)
	appendSync(t, j, "first", "the second", "third")
	testenv.OK(t, j.Close())
	for at := range len("the second") {
		left := copyFiles(t, dir, func(_ string, b []byte) []byte {
			if i := bytes.Index(b, []byte("the second")); i >= 0 {
				b[i+at] ^= 0x40
			}
			return b
		})
		var log bytes.Buffer
		j := openFor(t, left, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 2 { // readers; they find the same damage
			r := reader(t, j)
			for _, want := range []string{"first", "third"} {
				if _, got := next(t, r); got != want {
					t.Fatalf("byte %d: %q, want %q", at, got, want)
				}
			}
		}
		if stats := j.Stats(); stats.Damaged != 1 || strings.Count(log.String(), "damaged") != 1 {
			t.Errorf("byte %d: %+v, log %q", at, stats, &log)
		}
	}
}

// readDamaged appends a last record and reads up to it, and returns how many records it read and the position of the
// last. The others have to be intact.
func readDamaged(t *testing.T, j *Journal, r *Reader, whole func(Position, string) bool) (got int, p Position) {
	t.Helper()
	p = appendSync(t, j, "the last")
	for at := Position(0); at < p; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		var record []byte
		var err error
		at, record, err = r.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) { // it was lost with its neighbours
			p = appendSync(t, j, "the last")
			continue
		}
		if err != nil || string(record) != "the last" && !whole(at, string(record)) {
			t.Fatalf("record %d is made up: %.20q, %v", at, record, err)
		}
		got++
	}
	return got, p
}

// A damaged file is set aside, when it is opened and while it is in use; what can be read of it is kept, and the
// journal continues.
func TestDamagedFile(t *testing.T) {
	page := func(n int) func([]byte) {
		return func(b []byte) { copy(b[n*pageSize:], bytes.Repeat([]byte("garbage "), pageSize/8)) }
	}
	for name, spoil := range map[string]func([]byte){
		"header": func(b []byte) { copy(b, "this is no database, and never was") },
		"root":   page(2),
		"leaf":   page(4),
		"middle": page(8),
		"half":   func(b []byte) { clear(b[len(b)/2:]) },
	} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", running), func(t *testing.T) {
				dir := t.TempDir()
				j := openFor(t, dir, nil)
				whole := map[string]bool{}
				for i := range 100 {
					record := strings.Repeat(fmt.Sprint(i, " "), 400)
					whole[fmt.Sprint(appendSync(t, j, record), " ", record)] = true
				}
				testenv.Must(j.db.conn.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"))(t)
				if running {
					b := testenv.Must(os.ReadFile(filepath.Join(dir, fileName)))(t)
					spoil(b)
					testenv.OK(t, os.WriteFile(filepath.Join(dir, fileName), b, 0o600))
				} else {
					j.Close()
					dir = copyFiles(t, dir, func(_ string, b []byte) []byte {
						if len(b) > 0 {
							spoil(b)
						}
						return b
					})
					j = openFor(t, dir, nil)
				}
				r := reader(t, j)
				got, p := readDamaged(t, j, r, func(at Position, record string) bool {
					return whole[fmt.Sprint(at, " ", record)]
				})
				damaged := j.Stats().Damaged
				if p > 100 && got > 1 && got+int(damaged) < 101 {
					t.Errorf("%d records are there and %d damaged, of %d", got, damaged, p)
				}
				if name == "middle" && got < 85 { // a page has about a dozen
					t.Errorf("only %d records are there", got)
				}
				j.Close()
				r.Close()
				if again, stats := readAll(t, dir); !slices.Contains(again, fmt.Sprint(p, " the last")) {
					t.Errorf("after a restart: %d records, %+v", len(again), stats)
				}
			})
		}
	}
}

func TestTooLarge(t *testing.T) {
	j := openFor(t, t.TempDir(), nil)
	if _, err := j.Append(make([]byte, MaxRecord+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("MaxRecord+1: %v", err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), MaxRecord/16)
	r := reader(t, j)
	appendSync(t, j, string(large))
	_, got, err := r.Next(t.Context())
	if err != nil || !bytes.Equal(got, large) {
		t.Errorf("MaxRecord: %d bytes, %v", len(got), err)
	}
	small := openFor(t, t.TempDir(), &Options{MaxBytes: 1000})
	if _, err := small.Append(make([]byte, 1001)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than MaxBytes: %v", err)
	}
}

func TestFull(t *testing.T) {
	var log bytes.Buffer
	j := openFor(t, t.TempDir(), &Options{MaxBytes: 1000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	record := strings.Repeat("x", 100)
	var last Position
	for range 3 {
		for {
			p, err := j.Append([]byte(record))
			if errors.Is(err, ErrFull) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			last = p
		}
		if err := j.Stats().Err; !errors.Is(err, ErrFull) {
			t.Errorf("Stats().Err = %v", err)
		}
		testenv.OK(t, errors.Join(j.Sync(t.Context(), last), j.Release(last)))
		testenv.Until(t, "there is room again", func() bool { return j.Stats().Err == nil && j.Stats().Bytes == 0 })
	}
	if last != 30 || strings.Count(log.String(), "full") != 3 {
		t.Errorf("%d records were taken; log:\n%s", last, &log)
	}
}

// After an outage of the store the file shrinks.
func TestShrinks(t *testing.T) {
	dir := t.TempDir()
	j := openFor(t, dir, nil)
	size := func() (sum int64) {
		for _, name := range []string{fileName, fileName + "-wal"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
				sum += info.Size()
			}
		}
		return sum
	}
	record := strings.Repeat("0123456789abcdef", 4<<10)
	var last Position
	for range 500 {
		last = appendAll(t, j, record)
	}
	testenv.OK(t, errors.Join(j.Sync(t.Context(), last), j.Release(last)))
	if size() < 500*64<<10 {
		t.Errorf("the journal has %d bytes", size())
	}
	testenv.Until(t, "the file is shorter", func() bool {
		info, err := os.Stat(filepath.Join(dir, fileName))
		return err == nil && info.Size() < 8<<20
	})
}

// While a disk fails, nothing is reported durable, nothing accepted is lost, and once it works again everything is
// written.
func TestDiskErrors(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC, errors.New("the disk is full")} {
		dir := t.TempDir()
		var mu sync.Mutex
		var broken error
		set := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			broken = err
		}
		full := fault.Error() == "the disk is full" // SQLite detects this itself
		j := openFor(t, dir, &Options{commit: func() error {
			mu.Lock()
			defer mu.Unlock()
			if full {
				return nil
			}
			return broken
		}})
		pages := func(n int) {
			if _, err := j.db.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", n)); full && err != nil {
				t.Fatal(err)
			}
		}
		r := reader(t, j)
		var want []string
		put := func(record string) Position {
			p := appendAll(t, j, record)
			want = append(want, fmt.Sprint(p, " ", record))
			return p
		}
		testenv.OK(t, j.Sync(t.Context(), put("before")))
		set(fault)
		if full {
			pages(1)
		}
		for range 2 {
			err := j.Sync(t.Context(), put(strings.Repeat("during ", 9000)))
			if err == nil || !full && !errors.Is(err, fault) || full && !strings.Contains(err.Error(), "full") {
				t.Fatalf("Sync while it fails: %v", err)
			}
		}
		if j.Stats().Err == nil {
			t.Error("Stats().Err is nil")
		}
		set(nil)
		if full {
			pages(1 << 20)
		}
		testenv.Until(t, "the disk works again", func() bool { return j.Stats().Err == nil })
		testenv.OK(t, j.Sync(t.Context(), put("after")))
		testenv.Equal(t, "read", want, drain(t, j, r))
		got, stats := readAll(t, dir)
		if diff := cmp.Diff(want, got); diff != "" || stats.Damaged != 0 {
			t.Errorf("read after a restart (-want +got):\n%s%+v", diff, stats)
		}
	}
}

// If a disk fails to the end, Close returns the error.
func TestCloseFails(t *testing.T) {
	dir := t.TempDir()
	var fails sync.Map
	j := testenv.Must(Open(dir, &Options{commit: func() error {
		if _, yes := fails.Load(true); yes {
			return syscall.EIO
		}
		return nil
	}}))(t)
	appendSync(t, j, "before")
	fails.Store(true, true)
	p := appendAll(t, j, "during")
	if err := j.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
	if err := j.Sync(t.Context(), p); !errors.Is(err, syscall.EIO) {
		t.Errorf("Sync after it: %v", err)
	}
	if got, _ := readAll(t, dir); !slices.Equal(got, []string{"1 before"}) {
		t.Errorf("left: %q", got)
	}
}

// The queue is bounded, and while a disk is stalled Sync waits no longer than its context.
func TestBusy(t *testing.T) {
	gate := make(chan struct{})
	j := openFor(t, t.TempDir(), &Options{commit: func() error {
		<-gate
		return nil
	}})
	record := make([]byte, maxQueued/4)
	var last Position
	for {
		p, err := j.Append(record)
		if errors.Is(err, ErrBusy) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = p
	}
	if last != 4 {
		t.Errorf("%d records of %d bytes were taken, want 4", last, len(record))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Sync(ctx, last); !errors.Is(err, context.Canceled) {
		t.Errorf("Sync: %v", err)
	}
	close(gate)
	if err := j.Sync(t.Context(), last); err != nil {
		t.Error(err)
	}
	appendSync(t, j, string(record))
}

func TestConcurrent(t *testing.T) {
	j := openFor(t, t.TempDir(), nil)
	const writers, each = 8, 150
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 0))
			for i := range each {
				p, err := j.Append(append(fmt.Appendf(nil, "%d/%d ", w, i), make([]byte, random.IntN(400))...))
				if err == nil && random.IntN(3) > 0 {
					err = j.Sync(t.Context(), p)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var released sync.WaitGroup
	released.Add(1)
	for _, releases := range []bool{false, true} {
		r := j.Reader()
		wg.Go(func() {
			defer r.Close()
			if !releases {
				defer released.Done()
			}
			seen := make([]int, writers)
			for want := Position(1); want <= writers*each; want++ {
				p, record, err := r.Next(t.Context())
				if err != nil || p != want {
					t.Errorf("Next = %d, %v; want %d", p, err, want)
					return
				}
				var w, i int
				if _, err := fmt.Sscanf(string(record), "%d/%d ", &w, &i); err != nil || seen[w] != i {
					t.Errorf("writer %d's record %d: %v; want its %d", w, i, err, seen[w])
					return
				}
				seen[w]++
				if releases && p%50 == 0 {
					released.Wait() // otherwise the other would miss some
					if err := j.Release(p); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if s := j.Stats(); s.Damaged != 0 || s.Records != 0 {
		t.Errorf("%+v", s)
	}
}

// FuzzOpen opens what may be a journal: it is read to its end, invents no records, and can be written to.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	j := openFor(f, dir, nil)
	records := map[string]bool{"the last": true}
	for i := range 20 {
		record := strings.Repeat(fmt.Sprint("record ", i), 100)
		records[record] = true
		appendSync(f, j, record)
	}
	var whole [][]byte
	copyFiles(f, dir, func(_ string, b []byte) []byte {
		whole = append(whole, b)
		return b
	})
	j.Close()
	for _, seed := range []struct {
		at   int
		with string
	}{{0, ""}, {0, "garbage"}, {3 * pageSize, "garbage"}, {len(whole[0]) + 5*pageSize, "\xff\xff"}, {len(whole[0]), "garbage"}} {
		f.Add(seed.at, []byte(seed.with))
	}
	f.Fuzz(func(t *testing.T, at int, with []byte) {
		dir := t.TempDir()
		for i, name := range []string{fileName, fileName + "-wal"} {
			b := slices.Clone(whole[i])
			if 0 <= at && at < len(b) {
				copy(b[at:], with)
			}
			at -= len(b)
			testenv.OK(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
		}
		j, err := Open(dir, nil)
		if errors.Is(err, ErrVersion) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		r := j.Reader()
		appendAll(t, j, "the last")
		got := drain(t, j, r)
		for _, line := range got {
			if _, record, _ := strings.Cut(line, " "); !records[record] {
				t.Errorf("%.40q is made up", record)
			}
		}
		if len(got) == 0 || !strings.HasSuffix(got[len(got)-1], "the last") {
			t.Errorf("read %q", got)
		}
	})
}

// Wherever a bad disk damages the file and its log, the journal opens, records are returned as they were written, and
// new ones are accepted and kept.
func TestDamagedAnywhere(t *testing.T) {
	dir := t.TempDir()
	j := openFor(t, dir, nil)
	records := map[string]bool{}
	for i := range 60 {
		record := strings.Repeat(fmt.Sprint("record ", i, " "), 300)
		records[record] = true
		appendSync(t, j, record)
		if i == 40 {
			testenv.Must(j.db.conn.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"))(t)
		}
	}
	whole := copyFiles(t, dir, func(_ string, b []byte) []byte { return b })
	j.Close()
	read, lost := 0, 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		victim := []string{fileName, fileName + "-wal"}[random.IntN(2)]
		damaged := copyFiles(t, whole, func(name string, b []byte) []byte {
			if name != victim {
				return b
			}
			at := random.IntN(len(b))
			switch seed % 4 {
			case 0:
				b[at] ^= 1 << random.IntN(8)
			case 1:
				for i := at; i < min(at+64, len(b)); i++ {
					b[i] = byte(random.Uint32())
				}
			case 2:
				at -= at % pageSize
				clear(b[at:min(at+pageSize, len(b))])
			default:
				b = b[:at]
			}
			return b
		})
		j, err := Open(damaged, nil)
		if errors.Is(err, ErrVersion) { // the version was hit: the file is refused and left unchanged
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := j.Reader()
		got, p := readDamaged(t, j, r, func(_ Position, record string) bool { return records[record] })
		testenv.OK(t, errors.Join(j.Close(), r.Close()))
		if again, _ := readAll(t, damaged); !slices.Contains(again, fmt.Sprint(p, " the last")) {
			t.Errorf("seed %d: what came last is lost after a restart, of %d", seed, len(again))
		}
		read += got - 1
		lost += max(0, len(records)-got+1)
	}
	t.Logf("%d records were read and %d lost", read, lost)
	if read == 0 || lost == 0 {
		t.Error("the damage does not show anything")
	}
}

// A reader whose context has ended still returns what is there: when it reports nothing left, the indexer knows that
// earlier processes left nothing.
func TestNextReturnsWhatIsThere(t *testing.T) {
	j := testenv.Must(Open(t.TempDir(), nil))(t)
	defer j.Close()
	p := testenv.Must(j.Append([]byte("left by an earlier process")))(t)
	testenv.OK(t, j.Sync(t.Context(), p))
	r := j.Reader()
	defer r.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, record, err := r.Next(ended); string(record) != "left by an earlier process" || err != nil {
		t.Errorf("Next = %q, %v", record, err)
	}
	if _, record, err := r.Next(ended); record != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Next after the last one = %q, %v, want the context's error", record, err)
	}
}
