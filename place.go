package ibid

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/halt"
	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/prose"
	"github.com/ibidhq/ibid/internal/text"
)

// maxSteps is the maximum number of constructs without a space between them that a marker skips; real text has two or
// three. At the limit the marker goes between two constructs.
const maxSteps = 32

// spot is a place for a marker.
type spot struct {
	at int
	// standalone: the place is after (or before) a block that cannot hold a marker; the marker is a separate paragraph.
	standalone bool
	// space: a space must precede the marker, or it would change the meaning of what it follows.
	space bool
}

// places finds the places for markers in a markdown text. The rules, in this order:
//
//   - A marker never goes into a link, an image, a code span, an autolink, a tag, math or a footnote mark, but after
//     it. It never goes into a grapheme, a word, an escape or an entity.
//   - It goes after the punctuation that closes the cited words: "word.[1]".
//   - If the words are in emphasis, it goes after the closing delimiter, unless a sentence ends after them within the
//     emphasis: a bold paragraph keeps its markers at their sentences.
//   - It stays on its line and in its table cell, before trailing space, a hard break or the closing marks of a
//     heading.
//   - Where there is no inline content (between blocks, in list marks, on rules, in definitions), it goes to the end of
//     the previous line of content.
//   - For code and HTML blocks it becomes a separate paragraph after the block. Inside a list, quote or table it goes
//     to the line of content before the block instead, so that the list remains one list; if there is none, it becomes
//     a paragraph after the whole list. Nothing can follow an unfinished block at the end of the text: there too the
//     marker goes to the previous content, or becomes a paragraph before the block.
//
// Offsets are bytes of the text. A live renderer gets the same places for each finished block alone as for the whole
// text.
type places struct{ *markdown.Document }

// run returns the run of letters and digits, white space, delimiters or backslashes that contains the byte at at, up to
// a limit to either side.
func (p places) run(at int) markdown.Span {
	const far = 256 // bytes; bounds the cost for hostile text
	kind, s := runKind(p.Text[at]), markdown.Span{Start: at, End: at + 1}
	for s.Start > max(0, at-far) && runKind(p.Text[s.Start-1]) == kind {
		s.Start--
	}
	for s.End < min(len(p.Text), at+far) && runKind(p.Text[s.End]) == kind {
		s.End++
	}
	return s
}

// runKind returns the kind of run that a byte can be in, or 0 for none.
func runKind(c byte) byte {
	switch {
	case isASCIIAlnum(rune(c)):
		return 'a'
	case markdown.IsSpace(c):
		return ' '
	case markdown.IsDelimiter(c), c == '`':
		return '*'
	case c == '\\':
		return c
	}
	return 0
}

// isEscaped reports whether the character at at is escaped: whether an odd number of backslashes precedes it, from from
// on.
func (p places) isEscaped(from, at int) bool {
	const far = 256 // bytes, an even number; bounds the cost for hostile text
	return at > from && markdown.EndsInEscape(p.Text[max(from, at-far):at])
}

// after returns the first place for a marker of words ending at at, which may be any number.
func (p places) after(at int) spot {
	at = min(max(at, 0), len(p.Text))
	for at > 0 && at < len(p.Text) && !utf8.RuneStart(p.Text[at]) {
		at--
	}
	line, ok := p.LineAt(at)
	if !ok {
		return p.gap(at)
	}
	if markdown.IsSpace(p.Text[at-1]) {
		at = p.backOverSpace(at, line)
	}
	for range maxSteps {
		next := p.step(at, line)
		if next == at {
			break
		}
		at = next
		if at <= line.End {
			continue
		}
		if line, ok = p.LineAt(at); !ok {
			return p.gap(at)
		}
	}
	return spot{at: at, space: p.needsSpace(at, line)}
}

// backOverSpace returns the end of the words before at, which is after a space. A following full stop belongs to those
// words: providers that remove their marks from the text leave a space before it.
func (p places) backOverSpace(at int, line markdown.Span) int {
	if _, ok := p.SolidAround(at); ok {
		return at
	}
	stop := at
	for stop < line.End && strings.IndexByte(".!?,;", p.Text[stop]) >= 0 {
		stop++
	}
	if stop > at && (stop == line.End || markdown.IsSpace(p.Text[stop])) {
		return stop
	}
	return max(p.run(at-1).Start, line.Start+1)
}

// step returns the end of the first construct that a marker at at would break or must follow, or at if there is none.
func (p places) step(at int, line markdown.Span) int {
	if s, ok := p.SolidAround(at); ok {
		return s.End
	}
	if at >= line.End {
		return at
	}
	if end := p.referenceEnd(at, line); end > at {
		return end
	}
	if c := p.Text[at]; c < utf8.RuneSelf && unicode.In(rune(c), unicode.Punct, unicode.Symbol) &&
		p.isEscaped(line.Start, at) {
		return at + 1
	}
	if n := markdown.EntityEnd(p.Text[line.Start:line.End], at-line.Start); n > 0 {
		return at + n
	}
	if p.Text[at] != ' ' {
		if end := p.word(at, line); end > at {
			return end
		}
		if end := unspacedWordEnd(p.Text[:line.End], at); end > at {
			return end
		}
		if end := prose.AfterPunctuation(p.Text[:line.End], at); end > at {
			return min(end, line.End)
		}
	}
	if phrase, ok := p.PhraseAround(at); ok && !p.endsSentenceIn(phrase, at) {
		return phrase.End
	}
	if c := p.Text[at]; markdown.IsDelimiter(c) || c == '`' && p.Text[at-1] == '`' {
		return min(p.run(at).End, line.End)
	}
	if markdown.IsDelimiter(p.Text[at-1]) && !p.endsConstruct(at) && !p.isEscaped(line.Start, at-1) {
		return p.nextWord(at, line)
	}
	return at
}

// referenceEnd returns the end of the reference link that has at in its words, or 0 if there is none: [words][label],
// whose label may be defined at the end of the text. Two adjacent marks, [1][2], are not a link.
func (p places) referenceEnd(at int, line markdown.Span) int {
	const far = 256 // bytes to either side
	before, after := p.Text[max(line.Start, at-far):at], p.Text[at:min(line.End, at+far)]
	open, shut := strings.LastIndexAny(before, "[]"), strings.IndexAny(after, "[]")
	if open < 0 || before[open] != '[' || markdown.EndsInEscape(before[:open]) || shut < 0 ||
		!strings.HasPrefix(after[shut:], "][") {
		return 0
	}
	label := after[shut+1:]
	end := strings.IndexByte(label, ']') + 1
	if end == 0 || isMark(label[:end]) || strings.HasPrefix(label, "[^") || strings.Contains(label[1:end], "[") {
		return 0
	}
	return at + shut + 1 + end
}

// endsSentenceIn reports whether a sentence ends in phrase at or after at and another follows it there: a marker up to
// that end stays inside, a later one goes after the closing delimiter.
func (p places) endsSentenceIn(phrase markdown.Span, at int) bool {
	const far = prose.Window
	inner := strings.TrimRight(p.Text[at-1:phrase.End], "*_~ \t\r\n")
	for i := range min(len(inner), far) {
		switch inner[i] {
		case ' ', '\n', '\t':
			if i > 0 && strings.IndexByte(".!?", inner[i-1]) >= 0 {
				return true
			}
		case 0x82: // the last byte of 。 U+3002
			if strings.HasSuffix(p.Text[:at+i], "。") && i+1 < len(inner) {
				return true
			}
		}
	}
	return false
}

// word returns the end of the word that contains at, including what is written as part of it: "state-of-the-art",
// "50%", "word(s)", the rest of a word whose first letters are bold.
func (p places) word(at int, line markdown.Span) int {
	if end := p.wordEnd(at, line); end > at {
		if s, ok := p.SolidAround(end); ok && s.Start > at {
			end = s.Start
		}
		return end
	}
	txt := p.Text[:line.End]
	prev, _ := utf8.DecodeLastRuneInString(txt[:at])
	next, n := utf8.DecodeRuneInString(txt[at:])
	if s, ok := p.SolidAt(at); ok {
		if isASCIIAlnum(prev) || s.Kind == markdown.BareSolid {
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

// wordEnd returns the end of the word that contains at, or at if there is none. It examines only the text near at,
// which bounds the cost for hostile text.
func (p places) wordEnd(at int, line markdown.Span) int {
	const near = 128
	from, to := max(line.Start, at-near), min(line.End, at+near)
	if at > line.Start && isASCIIAlnum(rune(p.Text[at-1])) {
		for at < to && isASCIIAlnum(rune(p.Text[at])) {
			at++
		}
		to = min(line.End, at+near)
	}
	if at == line.End || at == from+2*near || p.Text[at] == ' ' ||
		at > line.Start && isPlainBreak(p.Text[at-1], p.Text[at:line.End]) {
		return at
	}
	for from < at && !utf8.RuneStart(p.Text[from]) {
		from++
	}
	for to < line.End && !utf8.RuneStart(p.Text[to]) {
		to++
	}
	return from + prose.WordEnd(p.Text[from:to], at-from)
}

// isPlainBreak reports whether a word ends between a byte and the rest of its line, whatever precedes them: they are
// ASCII, one of the two characters is neither a letter nor a digit, and neither joins words (UAX #29, WB3 and WB6 to
// WB13).
func isPlainBreak(before byte, rest string) bool {
	const joining = "'\".,:;" // join the characters on either side
	after := rest[0]
	if before >= utf8.RuneSelf || after >= utf8.RuneSelf || strings.IndexByte(joining+" _\r", before) >= 0 {
		return false
	}
	if strings.IndexByte(joining, after) >= 0 {
		return len(rest) == 1 || rest[1] < utf8.RuneSelf && !isASCIIAlnum(rune(rest[1]))
	}
	return after != '_' && after != '\r' && (!isASCIIAlnum(rune(before)) || !isASCIIAlnum(rune(after)))
}

// isSpaced reports whether r is a letter or digit of a script that puts spaces between words.
func isSpaced(r rune) bool {
	return isASCIIAlnum(r) || r >= utf8.RuneSelf && r < 0x3040 && (unicode.IsLetter(r) || unicode.IsNumber(r)) &&
		!unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

func isASCIIAlnum(r rune) bool {
	return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
}

// endsConstruct reports whether a phrase or a solid construct ends at at.
func (p places) endsConstruct(at int) bool {
	if phrase, ok := p.PhraseAround(at - 1); ok && phrase.End == at {
		return true
	}
	s, ok := p.SolidAround(at - 1)
	return ok && s.End == at
}

// nextWord returns the end of the first word from at on, or that of the line.
func (p places) nextWord(at int, line markdown.Span) int {
	rest := p.Text[at:line.End]
	i := strings.IndexFunc(rest, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
	if i < 0 {
		return line.End
	}
	_, n := utf8.DecodeRuneInString(rest[i:])
	return p.wordEnd(at+i+n, line)
}

// needsSpace reports whether what precedes at would absorb a marker.
func (p places) needsSpace(at int, line markdown.Span) bool {
	if at <= line.Start {
		return false
	}
	if last := p.Text[at-1]; p.isEscaped(line.Start, at) || markdown.IsDelimiter(last) &&
		!p.isEscaped(line.Start, at-1) && (!p.endsConstruct(at) || p.couldOpen(at, last)) {
		return true
	}
	// A bare URL absorbs whatever follows it without a space, including a full stop in between.
	s, ok := p.SolidBefore(at)
	if !ok || s.Kind != markdown.BareSolid {
		return false
	}
	between := p.Text[s.End:at]
	return strings.IndexFunc(between, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf }) < 0
}

// couldOpen reports whether the phrase that ends at at would break if punctuation followed it: CommonMark does not
// match delimiters that can both open and close if their total length is a multiple of three.
func (p places) couldOpen(at int, delimiter byte) bool {
	phrase, ok := p.PhraseAround(at - 1)
	if !ok {
		return false
	}
	run := string(delimiter)
	closing := at - len(strings.TrimRight(p.Text[:at], run))
	rest := strings.TrimRight(p.Text[:phrase.Start], run)
	opening := markdown.Run(p.Text[len(rest):])
	if p.Text[len(rest)] != delimiter {
		opening = 0
	}
	return (opening+closing)%3 == 0 && opening%3 != 0
}

// gap returns the place for words ending at at, which is not in a line of content.
func (p places) gap(at int) spot {
	for b := p.BlocksBefore(at) - 1; b >= 0; b-- {
		if filled := p.Blocks[b].Filled; filled < b {
			at = p.Blocks[filled+1].Start
			b = filled + 1
			continue
		}
		blk := p.Blocks[b]
		if blk.Raw && at > blk.Start {
			return p.standalone(b)
		}
		if i := p.LinesBefore(at); i > 0 && p.Lines[i-1].Start >= blk.Start {
			return p.lineEnd(p.Lines[i-1], b)
		}
		if blk.FirstRaw >= 0 && at > blk.FirstRaw {
			return p.standalone(b)
		}
		at = blk.Start
	}
	switch {
	case len(p.Blocks) == 0: // definitions only, or nothing
		return spot{at: p.End, standalone: p.End > 0}
	case p.Blocks[0].Raw || len(p.Lines) == 0:
		return p.standalone(0)
	default:
		return p.lineEnd(p.Lines[0], 0)
	}
}

// lineEnd returns the place at the end of a line of content of block b. If a solid construct extends beyond the line,
// no place before the end of the block is known to be safe.
func (p places) lineEnd(line markdown.Span, b int) spot {
	if _, ok := p.SolidAround(line.End); ok {
		return p.standalone(b)
	}
	return spot{at: line.End, space: p.needsSpace(line.End, line)}
}

// standalone returns the place for a marker of words in block b, which cannot hold one.
func (p places) standalone(b int) spot {
	blk := p.Blocks[b]
	if blk.Closer != "" {
		if i := p.LinesBefore(blk.Start); i > 0 && b > 0 {
			return p.lineEnd(p.Lines[i-1], b-1)
		}
		return spot{at: blk.Start, standalone: true}
	}
	// A paragraph may continue into a table, which a blank line would separate from it. After an unterminated block no
	// marker would be visible.
	if !blk.Raw {
		b = blk.Last
	}
	return spot{at: p.Blocks[b].End, standalone: true}
}

// settled reports whether a place in a growing text is final, whatever follows. If overdue is set, it ignores what
// would do no harm: emphasis that may be closed after the place.
func (p places) settled(st *stop, overdue bool) bool {
	if st.standalone || len(p.Lines) == 0 || !enoughFollows(p.Text[st.at:]) || p.MayBeRow(st.at) {
		return false
	}
	if st.at > 0 && p.Text[st.at-1] == '!' && p.Text[st.at] == '[' { // an image, if the bracket is closed
		return false
	}
	solid, phrase := p.OpenBefore(st.at)
	return !solid && (!phrase || overdue ||
		st.at > 0 && endsSentence(strings.TrimRight(p.Text[:st.at], `"'”’»)`)))
}

// enoughFollows reports whether rest, which follows a place, is long enough to know that no word, punctuation or markup
// continues there.
func enoughFollows(rest string) bool {
	const longest = 40 // bytes; an entity has 33
	n := strings.IndexAny(rest, " \t\r\n")
	if n < 0 {
		return len(rest) >= longest
	}
	return strings.TrimLeft(rest[n:], " \t") != ""
}

// layoutCite is a citation to lay out.
type layoutCite struct {
	span    markdown.Span // in the text
	link    bool          // span is a visible link or mark, which the marker replaces
	sources []int
	index   int // in Answer.Citations
}

// stop is a place in a text with the citations marked there.
type stop struct {
	spot
	cites []int // indexes of the layoutCites
}

// layout lists the places of the markers in a text and the parts of it that they replace. Both lists are in the order
// of the text, and no stop lies inside a cut.
type layout struct {
	stops []stop
	cuts  []markdown.Span
}

// visible is a link or mark, or a run of them, that a marker replaces.
type visible struct {
	markdown.Span
	line   markdown.Span
	prose  bool // a link with words of the sentence, not in parentheses
	phrase bool // these words are no name
	named  bool // a link with words, not in parentheses
	cites  []int
	spot
}

// layOut finds the stops for cites.
func (p places) layOut(h *halt.Halt, cites []layoutCite, sources []Source) layout {
	var out layout
	if isJSON(p.Text) {
		return out
	}
	links := p.visibles(cites, sources)
	taken := make(map[int]bool, len(cites))
	for i := range links {
		v := &links[i]
		h.Check()
		p.replace(v)
		out.cuts = append(out.cuts, v.Span)
		out.stops = append(out.stops, stop{v.spot, v.cites})
		for _, c := range v.cites {
			taken[c] = true
		}
	}
	for i := range cites {
		h.Check()
		if taken[i] {
			continue
		}
		s := p.after(cites[i].span.End)
		if cites[i].link {
			if mark, _, ok := p.markInLink(&cites[i]); ok {
				out.cuts = append(out.cuts, mark)
			}
		}
		if at, _ := slices.BinarySearchFunc(
			links, s.at+1,
			func(v visible, at int) int { return cmp.Compare(v.Start, at) },
		); at > 0 &&
			!s.standalone {
			if v := links[at-1]; s.at <= max(v.End, v.at) {
				s = v.spot // it would be before or in what is replaced: merge the markers
			}
		}
		out.stops = append(out.stops, stop{s, []int{i}})
	}
	slices.SortStableFunc(out.cuts, func(a, b markdown.Span) int { return cmp.Compare(a.Start, b.Start) })
	end := 0 // a link that is cut may contain a mark that is cut too
	out.cuts = slices.DeleteFunc(out.cuts, func(s markdown.Span) bool {
		inside := s.Start < end
		end = max(end, s.End)
		return inside
	})
	slices.SortStableFunc(out.stops, func(a, b stop) int { return cmp.Compare(a.at, b.at) })
	all := out.stops
	out.stops = all[:0]
	for _, s := range all { // merge those at the same place
		if n := len(out.stops); n > 0 && out.stops[n-1].at == s.at {
			last := &out.stops[n-1]
			last.cites = append(last.cites, s.cites...)
			last.standalone = last.standalone || s.standalone
			last.space = last.space || s.space
			continue
		}
		out.stops = append(out.stops, s)
	}
	for i := range out.stops {
		slices.Sort(out.stops[i].cites)
	}
	return out
}

// visibles returns the links and marks to replace, in order. Those separated only by spaces, commas and semicolons are
// merged.
func (p places) visibles(cites []layoutCite, sources []Source) []visible {
	var all []visible
	cited := map[markdown.Span]bool{}   // the spans of links and marks
	noWords := map[markdown.Span]bool{} // whether a link contains only marks
	if strings.Contains(p.Text, markBegin) {
		for i := range cites {
			cited[cites[i].span] = cites[i].link || cited[cites[i].span]
		}
	}
	for i := range cites {
		if !cites[i].link {
			continue
		}
		c := cites[i]
		if _, link, ok := p.markInLink(&c); ok {
			bare, known := noWords[link]
			if !known {
				bare = p.isOnlyMarks(link, cited)
				noWords[link] = bare
			}
			if bare {
				c.span = link
			}
		}
		if v, ok := p.visible(&c, sources); ok {
			v.cites = []int{i}
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, func(a, b visible) int { return cmp.Compare(a.Start, b.Start) })
	out := all[:0]
	for _, v := range all {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if v.Start <= last.End || v.line == last.line && strings.Trim(p.Text[last.End:v.Start], " ,;") == "" {
				last.named = last.named && v.Span == last.Span
				last.End = max(last.End, v.End)
				last.prose = last.prose && v.prose
				last.cites = append(last.cites, v.cites...)
				continue
			}
		}
		out = append(out, v)
	}
	for i := range out {
		p.widen(&out[i])
	}
	return slices.DeleteFunc(out, p.isProse)
}

// visible returns c's link if its span consists of links and marks in one line of content. It must not be inside a
// link, in code or around other words: nothing that the reader needs may be removed.
func (p places) visible(c *layoutCite, sources []Source) (visible, bool) {
	s := c.span
	if s.Start < 0 || s.End > len(p.Text) || s.Start >= s.End {
		return visible{}, false
	}
	for s.Start < s.End && markdown.IsSpace(p.Text[s.Start]) {
		s.Start++
	}
	for s.Start < s.End && markdown.IsSpace(p.Text[s.End-1]) {
		s.End--
	}
	line, ok := p.LineAt(s.End)
	if words := p.Text[s.Start:s.End]; !ok || s.Start < line.Start || !isMarks(words) && !isRound(words) {
		return visible{}, false
	}
	for _, at := range [...]int{s.Start, s.End} {
		if _, ok := p.SolidAround(at); ok {
			return visible{}, false
		}
	}
	if h, ok := p.SolidAt(s.Start); ok && h.Kind == markdown.CodeSolid {
		return visible{}, false
	}
	words := linkWords(p.Text[s.Start:s.End])
	prose := isProse(words, c, sources) || s == line && p.isNamedItem(line)
	phrase := prose && isPhrase(words, c, sources)
	return visible{Span: s, line: line, prose: prose, phrase: phrase, named: words != ""}, true
}

// markInLink returns the span of c and the link around it if the span is a file-search mark among the words of a link.
// The mark is cut, and c's marker goes after the link.
func (p places) markInLink(c *layoutCite) (mark, link markdown.Span, ok bool) {
	s := c.span
	if s.Start < 0 || s.End > len(p.Text) || s.Start >= s.End || fileMarkAt(p.Text[s.Start:]) != s.End-s.Start {
		return s, s, false
	}
	line, ok := p.LineAt(s.End)
	around, solid := p.SolidAround(s.Start)
	return s, around.Span, ok && solid && s.Start >= line.Start && around.Kind != markdown.CodeSolid &&
		p.Text[around.Start] == '[' && s.End < around.End
}

// isOnlyMarks reports whether the words of a link are only marks, all of them cited.
func (p places) isOnlyMarks(link markdown.Span, cited map[markdown.Span]bool) bool {
	at := link.Start + 1
	for n := 1; n > 0; at += n {
		n = fileMarkAt(p.Text[at:link.End])
		if n > 0 && !cited[markdown.Span{Start: at, End: at + n}] {
			return false
		}
	}
	return strings.HasPrefix(p.Text[at:link.End], "](")
}

// isNamedItem reports whether a line is a list item of only a named link: without it, the item would be empty.
func (p places) isNamedItem(line markdown.Span) bool {
	mark := strings.TrimRight(p.Text[strings.LastIndexByte(p.Text[:line.Start], '\n')+1:line.Start], " \t")
	label, _, ok := strings.Cut(p.Text[line.Start:line.End], "](")
	return ok && label[0] == '[' && strings.ContainsFunc(label, unicode.IsLetter) &&
		mark != "" && strings.IndexByte("-*+.)", mark[len(mark)-1]) >= 0
}

// widen extends v to the parentheses around it.
func (p places) widen(v *visible) {
	before, after := p.Text[v.line.Start:v.Start], p.Text[v.End:v.line.End]
	for _, pair := range [...][2]string{{"(", ")"}, {"（", "）"}} {
		if strings.HasSuffix(before, pair[0]) && strings.HasPrefix(after, pair[1]) {
			v.Start -= len(pair[0])
			v.End += len(pair[1])
			v.prose, v.phrase, v.named = false, false, false
			return
		}
	}
}

// isProse reports whether v is part of a sentence, which would be incomplete without it: "According to [Reuters](u),
// …", or of a list of titles. A link after its sentence is a citation, not a part of it.
func (p places) isProse(v visible) bool {
	before := strings.TrimRight(p.Text[v.line.Start:v.Start], " \t")
	if v.named && leadsIn().MatchString(before[max(0, len(before)-maxLeadIn):]) {
		return true
	}
	if !v.prose {
		return false
	}
	if strings.Trim(before, "*_~") == "" {
		return true
	}
	after := strings.TrimLeft(p.Text[v.End:v.line.End], "*_~ \t")
	return !endsSentence(before) && (v.phrase || after != "" && strings.IndexByte(".!?", after[0]) < 0)
}

// leadsIn matches words after which a sentence needs the name of the source: "according to [Reuters](u)", "graze and
// [rest](u)".
var leadsIn = text.Pattern(`(?i)(?:^|[\s(,;])(?:and|or|but|by|from|to|of|in|on|at|with|via|per|see|the|an?|` +
	`as|than|says?|und|oder|von|vom|bei|beim|laut|aus|in|im|auf|mit|zu|zum|zur|siehe|der|die|das|den|dem|` +
	`et|ou|de|du|des|selon|par|dans|sur|voir|le|la|les|y|o|según|por|en|con|el|los|las|e|secondo|da|di|del|il|` +
	`segundo|com|em|van|volgens|door|op|met|het|een)$`)

// maxLeadIn is how many bytes before a link are read for it.
const maxLeadIn = 24

// replace determines what is removed with v and where its marker goes. The space before v is removed too and, of two
// equal full stops around it, the second.
func (p places) replace(v *visible) {
	before := strings.TrimRight(p.Text[v.line.Start:v.Start], " \t")
	after := p.Text[v.End:v.line.End]
	if before == "" || markdown.IsDelimiter(before[len(before)-1]) && after != "" && markdown.IsDelimiter(after[0]) {
		v.spot = spot{at: v.End} // alone on its line or in its emphasis
		return
	}
	v.Start = v.line.Start + len(before)
	if last, n := utf8.DecodeLastRuneInString(
		before,
	); endsSentence(before) && strings.HasPrefix(after, before[len(before)-n:]) &&
		last != utf8.RuneError {
		v.End += n
	}
	v.spot = p.after(v.End)
	if v.at < v.End || v.standalone { // only in gaps, in unusual text: the marker takes the link's place
		v.spot = spot{at: v.End}
	}
	// The marker now follows what preceded the cut.
	if v.at == v.End {
		v.space = p.needsSpace(v.Start, v.line)
	}
}

// endsSentence reports whether s ends in a sentence terminator.
func endsSentence(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return strings.ContainsRune(".!?。！？…", r)
}

// linkWords returns the words of a link, "" if they have no letters or are a mark.
func linkWords(s string) string {
	label, _, ok := strings.Cut(strings.TrimPrefix(s, "["), "](")
	if !ok || s[0] != '[' {
		return ""
	}
	label = strings.Trim(label, "[]*_`\\ ")
	if strings.HasPrefix(label, markBegin) && isMarks(label) || !strings.ContainsFunc(label, unicode.IsLetter) {
		return ""
	}
	return label
}

// isProse reports whether a link's words are part of the answer rather than a number or the name of its source.
func isProse(label string, c *layoutCite, sources []Source) bool {
	if label == "" {
		return false
	}
	for _, i := range c.sources {
		src := &sources[i]
		for _, name := range [...]string{src.Title, src.Site, src.Filename, src.URL, src.ID, sourceHost(src)} {
			if name != "" && strings.EqualFold(name, label) {
				return false
			}
		}
	}
	return true
}

// isPhrase reports whether a link's words, which are not the name of its source, read as words of the sentence, also at
// its end: "They [hold hands](u)."; and not as "link", a host, or what the source is called in part.
func isPhrase(label string, c *layoutCite, sources []Source) bool {
	folded := foldName(label)
	if strings.Contains(label, ".") && !strings.Contains(label, " ") || callsSource[strings.Trim(folded, " .:…→")] {
		return false
	}
	for _, i := range c.sources {
		src := &sources[i]
		for _, name := range [...]string{src.Title, src.Site, src.Filename, sourceHost(src)} {
			if name = foldName(name); name != "" && (strings.Contains(name, folded) || strings.Contains(folded, name)) {
				return false
			}
		}
	}
	r, _ := utf8.DecodeRuneInString(label)
	return unicode.IsLower(r)
}

// callsSource are words of links that stand for their source and not for what the sentence says.
var callsSource = headings(`source|sources|link|links|ref|reference|citation|website|web|page|article|report|study|
paper|pdf|more|read more|learn more|see more|details|full text|via|original|documentation|docs|quelle|link zur quelle|
mehr|mehr dazu|artikel|bericht|studie|weiterlesen|fuente|enlace|fonte|lien|lire la suite|bron`)

// isMarks reports whether s is only links and marks: ([a](u)), [a](u), [[1]](u), [1], [doc1], 【1†a】, <u>, http://u.
func isMarks(s string) bool {
	found := false
	for s != "" {
		n := markLen(s)
		switch {
		case n > 0:
			found = true
		case strings.IndexByte(" ,;|()", s[0]) >= 0:
			n = 1
		default:
			return false
		}
		s = s[n:]
	}
	return found
}

// markLen returns the length of the link or mark at the start of s, or 0 if there is none.
func markLen(s string) int {
	switch {
	case s[0] == '[':
		n, _ := markdown.Link(s, true)
		if n == 0 {
			n, _ = markdown.Brackets(s, true)
		}
		if n > 0 && strings.HasPrefix(s[n:], "^") { // the last of a raised run
			n++
		}
		return n
	case strings.HasPrefix(s, markBegin), strings.HasPrefix(s, "［"), strings.HasPrefix(s, "〔"):
		if i := strings.IndexAny(s, markEnd+"］〕"); i > 0 {
			return i + len(markEnd)
		}
	case strings.HasPrefix(s, "^["):
		if n := markLen(s[1:]); n > 0 {
			return 1 + n
		}
	case strings.HasPrefix(s, "%["):
		if n := markLen(s[1:]); n > 0 && strings.HasPrefix(s[1+n:], "%") {
			return 2 + n
		}
	case s[0] == 0xC2, s[0] == 0xE2:
		n := 0
		for {
			r, size := utf8.DecodeRuneInString(s[n:])
			if markdown.SuperscriptDigit(r) < 0 {
				return n
			}
			n += size
		}
	case s[0] == '<':
		if n, _ := markdown.Raised(s, true); n > 0 && isRaisedMark(s[:n]) {
			return n
		}
		if i := strings.IndexAny(s[1:], "<> "); i > 0 && s[i+1] == '>' {
			return i + 2
		}
	case strings.HasPrefix(s, "http://"), strings.HasPrefix(s, "https://"), strings.HasPrefix(s, "sandbox:/"):
		if i := strings.IndexAny(s, " \t\n)>"); i > 0 {
			return i
		}
		return len(s)
	}
	return 0
}

// The brackets of OpenAI's file-search marks.
const (
	markBegin = "【"
	markEnd   = "】"
)

// sourceHost returns the host of a source's URL without www, or "" if there is none.
func sourceHost(s *Source) string { return strings.TrimPrefix(text.Host(s.URL), "www.") }
