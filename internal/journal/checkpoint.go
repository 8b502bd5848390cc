package journal

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// checkpoint is the file that says up to where records are released. It has two places, written in turn, so that one is
// whole whenever the machine stops. It is not synced: an old one only means that records are read again.
type checkpoint struct {
	file *os.File
	turn uint64 // of the last write
}

const (
	checkpointMagic = "ibidjchk"
	checkpointSize  = 28  // magic, turn, position, CRC-32C
	checkpointEvery = 512 // bytes between the places
)

// openCheckpoint opens the file and returns what it says: 0 if it says nothing that can be believed.
func openCheckpoint(name string) (*checkpoint, Position, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, err
	}
	c := &checkpoint{file: f}
	var p Position
	for place := range int64(2) {
		b := make([]byte, checkpointSize)
		if n, err := f.ReadAt(b, place*checkpointEvery); n < len(b) {
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, 0, errors.Join(err, f.Close())
			}
			continue
		}
		sum := binary.LittleEndian.Uint32(b[24:])
		turn := binary.LittleEndian.Uint64(b[8:])
		if string(b[:8]) == checkpointMagic && checksum(0, b[:24]) == sum && turn > c.turn {
			c.turn, p = turn, Position(binary.LittleEndian.Uint64(b[16:]))
		}
	}
	return c, p, nil
}

// write says that everything up to p is released.
func (c *checkpoint) write(p Position) error {
	b := make([]byte, 0, checkpointSize)
	b = append(b, checkpointMagic...)
	b = binary.LittleEndian.AppendUint64(b, c.turn+1)
	b = binary.LittleEndian.AppendUint64(b, uint64(p))
	b = binary.LittleEndian.AppendUint32(b, checksum(0, b))
	if _, err := c.file.WriteAt(b, int64(c.turn%2)*checkpointEvery); err != nil {
		return err
	}
	c.turn++
	return nil
}
