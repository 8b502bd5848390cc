//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package file

import "os"

// Lock opens the file name, creating it if necessary (mode 0600). This system has no lock that waits and is released
// when the process ends.
func Lock(name string) (*os.File, error) { return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) }
