package pdf

import (
	_ "embed" // for the table of names
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/charmap"
)

// Bounds of one font.
const (
	maxCodes     = 1 << 16 // codes whose widths or texts are read
	maxGlyphText = 512     // bytes of the text of one code, as in the format; longer ones are ignored
)

// Approximate memory use of fonts.
const (
	sizeOfFont = 8 << 10 // bytes
	sizeOfCode = 64
)

// typeface maps the codes of a font to text and to the widths of their glyphs, in thousandths of the font's size.
type typeface struct {
	wide     bool // codes have two bytes, unless unicode has other lengths
	unicode  *charMap
	utf16    bool // codes are UTF-16
	simple   [256]string
	widths   map[int]float64
	fallback float64 // the width of glyphs without one; 0 means that it is guessed
	scale    float64 // of widths; 0.001 except for fonts drawn by operators
}

// glyph is one code of a string that is shown.
type glyph struct {
	text  string
	width float64 // in the unit of text space
	space bool    // the single byte 32: word spacing is added
	known bool
}

// font reads a font, once.
func (f *file) font(x any) *typeface {
	d := f.dict(x)
	if d == nil {
		return nil
	}
	key := reflect.ValueOf(d).Pointer() // a font may be inline in the resources
	if font := f.fonts[key]; font != nil {
		return font
	}
	if !f.spend(sizeOfFont/bytesPerWork) || !f.hold(sizeOfFont) {
		return nil
	}
	font := &typeface{widths: map[int]float64{}, scale: 0.001}
	if s, ok := f.resolve(d["ToUnicode"]).(*stream); ok {
		font.unicode = f.readMap(s)
	}
	if d["Subtype"] == nameObject("Type0") {
		f.composite(font, d)
	} else {
		f.simpleFont(font, d)
	}
	f.fonts[key] = font
	return font
}

// composite reads a font whose codes have several bytes.
func (f *file) composite(font *typeface, d dict) {
	font.wide = true
	if name, ok := f.resolve(d["Encoding"]).(nameObject); ok {
		font.utf16 = strings.Contains(string(name), "UTF16") || strings.Contains(string(name), "UCS2")
	}
	var below dict
	if kids := f.array(d["DescendantFonts"]); len(kids) > 0 {
		below = f.dict(kids[0])
	}
	font.fallback = f.number(below["DW"], 1000)
	f.widths(font, f.array(below["W"]))
}

// widths reads the widths of codes: [from [width ...] from to width ...].
func (f *file) widths(font *typeface, list []any) {
	left := maxCodes
	for i := 0; i+1 < len(list) && left > 0 && f.spend(1); {
		from := int(f.number(list[i], -1))
		if widths := f.array(list[i+1]); widths != nil {
			widths = widths[:min(len(widths), left)]
			for k, w := range widths { // paid: by countCodes
				font.widths[from+k] = f.number(w, font.fallback)
			}
			left -= f.countCodes(len(widths))
			i += 2
			continue
		}
		if i+2 >= len(list) {
			return
		}
		to, w := int(f.number(list[i+1], -1)), f.number(list[i+2], font.fallback)
		to = min(to, from+left-1)
		for code := from; code <= to; code++ { // paid: by countCodes
			font.widths[code] = w
		}
		left -= f.countCodes(to - from + 1)
		i += 3
	}
}

// countCodes counts the work and memory for codes of a font, and returns their number.
func (f *file) countCodes(codes int) int {
	codes = max(0, codes)
	f.spend(codes)
	f.hold(codes * sizeOfCode)
	return codes
}

// simpleFont reads a font whose codes are bytes.
func (f *file) simpleFont(font *typeface, d dict) {
	base, _ := f.resolve(d["BaseFont"]).(nameObject)
	firstChar := min(256, max(0, int(f.number(d["FirstChar"], 0))))
	widths := f.array(d["Widths"])
	for i, w := range widths[:min(len(widths), 256-firstChar)] { // paid: by font
		font.widths[firstChar+i] = f.number(w, 0)
	}
	font.fallback = f.number(f.dict(d["FontDescriptor"])["MissingWidth"], 0)
	if len(font.widths) == 0 && strings.Contains(string(base), "Courier") {
		font.fallback = 600
	}
	if m := f.array(d["FontMatrix"]); len(m) == 6 && d["Subtype"] == nameObject("Type3") {
		font.scale = f.number(m[0], 0.001)
	}
	encoding := f.resolve(d["Encoding"])
	name, _ := encoding.(nameObject)
	diffs, _ := encoding.(dict)
	if own, ok := f.resolve(diffs["BaseEncoding"]).(nameObject); ok {
		name = own
	}
	if name == "" && d["Subtype"] == nameObject("TrueType") {
		name = "WinAnsiEncoding"
	}
	font.simple = f.encoding(name)
	code := 0
	for _, x := range f.array(diffs["Differences"]) {
		if !f.spend(1) {
			return
		}
		switch x := f.resolve(x).(type) {
		case float64:
			code = int(x)
		case nameObject:
			if code >= 0 && code < 256 && f.spend(1+len(x)/bytesPerWork) {
				font.simple[code] = textOfGlyph(string(x))
			}
			code++
		}
	}
}

// encoding returns the named encoding, or Adobe's standard encoding if the name is unknown.
func (f *file) encoding(name nameObject) (table [256]string) {
	var m *charmap.Charmap
	switch name {
	case "WinAnsiEncoding":
		m = charmap.Windows1252
	case "MacRomanEncoding":
		m = charmap.Macintosh
	default:
		return standardEncoding
	}
	for code := range 256 { // paid: by font
		if r := m.DecodeByte(byte(code)); r >= ' ' && r != 0xFFFD {
			table[code] = string(r)
		}
	}
	return table
}

// glyphs returns the glyphs of a string.
func (font *typeface) glyphs(s string) iter.Seq[glyph] {
	return func(yield func(glyph) bool) {
		for len(s) > 0 { // paid: by show
			n := 1
			if font.wide {
				n = min(2, len(s))
			}
			if font.unicode != nil {
				n = font.unicode.length(s, n)
			}
			code := codeOf(s[:n])
			g := glyph{space: n == 1 && code == ' '}
			g.text, g.known = font.meaning(s[:n], code)
			g.width = font.width(code, g.text) * font.scale
			s = s[n:]
			if !yield(g) {
				return
			}
		}
	}
}

// meaning returns the text of a code, and whether it is known.
func (font *typeface) meaning(raw string, code int) (string, bool) {
	if font.unicode != nil {
		if text, ok := font.unicode.lookup(raw, code); ok {
			return text, true
		}
	}
	switch {
	case font.utf16:
		return utf16BE(raw), true
	case font.wide:
		return "", false
	}
	return font.simple[code&0xff], font.simple[code&0xff] != ""
}

func (font *typeface) width(code int, text string) float64 {
	if w, ok := font.widths[code]; ok {
		return w
	}
	if font.fallback > 0 {
		return font.fallback
	}
	return guessWidth(text)
}

// guessWidth returns the approximate width of a glyph in the standard fonts, for which files need not have widths.
func guessWidth(text string) float64 {
	switch {
	case text == "":
		return 0
	case strings.ContainsAny(text, "iljt.,;:'|!I fr()[]/"):
		return 278
	case strings.ContainsAny(text, "mwMW@%—"):
		return 830
	case text[0] >= 'A' && text[0] <= 'Z':
		return 670
	}
	return 540
}

// charMap is a map from codes to text: ToUnicode.
type charMap struct {
	lengths [5][]codeRange // of the codes of each length
	spaces  int            // number of lengths
	chars   map[string]string
	ranges  []textRange // sorted by from
	took    int         // approximate memory in bytes
}

type codeRange struct{ from, to string }

// textRange maps consecutive codes to consecutive texts.
type textRange struct {
	size, from, to int
	text           string
}

// readMap reads a map.
func (f *file) readMap(s *stream) *charMap {
	m := &charMap{chars: map[string]string{}}
	l := lexer{b: f.decode(s), spend: f.spend}
	var args []any
	for {
		x := l.next()
		op, isOp := x.(operator)
		if !isOp {
			if l.countValue(x) {
				args = append(args, x)
			}
			continue
		}
		l.took = 0
		if op == endOfInput {
			slices.SortStableFunc(m.ranges, func(x, y textRange) int { return x.from - y.from })
			return m
		}
		before := m.took
		m.operator(op, args)
		f.hold(m.took - before)
		args = args[:0]
	}
}

// hasRoom reports whether a code with the text to may be added.
func (m *charMap) hasRoom(to byteString) bool {
	if len(to) > maxGlyphText || len(m.chars)+len(m.ranges) >= maxCodes {
		return false
	}
	m.took += sizeOfCode + len(to)
	return true
}

func (m *charMap) operator(op operator, args []any) {
	switch op {
	case "endcodespacerange":
		m.addLengths(args)
	case "endbfchar":
		for i := 0; i+1 < len(args); i += 2 { // paid: each was read
			from, _ := args[i].(byteString)
			if to, ok := args[i+1].(byteString); ok && len(from) <= 4 && m.hasRoom(to) {
				m.chars[string(from)] = utf16BE(string(to))
			}
		}
	case "endbfrange":
		m.addRanges(args)
	default: // the rest is for PostScript interpreters
	}
}

func (m *charMap) addLengths(args []any) {
	const most = 256
	for i := 0; i+1 < len(args); i += 2 { // paid: each was read
		from, _ := args[i].(byteString)
		to, _ := args[i+1].(byteString)
		if n := len(from); n == len(to) && n > 0 && n <= 4 && m.spaces < most {
			m.lengths[n] = append(m.lengths[n], codeRange{string(from), string(to)})
			m.spaces++
		}
	}
}

func (m *charMap) addRanges(args []any) {
	for i := 0; i+2 < len(args); i += 3 { // paid: each was read
		from, _ := args[i].(byteString)
		to, _ := args[i+1].(byteString)
		low, high := codeOf(string(from)), codeOf(string(to))
		if len(from) == 0 || len(from) != len(to) || len(from) > 4 || high < low {
			continue
		}
		switch target := args[i+2].(type) {
		case byteString:
			if m.hasRoom(target) {
				m.ranges = append(m.ranges, textRange{len(from), low, high, utf16BE(string(target))})
			}
		case []any:
			for k, x := range target[:min(len(target), high-low+1)] { // paid: each was read
				if s, ok := x.(byteString); ok && m.hasRoom(s) {
					m.ranges = append(m.ranges, textRange{len(from), low + k, low + k, utf16BE(string(s))})
				}
			}
		}
	}
}

func codeOf(s string) int {
	code := 0
	for i := range min(len(s), 4) { // paid: four bytes
		code = code<<8 | int(s[i])
	}
	return code
}

// length returns the number of bytes of the code at the beginning of s.
func (m *charMap) length(s string, otherwise int) int {
	for n := 1; n <= min(4, len(s)); n++ { // paid: by show, with workOfLength
		for _, r := range m.lengths[n] { // paid: as above
			if inRange(s[:n], r) {
				return n
			}
		}
	}
	return otherwise
}

// workOfLength is the work of length, for any code.
func (m *charMap) workOfLength() int {
	if m == nil {
		return 0
	}
	return m.spaces / 4
}

// inRange reports whether each byte of a code is in a range.
func inRange(code string, r codeRange) bool {
	for i := range len(code) { // paid: four bytes
		if code[i] < r.from[i] || code[i] > r.to[i] {
			return false
		}
	}
	return true
}

func (m *charMap) lookup(raw string, code int) (string, bool) {
	if text, ok := m.chars[raw]; ok {
		return text, true
	}
	i, found := slices.BinarySearchFunc(m.ranges, code, func(r textRange, code int) int { return r.from - code })
	if !found {
		i--
	}
	if i < 0 || m.ranges[i].to < code || m.ranges[i].size != len(raw) {
		return "", false
	}
	r := m.ranges[i]
	if code == r.from || r.text == "" {
		return r.text, true
	}
	runes := []rune(r.text)
	runes[len(runes)-1] += rune(code - r.from)
	return string(runes), true
}

// glyphNames has the names of glyphs from the Adobe Glyph List: a paragraph for ASCII from the space on, one for
// Latin-1 from U+00A1 on, one for others with their code points, and one for the codes above ASCII in Adobe's standard
// encoding.
//
//go:embed glyphs.txt
var glyphNames string

// glyphTexts maps names of glyphs to text, and standardEncoding the codes of Adobe's standard encoding.
var glyphTexts, standardEncoding = readGlyphNames()

func readGlyphNames() (texts map[string]string, standard [256]string) {
	texts = map[string]string{}
	lines := strings.Split(strings.TrimSpace(glyphNames), "\n\n")
	code := rune(' ')
	for name := range strings.FieldsSeq(lines[0]) { // paid: this table is ours
		texts[name] = string(code)
		standard[code] = string(code)
		code++
	}
	code = 0xA1
	for name := range strings.FieldsSeq(lines[1]) { // paid: as above
		texts[name] = string(code)
		code++
	}
	hex := func(digits string) rune {
		n, _ := strconv.ParseUint(digits, 16, 32) // all are valid numbers
		return rune(n)
	}
	for entry := range strings.FieldsSeq(lines[2]) { // paid: as above
		name, codes, _ := strings.Cut(entry, "=")
		for digits := range strings.SplitSeq(codes, "+") { // paid: as above
			texts[name] += string(hex(digits))
		}
	}
	standard['\''], standard['`'] = "’", "‘"
	for entry := range strings.FieldsSeq(lines[3]) { // paid: as above
		digits, name, _ := strings.Cut(entry, "=")
		standard[hex(digits)] = texts[name]
	}
	return texts, standard
}

// textOfGlyph returns the text of a glyph by its name: "eacute", "uni00E9", "u1F600", "f_i", "a.alt".
func textOfGlyph(name string) string {
	if text, ok := glyphTexts[name]; ok {
		return text
	}
	name, _, _ = strings.Cut(name, ".")
	if text, ok := glyphTexts[name]; ok {
		return text
	}
	for _, form := range [...]struct { // paid: two forms
		prefix string
		most   int
	}{{"uni", 4}, {"u", 6}} {
		if digits, ok := strings.CutPrefix(name, form.prefix); ok && len(digits) >= 4 {
			if n, err := strconv.ParseUint(digits[:min(len(digits), form.most)], 16, 32); err == nil && n <= 0x10FFFF {
				return string(rune(n))
			}
		}
	}
	if strings.Contains(name, "_") && len(name) < 40 {
		var b strings.Builder
		for part := range strings.SplitSeq(name, "_") { // paid: 40 bytes
			b.WriteString(glyphTexts[part])
		}
		return b.String()
	}
	return ""
}
