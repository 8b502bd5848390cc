package prose

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentences yields the sentences of text as half-open byte ranges, in order, without surrounding white space and
// without the markers of their block (bullets, numbers, heading, quote and table characters). A table row is a block,
// and one sentence unless it contains a terminator. A fenced code block is yielded whole, including its fences. Lines
// without words (a rule, the line below a table's head) are omitted.
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
// sentence it returns that sentence; if the block has no sentence there or before, the range is empty.
//
// The result is one of [Sentences] if that is not longer than [Window] and no fenced code block is near, whose lines
// are treated as prose.
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

// splitter splits a text into sentences.
type splitter struct {
	text   string
	pos    int  // where the next sentence may begin
	atLine bool // pos is the start of a line that starts a block
	alone  bool // the block is a single line
	code   bool // yield fenced code blocks whole
}

// splitterNear returns a splitter that begins with the block that contains at.
func splitterNear(text string, at int) splitter {
	at = clamp(text, at)
	floor := runeStart(text, max(0, at-Window))
	from := blockStart(text, at, floor)
	if from == 0 || text[from-1] == '\n' {
		return splitter{text: text, pos: from, atLine: true}
	}
	// The block is longer than the window: begin between two words, if possible.
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

// find returns the end of the sentence that begins at pos and moves pos after it.
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

// marksBelow returns the end of citation marks that are alone on the next line, or p.
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

// trim removes white space, and bars in table rows, from both ends. A range without words or non-ASCII characters
// becomes empty.
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

// mayTerminate reports whether the rune at p, whose first byte is special, may be a terminator.
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

// SentenceBefore returns the statement that a citation at the offset at supports: its sentence from the start to the
// last letter, digit, terminator or closing quote or bracket before at. Citation marks and their opening brackets right
// before at are not part of it, nor are the markers of the block. A citation after the end of a sentence supports that
// sentence. The range is empty if the block has nothing before at.
//
// The text from at on is not examined, so the result does not depend on text that is still to come:
// SentenceBefore(text, at) equals SentenceBefore(text[:at], at).
func SentenceBefore(text string, at int) (start, end int) {
	text = wholeRunes(text[:clamp(text, at)])
	start, end = len(text), len(text)
	// An empty last line continues the block before it.
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

// maxMarks is the maximum number of consecutive citation marks removed from the end of a statement.
const maxMarks = 64

// trimMarks returns the end of the statement in text[start:end], without trailing citation marks, opening punctuation
// and separators.
func trimMarks(text string, start, end int) int {
	kept := trimTail(text, start, end)
	p := kept
	for range maxMarks {
		q, certain := markStart(text, start, p)
		if q == p {
			break
		}
		p = trimTail(text, start, q)
		// A link may be part of the sentence. It is a citation if it opens the sentence or is in parentheses.
		if certain || p == start || strings.HasSuffix(strings.TrimRight(text[start:q], " "), "(") {
			kept = p
		}
	}
	return kept
}

// trimTail returns the end of text[start:end] without trailing punctuation that closes nothing.
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

// opens reports whether r is always opening punctuation.
func opens(r rune) bool {
	switch r {
	case '(', '[', '{', '<', '¿', '¡', '„', '‚':
		return true
	}
	return r >= 0x2000 && unicode.Is(unicode.Ps, r)
}

// separates reports whether r separates parts of a sentence.
func separates(r rune) bool {
	switch r {
	case ',', ';', ':', '|', '-', '/', '\\', '&', '+', '=', '#', '>', '、', '，', '；', '：', '،', '؛':
		return true
	}
	return r >= 0x2000 && unicode.Is(unicode.Pd, r)
}

// opensQuote reports whether the ASCII quote at p is an opening quote: after white space, opening punctuation or
// nothing.
func opensQuote(text string, start, p int) bool {
	prev, w := runeBefore(text, p)
	return p <= start || w == 0 || isSpace(prev) || opens(prev)
}

// markStart returns the start of the citation mark or link that ends at end, or end. A link whose words are neither a
// number nor a site may not be a citation.
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

// linkStart is markStart for a text that ends with a parenthesis.
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

// terminator is a kind of sentence terminator.
type terminator uint8

const (
	noTerminator terminator = iota
	period                  // one full stop
	dots                    // an ellipsis
	mark                    // an exclamation or question mark that needs white space after it
	wide                    // ends a sentence even without white space: 。 ！ ؟ ।
)

// special contains the bytes that the search for the end of a sentence examines: ASCII punctuation, and the first byte
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
		return noTerminator // common scripts, whose terminators are above
	case unicode.Is(unicode.STerm, r):
		return wide
	}
	return noTerminator
}

// terminators returns the end of the run of terminators at p and the kind of the run.
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

// stopAt reports whether the character at p ends a sentence. If so, end is the end of the sentence, after closing
// punctuation and citation marks; else it is where to continue.
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

// endsBefore reports whether the terminator of the given kind at p ends a sentence, given what follows the white space.
func endsBefore(text string, p int, kind terminator, next opening) bool {
	if next.kind == nothingNext {
		return true
	}
	if next.kind == lowerNext || next.kind == continuesNext || next.kind == digitNext && kind == dots {
		return false
	}
	return kind != period || endsAfter(text, p, next)
}

// continuesWide reports whether the sentence continues at p, after a terminator that needs no white space.
func continuesWide(text string, p int, quoted bool) bool {
	r, _ := runeAt(text, p)
	switch r {
	case '、', '，', '；', '：', '،', '؛', ',', ';', ':':
		return true
	case 'と': // 「…。」と: a quotation, followed by its speaker
		return quoted
	}
	return false
}

// opensAnew reports whether r begins a sentence without white space after a firm closer.
func opensAnew(r rune) bool { return unicode.IsUpper(r) || isCaseless(r) }

// endsGlued reports whether the terminator at p ends a sentence although next follows it without white space: between
// ideographs, and if the space after an exclamation or question mark is missing. After a full stop that would split
// names such as http.Handler.
func endsGlued(text string, p int, kind terminator, next rune) bool {
	prev, _ := runeBefore(text, p)
	switch {
	case isCaseless(prev) && isCaseless(next):
		return kind != dots && !inURL(text, p)
	case unicode.IsLower(prev) && unicode.IsUpper(next):
		return kind == mark && !inURL(text, p)
	}
	return false
}

// inURL reports whether p is in a URL.
func inURL(text string, p int) bool {
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

// closers returns the end of what directly follows a terminator and belongs to its sentence: quotes, brackets,
// emphasis, citation marks, emoji. firm reports whether one of these makes it certain that the sentence has ended.
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

// opensMarkup reports whether the run of the delimiter at p begins emphasis or code in the next sentence: a word
// follows it, and no such delimiter is open.
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

// isCloser reports whether r can be a closing quote or bracket.
func isCloser(r rune) bool {
	switch r {
	case ')', ']', '}', '"', '\'', '»', '«', '”', '“', '’', '‘', '›', '‹':
		return true
	}
	return r >= 0x2000 && (unicode.Is(unicode.Pe, r) || unicode.Is(unicode.Pf, r))
}

// isAmbiguousQuote reports whether r is also an opening quote, in this or another language.
func isAmbiguousQuote(r rune) bool {
	switch r {
	case '"', '\'', '«', '»', '“', '‘', '’', '‹', '›':
		return true
	}
	return false
}

// isAttached reports whether r belongs to the character before it: combining marks, invisible characters, emoji,
// superscript digits.
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
