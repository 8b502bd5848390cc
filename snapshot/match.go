package snapshot

import (
	"bytes"
	"html"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid/internal/text"
)

// Quote is what a text is said to contain. Offsets are in code points, half-open.
type Quote struct {
	Exact string // the words quoted
	// the text before and after them, of which the nearest 64 code points are compared; empty if unknown
	Prefix, Suffix string
	Start, End     int // their place; unknown if End is 0
}

// Match is the place of a quote in a text. Offsets are in code points of the text, half-open.
type Match struct {
	Start int       `json:"start"`
	End   int       `json:"end"`
	How   MatchKind `json:"how"`
	Count int       `json:"count"` // number of occurrences, without overlaps
	// Cut means that it begins inside a word or number, or ends inside a number, so that the quote may mean something
	// else than the text: "5 percent" in "15 percent".
	Cut bool `json:"cut,omitempty"`
	// Text is the words found, in the form of the quote: without its markup, and without what is between the pieces of
	// an interrupted or shortened one.
	Text string `json:"-"`
}

// MatchKind is how a text matches a quote.
type MatchKind string

// The kinds of a [Match], in the order in which they are tried. All of them mean that the text has the quote.
const (
	MatchExact       MatchKind = "exact"       // in the quote's place
	MatchElsewhere   MatchKind = "elsewhere"   // exactly, but in another place, or the quote has no place
	MatchReformatted MatchKind = "reformatted" // in another form: see [Find]
	MatchUnmarked    MatchKind = "unmarked"    // without the quote's markup and editorial marks
	MatchInterrupted MatchKind = "interrupted" // with something between that the document sets apart
	MatchShortened   MatchKind = "shortened"   // the pieces between the quote's ellipses, in order in one passage
)

// The weights for choosing between several hits, as in the annotation tools of Hypothesis.
const (
	weightContext  = 20 // each of prefix and suffix
	weightPosition = 2
)

// ShortExcerpt reports whether a quote is too short to be meaningful: fewer than 16 code points and fewer than three
// words.
func ShortExcerpt(exact string) bool {
	exact = Normalize(exact)
	return utf8.RuneCountInString(exact) < 16 && strings.Count(exact, " ") < 2
}

// Find searches for a quote in a text that is normalised, as [Text.Content] is. The quote is normalised first.
//
// It prefers the quote in its place, else an exact hit anywhere, else the quote in another form: with other punctuation
// and white space, character references, compatibility characters such as ligatures and full-width digits, raised and
// lowered digits, groups of digits, marks of notes, another case of the first letter; then without Markdown, HTML and
// editorial brackets in the quote; then the pieces between its ellipses. Whatever makes a different number, word or
// sentence stays significant: docs/attribution-v1.md has the rules.
//
// A hit in another place neither begins inside a word or number nor ends inside a number ("5" is not in "52", nor
// "able" in "unable"), unless the quote has an ellipsis there or its prefix or suffix continues as the text does; then,
// and in the quote's place, it is [Match.Cut]. It may end inside a word, because quotes are often cut to a length.
// Among several hits Find takes the one whose prefix, suffix and place agree best.
//
// It takes time linear in the text and the quote, and never accepts text that is merely similar.
func Find(text string, q *Quote) (Match, bool) { return NewSearcher(text).Find(q) }

// Searcher searches for many quotes in one text, and prepares once what [Find] prepares for each. It is safe for
// concurrent use. Create it with [NewSearcher] or [Text.Searcher].
type Searcher struct {
	views    []*view // the whole text, then the text without what is set apart
	headings []string
	comma    bool // the decimal sign of the text's language is a comma
}

// NewSearcher returns a Searcher for a text that is normalised, as [Text.Content] is.
func NewSearcher(text string) *Searcher {
	return &Searcher{views: []*view{newView(text, nil, nil, false)}}
}

// Searcher returns a Searcher for the text. It also finds quotes that something set apart interrupts, or that begin
// with a heading of the text.
func (t *Text) Searcher() *Searcher {
	s := &Searcher{comma: decimalCommas[language(t.Language)], headings: titles(t)}
	s.views = []*view{newView(t.Content, t.Blocks, nil, s.comma)}
	if flow := t.flow(s.comma); flow != nil {
		s.views = append(s.views, flow)
	}
	return s
}

// Find searches for a quote, as the function [Find] does.
func (s *Searcher) Find(q *Quote) (Match, bool) {
	exact := Normalize(q.Exact)
	if exact == "" {
		return Match{}, false
	}
	f := finder{
		view:   s.views[0],
		quote:  q,
		prefix: strings.TrimSpace(text.LastRunes(Normalize(q.Prefix), maxContext)),
		suffix: strings.TrimSpace(text.Runes(Normalize(q.Suffix), maxContext)),
	}
	if m, ok := f.find(exact); ok {
		return m, true
	}
	plain := exact
	if unmarked := Normalize(unmark(q.Exact)); unmarked != "" {
		plain = unmarked
	}
	for i, v := range s.views {
		f.view = v
		if m, ok := f.reformatted(exact, s.comma); ok {
			m.How = [...]MatchKind{MatchReformatted, MatchInterrupted}[i]
			if m.Text = Normalize(html.UnescapeString(html.UnescapeString(exact))); sameReduced(plain, exact, s.comma) {
				m.Text = plain
			}
			return m, true
		}
		if plain == exact {
			continue
		}
		if m, ok := f.reformatted(plain, s.comma); ok {
			m.How = [...]MatchKind{MatchUnmarked, MatchInterrupted}[i]
			return m, true
		}
	}
	for _, v := range s.views {
		f.view = v
		if m, ok := f.shortened(plain, s.comma); ok {
			return m, true
		}
	}
	if rest, ok := s.withoutHeading(plain); ok {
		for _, v := range s.views {
			f.view = v
			if m, ok := f.reformatted(rest, s.comma); ok {
				m.How = MatchInterrupted
				return m, true
			}
		}
	}
	return Match{}, false
}

func sameReduced(a, b string, comma bool) bool {
	o := reduceOptions{comma: comma}
	return bytes.Equal(reduce(a, o).out, reduce(b, o).out)
}

// withoutHeading returns a quote without the heading or title that it begins with.
func (s *Searcher) withoutHeading(quote string) (string, bool) {
	o := reduceOptions{comma: s.comma}
	whole := reduce(quote, o)
	for _, h := range s.headings {
		head := reduce(h, o)
		n := len(head.out)
		if n == 0 || n >= len(whole.out) || !bytes.Equal(head.out, whole.out[:n]) {
			continue
		}
		rest := quote[whole.at[n]:]
		if !ShortExcerpt(rest) && !isWordyAt(quote, int(whole.at[n])) {
			return rest, true
		}
	}
	return "", false
}

// isWordyAt reports whether an offset is inside a word.
func isWordyAt(s string, at int) bool {
	last, _ := utf8.DecodeLastRuneInString(s[:at])
	return unicode.IsLetter(last) || unicode.IsDigit(last)
}

// maxContext is how many code points of a quote's prefix and suffix are compared with the text around each hit.
const maxContext = 64

// finder searches for one quote in one view of a text.
type finder struct {
	*view

	quote          *Quote
	prefix, suffix string
}

// hit is a place in a text, in bytes.
type hit struct{ start, end int }

// find searches for the quote unchanged.
func (f *finder) find(exact string) (Match, bool) {
	place := -1 // in bytes
	if f.quote.End > f.quote.Start && f.quote.Start >= 0 {
		if at, ok := byteOffset(f.text, f.quote.Start); ok {
			place = at
		}
	}
	inPlace := place >= 0 && strings.HasPrefix(f.text[place:], exact) &&
		utf8.RuneCountInString(exact) == f.quote.End-f.quote.Start
	b := best{finder: f}
	for at := 0; ; {
		i := strings.Index(f.text[at:], exact)
		if i < 0 {
			break
		}
		h := hit{at + i, at + i + len(exact)}
		at = h.end
		if f.isWhole(h, exact) {
			b.add(h)
		}
	}
	if inPlace {
		m := Match{Start: f.quote.Start, End: f.quote.End, How: MatchExact, Count: max(b.count, 1), Text: exact}
		m.Cut = cuts(f.text, hit{place, place + len(exact)})
		return m, true
	}
	return b.match(MatchElsewhere)
}

// best tracks the best of several hits.
type best struct {
	*finder
	hit   hit
	score float64
	count int
	runes int // code points before at
	at    int // start of the last added hit, in bytes
	total int // code points of the text
}

// add adds a hit. Hits must be added in order.
func (b *best) add(h hit) {
	b.count++
	if b.count == 1 {
		b.hit, b.score = h, -1
		return // a single hit needs no score
	}
	if b.score < 0 {
		b.score = b.rate(b.hit)
	}
	if s := b.rate(h); s > b.score {
		b.hit, b.score = h, s
	}
}

// rate scores how well a hit agrees with the quote's context and place.
func (b *best) rate(h hit) float64 {
	score := weightContext * (agreement(b.text[:h.start], b.prefix, true) + agreement(b.text[h.end:], b.suffix, false))
	if b.quote.End <= 0 {
		return score
	}
	if b.total == 0 {
		b.total = utf8.RuneCountInString(b.text)
	}
	b.runes += utf8.RuneCountInString(b.text[b.at:h.start])
	b.at = h.start
	return score + weightPosition*(1-math.Abs(float64(b.runes-b.quote.Start))/float64(b.total))
}

// match returns the best hit, with its place in code points.
func (b *best) match(how MatchKind) (Match, bool) {
	if b.count == 0 {
		return Match{}, false
	}
	m := b.place(b.hit)
	m.How, m.Count, m.Cut, m.Text = how, b.count, cuts(b.text, b.hit), b.text[b.hit.start:b.hit.end]
	return m, true
}

// agreement returns the share of a context, from 0 to 1, that the text next to a hit has.
func agreement(text, context string, before bool) float64 {
	if context == "" {
		return 0
	}
	n := 0
	if before {
		text = strings.TrimRight(text[max(0, len(text)-len(context)-1):], " ")
		for n < len(text) && n < len(context) && text[len(text)-1-n] == context[len(context)-1-n] {
			n++
		}
	} else {
		text = strings.TrimLeft(text[:min(len(text), len(context)+1)], " ")
		for n < len(text) && n < len(context) && text[n] == context[n] {
			n++
		}
	}
	return float64(n) / float64(len(context))
}

// isWhole reports whether a hit does not cut a word or number in a way that can change its meaning, or the quote itself
// indicates the cut.
func (f *finder) isWhole(h hit, exact string) bool {
	if cutsStart(f.text, h) && !f.begins(h.start) &&
		!strings.HasPrefix(exact, "…") && !strings.HasPrefix(exact, "...") &&
		!continues(f.text[:h.start], f.prefix, true) {
		return false
	}
	return !cutsEnd(f.text, h) || f.begins(h.end+1) ||
		strings.HasSuffix(exact, "…") || strings.HasSuffix(exact, "...") ||
		continues(f.text[h.end:], f.suffix, false)
}

// IsCut reports whether the code points [start, end) of a text begin inside a word or number, or end inside a number:
// see [Match.Cut]. It is false for a place outside the text.
func IsCut(text string, start, end int) bool {
	slice, ok := Slice(text, start, end)
	if !ok || slice == "" {
		return false
	}
	at, _ := byteOffset(text, start)
	return cuts(text, hit{at, at + len(slice)})
}

// WholeWords returns the place of a match, in code points, without the parts of words or numbers at its ends.
func (t *Text) WholeWords(m Match) (start, end int) {
	from, ok := byteOffset(t.Content, m.Start)
	to, okEnd := byteOffset(t.Content, m.End)
	if !ok || !okEnd || to <= from {
		return m.Start, m.End
	}
	h := hit{from, to}
	next, _ := utf8.DecodeRuneInString(t.Content[to:])
	last, _ := utf8.DecodeLastRuneInString(t.Content[:to])
	if i := strings.LastIndexAny(t.Content[from:to], " \n"); i > 0 &&
		(cutsEnd(t.Content, h) || unicode.IsLower(next) && unicode.IsLetter(last)) {
		to = from + i
	}
	if i := strings.IndexAny(t.Content[from:to], " \n"); i > 0 && cutsStart(t.Content, h) {
		from += i + 1
	}
	if ShortExcerpt(t.Content[from:to]) {
		return m.Start, m.End
	}
	start = m.Start + utf8.RuneCountInString(t.Content[h.start:from])
	return start, start + utf8.RuneCountInString(t.Content[from:to])
}

func cuts(text string, h hit) bool { return cutsStart(text, h) || cutsEnd(text, h) }

func cutsStart(text string, h hit) bool {
	before, rest := text[:h.start], text[h.start:]
	// Only lower-case letters continue a word: texts of pages often lack the space before a capital, and scripts
	// without case need none.
	next, _ := utf8.DecodeRuneInString(rest)
	last, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsLower(next) && unicode.IsLetter(last) || cutsNumber(before, rest)
}

func cutsEnd(text string, h hit) bool {
	body, after := text[h.start:h.end], text[h.end:]
	if cutsNumber(body, after) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(after)
	last, _ := utf8.DecodeLastRuneInString(body)
	return unicode.IsDigit(last) && isPercent(next) || isScript(next) && !isAfterNoted(body) ||
		unicode.IsDigit(last) && next == '^' || unicode.IsLetter(last) && unicode.IsDigit(next) && len(after) > 1
}

// continues reports whether the text next to a hit continues as the quote's context does.
func continues(text, context string, before bool) bool {
	if context == "" {
		return false
	}
	if before {
		n := min(len(context), 8)
		return strings.HasSuffix(text, context[len(context)-n:])
	}
	return strings.HasPrefix(text, context[:min(len(context), 8)])
}

// cutsNumber reports whether the border between a and b is inside a number. It looks at a few characters only, so its
// cost is constant.
func cutsNumber(a, b string) bool {
	last, n := utf8.DecodeLastRuneInString(a)
	next, k := utf8.DecodeRuneInString(b)
	switch {
	case unicode.IsDigit(next) && unicode.IsDigit(last):
		return true
	case unicode.IsDigit(next) && isDash(last):
		return isSign(a)
	case unicode.IsDigit(next) && last == '(':
		return isAccounting(b)
	case unicode.IsDigit(next) && last == ' ': // 1 250
		return countDigits(b) == 3 && endsInGroup(a[:len(a)-n])
	case unicode.IsDigit(next):
		return joinsDigits(last) && endsInDigit(a[:len(a)-n])
	default:
		return unicode.IsDigit(last) && joinsDigits(next) && startsWithDigit(b[k:])
	}
}

// endsInGroup reports whether a text ends with a number of one to three digits, or with a group of three.
func endsInGroup(a string) bool {
	n := 0
	for n < len(a) && n < 4 && '0' <= a[len(a)-1-n] && a[len(a)-1-n] <= '9' {
		n++
	}
	before, _ := utf8.DecodeLastRuneInString(a[:len(a)-n])
	return 0 < n && n < 4 && !joinsDigits(before)
}

// joinsDigits reports whether a character between two digits makes them one number or expression.
func joinsDigits(r rune) bool {
	return r > 0 && strings.ContainsRune(".,/:·٫٬⁄", r)
}

func endsInDigit(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsDigit(r)
}

func startsWithDigit(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsDigit(r)
}

// Slice returns the code points [start, end) of a text, or false if the text does not have that place.
func Slice(text string, start, end int) (string, bool) {
	if start < 0 || end < start {
		return "", false
	}
	from, ok := byteOffset(text, start)
	if !ok {
		return "", false
	}
	n, ok := byteOffset(text[from:], end-start)
	if !ok {
		return "", false
	}
	return text[from : from+n], true
}

// byteOffset returns the offset in bytes of the n-th code point of a text; n may be the number of code points.
func byteOffset(text string, n int) (int, bool) {
	for at := range text {
		if n == 0 {
			return at, true
		}
		n--
	}
	return len(text), n == 0
}

func betweenDigits(gap string) byte {
	switch gap {
	case ".", ",":
		return gap[0] // a decimal point
	case "·":
		return '*'
	case "٫", "٬":
		return ';'
	}
	switch c, n := utf8.DecodeRuneInString(strings.TrimSpace(gap)); {
	case n != len(strings.TrimSpace(gap)):
	case c == '/', c == ':':
		return byte(c)
	case isDash(c):
		return dashByte
	}
	return otherByte
}

// betweenLetters distinguishes a gap between words from one inside a word: a hyphen, perhaps at the end of a line.
func betweenLetters(gap string, last, next rune) byte {
	switch gap {
	case "'", "’", "‘", "ʼ", "´":
		return '\''
	case "[", "]": // [T]he
		return 0
	}
	c, n := utf8.DecodeRuneInString(gap)
	if (c == '-' || c == '‐' || c == '‑') && strings.TrimSpace(gap[n:]) == "" {
		return 0
	}
	if unicode.IsUpper(next) && !unicode.IsUpper(last) || unspaced(last) || unspaced(next) {
		return 0 // texts of pages often lack the space there
	}
	return otherByte
}

// unspaced reports whether the script of a letter has no white space between words.
func unspaced(r rune) bool {
	return r > 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo, unicode.Yi,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
}

// minus is the minus sign, which is not a dash in Unicode.
const minus = '\u2212'

// isDash reports whether a character is a hyphen, a dash or a minus sign.
func isDash(r rune) bool { return r == '-' || r > 0x7f && (r == minus || unicode.Is(unicode.Pd, r)) }

// isSign reports whether before, the text before a number, ends with a dash that is a sign: it does not follow a
// letter, a digit or another dash.
func isSign(before string) bool {
	last, n := utf8.DecodeLastRuneInString(before)
	if !isDash(last) {
		return false
	}
	last, n = utf8.DecodeLastRuneInString(before[:len(before)-n])
	return n == 0 || !unicode.IsLetter(last) && !unicode.IsMark(last) && !unicode.IsNumber(last) && !isDash(last)
}

// isAccounting reports whether a text begins with a number followed by a closing parenthesis.
func isAccounting(text string) bool {
	const longest = 32
	for i, r := range text[:min(len(text), longest)] {
		switch {
		case r == ')':
			return i > 0
		case !unicode.IsDigit(r) && r != '.' && r != ',' && !isPercent(r):
			return false
		}
	}
	return false
}

func isPercent(r rune) bool {
	return r > 0 && strings.ContainsRune("%‰‱％﹪٪؉؊", r)
}

func isQuestion(r rune) bool { return r == '?' || r == '？' || r == '؟' }

func kindOf(c rune) kind {
	switch {
	case c < utf8.RuneSelf:
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			return letterKind
		case '0' <= c && c <= '9':
			return digitKind
		}
		if c > 0 && strings.ContainsRune("$+<=>^~%?", c) {
			return otherKind
		}
		return noKind
	case c == 'ʼ', '■' <= c && c <= '◿': // an apostrophe; shapes, which are bullets
		return noKind
	case unicode.IsLetter(c), unicode.IsMark(c):
		return letterKind
	case unicode.IsNumber(c):
		return digitKind
	case unicode.IsSymbol(c), isPercent(c), isQuestion(c), '′' <= c && c <= '‷': // primes: feet, minutes
		return otherKind
	}
	return noKind
}
