package frame

import (
	"encoding/binary"
	"hash/crc32"
)

// An AWS message is a prelude (total length, headers length, CRC-32 of both), headers, a payload, and the CRC-32 of
// everything before it; numbers are big-endian.
const (
	preludeLen  = 12
	checksumLen = 4
)

// awsState is the state between Writes of AWS messages.
type awsState struct {
	size    int   // the current message's length; 0 before its prelude is read
	skip    int64 // remaining bytes of a message that is too large
	corrupt bool  // no more messages can be found
}

func preludeOK(b []byte) bool {
	return crc32.ChecksumIEEE(b[:8]) == binary.BigEndian.Uint32(b[8:])
}

// stepAWS reads at least one byte of p, or the message's size from it, and returns how many bytes it read.
func (s *Splitter) stepAWS(p []byte) int {
	m := &s.aws
	switch {
	case m.corrupt:
		s.appendToBuffer(p[:min(len(p), max(s.MaxDocument, preludeLen)-len(s.buf))]) // buf may contain the prelude
		return len(p)
	case m.skip > 0:
		n := min(int64(len(p)), m.skip)
		m.skip -= n
		return int(n)
	case m.size == 0:
		return s.readPrelude(p)
	case len(s.buf) == 0 && len(p) >= m.size:
		n := m.size
		s.endMessage(p[:n:n])
		return n
	}
	n := min(len(p), m.size-len(s.buf))
	s.appendToBuffer(p[:n])
	if len(s.buf) == m.size {
		s.endMessage(s.buf)
	}
	return n
}

// readPrelude reads the size of the message that begins in buf or p. It leaves p unread if the prelude is completely
// within it, so that the message need not be copied.
func (s *Splitter) readPrelude(p []byte) int {
	n, b := 0, p
	if len(s.buf) == 0 {
		s.start = s.base
	}
	if len(s.buf) > 0 || len(p) < preludeLen {
		n = min(len(p), preludeLen-len(s.buf))
		s.appendToBuffer(p[:n])
		b = s.buf
	}
	if len(b) < preludeLen {
		return n
	}
	total := int64(binary.BigEndian.Uint32(b))
	headers := int64(binary.BigEndian.Uint32(b[4:]))
	switch {
	case !preludeOK(b[:preludeLen]) || preludeLen+headers+checksumLen > total:
		s.aws.corrupt = true
	case total > int64(s.MaxDocument):
		s.tooLarge()
		s.drop()
		s.aws.skip = total
		if n > 0 { // the prelude was consumed
			s.aws.skip -= preludeLen
		}
	default:
		s.aws.size = int(total)
	}
	return n
}

// opening is the event that opens a stream. It contains nothing of the answer.
const opening = "initial-response"

// endMessage emits the complete message b.
func (s *Splitter) endMessage(b []byte) {
	body := len(b) - checksumLen
	f, ok := message(b[:body:body])
	switch {
	case crc32.ChecksumIEEE(b[:body]) != binary.BigEndian.Uint32(b[body:]):
		f.Err = s.damage(ErrChecksum)
	case !ok:
		f.Err = s.damage(ErrCorrupt)
	}
	if string(f.Event) != opening {
		s.Emit(f)
	}
	s.aws.size = 0
	s.drop()
}

func (s *Splitter) closeAWS() {
	m := &s.aws
	switch {
	case m.corrupt:
		s.Emit(Frame{Data: s.buf, Err: s.damage(ErrCorrupt)})
	case len(s.buf) > 0:
		f, _ := message(s.buf[:min(len(s.buf), max(0, m.size-checksumLen))])
		f.Err = s.damage(ErrTruncated)
		s.Emit(f)
	}
}

// message parses a message without its checksum, as far as it is present, and reports whether its headers are readable.
func message(b []byte) (Frame, bool) {
	if len(b) < preludeLen {
		return Frame{}, false
	}
	end := preludeLen + int64(binary.BigEndian.Uint32(b[4:]))
	if end > int64(len(b)) {
		return Frame{}, false
	}
	f := Frame{Data: b[end:]}
	rest := b[preludeLen:end:end]
	var event, exception, code, text []byte
	for len(rest) > 0 {
		name, value, n := header(rest)
		if n == 0 {
			return f, false
		}
		rest = rest[n:]
		switch string(name) {
		case ":message-type":
			f.Exception = string(value) == "exception" || string(value) == "error"
		case ":event-type":
			event = value
		case ":exception-type":
			exception = value
		case ":error-code":
			code = value
		case ":error-message":
			text = value
		}
	}
	f.Event = event
	if f.Exception {
		f.Event = code
		if exception != nil {
			f.Event = exception
		}
		if len(f.Data) == 0 {
			f.Data = text
		}
	}
	return f, true
}

// header parses the header at the start of b and returns its length, or 0 if it is damaged.
func header(b []byte) (name, value []byte, size int) {
	at := 1 + int(b[0])
	if at >= len(b) {
		return nil, nil, 0
	}
	name = b[1:at]
	n := 0
	switch kind := b[at]; kind {
	case 0, 1: // true, false
	case 2: // byte
		n = 1
	case 3: // short
		n = 2
	case 4: // integer
		n = 4
	case 5, 8: // long, timestamp
		n = 8
	case 9: // UUID
		n = 16
	case 6, 7: // byte array, string
		if at+3 > len(b) {
			return nil, nil, 0
		}
		n = int(binary.BigEndian.Uint16(b[at+1:]))
		at += 2
	default:
		return nil, nil, 0
	}
	at++
	if at+n > len(b) {
		return nil, nil, 0
	}
	return name, b[at : at+n : at+n], at + n
}
