package pdf

import (
	_ "embed" // for the table of names
	"strconv"
	"strings"
)

// glyphNames has the names of glyphs as the Adobe Glyph List has them, a line for those of ASCII from the space on, one
// for those of Latin-1 from U+00A1 on, one for others with their code points, and one for the codes above ASCII of
// Adobe's standard encoding.
//
//go:embed glyphs.txt
var glyphNames string

// glyphTexts says what glyphs say by their names, standardEncoding what codes say in Adobe's standard encoding.
var glyphTexts, standardEncoding = readGlyphNames()

func readGlyphNames() (texts map[string]string, standard [256]string) {
	texts = map[string]string{}
	lines := strings.Split(strings.TrimSpace(glyphNames), "\n\n")
	code := rune(' ')
	for name := range strings.FieldsSeq(lines[0]) {
		texts[name] = string(code)
		standard[code] = string(code)
		code++
	}
	code = 0xA1
	for name := range strings.FieldsSeq(lines[1]) {
		texts[name] = string(code)
		code++
	}
	hex := func(digits string) rune {
		n, _ := strconv.ParseUint(digits, 16, 32) // all of them are numbers
		return rune(n)
	}
	for entry := range strings.FieldsSeq(lines[2]) {
		name, codes, _ := strings.Cut(entry, "=")
		for digits := range strings.SplitSeq(codes, "+") {
			texts[name] += string(hex(digits))
		}
	}
	standard['\''], standard['`'] = "’", "‘"
	for entry := range strings.FieldsSeq(lines[3]) {
		digits, name, _ := strings.Cut(entry, "=")
		standard[hex(digits)] = texts[name]
	}
	return texts, standard
}

// textOfGlyph returns what a glyph says by its name: "eacute", "uni00E9", "u1F600", "f_i", "a.alt".
func textOfGlyph(name string) string {
	if text, ok := glyphTexts[name]; ok {
		return text
	}
	name, _, _ = strings.Cut(name, ".")
	if text, ok := glyphTexts[name]; ok {
		return text
	}
	for _, form := range [...]struct {
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
		for part := range strings.SplitSeq(name, "_") {
			b.WriteString(glyphTexts[part])
		}
		return b.String()
	}
	return ""
}
