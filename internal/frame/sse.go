package frame

import (
	"bytes"
	"slices"
)

// maxName bounds an SSE event name; a longer one counts as none.
const maxName = 1024

// sseState is what is known between Writes of SSE.
type sseState struct {
	name    []byte // the current event's name
	loose   bool   // the name is a part of this Write's input, not of nameBuf
	nameBuf []byte
	data    []byte // the current event's data while it is a single line of this Write's input
	pending bool   // the current event has data, in data or in buf
	held    bool   // the data is in buf
	bare    bool   // the document in buf began with a line that is no field and goes on
	done    bool   // and its brackets are closed
	scan    scanner
	line    int64 // where in the input the current line begins
	begun   bool  // the current event has a line, be it a comment; the first is at Splitter.mark

	// The line that the last Write ended in.
	field  field
	prefix [maxField]byte // its bytes, while the field is undecided
	n      int
	space  bool // its value begins with the next byte, or with the one after it if that is a space
	cr     bool // the last Write ended in CR: a LF belongs to it
}

// field says what a line of SSE means.
type field uint8

const (
	fieldNone      field = iota // no line begun
	fieldUndecided              // too short to tell
	fieldData
	fieldEvent
	fieldIgnored // id, retry, a comment
	fieldBare    // a JSON object without a field name, as some servers send their errors
	fieldOther   // not SSE; ignored unless it continues a bare object
)

const (
	nameData  = "data:"
	nameEvent = "event:"
	nameID    = "id:"
	nameRetry = "retry:"
	maxField  = len(nameEvent)
)

// fieldOf says what the line beginning with b, which is not empty, means.
func fieldOf(b []byte) field {
	switch b[0] {
	case 'd':
		return match(b, nameData, fieldData)
	case 'e':
		return match(b, nameEvent, fieldEvent)
	case 'i':
		return match(b, nameID, fieldIgnored)
	case 'r':
		return match(b, nameRetry, fieldIgnored)
	case ':':
		return fieldIgnored
	case '{':
		return fieldBare
	}
	return fieldOther
}

func match(b []byte, name string, f field) field {
	n := min(len(b), len(name))
	switch {
	case string(b[:n]) != name[:n]:
		return fieldOther
	case n < len(name):
		return fieldUndecided
	}
	return f
}

// value returns what stands behind the field name of the given length.
func value(b []byte, name int) []byte {
	if len(b) > name && b[name] == ' ' {
		name++
	}
	return b[name:len(b):len(b)]
}

func (s *Splitter) readSSE(p []byte) {
	i := 0
	if s.sse.cr && p[0] == '\n' {
		i = 1
	}
	s.sse.cr = false
	c := cursor{p: p, lf: -1}
	for i < len(p) {
		if s.betweenEvents() {
			if i = s.readWhole(&c, i); i == len(p) {
				break
			}
		}
		end, next := c.line(i)
		if next < 0 {
			s.readPart(p[i:], i)
			break
		}
		switch {
		case s.sse.field != fieldNone:
			s.readPart(p[i:end], i)
			s.endLine(end)
		case end == i:
			s.blank()
		default:
			s.beginLine(i)
			s.readField(p[i:end], i)
		}
		i = next
	}
	s.sse.cr = p[len(p)-1] == '\r'
	s.holdEvent()
	s.base += int64(len(p))
}

// beginLine begins a line that is not blank, at p[at] of this Write.
func (s *Splitter) beginLine(at int) {
	s.sse.line = s.base + int64(at)
	s.beginEvent()
}

// beginEvent begins an event with the current line, if none has begun.
func (s *Splitter) beginEvent() {
	if !s.sse.begun {
		s.sse.begun = true
		s.mark = s.sse.line
	}
}

// betweenEvents reports whether no event has begun.
func (s *Splitter) betweenEvents() bool {
	e := &s.sse
	return e.field == fieldNone && !e.pending && !e.bare && e.name == nil
}

// readWhole reads the events at p[i] that lie whole in p and are framed as nearly all are: perhaps a name, the data in
// one line, a blank line. It returns where the first one that is not begins.
func (s *Splitter) readWhole(c *cursor, i int) int {
	for {
		name, from := eventName(c.p, i)
		if !bytes.HasPrefix(c.p[from:], []byte(nameData+" ")) {
			return i
		}
		from += len(nameData + " ")
		end, next := c.line(from)
		if next >= 0 && next < len(c.p) && c.p[next] == '\r' {
			next++
		}
		if n := end - from; next < 0 || next >= len(c.p) || c.p[next] != '\n' || n <= maxDone || n > s.limit() {
			*c = cursor{p: c.p, lf: -1} // it looked past the lines of this event
			return i
		}
		if !s.sse.begun {
			s.mark = s.base + int64(i)
		}
		s.sse.begun = false
		i = next + 1
		s.emit(Frame{Event: name, Data: c.p[from:end:end]})
	}
}

// eventName returns the name in the line that begins at b[i], and where the next line begins. It is nil where the line
// is anything else.
func eventName(b []byte, i int) (name []byte, next int) {
	if !bytes.HasPrefix(b[i:], []byte(nameEvent+" ")) {
		return nil, i
	}
	from := i + len(nameEvent+" ")
	n := bytes.IndexByte(b[from:min(len(b), from+maxName)], '\n')
	if n <= 0 {
		return nil, i
	}
	next = from + n + 1
	if n--; b[from+n] != '\r' {
		n++
	}
	if name = b[from : from+n : from+n]; n == 0 || bytes.IndexByte(name, '\r') >= 0 {
		return nil, i
	}
	return name, next
}

// holdEvent copies what the current event has in this Write's input.
func (s *Splitter) holdEvent() {
	e := &s.sse
	if e.loose {
		e.nameBuf = append(e.nameBuf[:0], e.name...)
		e.name, e.loose = e.nameBuf, false
	}
	if e.pending && !e.held {
		s.hold(e.data)
		e.data, e.held = nil, true
	}
}

// readField reads a whole line, which is not blank and begins at p[at] of this Write.
func (s *Splitter) readField(b []byte, at int) {
	f := fieldOf(b)
	switch {
	case f == fieldData:
		s.addData(value(b, len(nameData)), at)
	case f == fieldEvent:
		s.setName(value(b, len(nameEvent)))
	case f == fieldUndecided:
		s.endUndecided(b, at)
	case f == fieldBare, f == fieldOther && s.sse.bare:
		s.beginBare(at)
		s.addBare(b)
		s.endBareLine()
	}
}

// endUndecided reads a whole line that would have become a field with another byte: a field name alone has an empty
// value.
func (s *Splitter) endUndecided(b []byte, at int) {
	switch string(b) {
	case nameData[:len(nameData)-1]:
		s.addData(nil, at)
	case nameEvent[:len(nameEvent)-1]:
		s.setName(nil)
	}
}

// addData adds a whole data line to the current event.
func (s *Splitter) addData(b []byte, at int) {
	if !s.sse.pending && !s.sse.bare {
		s.sse.pending = true
		s.start = s.base + int64(at)
		if len(b) > s.limit() {
			s.tooLarge()
		}
		s.sse.data = b
		return
	}
	s.beginData(at)
	s.hold(b)
}

// beginData begins a data line whose value goes into buf.
func (s *Splitter) beginData(at int) {
	e := &s.sse
	s.cutBare()
	if !e.pending {
		e.pending, e.held = true, true
		s.start = s.base + int64(at)
		return
	}
	if !e.held {
		s.hold(e.data)
		e.data, e.held = nil, true
	}
	s.hold([]byte{'\n'})
}

func (s *Splitter) setName(b []byte) {
	s.cutBare()
	s.sse.name, s.sse.loose = b, true
	if len(b) == 0 || len(b) > maxName {
		s.sse.name, s.sse.loose = nil, false
	}
}

// blank reads a blank line: the current event is complete.
func (s *Splitter) blank() {
	s.cutBare()
	s.endEvent(false)
}

// endEvent emits the current event. Last says that no blank line did end it.
func (s *Splitter) endEvent(last bool) {
	e := &s.sse
	if e.pending && !s.skip {
		data := e.data
		if e.held {
			data = slices.Clip(s.buf)
		}
		f := Frame{Event: e.name, Data: data}
		switch {
		case isDone(data):
			f.Data, f.Done = nil, true
		case last && unfinished(data):
			f.Err = s.damage(ErrTruncated)
		}
		s.emit(f)
	}
	e.name, e.data = nil, nil
	e.loose, e.pending, e.held, e.begun = false, false, false, false
	s.drop()
}

const (
	done    = "[DONE]"
	maxDone = 2 * len(done) // with white space around it
)

func isDone(b []byte) bool {
	return len(b) >= len(done) && len(b) <= maxDone && string(trimLeft(trimRight(b))) == done
}

// A bare object is not followed by a blank line. It ends with the line that closes its brackets; what cannot belong to
// it (a blank line, a data or event field, the end of a line within a string) shows that it is damaged, and ends it
// too.

// beginBare begins a line of a bare object.
func (s *Splitter) beginBare(at int) {
	if s.sse.bare {
		return
	}
	if s.sse.pending {
		s.endEvent(true)
		s.beginEvent()
	}
	s.sse.bare, s.sse.done = true, false
	s.sse.scan = scanner{}
	s.start = s.base + int64(at)
}

func (s *Splitter) addBare(b []byte) {
	s.hold(b)
	if !s.sse.done && len(b) > 0 {
		_, s.sse.done = s.sse.scan.read(b)
	}
}

func (s *Splitter) endBareLine() {
	switch {
	case s.sse.done:
		s.endBare(nil)
	case s.sse.scan.quoted:
		s.endBare(ErrTruncated)
	default:
		s.hold([]byte{'\n'})
	}
}

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
	s.sse.bare, s.sse.name, s.sse.loose, s.sse.begun = false, nil, false, false
	s.drop()
}

// readPart reads a part of a line, which lies in several Writes; it is at p[at] of this one.
func (s *Splitter) readPart(b []byte, at int) {
	e := &s.sse
	if e.field == fieldNone {
		e.field, e.n = fieldUndecided, 0
		s.beginLine(at)
	}
	for len(b) > 0 && e.field == fieldUndecided {
		e.prefix[e.n] = b[0]
		e.n++
		b = b[1:]
		at++
		s.decide(at - e.n)
	}
	if len(b) == 0 {
		return
	}
	if e.space {
		e.space = false
		if b[0] == ' ' {
			b = b[1:]
		}
	}
	switch e.field {
	case fieldData:
		s.hold(b)
	case fieldEvent:
		if len(e.nameBuf) <= maxName {
			e.nameBuf = append(e.nameBuf, b[:min(len(b), maxName+1)]...)
		}
	case fieldBare:
		s.addBare(b)
	case fieldNone, fieldUndecided, fieldIgnored, fieldOther:
	}
}

// decide looks whether the beginning of the line, at p[at], now says what the line is.
func (s *Splitter) decide(at int) {
	e := &s.sse
	prefix := e.prefix[:e.n]
	e.field = fieldOf(prefix)
	switch {
	case e.field == fieldData:
		e.space = true
		s.beginData(at)
	case e.field == fieldEvent:
		e.space = true
		s.cutBare()
		e.name, e.loose = nil, false
		e.nameBuf = e.nameBuf[:0]
	case e.field == fieldBare, e.field == fieldOther && e.bare:
		e.field = fieldBare
		s.beginBare(at)
		s.addBare(prefix)
	}
}

// endLine ends a line that readPart read, before p[at] of this Write.
func (s *Splitter) endLine(at int) {
	e := &s.sse
	switch e.field {
	case fieldUndecided:
		s.endUndecided(e.prefix[:e.n], at-e.n)
	case fieldEvent:
		s.setName(e.nameBuf)
		e.loose = false
	case fieldBare:
		s.endBareLine()
	case fieldNone, fieldData, fieldIgnored, fieldOther:
	}
	e.field, e.space = fieldNone, false
}

func (s *Splitter) closeSSE() {
	e := &s.sse
	if e.field != fieldNone && e.field != fieldUndecided { // half a field name says nothing
		s.endLine(0)
	}
	s.cutBare()
	s.endEvent(true)
}

// cursor finds the lines of p, which end in LF, CR or CRLF. It looks at every byte once for each of the two.
type cursor struct {
	p  []byte
	lf int // the first LF behind where the last line began; len(p): there is none
	cr int // the first CR there, or a place up to which there is none
}

// line returns where the line that begins at p[i] ends, and where the next one begins, which is -1 if the line does not
// end in p.
func (c *cursor) line(i int) (end, next int) {
	if c.lf < i {
		c.lf = len(c.p)
		if n := bytes.IndexByte(c.p[i:], '\n'); n >= 0 {
			c.lf = i + n
		}
	}
	if c.cr < c.lf && c.findCR(i) {
		next = c.cr + 1
		if next == c.lf {
			next++
		}
		return c.cr, min(next, len(c.p))
	}
	if c.lf == len(c.p) {
		return c.lf, -1
	}
	return c.lf, c.lf + 1
}

// findCR moves cr and reports whether there is one before lf. It looks further ahead than needed, since most
// streams have none.
func (c *cursor) findCR(i int) bool {
	const ahead = 4096
	c.cr = max(c.cr, i)
	to := min(len(c.p), max(c.lf, c.cr+ahead))
	n := bytes.IndexByte(c.p[c.cr:to], '\r')
	if n < 0 {
		c.cr = to
		return false
	}
	c.cr += n
	return c.cr < c.lf
}
