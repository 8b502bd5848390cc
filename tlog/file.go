package tlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// copyFile is the copy of the last checkpoint that lies beside the database.
type copyFile struct {
	name string // empty: none

	mu   sync.Mutex
	what []byte // what this process wrote last
}

// read returns what the file has; nil if there is none.
func (c *copyFile) read() ([]byte, error) {
	if c.name == "" {
		return nil, nil
	}
	f, err := os.Open(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the copy of the checkpoint: %w", err)
	}
	defer f.Close()                                          //nolint:errcheck // it was only read
	b, err := io.ReadAll(io.LimitReader(f, MaxCheckpoint+1)) // what is longer is refused when it is parsed
	if err != nil {
		return nil, fmt.Errorf("reading the copy of the checkpoint: %w", err)
	}
	if b == nil {
		b = []byte{} // an empty file is not a missing one
	}
	return b, nil
}

// save makes the file a copy of the store's checkpoint. Other processes may write to the same file: whoever has written
// looks again, so the last one to write has written what is newest.
func (l *Log) save(ctx context.Context) error {
	if l.file.name == "" {
		return nil
	}
	l.file.mu.Lock()
	defer l.file.mu.Unlock()
	for {
		head, err := l.head(ctx)
		if err != nil {
			return fmt.Errorf("copying the checkpoint: %w", err)
		}
		if bytes.Equal(head.Note, l.file.what) {
			return nil
		}
		if err := replaceFile(l.file.name, head.Note); err != nil {
			return fmt.Errorf("copying the checkpoint: %w", err)
		}
		l.file.what = head.Note
	}
}

// replaceFile writes a file so that at any time, even after the machine lost its power, it is the old one or the new
// one.
func replaceFile(name string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil { // it is public
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be synced there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	return d.Sync()
}
