package pdf

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Bounds of a process that reads one PDF. They are wider than those of the reader: only a bug of it meets them.
const (
	maxProcesses     = 2         // at the same time
	processHeap      = 192 << 20 // bytes that Go's garbage collector tries to keep to
	processMemory    = 384 << 20 // bytes of data; more makes it fail
	processOutput    = 128 << 20 // bytes of its result
	processSpare     = 2 * time.Second
	processWaitDelay = time.Second
)

// isolated starts the processes; nil if PDFs are read in this one.
var isolated atomic.Pointer[isolation]

type isolation struct {
	path  string
	args  []string
	slots chan struct{}
}

// Isolate makes [Read] start a process for each PDF: the program at path, which must call [Serve] when it gets args, of
// which the first is its name. What a bug of the reader then takes, or breaks, is that process. Where none can be
// started, PDFs are read in this one.
func Isolate(path string, args ...string) {
	isolated.Store(&isolation{path: path, args: args, slots: make(chan struct{}, maxProcesses)})
}

// result is what a process writes.
type result struct {
	Document *Document `json:"document,omitempty"`
	Stopped  *failure  `json:"stopped,omitempty"`
	Err      *failure  `json:"err,omitempty"`
}

// failure is an error that goes from one process to another.
type failure struct {
	Kind int    `json:"kind"` // an index in kinds
	Text string `json:"text"`
}

var kinds = []error{ErrDamaged, ErrTooLarge, ErrEncrypted, ErrTimeout}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			f.Kind = i
		}
	}
	return f
}

// err returns the error.
func (f *failure) err() error {
	if f == nil {
		return nil
	}
	return &readError{f.Text, kinds[min(max(f.Kind, 0), len(kinds)-1)]}
}

// readError is an error of another process.
type readError struct {
	text string
	kind error
}

func (e *readError) Error() string { return e.text }

func (e *readError) Unwrap() error { return e.kind }

// Serve is the process that [Isolate] starts: it limits itself, reads the PDF on in, and writes the result to out. args
// are those that follow Isolate's.
func Serve(in io.Reader, out io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New("reading a PDF: this command is for ibid itself")
	}
	pages, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("reading a PDF: %w", err)
	}
	most, err := time.ParseDuration(args[1])
	if err != nil {
		return fmt.Errorf("reading a PDF: %w", err)
	}
	debug.SetMemoryLimit(processHeap)
	limitProcess(processMemory, most+processSpare)
	b, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading a PDF: %w", err)
	}
	var r result
	d, err := newFile(context.Background(), b, most).read(pages)
	if r.Document, r.Err = d, failureOf(err); d != nil {
		r.Stopped, d.Stopped = failureOf(d.Stopped), nil
	}
	if err := json.NewEncoder(out).Encode(&r); err != nil {
		return fmt.Errorf("writing the text of a PDF: %w", err)
	}
	return nil
}

// readIsolated reads a PDF in another process. It returns false if none can be started.
func readIsolated(
	ctx context.Context, b []byte, maxPages int, maxTime time.Duration,
) (d *Document, err error, ok bool) {
	on := isolated.Load()
	if on == nil {
		return nil, nil, false
	}
	select {
	case on.slots <- struct{}{}:
		defer func() { <-on.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", ErrTimeout, ctx.Err()), true
	}
	work, cancel := context.WithTimeout(ctx, maxTime+processSpare)
	defer cancel()
	cmd := exec.CommandContext(work, on.path) //nolint:gosec // the program itself
	cmd.Args = append(slices.Clone(on.args), strconv.Itoa(maxPages), maxTime.String())
	cmd.WaitDelay = processWaitDelay
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=single"} // and none of ours, which has secrets
	cmd.Dir = os.TempDir()
	cmd.Stdin = bytes.NewReader(b)
	out, said := &capped{most: processOutput, over: cancel}, &capped{most: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	if err := cmd.Start(); err != nil {
		return nil, nil, false
	}
	err = cmd.Wait()
	switch {
	case out.isOver:
		return nil, fmt.Errorf("%w: its text has more than %d MB", ErrTooLarge, processOutput>>20), true
	case work.Err() != nil:
		return nil, fmt.Errorf("%w: %w", ErrTimeout, work.Err()), true
	case err != nil:
		line, _, _ := bytes.Cut(said.kept, []byte("\n"))
		return nil, fmt.Errorf("%w: its reader failed: %w: %s", ErrDamaged, err, line), true
	}
	var r result
	if err := json.Unmarshal(out.kept, &r); err != nil || r.Document == nil && r.Err == nil {
		return nil, fmt.Errorf("%w: its reader failed: %w", ErrDamaged, cmp.Or(err, io.ErrUnexpectedEOF)), true
	}
	if r.Err != nil {
		return nil, r.Err.err(), true
	}
	r.Document.Stopped = r.Stopped.err()
	return r.Document, nil, true
}

// capped keeps what is written up to a limit. If there is more, it calls over, unless that is nil. It is no
// bytes.Buffer, whose ReadFrom would bypass the limit.
type capped struct {
	kept   []byte
	most   int
	over   func()
	isOver bool
}

func (c *capped) Write(p []byte) (int, error) {
	left := c.most - len(c.kept)
	c.kept = append(c.kept, p[:min(left, len(p))]...)
	if len(p) > left && !c.isOver {
		if c.isOver = true; c.over != nil {
			c.over()
		}
	}
	return len(p), nil
}
