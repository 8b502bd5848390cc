package snapshot

import (
	"math"
	"strings"
	"sync"
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
}

// MatchKind is how a text matches a quote.
type MatchKind string

// The kinds of a [Match]. All of them mean that the text has the quote.
const (
	MatchExact       MatchKind = "exact"       // in the quote's place
	MatchElsewhere   MatchKind = "elsewhere"   // exactly, but in another place, or the quote has no place
	MatchReformatted MatchKind = "reformatted" // with the same letters, digits and symbols; see [Find]
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
// It prefers the quote in its place, else an exact hit anywhere, else the same letters, digits and symbols (Unicode's
// L, N, S and M) with any other punctuation and white space between them. In the last case, too, case matters, and so
// does what makes a different number, word or sentence: a sign, parentheses around a number, a percent sign, a prime,
// whatever is between two digits, white space between words (but not before a capital, in scripts that have none, or
// after a hyphen), an apostrophe inside a word, a question mark.
//
// A hit in another place neither begins inside a word or number nor ends inside a number ("5" is not in "52", nor
// "able" in "unable"), unless the quote has an ellipsis there or its prefix or suffix continues as the text does; then,
// and in the quote's place, it is [Match.Cut]. It may end inside a word, because quotes are often cut to a length.
// Among several hits Find takes the one whose prefix, suffix and place agree best.
//
// It takes time linear in the text and the quote, and never accepts text that is merely similar.
func Find(text string, q *Quote) (Match, bool) { return NewSearcher(text).Find(q) }

// Searcher searches for many quotes in one text, and prepares once what [Find] prepares for each. It is safe for
// concurrent use. Create it with [NewSearcher].
type Searcher struct {
	text    string
	reduced func() string
}

// NewSearcher returns a Searcher for a text that is normalised, as [Text.Content] is.
func NewSearcher(text string) *Searcher {
	return &Searcher{text: text, reduced: sync.OnceValue(func() string { return reduced(text) })}
}

// Find searches for a quote, as the function [Find] does.
func (s *Searcher) Find(q *Quote) (Match, bool) {
	exact := Normalize(q.Exact)
	if exact == "" {
		return Match{}, false
	}
	f := finder{
		Searcher: s,
		quote:    q,
		exact:    exact,
		prefix:   strings.TrimSpace(text.LastRunes(Normalize(q.Prefix), maxContext)),
		suffix:   strings.TrimSpace(text.Runes(Normalize(q.Suffix), maxContext)),
	}
	if m, ok := f.find(exact); ok {
		return m, true
	}
	return f.reformatted()
}

// maxContext is how many code points of a quote's prefix and suffix are compared with the text around each hit.
const maxContext = 64

// finder searches for one quote in one text.
type finder struct {
	*Searcher

	quote          *Quote
	exact          string
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
		m := Match{Start: f.quote.Start, End: f.quote.End, How: MatchExact, Count: max(b.count, 1)}
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
	start := utf8.RuneCountInString(b.text[:b.hit.start])
	return Match{
		Start: start,
		End:   start + utf8.RuneCountInString(b.text[b.hit.start:b.hit.end]),
		How:   how,
		Count: b.count,
		Cut:   cuts(b.text, b.hit),
	}, true
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
	if cutsStart(f.text, h) && !strings.HasPrefix(exact, "…") && !strings.HasPrefix(exact, "...") &&
		!continues(f.text[:h.start], f.prefix, true) {
		return false
	}
	return !cutsEnd(f.text, h) || strings.HasSuffix(exact, "…") || strings.HasSuffix(exact, "...") ||
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
	return endsInDigit(body) && isPercent(next)
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
	case unicode.IsDigit(next):
		return joinsDigits(last) && endsInDigit(a[:len(a)-n])
	default:
		return unicode.IsDigit(last) && joinsDigits(next) && startsWithDigit(b[k:])
	}
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

// reformatted searches for the letters, digits and symbols of the quote.
func (f *finder) reformatted() (Match, bool) {
	needle := reduced(f.exact)
	if needle == "" {
		return Match{}, false
	}
	text := f.reduced()
	if !strings.Contains(text, needle) {
		return Match{}, false
	}
	b := best{finder: f}
	r := reducer{text: f.text}
	done := 0 // bytes of text that r has produced
	for at := 0; ; {
		i := strings.Index(text[at:], needle)
		if i < 0 {
			break
		}
		from, to := at+i, at+i+len(needle)
		at = to
		var h hit
		for done <= from { // up to the character with the first byte
			h.start = r.next()
			done += r.made
		}
		if needle[0] == signByte || needle[0] == parenByte {
			_, n := utf8.DecodeLastRuneInString(f.text[:h.start])
			h.start -= n
		}
		h.end = r.pos
		for done < to {
			r.next()
			done += r.made
			h.end = r.pos
		}
		if f.isWhole(h, f.exact) && !f.isAsked(h) {
			b.add(h)
		}
	}
	return b.match(MatchReformatted)
}

// isAsked reports whether the text asks what the quote states.
func (f *finder) isAsked(h hit) bool {
	next, _ := utf8.DecodeRuneInString(f.text[h.end:])
	last, _ := utf8.DecodeLastRuneInString(f.exact)
	return isQuestion(next) && (last == '.' || last == '!' || last == '。' || last == '！')
}

// reduced returns the letters, digits and symbols of a text, and whatever else distinguishes numbers or words. Texts
// that differ only in formatting reduce to the same.
func reduced(text string) string {
	out := make([]byte, 0, len(text))
	r := reducer{text: text}
	for r.next(); r.made > 0; r.next() {
		if r.between != 0 {
			out = append(out, r.between)
		}
		out = append(out, r.text[r.from:r.pos]...)
	}
	return string(out)
}

// reducer reads the significant characters of a text, one by one.
type reducer struct {
	text    string
	pos     int  // after the character
	last    kind // of the previous character
	char    rune // the previous character
	between byte // what is significant between it and this one; 0 if nothing
	from    int  // start of the character
	made    int  // length of between and the character; 0 at the end of the text
}

// kind is the class of a character for a [reducer].
type kind uint8

const (
	noKind kind = iota // punctuation, white space and the like
	letterKind
	digitKind
	otherKind // symbols and the like
)

// next reads the next significant character and returns its start.
func (r *reducer) next() (start int) {
	gap := r.pos
	for r.pos < len(r.text) {
		c, n := rune(r.text[r.pos]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(r.text[r.pos:])
		}
		k := kindOf(c)
		if c == minus && startsWithDigit(r.text[r.pos+n:]) {
			k = noKind // a sign or between digits, like a hyphen
		}
		if k == noKind {
			r.pos += n
			continue
		}
		start = r.pos
		r.pos += n
		r.between = r.betweenOf(gap, start, c, k)
		r.from, r.last, r.char = start, k, c
		r.made = r.pos - start
		if r.between != 0 {
			r.made++
		}
		return start
	}
	r.made = 0
	return r.pos
}

// The significant separators between two characters. None of them is a character that a reducer takes from a text.
const (
	signByte  = '-'
	parenByte = '(' // around a number, the notation of accounts for a loss
	dashByte  = '_' // of any length, between digits
	otherByte = ' ' // anything else between digits, or between words
)

// betweenOf returns the significant separator in text[gap:start] between two characters, the second of which is c.
func (r *reducer) betweenOf(gap, start int, c rune, k kind) byte {
	if gap == start {
		return 0
	}
	between := r.text[gap:start]
	switch {
	case k == digitKind && isSign(r.text[:start]):
		return signByte
	case k == digitKind && strings.HasSuffix(between, "(") && isAccounting(r.text[start:]):
		return parenByte
	case k == digitKind && r.last == digitKind:
		return betweenDigits(between)
	case k == letterKind && r.last == letterKind:
		return betweenLetters(between, r.char, c)
	}
	return 0
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
	if gap == "'" || gap == "’" {
		return '\''
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
		if c > 0 && strings.ContainsRune("$+<=>^`|~%?", c) {
			return otherKind
		}
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
