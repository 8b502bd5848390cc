package frame

import (
	"bytes"
	"slices"
)

const (
	maxName = 1024 // bytes of an SSE event name; a longer one counts as none
	done    = "[DONE]"
	maxDone = 2 * len(done) // with white space around it
)

// sseState is what is known between Writes of SSE.
type sseState struct {
	name    []byte // the current event's name
	nameBuf []byte // what it is kept in between Writes
	data    []byte // the current event's data while it is a single line of this Write's input; else it is in buf
	pending bool   // the current event has data
	bare    bool   // the document in buf began with a line that is no field and goes on
	scan    scanner
	begun   bool  // the current event has a line, be it a comment; the first is at Splitter.mark
	line    int64 // where in the input the current line begins
	open    bool  // the last Write ended inside that line
	from    int   // then its bytes are buf[from:], behind the event's data
	cr      bool  // the last Write ended in CR: a LF belongs to it
}

// field says what a line of SSE means.
type field uint8

const (
	fieldUndecided field = iota // too short to tell
	fieldData
	fieldEvent
	fieldIgnored // id, retry, a comment
	fieldBare    // a JSON object without a field name, as some servers send their errors
	fieldOther   // not SSE; ignored unless it continues a bare object
)

const (
	nameData  = "data:"
	nameEvent = "event:"
	maxField  = len(nameEvent + " ")
)

// fieldOf says what the line beginning with b, which is not empty, means.
func fieldOf(b []byte) field {
	var name string
	f := fieldIgnored
	switch b[0] {
	case 'd':
		name, f = nameData, fieldData
	case 'e':
		name, f = nameEvent, fieldEvent
	case 'i':
		name = "id:"
	case 'r':
		name = "retry:"
	case ':':
	case '{':
		return fieldBare
	default:
		return fieldOther
	}
	n := min(len(b), len(name))
	switch {
	case string(b[:n]) != name[:n]:
		return fieldOther
	case n < len(name):
		return fieldUndecided
	}
	return f
}

// readSSE reads p line by line. Lines end in LF, CR or CRLF; every byte is looked at once for each of the two.
func (s *Splitter) readSSE(p []byte) {
	e := &s.sse
	i, lf := 0, -1
	if e.cr && p[0] == '\n' {
		i = 1
	}
	e.cr = p[len(p)-1] == '\r'
	for i < len(p) {
		if lf < i {
			if lf = bytes.IndexByte(p[i:], '\n'); lf < 0 {
				lf = len(p)
			} else {
				lf += i
			}
		}
		end, next := lf, lf+1
		if n := bytes.IndexByte(p[i:lf], '\r'); n >= 0 {
			end, next = i+n, i+n+1
			if next == lf {
				next++
			}
		}
		if !e.open {
			e.line = s.base + int64(i)
		}
		switch {
		case end == len(p):
			s.holdLine(p[i:])
		case e.open:
			s.holdLine(p[i:end])
			s.endHeldLine()
		case end == i:
			s.cutBare()
			s.endEvent(false)
		default:
			s.readField(p[i:end:end])
		}
		i = next
	}
	s.holdEvent()
	s.base += int64(len(p))
}

// lineRoom is how many bytes of a line are worth keeping behind a document of the given size: of a longer line it is
// certain that it makes the document too large, or the name too long.
func (s *Splitter) lineRoom(size int) int { return max(s.limit()-size, maxName) + maxField }

// holdLine keeps a part of a line that does not lie whole in one Write.
func (s *Splitter) holdLine(b []byte) {
	e := &s.sse
	if !e.open {
		s.holdEvent()
		e.open, e.from = true, len(s.buf)
	}
	most := e.from + s.lineRoom(e.from) + 1 // one byte more tells that it is longer
	s.appendToBuffer(b[:min(len(b), max(0, most-len(s.buf)))])
}

// endHeldLine reads the line that was held. What is kept of it moves down in the same buffer.
func (s *Splitter) endHeldLine() {
	e := &s.sse
	line := s.buf[e.from:]
	s.buf, e.open = s.buf[:e.from], false
	s.readField(line)
	s.holdEvent()
}

// holdEvent copies what is known of the current event, because the bytes that it is in go away.
func (s *Splitter) holdEvent() {
	e := &s.sse
	if e.name != nil {
		e.nameBuf = append(e.nameBuf[:0], e.name...)
		e.name = e.nameBuf
	}
	if e.data != nil {
		s.hold(e.data)
		e.data = nil
	}
}

// readField reads a whole line, which is not blank. A field name without a colon has an empty value.
func (s *Splitter) readField(b []byte) {
	e := &s.sse
	s.beginEvent()
	switch f := fieldOf(b); {
	case f == fieldData, f == fieldUndecided && string(b) == "data":
		s.cutBare()
		s.addData(value(b, len(nameData)))
	case f == fieldEvent, f == fieldUndecided && string(b) == "event":
		s.cutBare()
		if e.name = value(b, len(nameEvent)); len(e.name) == 0 || len(e.name) > maxName {
			e.name = nil
		}
	case f == fieldBare, f == fieldOther && e.bare:
		s.addBare(b)
	}
}

// value returns what stands behind the field name of the given length.
func value(b []byte, name int) []byte {
	b = b[min(name, len(b)):len(b):len(b)]
	if len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	return b
}

// beginEvent begins an event with the current line, if none has begun.
func (s *Splitter) beginEvent() {
	if !s.sse.begun {
		s.sse.begun = true
		s.mark = s.sse.line
	}
}

// addData adds the value of a data line to the current event.
func (s *Splitter) addData(b []byte) {
	e := &s.sse
	switch {
	case e.pending:
		s.holdEvent()
		s.hold([]byte{'\n'})
		s.hold(b)
	case len(b) > s.limit():
		e.pending, s.start = true, e.line
		s.tooLarge()
	default:
		e.pending, s.start = true, e.line
		e.data = b
	}
}

// endEvent emits the current event. Last says that no blank line did end it.
func (s *Splitter) endEvent(last bool) {
	e := &s.sse
	if e.pending && !s.skip {
		data := e.data
		if data == nil {
			data = slices.Clip(s.buf)
		}
		f := Frame{Event: e.name, Data: data}
		switch {
		case len(data) <= maxDone && string(bytes.TrimLeft(trimRight(data), spaces)) == done:
			f.Data, f.Done = nil, true
		case last && unfinished(data):
			f.Err = s.damage(ErrTruncated)
		}
		s.emit(f)
	}
	e.name, e.data, e.pending, e.begun = nil, nil, false, false
	s.drop()
}

// addBare reads a line of a bare object. It is not followed by a blank line, but ends with the line that closes its
// brackets; what cannot belong to it (a blank line, a data or event field, the end of a line within a string) shows
// that it is damaged, and ends it too.
func (s *Splitter) addBare(b []byte) {
	e := &s.sse
	over := len(b) > s.lineRoom(len(s.buf)+len(e.data))
	if !e.bare {
		if e.pending {
			s.endEvent(true)
			s.beginEvent()
		}
		e.bare, e.scan, s.start = true, scanner{}, e.line
	}
	_, closed := e.scan.read(b)
	s.hold(b) // after it has been read: a held line moves down
	switch {
	case closed, over: // only the beginning of a line too long was kept
		s.endBare(nil)
	case e.scan.quoted:
		s.endBare(ErrTruncated)
	default:
		s.hold([]byte{'\n'})
	}
}

// cutBare ends a bare object that breaks off before the current line.
func (s *Splitter) cutBare() {
	if s.sse.bare {
		s.endBare(ErrTruncated)
		s.beginEvent()
	}
}

func (s *Splitter) endBare(why error) {
	if !s.skip {
		f := Frame{Event: s.sse.name, Data: trimRight(s.buf)}
		if why != nil {
			f.Err = s.damage(why)
		}
		s.emit(f)
	}
	s.sse.bare, s.sse.name, s.sse.begun = false, nil, false
	s.drop()
}

func (s *Splitter) closeSSE() {
	e := &s.sse
	if e.open && fieldOf(s.buf[e.from:]) != fieldUndecided { // half a field name says nothing
		s.endHeldLine()
	} else if e.open {
		s.buf = s.buf[:e.from]
	}
	s.cutBare()
	s.endEvent(true)
}
