package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Replace writes b to the file name so that at any time, even after a loss of power, the name leads to the old content
// or to all of the new one. The file gets the permissions perm, whatever the umask. When Replace returns nil, the new
// content is durable.
//
// The content is written to a temporary file in the same directory first. Its name ends in ".tmp"; one that a crash
// left behind can be deleted.
func Replace(name string, b []byte, perm fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil && perm != 0o600 {
		err = f.Chmod(perm)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(name))
}

// SyncDir makes the names in a directory durable: of files that were created, renamed or removed there. On Windows,
// where directories cannot be synced, it does nothing.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
