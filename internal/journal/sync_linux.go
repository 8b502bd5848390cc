package journal

import (
	"errors"
	"os"
	"syscall"
)

// syncData makes the contents of f durable, and of the rest what is needed to read them.
func syncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = conn.Control(func(fd uintptr) {
		for {
			if failure = syscall.Fdatasync(int(fd)); !errors.Is(failure, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if failure != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failure}
	}
	return nil
}
