package support

import (
	"cmp"
	"slices"

	"github.com/ibidhq/ibid"
)

// ValueKind is what a [Value] is.
type ValueKind string

// The kinds of a value.
const (
	ValueNumber   ValueKind = "number"   // Number to High of Unit
	ValueDate     ValueKind = "date"     // Date
	ValueName     ValueKind = "name"     // Words
	ValueNegation ValueKind = "negation" // denies what stands in Scope
	ValueDegree   ValueKind = "degree"   // a word that has an opposite: rise, first, allowed
)

// UnitKind is what a unit measures. Only quantities of one kind can be compared.
type UnitKind string

// The kinds of a unit, each with the unit that values of it are converted to.
const (
	UnitNone        UnitKind = ""            // a bare number
	UnitCount       UnitKind = "count"       // of the thing that Unit.Name names
	UnitOrdinal     UnitKind = "ordinal"     // a place in an order: 3rd
	UnitPercent     UnitKind = "percent"     // a share of one: 48 % is .48
	UnitPoints      UnitKind = "points"      // percentage points
	UnitLength      UnitKind = "length"      // metres
	UnitMass        UnitKind = "mass"        // kilograms
	UnitTime        UnitKind = "time"        // seconds
	UnitTemperature UnitKind = "temperature" // kelvins
	UnitArea        UnitKind = "area"        // square metres
	UnitVolume      UnitKind = "volume"      // cubic metres
	UnitSpeed       UnitKind = "speed"       // metres per second
	UnitEnergy      UnitKind = "energy"      // joules
	UnitPower       UnitKind = "power"       // watts
	UnitData        UnitKind = "data"        // bytes
	// of the currency that Unit.Name names by its ISO 4217 code; nothing is exchanged
	UnitMoney UnitKind = "money"
)

// Unit is what a number counts or measures.
type Unit struct {
	Kind UnitKind
	Name string // as read, folded: "km"; of money the currency: "USD"; of counts the noun: "people"
}

// Value is one typed value of a text.
type Value struct {
	Kind ValueKind
	Span ibid.Span // in the text
	// Written is a number as its figures say it, scale words included. Number is the same in the base unit of
	// Unit.Kind, High the end of a range ("5 to 10 km") or Number again.
	Written, Number, High float64
	// Digits is half of the last digit written, Round half of the last digit that is not a trailing zero: .5 and 50 of
	// 1,200. Both are in the base unit.
	Digits, Round float64
	Approximate   bool // about, nearly
	Bound         int  // +1: the number or more; -1: or less
	Unit          Unit
	Date          Date
	// Words are the words of a name, folded: lower case, without diacritics, titles and stops. Of a degree word they
	// are the two sides of its pair, its own first.
	Words  []string
	Unsure bool      // a name that may be no more than the first word of its sentence
	Scope  ibid.Span // of a negation: the rest of its clause

	figure     ibid.Span // of a number or date: Span without the noun that it counts
	raw        string    // the digits of a number as they are written, without spaces
	halfOfADay bool      // 9:30, which may be 21:30
}

// Date is a day, month, year or span of years. Zero members are unknown.
type Date struct {
	Year, LastYear int // equal but for decades and centuries; negative: BC
	Month, Day     int
	Swappable      bool // 3/4/1999: Month and Day may be meant the other way round
}

// Values returns the typed values of a text in order of their beginnings. Those of numbers, dates, negations and
// degrees do not overlap each other; a name may hold any. It takes time linear in the text.
//
// The words are English. Digits, signs, ISO dates and the names of months are read in the languages that [Language]
// knows, and so are Chinese and Japanese dates and units; a text of another language than English has no names,
// negations or degrees.
func Values(text string) []Value {
	return readValues(text, valueTokens(text), Language(text))
}

// valueReader walks over the tokens of a text. What is asked about tokens outside of it is answered with nothing.
type valueReader struct {
	text   string
	tokens []valueToken
	out    []Value
	money  bool // a currency stands before the figure that is read

	foreign bool // the text is known to be of another language than English
	comma   bool // of one that writes 1.234,5
}

func newValueReader(text string, tokens []valueToken, language string) *valueReader {
	return &valueReader{text: text, tokens: tokens, foreign: foreign(language), comma: decimalComma(language)}
}

// foreign reports whether a language is known and not English, so that the rules for English words say nothing of it.
func foreign(language string) bool { return language != "" && language != "en" }

// decimalComma reports whether a language, as [Language] returns it, has commas where English has points.
func decimalComma(language string) bool {
	switch language {
	case "de", "fr", "es", "it", "pt", "nl", "el", "und-Cyrl":
		return true
	}
	return false
}

// sharedLanguage is the language of a claim, or of its evidence where the claim is too short to tell.
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

// figures reads numbers and dates, and in English also negations and degrees if they are asked for.
func (r *valueReader) figures(words bool) {
	words = words && !r.foreign
	for i := 0; i < len(r.tokens); {
		i = max(r.valueAt(i, words), i+1)
	}
}

// valueAt reads the value that begins at token i, and returns the token behind it; i: there is none.
func (r *valueReader) valueAt(i int, words bool) int {
	next := r.date(i)
	if next <= i {
		next = r.version(i)
	}
	if next <= i {
		next = r.quantity(i)
	}
	if next <= i {
		next = r.ordinal(i)
	}
	if next <= i && words {
		next = r.negation(i)
	}
	if next <= i && words {
		next = r.degree(i)
	}
	return next
}

func (r *valueReader) at(i int) valueToken {
	if i < 0 || i >= len(r.tokens) {
		return valueToken{kind: signToken}
	}
	return r.tokens[i]
}

func (r *valueReader) has(i int) bool { return i >= 0 && i < len(r.tokens) }

func (r *valueReader) kind(i int) valueTokenKind {
	if !r.has(i) {
		return signToken
	}
	return r.tokens[i].kind
}

func (r *valueReader) low(i int) string {
	if !r.has(i) {
		return ""
	}
	return r.tokens[i].low
}

func (r *valueReader) glued(i int) bool { return r.has(i) && r.tokens[i].glued }
func (r *valueReader) opens(i int) bool { return r.has(i) && r.tokens[i].opens }

// gluedAll reports whether no white space stands before any of the tokens from first to last.
func (r *valueReader) gluedAll(first, last int) bool {
	for i := first; i <= last; i++ {
		if !r.glued(i) {
			return false
		}
	}
	return true
}

func (r *valueReader) sameSentence(i, j int) bool {
	return j < len(r.tokens) && i >= 0 && r.tokens[i].sentence == r.tokens[j].sentence
}
