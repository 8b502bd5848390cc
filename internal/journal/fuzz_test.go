package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzScan puts anything between two whole records: no panic, no end, both are found, and nothing is made up.
func FuzzScan(f *testing.F) {
	const salt = 0x5eed
	whole := appendRecord(nil, salt, 2, []byte("two"), checksum(salt, []byte("two")))
	foreign := appendRecord(nil, 1, 2, []byte("two"), checksum(1, []byte("two")))
	f.Add([]byte(nil))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(foreign)
	f.Add(bytes.Repeat([]byte(magic), 40_000))
	f.Add(make([]byte, 70_000))
	f.Fuzz(func(t *testing.T, middle []byte) {
		data := appendRecord(nil, salt, 1, []byte("one"), checksum(salt, []byte("one")))
		data = append(data, middle...)
		end := len(data)
		data = appendRecord(data, salt, 3, []byte("three"), checksum(salt, []byte("three")))
		s := scanner{src: bytes.NewReader(data), salt: salt, end: int64(end)}
		var found []Position
		for {
			p, payload, err := s.next()
			if errors.Is(err, errNoRecord) {
				if s.end == int64(len(data)) {
					break
				}
				s.end = int64(len(data))
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if s.off > s.end || !bytes.Contains(data, payload) {
				t.Fatalf("a record of %d bytes that ends at %d of %d", len(payload), s.off, s.end)
			}
			found = append(found, p)
		}
		if found[0] != 1 || found[len(found)-1] != 3 {
			t.Errorf("found %v", found)
		}
	})
}

// FuzzOpen opens what may be a segment: it is read to its end, and can be written to.
func FuzzOpen(f *testing.F) {
	const salt = 0x5eed
	two := appendRecord(nil, salt, 7, []byte("seven"), checksum(salt, []byte("seven")))
	two = appendRecord(two, salt, 9, []byte("nine"), checksum(salt, []byte("nine")))
	f.Add([]byte(nil), []byte(nil))
	f.Add(two, two)
	f.Add(two[:40], two[20:])
	f.Fuzz(func(t *testing.T, first, second []byte) {
		dir := t.TempDir()
		for i, data := range [][]byte{first, second} {
			s := segment{number: uint64(i), base: Position(i*7 + 1), salt: salt}
			if err := os.WriteFile(s.path(dir), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "checkpoint"), first, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := j.Reader()
		if _, err := j.Append([]byte("the last")); err != nil {
			t.Fatal(err)
		}
		if got := drain(t, j, r); len(got) == 0 || !bytes.HasSuffix([]byte(got[len(got)-1]), []byte("the last")) {
			t.Errorf("read %q", got)
		}
	})
}
