package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

const (
	magic      = "\xf1ibJ"
	headerSize = 24

	// MaxRecord is how many bytes one record may have.
	MaxRecord = 64 << 20
)

// Where the fields of a header are.
const (
	lengthAt     = 4
	positionAt   = 8
	payloadSumAt = 16
	headerSumAt  = 20
)

// checksum is the CRC-32C of b, begun with the salt.
func checksum(salt uint32, b []byte) uint32 {
	return crc32.Update(salt, crc32.MakeTable(crc32.Castagnoli), b)
}

// appendRecord appends a record to b; sum is the checksum of its payload.
func appendRecord(b []byte, salt uint32, p Position, payload []byte, sum uint32) []byte {
	at := len(b)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint64(b, uint64(p))
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = binary.LittleEndian.AppendUint32(b, checksum(salt, b[at:]))
	return append(b, payload...)
}

// parseHeader returns the length and the position of the record that begins with h.
func parseHeader(h []byte, salt uint32) (length int64, p Position, ok bool) {
	if string(h[:lengthAt]) != magic || checksum(salt, h[:headerSumAt]) != binary.LittleEndian.Uint32(h[headerSumAt:]) {
		return 0, 0, false
	}
	length = int64(binary.LittleEndian.Uint32(h[lengthAt:]))
	return length, Position(binary.LittleEndian.Uint64(h[positionAt:])), length <= MaxRecord
}

// How much a scanner reads at once, and how large a buffer it keeps.
const (
	scanSize = 64 << 10
	scanKeep = 1 << 20
)

// errNoRecord says that there is no further whole record before the scanner's end.
var errNoRecord = errors.New("no further record")

// scanner finds the whole records of one segment, whatever else is in it.
type scanner struct {
	src  io.ReaderAt
	salt uint32
	off  int64 // where it looks next
	end  int64 // where it stops; may be moved on

	window   []byte // bytes of src, from windowAt
	windowAt int64
}

// next returns the next whole record and skips what is none. After errNoRecord it goes on when end is moved; after any
// other error, which is one of reading, it tries the same place again. The payload is valid until the next call.
func (s *scanner) next() (Position, []byte, error) {
	for {
		header, err := s.peek(headerSize)
		if err != nil {
			return 0, nil, err
		}
		if len(header) < headerSize {
			return 0, nil, errNoRecord
		}
		length, p, ok := parseHeader(header, s.salt)
		if !ok || s.off+headerSize+length > s.end {
			if err := s.seek(); err != nil {
				return 0, nil, err
			}
			continue
		}
		sum := binary.LittleEndian.Uint32(header[payloadSumAt:])
		record, err := s.peek(headerSize + length)
		if err != nil {
			return 0, nil, err
		}
		if int64(len(record)) < headerSize+length {
			return 0, nil, errNoRecord // the file is shorter than it was
		}
		if checksum(s.salt, record[headerSize:]) == sum {
			s.off += headerSize + length
			return p, record[headerSize:], nil
		}
		if err := s.seek(); err != nil { // not after length bytes: some may be missing
			return 0, nil, err
		}
	}
}

// seek moves on, by at least one byte, to what may be a header.
func (s *scanner) seek() error {
	s.off++
	for {
		b, err := s.peek(scanSize)
		if err != nil {
			return err
		}
		if i := bytes.Index(b, []byte(magic)); i >= 0 {
			s.off += int64(i)
			return nil
		}
		if len(b) < headerSize {
			return errNoRecord
		}
		s.off += int64(len(b) - len(magic) + 1) // the magic may have begun
	}
}

// peek returns n bytes from off on, or fewer where src or end ends.
func (s *scanner) peek(n int64) ([]byte, error) {
	n = max(min(n, s.end-s.off), 0)
	from := s.off - s.windowAt
	if from >= 0 && from+n <= int64(len(s.window)) {
		return s.window[from : from+n], nil
	}
	size := max(min(max(n, scanSize), s.end-s.off), 0)
	if int64(cap(s.window)) < size || cap(s.window) > scanKeep && size <= scanSize {
		s.window = make([]byte, 0, max(size, scanSize))
	}
	s.windowAt = s.off
	got, err := s.src.ReadAt(s.window[:size], s.off)
	s.window = s.window[:got]
	if err != nil && !errors.Is(err, io.EOF) && int64(got) < n {
		return nil, err
	}
	return s.window[:min(n, int64(got))], nil
}
