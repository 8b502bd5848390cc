package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// segment is one file of a journal.
type segment struct {
	number uint64 // counts up, also over restarts
	base   Position
	salt   uint32
	size   int64 // up to where it may be read: all durable
}

const (
	segmentName   = "%08x-%016x-%08x.segment"
	segmentSuffix = ".segment"
)

func (s *segment) path(dir string) string {
	return filepath.Join(dir, fmt.Sprintf(segmentName, s.number, uint64(s.base), s.salt))
}

// listSegments returns the segments in dir in their order. Files with other names are let be.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var segments []*segment
	for _, entry := range entries {
		s := new(segment)
		if filepath.Ext(entry.Name()) != segmentSuffix {
			continue
		}
		if _, err := fmt.Sscanf(entry.Name(), segmentName, &s.number, (*uint64)(&s.base), &s.salt); err != nil ||
			filepath.Base(s.path(dir)) != entry.Name() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		s.size = info.Size()
		segments = append(segments, s)
	}
	slices.SortFunc(segments, func(x, y *segment) int { return cmp.Compare(x.number, y.number) })
	return segments, nil
}

// repair cuts off what follows the last whole record of s and makes the rest durable: whoever wrote it may have died
// before it could. It returns the position of that record, 0 if there is none, and how many bytes were cut off that are
// not zero.
func (s *segment) repair(dir string, disk *disk) (last Position, torn int64, err error) {
	f, err := os.OpenFile(s.path(dir), os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = f.Close() }()
	scan := scanner{src: f, salt: s.salt, end: s.size}
	var end int64
	for {
		p, _, err := scan.next()
		if errors.Is(err, errNoRecord) {
			break
		}
		if err != nil {
			return 0, 0, err
		}
		if p > last {
			last, end = p, scan.off
		}
	}
	if torn, err = countTorn(io.NewSectionReader(f, end, s.size-end)); err != nil {
		return 0, 0, err
	}
	if end < s.size {
		if err := f.Truncate(end); err != nil {
			return 0, 0, err
		}
		s.size = end
	}
	if last == 0 {
		return 0, torn, nil
	}
	return last, torn, disk.sync(f)
}

// countTorn returns how many bytes r has up to the last that is not zero.
func countTorn(r io.Reader) (torn int64, err error) {
	b := make([]byte, scanSize)
	for at := int64(0); ; {
		n, err := r.Read(b)
		for i := n - 1; i >= 0; i-- {
			if b[i] != 0 {
				torn = at + int64(i) + 1
				break
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) {
			return torn, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// disk is what of a disk can fail while records are written.
type disk struct {
	create  func(name string) (*os.File, error)
	write   func(f *os.File, b []byte, at int64) error
	sync    func(f *os.File) error
	syncDir func(dir string) error
}

// realDisk is the operating system's.
func realDisk() *disk {
	return &disk{
		create: func(name string) (*os.File, error) {
			return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		},
		write: func(f *os.File, b []byte, at int64) error {
			_, err := f.WriteAt(b, at)
			return err
		},
		sync:    syncData,
		syncDir: syncDir,
	}
}

// removeFile removes the file, which may be gone already.
func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
