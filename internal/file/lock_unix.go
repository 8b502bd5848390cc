//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package file

import (
	"errors"
	"os"
	"syscall"
)

// Lock opens the file name, creating it if necessary (mode 0600), and waits until it can lock it. Closing the file
// unlocks it, as does the end of the process.
//
// Windows and a few other systems have no lock that waits and is released when the process ends: there, Lock only opens
// the file.
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
