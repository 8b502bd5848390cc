package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ibidhq/ibid/support"
)

// Limits of the lines checked together.
const (
	maxBatchBytes = 8 << 20 // bytes
	maxBatchPairs = 64      // lines
)

// batch is one call of ibid check --batch.
type batch struct {
	checker support.Checker
	out     io.Writer
	claims  support.Claims // read and not yet checked
	bytes   int            // of them
	taken   int            // lines that are not blank
	failed  int
}

// checkBatch checks the lines of a file. Only a failure to read or write ends it early.
func checkBatch(ctx context.Context, name string, checker support.Checker, w world) error {
	_, fast := checker.(*support.Lexical)
	bar := newProgress([]string{name}, !fast, w)
	defer bar.over(&w.err)()
	in, err := openInput(&item{name: name}, w.in, bar.watch)
	if err != nil {
		return usagef(explain(err).hint, "read %s: %w", name, err)
	}
	defer in.Close()
	b := &batch{checker: checker, out: w.out}
	if err := b.checkLines(ctx, bufio.NewReaderSize(in, 1<<16)); err != nil {
		return err
	}
	if b.taken == 0 {
		return usagef(`each line is {"id", "claim", "passages": [...]}`, "read %s: the file is empty", name)
	}
	if b.failed > 0 {
		say(w.err, "%s of %d could not be checked; see the member error", plural(b.failed, "line"), b.taken)
		return errReported
	}
	return nil
}

// checkLines reads, checks and writes lines. Lines that have been read are checked before it waits for more.
func (b *batch) checkLines(ctx context.Context, r *bufio.Reader) error {
	var failed error
	err := readLines(r, func(line []byte, number int, err error) bool {
		switch {
		case err != nil:
			b.claims.AddTooLarge(number, err)
			b.taken++
		case !isBlank(line):
			b.claims.AddLine(line, number)
			b.taken++
			b.bytes += len(line)
		}
		ahead, _ := r.Peek(r.Buffered())
		isLast := bytes.IndexByte(ahead, '\n') < 0 // of the lines read so far
		if _, pairs := b.claims.Len(); isLast || pairs >= maxBatchPairs || b.bytes >= maxBatchBytes {
			failed = b.flush(ctx)
		}
		return failed == nil
	})
	if err != nil {
		return errors.Join(b.flush(ctx), fmt.Errorf("read the batch: %w", bare(err)))
	}
	return failed
}

// flush checks the collected lines and writes the results.
func (b *batch) flush(ctx context.Context) error {
	reports, err := b.claims.Check(ctx, b.checker)
	if err != nil {
		return err
	}
	for _, report := range reports {
		if report.Error != nil {
			b.failed++
		}
		if err := writeReport(b.out, report); err != nil {
			return fmt.Errorf("write standard output: %w", bare(err))
		}
	}
	b.claims, b.bytes = support.Claims{}, 0
	return nil
}

func writeReport(w io.Writer, report *support.ClaimVerdict) error {
	line, err := report.Encode()
	if err == nil {
		_, err = w.Write(line)
	}
	return err
}
