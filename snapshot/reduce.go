package snapshot

import (
	"html"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A reduction is a text reduced to its significant characters. Texts that say the same in another form reduce to the
// same: docs/attribution-v1.md lists what is significant.
type reduction struct {
	text string
	out  []byte
	at   []uint32 // for each byte of out, the start of its character in text
}

// reduceOptions are the options of reduce.
type reduceOptions struct {
	fold    bool                  // ignore case
	apart   bool                  // do not take digits after a space for the next group of a number
	comma   bool                  // the decimal sign is a comma, and groups of digits are separated by points
	borders func(int) (next bool) // reports whether a block begins at an offset; nil means none does
}

// reduce reduces a text, in linear time.
func reduce(text string, o reduceOptions) *reduction {
	r := reducer{
		reduction: &reduction{text: text, out: make([]byte, 0, len(text)), at: make([]uint32, 0, len(text))},
		options:   o,
	}
	for i := 0; i < len(text); {
		i = r.next(i)
	}
	return r.reduction
}

// span returns the place in the text of out[from:to].
func (r *reduction) span(from, to int) hit {
	start := int(r.at[from])
	if r.out[from] == signByte || r.out[from] == parenByte {
		_, n := utf8.DecodeLastRuneInString(r.text[:start])
		start -= n
	}
	last := int(r.at[to-1])
	_, n := character(r.text[last:])
	return hit{start, last + n}
}

// before returns the number of bytes of out that stand for text[:pos].
func (r *reduction) before(pos int) int {
	return sort.Search(len(r.at), func(i int) bool { return int(r.at[i]) >= pos })
}

// reducer reduces a text character by character.
type reducer struct {
	*reduction

	options  reduceOptions
	last     kind   // of the previous significant character
	char     rune   // that character
	gap      []rune // what is between it and the next, without what is left out
	previous [2]rune
}

// kind is the class of a character for a [reducer].
type kind uint8

const (
	noKind kind = iota // punctuation, white space and the like
	letterKind
	digitKind
	otherKind // symbols and the like
)

// The significant separators between two characters. None of them is a character that a reducer takes from a text.
const (
	signByte    = '-'
	parenByte   = '(' // around a number, the notation of accounts for a loss
	dashByte    = '_' // of any length, between digits
	otherByte   = ' ' // anything else between digits, or between words
	loweredByte = '\\'
)

// maxGap is how many characters between two significant ones are examined: more are no hyphen and no sign.
const maxGap = 8

// next reads the character at an offset, or what is left out there, and returns the offset after it.
func (r *reducer) next(i int) int {
	c, n := character(r.text[i:])
	switch {
	case r.text[i] == '&': // a character reference
	case c == '[':
		glued := i > 0 && r.text[i-1] != ' '
		if end := bracketMark(r.text[i:], glued); end > 0 {
			return i + end
		}
	case '0' <= c && c <= '9' || '０' <= c && c <= '９':
		return r.number(i)
	case c == '^':
		rest := strings.TrimLeft(r.text[i+n:min(len(r.text), i+n+4)], "{(-−")
		if startsWithDigit(rest) {
			if r.isAfterNumber() {
				r.emit('^', i)
			}
			return i + n
		}
	case isScript(c):
		return r.script(i)
	case c == '×' && r.last == digitKind:
		r.emit('x', i) // as most people write it
		return i + n
	}
	if c >= 0x2000 {
		if s, ok := compatible(c); ok {
			for _, one := range s {
				r.emit(one, i)
			}
			return i + n
		}
	}
	r.emit(c, i)
	return i + n
}

// isAfterNumber reports whether the previous character, without any gap, ends a number or a bracketed term.
func (r *reducer) isAfterNumber() bool {
	return len(r.gap) == 0 && r.last == digitKind || len(r.gap) == 1 && r.gap[0] == ')'
}

// number reads an integer with its groups of three digits: 12,500 and 12 500 are 12500.
func (r *reducer) number(i int) int {
	grouped := 0 // end of the number with its groups
	if digits := countDigits(r.text[i:]); digits <= 3 && !r.isFraction() {
		for end := i + width(r.text[i:], digits); ; {
			sep, n := utf8.DecodeRuneInString(r.text[end:])
			next := end + n
			if !r.separatesGroups(sep, next) || countDigits(r.text[next:]) != 3 {
				break
			}
			end = next + width(r.text[next:], 3)
			grouped = end
		}
	}
	end := max(grouped, i+width(r.text[i:], countDigits(r.text[i:])))
	first := true
	for at := i; at < end; {
		c, n := utf8.DecodeRuneInString(r.text[at:])
		if c >= '０' {
			c += '0' - '０'
		}
		if unicode.IsDigit(c) {
			if !first {
				r.gap = r.gap[:0]
			}
			r.emit(c, at)
			first = false
		}
		at += n
	}
	return end
}

// isFraction reports whether the next digits continue a number, after a decimal sign.
func (r *reducer) isFraction() bool {
	return r.last == digitKind && len(r.gap) == 1 && joinsDigits(r.gap[0]) || r.last == digitKind && len(r.gap) == 0
}

func (r *reducer) separatesGroups(sep rune, next int) bool {
	switch sep {
	case ',':
		return !r.options.comma
	case '.':
		return r.options.comma
	case ' ':
		return !r.options.apart && (r.options.borders == nil || !r.options.borders(next))
	case '\'', '’':
		return true
	}
	return false
}

// countDigits counts the digits that a text begins with.
func countDigits(s string) int {
	n := 0
	for _, c := range s {
		if (c < '0' || '9' < c) && (c < '０' || '９' < c) {
			break
		}
		n++
	}
	return n
}

// width returns the length in bytes of a text's first characters.
func width(s string, characters int) int {
	at := 0
	for range characters {
		_, n := utf8.DecodeRuneInString(s[at:])
		at += n
	}
	return at
}

// script reads a raised or lowered number: after another number it is a power or an index, after a letter a digit, and
// where only a note can be meant, nothing.
func (r *reducer) script(i int) int {
	end, raised := i, true
	var plain []rune
	for end < len(r.text) {
		c, n := utf8.DecodeRuneInString(r.text[end:])
		if !isScript(c) {
			break
		}
		for form, of := range [2]string{raisedScript, loweredScript} {
			if at := strings.IndexRune(of, c); at >= 0 {
				plain, raised = append(plain, []rune(plainScript)[utf8.RuneCountInString(of[:at])]), form == 0
			}
		}
		end += n
	}
	if raised && isAfterNoted(r.text[max(0, i-64):i]) {
		return end
	}
	if r.isAfterNumber() {
		r.emit(map[bool]rune{true: '^', false: loweredByte}[raised], i)
	}
	for _, c := range plain {
		r.emit(c, i)
	}
	return end
}

func isScript(c rune) bool {
	return c > 0xb0 && (strings.ContainsRune(raisedScript, c) || strings.ContainsRune(loweredScript, c))
}

// emit adds a character, if it is significant, with what is significant before it.
func (r *reducer) emit(c rune, start int) {
	k := kindOf(c)
	if c == minus {
		if _, n := character(r.text[start:]); startsWithDigit(r.text[start+n:]) {
			k = noKind // a sign or between digits, like a hyphen
		}
	}
	if k == noKind && c != loweredByte {
		if len(r.gap) <= maxGap {
			r.gap = append(r.gap, c)
		}
		r.previous = [2]rune{r.previous[1], c}
		return
	}
	if r.options.fold {
		c = unicode.ToLower(c)
	}
	if b := r.between(start, c, k); b != 0 {
		r.out, r.at = append(r.out, b), append(r.at, uint32(start)) //nolint:gosec // MaxBytes fits
	}
	r.out = utf8.AppendRune(r.out, c)
	for len(r.at) < len(r.out) {
		r.at = append(r.at, uint32(start)) //nolint:gosec // MaxBytes fits
	}
	r.last, r.char, r.gap = k, c, r.gap[:0]
	r.previous = [2]rune{r.previous[1], c}
}

// between returns the significant separator before a character.
func (r *reducer) between(start int, c rune, k kind) byte {
	if len(r.gap) == 0 {
		return 0
	}
	switch {
	case k == digitKind && isDash(r.previous[1]) && !isWordy(r.previous[0]):
		return signByte
	case k == digitKind && r.previous[1] == '(' && isAccounting(r.text[start:]):
		return parenByte
	case k == digitKind && r.last == digitKind:
		return betweenDigits(string(r.gap))
	case k == letterKind && r.last == letterKind:
		return betweenLetters(string(r.gap), r.char, c)
	}
	return 0
}

// isWordy reports whether a dash after a character is no sign.
func isWordy(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) || isDash(r)
}

// character returns the first character of a text and its length, where a character reference of HTML is the character
// that it stands for, also if it was escaped again: &amp;amp;lt;.
func character(s string) (rune, int) {
	if s[0] != '&' {
		if s[0] < utf8.RuneSelf {
			return rune(s[0]), 1
		}
		return utf8.DecodeRuneInString(s)
	}
	const longest = 12
	end := strings.IndexByte(s[:min(len(s), longest)], ';') + 1
	if end < 3 {
		return '&', 1
	}
	out := html.UnescapeString(s[:end])
	c, n := utf8.DecodeRuneInString(out)
	if n != len(out) {
		return '&', 1
	}
	for range 3 {
		if c != '&' {
			break
		}
		more := strings.IndexByte(s[end:min(len(s), end+longest)], ';') + 1
		if more == 0 {
			break
		}
		out = html.UnescapeString("&" + s[end:end+more])
		next, n := utf8.DecodeRuneInString(out)
		if n != len(out) {
			break
		}
		c, end = next, end+more
	}
	return c, end
}

// compatible returns the characters that a ligature, a full-width letter or another compatibility character stands for.
func compatible(c rune) (string, bool) {
	switch {
	case 0xfb00 <= c && c <= 0xfb4f, 0xff01 <= c && c <= 0xff9f, 0x1d400 <= c && c <= 0x1d7ff,
		0x2100 <= c && c <= 0x214f, 0x3300 <= c && c <= 0x33ff, 0xfe70 <= c && c <= 0xfefc,
		0xfb50 <= c && c <= 0xfdff, 0x2160 <= c && c <= 0x217f:
		s := string(c)
		out := norm.NFKC.String(s)
		return out, out != s
	}
	return "", false
}

// maxMarked is the maximum length in bytes of a mark in brackets.
const maxMarked = 48

// markWords are the marks in brackets that are not part of what a text says.
var markWords = map[string]bool{
	"sic": true, "edit": true, "citation needed": true, "when?": true, "who?": true, "by whom?": true, "why?": true,
	"clarification needed": true, "update": true, "dead link": true, "better source needed": true,
	"verification needed": true, "original research?": true, "failed verification": true, "bearbeiten": true,
	"modifier": true, "editar": true, "modifica": true, "bewerken": true,
	"編集": true, "编辑": true, "編輯": true, "要出典": true, "來源請求": true, "来源请求": true,
	"réf. nécessaire": true, "cita requerida": true, "senza fonte": true, "source?": true, "page needed": true,
}

// bracketMark returns the length of a mark in brackets that a text begins with, such as [2] or [citation needed], or 0.
// Several numbers are a mark only if they are glued to a word: an interval is none.
func bracketMark(s string, glued bool) int {
	end := strings.IndexByte(s[:min(len(s), maxMarked)], ']')
	if end < 2 {
		return 0
	}
	inner := strings.ToLower(strings.TrimSpace(s[1:end]))
	next, _ := utf8.DecodeRuneInString(s[end+1:])
	switch {
	case markWords[strings.TrimPrefix(inner, "^")]:
	case len(inner) == 1 && 'a' <= inner[0] && inner[0] <= 'z':
		if unicode.IsLetter(next) || s[1] < 'a' { // [t]he
			return 0
		}
	default:
		for _, name := range []string{"note ", "n ", "nb ", "fn ", "anm. ", "ref ", "^"} {
			inner = strings.TrimPrefix(inner, name)
		}
		digits := 0
		for _, c := range inner {
			switch {
			case '0' <= c && c <= '9':
				digits++
			case digits == 0 || !glued || c != ',' && c != ' ' && c != '-' && c != '–':
				return 0
			}
		}
		if digits == 0 || digits > 3 && !strings.ContainsAny(inner, ",-–") || startsWithDigit(s[end+1:]) {
			return 0
		}
	}
	return end + 1
}
