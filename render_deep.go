package ibid

import "strings"

// deepest is how many quotes and lists may start on one line. Goldmark needs time in the square of it.
const deepest = 64

// tooDeep returns the offsets of the first block mark of each line that would nest deeper than deepest.
func tooDeep(txt string) []int {
	var out []int
	for start := 0; start < len(txt); {
		end := strings.IndexByte(txt[start:], '\n') + 1
		if end == 0 {
			end = len(txt) - start
		}
		line := txt[start : start+end]
		marks := 0
		for i := 0; end > deepest && i < len(line) && strings.IndexByte(">-+*. \t)0123456789", line[i]) >= 0; i++ {
			isMark := line[i] == '>' ||
				i+1 < len(line) && strings.IndexByte("-+*.)", line[i]) >= 0 && isSpaceByte(line[i+1])
			if !isMark {
				continue
			}
			if marks++; marks > deepest {
				out = append(out, start+i)
				break
			}
		}
		start += end
	}
	return out
}

// shallow returns txt with each line that nests too deep made text from there on. Offsets stay as they are.
func shallow(txt string) []byte {
	source := []byte(txt)
	for _, at := range tooDeep(txt) {
		source[at] = 'x'
	}
	return source
}

// escapeAt returns txt with a backslash before each of the offsets, which ascend.
func escapeAt(txt string, offsets []int) string {
	if len(offsets) == 0 {
		return txt
	}
	var b strings.Builder
	b.Grow(len(txt) + len(offsets))
	last := 0
	for _, at := range offsets {
		b.WriteString(txt[last:at])
		b.WriteByte('\\')
		last = at
	}
	b.WriteString(txt[last:])
	return b.String()
}
