package ibid

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/prose"
)

// mostSteps bounds how many constructs without a space between them a marker is moved over; real text has two or three.
// At the bound it stands between two constructs.
const mostSteps = 32

// spot is where a marker may stand.
type spot struct {
	at int
	// own: the place stands after (or before) a block that can hold no marker; the marker is a paragraph of its own.
	own bool
	// space: a space must come first, or the marker would change the meaning of what it follows.
	space bool
}

// safePlaces answers where in one markdown text a marker may stand. The rules, in this order:
//
//   - A marker never goes into a link, an image, a code span, an address, a tag, math or a footnote mark: it goes after
//     it.
//     It never goes into a grapheme, a word, an escape or an entity.
//   - It goes after the punctuation that closes what it stands for: "word.[1]".
//   - Where the words lie in emphasis it goes after the closing delimiter, unless a sentence ends in the emphasis after
//     them: a bold paragraph keeps its markers at their sentences.
//   - It stays on its line and in its table cell, before trailing space, a hard break and the closing marks of a
//     heading.
//   - Where no inline content is (between blocks, in list marks, on rules, in definitions) it goes to the end of the
//     line of
//     content before.
//   - For code and HTML blocks it becomes a paragraph of its own after the block. Inside a list, quote or table it goes
//     to
//     the line of content before the block instead, so that the list stays one list; if there is none, it becomes a
//     paragraph after the whole list. An unfinished block at the end of the text cannot be followed: there too the marker
//     goes to the content before, or becomes a paragraph before the block.
//
// Offsets are bytes of the text. It is made by one parse and then only read. A live renderer makes one for each block
// that is finished, with the block alone as the text, and gets the same places as for the whole text.
type safePlaces struct {
	*tree

	runs []Span // of at least longRun bytes of one kind, in order
}

// newSafePlaces parses text.
func newSafePlaces(text string) safePlaces { return safePlaces{parseTree(text), longRuns(text)} }

// longRun is how many bytes of one kind are found at once in place of being walked over: thousands of markers may stand
// in one run.
const longRun = 64

// runKind says what kind of run a byte can be in; 0: in none.
func runKind(c byte) byte {
	switch {
	case isASCIIAlnum(rune(c)):
		return 'a'
	case isSpaceByte(c):
		return ' '
	case isDelimiter(c), c == '`':
		return '*'
	case c == '\\':
		return c
	}
	return 0
}

// longRuns returns the long runs of a text.
func longRuns(text string) []Span {
	var runs []Span
	for at := 0; at < len(text); {
		start, kind := at, runKind(text[at])
		for at++; at < len(text) && runKind(text[at]) == kind; {
			at++
		}
		if kind != 0 && at-start >= longRun {
			runs = append(runs, Span{start, at})
		}
	}
	return runs
}

// run returns the run that the byte at at is in.
func (p safePlaces) run(at int) Span {
	i, _ := slices.BinarySearchFunc(p.runs, at+1, func(s Span, at int) int { return cmp.Compare(s.Start, at) })
	if i > 0 && at < p.runs[i-1].End {
		return p.runs[i-1]
	}
	kind, s := runKind(p.text[at]), Span{at, at + 1}
	for s.Start > 0 && runKind(p.text[s.Start-1]) == kind {
		s.Start--
	}
	for s.End < len(p.text) && runKind(p.text[s.End]) == kind {
		s.End++
	}
	return s
}

// isEscaped reports whether what stands at at is escaped: whether an odd number of backslashes is before it, from from on.
func (p safePlaces) isEscaped(from, at int) bool {
	return at > from && p.text[at-1] == '\\' && (at-max(p.run(at-1).Start, from))%2 == 1
}

// after returns the first place for a marker that stands for words ending at at, whatever at is.
func (p safePlaces) after(at int) spot {
	at = min(max(at, 0), len(p.text))
	for at > 0 && at < len(p.text) && !utf8.RuneStart(p.text[at]) {
		at--
	}
	line, ok := p.lineAt(at)
	if !ok {
		return p.gap(at)
	}
	at = p.backOverSpace(at, line)
	for range mostSteps {
		next := p.step(at, line)
		if next == at {
			break
		}
		at = next
		if at <= line.End {
			continue
		}
		if line, ok = p.lineAt(at); !ok {
			return p.gap(at)
		}
	}
	return spot{at: at, space: p.needsSpace(at, line)}
}

// lineAt returns the line of content that at stands in or at the end of.
func (p safePlaces) lineAt(at int) (Span, bool) {
	i := p.linesBefore(at)
	if i == 0 || p.lines[i-1].End < at {
		return Span{}, false
	}
	return p.lines[i-1], true
}

// linesBefore returns how many lines of content start before at.
func (p safePlaces) linesBefore(at int) int {
	i, _ := slices.BinarySearchFunc(p.lines, at, func(s Span, at int) int { return cmp.Compare(s.Start, at) })
	return i
}

// solidAround returns the solid that at stands inside of, edges excluded.
func (p safePlaces) solidAround(at int) (solid, bool) {
	i, _ := slices.BinarySearchFunc(p.solids, at, func(s solid, at int) int { return cmp.Compare(s.Start, at) })
	if i > 0 && at < p.solids[i-1].End {
		return p.solids[i-1], true
	}
	return solid{}, false
}

// solidAt returns the solid that starts at at.
func (p safePlaces) solidAt(at int) (solid, bool) {
	i, ok := slices.BinarySearchFunc(p.solids, at, func(s solid, at int) int { return cmp.Compare(s.Start, at) })
	if !ok {
		return solid{}, false
	}
	return p.solids[i], true
}

// phraseAround returns the phrase that at stands inside of, edges excluded.
func (p safePlaces) phraseAround(at int) (phrase, bool) {
	i, _ := slices.BinarySearchFunc(p.phrases, at, func(s phrase, at int) int { return cmp.Compare(s.Start, at) })
	if i > 0 && at < p.phrases[i-1].End {
		return p.phrases[i-1], true
	}
	return phrase{}, false
}

// backOverSpace returns the end of the words before at, where at stands after a space. A full stop that follows belongs
// to those words: providers that cut their marks out of the text leave a space before it.
func (p safePlaces) backOverSpace(at int, line Span) int {
	if !isSpaceByte(p.text[at-1]) {
		return at
	}
	if _, ok := p.solidAround(at); ok {
		return at
	}
	stop := at
	for stop < line.End && strings.IndexByte(".!?,;", p.text[stop]) >= 0 {
		stop++
	}
	if stop > at && (stop == line.End || isSpaceByte(p.text[stop])) {
		return stop
	}
	return max(p.run(at-1).Start, line.Start+1)
}

// step returns the end of the first construct that a marker at at would break or that belongs before it; at if none.
func (p safePlaces) step(at int, line Span) int {
	if s, ok := p.solidAround(at); ok {
		return s.End
	}
	if at >= line.End {
		return at
	}
	if end := p.atom(at, line); end > at {
		return end
	}
	if end := p.word(at, line); end > at {
		return end
	}
	if end := p.punctuation(at, line); end > at {
		return end
	}
	if ph, ok := p.phraseAround(at); ok && at > ph.lastBreak {
		return ph.End
	}
	if c := p.text[at]; isDelimiter(c) || c == '`' && p.text[at-1] == '`' {
		return min(p.run(at).End, line.End)
	}
	if isDelimiter(p.text[at-1]) && !p.endsConstruct(at) && !p.isEscaped(line.Start, at-1) {
		return p.nextWord(at, line)
	}
	return at
}

// atom returns the end of the escape or entity that at stands in.
func (p safePlaces) atom(at int, line Span) int {
	if p.text[at] < utf8.RuneSelf && unicode.In(rune(p.text[at]), unicode.Punct, unicode.Symbol) &&
		p.isEscaped(line.Start, at) {
		return at + 1
	}
	const longest = 33 // &CounterClockwiseContourIntegral;
	from := max(line.Start, at-longest)
	amp := strings.LastIndexByte(p.text[from:at], '&')
	if amp < 0 {
		return at
	}
	end := strings.IndexByte(p.text[at:min(line.End, at+longest)], ';')
	if end < 0 {
		return at
	}
	name := p.text[from+amp+1 : at+end]
	if name == "" || strings.IndexFunc(name, func(r rune) bool { return !isASCIIAlnum(r) && r != '#' }) >= 0 {
		return at
	}
	return at + end + 1
}

// word returns the end of the word that at stands in, with what is written as part of it: "state-of-the-art", "50%",
// "word(s)", the rest of a word of which the first letters are bold.
func (p safePlaces) word(at int, line Span) int {
	if p.text[at] == ' ' {
		return at
	}
	if end := p.wordEnd(at, line); end > at {
		if s, ok := p.solidAround(end); ok && s.Start > at {
			end = s.Start
		}
		return end
	}
	txt := p.text[:line.End]
	prev, _ := utf8.DecodeLastRuneInString(txt[:at])
	next, n := utf8.DecodeRuneInString(txt[at:])
	if s, ok := p.solidAt(at); ok {
		if isASCIIAlnum(prev) || s.kind == bareSolid {
			return s.End
		}
		return at
	}
	after, _ := utf8.DecodeRuneInString(txt[at+n:])
	switch {
	case isSpaced(next) && p.endsConstruct(at), isSpaced(prev) && isSpaced(next):
		return p.wordEnd(at+n, line)
	case !isSpaced(prev):
		return at
	case strings.ContainsRune("-\u2010\u2011/'’+&@#", next) && isSpaced(after):
		return p.wordEnd(at+n+utf8.RuneLen(after), line)
	case strings.ContainsRune("%‰°€£¥₹+#′″™®©", next):
		return at + n
	case next == '(' || next == '[':
		if end := strings.IndexAny(txt[at+1:min(len(txt), at+24)], ")] "); end > 0 && txt[at+1+end] != ' ' {
			return at + end + 2
		}
	}
	return at
}

// wordEnd returns the end of the word that at stands in; at if it stands in none. It looks at the text near at only, but
// for runs of letters, so that hostile text stays cheap.
func (p safePlaces) wordEnd(at int, line Span) int {
	if at > line.Start && isASCIIAlnum(rune(p.text[at-1])) {
		at = min(p.run(at-1).End, line.End)
	}
	if at == line.End || p.text[at] == ' ' || at > line.Start && isPlainBreak(p.text[at-1], p.text[at]) {
		return at
	}
	const near = 128
	from, to := max(line.Start, at-near), min(line.End, at+near)
	for from < at && !utf8.RuneStart(p.text[from]) {
		from++
	}
	for to < line.End && !utf8.RuneStart(p.text[to]) {
		to++
	}
	return from + prose.WordEnd(p.text[from:to], at-from)
}

// isPlainBreak reports whether a word ends between two bytes, whatever is around them: between ASCII characters of which one is neither a
// letter nor a digit, and that join nothing (UAX #29, WB3 and WB6 to WB13). It saves looking at what is near.
func isPlainBreak(before, after byte) bool {
	const joining = "'\".,:;_\r"
	return before < utf8.RuneSelf && after < utf8.RuneSelf && (!isASCIIAlnum(rune(before)) || !isASCIIAlnum(rune(after))) &&
		before != ' ' &&
		strings.IndexByte(joining, before) < 0 &&
		strings.IndexByte(joining, after) < 0
}

// isSpaced reports whether r is a letter or digit of a script that puts spaces between words.
func isSpaced(r rune) bool {
	return isASCIIAlnum(r) || r >= utf8.RuneSelf && r < 0x3040 && (unicode.IsLetter(r) || unicode.IsNumber(r)) &&
		!unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// punctuation returns the end of the punctuation at at that closes the words before.
func (p safePlaces) punctuation(at int, line Span) int {
	if p.text[at] == ' ' {
		return at
	}
	return min(max(at, prose.AfterPunctuation(p.text[:line.End], at)), line.End)
}

// endsConstruct reports whether a phrase or a solid ends at at.
func (p safePlaces) endsConstruct(at int) bool {
	if ph, ok := p.phraseAround(at - 1); ok && ph.End == at {
		return true
	}
	s, ok := p.solidAround(at - 1)
	return ok && s.End == at
}

// nextWord returns the end of the first word from at on, or of the line.
func (p safePlaces) nextWord(at int, line Span) int {
	rest := p.text[at:line.End]
	i := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	if i < 0 {
		return line.End
	}
	_, n := utf8.DecodeRuneInString(rest[i:])
	return p.wordEnd(at+i+n, line)
}

// needsSpace reports whether what stands before at would take a marker into itself.
func (p safePlaces) needsSpace(at int, line Span) bool {
	if at <= line.Start {
		return false
	}
	if last := p.text[at-1]; p.isEscaped(line.Start, at) ||
		isDelimiter(last) && !p.isEscaped(line.Start, at-1) && (!p.endsConstruct(at) || p.couldOpen(at, last)) {
		return true
	}
	// An address takes in whatever follows it without a space, and the full stop before that with it.
	i, _ := slices.BinarySearchFunc(p.solids, at, func(s solid, at int) int { return cmp.Compare(s.Start, at) })
	if i == 0 || p.solids[i-1].kind != bareSolid {
		return false
	}
	between := p.text[p.solids[i-1].End:at]
	return strings.IndexFunc(between, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf }) < 0
}

// couldOpen reports whether the phrase that ends at at would come apart with punctuation after it: CommonMark joins no
// delimiters that could open as well as close and whose lengths together are a multiple of three.
func (p safePlaces) couldOpen(at int, delimiter byte) bool {
	ph, ok := p.phraseAround(at - 1)
	if !ok {
		return false
	}
	run := string(delimiter)
	closing := at - len(strings.TrimRight(p.text[:at], run))
	rest := strings.TrimRight(p.text[:ph.Start], run)
	opening := len(p.text[len(rest):]) - len(strings.TrimLeft(p.text[len(rest):], run))
	return (opening+closing)%3 == 0 && opening%3 != 0
}

// gap returns the place for words ending at at, where no line of content is.
func (p safePlaces) gap(at int) spot {
	b, _ := slices.BinarySearchFunc(p.blocks, at+1, func(t topBlock, at int) int { return cmp.Compare(t.start, at) })
	for b--; b >= 0; b-- {
		blk := p.blocks[b]
		if blk.raw && at > blk.start {
			return p.own(b)
		}
		if i := p.linesBefore(at); i > 0 && p.lines[i-1].Start >= blk.start {
			return p.lineEnd(p.lines[i-1], b)
		}
		if blk.firstRaw >= 0 && at > blk.firstRaw {
			return p.own(b)
		}
		at = blk.start
	}
	switch {
	case len(p.blocks) == 0: // definitions only, or nothing
		end := len(p.text)
		if end > 0 && isSpaceByte(p.text[end-1]) {
			end = p.run(end - 1).Start
		}
		return spot{at: end, own: end > 0}
	case p.blocks[0].raw || len(p.lines) == 0:
		return p.own(0)
	default:
		return p.lineEnd(p.lines[0], 0)
	}
}

// lineEnd returns the place at the end of a line of content of block b. Where something solid reaches over the end of the
// line, nothing is known to be safe before the end of the block.
func (p safePlaces) lineEnd(line Span, b int) spot {
	if _, ok := p.solidAround(line.End); ok {
		return p.own(b)
	}
	return spot{at: line.End, space: p.needsSpace(line.End, line)}
}

// own returns the place for a marker that stands for something in block b, which can hold none.
func (p safePlaces) own(b int) spot {
	blk := p.blocks[b]
	if blk.closer != "" {
		if i := p.linesBefore(blk.start); i > 0 && b > 0 {
			return p.lineEnd(p.lines[i-1], b-1)
		}
		return spot{at: blk.start, own: true}
	}
	// A paragraph may run on into a table, which a blank line would part from it.
	for !blk.raw && b+1 < len(p.blocks) && !strings.HasSuffix(strings.TrimRight(p.text[:p.blocks[b+1].start], " \t\r"), "\n\n") &&
		!strings.HasSuffix(p.text[:p.blocks[b+1].start], "\n\r\n") {
		b++
	}
	end := len(p.text)
	if b+1 < len(p.blocks) {
		end = p.blocks[b+1].start
	}
	if end > blk.start && isSpaceByte(p.text[end-1]) {
		end = max(p.run(end-1).Start, blk.start)
	}
	return spot{at: end, own: true}
}
