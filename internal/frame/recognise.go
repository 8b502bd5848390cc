package frame

import "bytes"

const (
	bom = "\xef\xbb\xbf"
	// maxLead bounds the white space that is looked at, and held, before the framing is known. Servers that send blank
	// lines to keep a connection open exceed it; what exceeds it says nothing and is dropped.
	maxLead = 512
)

// recognise reads the beginning of the input until its framing is certain, then passes on what it held.
func (s *Splitter) recognise(p []byte) {
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
		s.keep(p[i : i+1])
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

// recogniseRest decides about an input that ended before its framing was certain.
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

// open begins to read b, whose first lead bytes are a byte order mark and white space.
func (s *Splitter) open(kind Kind, b []byte, lead int) {
	s.kind = kind
	if kind == Other {
		if lead > maxLead { // what was over would have been dropped, had it come in smaller pieces
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

// kindOf says how an input beginning with b is framed, Unknown if more bytes are needed, and how many bytes come before
// the first that counts.
func kindOf(b []byte) (Kind, int) {
	if len(b) > 0 && b[0] < '\t' { // no text begins so, and no AWS message is so long that it would not
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
	case fieldNone, fieldBare, fieldOther:
	}
	return Other, lead
}

// leading returns how many bytes of byte order mark and white space b begins with.
func leading(b []byte) int {
	rest := bytes.TrimPrefix(b, []byte(bom))
	return len(b) - len(trimLeft(rest))
}

// arrayOrOther decides by what follows an opening bracket. Only an array of objects is a sequence of documents; what
// begins with "[1]" or "[note]" is text.
func arrayOrOther(b []byte) Kind {
	rest := trimLeft(b)
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
