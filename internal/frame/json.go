package frame

import (
	"bytes"

	"github.com/ibidhq/ibid/internal/scan"
)

// jsonState is the state between Writes of JSON, Lines and Array.
type jsonState struct {
	at      place
	scan    scanner
	some    bool // at least one document was read
	newline bool // a line ended since the last document
	multi   bool // the first document spans several lines
}

// place is the position of the next byte.
type place uint8

const (
	betweenDocuments place = iota // before a document
	insideDocument                // in a document that ends with a bracket or quote
	insideScalar                  // in an array element without either
	insideLine                    // in or before a document that ends with its line
	insideGarbage                 // in a line that is not a document
	afterArray                    // after the array
)

// stepJSON reads at least one byte of p, or changes the place, and returns how many bytes it read.
func (s *Splitter) stepJSON(p []byte) int {
	switch s.json.at {
	case betweenDocuments:
		return s.nextDocument(p)
	case insideDocument:
		return s.readInside(p)
	case insideScalar:
		return s.readScalar(p)
	case insideLine:
		n, _ := s.readLine(p, nil)
		return n
	case insideGarbage:
		n, ended := s.readLine(p, ErrTrailing)
		if ended {
			s.json.newline = true
			s.json.at = betweenDocuments
			if s.kind == Array {
				s.json.at = afterArray
			}
		}
		return n
	case afterArray:
	}
	n := len(p) - len(bytes.TrimLeft(p, spaces))
	if n < len(p) {
		s.json.at = insideGarbage
	}
	return n
}

// nextDocument skips separators and determines what follows them.
func (s *Splitter) nextDocument(p []byte) int {
	n := 0
	for n < len(p) && (isSpace(p[n]) || p[n] == ',' && s.kind == Array) {
		if p[n] == '\n' {
			s.json.newline = true
		}
		n++
	}
	if n == len(p) {
		return n
	}
	s.start = s.base + int64(n)
	s.json.scan = scanner{}
	if s.kind != Array {
		s.json.at = s.placeOf(p[n])
		return n
	}
	switch p[n] {
	case '{', '[', '"':
		s.json.at = insideDocument
	case ']':
		s.json.at = afterArray
		n++
	default:
		s.json.at = insideScalar
	}
	return n
}

// placeOf returns the place that begins with c, outside an array. The second document decides whether lines are
// documents: they are, unless the first did not have a line of its own.
func (s *Splitter) placeOf(c byte) place {
	if c != '{' {
		return insideGarbage
	}
	if s.json.some && s.kind == JSON {
		s.kind = Lines
		if s.json.newline && !s.json.multi {
			return insideLine
		}
	}
	return insideDocument
}

func (s *Splitter) readInside(p []byte) int {
	n, done := s.json.scan.read(p)
	if s.kind == JSON && !s.json.multi {
		s.json.multi = bytes.IndexByte(p[:n], '\n') >= 0
	}
	if !done {
		s.hold(p)
		return len(p)
	}
	s.mark = s.base + int64(n) - 1
	s.finish(p[:n], nil)
	s.json.at, s.json.some, s.json.newline = betweenDocuments, true, false
	return n
}

func (s *Splitter) readScalar(p []byte) int {
	for n, c := range p {
		if isSpace(c) || c == ',' || c == ']' || c == '{' || c == '[' || c == '"' {
			s.finish(p[:n], nil)
			s.json.at = betweenDocuments
			return n
		}
	}
	s.hold(p)
	return len(p)
}

// readLine reads a document that ends with its line, and reports whether it did. Blank lines are skipped.
func (s *Splitter) readLine(p []byte, why error) (int, bool) {
	n := 0
	if len(s.buf) == 0 && !s.skip {
		n = len(p) - len(bytes.TrimLeft(p, spaces))
		if n == len(p) {
			return n, false
		}
		s.start = s.base + int64(n)
	}
	end := bytes.IndexByte(p[n:], '\n')
	if end < 0 {
		s.hold(p[n:])
		return len(p), false
	}
	s.finish(p[n:n+end], why)
	return n + end + 1, true
}

func (s *Splitter) closeJSON() {
	if len(s.buf) == 0 {
		return
	}
	switch s.json.at {
	case insideDocument, insideScalar:
		s.finish(nil, ErrTruncated)
	case insideGarbage:
		s.finish(nil, ErrTrailing)
	case insideLine:
		if unfinished(s.buf) {
			s.finish(nil, ErrTruncated)
		} else {
			s.finish(nil, nil)
		}
	case betweenDocuments, afterArray:
	}
}

// unfinished reports whether b begins with a JSON object, array or string that it does not complete.
func unfinished(b []byte) bool {
	b = bytes.TrimLeft(b, spaces)
	if len(b) == 0 || b[0] != '{' && b[0] != '[' && b[0] != '"' {
		return false
	}
	var c scanner
	_, done := c.read(b)
	return !done
}

// scanner finds the end of one JSON object, array or string. The zero value is positioned before its first byte.
type scanner struct {
	depth   int
	quoted  bool // in a string
	escaped bool // after a backslash that escapes the next byte
}

// read returns how many bytes of p belong to the value, and whether it ends there. Brackets are counted, not matched.
func (c *scanner) read(p []byte) (int, bool) {
	for i := 0; i < len(p); {
		if c.quoted {
			i += c.skipString(p[i:])
		} else {
			i += c.skipPlain(p[i:])
		}
		if c.depth == 0 && !c.quoted {
			return i, true
		}
	}
	return len(p), false
}

// skipPlain returns the number of bytes of p up to and including the next quote, or the bracket that ends the value.
func (c *scanner) skipPlain(p []byte) int {
	depth := c.depth
	for i, b := range p {
		switch b | 0x20 { // maps '[' and ']' to '{' and '}'
		case '{':
			depth++
		case '}':
			if depth--; depth <= 0 {
				c.depth = 0
				return i + 1
			}
		case '"':
			if b == '"' {
				c.depth, c.quoted = depth, true
				return i + 1
			}
		}
	}
	c.depth = depth
	return len(p)
}

// skipString returns how many bytes of p belong to the current string, and clears c.quoted if it ended.
func (c *scanner) skipString(p []byte) int {
	first := 0
	if c.escaped {
		c.escaped = false
		first = 1
	} else if n := scan.StringEnd(p, 0); n < len(p) { // faster for short strings, as most are
		c.quoted = false
		return n
	}
	for i := first; ; {
		n := bytes.IndexByte(p[i:], '"')
		if n < 0 {
			c.escaped = escapes(p[first:])
			return len(p)
		}
		i += n + 1
		if !escapes(p[first : i-1]) {
			c.quoted = false
			return i
		}
	}
}

// escapes reports whether the byte after b is escaped: b ends in an odd number of backslashes.
func escapes(b []byte) bool {
	n := len(b)
	for n > 0 && b[n-1] == '\\' {
		n--
	}
	return (len(b)-n)%2 == 1
}
