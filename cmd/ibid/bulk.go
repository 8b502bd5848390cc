package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/semaphore"
)

// maxAhead limits the bytes of archives and lines that are read but not yet written.
const maxAhead = 64 << 20

// maxLine is the largest size of a line in bytes. A longer one is an error of that line.
const maxLine = 8 << 20

// inOrder runs work on up to atOnce items at a time and passes the results to write in the order of the items. An error
// of write ends it. The first item is processed alone, so that the others benefit from what it caches, such as a
// publisher's keys.
func inOrder[I, O any](
	ctx context.Context, atOnce int, items func(context.Context) iter.Seq[I],
	work func(context.Context, I) O, write func(I, O) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel() // before the wait
	type job struct {
		item I
		done chan O
	}
	waiting, firstDone := make(chan job, atOnce-1), make(chan struct{})
	all.Go(func() {
		defer close(waiting)
		ready := firstDone
		for item := range items(ctx) {
			j := job{item, make(chan O, 1)}
			select {
			case waiting <- j:
			case <-ctx.Done():
				return
			}
			all.Go(func() { j.done <- work(ctx, item) })
			select {
			case <-ready: // closed for all but the first
			case <-ctx.Done():
				return
			}
		}
	})
	once := sync.OnceFunc(func() { close(firstDone) })
	for j := range waiting {
		if err := write(j.item, <-j.done); err != nil {
			return err
		}
		once()
	}
	return ctx.Err()
}

// item is one input of a command.
type item struct {
	name string
	data []byte // from an archive or a line; nil if name is a file, an address or standard input
	held int64  // bytes acquired from feed.room
	err  error  // why it cannot be read
}

// isURL reports whether a name is that of a page, not of a file.
func isURL(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// feed yields items in order: for each name the item itself, or the items in the archive or on the lines of the file.
// It must be used only once.
type feed struct {
	names   []string
	list    string // a file with more names, one per line; empty if there is none
	lines   bool   // each line of a JSON lines file, and of standard input, is an item
	stdin   io.Reader
	through func(io.Reader) io.Reader // wraps the readers of archives, lines and the list
	done    *resumption               // the output of an earlier call; nil if there was none
	skip    int                       // leading items that are in it already

	room  *semaphore.Weighted // limited to [maxAhead]
	count int                 // items so far
	err   error               // why it ended early
}

// tarEndings are the file name suffixes of archives.
var tarEndings = []string{".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"}

// lineEndings are the file name suffixes of JSON lines.
var lineEndings = []string{
	".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst",
}

// holds reports whether the items of a name are the files of an archive, or lines; if neither, the name is itself an
// item.
func (f *feed) holds(name string) (files, lines bool) {
	lower := strings.ToLower(name)
	isEnding := func(ending string) bool { return strings.HasSuffix(lower, ending) }
	return slices.ContainsFunc(tarEndings, isEnding),
		f.lines && (name == stdinName || slices.ContainsFunc(lineEndings, isEnding))
}

// many reports whether there may be more items than names.
func (f *feed) many() bool {
	return f.list != "" || slices.ContainsFunc(f.names, func(name string) bool {
		files, lines := f.holds(name)
		return files || lines
	})
}

// items yields the items. The consumer of an item must release its bytes to room.
func (f *feed) items(ctx context.Context) iter.Seq[*item] {
	f.room = semaphore.NewWeighted(maxAhead)
	return func(yield func(*item) bool) {
		for _, name := range f.names {
			var more bool
			switch files, lines := f.holds(name); {
			case files:
				more = f.readThrough(name, func(r io.Reader) bool { return f.readTar(ctx, name, r, yield) }, yield)
			case lines:
				more = f.readThrough(name, func(r io.Reader) bool {
					return f.readLines(name, r, func(line []byte, number int, err error) bool {
						it := &item{name: name + ":" + strconv.Itoa(number), data: line, err: err}
						return (f.count < f.skip || f.hold(ctx, it, int64(len(line)))) && f.give(it, yield)
					}, yield)
				}, yield)
			default:
				more = f.give(&item{name: name}, yield)
			}
			if !more {
				return
			}
		}
		if f.list != "" && !f.readThrough(f.list, func(r io.Reader) bool {
			return f.readLines(f.list, r, func(line []byte, number int, err error) bool {
				it := &item{name: string(bytes.TrimSpace(line)), err: err}
				if err != nil {
					it.name = f.list + ":" + strconv.Itoa(number)
				}
				return f.give(it, yield)
			}, yield)
		}, yield) {
			return
		}
		if f.count < f.skip {
			why := fmt.Sprintf("it has %d lines, but the call has only %s", f.skip, plural(f.count, "input"))
			f.err = f.done.foreign(why)
		}
	}
}

// hold waits until room has n bytes and records them in the item.
func (f *feed) hold(ctx context.Context, it *item, n int64) bool {
	n = min(n, maxAhead)
	if f.room.Acquire(ctx, n) != nil {
		return false
	}
	it.held = n
	return true
}

// give yields an item unless it is skipped, and reports whether to continue.
func (f *feed) give(it *item, yield func(*item) bool) bool {
	f.count++
	if f.count > f.skip {
		return yield(it)
	}
	if name := strings.ToValidUTF8(it.name, "\ufffd"); f.count == f.skip && name != f.done.last {
		f.err = f.done.foreign(fmt.Sprintf("its line %d is about %s, not %s", f.count, f.done.last, name))
		return false
	}
	return true
}

// readThrough reads a file with many items. A file that cannot be opened is one item with that error.
func (f *feed) readThrough(name string, read func(io.Reader) bool, yield func(*item) bool) bool {
	from, closeFile, err := openFile(name, f.stdin)
	if err != nil {
		return f.give(&item{name: name, err: bare(err)}, yield)
	}
	defer closeFile()
	if f.through != nil {
		from = f.through(from)
	}
	buffered := bufio.NewReaderSize(from, maxHead)
	head, _ := buffered.Peek(prelude) // an error will recur
	coding := markedAs(head)
	r, err := coding.Reader(buffered, maxWindow)
	if err != nil {
		return f.give(&item{name: name, err: fmt.Errorf("unpack %s: %w", coding, err)}, yield)
	}
	return read(r)
}

// readTar gives the files of an archive.
func (f *feed) readTar(ctx context.Context, name string, r io.Reader, yield func(*item) bool) bool {
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return f.give(&item{name: name, err: fmt.Errorf("read the archive: %w", bare(err))}, yield)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		it := &item{name: name + ":" + h.Name}
		switch {
		case f.count < f.skip:
		case h.Size > maxUnpacked:
			it.err = errLarge
		default:
			if !f.hold(ctx, it, h.Size) {
				return false
			}
			it.data = make([]byte, h.Size)
			if _, err := io.ReadFull(archive, it.data); err != nil {
				it.err = fmt.Errorf("read the archive: %w", bare(err))
				return f.give(it, yield)
			}
		}
		if !f.give(it, yield) {
			return false
		}
	}
}

// readLines gives the lines of a file that are not blank. A read error is given as an item.
func (f *feed) readLines(
	name string, r io.Reader, give func(line []byte, number int, err error) bool, yield func(*item) bool,
) bool {
	more := true
	err := readLines(bufio.NewReaderSize(r, 1<<16), func(line []byte, number int, err error) bool {
		more = isBlank(line) && err == nil || give(line, number, err)
		return more
	})
	if err != nil {
		return f.give(&item{name: name, err: bare(err)}, yield)
	}
	return more
}

// readLines passes all lines, with their numbers from 1, to give as long as it returns true. A line that is too long is
// passed as an error, without content.
func readLines(r *bufio.Reader, give func(line []byte, number int, err error) bool) error {
	for number := 1; ; number++ {
		line, err := readLine(r)
		long, end := errors.Is(err, errLongLine), errors.Is(err, io.EOF)
		if err != nil && !long && !end {
			return err
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		err = nil
		if long {
			err = errLongLine
		}
		if !give(line, number, err) || end {
			return nil
		}
	}
}

var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// readLine reads a line. The content of a line that is too long is discarded.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errors.Join(errLongLine, err)
		default:
			return line, err
		}
	}
}

// isBlank reports whether a line has only white space.
func isBlank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// addResumeFlag adds --resume, for a command that writes one line of JSON per input.
func addResumeFlag(flags *pflag.FlagSet, name *string) {
	flags.StringVar(
		name, "resume", "", "write JSON to this `FILE`, after the output of an earlier call that was interrupted",
	)
	withoutVariable(flags, "resume")
}

// errResume refuses --resume in a call that does not write JSON.
var errResume = usagef("the lines of JSON record the progress", "--resume only works with --json")

// resumption is the output of an earlier call that was interrupted: one line per input, in order.
type resumption struct {
	*os.File

	count int    // complete lines
	last  string // the input of the last complete line
}

// resume opens a file to append to its complete lines, removing an incomplete one.
func resume(name string) (*resumption, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666) //nolint:gosec // as os.Create makes files
	if err != nil {
		return nil, usagef("--resume names the output file", "resume %s: %w", name, bare(err))
	}
	r := &resumption{File: f}
	var last, end, at int64 // the start and end of the last complete line
	for lines := bufio.NewReaderSize(f, 1<<20); err == nil || errors.Is(err, bufio.ErrBufferFull); {
		var part []byte
		part, err = lines.ReadSlice('\n')
		if at += int64(len(part)); err == nil {
			last, end = end, at
			r.count++
		}
	}
	if r.count > 0 && errors.Is(err, io.EOF) {
		var line struct {
			Input *string `json:"input"`
		}
		whole := io.NewSectionReader(f, last, end-last)
		if json.NewDecoder(whole).Decode(&line) != nil || line.Input == nil {
			return nil, errors.Join(r.foreign("its last line was not written by this command"), f.Close())
		}
		r.last = *line.Input
	}
	if errors.Is(err, io.EOF) {
		if err = f.Truncate(end); err == nil {
			_, err = f.Seek(end, io.SeekStart)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("resume %s: %w", name, bare(err)), f.Close())
	}
	return r, nil
}

// foreign returns the error of a file that is not the output of this call.
func (r *resumption) foreign(why string) error {
	return usagef("--resume needs the same inputs as the call that was interrupted", "resume %s: %s", r.Name(), why)
}
