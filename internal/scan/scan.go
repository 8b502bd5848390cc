package scan

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Value is one JSON value as it stands in its document, without surrounding space. Nil: there is none. The document
// must not change while the value is in use.
type Value []byte

// Object walks the members of a JSON object. Get one from [Members].
type Object struct {
	Key []byte // unescaped; valid until the next call of Next
	Val Value
	doc []byte
	at  int
}

// Members returns a walk over the members of v. It is empty where v is not an object.
func Members(v Value) Object { return Object{doc: v, at: open(v, '{')} }

// Next moves to the next member and reports whether there is one. It stops at the object's end, at the end of a
// truncated document, and at the first byte that cannot stand there. A number or literal that a truncated document may
// have cut is no member: of 207 it would show 20.
func (o *Object) Next() bool {
	doc, i := o.doc, comma(o.doc, o.at)
	if i >= len(doc) || doc[i] != '"' {
		return false
	}
	start := i + 1
	i = stringEnd(doc, start)
	if i == start { // a quote, then nothing
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
	end := valueEnd(doc, i)
	o.at, o.Key, o.Val = end, key, Value(doc[i:end])
	return end > i && !cutScalar(doc, i, end)
}

// Array walks the elements of a JSON array. Get one from [Elements].
type Array struct {
	Val Value
	doc []byte
	at  int
}

// Elements returns a walk over the elements of v. It is empty where v is not an array.
func Elements(v Value) Array { return Array{doc: v, at: open(v, '[')} }

// Next moves to the next element and reports whether there is one, as [Object.Next] does.
func (a *Array) Next() bool {
	i := comma(a.doc, a.at)
	if i >= len(a.doc) || a.doc[i] == ']' {
		return false
	}
	a.at = valueEnd(a.doc, i)
	a.Val = Value(a.doc[i:a.at])
	return a.at > i && !cutScalar(a.doc, i, a.at)
}

// Cut reports whether the document breaks off in the element. It is as [Value.Cut] of it, which only the last can be.
func (a *Array) Cut() bool { return a.at == len(a.doc) && a.Val.Cut() }

// Get returns the value of v's first member of that name, or nil. As everywhere in this package, a member has a name
// whether it is spelled in camelCase or in snake_case: [IsName].
func (v Value) Get(name string) Value {
	for o := Members(v); o.Next(); {
		if IsName(o.Key, name) {
			return o.Val
		}
	}
	return nil
}

// Pick returns the value of v's first member that has one of the names, or nil.
func (v Value) Pick(names ...string) Value {
	for o := Members(v); o.Next(); {
		for _, name := range names {
			if IsName(o.Key, name) {
				return o.Val
			}
		}
	}
	return nil
}

// Fields says where to put members of an object, by their names; see [Value.Read].
type Fields []struct {
	Name string
	To   any // *Value; *string, for Value.Str; *int, for a whole number; **float64, nil for what is no number
}

// Read puts each member of v that is in fields where they say. Of two members with one name the last counts; what has
// no member, or is an *int and its member no whole number, stays as it is.
func (v Value) Read(fields Fields) {
	for o := Members(v); o.Next(); {
		for i := range fields {
			if IsName(o.Key, fields[i].Name) {
				o.Val.storeIn(fields[i].To)
				break
			}
		}
	}
}

// storeIn stores v in a field of [Fields].
func (v Value) storeIn(to any) {
	switch to := to.(type) {
	case *Value:
		*to = v
	case *string:
		*to = v.Str()
	case *int:
		if n, ok := v.Int(); ok {
			*to = n
		}
	case **float64:
		*to = v.Number()
	}
}

// IsName reports whether key is name, both spelled in camelCase or in snake_case: groundingChunks is grounding_chunks.
func IsName(key []byte, name string) bool {
	return string(key) == name || len(key) != len(name) && isFolded(key, name)
}

// isFolded is IsName, for names that are not the same. They differ in their length, by the underscores.
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

// Type returns the string at v's member "type", without copying where that member stands first.
func (v Value) Type() []byte { return v.Get("type").Bytes() }

func open(v []byte, bracket byte) int {
	if len(v) == 0 || v[0] != bracket {
		return len(v)
	}
	return 1
}

// comma skips white space and one comma, so that missing and trailing commas do no harm.
func comma(b []byte, i int) int {
	if i = space(b, i); i < len(b) && b[i] == ',' {
		return space(b, i+1)
	}
	return i
}

// space skips white space. Compact JSON has none, so the test is small enough to be inlined and the loop is not.
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

// StringEnd returns the offset after the quote that closes the string whose content begins at doc[i], or len(doc) where
// no quote does.
func StringEnd(doc []byte, i int) int { return stringEnd(doc, i) }

// stringEnd returns the offset after the quote that closes the string whose content begins at i, or len(b). A quote is
// escaped when an odd number of backslashes stands before it, so hopping from quote to quote is enough. Most strings
// are short: their quote is found eight bytes at a time, before a call of IndexByte would have paid off.
func stringEnd(b []byte, i int) int {
	from := i
	for limit := min(i+32, len(b)-8); i <= limit; {
		n := quoteIn(binary.LittleEndian.Uint64(b[i:]))
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

// quoteIn returns the place of the first quote among the eight bytes of word, or 8.
func quoteIn(word uint64) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	const quotes = '"' * ones
	x := word ^ quotes
	return bits.TrailingZeros64((x-ones)&^x&highs) / 8
}

// escaped reports whether the byte at i of a string's content is escaped.
func escaped(s []byte, i int) bool {
	k := i
	for k > 0 && s[k-1] == '\\' {
		k--
	}
	return (i-k)&1 == 1
}

// valueEnd returns the offset after the value that begins at i. It is i where no value can begin there.
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i+1)
	case '{', '[':
		return containerEnd(b, i)
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

// cutScalar reports whether b[i:end], a value in the object or array b, is a number or a literal that b breaks off in.
// An object or array that is all there ends with its bracket, never with such a value.
func cutScalar(b []byte, i, end int) bool {
	return end == len(b) && b[i] != '"' && b[i] != '{' && b[i] != '['
}

func containerEnd(b []byte, i int) int {
	end, _ := container(b, i)
	return end
}

// container returns the offset after the object or array that begins at i, and whether it is closed there.
func container(b []byte, i int) (end int, closed bool) {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = stringEnd(b, i+1)
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
