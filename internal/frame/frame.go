package frame

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// DefaultMaxDocument is the default of [Splitter.MaxDocument]: 256 MiB.
const DefaultMaxDocument = 256 << 20

// Kind is a framing: how documents are arranged in the input.
type Kind uint8

// The framings.
const (
	Unknown Kind = iota // not recognised yet
	JSON                // one JSON object
	SSE                 // text/event-stream
	Lines               // several JSON objects, normally one per line (NDJSON)
	Array               // a JSON array whose elements are the documents
	AWS                 // application/vnd.amazon.eventstream
	Other               // text, or JSON without objects: none of the above
)

// String returns the framing's name.
func (k Kind) String() string {
	if k > Other {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return [...]string{"unknown", "JSON", "SSE", "NDJSON", "JSON array", "AWS event stream", "other"}[k]
}

// The reasons why a document is damaged. An [Error] wraps one of them.
var (
	ErrTruncated = errors.New("the input ended inside it")
	ErrTooLarge  = errors.New("it is larger than allowed")
	ErrTrailing  = errors.New("it follows the JSON but is not JSON")
	ErrChecksum  = errors.New("its checksum is wrong")
	ErrCorrupt   = errors.New("its framing makes no sense")
)

// Error describes what is wrong with a document, and where it is.
type Error struct {
	Kind   Kind  // its framing
	Offset int64 // its start, in bytes of the input
	Err    error // ErrTruncated, ErrTooLarge, ErrTrailing, ErrChecksum or ErrCorrupt
}

// Error returns the place and the reason.
func (e *Error) Error() string {
	return fmt.Sprintf("reading %v document at byte %d: %v", e.Kind, e.Offset, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Frame is one document. Its slices are valid only during the call that receives it and must not be written to.
type Frame struct {
	// Event is the SSE event name, or the AWS :event-type, :exception-type or :error-code. Nil means none.
	Event []byte
	// Data is the document without surrounding white space, except that SSE data is passed on unchanged and so may also
	// be empty. For Kind Other, it is the next run of raw bytes, chunked as it arrived. For an AWS error without a
	// payload, it is the :error-message.
	Data []byte
	// Err is an *Error if the document is damaged, and Data then contains what there is of it. For ErrTooLarge, Data is
	// nil. For ErrTrailing, Data is one line of what follows the JSON. For ErrCorrupt, Data is a payload after
	// unreadable AWS headers or, if no further message boundaries can be found, the rest of the input.
	Err error
	// Done reports that the SSE data was [DONE]. Data is then nil.
	Done bool
	// Exception reports that the AWS message is an exception or an error.
	Exception bool
}

// Splitter splits a response into documents. The zero value with Emit set is ready to use. It must not be copied after
// the first Write, and is for one goroutine at a time.
type Splitter struct {
	// Emit receives the frames in order, from inside Write and Close. It may call only Kind and Mark of the Splitter.
	// If it is nil, frames are dropped.
	Emit func(Frame)
	// MaxDocument is the largest document in bytes; a longer one is reported with ErrTooLarge and skipped. AWS messages
	// include their headers. Zero means DefaultMaxDocument. It must not be changed after the first Write.
	MaxDocument int

	kind   Kind
	closed bool
	skip   bool   // the current document was too large: read to its end without keeping it
	buf    []byte // held bytes of the current document; before the framing is known, all of the input
	base   int64  // offset in the input of the bytes being read
	start  int64  // offset in the input of the current document
	mark   int64  // see Mark

	json jsonState
	sse  sseState
	aws  awsState
}

// Kind returns the framing, which is Unknown until it is recognised. JSON becomes Lines when a second document begins.
func (s *Splitter) Kind() Kind { return s.kind }

// Mark returns the offset in the input at which a reader learns of the document being emitted: the first byte of the
// event's first line, the NDJSON line, the array element or the AWS message; for a JSON body, which is useless until it
// is complete, its last byte. It is only valid inside Emit.
func (s *Splitter) Mark() int64 {
	switch s.kind {
	case JSON, SSE:
		return s.mark
	case Unknown, Lines, Array, AWS, Other:
	}
	return s.start
}

// Idle returns how many bytes came since the last that could belong to a document: before the framing is known, blank
// ones; in an event stream, comments and all else without data.
func (s *Splitter) Idle() int64 {
	switch s.kind {
	case Unknown:
		return s.base + int64(len(s.buf))
	case SSE:
		e := &s.sse
		if e.open && !e.bare {
			if f := fieldOf(s.buf[e.from:]); f == fieldData || f == fieldBare {
				return 0
			}
		}
		return s.base - e.used
	case JSON, Lines, Array, AWS, Other:
	}
	return 0
}

// Write reads further input. It always accepts all of p, retains none of it and returns no error; damage is reported in
// the frames. After Close it does nothing.
func (s *Splitter) Write(p []byte) (int, error) {
	switch {
	case s.closed || len(p) == 0:
	case s.kind == Unknown:
		s.recognise(p)
	default:
		s.read(p)
	}
	return len(p), nil
}

// Close ends the input and emits what was held. Further calls do nothing.
func (s *Splitter) Close() {
	if s.closed {
		return
	}
	s.closed = true
	if s.kind == Unknown {
		s.recogniseRest()
	}
	switch s.kind {
	case JSON, Lines, Array:
		s.closeJSON()
	case SSE:
		s.closeSSE()
	case AWS:
		s.closeAWS()
	case Unknown, Other:
	}
	s.buf = nil
}

// read passes p to the reader of the recognised framing.
func (s *Splitter) read(p []byte) {
	var step func(*Splitter, []byte) int
	switch s.kind {
	case SSE:
		s.readSSE(p)
		return
	case JSON, Lines, Array:
		step = (*Splitter).stepJSON
	case AWS:
		step = (*Splitter).stepAWS
	case Unknown, Other:
		s.Emit(Frame{Data: slices.Clip(p)})
		return
	}
	for len(p) > 0 {
		n := step(s, p)
		s.base += int64(n)
		p = p[n:]
	}
}

func (s *Splitter) damage(why error) error {
	return &Error{Kind: s.kind, Offset: s.start, Err: why}
}

// hold appends b to the current document, which is not complete yet. If that exceeds the limit, the document is
// reported and its held bytes are dropped.
func (s *Splitter) hold(b []byte) {
	switch {
	case s.skip:
	case len(s.buf)+len(b) > s.MaxDocument:
		s.tooLarge()
	default:
		s.appendToBuffer(b)
	}
}

func (s *Splitter) tooLarge() {
	s.skip = true
	s.buf = s.buf[:0]
	s.Emit(Frame{Event: s.sse.name, Err: s.damage(ErrTooLarge)})
}

// appendToBuffer appends b to buf. The built-in append would grow a buffer near the limit to far beyond it: here a
// buffer of more than half the limit grows to the limit.
func (s *Splitter) appendToBuffer(b []byte) {
	if need := len(s.buf) + len(b); need > cap(s.buf) {
		size, most := max(2*cap(s.buf), 1024), s.MaxDocument+maxName+maxField+1 // see holdLine
		if size > most/2 {
			size = most
		}
		grown := make([]byte, len(s.buf), max(need, size))
		copy(grown, s.buf)
		s.buf = grown
	}
	s.buf = append(s.buf, b...)
}

// finish emits the current document, whose last bytes are b, and prepares for the next. A document completely within b
// is not copied.
func (s *Splitter) finish(b []byte, why error) {
	if s.skip || len(s.buf) > 0 || len(b) > s.MaxDocument {
		s.hold(b)
		b = s.buf
	}
	if !s.skip {
		f := Frame{Data: trimRight(b)}
		if why != nil {
			f.Err = s.damage(why)
		}
		s.Emit(f)
	}
	s.drop()
}

// drop discards the current document.
func (s *Splitter) drop() {
	s.skip = false
	s.buf = s.buf[:0]
}

const spaces = " \n\r\t" // JSON white space

// isSpace reports whether c is JSON white space.
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func trimRight(b []byte) []byte {
	n := len(b)
	for n > 0 && isSpace(b[n-1]) {
		n--
	}
	return b[:n:n]
}

const (
	bom = "\xef\xbb\xbf"
	// maxLead limits the white space that is examined and held before the framing is known. Servers that send blank
	// lines to keep a connection open exceed it; the excess is meaningless and dropped.
	maxLead = 512
)

// recognise reads the beginning of the input until its framing is certain, and then passes on what it held.
func (s *Splitter) recognise(p []byte) {
	if s.Emit == nil {
		s.Emit = func(Frame) {}
	}
	if s.MaxDocument <= 0 {
		s.MaxDocument = DefaultMaxDocument
	}
	if len(s.buf) == 0 {
		if kind, lead := kindOf(p); kind != Unknown {
			s.open(kind, p, lead)
			return
		}
	}
	lead := leading(s.buf)
	for i, c := range p {
		if lead >= maxLead && lead == len(s.buf) && isSpace(c) {
			s.base++
			continue
		}
		s.appendToBuffer(p[i : i+1])
		var kind Kind
		if kind, lead = kindOf(s.buf); kind != Unknown {
			held := s.buf
			s.buf = nil // the reader below may fill it
			s.open(kind, held, lead)
			if rest := p[i+1:]; len(rest) > 0 {
				s.read(rest)
			}
			return
		}
	}
}

// recogniseRest determines the framing of an input that ended before it was certain.
func (s *Splitter) recogniseRest() {
	held := s.buf
	s.buf = nil
	switch lead := leading(held); {
	case lead == len(held):
	case held[lead] == '[':
		s.open(Array, held, lead)
	default:
		s.open(Other, held, lead)
	}
}

// open starts reading b, whose first lead bytes are a byte order mark and white space.
func (s *Splitter) open(kind Kind, b []byte, lead int) {
	s.kind = kind
	if kind == Other {
		if lead > maxLead { // the excess would have been dropped in smaller chunks
			s.read(b[:maxLead])
			b = b[lead:]
		}
		s.read(b)
		return
	}
	if kind == Array {
		lead++ // the bracket
	}
	s.base += int64(lead)
	if b = b[lead:]; len(b) > 0 {
		s.read(b)
	}
}

// kindOf returns the framing of an input beginning with b, or Unknown if more bytes are needed, and the number of bytes
// before the first significant one.
func kindOf(b []byte) (Kind, int) {
	if len(b) > 0 && b[0] < '\t' { // no text begins so; AWS messages, given their size, do
		return awsOrOther(b), 0
	}
	if len(b) < len(bom) && string(b) == bom[:len(b)] {
		return Unknown, 0
	}
	lead := leading(b)
	if lead == len(b) {
		return Unknown, lead
	}
	switch b[lead] {
	case '{':
		return JSON, lead
	case '[':
		return arrayOrOther(b[lead+1:]), lead
	}
	switch fieldOf(b[lead:]) {
	case fieldUndecided:
		return Unknown, lead
	case fieldData, fieldEvent, fieldIgnored:
		return SSE, lead
	case fieldBare, fieldOther:
	}
	return Other, lead
}

// leading returns the length of the byte order mark and white space at the start of b.
func leading(b []byte) int {
	rest := bytes.TrimPrefix(b, []byte(bom))
	return len(b) - len(bytes.TrimLeft(rest, spaces))
}

// arrayOrOther decides by what follows an opening bracket. Only an array of objects is a sequence of documents; input
// beginning with "[1]" or "[note]" is text.
func arrayOrOther(b []byte) Kind {
	rest := bytes.TrimLeft(b, spaces)
	switch lead := len(b) - len(rest); {
	case lead >= maxLead:
		return Array
	case len(rest) == 0:
		return Unknown
	case rest[0] == '{' || rest[0] == ']':
		return Array
	}
	return Other
}

// awsOrOther decides by the checksum of an AWS prelude.
func awsOrOther(b []byte) Kind {
	switch {
	case len(b) < preludeLen:
		return Unknown
	case preludeOK(b):
		return AWS
	}
	return Other
}

// Server-sent events.

const (
	maxName = 1024 // largest SSE event name in bytes; a longer one is ignored
	done    = "[DONE]"
	maxDone = 2 * len(done) // including surrounding white space
)

// sseState is the state between Writes of SSE.
type sseState struct {
	name    []byte // the current event's name
	nameBuf []byte // buffer for name between Writes
	data    []byte // the current event's data if it is a single line of this Write's input; else it is in buf
	pending bool   // the current event has data
	bare    bool   // the document in buf began with a line without a field and is incomplete
	scan    scanner
	begun   bool  // the current event has a line, possibly a comment; the first is at Splitter.mark
	line    int64 // offset in the input of the current line
	useful  bool  // the line just read has data, or ended an event that has
	used    int64 // offset in the input after the last such line: see Idle
	open    bool  // the last Write ended inside that line
	from    int   // if open, its bytes are buf[from:], after the event's data
	cr      bool  // the last Write ended in CR: a following LF belongs to it
}

// field is the meaning of an SSE line.
type field uint8

const (
	fieldUndecided field = iota // too short to tell
	fieldData
	fieldEvent
	fieldIgnored // id, retry, a comment
	fieldBare    // a JSON object without a field name, as some servers send errors
	fieldOther   // not SSE; ignored unless it continues a bare object
)

const (
	nameData  = "data:"
	nameEvent = "event:"
	maxField  = len(nameEvent + " ")
)

// fieldOf returns the meaning of a line beginning with b, which is not empty.
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

// readSSE reads p line by line. Lines end in LF, CR or CRLF; every byte is examined once for each of the two.
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
		case e.open || end == len(p):
			s.holdLine(p[i:end], end < len(p))
		case end == i:
			if e.bare {
				s.endBare(ErrTruncated)
			}
			s.endEvent(false)
		default:
			s.readField(p[i:end:end])
		}
		if e.useful {
			e.useful, e.used = false, s.base+int64(min(next, len(p)))
		}
		i = next
	}
	s.holdEvent()
	s.base += int64(len(p))
}

// holdLine holds part of a line that is not completely within one Write, after the event's data. It keeps no more than
// needed: a longer line certainly makes the document too large, or the name too long. The line is read once it has
// ended; what is kept of it then moves down in the same buffer.
func (s *Splitter) holdLine(b []byte, ended bool) {
	e := &s.sse
	if !e.open {
		s.holdEvent()
		e.open, e.from = true, len(s.buf)
	}
	most := max(s.MaxDocument, e.from+maxName) + maxField + 1 // one byte more shows that it is longer
	s.appendToBuffer(b[:min(len(b), max(0, most-len(s.buf)))])
	if ended {
		line := slices.Clip(s.buf[e.from:])
		s.buf, e.open = s.buf[:e.from], false
		s.readField(line)
		s.holdEvent()
	}
}

// holdEvent copies what is known of the current event, because its bytes are about to be reused.
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

// readField reads a complete line, which is not blank. A field name without a colon has an empty value.
func (s *Splitter) readField(b []byte) {
	e := &s.sse
	f := fieldOf(b)
	if f == fieldUndecided && string(b) == "data" {
		f = fieldData
	} else if f == fieldUndecided && string(b) == "event" {
		f = fieldEvent
	}
	if e.bare && (f == fieldData || f == fieldEvent) {
		s.endBare(ErrTruncated)
	}
	if !e.begun {
		e.begun, s.mark = true, e.line
	}
	name := len(nameData)
	if f == fieldEvent {
		name = len(nameEvent)
	}
	value := b[min(name, len(b)):]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch {
	case f == fieldData:
		e.useful = e.useful || len(value) > 0
		switch {
		case e.pending: // already has data
			s.holdEvent()
			s.hold([]byte{'\n'})
			s.hold(value)
		case len(value) > s.MaxDocument:
			e.pending, s.start = true, e.line
			s.tooLarge()
		default:
			e.pending, s.start = true, e.line
			e.data = value
		}
	case f == fieldEvent:
		if e.name = value; len(value) == 0 || len(value) > maxName {
			e.name = nil
		}
	case f == fieldBare, f == fieldOther && e.bare:
		s.addBare(b)
	}
}

// endEvent emits the current event. last means that no blank line ended it.
func (s *Splitter) endEvent(last bool) {
	e := &s.sse
	if e.pending && !s.skip {
		data := e.data
		if data == nil {
			data = slices.Clip(s.buf)
		}
		e.useful = len(data) > 0
		f := Frame{Event: e.name, Data: data}
		switch {
		case len(data) <= maxDone && string(bytes.TrimLeft(trimRight(data), spaces)) == done:
			f.Data, f.Done = nil, true
		case last && unfinished(data):
			f.Err = s.damage(ErrTruncated)
		}
		s.Emit(f)
	}
	e.name, e.data, e.pending, e.begun = nil, nil, false, false
	s.drop()
}

// addBare reads a line of a bare object. No blank line follows it; it ends with the line that closes its brackets.
// Anything that cannot belong to it (a blank line, a data or event field, a line that ends within a string) shows that
// it is damaged, and ends it too.
func (s *Splitter) addBare(b []byte) {
	e := &s.sse
	over := len(b) > max(s.MaxDocument-len(s.buf)-len(e.data), maxName)+maxField // see holdLine
	if !e.bare {
		if e.pending {
			s.endEvent(true)
			e.begun, s.mark = true, e.line
		}
		e.bare, e.scan, s.start = true, scanner{}, e.line
	}
	e.useful = true
	_, closed := e.scan.read(b)
	s.hold(b) // only after reading: a held line moves down
	switch {
	case closed, over: // only the start of an overlong line was kept
		s.endBare(nil)
	case e.scan.quoted:
		s.endBare(ErrTruncated)
	default:
		s.hold([]byte{'\n'})
	}
}

// endBare ends a bare object, which may have been cut off before the current line.
func (s *Splitter) endBare(why error) {
	if !s.skip {
		f := Frame{Event: s.sse.name, Data: trimRight(s.buf)}
		if why != nil {
			f.Err = s.damage(why)
		}
		s.Emit(f)
	}
	s.sse.bare, s.sse.name, s.sse.begun = false, nil, false
	s.drop()
}

func (s *Splitter) closeSSE() {
	e := &s.sse
	if e.open && fieldOf(s.buf[e.from:]) != fieldUndecided { // part of a field name means nothing
		s.holdLine(nil, true)
	} else if e.open {
		s.buf = s.buf[:e.from]
	}
	if e.bare {
		s.endBare(ErrTruncated)
	}
	s.endEvent(true)
}
