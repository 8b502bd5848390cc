package scan

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is one JSON value within its document, without surrounding space. Nil means no value. The document must not
// change while the value is in use.
type Value []byte

// Walk iterates over the members of a JSON object or the elements of an array. Get one from [Members] or [Elements].
type Walk struct {
	Key []byte // of a member, unescaped; valid until the next call of Next
	Val Value
	doc []byte
	at  int
}

// Members returns a walk over the members of v, which is empty if v is not an object.
func Members(v Value) Walk {
	if !v.IsObject() {
		v = nil
	}
	return Walk{doc: v, at: 1}
}

// Elements returns a walk over the elements of v, which is empty if v is not an array.
func Elements(v Value) Walk {
	if !v.IsArray() {
		v = nil
	}
	return Walk{doc: v, at: 1}
}

// Next moves to the next member or element and reports whether there is one. It stops at the end of the object or
// array, at the end of a truncated document, and at the first invalid byte; missing and trailing commas are accepted. A
// number or literal at the end of a truncated document is skipped, since it may be cut: 207 would be read as 20.
func (w *Walk) Next() bool {
	doc := w.doc
	i := space(doc, w.at)
	if i < len(doc) && doc[i] == ',' {
		i = space(doc, i+1)
	}
	if i >= len(doc) {
		return false
	}
	if doc[0] == '{' {
		start := i + 1
		if doc[i] != '"' {
			return false
		}
		if i = StringEnd(doc, start); i == start { // a quote, then nothing
			return false
		}
		key := doc[start : i-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = AppendString(nil, key)
		}
		if i = space(doc, i); i >= len(doc) || doc[i] != ':' {
			return false
		}
		if i = space(doc, i+1); i >= len(doc) {
			return false
		}
		w.Key = key
	}
	end := valueEnd(doc, i) // a whole object or array ends with its bracket, never with a number or a literal
	w.at, w.Val = end, Value(doc[i:end])
	return end > i && (end < len(doc) || doc[i] == '"' || doc[i] == '{' || doc[i] == '[')
}

// Cut reports whether the document breaks off in the element. It equals [Value.Cut], but is faster, since only the last
// element can be cut.
func (w *Walk) Cut() bool { return w.at == len(w.doc) && w.Val.Cut() }

// Get returns the value of v's first member that has one of the names, or nil. As everywhere in this package, names
// match in camelCase and in snake_case: see [IsName].
func (v Value) Get(names ...string) Value {
	for m := Members(v); m.Next(); {
		for _, name := range names {
			if beginAlike(m.Key, name) && IsName(m.Key, name) {
				return m.Val
			}
		}
	}
	return nil
}

// Fields maps names of members to destinations for [Value.Read].
type Fields []struct {
	Name string
	To   any // *Value; *string, set by Value.Str; *int, for a whole number; **float64, nil if not a number
}

// Read stores each member of v that is in fields in its destination. Of two members with one name the last counts. A
// destination without a member, or an *int whose member is not a whole number, stays unchanged.
func (v Value) Read(fields Fields) {
	for o := Members(v); o.Next(); {
		for i := range fields {
			if beginAlike(o.Key, fields[i].Name) && IsName(o.Key, fields[i].Name) {
				switch to := fields[i].To.(type) {
				case *Value:
					*to = o.Val
				case *string:
					*to = o.Val.Str()
				case *int:
					if n, ok := o.Val.Int(); ok {
						*to = n
					}
				case **float64:
					*to = o.Val.Number()
				}
				break
			}
		}
	}
}

// IsName reports whether key is name, where either may be in camelCase or snake_case: groundingChunks is
// grounding_chunks.
func IsName(key []byte, name string) bool {
	return string(key) == name || len(key) != len(name) && isFolded(key, name)
}

// beginAlike reports whether key may be name, as its first byte tells: most are not, and need no comparison.
func beginAlike(key []byte, name string) bool {
	return len(key) == 0 || name == "" || key[0] == name[0] || key[0] == '_' || name[0] == '_'
}

// isFolded is IsName for names that are not equal. They differ in length, by the underscores.
func isFolded(key []byte, name string) bool {
	i, j := 0, 0
	for i < len(key) && j < len(name) {
		a, b := key[i], name[j]
		switch {
		case a == b:
		case a == '_' && i+1 < len(key) && key[i+1]-'a'+'A' == b:
			i++
		case b == '_' && j+1 < len(name) && name[j+1]-'a'+'A' == a:
			j++
		default:
			return false
		}
		i++
		j++
	}
	return i == len(key) && j == len(name)
}

// Path returns the value found by following names through nested objects, or nil.
func (v Value) Path(names ...string) Value {
	for _, name := range names {
		v = v.Get(name)
	}
	return v
}

// Type returns the string of v's member "type", without copying.
func (v Value) Type() []byte { return v.Get("type").Bytes() }

// space skips white space. Compact JSON has none, so the test is small enough to be inlined, and the loop is separate.
func space(b []byte, i int) int {
	if i < len(b) && b[i] <= ' ' {
		return skipSpace(b, i)
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// StringEnd returns the offset after the quote that closes the string whose content begins at b[i], or len(b). A quote
// is escaped if an odd number of backslashes precedes it, so it suffices to go from quote to quote. Most strings are
// short: their quote is searched for eight bytes at a time, before a call of IndexByte would pay off.
func StringEnd(b []byte, i int) int {
	from := i
	for limit := min(i+32, len(b)-8); i <= limit; {
		const ones, highs, quotes = 0x0101010101010101, 0x8080808080808080, '"' * 0x0101010101010101
		x := binary.LittleEndian.Uint64(b[i:]) ^ quotes // has a zero byte for each quote
		n := bits.TrailingZeros64((x-ones)&^x&highs) / 8
		if n == 8 {
			i += 8
			continue
		}
		i += n + 1
		if i-1 == from || b[i-2] != '\\' || !escaped(b[from:], i-1-from) {
			return i
		}
	}
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n + 1
		if !escaped(b[from:], i-1-from) {
			return i
		}
	}
}

// escaped reports whether the byte at i of a string's content is escaped.
func escaped(s []byte, i int) bool {
	k := i
	for k > 0 && s[k-1] == '\\' {
		k--
	}
	return (i-k)&1 == 1
}

// SkipSpace returns the offset of the first byte from i on that is not white space.
func SkipSpace(b []byte, i int) int { return space(b, i) }

// ValueEnd returns the offset after the value that begins at i, or i if no value can begin there.
func ValueEnd(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	return valueEnd(b, i)
}

// valueEnd returns the offset after the value that begins at i, or i if no value can begin there.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return StringEnd(b, i+1)
	case '{', '[':
		end, _ := container(b, i)
		return end
	case '}', ']', ':', ',':
		return i
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t', '"', '{', '[', ':':
			return i
		}
		i++
	}
	return i
}

// container returns the offset after the object or array that begins at i, and whether it is closed there.
func container(b []byte, i int) (end int, closed bool) {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = StringEnd(b, i+1)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1, true
			}
		}
		i++
	}
	return len(b), false
}

// IsString reports whether v is a string, perhaps a truncated one.
func (v Value) IsString() bool { return len(v) > 0 && v[0] == '"' }

// IsObject reports whether v is an object, perhaps a truncated one.
func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

// IsArray reports whether v is an array, perhaps a truncated one.
func (v Value) IsArray() bool { return len(v) > 0 && v[0] == '[' }

// IsNull reports whether v is missing or null.
func (v Value) IsNull() bool { return len(v) == 0 || string(v) == "null" }

// IsTrue reports whether v is true.
func (v Value) IsTrue() bool { return string(v) == "true" }

// Cut reports whether v is a string, object or array that its document breaks off in.
func (v Value) Cut() bool {
	switch {
	case v.IsString():
		return !v.closed()
	case v.IsObject(), v.IsArray():
		_, closed := container(v, 0)
		return !closed
	}
	return false
}

// closed reports whether a string ends with its quote.
func (v Value) closed() bool {
	n := len(v) - 1
	return n > 0 && v[n] == '"' && !escaped(v[1:], n-1)
}

// Content returns the text between a string's quotes, with its escapes, or nil if v is not a string. A truncated string
// is returned up to its last complete character: that is for text to be shown, which may break off. For addresses,
// names and ids, use [Value.Bytes].
func (v Value) Content() []byte {
	switch {
	case !v.IsString():
		return nil
	case v.closed():
		return v[1 : len(v)-1]
	default:
		return wholeCharacters(v[1:])
	}
}

// Bytes returns the content of a string, unescaped, or nil if v is not a string or is truncated. It shares memory with
// the document unless the string has escapes.
func (v Value) Bytes() []byte {
	if !v.IsString() || !v.closed() {
		return nil
	}
	s := v[1 : len(v)-1]
	if bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	return AppendString(nil, s)
}

// Str returns the content of a string, or "" if v is not a string or is truncated.
func (v Value) Str() string { return string(v.Bytes()) }

// Text returns a string's content, and any other value except null as its JSON: for members that should be strings. It
// is "" if v is truncated.
func (v Value) Text() string {
	if v.IsString() || v.IsNull() {
		return v.Str()
	}
	if v.Cut() {
		return ""
	}
	return string(v)
}

// Int returns an integer, which may be written as a number, with an empty fraction (12.0) or as a string ("12"), as
// providers do. It returns false for anything else, and for numbers that do not fit in an int.
func (v Value) Int() (int, bool) {
	s := []byte(v)
	if v.IsString() {
		s = v.Bytes()
	}
	if len(s) > 0 && len(s) < 10 { // the common case without a conversion
		n := 0
		for _, c := range s {
			if c < '0' || c > '9' {
				return slowInt(s)
			}
			n = n*10 + int(c-'0')
		}
		return n, true
	}
	return slowInt(s)
}

func slowInt(s []byte) (int, bool) {
	if n, err := strconv.Atoi(string(s)); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(s), 64)
	if err != nil || math.Abs(f) > 1<<53 {
		return 0, false
	}
	if n := int(f); float64(n) == f {
		return n, true
	}
	return 0, false
}

// Float returns a finite number, which may be written as a string.
func (v Value) Float() (float64, bool) {
	s := []byte(v)
	if v.IsString() {
		s = v.Bytes()
	}
	if len(s) == 0 || len(s) > 400 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(s), 64)
	return f, err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
}

// Number is like [Value.Float], but returns nil if v is not a number.
func (v Value) Number() *float64 {
	if f, ok := v.Float(); ok {
		return &f
	}
	return nil
}

// wholeCharacters returns s, the beginning of a string's content, without an incomplete character at its end: bytes of
// UTF-8, an escape, or half of a character that is written as two escapes.
func wholeCharacters(s []byte) []byte {
	const longest = len(`\ud83d\ude0`)
	for i := max(0, len(s)-longest); i < len(s); i++ {
		if s[i] == '\\' && !escaped(s, i) && cutEscape(s[i:]) {
			return s[:i]
		}
	}
	for i := 1; i <= min(len(s), utf8.UTFMax-1); i++ {
		if last := s[len(s)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// cutEscape reports whether s is the incomplete beginning of an escape, or of two that make one character.
func cutEscape(s []byte) bool {
	switch {
	case len(s) < 2 || s[1] == 'u' && len(s) < 6:
		return true
	case s[1] != 'u' || hex4(s[2:])>>10 != 0xD800>>10:
		return false
	}
	rest := s[6:]
	return len(rest) < 6 && bytes.HasPrefix([]byte(`\u`), rest[:min(len(rest), 2)])
}

// AppendString appends the content of a JSON string, given without its quotes, to dst. A lone surrogate is appended as
// the three bytes that UTF-8 would use if it were allowed (WTF-8), so that it can be joined to its other half, if that
// comes with the next string. An escape that is cut off is left out; an unknown one yields its character.
func AppendString(dst, s []byte) []byte {
	dst = slices.Grow(dst, len(s)) // no escape is shorter than its character
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:n]...)
		if s = s[n+1:]; len(s) == 0 {
			return dst
		}
		c := s[0]
		s = s[1:]
		switch c {
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'u':
			dst, s = appendEscape(dst, s)
			continue
		}
		dst = append(dst, c)
	}
}

// appendEscape appends the character of a \u escape, given what follows the u, and returns the rest.
func appendEscape(dst, s []byte) (appended, rest []byte) {
	r := hex4(s)
	if r < 0 {
		if len(s) < 4 {
			return dst, nil
		}
		return append(dst, 'u'), s
	}
	s = s[4:]
	if !utf16.IsSurrogate(r) {
		return utf8.AppendRune(dst, r), s
	}
	if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
		if joined := utf16.DecodeRune(r, hex4(s[2:])); joined != utf8.RuneError {
			return utf8.AppendRune(dst, joined), s[6:]
		}
	}
	return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F)), s
}

// hex4 returns the value of the four hexadecimal digits that s begins with, or -1.
func hex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	var r rune
	for _, c := range s[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
