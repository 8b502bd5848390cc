package ibid

// Span is a half-open range of UTF-8 bytes of [Answer.Text]. Both ends always stand on rune boundaries. Start == End is
// a point. The zero value is the point before the text.
type Span struct{ Start, End int }

// Len returns the number of bytes that s covers.
func (s Span) Len() int { return s.End - s.Start }

// Unit is what an offset counts.
type Unit string

// The units of a text offset. The zero Unit means [UTF8].
const (
	UTF8      Unit = "utf-8"      // bytes, as Go slices strings
	CodePoint Unit = "code-point" // Unicode code points, as Python slices strings
	UTF16     Unit = "utf-16"     // UTF-16 code units, as JavaScript slices strings
)

// Units returns all units, the default first.
func Units() []Unit { return []Unit{UTF8, CodePoint, UTF16} }
