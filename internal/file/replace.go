package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Replace atomically replaces the content of the file name with b: at any time, even after a power failure, the file
// has either the old content or all of the new. It gets the permissions perm, regardless of the umask. When Replace
// returns nil, the new content is durable.
//
// The content is first written to a temporary file in the same directory, whose name ends in ".tmp". A temporary file
// left behind by a crash can be deleted.
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

// CreatePrivate creates the file, readable only by its owner, if it does not exist. SQLite gives the files that it puts
// beside a database the database's mode. A file that exists is not opened: closing it would drop the locks that this
// process holds on it.
func CreatePrivate(name string) error {
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	mode := os.O_RDWR | os.O_CREATE | os.O_EXCL
	if _, err := os.Lstat(name); err == nil {
		mode &^= os.O_EXCL // a link to a file that does not exist yet
	}
	f, err := os.OpenFile(name, mode, 0o600)
	if errors.Is(err, fs.ErrExist) { // created meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Publish gives the complete file draft the name as well, which must not exist, and makes both durable. The caller
// removes the draft.
func Publish(draft, name string) error {
	f, err := os.OpenFile(draft, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(draft, name); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(name))
}

// SyncDir makes changes to the entries of a directory durable: files created, renamed or removed. On Windows, where
// directories cannot be synced, it does nothing.
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
