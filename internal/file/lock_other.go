//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package file

import "os"

// Lock opens the file name and makes it if it is not there (mode 0600). This system has no lock that waits and ends
// with its process.
func Lock(name string) (*os.File, error) { return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) }
