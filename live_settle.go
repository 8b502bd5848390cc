package ibid

import (
	"slices"
	"strings"
)

// settled reports whether a place of a text that goes on stays where it is, whatever comes. Overdue says that enough
// was waited for what would do no harm: emphasis that may yet be closed behind the place.
func (p safePlaces) settled(st *stop, overdue bool) bool {
	if st.own || len(p.lines) == 0 || !looksPast(p.text[st.at:]) || p.mayBeRow(st.at) {
		return false
	}
	if st.at > 0 && p.text[st.at-1] == '!' && p.text[st.at] == '[' { // an image, should the bracket close
		return false
	}
	switch p.openBefore(st.at) {
	case openSolid:
		return false
	case openPhrase:
		return overdue || st.at > 0 && endsSentence(strings.TrimRight(p.text[:st.at], `"'”’»)`))
	default:
		return true
	}
}

// inRaw reports whether at stands in a block of code or HTML.
func (p safePlaces) inRaw(at int) bool {
	b, _ := slices.BinarySearchFunc(p.blocks, at, func(t topBlock, at int) int { return t.start - at })
	return b > 0 && p.blocks[b-1].raw
}

// looksPast reports whether rest, which follows a place, is enough to know that no word, punctuation or markup goes on
// there.
func looksPast(rest string) bool {
	const longest = 40 // bytes; an entity has 33
	n := strings.IndexAny(rest, " \t\r\n")
	if n < 0 {
		return len(rest) >= longest
	}
	after := strings.TrimLeft(rest[n:], " \t")
	return after != ""
}

// mayBeRow reports whether the line of at may turn out to be the head of a table, whose cells end before their bars.
// The next line tells.
func (p safePlaces) mayBeRow(at int) bool {
	start := strings.LastIndexByte(p.text[:at], '\n') + 1
	row, next, whole := strings.Cut(p.text[start:], "\n")
	if !strings.Contains(row, "|") {
		return false
	}
	if line, ok := p.lineAt(
		at,
	); ok && strings.Contains(strings.Trim(row, "| \t\r"), "|") &&
		!strings.Contains(p.text[line.Start:line.End], "|") {
		return false // a cell already
	}
	if !whole || next == "" {
		return true
	}
	under, _, done := strings.Cut(next, "\n")
	return !done && strings.Trim(under, "|:-> \t\r") == ""
}

// openness says what stands open before a place.
type openness uint8

const (
	openNothing openness = iota
	openPhrase           // emphasis: a marker in it does no harm
	openSolid            // code, a link, a tag, math: a marker must not go into it
)

// openBefore returns what stands open before at and would take it in, were it closed behind.
func (p safePlaces) openBefore(at int) openness {
	open, brackets := openNothing, 0
	from := p.contextStart(at)
	k, _ := slices.BinarySearchFunc(p.solids, from, func(s solid, at int) int { return s.Start - at })
	for i := from; i < at; {
		stop := at // up to the next solid
		if k < len(p.solids) {
			stop = min(stop, p.solids[k].Start)
		}
		n := strings.IndexAny(p.text[i:stop], "\\`[]<$*_~")
		if n < 0 {
			if stop < at && isOpenTag(p.text[stop:p.solids[k].End]) {
				return openSolid
			} else if stop < at {
				stop = p.solids[k].End
				k++
			}
			i = stop
			continue
		}
		i += n
		what, size := p.opener(i, at)
		switch {
		case what == openSolid:
			return openSolid
		case what == openPhrase:
			open = openPhrase
		case p.text[i] == '[':
			brackets++
		case p.text[i] == ']':
			brackets = max(0, brackets-1)
		}
		i += size
	}
	if brackets > 0 || p.mathBefore(at) {
		return openSolid
	}
	return open
}

// opener returns what the sign at i may open, before at, and how long it is.
func (p safePlaces) opener(i, at int) (what openness, size int) {
	size = 1
	switch rest := p.text[i:]; rest[0] {
	case '`':
		what = openSolid
	case '\\':
		if size = 2; i+1 < at && (rest[1] == '(' || rest[1] == '[') {
			what = openSolid
		}
	case ']':
		if strings.HasPrefix(rest[1:], "(") || strings.HasPrefix(rest[1:], ":") {
			what = openSolid
		}
	case '<', '$':
		if p.opensAt(i, at) {
			what = openSolid
		}
	case '*', '_', '~':
		size = len(rest) - len(strings.TrimLeft(rest, rest[:1]))
		if p.opensPhrase(i, i+size) {
			what = openPhrase
		}
	}
	return what, size
}

// mathBefore reports whether math may stand open before at: it reaches up to a blank line.
func (p safePlaces) mathBefore(at int) bool {
	start := max(0, strings.LastIndex(p.text[:at], "\n\n"), strings.LastIndex(p.text[:at], "\r\n\r\n"))
	for i := start; ; i++ {
		n := strings.IndexAny(p.text[i:at], `\$`)
		if n < 0 || i+n+1 >= at {
			return false
		}
		i += n
		if s, ok := p.solidAround(i + 1); ok {
			i = s.End - 1
			continue
		}
		switch p.text[i : i+2] {
		case `\(`, `\[`, "$$":
			return true
		}
		if p.text[i] == '\\' {
			i++
		}
	}
}

// opensAt reports whether the sign at i may open a tag, an address or math in which at stands.
func (p safePlaces) opensAt(i, at int) bool {
	if i+1 >= len(p.text) {
		return true
	}
	next := p.text[i+1]
	switch {
	case p.text[i] == '<':
		return isASCIIAlnum(rune(next)) || next == '/' || next == '!' || next == '?'
	case next == '$':
		return true
	default:
		return !isSpaceByte(next) && at-i < mathWindow && !strings.Contains(p.text[i:at], "\n")
	}
}

// opensPhrase reports whether the run of delimiters from i to end may open emphasis that is still to be closed.
func (p safePlaces) opensPhrase(i, end int) bool {
	if end < len(p.text) && isSpaceByte(p.text[end]) {
		return false
	}
	if _, ok := p.phraseAround(i + 1); ok { // it is closed, or stands in what is
		return false
	}
	return p.text[i] != '_' || i == 0 || !isASCIIAlnum(rune(p.text[i-1]))
}

// contextStart returns where the paragraph, item or row of at begins, or a place before.
func (p safePlaces) contextStart(at int) int {
	for at > 0 {
		start := strings.LastIndexByte(p.text[:at], '\n') + 1
		line := strings.TrimLeft(p.text[start:at], " \t>")
		switch {
		case start == 0, line != "" && strings.IndexByte("#|", line[0]) >= 0, len(itemMark([]byte(line))) == 1:
			return start
		case strings.HasSuffix(p.text[:start], "\n\n"), strings.HasSuffix(p.text[:start], "\r\n\r\n"):
			return start
		}
		at = start - 1
	}
	return 0
}

// isOpenTag reports whether s is the tag of an HTML element that holds no prose, as long as that is not closed.
func isOpenTag(s string) bool {
	if s[0] != '<' || strings.Contains(s, "</") {
		return false
	}
	name := strings.ToLower(s[1:])
	name = name[:max(0, strings.IndexFunc(name, func(r rune) bool { return !isASCIIAlnum(r) }))]
	switch name {
	case "a", "button", "code", "kbd", "math", "pre", "samp", "script", "style", "svg", "textarea", "title":
		return true
	}
	return false
}
