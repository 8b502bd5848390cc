package support

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/prose"
)

// ValueKind is the kind of a [Value].
type ValueKind string

// The kinds of a value.
const (
	ValueNumber   ValueKind = "number"   // Number to High, in Unit
	ValueDate     ValueKind = "date"     // Date
	ValueName     ValueKind = "name"     // Words
	ValueNegation ValueKind = "negation" // denies the text in Scope
	ValueDegree   ValueKind = "degree"   // a word that has an opposite: rise, first, allowed
)

// UnitKind is what a unit measures: empty for a bare number, else count, ordinal, percent, points, length, mass, time,
// temperature, area, volume, speed, energy, power, data or money. Only quantities of one kind can be compared.
type UnitKind string

// The kinds of units, each with the base unit that its values are converted to.
const (
	unitNone        UnitKind = ""            // a bare number
	unitCount       UnitKind = "count"       // of the things that Unit.Name names
	unitOrdinal     UnitKind = "ordinal"     // a place in an order: 3rd
	unitPercent     UnitKind = "percent"     // a fraction of one: 48 % is .48
	unitPoints      UnitKind = "points"      // percentage points
	unitLength      UnitKind = "length"      // metres
	unitMass        UnitKind = "mass"        // kilograms
	unitTime        UnitKind = "time"        // seconds
	unitTemperature UnitKind = "temperature" // kelvins
	unitArea        UnitKind = "area"        // square metres
	unitVolume      UnitKind = "volume"      // cubic metres
	unitSpeed       UnitKind = "speed"       // metres per second
	unitEnergy      UnitKind = "energy"      // joules
	unitPower       UnitKind = "power"       // watts
	unitData        UnitKind = "data"        // bytes
	// unitMoney is in the currency whose ISO 4217 code is Unit.Name; currencies are not converted.
	unitMoney UnitKind = "money"
)

// Unit is what a number counts or measures.
type Unit struct {
	Kind UnitKind
	Name string // folded, as read: "km"; the currency's code for money: "USD"; the noun for counts: "people"
}

// Value is one typed value of a text.
type Value struct {
	Kind ValueKind
	Span ibid.Span // in the text
	// Written is the number as its figures give it, including scale words (million). Number is the same in the base
	// unit of Unit.Kind, High the end of a range ("5 to 10 km"), or else Number again.
	Written, Number, High float64
	// Digits is half of the last digit written, Round half of the last digit that is not a trailing zero: .5 and 50 for
	// 1,200. Both are in the base unit.
	Digits, Round float64
	Approximate   bool // about, nearly
	Bound         int  // +1: at least or more than the number; -1: at most or less
	Unit          Unit
	Date          Date
	// Words are the words of a name, folded: lower case, without diacritics, titles and full stops. For a degree they
	// are the two sides of its pair, its own first.
	Words  []string
	Unsure bool      // a name that may just be the first word of its sentence
	Scope  ibid.Span // the rest of the clause, for a negation

	figure  ibid.Span // Span without the counted noun, for a number or date
	raw     string    // the digits of a number as written, without spaces
	maybePM bool      // 9:30, which may be 21:30
}

// Date is a day, month, year or span of years. Zero members are unknown.
type Date struct {
	Year, LastYear int // differ only for decades and centuries; negative: BC
	Month, Day     int
	Swappable      bool // 3/4/1999: Month and Day may be swapped
}

// Values returns the typed values of a text, ordered by where they start. Numbers, dates, negations and degrees do not
// overlap each other; a name may contain any of them. It takes time linear in the text. It reads
//
//   - numbers: digits with grouping and decimals (1,234.5, 1 234, 1.234,5; also fullwidth, Arabic and Devanagari
//     digits), number words from zero to trillions, fractions (½, 3/4, two thirds, half a million), ranges, ordinals,
//     percent and percentage points, times of day (9 p.m., 21:00), and versions, which are compared as written; with
//     about, more than, at most. They are converted to the base unit of their kind (metre, kilogram, second, kelvin,
//     m², m³, m/s, joule, watt, byte, fraction of one); money keeps its currency, a count its noun;
//   - dates: ISO dates, "June 26, 1980", "26 June 1980", "19. März 1932", 1932年3月19日, month and year, years from 1400
//     to 2100, decades, centuries, BC; 3/4/1999 is both days. Year, month and day are set if given;
//   - names: capitalised runs, acronyms, initials, with titles, possessives and diacritics folded;
//   - negations: not, n't, no, never, without, cannot, neither, fails to, refuses to, lacks;
//   - degrees: words that have opposites, such as rise and fall, first and last, allowed and banned, daily and weekly.
//
// The words are English. Digits, signs, ISO dates and month names are read in the languages that [Language] detects,
// and so are Chinese and Japanese dates and units; a text in a language other than English has no names, negations or
// degrees.
func Values(text string) []Value {
	return readValues(text, valueTokens(text), Language(text))
}

// valueReader walks over the tokens of a text.
type valueReader struct {
	tokens

	text  string
	out   []Value
	money bool // a currency precedes the figure being read

	foreign bool // the text is known not to be English
	comma   bool // its language writes 1.234,5
}

func newValueReader(text string, tokens []valueToken, language string) *valueReader {
	return &valueReader{tokens: tokens, text: text, foreign: foreign(language), comma: decimalComma(language)}
}

// foreign reports whether a language is known and not English, so that the rules for English words do not apply.
func foreign(language string) bool { return language != "" && language != "en" }

// decimalComma reports whether a language, as [Language] returns it, uses commas where English uses decimal points.
func decimalComma(language string) bool {
	switch language {
	case "de", "fr", "es", "it", "pt", "nl", "el", "und-Cyrl":
		return true
	}
	return false
}

// sharedLanguage returns the language of a claim, or of its evidence if the claim is too short to detect it.
func sharedLanguage(claim, evidence string) string {
	return cmp.Or(Language(claim), Language(evidence))
}

func readValues(text string, tokens []valueToken, language string) []Value {
	r := newValueReader(text, tokens, language)
	r.figures(true)
	if !r.foreign {
		r.names(slices.Clone(r.out))
	}
	slices.SortStableFunc(r.out, func(a, b Value) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return r.out
}

// figures reads numbers and dates, and if words is set and the text may be English also negations, modalities and
// degrees.
func (r *valueReader) figures(words bool) {
	readers := []func(i int) (next int){r.date, r.version, r.quantity, r.ordinal} // each returns i if it finds nothing
	if words && !r.foreign {
		readers = append(readers, r.negation, r.degree)
	}
	for i := 0; i < len(r.tokens); {
		next := i
		for k := 0; k < len(readers) && next <= i; k++ {
			next = readers[k](i)
		}
		i = max(next, i+1)
	}
}

type valueTokenKind uint8

const (
	wordToken valueTokenKind = iota
	numberToken
	signToken // one rune that is neither: punctuation, currency, percent
)

// valueToken is one word, figure or sign.
type valueToken struct {
	kind       valueTokenKind
	start, end int
	low        string  // lower case, apostrophes straight, initials without full stops; signs and figures as is
	upper      bool    // begins with a capital letter
	caps       bool    // has at least two letters, all capital
	initial    bool    // a capital letter with a full stop: J. or U.S.
	glued      bool    // no white space precedes it
	opens      bool    // the first word of its sentence
	sentence   int     // its index in the text
	pos        int     // its distance from the start of the text in words; ends of clauses and sentences add to it
	key        uint32  // of a figure, or of a word that says what a sentence is about; else 0
	weight     float64 // how rare the word is
	named      bool    // it is part of a name
}

// topic reports whether a token says what its sentence is about: it is no function word, and in no value but a name.
func (t *valueToken) topic() bool { return t.kind == wordToken && t.key != 0 }

// tokens are the tokens of a text. Out of range, they are signs without text.
type tokens []valueToken

var noToken = valueToken{kind: signToken, sentence: -1}

func (t tokens) at(i int) *valueToken {
	if i < 0 || i >= len(t) {
		return &noToken
	}
	return &t[i]
}

func (t tokens) kind(i int) valueTokenKind { return t.at(i).kind }
func (t tokens) low(i int) string          { return t.at(i).low }
func (t tokens) glued(i int) bool          { return t.at(i).glued }
func (t tokens) opens(i int) bool          { return t.at(i).opens }

// is reports whether token i is one of the given words or signs.
func (t tokens) is(i int, words ...string) bool { return slices.Contains(words, t.low(i)) }

// gluedAll reports whether no white space precedes any of the tokens from first to last.
func (t tokens) gluedAll(first, last int) bool {
	for i := first; i <= last; i++ {
		if !t.glued(i) {
			return false
		}
	}
	return true
}

func (t tokens) sameSentence(i, j int) bool { return i >= 0 && t.at(i).sentence == t.at(j).sentence }

func (t *valueToken) span() ibid.Span { return ibid.Span{Start: t.start, End: t.end} }

// valueTokens splits a text into words, figures and signs, in time linear in it.
func valueTokens(text string) []valueToken {
	tokens := make([]valueToken, 0, len(text)/5+1)
	sentence := 0
	for start, end := range prose.Sentences(text) {
		before := len(tokens)
		tokens = sentenceTokens(tokens, text, start, end)
		first := true
		for i := before; i < len(tokens); i++ {
			tokens[i].sentence = sentence
			if tokens[i].kind != signToken && first {
				tokens[i].opens, first = tokens[i].kind == wordToken, false
			}
		}
		sentence++
	}
	return tokens
}

func sentenceTokens(tokens []valueToken, text string, at, end int) []valueToken {
	glued := false
	for at < end {
		r, size := utf8.DecodeRuneInString(text[at:end])
		switch {
		case unicode.IsSpace(r):
			at += size
			glued = false
			continue
		case r == '[' && markEnd(text, at) > at && markEnd(text, at) <= end:
			at = markEnd(text, at) // a citation mark: [3]
			glued = false
			continue
		case r >= '0' && (r <= '9' || r >= utf8.RuneSelf && unicode.IsDigit(r)):
			tokens = append(tokens, numberAt(text[:end], at))
		case ideograph(r):
			tokens = append(tokens, valueToken{kind: wordToken, start: at, end: at + size, low: text[at : at+size]})
		case unicode.IsLetter(r):
			tokens = append(tokens, wordAt(text, at, end).withoutFullStop(tokens, end))
		default:
			tokens = append(tokens, valueToken{kind: signToken, start: at, end: at + size})
		}
		last := &tokens[len(tokens)-1]
		last.glued = glued
		at = last.end
		glued = true
		if last.kind == signToken {
			last.low = text[last.start:last.end]
		}
	}
	return tokens
}

// digitAt reads a digit of the scripts that modern texts write numbers in. Size is 0 if there is none.
func digitAt(text string, at int) (digit byte, size int) {
	if at >= len(text) {
		return 0, 0
	}
	if c := text[at]; c < utf8.RuneSelf {
		if c >= '0' && c <= '9' {
			return c, 1
		}
		return 0, 0
	}
	r, size := utf8.DecodeRuneInString(text[at:])
	for _, zero := range [...]rune{'０', '٠', '۰', '०'} {
		if r >= zero && r <= zero+9 {
			return '0' + byte(r-zero), size
		}
	}
	return 0, 0
}

// separatorAt reads what separates digits: a decimal sign, or a grouping sign. It returns spaces of any width as one.
func separatorAt(text string, at int) (plain byte, size int) {
	r, size := utf8.DecodeRuneInString(text[at:])
	switch r {
	case '.', '．', '٫':
		return '.', size
	case ',', '，', '٬':
		return ',', size
	case ' ', '\u00a0', '\u2009', '\u202f':
		return ' ', size
	}
	return 0, 0
}

// numberAt reads the figure at a place, or a digit of another script as a sign.
func numberAt(text string, at int) valueToken {
	end, plain := lexFigure(text, at)
	if end == at {
		_, size := utf8.DecodeRuneInString(text[at:])
		return valueToken{kind: signToken, start: at, end: at + size}
	}
	return valueToken{kind: numberToken, start: at, end: end, low: plain}
}

// lexFigure reads digits with their separators, and returns their end and plain form: 1,234.5 and 1 234 but neither the
// comma of "1, 2" nor the space of "12 34" or "1999 300".
func lexFigure(text string, at int) (end int, plain string) {
	start, digits, groups := at, 0, 0
	spaces := true // spaces may be grouping what follows
	folded := make([]byte, 0, maxFoldedFigure)
	for {
		for digit, size := digitAt(text, at); size > 0; digit, size = digitAt(text, at) {
			folded = append(folded, digit)
			at += size
			digits++
		}
		sign, size := separatorAt(text, at)
		if _, next := digitAt(text, at+size); sign == 0 || next == 0 {
			break
		}
		if sign == ' ' {
			if !spaces || digits > 3 || groups > 0 && digits != 3 || !threeDigits(text, at+size) || text[start] == '0' {
				break
			}
			groups++
		} else {
			spaces = false
		}
		folded = append(folded, sign)
		at += size
		digits = 0
	}
	if at-start == len(folded) {
		return at, text[start:at]
	}
	return at, string(folded)
}

// maxFoldedFigure is the most bytes of a figure that are folded without allocating.
const maxFoldedFigure = 32

// threeDigits reports whether there are exactly three digits at a place.
func threeDigits(text string, at int) bool {
	for range 3 {
		_, size := digitAt(text, at)
		if size == 0 {
			return false
		}
		at += size
	}
	_, size := digitAt(text, at)
	return size == 0
}

// wordAt reads the word that begins at a place.
func wordAt(text string, at, end int) valueToken {
	token := valueToken{kind: wordToken, start: at}
	if stop := initialsEnd(text, at, end); stop > at {
		token.end, token.upper, token.initial = stop, true, true
		token.caps = stop-at > 2
		token.low = strings.ToLower(strings.ReplaceAll(text[at:stop], ".", ""))
		return token
	}
	letters, capitals := 0, 0
	i, before := at, rune(0)
	for i < end {
		r, size := utf8.DecodeRuneInString(text[i:end])
		if ideograph(r) || unicode.IsDigit(r) && (unspaced(before) || i == at+1 && before == 'v') {
			break // v3.2 is a version
		}
		before = r
		if i > at && isApostrophe(r) {
			next, _ := utf8.DecodeRuneInString(text[min(i+size, end):end])
			if !unicode.IsLetter(next) {
				break
			}
		} else if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
			break
		}
		if unicode.IsLetter(r) {
			letters++
		}
		if unicode.IsUpper(r) {
			capitals++
			token.upper = token.upper || i == at
		}
		i += size
	}
	// COVID-19, B-52: the figure belongs to the name.
	if capitals > 0 && i+1 < end && text[i] == '-' && text[i+1] >= '0' && text[i+1] <= '9' &&
		int(monthNames[strings.ToLower(text[at:i])].number) == 0 {
		i++
		for i < end && (text[i] >= '0' && text[i] <= '9' || text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z') {
			i++
		}
	}
	token.end = i
	token.caps = letters >= 2 && capitals == letters
	token.low = straightApostrophes.Replace(strings.ToLower(text[at:i]))
	return token
}

// withoutFullStop removes the full stop from a unit that ends a sentence after its figure and looks like an initial: 5
// W., 482 °F.
func (t valueToken) withoutFullStop(before []valueToken, end int) valueToken {
	if !t.initial || t.end-t.start != len("F.") || len(before) == 0 {
		return t
	}
	if last := before[len(before)-1]; last.low == "°" || last.kind == numberToken && t.end == end {
		t.end--
		t.initial = false
	}
	return t
}

// initialsEnd returns the end of capitals with full stops, such as J. or U.S.A., at the start of text[at:end]; at if
// there are none.
func initialsEnd(text string, at, end int) int {
	i := at
	for i+1 < end && text[i] >= 'A' && text[i] <= 'Z' && text[i+1] == '.' {
		i += 2
	}
	if i == at+2 && i < end && text[i] >= 'a' && text[i] <= 'z' {
		return at // "A.b" is not an initial
	}
	return i
}

func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' }

var straightApostrophes = strings.NewReplacer("’", "'", "ʼ", "'")

// withoutPossessive removes 's and a closing apostrophe from a folded word.
func withoutPossessive(low string) string {
	return strings.TrimSuffix(strings.TrimSuffix(low, "'s"), "'")
}

// foldWord removes the diacritics from Latin letters.
func foldWord(low string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 0xC0 <= c && c < 0x180:
			return rune(folded[c-0xC0])
		case unicode.Is(unicode.Mn, c):
			return -1
		}
		return c
	}, low)
}

// piece is a claim or a passage, or a part of it.
type piece struct {
	passage, from int // index of the passage, or InClaim; offset in it
	text          string
	whole         string // the passage, if it is known
}

// pieceSeparator separates pieces that are read together.
const pieceSeparator = "\n\n"

func joinPieces(pieces []piece) string {
	texts := make([]string, len(pieces))
	for i := range pieces {
		texts[i] = pieces[i].text
	}
	return strings.Join(texts, pieceSeparator)
}

// valuedText is one or more pieces with their values, words and sentences. Places are offsets in the joined text.
// Values and sentences never span two pieces.
type valuedText struct {
	tokens

	text      string // of all pieces
	pieces    []piece
	starts    []int // of each piece in text
	values    []Value
	places    []int // the first token of each value
	sentences []valuedSentence
}

// valuedSentence is one sentence: half-open ranges of tokens and values.
type valuedSentence struct {
	span           ibid.Span
	tokens, values [2]int
}

// tokensOf returns the tokens of a sentence.
func (t *valuedText) tokensOf(sentence int) []valueToken {
	s := &t.sentences[sentence]
	return t.tokens[s.tokens[0]:s.tokens[1]]
}

// conceptWeight is the most that a word for a concept weighs: the concept has commoner words.
const conceptWeight = .5

// topicOf returns the key of a word, which words for one attribute share (tall, height), and its weight.
func topicOf(low string) (key uint32, weight float64) {
	low = foldWord(withoutPossessive(low))
	word := stem([]byte(cmp.Or(lists["same"][low].name, low)))
	weight = english().weight(hash(word) &^ 1)
	if concept := cmp.Or(conceptOf(string(word)), sideOf(low)); concept != "" {
		return conceptKey(concept), min(weight, conceptWeight)
	}
	return hash(word) &^ 1, weight
}

func topicKey(low string) uint32 {
	key, _ := topicOf(low)
	return key
}

// readPieces reads the tokens and values of each piece separately.
func (t *valuedText) readPieces(language string) {
	at, sentences := 0, 0
	for i := range t.pieces {
		text := t.pieces[i].text
		tokens := valueTokens(text)
		values := readValues(text, tokens, language)
		for k := range tokens {
			tokens[k].start, tokens[k].end = tokens[k].start+at, tokens[k].end+at
			tokens[k].sentence += sentences
		}
		for k := range values {
			v := &values[k]
			v.Span, v.Scope, v.figure = shifted(v.Span, at), shifted(v.Scope, at), shifted(v.figure, at)
		}
		if len(tokens) > 0 {
			sentences = tokens[len(tokens)-1].sentence + 1
		}
		t.tokens, t.values, t.starts = append(t.tokens, tokens...), append(t.values, values...), append(t.starts, at)
		at += len(text) + len(pieceSeparator)
	}
}

// readValuedText reads pieces in a language, or "" if it is unknown: their values, then the tokens and values of each
// sentence side by side.
func readValuedText(language string, pieces ...piece) *valuedText {
	t := &valuedText{text: joinPieces(pieces), pieces: pieces}
	t.readPieces(language)
	t.places = make([]int, len(t.values))
	value, name, pos := 0, ibid.Span{}, 0
	covered, last := 0, -1 // bytes before covered belong to a number or a date; the previous sentence
	for i := range t.tokens {
		token := &t.tokens[i]
		if token.sentence != last {
			last = token.sentence
			t.sentences = append(t.sentences, valuedSentence{
				span: ibid.Span{Start: token.start}, tokens: [2]int{i, i}, values: [2]int{value, value},
			})
			pos += sentenceDistance
		}
		token.sentence = len(t.sentences) - 1
		if clauseWords.has(token.low) {
			pos += clauseDistance
		}
		if token.kind != signToken {
			pos++
		}
		token.pos = pos
		for value < len(t.values) && t.values[value].Span.Start <= token.start {
			v := &t.values[value]
			t.places[value] = i
			switch {
			case v.Kind == ValueNumber && v.Unit.Kind == unitCount:
				covered = token.end // the noun says what is counted
			case v.Kind == ValueName && !v.Unsure:
				name = v.Span
			case v.Kind == ValueNumber, v.Kind == ValueDate, v.Kind == ValueNegation:
				covered = v.Span.End
			}
			value++
		}
		s := &t.sentences[len(t.sentences)-1]
		if token.kind == wordToken && token.start >= covered && !smallWords.has(token.low) {
			token.key, token.weight = topicOf(token.low)
			token.named = token.start < name.End
		} else if token.kind == numberToken {
			token.key, token.weight = hashString(token.low)|1, weightFigure
		}
		s.span.End = token.end
		s.tokens[1], s.values[1] = i+1, value
	}
	return t
}

// weightFigure is the weight of a figure among the words around a value.
const weightFigure = .8

// The distance that the end of a clause or a sentence adds between words.
const (
	clauseDistance   = 4
	sentenceDistance = 10
)

// excerpt returns a sentence with a value in it, as an excerpt of its passage.
func (t *valuedText) excerpt(sentence int, value ibid.Span) Excerpt {
	span := t.sentences[sentence].span
	span.Start, span.End = min(span.Start, value.Start), max(span.End, value.End)
	n, found := slices.BinarySearch(t.starts, span.Start)
	if !found {
		n--
	}
	by := t.pieces[n].from - t.starts[n]
	return Excerpt{
		Passage: t.pieces[n].passage, Span: shifted(span, by), Value: shifted(value, by), Text: textAt(t.text, span),
	}
}
