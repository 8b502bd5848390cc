package pdf

import (
	"bytes"
	"compress/flate"
	"encoding/ascii85"
	"io"
	"slices"
	"strconv"
)

// The objects of a PDF: nil, bool, float64, nameObject, byteString, []any, dict, *stream and reference. Content streams
// also have operators.
type (
	nameObject string
	byteString string
	dict       map[string]any
	reference  int
	operator   string
	stream     struct {
		dict dict
		raw  []byte
	}
)

// Bounds of one object, and of the operands of one operator.
const (
	maxDepth = 64      // nesting of arrays and dictionaries
	maxValue = 8 << 20 // approximate memory in bytes; the rest is left out
)

// Approximate memory use of objects, without the bytes of strings and names.
const (
	sizeOfValue  = 32
	sizeOfDict   = 256
	sizeOfObject = 96 // in the table of objects
)

// lexer reads objects. It skips malformed input and never fails; each call of next makes progress or returns
// endOfInput.
type lexer struct {
	b   []byte
	pos int
	// spend counts what was read, and returns false if reading must stop.
	spend func(n int) bool
	took  int // approximate memory of what was read, in bytes
}

// countValue counts a value, and reports whether there is room for it.
func (l *lexer) countValue(x any) bool {
	l.took += sizeOfValue
	switch x := x.(type) {
	case byteString:
		l.took += len(x)
	case nameObject:
		l.took += len(x)
	case dict:
		l.took += sizeOfDict
	}
	return l.took < maxValue
}

// endOfInput is returned by next at the end.
const endOfInput = operator("")

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isDelimiter(c byte) bool {
	switch c {
	case '(', ')', '<', '>', '[', ']', '{', '}', '/', '%':
		return true
	}
	return false
}

// space skips white space and comments.
func (l *lexer) space() {
	from := l.pos
	defer func() { l.spend((l.pos - from) / lexedPerWork) }()
	for l.pos < len(l.b) { // paid: above, by its bytes
		switch c := l.b[l.pos]; {
		case isSpace(c):
			l.pos++
		case c == '%':
			for l.pos < len(l.b) && l.b[l.pos] != '\n' && l.b[l.pos] != '\r' { // paid: above, by its bytes
				l.pos++
			}
		default:
			return
		}
	}
}

// next returns the next object or operator, or endOfInput at the end.
func (l *lexer) next() any { return l.object(0) }

// value returns the next object, which may be a reference, and counts it.
func (l *lexer) value() any {
	x := l.next()
	l.countValue(x)
	num, ok := x.(float64)
	if !ok {
		return x
	}
	after := l.pos
	if l.space(); l.pos == len(l.b) || l.b[l.pos] < '0' || l.b[l.pos] > '9' { // what follows may be long
		l.pos = after
		return x
	}
	if _, gen := l.next().(float64); gen && l.next() == operator("R") {
		return reference(num)
	}
	l.pos = after
	return x
}

func (l *lexer) object(depth int) any {
	l.space()
	if !l.spend(workOfToken) || l.pos >= len(l.b) {
		l.pos = len(l.b)
		return endOfInput
	}
	switch {
	case l.b[l.pos] == '[':
		l.pos++
		return l.array(depth)
	case bytes.HasPrefix(l.b[l.pos:], []byte("<<")):
		l.pos += 2
		return l.dict(depth)
	}
	from := l.pos
	x := l.scalar()
	l.spend((l.pos - from) / lexedPerWork)
	return x
}

// scalar reads an object that contains no others, or an operator. Its caller pays for the bytes read.
func (l *lexer) scalar() any {
	switch c := l.b[l.pos]; c {
	case '(':
		return l.literal()
	case '/':
		return l.name()
	case '<':
		return l.hex()
	case ']', '{', '}', ')':
		l.pos++
		return operator(string(c))
	case '>':
		l.pos++
		if l.pos < len(l.b) && l.b[l.pos] == '>' {
			l.pos++
			return operator(">>")
		}
		return operator(">")
	}
	return l.word()
}

// word reads a number, a keyword or an operator.
func (l *lexer) word() any {
	start := l.pos
	for l.pos < len(l.b) && !isSpace(l.b[l.pos]) && !isDelimiter(l.b[l.pos]) { // paid: by object
		l.pos++
	}
	w := l.b[start:l.pos]
	if c := w[0]; c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' {
		if len(w) > 40 {
			return 0.0
		}
		if f, err := strconv.ParseFloat(string(w), 64); err == nil && f < 1e15 && f > -1e15 {
			return f
		}
		return 0.0
	}
	switch s := string(w); s {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	default:
		return operator(s)
	}
}

func (l *lexer) name() any {
	l.pos++
	start := l.pos
	escaped := false
	for l.pos < len(l.b) && !isSpace(l.b[l.pos]) && !isDelimiter(l.b[l.pos]) { // paid: by object
		escaped = escaped || l.b[l.pos] == '#'
		l.pos++
	}
	w := l.b[start:l.pos]
	if !escaped {
		return nameObject(w)
	}
	out := make([]byte, 0, len(w))
	for i := 0; i < len(w); i++ { // paid: by object
		if w[i] == '#' && i+2 < len(w) && unhex(w[i+1]) >= 0 && unhex(w[i+2]) >= 0 {
			out = append(out, byte(unhex(w[i+1])<<4|unhex(w[i+2])))
			i += 2
			continue
		}
		out = append(out, w[i])
	}
	return nameObject(out)
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

func (l *lexer) hex() any {
	l.pos++
	var out []byte
	digits, high := 0, 0
	for l.pos < len(l.b) { // paid: by object, or by decode
		c := l.b[l.pos]
		l.pos++
		if c == '>' {
			break
		}
		d := unhex(c)
		if d < 0 {
			continue
		}
		if digits++; digits%2 == 1 {
			high = d
			continue
		}
		out = append(out, byte(high<<4|d))
	}
	if digits%2 == 1 {
		out = append(out, byte(high<<4))
	}
	return byteString(out)
}

func (l *lexer) literal() any {
	l.pos++
	var out []byte
	for depth := 1; l.pos < len(l.b); { // paid: by object
		plain := bytes.IndexAny(l.b[l.pos:], "\\()\r")
		if plain < 0 {
			plain = len(l.b) - l.pos
		}
		out = append(out, l.b[l.pos:l.pos+plain]...)
		if l.pos += plain; l.pos == len(l.b) {
			break
		}
		c := l.b[l.pos]
		l.pos++
		switch c {
		case '\\':
			out = l.escape(out)
			continue
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return byteString(out)
			}
		case '\r':
			if l.pos < len(l.b) && l.b[l.pos] == '\n' {
				l.pos++
			}
			c = '\n'
		}
		out = append(out, c)
	}
	return byteString(out)
}

// escape reads what follows a backslash.
func (l *lexer) escape(out []byte) []byte {
	if l.pos >= len(l.b) {
		return out
	}
	c := l.b[l.pos]
	l.pos++
	switch c {
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case '\n':
		return out
	case '\r':
		if l.pos < len(l.b) && l.b[l.pos] == '\n' {
			l.pos++
		}
		return out
	}
	if c < '0' || c > '7' {
		return append(out, c)
	}
	n := int(c - '0')
	for i := 0; i < 2 && l.pos < len(l.b) && l.b[l.pos] >= '0' && l.b[l.pos] <= '7'; i++ { // paid: two digits
		n = n<<3 | int(l.b[l.pos]-'0')
		l.pos++
	}
	return append(out, byte(n))
}

// array reads the rest of an array and joins references: 12 0 R.
func (l *lexer) array(depth int) any {
	items := []any{}
	for depth < maxDepth {
		x := l.object(depth + 1)
		if op, ok := x.(operator); ok {
			switch op {
			case "]", ">>", "endobj", endOfInput:
				return items
			case "R":
				items = joinRef(items)
			}
			continue
		}
		if l.countValue(x) {
			items = append(items, x)
		}
	}
	return items
}

// joinRef replaces the last two items by a reference.
func joinRef(items []any) []any {
	n := len(items)
	if n < 2 {
		return items
	}
	num, ok := items[n-2].(float64)
	if _, gen := items[n-1].(float64); !ok || !gen {
		return items
	}
	return append(items[:n-2], reference(num))
}

// dict reads the rest of a dictionary.
func (l *lexer) dict(depth int) any {
	d := dict{}
	var items []any
	for depth < maxDepth {
		x := l.object(depth + 1)
		op, ok := x.(operator)
		switch {
		case !ok:
			if l.countValue(x) {
				items = append(items, x)
			}
			continue
		case op == "R":
			items = joinRef(items)
			continue
		case op != ">>" && op != endOfInput && op != "endobj" && op != "stream":
			continue
		}
		if op == "stream" { // the dictionary is not closed
			l.pos -= len(op)
		}
		break
	}
	for i := 0; i+1 < len(items); { // paid: each was read
		key, ok := items[i].(nameObject)
		if !ok {
			i++
			continue
		}
		d[string(key)] = items[i+1]
		i += 2
	}
	return d
}

// maxStream bounds the decoded size of one stream of a PDF in bytes; the rest is left out.
const maxStream = 16 << 20

// decode returns the decoded content of a stream. For damaged streams this is what can be read; for images it is
// nothing.
func (f *file) decode(s *stream) []byte {
	data := s.raw
	filters, _ := f.resolve(s.dict["Filter"]).([]any)
	if name, ok := f.resolve(s.dict["Filter"]).(nameObject); ok {
		filters = []any{name}
	}
	params, _ := f.resolve(s.dict["DecodeParms"]).([]any)
	if d, ok := f.resolve(s.dict["DecodeParms"]).(dict); ok {
		params = []any{d}
	}
	const most = 8 // successive filters
	f.spend(workOfStream)
	for i, filter := range filters[:min(len(filters), most)] {
		name, _ := f.resolve(filter).(nameObject)
		var param dict
		if i < len(params) {
			param, _ = f.resolve(params[i]).(dict)
		}
		if !f.spend(1 + len(data)/bytesPerWork) {
			return nil
		}
		data = f.unfilter(data, name, param)
		if !f.spend(len(data) / bytesPerWork) {
			return nil
		}
	}
	return data
}

func (f *file) unfilter(data []byte, name nameObject, param dict) []byte {
	switch name {
	case "FlateDecode", "Fl":
		return f.unpredict(f.inflate(data), param)
	case "LZWDecode", "LZW":
		early := 1
		if n, ok := f.resolve(param["EarlyChange"]).(float64); ok {
			early = int(n)
		}
		return f.unpredict(f.unLZW(data, early), param)
	case "ASCIIHexDecode", "AHx":
		l := lexer{b: append([]byte{'<'}, data...), spend: f.spend}
		s, _ := l.hex().(byteString)
		return []byte(s)
	case "ASCII85Decode", "A85":
		return un85(data)
	case "RunLengthDecode", "RL":
		return f.unRuns(data)
	}
	return nil
}

// inflate decompresses zlib's format, or what follows a damaged header.
func (f *file) inflate(data []byte) []byte {
	if len(data) < 2 {
		return nil
	}
	const hasDictionary = 0x20
	if data[0]&0xf == 8 && data[0]>>4 <= 7 && (int(data[0])<<8|int(data[1]))%31 == 0 && data[1]&hasDictionary != 0 {
		return nil // one that is not in the file
	}
	from := countingReader{bytes.NewReader(data[2:]), f}
	if f.inflater == nil {
		f.inflater = flate.NewReader(from)
	} else {
		_ = f.inflater.(flate.Resetter).Reset(from, nil) // never fails
	}
	out := slices.Grow(f.scratch[:0], min(maxStream, max(512, 4*len(data))))
	f.scratch = nil
	for f.spend(1) && len(out) < maxStream {
		if len(out) == cap(out) { // by as much again: appending would leave more garbage
			out = slices.Grow(out, min(len(out), maxStream-len(out)))
		}
		n, err := f.inflater.Read(out[len(out):min(cap(out), maxStream)])
		out = out[:len(out)+n]
		if !f.spend(n/bytesPerWork) || err != nil { // keep what precedes damage
			break
		}
	}
	if cap(out) > maxScratch {
		return out
	}
	f.scratch = out
	return slices.Clone(out)
}

// maxScratch is the most that is kept to decompress the next stream into. Else the garbage of growing is several times
// the streams.
const maxScratch = 16 << 20

// countingReader counts the compressed data that is read, which may decompress to nothing and still take long.
type countingReader struct {
	io.Reader

	f *file
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if !r.f.spend(n + n/2) {
		return 0, r.f.stop
	}
	return n, err
}

// unpredict undoes a predictor: PNG's, or TIFF's for whole bytes.
func (f *file) unpredict(data []byte, param dict) []byte {
	number := func(key string, otherwise int) int {
		if n, ok := f.resolve(param[key]).(float64); ok && n >= 1 && n <= 1<<20 {
			return int(n)
		}
		return otherwise
	}
	predictor := number("Predictor", 1)
	if predictor < 2 || len(data) == 0 || !f.spend(1+len(data)/bytesPerWork) {
		return data
	}
	bits := number("Colors", 1) * number("BitsPerComponent", 8)
	if bits > 1<<10 {
		return nil
	}
	pixel, row := max(1, bits/8), min(len(data), (bits*number("Columns", 1)+7)/8)
	if predictor == 2 {
		for start := 0; start+row <= len(data) && f.spend(1); start += row {
			for i := start + pixel; i < start+row; i++ { // paid: above, by its bytes
				data[i] += data[i-pixel]
			}
		}
		return data
	}
	out := make([]byte, 0, len(data))
	last := make([]byte, row)
	for len(data) > 1 && f.spend(1+row/bytesPerWork) {
		line := data[1:min(len(data), row+1)]
		unPNG(data[0], line, last, pixel)
		out = append(out, line...)
		last = append(last[:0], line...)
		last = append(last, make([]byte, row-len(line))...)
		data = data[1+len(line):]
	}
	return out
}

// unPNG undoes a PNG filter in a line.
func unPNG(filter byte, line, up []byte, pixel int) {
	for i := range line { // paid: by unpredict
		var left, corner byte
		if i >= pixel {
			left, corner = line[i-pixel], up[i-pixel]
		}
		switch filter {
		case 1:
			line[i] += left
		case 2:
			line[i] += up[i]
		case 3:
			line[i] += byte((int(left) + int(up[i])) / 2)
		case 4:
			line[i] += paeth(int(left), int(up[i]), int(corner))
		}
	}
}

func paeth(a, b, c int) byte {
	abs := func(n int) int { return max(n, -n) }
	p := a + b - c
	switch pa, pb, pc := abs(p-a), abs(p-b), abs(p-c); {
	case pa <= pb && pa <= pc:
		return byte(a)
	case pb <= pc:
		return byte(b)
	}
	return byte(c)
}

// unLZW decompresses LZW as in PDF and TIFF: codes of 9 to 12 bits, 256 clears the table, 257 ends. An entry of the
// table is the output of the previous code plus one byte, which are adjacent in the output.
func (f *file) unLZW(data []byte, early int) []byte {
	const clearCode, end, most = 256, 257, 4096
	var out []byte
	var start, length [most]int // of each entry, in out
	next, width := end+1, 9
	for bits, held, i := uint32(0), 0, 0; len(out) <= maxStream && f.spend(1); {
		for held < width { // paid: two bytes
			if i >= len(data) {
				return out
			}
			bits, held, i = bits<<8|uint32(data[i]), held+8, i+1
		}
		held -= width
		code := int(bits >> held & (1<<width - 1))
		if code == clearCode {
			next, width = end+1, 9
			continue
		}
		at := len(out)
		switch {
		case code < 256:
			out = append(out, byte(code))
		case code > end && code < next && f.spend(length[code]/bytesPerWork):
			for k := range length[code] { // paid: at most 4096 bytes; it may end with the first byte that it writes
				out = append(out, out[start[code]+k])
			}
		default:
			return out
		}
		if next < most {
			start[next], length[next] = at, len(out)-at+1
			next++
		}
		if next-1+early >= 1<<width && width < 12 {
			width++
		}
	}
	return out
}

func un85(data []byte) []byte {
	data = bytes.TrimPrefix(bytes.TrimSpace(data), []byte("<~"))
	data, _, _ = bytes.Cut(data, []byte("~"))
	data = bytes.Map(func(r rune) rune { // skip what is not a digit
		if r == 'z' || r >= '!' && r <= 'u' {
			return r
		}
		return -1
	}, data)
	out := make([]byte, min(4*len(data), maxStream)+4)
	n, _, _ := ascii85.Decode(out, data, true) // keep what precedes damage
	return out[:n]
}

func (f *file) unRuns(data []byte) []byte {
	var out []byte
	for i := 0; i < len(data) && len(out) < maxStream && f.spend(1); {
		n := int(data[i])
		i++
		switch {
		case n == 128:
			return out
		case n < 128:
			end := min(len(data), i+n+1)
			out = append(out, data[i:end]...)
			i = end
		case i < len(data):
			out = append(out, bytes.Repeat(data[i:i+1], 257-n)...)
			i++
		}
	}
	return out
}
