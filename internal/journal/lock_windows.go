package journal

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens the file so that nobody else can; closing it, or the end of the process, lets others.
func lockFile(name string) (*os.File, error) {
	const errorSharingViolation = syscall.Errno(32)
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err == nil {
		return os.NewFile(uintptr(h), name), nil
	}
	if errors.Is(err, errorSharingViolation) {
		return nil, ErrLocked
	}
	return nil, &os.PathError{Op: "open", Path: name, Err: err}
}
