package pdf

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/ascii85"
	"io"
)

// maxStream is how many bytes one stream of a PDF unpacks to at most; what is more is left out.
const maxStream = 64 << 20

// decode returns what a stream holds, unpacked. Streams that are damaged give what can be read of them; images give
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
	const most = 8 // filters behind each other
	f.spend(1)
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
		return f.unpredict(unLZW(data, early), param)
	case "ASCIIHexDecode", "AHx":
		l := lexer{b: append([]byte{'<'}, data...), spend: f.spend}
		s, _ := l.hex().(byteString)
		return []byte(s)
	case "ASCII85Decode", "A85":
		return un85(data)
	case "RunLengthDecode", "RL":
		return unRuns(data)
	}
	return nil
}

// inflate unpacks zlib's format, or what follows its head where that is damaged.
func (f *file) inflate(data []byte) []byte {
	r, err := zlib.NewReader(paidReader{bytes.NewReader(data), f})
	if err != nil {
		if len(data) < 2 {
			return nil
		}
		r = flate.NewReader(paidReader{bytes.NewReader(data[2:]), f})
	}
	out, _ := io.ReadAll(io.LimitReader(r, maxStream)) // what comes before damage counts
	return out
}

// paidReader counts what is read of packed data, which may unpack to nothing and take long to do so.
type paidReader struct {
	io.Reader

	f *file
}

func (r paidReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if !r.f.spend(n / bytesPerWork) {
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
	if predictor < 2 {
		return data
	}
	bits := number("Colors", 1) * number("BitsPerComponent", 8)
	if bits > 1<<10 {
		return nil
	}
	pixel, row := max(1, bits/8), min(len(data), (bits*number("Columns", 1)+7)/8)
	if predictor == 2 {
		for start := 0; start+row <= len(data); start += row {
			for i := start + pixel; i < start+row; i++ {
				data[i] += data[i-pixel]
			}
		}
		return data
	}
	out := make([]byte, 0, len(data))
	last := make([]byte, row)
	for len(data) > 1 {
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
	for i := range line {
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

// unLZW unpacks LZW as PDF and TIFF have it: codes of 9 to 12 bits, 256 clears the table, 257 ends. An entry of the
// table is what the code before it gave and one byte more, which stand one after the other in what is unpacked already.
func unLZW(data []byte, early int) []byte {
	const clearCode, end, most = 256, 257, 4096
	var out []byte
	var start, length [most]int // of each entry, in out
	next, width := end+1, 9
	for bits, held, i := uint32(0), 0, 0; len(out) <= maxStream; {
		for held < width {
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
		case code > end && code < next:
			for k := range length[code] { // it may end in the byte that is written first
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
	data = bytes.Map(func(r rune) rune { // what is no digit is passed over
		if r == 'z' || r >= '!' && r <= 'u' {
			return r
		}
		return -1
	}, data)
	out := make([]byte, min(4*len(data), maxStream)+4)
	n, _, _ := ascii85.Decode(out, data, true) // what comes before damage counts
	return out[:n]
}

func unRuns(data []byte) []byte {
	var out []byte
	for i := 0; i < len(data) && len(out) < maxStream; {
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
