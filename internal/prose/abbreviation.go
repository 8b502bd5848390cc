package prose

import (
	_ "embed" // words.txt
	"strings"
	"unicode"
)

// nextKind is the kind of what follows a terminator.
type nextKind uint8

const (
	nothingNext   nextKind = iota // the text ends
	lowerNext                     // a lower-case word: usually the sentence continues
	capitalNext                   // a capital, or a word that is lower-case even at the start (iPhone, a URL)
	caselessNext                  // a letter of a script without capitals
	digitNext                     // a number
	signNext                      // anything else: code, a currency sign, an emoji
	continuesNext                 // a comma, a dash or another terminator: the sentence continues
)

// opening is the first word or symbol after a terminator and opening quotes, brackets and emphasis.
type opening struct {
	kind nextKind
	at   int
}

// openingAt returns the opening of the text at p.
func openingAt(text string, p int) opening {
	const limit = 8 // characters before a word; more are decoration
	for range limit {
		r, w := runeAt(text, p)
		if w == 0 {
			return opening{nothingNext, p}
		}
		if kind := kindOf(r); kind != signNext {
			return opening{refine(text, p, kind), p}
		}
		switch {
		case r == '|':
			p = skipBlanks(text, p+1)
		case isOpener(r) || r == '\u00ad' || unicode.Is(unicode.Cf, r):
			p += w
		default:
			return opening{signNext, p}
		}
	}
	return opening{signNext, p}
}

func kindOf(r rune) nextKind {
	switch {
	case 'a' <= r && r <= 'z':
		return lowerNext
	case 'A' <= r && r <= 'Z':
		return capitalNext
	case '0' <= r && r <= '9':
		return digitNext
	case r < 0xAA:
		if strings.ContainsRune(",;:-.!?", r) {
			return continuesNext
		}
		return signNext
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return capitalNext
	case unicode.IsLower(r):
		return lowerNext
	case unicode.IsLetter(r):
		return caselessNext
	case unicode.IsDigit(r):
		return digitNext
	case terminatorOf(r) != noTerminator || strings.ContainsRune("–—、，：；،؛", r):
		return continuesNext
	}
	return signNext
}

// refine examines more than the first rune if needed.
func refine(text string, p int, kind nextKind) nextKind {
	rest := text[p:]
	if kind == continuesNext && (rest[0] == '.' || rest[0] == '-') {
		if c, _ := runeAt(rest, 1); isWord(c) { // .NET, -5
			return capitalNext
		}
	}
	if kind == lowerNext && (opensURL(rest) || hasInnerCapital(rest)) {
		return capitalNext
	}
	return kind
}

func opensURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "www.")
}

// hasInnerCapital reports whether a capital follows the first few lower-case letters of s: iPhone, eBay, mRNA.
func hasInnerCapital(s string) bool {
	for i := 1; i < min(len(s), 4); i++ {
		switch {
		case 'A' <= s[i] && s[i] <= 'Z':
			return true
		case s[i] < 'a' || 'z' < s[i]:
			return false
		}
	}
	return false
}

// isOpener reports whether r may precede the first word of a sentence.
func isOpener(r rune) bool {
	switch r {
	case '(', '[', '{', '"', '\'', '*', '_', '~', '#', '¿', '¡', '«', '»', '“', '”', '„', '‘', '’', '‚', '‹', '›':
		return true
	}
	return r >= 0x2000 && (unicode.Is(unicode.Ps, r) || unicode.Is(unicode.Pi, r))
}

// word returns the first word of the sentence, up to an apostrophe in it.
func (o opening) word(text string) string {
	const longest = 24
	end := o.at
	for end < min(len(text), o.at+longest) {
		r, w := runeAt(text, end)
		if !isWord(r) && !unicode.Is(unicode.Mn, r) {
			break
		}
		end += w
	}
	return text[o.at:end]
}

// isLetterStop reports whether the text begins with a single letter or short number and a full stop.
func (o opening) isLetterStop(text string) bool {
	word := o.word(text)
	_, w := runeAt(word, 0)
	end := o.at + len(word)
	short := w == len(word) || o.kind == digitNext && len(word) <= 2
	return word != "" && short && end < len(text) && text[end] == '.'
}

// opensSentence reports whether the word has a capital only because it begins a sentence.
func (o opening) opensSentence(text string) bool {
	if o.kind != capitalNext {
		return o.kind == nothingNext
	}
	word := o.word(text)
	after, w := runeAt(text, o.at+len(word))
	elided := after == '\'' || after == '’'
	if w > 0 && !isSpace(after) && after != ',' && after != ':' && !elided {
		return false
	}
	return elided && lexicon["elided"][word] || lexicon["opening"][word]
}

// abbreviation is the role of a full stop after a word.
type abbreviation uint8

const (
	noAbbreviation abbreviation = iota
	joining                     // never ends a sentence: something must follow (titles, "e.g.", "vs.")
	counting                    // precedes a number ("No.", "Fig."), else like common
	common                      // ends a sentence only before a word that clearly begins one
	final                       // usually ends its phrase ("etc.", "p.m."), and a sentence if before a capital
)

// abbreviationOf looks up a word without its last full stop.
func abbreviationOf(word string) abbreviation {
	switch {
	case lexicon["final"][word]:
		return final
	case lexicon["counting"][word]:
		return counting
	case lexicon["joining"][word]:
		return joining
	case lexicon["common"][word]:
		return common
	}
	return noAbbreviation
}

//go:embed words.txt
var wordLists string

// lexicon holds the lists of words.txt by name:
//
//   - final, counting, joining, common: abbreviations, without their last full stop; see [abbreviation]
//   - opening: words that have a capital because they begin a sentence; elided: those before an apostrophe
//   - particle: words that may begin a sentence or be part of a name: "J. La Rue", "C. Das"
//   - callsForOrdinal: German words after which a number with a full stop is an ordinal; followsOrdinal: those that
//     usually follow one
//   - time: what continues after "3 p.m.": a day or a time zone
var lexicon = readWords(wordLists)

func readWords(lists string) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for line := range strings.Lines(lists) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		if all[fields[0]] == nil {
			all[fields[0]] = map[string]bool{}
		}
		for _, word := range fields[1:] {
			all[fields[0]][word] = true
		}
	}
	return all
}

// endsAfter reports whether the full stop at stop, followed by white space and next, ends a sentence. If not, it
// belongs to an abbreviation, an initial or an ordinal number.
func endsAfter(text string, stop int, next opening) bool {
	start := abbreviationStart(text, stop)
	word := text[start:stop]
	if word == "" {
		return true
	}
	if isDigit(word[len(word)-1]) {
		return !isOrdinal(text, start, word, next)
	}
	r, w := runeAt(word, 0)
	switch kind := abbreviationOf(word); {
	case kind == joining:
		return false
	case kind == counting && next.kind == digitNext:
		return false
	case kind == counting && (word == "No" || word == "no"):
		return true
	case kind == final:
		return next.kind != capitalNext || !lexicon["time"][next.word(text)]
	case kind != noAbbreviation:
		return next.opensSentence(text)
	case w == len(word) && !isCaseless(r):
		return endsAfterLetter(text, start, stop, next)
	case isAcronym(word):
		return next.opensSentence(text)
	}
	return true
}

// abbreviationStart returns where the word that ends at stop starts, or stop if it is too long to be an abbreviation.
func abbreviationStart(text string, stop int) int {
	const longest = 24
	p := stop
	for p > 0 {
		r, w := runeBefore(text, p)
		if !isWord(r) && r != '.' && r != '-' && !unicode.Is(unicode.Mn, r) {
			break
		}
		if p -= w; stop-p > longest {
			return stop
		}
	}
	for p < stop && (text[p] == '.' || text[p] == '-') {
		p++
	}
	return p
}

// isAcronym reports whether word contains full stops with at most three letters between them: "U.S", "Ph.D".
func isAcronym(word string) bool {
	letters, dotted := 0, false
	for _, r := range word {
		switch {
		case r == '.' || r == '-':
			dotted, letters = dotted || r == '.', 0
		case unicode.IsLetter(r) && letters < 3:
			letters++
		default:
			return false
		}
	}
	return dotted
}

// endsAfterLetter is endsAfter for a word of one letter: an initial, a unit, or a piece of "z. B.".
func endsAfterLetter(text string, start, stop int, next opening) bool {
	letter := text[start:stop]
	before := letterBefore(text, start)
	switch {
	case before == "z" && letter == "B", before == "d" && letter == "h", before == "d" && letter == "R":
		return false
	case before != "", next.isLetterStop(text):
		return next.opensSentence(text)
	}
	r, _ := runeAt(letter, 0)
	if !unicode.IsUpper(r) {
		return true
	}
	p, _ := wordBefore(text, start)
	if last, _ := runeBefore(text, p); isWord(last) && last <= '9' || last == '°' {
		return true // a unit
	}
	if next.kind == digitNext {
		return false
	}
	return next.opensSentence(text) && !lexicon["particle"][next.word(text)]
}

// letterBefore returns the single letter that, with a full stop, precedes the word at start, or "" if there is none.
func letterBefore(text string, start int) string {
	p, spaced := wordBefore(text, start)
	if !spaced || p == 0 || text[p-1] != '.' {
		return ""
	}
	r, w := runeBefore(text, p-1)
	if !unicode.IsLetter(r) {
		return ""
	}
	if far, _ := runeBefore(text, p-1-w); isWord(far) {
		return ""
	}
	return text[p-1-w : p-1]
}

// wordBefore returns the end of what precedes the word at start, and whether a space separates them.
func wordBefore(text string, start int) (end int, spaced bool) {
	r, w := runeBefore(text, start)
	if !isSpace(r) || w == 0 {
		return start, false
	}
	return start - w, true
}

// isOrdinal reports whether the full stop after the digits of word, which start at start, makes them a German ordinal
// number: "am 3. Oktober", "der 2. Weltkrieg", "3. 10. 2024".
func isOrdinal(text string, start int, word string, next opening) bool {
	if len(word) > 2 || !isDigit(word[0]) {
		return false
	}
	end, spaced := wordBefore(text, start)
	if !spaced {
		return false
	}
	from := end
	for from > max(0, end-8) && text[from-1] > ' ' {
		from--
	}
	before := text[from:end]
	if next.kind == digitNext {
		return next.isLetterStop(text) || isOrdinalNumber(before)
	}
	return next.kind == capitalNext &&
		(lexicon["followsOrdinal"][next.word(text)] || lexicon["callsForOrdinal"][before] && !next.opensSentence(text))
}

func isOrdinalNumber(s string) bool {
	digits := strings.TrimSuffix(s, ".")
	return digits != s && digits != "" && len(digits) <= 2 && isNumbers(digits)
}
