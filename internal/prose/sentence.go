package prose

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences yields the sentences of text as half-open byte ranges, in order, without the white space around them and
// without the markers their block begins with (bullets, numbers, heading, quote and table signs). A table row is a
// block, and one sentence unless it has a terminator in it. A fenced code block is yielded whole, fences included.
// Lines without words (a rule, the line under a table's head) are left out.
func Sentences(text string) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		s := splitter{text: text, atLine: true, code: true}
		for {
			start, end, ok := s.next()
			if !ok || !yield(start, end) {
				return
			}
		}
	}
}

// SentenceAt returns the sentence of text that contains the offset at or ends there. In the white space after a
// sentence it is that sentence; where no sentence of at's block stands there or before, the range is empty.
//
// The result is one of [Sentences] if that is not longer than [Window] and no fenced code block is near: the lines of
// one are taken for prose.
func SentenceAt(text string, at int) (start, end int) {
	at = clamp(text, at)
	start, end = at, at
	s := splitterNear(text[:runeStart(text, min(len(text), at+Window))], at)
	for {
		b, e, ok := s.next()
		if !ok || b > at {
			return start, end
		}
		start, end = b, e
		if e >= at {
			return start, end
		}
	}
}

// splitter cuts a text into sentences, one after the other.
type splitter struct {
	text   string
	pos    int  // where the next sentence may begin
	atLine bool // pos is the start of a line that starts a block
	alone  bool // the block is only one line
	code   bool // fenced code blocks are wholes
}

// splitterNear returns a splitter that begins with the block that at stands in.
func splitterNear(text string, at int) splitter {
	at = clamp(text, at)
	floor := runeStart(text, max(0, at-Window))
	from := blockStart(text, at, floor)
	if from == 0 || text[from-1] == '\n' {
		return splitter{text: text, pos: from, atLine: true}
	}
	// The block is longer than the window: begin between two words, if there is a place.
	if n := strings.IndexAny(text[from:at], " \n"); n >= 0 {
		from += n
	}
	return splitter{text: text, pos: from}
}

// next returns the next sentence.
func (s *splitter) next() (start, end int, ok bool) {
	for s.pos < len(s.text) {
		if s.atLine {
			kind, content := classify(s.text, s.pos)
			switch {
			case kind == fenceLine && s.code:
				s.pos = fenceEnd(s.text, content)
				return content, content + len(strings.TrimRightFunc(s.text[content:s.pos], isSpace)), true
			case kind == blankLine || kind == ruleLine || kind == fenceLine:
				s.pos = nextLine(s.text, s.pos)
				continue
			}
			s.pos, s.atLine, s.alone = content, false, kind.alone()
		}
		start := s.pos
		end := s.find()
		if start, end = s.trim(start, end); start < end {
			return start, end, true
		}
	}
	return len(s.text), len(s.text), false
}

// find returns the end of the sentence that begins at pos and moves pos behind it.
func (s *splitter) find() int {
	text, p := s.text, s.pos
	for {
		for p < len(text) && !special[text[p]] {
			p++
		}
		if p >= len(text) {
			s.pos = len(text)
			return s.pos
		}
		switch c := text[p]; {
		case c == '\n':
			if s.endsLine(p + 1) {
				s.pos, s.atLine = p+1, true
				return p
			}
			p++
		case c == '\f' || c == 0xE2 && strings.HasPrefix(text[p:], "\u2029"):
			_, w := runeAt(text, p)
			s.pos, s.atLine = p+w, true
			return p
		case c == '[':
			p = max(p+1, linkEnd(text, p))
		case c == '`':
			p = codeEnd(text, p)
		case !mayTerminate(text, p):
			p++
		default:
			end, ok := stopAt(text, p)
			if ok {
				s.pos = s.marksBelow(end)
				return s.pos
			}
			p = end
		}
	}
}

// endsLine reports whether the block ends before the line at p.
func (s *splitter) endsLine(p int) bool {
	if s.alone {
		return true
	}
	kind, _ := classify(s.text, p)
	return kind != plainLine
}

// marksBelow returns the end of the citation marks that have the next line for themselves, or p.
func (s *splitter) marksBelow(p int) int {
	q := skipBlanks(s.text, p)
	if s.alone || q >= len(s.text) || !atLineEnd(s.text, q) {
		return p
	}
	line := nextLine(s.text, q)
	if line >= len(s.text) || s.endsLine(line) {
		return p
	}
	if end := afterMarks(s.text, line); end > line && atLineEnd(s.text, skipBlanks(s.text, end)) {
		return end
	}
	return p
}

// trim takes white space, and in table rows the bars, from both ends. A range without a word or another sign beyond
// ASCII becomes empty.
func (s *splitter) trim(start, end int) (from, to int) {
	for start < end {
		r, w := runeAt(s.text, start)
		if !isSpace(r) && (r != '|' || !s.alone) {
			break
		}
		start += w
	}
	for start < end {
		r, w := runeBefore(s.text, end)
		if !isSpace(r) && (r != '|' || !s.alone) {
			break
		}
		end -= w
	}
	for p := start; p < end; p++ {
		if c := s.text[p]; c >= utf8.RuneSelf || isASCIIWord(c) {
			return start, end
		}
	}
	return start, start
}

// mayTerminate reports whether the rune at p, whose first byte is special, is worth a look at its properties.
func mayTerminate(text string, p int) bool {
	if p+2 >= len(text) || text[p] < 0xE0 {
		return true
	}
	switch second := text[p+1]; text[p] {
	case 0xE2:
		return second <= 0x81 || second == 0xB8 || second == 0xB3
	case 0xE3:
		return second == 0x80
	case 0xEA:
		return second < 0xB0
	case 0xEF:
		return second >= 0xB9 && second <= 0xBD
	case 0xF0:
		return second != 0x9F
	}
	return true
}

// SentenceBefore returns the statement that a citation at the offset at stands for: its sentence from the start to the
// last letter, digit, terminator or closing sign before at. Citation marks and their opening brackets right before at
// are not part of it, nor are the markers of the block. A citation after the end of a sentence closes that sentence.
// The range is empty where nothing stands before at in its block.
//
// Nothing from at on is looked at, so the result is the same while the text behind it is still to come:
// SentenceBefore(text, at) is SentenceBefore(text[:at], at).
func SentenceBefore(text string, at int) (start, end int) {
	text = wholeRunes(text[:clamp(text, at)])
	start, end = len(text), len(text)
	// A line on which nothing stands yet goes on with the block before it.
	body, onNewLine := strings.CutSuffix(strings.TrimRight(text, " \t"), "\n")
	for s := splitterNear(body, len(body)); ; {
		b, e, ok := s.next()
		if !ok && onNewLine && s.alone {
			return len(text), len(text)
		}
		if !ok {
			return start, end
		}
		if e = trimMarks(text, b, e); b < e {
			start, end = b, e
		}
	}
}

// maxMarks is how many citation marks in a row are taken from the end of a statement.
const maxMarks = 64

// trimMarks returns the end of the statement in text[start:end]: without citation marks, opening signs and separators
// at its end.
func trimMarks(text string, start, end int) int {
	kept := trimTail(text, start, end)
	p := kept
	for range maxMarks {
		q, certain := markStart(text, start, p)
		if q == p {
			break
		}
		p = trimTail(text, start, q)
		// A link may be a part of the sentence. It is a citation where it opens the sentence or stands in parentheses.
		if certain || p == start || strings.HasSuffix(strings.TrimRight(text[start:q], " "), "(") {
			kept = p
		}
	}
	return kept
}

// trimTail returns end without the signs before it that close nothing.
func trimTail(text string, start, end int) int {
	for end > start {
		r, w := runeBefore(text, end)
		switch {
		case r == '*' || r == '_' || r == '~' || r == '`':
			from := end - 1
			for from > start && strings.IndexByte("*_~`", text[from-1]) >= 0 {
				from--
			}
			if prev, _ := runeBefore(text, from); from > start && !isSpace(prev) && !opens(prev) {
				return end
			}
			w = end - from
		case r == '>' && strings.HasSuffix(text[start:end], supOpen):
			w = len(supOpen)
		case (r == '"' || r == '\'') && opensQuote(text, start, end-1):
		case !isSpace(r) && !opens(r) && !separates(r):
			return end
		}
		end -= w
	}
	return start
}

// opens reports whether r only ever opens.
func opens(r rune) bool {
	switch r {
	case '(', '[', '{', '<', '¿', '¡', '„', '‚':
		return true
	}
	return r >= 0x2000 && unicode.Is(unicode.Ps, r)
}

// separates reports whether r stands between parts of a sentence.
func separates(r rune) bool {
	switch r {
	case ',', ';', ':', '|', '-', '/', '\\', '&', '+', '=', '#', '>', '、', '，', '；', '：', '،', '؛':
		return true
	}
	return r >= 0x2000 && unicode.Is(unicode.Pd, r)
}

// opensQuote reports whether the ASCII quote at p opens one: nothing but white space or an opening sign comes before.
func opensQuote(text string, start, p int) bool {
	prev, w := runeBefore(text, p)
	return p <= start || w == 0 || isSpace(prev) || opens(prev)
}

// markStart returns the start of the citation mark or link that ends at end, or end. A link whose words are no number
// and no site is not certain to be a citation.
func markStart(text string, start, end int) (from int, certain bool) {
	low := max(start, end-maxURL-maxTitle)
	body := text[low:end]
	switch {
	case strings.HasSuffix(body, "]"):
		for n, tries := len(body), 0; tries < 2; tries++ { // the second for "[[1]]"
			if n = strings.LastIndexByte(body[:n], '['); n < 0 {
				break
			}
			if noteMark(text, low+n) == end {
				return low + n, true
			}
		}
	case strings.HasSuffix(body, "】"):
		if n := strings.LastIndex(body, "【"); n >= 0 {
			return low + n, true
		}
	case strings.HasSuffix(body, supClose):
		if n := strings.LastIndex(body, supOpen); n >= 0 {
			return low + n, true
		}
	case strings.HasSuffix(body, ")"):
		return linkStart(text, low, end)
	}
	return end, false
}

// linkStart is markStart for what ends with a parenthesis.
func linkStart(text string, low, end int) (from int, certain bool) {
	depth, p := 0, end
	for p > low {
		p--
		if text[p] == ')' {
			depth++
		} else if text[p] == '(' {
			if depth--; depth == 0 {
				break
			}
		}
	}
	switch {
	case depth != 0:
		return end, false
	case p > low && text[p-1] == ']':
		n := strings.LastIndexByte(text[low:p-1], '[')
		if n < 0 {
			return end, false
		}
		from = low + n
		if from > low && text[from-1] == '[' {
			from--
		}
		name := strings.Trim(text[from:p], "[]^")
		return from, isNumbers(name) || !strings.Contains(name, " ") && strings.Contains(name, ".")
	case linkGroup(text, p) == end:
		return p, true
	}
	return end, false
}

// terminator says what kind of sign may end a sentence.
type terminator uint8

const (
	noTerminator terminator = iota
	period                  // one full stop
	dots                    // an ellipsis
	mark                    // an exclamation or question mark that white space follows
	wide                    // a sign that ends a sentence also without white space: 。 ！ ؟ ।
)

// special marks the bytes at which the search for the end of a sentence stops to look: ASCII signs, and the first byte
// of every rune that may be a terminator.
var special = [256]bool{
	'\n': true, '\f': true, '.': true, '!': true, '?': true, '[': true, '`': true,
	0xD6: true, 0xD8: true, 0xDB: true, 0xDC: true, 0xDF: true, 0xE0: true, 0xE1: true, 0xE2: true, 0xE3: true,
	0xEA: true, 0xEF: true, 0xF0: true,
}

func terminatorOf(r rune) terminator {
	switch r {
	case '.':
		return period
	case '…':
		return dots
	case '!', '?', '‼', '⁇', '⁈', '⁉', '‽':
		return mark
	case '。', '！', '？', '．', '｡', '؟', '۔', '।', '॥':
		return wide
	}
	switch {
	case r < 0x589, '\u0900' <= r && r < '\u0980', '\u2000' <= r && r < '\u2cff', '\u3000' <= r && r < '\ua000':
		return noTerminator // the common scripts, whose terminators are above
	case unicode.Is(unicode.STerm, r):
		return wide
	}
	return noTerminator
}

// terminators returns the end of the run of terminators at p and what it is as a whole.
func terminators(text string, p int) (end int, kind terminator) {
	for {
		r, w := runeAt(text, p)
		t := terminatorOf(r)
		if w == 0 || t == noTerminator {
			return p, kind
		}
		if t == period && kind == period {
			t = dots
		}
		kind = max(kind, t)
		p += w
	}
}

// stopAt decides whether the sign at p ends a sentence. If so, end is the end of the sentence, behind the closing signs
// and citation marks; else it is where to look on.
func stopAt(text string, p int) (end int, ok bool) {
	if text[p] == '.' && p+1 < len(text) && isASCIIWord(text[p+1]) {
		return p + 1, false
	}
	after, kind := terminators(text, p)
	if kind == noTerminator {
		_, w := runeAt(text, p)
		return p + w, false
	}
	end, firm := closers(text, after)
	r, w := runeAt(text, end)
	switch {
	case w == 0:
		return end, true
	case kind == wide:
		return afterMarks(text, end), !continuesWide(text, end, end > after)
	case !isSpace(r):
		return end, firm && opensAnew(r) || endsGlued(text, p, kind, r)
	}
	behind := afterSigns(text, afterMarks(text, end))
	next := openingAt(text, skipSpace(text, behind))
	if !endsBefore(text, p, kind, next) {
		return end, false
	}
	return behind, true
}

// endsBefore reports whether the terminator of the given kind at p ends a sentence, given what comes after white space.
func endsBefore(text string, p int, kind terminator, next opening) bool {
	if next.kind == nothingNext {
		return true
	}
	if next.kind == lowerNext || next.kind == continuesNext || next.kind == digitNext && kind == dots {
		return false
	}
	return kind != period || endsAfter(text, p, next)
}

// continuesWide reports whether the sentence goes on at p, after a terminator that needs no white space.
func continuesWide(text string, p int, quoted bool) bool {
	r, _ := runeAt(text, p)
	switch r {
	case '、', '，', '；', '：', '،', '؛', ',', ';', ':':
		return true
	case 'と': // 「…。」と: what was said goes on with who said it
		return quoted
	}
	return false
}

// opensAnew reports whether r opens a sentence where a closing sign made sure, without white space, that one is over.
func opensAnew(r rune) bool { return unicode.IsUpper(r) || isCaseless(r) }

// endsGlued reports whether the terminator at p ends a sentence though next follows it without white space: between
// ideographs, and where the space after an exclamation or question mark was forgotten. After a full stop that would cut
// names such as http.Handler.
func endsGlued(text string, p int, kind terminator, next rune) bool {
	prev, _ := runeBefore(text, p)
	switch {
	case isCaseless(prev) && isCaseless(next):
		return kind != dots && !inAddress(text, p)
	case unicode.IsLower(prev) && unicode.IsUpper(next):
		return kind == mark && !inAddress(text, p)
	}
	return false
}

// inAddress reports whether p stands in a URL.
func inAddress(text string, p int) bool {
	const longest = 256
	before := text[max(0, p-longest):p]
	for {
		n := strings.Index(before, "://")
		if n < 0 {
			return false
		}
		if before = before[n+len("://"):]; !strings.ContainsAny(before, " \t\n") {
			return true
		}
	}
}

// closers returns the end of the signs directly after a terminator that belong to its sentence: quotes, brackets,
// emphasis, citation marks, emoji. It says whether one of them makes sure that the sentence is over.
func closers(text string, p int) (end int, firm bool) {
	for {
		r, w := runeAt(text, p)
		switch {
		case w == 0:
			return p, firm
		case r == '[' || r == '<' || r == '【':
			end := citeMark(text, p)
			if end == p {
				return p, firm
			}
			p, firm = end, true
		case strings.ContainsRune("*_~`", r) && opensMarkup(text, p, byte(r)):
			return p, firm
		case isCloser(r) || r == '*' || r == '_' || r == '~' || r == '`':
			if next, _ := runeAt(text, p+w); isAmbiguousQuote(r) && isWord(next) {
				return p, firm
			}
			p, firm = p+w, firm || r >= 0x2000
		case isAttached(r):
			p += w
		case isSpace(r) && strings.HasPrefix(text[p+w:], "»"): // French: « Oui. »
			q := p + w + len("»")
			if next, w := runeAt(text, q); w > 0 && !isSpace(next) {
				return p, firm
			}
			p = q
		default:
			return p, firm
		}
	}
}

// opensMarkup reports whether the run of the delimiter at p begins emphasis or code of the next sentence: a word
// follows it and none like it is open.
func opensMarkup(text string, p int, delimiter byte) bool {
	end := p
	for end < len(text) && text[end] == delimiter {
		end++
	}
	if next, _ := runeAt(text, end); !isWord(next) && !isCaseless(next) || p > 0 && text[p-1] == delimiter {
		return false
	}
	return strings.Count(before(text, p), text[p:end])%2 == 0
}

// isCloser reports whether r can close a quotation or brackets.
func isCloser(r rune) bool {
	switch r {
	case ')', ']', '}', '"', '\'', '»', '«', '”', '“', '’', '‘', '›', '‹':
		return true
	}
	return r >= 0x2000 && (unicode.Is(unicode.Pe, r) || unicode.Is(unicode.Pf, r))
}

// isAmbiguousQuote reports whether r also opens quotations, in this or another language.
func isAmbiguousQuote(r rune) bool {
	switch r {
	case '"', '\'', '«', '»', '“', '‘', '’', '‹', '›':
		return true
	}
	return false
}

// isAttached reports whether r goes with the sign before it: combining marks, invisible signs, emoji, raised figures.
func isAttached(r rune) bool {
	switch {
	case r < 0xA0:
		return false
	case r == '¹' || r == '²' || r == '³' || 0x2070 <= r && r < 0x207A:
		return true
	case r == '°' || r == '\u2028' || r == '\u2029':
		return false
	}
	return unicode.In(r, unicode.So, unicode.Mn, unicode.Me, unicode.Cf, unicode.Sk)
}
