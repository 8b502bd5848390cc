//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package file

import (
	"errors"
	"os"
	"syscall"
)

// Lock opens the file name, makes it if it is not there (mode 0600), and waits until no other process has it locked.
// Closing the file unlocks it, and so does the end of the process.
//
// Windows and a few other systems have no lock that waits and ends with its process: there, Lock only opens the file.
func Lock(name string) (*os.File, error) {
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
