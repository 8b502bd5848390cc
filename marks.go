package ibid

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/text"

	"github.com/ibidhq/ibid/internal/markdown"
	"github.com/ibidhq/ibid/internal/wire"
)

// marks finds the marks by which a model cites in the text itself: [1], [1, 2], [doc-a], 【1†source】, [^1], (Source 2),
// ¹ and their like (see [markList] for what is inside). A mark is only what the list has. It ignores lookalikes in
// code, math, an address or a link, and those that words before or after give away: argv[1], the interval [1, 5]. It
// reads the text once, as it grows, and stops before anything that the next bytes may still change.
type marks struct {
	*markList
	from  int    // where the text to search begins
	past  []Span // marks that refer to nothing in the list
	lexer markdown.Lexer

	end    int  // of the last mark, also of one in past
	raised bool // it is in a run of raised marks, and not its last: ^[2][1]^
	spaced int  // how many marks have a space before them
	glued  int  // how many have not
	lines  listReader
}

// restart reads the text from the beginning again.
func (m *marks) restart() {
	*m = marks{markList: m.markList, from: m.from, end: -1}
	m.lexer = markdown.Lexer{At: m.from, Wide: m.Style != wire.DocNumber, Links: m.Names}
	m.lines.at = m.from
}

// textMark is one mark in the text.
type textMark struct {
	span Span
	refs []int // indexes in the list
	lost bool  // some of it refers to nothing
}

// given reports whether the list is what the model was given, and not the provider's.
func (m *marks) given() bool { return m.isGiven }

// setMarks sets the list that the marks refer to.
func (c *candidate) setMarks(w *wire.Markers) {
	if c.marks != nil && !c.marks.given() && c.marks.Style == w.Style &&
		c.marks.Names == w.Names && slices.EqualFunc(c.marks.Refs, w.Refs, sameRef) {
		return
	}
	const limit = 64 // changes of the list, each of which means reading the text again
	if c.relisted++; c.relisted > limit {
		c.fold.limit("marker lists")
		return
	}
	c.useMarks(newMarkList(w, c.fold.sources.calls(w), false))
}

// useMarks reads the text again with another list.
func (c *candidate) useMarks(l *markList) {
	c.marks = &marks{markList: l, from: c.marked}
	c.marks.restart()
	c.scanMarks(c.closed)
}

// scanMarks adds citations for the marks that have become certain.
func (c *candidate) scanMarks(last bool) {
	text := c.text.String()
	for {
		c.fold.halt.Check()
		found, ok := c.marks.next(text, last)
		if !ok {
			break
		}
		if found.lost && len(c.marks.past) < c.fold.limits.Issues {
			c.marks.past = append(c.marks.past, found.span)
		}
		cite := wire.Cite{
			Key:    markKey(found.span.Start),
			Part:   wire.Part{Candidate: c.index},
			Base:   wire.AnswerBase,
			Unit:   wire.Bytes,
			Start:  found.span.Start,
			End:    found.span.End,
			Covers: wire.Link,
			Origin: wire.OriginMarker,
			Quote:  text[found.span.Start:found.span.End],
		}
		for _, i := range found.refs {
			if len(cite.Refs) < c.fold.limits.Items && c.marks.Refs[i].Source != "" {
				cite.Refs = append(cite.Refs, c.marks.Refs[i])
			}
		}
		if len(cite.Refs) == 0 || c.marks.given() && c.fold.cited {
			continue
		}
		if c.marks.given() {
			c.fold.addGiven()
		}
		switch {
		case found.span.Len() == 0:
			cite.Covers, cite.Quote = wire.Point, ""
		case strings.HasSuffix(cite.Quote, ")") && cite.Quote[0] == '[':
			cite.Key = linkKey(found.span.Start)
		}
		c.addCite(&cite)
	}
	if last {
		for _, s := range c.marks.past {
			c.fold.issue("marker-out-of-range", text[s.Start:s.End])
		}
	}
}

// markKey returns the key of the citation that was read from the mark at an offset.
func markKey(at int) string { return "mark:" + strconv.Itoa(at) }

// linkKey is the same for a link to a source.
func linkKey(at int) string { return "link:" + strconv.Itoa(at) }

// next returns the next mark, or false at the end of what can be read for now.
func (m *marks) next(text string, last bool) (textMark, bool) {
	for {
		t, ok := m.lexer.Next(text, last)
		if !ok {
			return textMark{}, false
		}
		found, state := m.at(text, Span(t), last)
		switch state {
		case openLink:
			m.lexer.At = t.Start // it is read again
			return textMark{}, false
		case wholeLink:
			m.end = found.span.End
			m.lexer.At = m.end
			switch start := found.span.Start; {
			case len(found.refs) == 0:
			case start > 0 && !markdown.IsSpace(text[start-1]):
				m.glued++
			default:
				m.spaced++
			}
			return found, true
		case notLink:
		}
	}
}

// maxMarkContext is how many bytes before a mark are read, and how many after it at most.
const maxMarkContext = 256

// at reads what the lexer found at t: a mark, none, or one that needs more text.
func (m *marks) at(text string, t Span, last bool) (found textMark, state linkState) {
	open := text[t.Start]
	if open == '[' && text[t.End-1] == ')' {
		return m.link(text, t, last)
	}
	inside, raised := unwrapped(text[t.Start:t.End])
	element := open == '<'
	if element && inside == "" {
		return found, notLink
	}
	sense, ok := m.read(inside)
	if !ok || !m.Names && !element && (raised || open == '(' || inside[0] == '^' && inside[len(inside)-1] != '^') {
		return found, notLink
	}
	if t.End == len(text) && !last {
		return found, openLink
	}
	t, state = m.withOuter(text, t, last)
	if state != wholeLink {
		return found, state
	}
	if t.End == len(text) && !last {
		return found, openLink
	}
	found = textMark{span: t, refs: sense.refs, lost: sense.lost}
	before := text[max(0, t.Start-maxMarkContext):t.Start]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after := text[t.End:min(len(text), t.End+maxMarkContext)]
	line, _, whole := strings.Cut(after, "\n")
	whole = whole || last || len(after) == maxMarkContext
	begins := beginsLine(text, t.Start)
	switch {
	case begins && strings.HasPrefix(after, ":"), beginsImage(text, t.Start): // a definition of a link or footnote
		return found, notLink
	case m.lines.entry(text, t.Start):
		return found, notLink
	case begins && m.calls != nil && len(sense.refs) > 0:
		if !whole {
			return found, openLink
		}
		if m.entitles(sense.refs, line) {
			return found, notLink
		}
	}
	switch {
	case open == '(':
		if !whole && len(after) < longestConjunction {
			return found, openLink
		}
		cites := sense.noun || m.Round && !begins && closesWords(after) && !isCounted(before)
		if !cites && (sense.numbers > 0 || !strings.ContainsAny(inside, "._")) {
			return found, notLink
		}
	case raised:
		if isExponent(before, after) {
			return found, notLink
		}
	case sense.numbers > 1 && !sense.noun && isInterval(before),
		open == '[' && m.isSubscript(t, before, after):
		return found, notLink
	}
	return found, wholeLink
}

// unwrapped returns what is inside a mark's brackets or element, or the digits that superscript ones stand for, and
// whether it is raised. It returns "" for an element that is no mark.
func unwrapped(s string) (inside string, raised bool) {
	if inside = superscript(s); inside != "" {
		return inside, true
	}
	if s[0] == '<' {
		return raisedInside(s)
	}
	_, begin := utf8.DecodeRuneInString(s)
	_, end := utf8.DecodeLastRuneInString(s)
	return s[begin : len(s)-end], false
}

// withOuter returns a mark with what stands around its brackets: [[1]], ^[1]^, %[1]%. It returns notLink if the
// brackets are only the beginning of what is in outer ones: [[1] and more].
func (m *marks) withOuter(text string, t Span, last bool) (outer Span, state linkState) {
	raises := strings.HasSuffix(text[:t.Start], "^")
	switch {
	case text[t.Start] != '[':
	case m.Names && strings.HasSuffix(text[:t.Start], "%"): // %[1]%
		if t.End == len(text) && !last {
			return t, openLink
		}
		if strings.HasPrefix(text[t.End:], "%") {
			return Span{t.Start - 1, t.End + 1}, wholeLink
		}
	case strings.HasSuffix(text[:t.Start], "["):
		if !strings.HasPrefix(text[t.End:], "]") {
			return t, notLink
		}
		return Span{t.Start - 1, t.End + 1}, wholeLink
	case raises || m.raised && m.end == t.Start:
		const longest = 128
		rest := text[t.End:min(len(text), t.End+longest)]
		n := len(raisedRest().FindString(rest))
		if n == 0 && !last && len(rest) < longest && strings.Trim(rest, "[]0123456789") == "" {
			return t, openLink
		}
		if m.raised = n > 1; n == 1 {
			t.End++
		}
		if raises && n > 0 {
			t.Start--
		}
	}
	return t, wholeLink
}

// raisedRest matches what may follow a mark in a run of raised ones: ^[2][1]^.
var raisedRest = text.Pattern(`^(?:\[\d{1,4}\]){0,16}\^`)

// link reads a link. It is a mark if its address is that of a source, or if it has no address and its words are a mark:
// [1](@ref). Where its words belong to the sentence, rendering keeps them.
func (m *marks) link(text string, t Span, last bool) (found textMark, state linkState) {
	words, _ := markdown.Brackets(text[t.Start:t.End], true)
	inside, destination := text[t.Start+1:t.Start+words-1], text[t.Start+words+1:t.End-1]
	if fields := strings.Fields(destination); len(fields) > 0 {
		destination = strings.Trim(fields[0], "<>")
	}
	if beginsImage(text, t.Start) || m.lines.entry(text, t.Start) {
		return found, notLink
	}
	sense, isMark := m.read(strings.Trim(inside, "[]"))
	if i := m.urls[string(appendNormalURL(nil, destination))]; i > 0 {
		if len(text) < t.End+2 && !last {
			return found, openLink
		}
		found = textMark{span: t, refs: []int{i - 1}}
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[t.End:], " "))
		if sense.numbers == 0 && unicode.IsLower(next) {
			found.span.Start = t.End // the sentence needs the words
			return found, wholeLink
		}
		if strings.HasSuffix(text[:t.Start], "(") && strings.HasPrefix(text[t.End:], ")") {
			found.span = Span{t.Start - 1, t.End + 1}
		}
		return found, wholeLink
	}
	elsewhere := strings.Contains(destination, "://") || strings.ContainsAny(destination, "./")
	if !isMark || elsewhere && (!strings.HasPrefix(inside, "[") || !m.unaddressed(sense.refs)) {
		return found, notLink
	}
	return textMark{span: t, refs: sense.refs, lost: sense.lost}, wholeLink
}

// unaddressed reports whether sources have no address of their own: then a link [[1]](https://…) has one.
func (m *marks) unaddressed(refs []int) bool {
	return m.isGiven && len(refs) > 0 && !slices.ContainsFunc(refs, func(i int) bool { return m.calls[i].url != "" })
}

// raisedTags matches the tags in a <sup> element, and what stands between its marks if they are several.
var raisedTags, raisedGaps = regexp.MustCompile(`(?i)</?(?:sup|a)(?: [^<>]*)?>`), regexp.MustCompile(`\][\s,;]*\[`)

// raisedInside returns what marks a <sup> element contains: "1, 2" of <sup>[1][2]</sup> and of
// <sup><a href="#1">1</a>, <a href="#2">2</a></sup>; "" if it has others. Bare means that they are numbers as exponents
// are, without brackets and links.
func raisedInside(s string) (inside string, bare bool) {
	inside = strings.TrimSpace(raisedTags.ReplaceAllString(s, ""))
	bare = !strings.Contains(s, "</a>") && !strings.Contains(inside, "[")
	inside = strings.TrimSuffix(strings.TrimPrefix(raisedGaps.ReplaceAllString(inside, ", "), "["), "]")
	if strings.ContainsAny(inside, "[]<>") {
		return "", false
	}
	return inside, bare
}

// superscript returns superscript digits as plain ones, or "" for anything else.
func superscript(s string) string {
	var digits []byte
	for _, r := range s {
		n := markdown.SuperscriptDigit(r)
		if n < 0 {
			return ""
		}
		digits = strconv.AppendInt(digits, int64(n), 10)
	}
	return string(digits)
}

// isExponent reports whether superscript digits between before and after are an exponent, as in km², x² or 10³.
func isExponent(before, after string) bool {
	letters := len(before) - len(strings.TrimRightFunc(before, unicode.IsLetter))
	word := before[len(before)-letters:]
	prev, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	switch {
	case before == "", unicode.IsDigit(prev) && !yearEnd.MatchString(before), unicode.IsLetter(next),
		strings.ContainsRune("⁺⁻⁼⁽", next):
		return true
	case letters > 0:
		return utf8.RuneCountInString(word) == 1 || units[strings.ToLower(word)]
	}
	return prev == ')' && strings.ContainsAny(next1(after), "+-*/=^")
}

// yearEnd matches a year at the end: what follows it, as in 1911¹, is hardly its exponent.
var yearEnd = regexp.MustCompile(`(?:^|[^\d.,])(?:1[5-9]|20)\d\d$`)

// next1 returns the first byte after white space, as a string.
func next1(s string) string {
	s = strings.TrimLeft(s, " ")
	return s[:min(1, len(s))]
}

// units are the units that are squared or cubed, and the functions whose powers are written before their arguments.
var units = map[string]bool{
	"mm": true, "cm": true, "dm": true, "km": true, "nm": true, "µm": true, "ft": true, "in": true, "yd": true,
	"mi": true, "mc": true, "sec": true, "inch": true, "feet": true, "yards": true, "miles": true, "kpc": true,
	"sin": true, "cos": true, "tan": true, "log": true, "ln": true,
}

// longestConjunction is the length of text after parentheses that is needed to see whether a conjunction follows.
const longestConjunction = 10

// conjunction matches what may follow the mark of a clause within a sentence.
var conjunction = regexp.MustCompile(`^ (?:and|but|or|while|whereas|which|so|und|aber|oder|wobei|sowie|et|mais|ou|` +
	`y|pero|e|ma|en) `)

// closesWords reports whether a mark in parentheses before s closes a clause, as a number in a list (1) like this one
// does not.
func closesWords(s string) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, " "))
	return s == "" || strings.ContainsRune(".,;:!?)]}…。，；：！？）\r\n|([", r) || strings.TrimLeft(s, " ") == "" ||
		conjunction.MatchString(s)
}

// counts matches a word whose number follows in parentheses: equation (1), step (2).
var counts = text.Pattern(`(?i)(?:equations?|eqs?\.|sections?|sec\.|steps?|figures?|figs?\.|tables?|chapters?|` +
	`options?|cases?|formulas?|points?|articles?|paragraphs?|gleichung|abschnitt|schritt|tabelle|abbildung|punkt|` +
	`absatz|art\.|abs\.)(?: \(\d+\),?(?: and| und)?)? ?$`)

// isCounted reports whether a number in parentheses after s counts something other than sources, or items of a list in
// the sentence.
func isCounted(s string) bool {
	trimmed := strings.TrimRight(s, " ")
	return counts().MatchString(s) || trimmed == "" || strings.HasSuffix(trimmed, ":")
}

// intervals matches words before an interval, a vector or another mathematical list.
var intervals = text.Pattern(`(?i)(?:\b(?:intervals?|range|ranges|between|within|vectors?|matrix|arrays?|` +
	`tuples?|coordinates?|domain|bounds?|segment|ci|intervall\w*|bereich|vektor\w*|wertebereich|zwischen|intervalle|` +
	`plage|vecteur|intervalo|rango|vector)\b|区间|范围|向量|数组)[^.!?;,]{0,16}$|[=∈×<>]\s*$`)

// isInterval reports whether several numbers in brackets after s are an interval or the like.
func isInterval(s string) bool { return intervals().MatchString(s[max(0, len(s)-48):]) }

// identifier matches the name of a variable at the end of s: with an underscore, a single small letter, a command of
// LaTeX, or one that programs commonly use.
var identifier = regexp.MustCompile(`(?:^|[^\pL\pN ]|[^\pN] )(?:[A-Za-z0-9]*_[A-Za-z0-9_]*|\$[A-Za-z_]\w*|[a-z]|` +
	`\\[A-Za-z]+|argv?s?|arr|vec|buf|ptr|idx|str|obj|dict|params|sys|tmp|foo|bar|env|cmd|kwargs|` +
	`[a-z]{3,}[A-Z][a-z]\w*)$`)

// isSubscript reports whether brackets belong to what precedes them: the index of an array, the label of a link, the
// argument of a command.
func (m *marks) isSubscript(t Span, before, after string) bool {
	if strings.HasPrefix(after, "{") {
		return true
	}
	prev, _ := utf8.DecodeLastRuneInString(before)
	switch {
	case prev == ']' && m.end != t.Start:
		return true
	case !unicode.IsLetter(prev) && !unicode.IsDigit(prev) && prev != '_':
		return false
	}
	next, _ := utf8.DecodeRuneInString(after)
	word := before[max(0, len(before)-40):]
	if identifier.MatchString(word) {
		return true
	}
	ascii := prev < utf8.RuneSelf && !unicode.IsDigit(prev)
	return m.Names && ascii && m.spaced > 0 && m.glued == 0 && (next == ' ' || next == ')') // another style
}

// entitles reports whether the rest of a line after a mark names the source that the mark refers to: then it is an
// entry of a list that the model wrote.
func (m *marks) entitles(refs []int, rest string) bool {
	rest = foldName(strings.TrimLeft(rest, " \t:.)–—-*_\"“"))
	for _, i := range refs {
		c := &m.calls[i]
		for _, name := range []string{c.title, c.filename, c.url} {
			if isEntitled(rest, foldName(name)) {
				return true
			}
		}
	}
	return false
}

// beginsImage reports whether an image may begin before the bracket at an offset: ![1] does, "Wow![1]" does not.
func beginsImage[T string | []byte](text T, at int) bool {
	return at > 0 && text[at-1] == '!' && (at == 1 || markdown.IsSpace(text[at-2]))
}

// beginsLine reports whether only white space and quote or list marks precede an offset on its line.
func beginsLine(text string, at int) bool {
	const limit = 64 // bytes
	before := text[max(0, at-limit):at]
	newline := strings.LastIndexByte(before, '\n')
	return (newline >= 0 || at <= limit) && strings.Trim(before[newline+1:], " \t\r>-*+") == ""
}
