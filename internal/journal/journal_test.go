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

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		crashChild(dir)
	}
	goleak.VerifyTestMain(m)
}

// open1 opens the journal in dir and closes it with the test.
func open1(tb testing.TB, dir string, o *Options) *Journal {
	tb.Helper()
	j, err := Open(dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { j.Close() })
	return j
}

func reader(tb testing.TB, j *Journal) *Reader {
	tb.Helper()
	r := j.Reader()
	tb.Cleanup(func() { r.Close() })
	return r
}

func appendAll(tb testing.TB, j *Journal, records ...string) Position {
	tb.Helper()
	var last Position
	for _, record := range records {
		p, err := j.Append([]byte(record))
		if err != nil {
			tb.Fatal(err)
		}
		last = p
	}
	return last
}

func appendSync(tb testing.TB, j *Journal, records ...string) Position {
	tb.Helper()
	p := appendAll(tb, j, records...)
	if err := j.Sync(tb.Context(), p); err != nil {
		tb.Fatal(err)
	}
	return p
}

func next(tb testing.TB, r *Reader) (Position, string) {
	tb.Helper()
	p, record, err := r.Next(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return p, string(record)
}

// drain closes j and returns what is left in r, as "position record".
func drain(tb testing.TB, j *Journal, r *Reader) []string {
	tb.Helper()
	if err := j.Close(); err != nil {
		tb.Fatal(err)
	}
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
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
	return got
}

// readAll opens the journal in dir, returns what it has and closes it.
func readAll(tb testing.TB, dir string, o *Options) ([]string, Stats) {
	tb.Helper()
	j, err := Open(dir, o)
	if err != nil {
		tb.Fatal(err)
	}
	got := drain(tb, j, j.Reader())
	return got, j.Stats()
}

func segmentFiles(tb testing.TB, dir string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

func TestJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "journal")
	j := open1(t, dir, nil)
	r := reader(t, j)
	appendSync(t, j, "one", "", "three")
	for i, want := range []string{"one", "", "three"} {
		if p, got := next(t, r); p != Position(i+1) || got != want {
			t.Errorf("record %d = %d %q, want %q", i+1, p, got, want)
		}
	}
	if err := j.Release(2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Stats{Bytes: 3*headerSize + 8, Records: 1}, j.Stats()); diff != "" {
		t.Error(diff)
	}
	appendAll(t, j, "four") // nobody syncs it, but Close does
	if diff := cmp.Diff([]string{"4 four"}, drain(t, j, r)); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]os.FileMode{".": 0o700 | os.ModeDir, "lock": 0o600, "checkpoint": 0o600, filepath.Base(segmentFiles(t, dir)[0]): 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	got, stats := readAll(t, dir, nil)
	if diff := cmp.Diff([]string{"3 three", "4 four"}, got); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	if stats.Damaged != 0 || stats.Torn != 0 || stats.Err != nil {
		t.Errorf("stats = %+v", stats)
	}
}

func TestClosed(t *testing.T) {
	dir := t.TempDir()
	j := open1(t, dir, nil)
	p := appendSync(t, j, "x")
	r := j.Reader()
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
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
	appendTo := open1(t, dir, nil)
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

func TestReleaseErrors(t *testing.T) {
	j := open1(t, t.TempDir(), nil)
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
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{MaxBytes: -1}, {SegmentBytes: -1}, {GroupWait: -1}} {
		if _, err := Open(t.TempDir(), &o); err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, nil); err == nil || !strings.Contains(err.Error(), "opening journal "+file) {
		t.Errorf("Open of a file: %v", err)
	}
}

// A record for which nobody calls Sync is written all the same, and a reader that waits gets it.
func TestUnsynced(t *testing.T) {
	j := open1(t, t.TempDir(), nil)
	r := reader(t, j)
	for i := range 5 {
		appendAll(t, j, fmt.Sprint(i))
		if _, got := next(t, r); got != fmt.Sprint(i) {
			t.Errorf("Next = %q, want %d", got, i)
		}
	}
}

func TestNextIsCancelled(t *testing.T) {
	j := open1(t, t.TempDir(), nil)
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
	o := &Options{SegmentBytes: 300}
	var want []string
	var released Position
	for round := range 30 {
		j, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 7 {
			record := fmt.Sprintf("round %d record %d", round, i)
			p := appendSync(t, j, record)
			want = append(want, fmt.Sprint(p, " ", record))
		}
		r := j.Reader()
		for range round % 9 { // sometimes more than there come, sometimes fewer
			p, _, err := r.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Release(p); err != nil {
				t.Fatal(err)
			}
			released = p
		}
		if diff := cmp.Diff(want[released:], drain(t, j, r)); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, diff)
		}
		if stats := j.Stats(); stats.Records != int64(len(want))-int64(released) || stats.Damaged != 0 || stats.Torn != 0 {
			t.Errorf("round %d: %+v", round, stats)
		}
	}
	if n := len(segmentFiles(t, dir)); n == 0 || n > 60 {
		t.Errorf("%d segments are left", n)
	}
}

// torn makes a journal whose last record is cut or overwritten by tear, and expects all others.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	j := open1(t, dir, nil)
	appendSync(t, j, "first", "second", "the last record")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	name := segmentFiles(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begin := len(whole) - headerSize - len("the last record")
	for cut := begin; cut < len(whole); cut++ {
		for _, tail := range [][]byte{nil, make([]byte, 5000), bytes.Repeat([]byte{0xff}, 99)} {
			if err := os.WriteFile(name, append(slices.Clone(whole[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			o := &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			got, stats := readAll(t, dir, o)
			if diff := cmp.Diff([]string{"1 first", "2 second"}, got); diff != "" {
				t.Fatalf("cut at %d (-want +got):\n%s", cut, diff)
			}
			torn := len(bytes.TrimRight(append(slices.Clone(whole[begin:cut]), tail...), "\x00"))
			if stats.Torn != int64(torn) || stats.Damaged != 0 {
				t.Errorf("cut at %d: %d bytes torn, %d damaged, want %d, 0", cut, stats.Torn, stats.Damaged, torn)
			}
			if logged := strings.Contains(log.String(), "torn"); logged != (torn > 0) {
				t.Errorf("cut at %d, %d bytes torn: log %q", cut, torn, &log)
			}
			again, err := Open(dir, nil) // and it goes on where it was cut
			if err != nil {
				t.Fatal(err)
			}
			if p := appendSync(t, again, "instead"); p != 3 {
				t.Errorf("cut at %d: position %d, want 3", cut, p)
			}
			if diff := cmp.Diff([]string{"1 first", "2 second", "3 instead"}, drain(t, again, again.Reader())); diff != "" {
				t.Fatalf("cut at %d (-want +got):\n%s", cut, diff)
			}
			for _, s := range segmentFiles(t, dir)[1:] {
				if err := os.Remove(s); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Whichever byte of a record in the middle is changed, only that record is lost, once, and it is known.
func TestFlippedByte(t *testing.T) {
	dir := t.TempDir()
	j := open1(t, dir, nil)
	trap := string(appendRecord(nil, 0, 2, []byte("forged"), checksum(0, []byte("forged")))) + magic
	appendSync(t, j, "first", trap, "third")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	name := segmentFiles(t, dir)[0]
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	begin := headerSize + len("first")
	for at := begin; at < begin+headerSize+len(trap); at++ {
		damaged := slices.Clone(whole)
		damaged[at] ^= 0x40
		if err := os.WriteFile(name, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		j := open1(t, dir, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 2 { // readers; the damage is the same
			if got := drainTo(t, j.Reader(), 3); got != "first third" {
				t.Fatalf("byte %d: %q", at, got)
			}
		}
		if stats := j.Stats(); stats.Damaged != 1 || stats.Torn != 0 {
			t.Errorf("byte %d: %+v", at, stats)
		}
		if strings.Count(log.String(), "damaged") != 1 {
			t.Errorf("byte %d: log %q", at, &log)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// drainTo reads until position p, and closes r.
func drainTo(t *testing.T, r *Reader, p Position) string {
	t.Helper()
	var got []string
	for {
		at, record := next(t, r)
		got = append(got, record)
		if at == p {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			return strings.Join(got, " ")
		}
	}
}

func TestDamagedSegments(t *testing.T) {
	dir := t.TempDir()
	o := &Options{SegmentBytes: 100} // two records each
	j := open1(t, dir, o)
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprint(i+1, " ", strings.Repeat(fmt.Sprint(i), 20)))
		appendSync(t, j, strings.Repeat(fmt.Sprint(i), 20))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	files := segmentFiles(t, dir)
	if len(files) != 5 {
		t.Fatalf("segments: %q", files)
	}
	if err := os.Truncate(files[0], 60); err != nil { // lost: 2
		t.Fatal(err)
	}
	if err := os.WriteFile(files[1], bytes.Repeat([]byte(magic), 3000), 0o600); err != nil { // lost: 3, 4
		t.Fatal(err)
	}
	if err := os.Remove(files[3]); err != nil { // lost: 7, 8
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "readme.segment"), []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, stats := readAll(t, dir, o)
	if diff := cmp.Diff([]string{want[0], want[4], want[5], want[8], want[9]}, got); diff != "" {
		t.Error(diff)
	}
	if stats.Damaged != 5 {
		t.Errorf("%d damaged, want 5", stats.Damaged)
	}
}

func TestWrongCheckpoint(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, name string){
		"missing": func(t *testing.T, name string) {
			t.Helper()
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		},
		"garbage": func(t *testing.T, name string) {
			t.Helper()
			if err := os.WriteFile(name, bytes.Repeat([]byte("garbage "), 200), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"of another journal": func(t *testing.T, name string) {
			t.Helper()
			c, _, err := openCheckpoint(name)
			if err != nil {
				t.Fatal(err)
			}
			defer c.file.Close()
			if err := c.write(1 << 40); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := open1(t, dir, nil)
			if err := j.Release(appendSync(t, j, "one", "two")); err != nil {
				t.Fatal(err)
			}
			appendSync(t, j, "three")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			spoil(t, filepath.Join(dir, "checkpoint"))
			again := open1(t, dir, nil)
			r := reader(t, again)
			appendSync(t, again, "four")
			for i, want := range []string{"one", "two", "three", "four"} {
				if p, got := next(t, r); got != want || p != Position(i+1) {
					t.Errorf("%d %q, want %q", p, got, want)
				}
			}
			if err := again.Release(3); err != nil {
				t.Fatal(err)
			}
			again.Close()
			r.Close()
			if got, stats := readAll(t, dir, nil); !slices.Equal(got, []string{"4 four"}) || stats.Damaged != 0 {
				t.Errorf("then: %q, %+v", got, stats)
			}
		})
	}
}

// One of the checkpoint's two places is torn when the machine stops: the other counts.
func TestTornCheckpoint(t *testing.T) {
	name := filepath.Join(t.TempDir(), "checkpoint")
	for last := Position(1); last < 6; last++ {
		c, _, err := openCheckpoint(name)
		if err != nil {
			t.Fatal(err)
		}
		place := int64(c.turn%2) * checkpointEvery
		if err := c.write(last); err != nil {
			t.Fatal(err)
		}
		c.file.Close()
		whole, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		torn := slices.Clone(whole)
		torn[place+20] ^= 1
		for want, content := range map[Position][]byte{last: whole, last - 1: torn} {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
			c, p, err := openCheckpoint(name)
			if err != nil {
				t.Fatal(err)
			}
			c.file.Close()
			if p != want {
				t.Errorf("checkpoint %d, want %d", p, want)
			}
		}
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	j := open1(t, t.TempDir(), nil)
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
	small := open1(t, t.TempDir(), &Options{MaxBytes: 100})
	if _, err := small.Append(make([]byte, 100-headerSize+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than MaxBytes: %v", err)
	}
	if _, err := small.Append(make([]byte, 100-headerSize)); err != nil {
		t.Errorf("just MaxBytes: %v", err)
	}
}

func TestFull(t *testing.T) {
	for _, maxBytes := range []int64{1 << 10, 1 << 14} {
		var log bytes.Buffer
		j := open1(t, t.TempDir(), &Options{MaxBytes: maxBytes, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		r := reader(t, j)
		record := bytes.Repeat([]byte("x"), 200)
		for round := range 5 {
			var last Position
			for {
				p, err := j.Append(record)
				if errors.Is(err, ErrFull) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				last = p
			}
			if s := j.Stats(); !errors.Is(s.Err, ErrFull) || s.Bytes > maxBytes || s.Bytes < maxBytes-headerSize-200 {
				t.Errorf("round %d: %+v", round, s)
			}
			if n := strings.Count(log.String(), "full"); n != round+1 {
				t.Errorf("round %d: said %d times that it is full", round, n)
			}
			for p := Position(0); p < last; {
				p, _ = next(t, r)
			}
			if err := j.Release(last); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return j.Stats().Err == nil })
		}
	}
}

// What is released is removed also if the next record does not fit beside it.
func TestFullOfReleased(t *testing.T) {
	dir := t.TempDir()
	j := open1(t, dir, &Options{MaxBytes: 10_000})
	if err := j.Release(appendSync(t, j, "a little")); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 10_000-headerSize)
	if _, err := j.Append(large); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return j.Stats() == Stats{} })
	if files := segmentFiles(t, dir); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
	if p := appendSync(t, j, string(large)); p != 2 {
		t.Errorf("position %d, want 2", p)
	}
	if diff := cmp.Diff([]string{"2 " + string(large)}, drain(t, j, j.Reader())); diff != "" {
		t.Error(diff)
	}
}

// waitFor waits for another goroutine.
func waitFor(t *testing.T, is func() bool) {
	t.Helper()
	for !is() {
		if t.Context().Err() != nil {
			t.Fatal("it did not happen")
		}
		runtime.Gosched()
	}
}

// faultyDisk fails as it is told, and has a gate before each sync.
type faultyDisk struct {
	mu   sync.Mutex
	errs map[string]error // by operation
}

func (d *faultyDisk) set(op string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.errs == nil {
		d.errs = make(map[string]error)
	}
	d.errs[op] = err
}

func (d *faultyDisk) get(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.errs[op]
}

func (d *faultyDisk) disk() *disk {
	works := realDisk()
	return &disk{
		create: func(name string) (*os.File, error) {
			if err := d.get("create"); err != nil {
				return nil, err
			}
			return works.create(name)
		},
		write: func(f *os.File, b []byte, at int64) error {
			if err := d.get("write"); err != nil {
				return errors.Join(err, works.write(f, b[:len(b)/2], at))
			}
			return works.write(f, b, at)
		},
		sync: func(f *os.File) error {
			if err := d.get("sync"); err != nil {
				return err
			}
			return works.sync(f)
		},
		syncDir: func(dir string) error {
			if err := d.get("syncDir"); err != nil {
				return err
			}
			return works.syncDir(dir)
		},
	}
}

// While a disk fails nothing is said to be durable, nothing taken is lost, and when it works again all is well.
func TestDiskErrors(t *testing.T) {
	for op, fault := range map[string]error{"create": syscall.ENOSPC, "write": syscall.ENOSPC, "sync": syscall.EIO, "syncDir": syscall.EIO} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprint(op, " ", begun), func(t *testing.T) {
				dir := t.TempDir()
				var faulty faultyDisk
				j, err := open(dir, &Options{SegmentBytes: 1000}, faulty.disk())
				if err != nil {
					t.Fatal(err)
				}
				defer j.Close()
				r := reader(t, j)
				var want []string
				put := func(record string) Position {
					p := appendAll(t, j, record)
					want = append(want, fmt.Sprint(p, " ", record))
					return p
				}
				if begun {
					if err := j.Sync(t.Context(), put("before")); err != nil {
						t.Fatal(err)
					}
				}
				faulty.set(op, fault)
				if begun && (op == "create" || op == "syncDir") { // then it needs a new segment to fail
					put(strings.Repeat("x", 999))
				}
				if err := j.Sync(t.Context(), put("during")); !errors.Is(err, fault) {
					t.Fatalf("Sync while it fails: %v", err)
				}
				if err := j.Sync(t.Context(), put("during, again")); !errors.Is(err, fault) {
					t.Fatalf("Sync while it fails: %v", err)
				}
				if err := j.Stats().Err; !errors.Is(err, fault) {
					t.Errorf("Stats().Err = %v", err)
				}
				faulty.set(op, nil)
				waitFor(t, func() bool { return j.Stats().Err == nil })
				if err := j.Sync(t.Context(), put("after")); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, drain(t, j, r)); diff != "" {
					t.Errorf("read (-want +got):\n%s", diff)
				}
				got, stats := readAll(t, dir, nil)
				if diff := cmp.Diff(want, got); diff != "" || stats.Damaged != 0 || stats.Torn != 0 {
					t.Errorf("read after a restart (-want +got):\n%s%+v", diff, stats)
				}
			})
		}
	}
}

// A disk that fails to the end: Close says so.
func TestCloseFails(t *testing.T) {
	var faulty faultyDisk
	dir := t.TempDir()
	j, err := open(dir, nil, faulty.disk())
	if err != nil {
		t.Fatal(err)
	}
	appendSync(t, j, "before")
	faulty.set("sync", syscall.EIO)
	p := appendAll(t, j, "during")
	if err := j.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
	if err := j.Sync(t.Context(), p); !errors.Is(err, syscall.EIO) {
		t.Errorf("Sync after it: %v", err)
	}
	if got, _ := readAll(t, dir, nil); !slices.Equal(got, []string{"1 before"}) {
		t.Errorf("left: %q", got)
	}
}

// What a failed write left behind is not read in place of what was written instead of it, even if it could not be cut off.
func TestLeftOver(t *testing.T) {
	dir := t.TempDir()
	j := open1(t, dir, nil)
	appendSync(t, j, "one", "two")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	name := segmentFiles(t, dir)[0]
	again := open1(t, dir, nil)
	left := appendRecord(nil, j.salt, 3, []byte("left over"), checksum(j.salt, []byte("left over")))
	left = appendRecord(left, j.salt, 4, []byte("left over"), checksum(j.salt, []byte("left over")))
	appendSync(t, again, "three")
	appendSync(t, again, "four")
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(left); err != nil {
		t.Fatal(err)
	}
	f.Close()
	got, stats := readAll(t, dir, nil)
	if diff := cmp.Diff([]string{"1 one", "2 two", "3 three", "4 four"}, got); diff != "" || stats.Damaged != 0 {
		t.Errorf("%s%+v", diff, stats)
	}
}

// The queue is bounded, and while a disk stands still Sync waits no longer than its caller wants.
func TestBusy(t *testing.T) {
	gate := make(chan struct{})
	slow := realDisk()
	sync := slow.sync
	slow.sync = func(f *os.File) error {
		<-gate
		return sync(f)
	}
	j, err := open(t.TempDir(), nil, slow)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	record := make([]byte, MaxQueued/4-headerSize)
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
	dir := t.TempDir()
	j := open1(t, dir, &Options{SegmentBytes: 1 << 14})
	const writers, each = 8, 150
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 0))
			for i := range each {
				record := append(fmt.Appendf(nil, "%d/%d ", w, i), make([]byte, random.IntN(400))...)
				p, err := j.Append(record)
				if err != nil {
					t.Error(err)
					return
				}
				if random.IntN(3) > 0 {
					if err := j.Sync(t.Context(), p); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for _, releases := range []bool{true, false} {
		r := j.Reader()
		wg.Go(func() {
			defer r.Close()
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
					if err := j.Release(p); err != nil {
						t.Error(err)
					}
				}
				_ = j.Stats()
			}
		})
	}
	wg.Wait()
	if s := j.Stats(); s.Damaged != 0 || s.Records != 0 && s.Records > 50 {
		t.Errorf("%+v", s)
	}
}

// badBlock is a file of which the second block cannot be read.
type badBlock struct{ io.ReaderAt }

func (b badBlock) ReadAt(p []byte, at int64) (int, error) {
	if end := at + int64(len(p)); end <= diskBlock || at >= 2*diskBlock {
		return b.ReaderAt.ReadAt(p, at)
	}
	n, err := b.ReaderAt.ReadAt(p[:max(diskBlock-at, 0)], at)
	return n, errors.Join(err, syscall.EIO)
}

// A place that cannot be read is tried again, and then skipped.
func TestUnreadable(t *testing.T) {
	j := open1(t, t.TempDir(), nil)
	records := make([]string, 5)
	for i := range records {
		records[i] = strings.Repeat(fmt.Sprint(i+1), 3000)
	}
	appendSync(t, j, records...)
	r := reader(t, j)
	r.locate()
	if _, _, err := r.readSegment(); err != nil {
		t.Fatal(err)
	}
	r.scan = scanner{src: badBlock{r.file}, salt: j.salt}
	r.last = 0
	var got []string
	failed := 0
	for len(got) < 3 {
		_, record, err := r.Next(t.Context())
		if err != nil {
			if !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			failed++
			continue
		}
		got = append(got, string(record))
	}
	if diff := cmp.Diff([]string{records[0], records[3], records[4]}, got); diff != "" {
		t.Error(diff)
	}
	if s := j.Stats(); failed != 2*(readTries-1) || s.Damaged != 2 {
		t.Errorf("%d errors, %+v", failed, s)
	}
}
