package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
)

// addResumeFlag adds --resume, for a command that writes a line of JSON for each of its inputs.
func addResumeFlag(flags *pflag.FlagSet, name *string) {
	flags.StringVar(
		name, "resume", "", "write JSON to this `FILE`, behind what an earlier call wrote that was broken off",
	)
	withoutVariable(flags, "resume")
}

// checkResume refuses --resume in a call that does not write JSON.
func checkResume(name string, writesJSON bool) error {
	if name == "" || writesJSON {
		return nil
	}
	return &usageError{errors.New("--resume goes with --json only"), "its lines say how far it came"}
}

// resumption is what an earlier call, which was broken off, has written: a line for each of its inputs, in their order.
type resumption struct {
	*os.File

	count int    // whole lines
	last  string // the input that the last of them is about
}

// resume opens a file to write to it behind its whole lines; one that was begun is taken off.
func resume(name string) (*resumption, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666) //nolint:gosec // as os.Create makes files
	if err != nil {
		return nil, &usageError{
			fmt.Errorf("resume %s: %w", name, bare(err)), "--resume names the file that the output goes to",
		}
	}
	r := &resumption{File: f}
	err = r.find()
	if err == nil {
		return r, nil
	}
	if _, said := errors.AsType[*usageError](err); !said {
		err = fmt.Errorf("resume %s: %w", name, bare(err))
	}
	return nil, errors.Join(err, f.Close())
}

// find counts the whole lines, and reads what the last one is about.
func (r *resumption) find() error {
	var last, end int64 // where the last whole line begins, and ends
	b, at := make([]byte, 1<<20), int64(0)
	for {
		n, err := r.Read(b)
		for i, part := 0, b[:n]; ; {
			next := bytes.IndexByte(part[i:], '\n')
			if next < 0 {
				break
			}
			i += next + 1
			last, end = end, at+int64(i)
			r.count++
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if r.count > 0 {
		var line struct {
			Input *string `json:"input"`
		}
		whole := io.NewSectionReader(r.File, last, end-last)
		if err := json.NewDecoder(whole).Decode(&line); err != nil || line.Input == nil {
			return r.foreign("its last line is none that this command writes")
		}
		r.last = *line.Input
	}
	if err := r.Truncate(end); err != nil {
		return err
	}
	_, err := r.Seek(end, io.SeekStart)
	return err
}

// foreign says that the file is not the output of this call.
func (r *resumption) foreign(why string) error {
	return &usageError{
		fmt.Errorf("resume %s: %s", r.Name(), why), "--resume wants the same inputs as the call that was broken off",
	}
}
