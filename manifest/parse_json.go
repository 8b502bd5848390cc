package manifest

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/scan"
)

// reader walks a JSON document strictly: RFC 8259, and of RFC 7493 (I-JSON) what keeps two readers from reading two
// things. It knows where it is at every moment, which is why it is not encoding/json.
type reader struct {
	doc   []byte
	at    int
	depth int
	path  []byte // JSON pointer of the value at hand
	err   *Error // the first thing that is wrong
	visit func(path []byte, at int)
}

// walk reads the whole document and tells visit, if there is one, where each value begins.
func walk(doc []byte, visit func(path []byte, at int)) *Error {
	r := &reader{doc: doc, visit: visit}
	r.space()
	switch {
	case len(doc) > MaxBytes:
		r.fail(0, "it is larger than "+strconv.Itoa(MaxBytes)+" bytes")
	case bytes.HasPrefix(doc, []byte("\xef\xbb\xbf")):
		r.fail(0, "it begins with a byte order mark")
	case r.at == len(doc):
		r.fail(r.at, "it is empty")
	default:
		r.value()
		if r.space(); r.err == nil && r.at < len(doc) {
			r.fail(r.at, "something follows the document")
		}
	}
	return r.err
}

// fail notes that something is wrong at an offset. Only the first counts.
func (r *reader) fail(at int, detail string) {
	if r.err == nil {
		line, column := position(r.doc, at)
		r.err = &Error{Status: StatusMalformed, Path: string(r.path), Line: line, Column: column, Detail: detail}
	}
}

// position returns the line and the column of an offset, both from 1; the column in code points.
func position(doc []byte, at int) (line, column int) {
	start := bytes.LastIndexByte(doc[:at], '\n') + 1
	return bytes.Count(doc[:start], []byte{'\n'}) + 1, utf8.RuneCount(doc[start:at]) + 1
}

// place is where something stands.
type place struct{ at, line, column int }

// setPositions sets the lines and columns of places, in one go: a document may be one long line.
func setPositions(doc []byte, places map[string]*place) {
	order := slices.SortedFunc(maps.Values(places), func(a, b *place) int { return a.at - b.at })
	line, column, at := 1, 1, 0
	for _, p := range order {
		between := doc[at:p.at]
		if n := bytes.Count(between, []byte{'\n'}); n > 0 {
			line, column = line+n, 1
			between = between[bytes.LastIndexByte(between, '\n')+1:]
		}
		column += utf8.RuneCount(between)
		at = p.at
		p.line, p.column = line, column
	}
}

func (r *reader) space() {
	for r.at < len(r.doc) && strings.IndexByte(" \t\r\n", r.doc[r.at]) >= 0 {
		r.at++
	}
}

// next takes the byte c, after white space, and says whether it stood there.
func (r *reader) next(c byte) bool {
	r.space()
	if r.at == len(r.doc) || r.doc[r.at] != c {
		return false
	}
	r.at++
	return true
}

// value reads the value that begins at r.at.
func (r *reader) value() {
	if r.at == len(r.doc) {
		r.fail(r.at, "the document breaks off")
		return
	}
	if r.visit != nil {
		r.visit(r.path, r.at)
	}
	switch c := r.doc[r.at]; c {
	case '{', '[':
		if r.depth++; r.depth > MaxDepth {
			r.fail(r.at, "it is nested deeper than "+strconv.Itoa(MaxDepth)+" levels")
			return
		}
		if r.at++; c == '{' {
			r.object()
		} else {
			r.array()
		}
		r.depth--
	case '"':
		r.text()
	default:
		r.scalar()
	}
}

func (r *reader) object() {
	names := make(map[string]struct{})
	outside := len(r.path)
	for n := 0; !r.next('}'); n++ {
		if !r.separator(n, "}") {
			return
		}
		if r.at == len(r.doc) || r.doc[r.at] != '"' {
			r.fail(r.at, "a member's name in quotes is missing")
			return
		}
		at := r.at
		name := r.text()
		r.path = appendToken(r.path, name)
		if _, twice := names[name]; twice {
			r.fail(at, "the member stands there twice")
		}
		names[name] = struct{}{}
		if !r.next(':') {
			r.fail(r.at, "a colon is missing")
		}
		r.space()
		if r.err == nil {
			r.value()
		}
		if r.err != nil {
			return
		}
		r.path = r.path[:outside]
	}
}

func (r *reader) array() {
	outside := len(r.path)
	for n := 0; !r.next(']'); n++ {
		if !r.separator(n, "]") {
			return
		}
		r.path = strconv.AppendInt(append(r.path, '/'), int64(n), 10)
		if r.value(); r.err != nil {
			return
		}
		r.path = r.path[:outside]
	}
}

// separator takes the comma before all but the first member.
func (r *reader) separator(n int, end string) bool {
	if n > 0 && !r.next(',') {
		r.fail(r.at, "a comma or "+end+" is missing")
	}
	r.space()
	return r.err == nil
}

// text reads a string and returns it unescaped.
func (r *reader) text() string {
	r.at++
	start, escaped := r.at, false
	for r.at < len(r.doc) {
		switch c := r.doc[r.at]; {
		case c == '"':
			raw := r.doc[start:r.at]
			r.at++
			if escaped {
				return string(scan.AppendString(nil, raw))
			}
			return string(raw)
		case c == '\\':
			escaped = true
			if r.escape(); r.err != nil {
				return ""
			}
		case c < ' ':
			r.fail(r.at, "a control character stands in a string")
			return ""
		case c < utf8.RuneSelf:
			r.at++
		default:
			char, size := utf8.DecodeRune(r.doc[r.at:])
			if char == utf8.RuneError && size == 1 {
				r.fail(r.at, "it is not UTF-8")
				return ""
			}
			r.at += size
		}
	}
	r.fail(r.at, "the document breaks off in a string")
	return ""
}

// escape reads what begins with a backslash.
func (r *reader) escape() {
	start := r.at
	if r.at++; r.at == len(r.doc) {
		r.fail(r.at, "the document breaks off in a string")
		return
	}
	c := r.doc[r.at]
	r.at++
	if c != 'u' {
		if strings.IndexByte(`"\/bfnrt`, c) < 0 {
			r.fail(start, "an escape that JSON does not have")
		}
		return
	}
	unit := r.hex4(start)
	switch {
	case unit >= 0xdc00 && unit <= 0xdfff:
		r.fail(start, "half a character: a lone surrogate")
	case unit >= 0xd800 && unit <= 0xdbff:
		if !bytes.HasPrefix(r.doc[r.at:], []byte(`\u`)) {
			r.fail(start, "half a character: a lone surrogate")
			return
		}
		r.at += 2
		if low := r.hex4(start); low < 0xdc00 || low > 0xdfff {
			r.fail(start, "half a character: a lone surrogate")
		}
	}
}

func (r *reader) hex4(start int) rune {
	if len(r.doc)-r.at < 4 {
		r.fail(start, "an escape that JSON does not have")
		return 0
	}
	n := rune(0)
	for _, c := range r.doc[r.at : r.at+4] {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if c < '0' || digit < 0 {
			r.fail(start, "an escape that JSON does not have")
			return 0
		}
		n = n<<4 | rune(digit)
	}
	r.at += 4
	return n
}

// scalar reads a number or a literal.
func (r *reader) scalar() {
	start := r.at
	for r.at < len(r.doc) && strings.IndexByte(" \t\r\n,:]}[{\"", r.doc[r.at]) < 0 {
		r.at++
	}
	word := string(r.doc[start:r.at])
	switch {
	case word == "true" || word == "false" || word == "null":
	case word == "":
		r.fail(start, "a value is missing")
	case !isNumber(word):
		r.fail(start, "this is no value of JSON")
	default:
		n, err := strconv.ParseFloat(word, 64)
		if err != nil || math.Abs(n) > MaxNumber {
			r.fail(start, "a number beyond 2^53-1, which not every reader can hold")
		}
	}
}

// isNumber reports whether word is a number as JSON writes them.
func isNumber(word string) bool {
	word = strings.TrimPrefix(word, "-")
	whole, rest := digits(word)
	if whole == 0 || whole > 1 && word[0] == '0' {
		return false
	}
	if fraction, found := strings.CutPrefix(rest, "."); found {
		if whole, rest = digits(fraction); whole == 0 {
			return false
		}
	}
	if rest != "" && rest[0]|0x20 == 'e' {
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		if whole, rest = digits(rest); whole == 0 {
			return false
		}
	}
	return rest == ""
}

// digits counts the digits that s begins with and returns what follows them.
func digits(s string) (n int, rest string) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n, s[n:]
}

// appendToken appends a name to a JSON pointer (RFC 6901).
func appendToken(path []byte, name string) []byte {
	path = append(path, '/')
	for i := range len(name) {
		switch name[i] {
		case '~':
			path = append(path, "~0"...)
		case '/':
			path = append(path, "~1"...)
		default:
			path = append(path, name[i])
		}
	}
	return path
}
