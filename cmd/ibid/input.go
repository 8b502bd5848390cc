package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ibidhq/ibid"
)

// stdinName is the argument that means standard input.
const stdinName = "-"

// input is one provider response to be read.
type input struct {
	io.Reader
	live   bool // it may arrive slowly: a pipe, a terminal
	closes []io.Closer
}

// Close closes what the input was read from.
func (in *input) Close() {
	for _, c := range in.closes {
		_ = c.Close() // it was only read
	}
}

// openInput opens a file, or standard input, unpacked. through, if not nil, sees the bytes before they are unpacked.
func openInput(name string, stdin io.Reader, through func(io.Reader) io.Reader) (*input, error) {
	in := &input{Reader: stdin}
	if name != stdinName {
		f, err := os.Open(name)
		if err != nil {
			return nil, bare(err)
		}
		in.Reader, in.closes = f, []io.Closer{f}
	}
	in.live = !isRegular(in.Reader)
	if through != nil {
		in.Reader = through(in.Reader)
	}
	var err error
	if in.Reader, err = unpacked(in.Reader, name); err != nil {
		in.Close()
		return nil, bare(err)
	}
	return in, nil
}

func isRegular(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// bare takes the operation and the file out of an error: messages name the file themselves.
func bare(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// readSidecar reads a file that goes with a response, whole.
func readSidecar(name string, stdin io.Reader) ([]byte, error) {
	in, err := openInput(name, stdin, nil)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, bare(err)
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
}

// readRequest reads the request that a response answers.
func readRequest(name string, stdin io.Reader) ([]byte, error) {
	data, err := readSidecar(name, stdin)
	if err == nil && !json.Valid(data) {
		err = &usageError{
			errors.New("it is not JSON"), "--request wants the body of the request: what curl sends with --data",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read request %s: %w", name, err)
	}
	return data, nil
}

// readDocuments reads the documents that were given to the model.
func readDocuments(name string, stdin io.Reader) ([]ibid.Source, error) {
	data, err := readSidecar(name, stdin)
	if err != nil {
		return nil, fmt.Errorf("read documents %s: %w", name, err)
	}
	docs, err := ibid.ReadDocuments(data)
	if err != nil {
		return nil, &usageError{
			fmt.Errorf("read %s: %w", name, err),
			`--documents wants a JSON array of strings, flat objects or {"id", "data"}; a whole request goes to --request`,
		}
	}
	return docs, nil
}
