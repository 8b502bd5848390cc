//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package keyring

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens and locks the file, after whoever has it locked; closing it unlocks it, and so does the end of the
// process.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, &os.PathError{Op: "flock", Path: name, Err: err}
		}
	}
}

// syncDir makes a rename last.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
