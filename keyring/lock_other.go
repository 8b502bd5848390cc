//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd

package keyring

import "os"

// lockFile opens the file. Here there is no lock that waits and ends with its process: it is on the operator to change
// keys from one process at a time.
func lockFile(name string) (*os.File, error) { return os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) }

// syncDir does nothing: a rename lasts when the system says so.
func syncDir(string) error { return nil }
