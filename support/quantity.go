package support

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
)

// unitScale converts a unit to the base unit of its kind: its factor, and for temperatures the zero of its scale.
type unitScale struct {
	kind   UnitKind
	factor float64
	zero   float64
}

var (
	unitNames    = lists["unit"]
	unitLetters  = lists["letter"]
	signUnits    = lists["sign-unit"]
	signMoney    = lists["sign-money"]
	signPeople   = lists["sign-people"]
	dollarNames  = lists["dollar"]
	aboutWords   = lists["about"]
	boundWords   = lists["bound"]
	boundAfter   = lists["bound-after"]
	determiners  = lists["determiner"]
	countedNouns = lists["count"]
)

// unit returns the scale of a unit in one of the lists of units.
func (l wordList) unit(word string) (unitScale, bool) {
	m, ok := l[word]
	return unitScale{kind: UnitKind(m.name), factor: m.number}, ok
}

// raised returns the square or the cube of a unit of length.
func (s unitScale) raised(power int) unitScale {
	kinds := [...]UnitKind{1: s.kind, 2: unitArea, 3: unitVolume}
	return unitScale{kind: kinds[power], factor: math.Pow(s.factor, float64(power))}
}

// longestSignUnit is the length of the longest unit in signUnits, in characters.
const longestSignUnit = 7

// signUnit reads a Chinese or Japanese unit or counter directly after a figure, and returns the next token.
func (r *valueReader) signUnit(v *Value, at int) (int, bool) {
	if !r.glued(at) {
		return at, false
	}
	behind := r.text[r.tokens[at].start:]
	if first, _ := utf8.DecodeRuneInString(behind); !ideograph(first) {
		return at, false
	}
	power, square := 1, ""
	for i, prefix := range [...]string{2: "平方", 3: "立方"} {
		if prefix != "" && strings.HasPrefix(behind, prefix) {
			power, square, behind = i, prefix, behind[len(prefix):]
		}
	}
	for n := longestSignUnit; n > 0; n-- {
		name := text.Runes(behind, n)
		next := at + utf8.RuneCountInString(square+name)
		scale, ok := signUnits.unit(name)
		switch {
		case signMoney.has(name):
			v.Unit = Unit{Kind: unitMoney, Name: signMoney[name].name}
		case signPeople.has(name):
			v.Unit = Unit{Kind: unitCount, Name: "people"}
		case ok && (power == 1 || scale.kind == unitLength):
			v.convert(scale.raised(power), square+name)
		default:
			continue
		}
		return next, true
	}
	v.Unit = Unit{Kind: unitCount, Name: r.low(at)} // the first character stands for what is counted
	return at + 1, true
}

// number adds the number in the tokens from first up to next.
func (r *valueReader) number(first, next int, n float64, unit Unit) *Value {
	span := ibid.Span{Start: r.tokens[first].start, End: r.tokens[next-1].end}
	r.out = append(r.out, Value{
		Kind: ValueNumber, Span: span, figure: span, Written: n, Number: n, High: n, Unit: unit,
	})
	return &r.out[len(r.out)-1]
}

// quantity reads a number with its sign, currency, range and unit at token i, and returns the next token, or i if there
// is none.
func (r *valueReader) quantity(i int) int {
	at, currency := r.currencyBefore(i)
	r.money = currency != ""
	negative := r.is(at, "-", "−") && r.glued(at+1) && !r.glued(at)
	if negative {
		at++
	}
	low, ok := r.figureAt(at)
	if !ok || r.notANumber(at, low) {
		return i
	}
	if next := r.clock(at); next > at {
		return next
	}
	if negative {
		low.value = -low.value
	}
	high := r.rangeEnd(low)
	v := Value{
		Kind:    ValueNumber,
		Written: low.value,
		Number:  low.value,
		High:    max(low.value, high.value),
		Digits:  high.exact,
		Round:   max(low.round, high.round),
	}
	if low.next != high.next && low.exact < high.exact && high.value/low.value > 500 {
		v.Number *= math.Pow(10, 3*math.Floor(math.Log10(high.exact/low.exact)/3)) // 5 to 10 million
	}
	next := r.measure(&v, high.next, currency)
	if low.words && low.value == 1 && v.Unit.Kind == unitNone {
		return i // "one" is a pronoun more often than a number
	}
	r.qualify(&v, i)
	if b := boundAfter[r.low(next)+" "+r.low(next+1)].number; b != 0 {
		v.Bound = int(b)
	}
	v.Span = ibid.Span{Start: r.tokens[i].start, End: r.tokens[next-1].end}
	v.figure = v.Span
	v.raw = r.low(at)
	if v.Unit.Kind == unitCount {
		next = high.next // the noun may be part of a name or a negation
		v.figure.End = r.tokens[next-1].end
	}
	r.out = append(r.out, v)
	return next
}

func (r *valueReader) currencyBefore(i int) (int, string) {
	token, code := r.at(i), currencyNames[r.low(i)].name
	switch {
	case code != "" && (token.kind == signToken || token.caps && r.kind(i+1) == numberToken):
		return i + 1, code
	case token.caps && dollarNames.has(token.low) && r.low(i+1) == "$":
		return i + 2, dollarNames[token.low].name
	}
	return i, ""
}

// notANumber reports whether a figure is part of something else: a version, an address, a name.
func (r *valueReader) notANumber(i int, f figure) bool {
	if r.kind(i) != numberToken { // "No one", "one another", "one of the".
		return f.words && f.value == 1 && (r.is(i-1, "no") || r.is(i+1, "another", "of"))
	}
	if !r.glued(i) || r.unspacedBefore(i) {
		return false
	}
	return r.is(i-1, "_", "#", "@", "=", "&", "\\") || r.is(i-1, "/") && r.kind(i-2) == wordToken ||
		r.kind(i-1) == wordToken && !currencyNames.has(r.low(i-1)) && !r.is(i-1, "c")
}

// rangeEnd reads the second number of 5-10, 5 to 10, between 5 and 10. It returns f if there is none.
func (r *valueReader) rangeEnd(f figure) figure {
	isSign := func(at int) bool { return r.kind(at) == signToken && currencyNames.has(r.low(at)) }
	at := f.next
	if r.is(at, "%") || isSign(at) {
		at++
	}
	if !r.is(at, "-", "–", "—", "‐", "−", "to") && (!r.is(at, "and") || !r.between(f)) {
		return f
	}
	if at++; isSign(at) {
		at++
	}
	second, ok := r.figureAt(at)
	if !ok || second.value < f.value || f.value <= 0 {
		return f
	}
	return second
}

// between reports whether "between" precedes the number that ends before f.next.
func (r *valueReader) between(f figure) bool {
	for at := f.next - 1; at > f.next-6; at-- {
		if r.low(at) == "between" {
			return true
		}
	}
	return false
}

// measure reads the unit after a number, or the noun that it counts, and returns the token after the unit.
func (r *valueReader) measure(v *Value, at int, currency string) int {
	if currency != "" {
		v.Unit = Unit{Kind: unitMoney, Name: currency}
		return at
	}
	if r.glued(at) && isOrdinalSuffix(r.low(at)) { // 21st
		v.Unit = Unit{Kind: unitOrdinal}
		v.Digits, v.Round = .4, .4
		return at + 1
	}
	if next, ok := r.temperature(v, at); ok {
		return next
	}
	unit := r.skipHyphen(at)
	switch {
	case r.is(unit, "percentage", "percent", "%") && r.is(unit+1, "point", "points"):
		v.convert(unitScale{kind: unitPoints, factor: .01}, "points")
		return unit + 2
	case r.is(unit, "per") && r.is(unit+1, "cent"):
		v.convert(unitScale{kind: unitPercent, factor: .01}, "%")
		return unit + 2
	case r.is(unit, "us", "u.s.") && currencyNames.has(r.low(unit+1)):
		unit++
	}
	if code := currencyNames[r.low(unit)].name; code != "" {
		v.Unit = Unit{Kind: unitMoney, Name: code}
		return unit + 1
	}
	if scale, name, next := r.unitAt(unit); next > unit {
		v.convert(scale, name)
		return next
	}
	if next, ok := r.signUnit(v, at); ok {
		return next
	}
	return r.counted(v, at)
}

// convert converts v to the base unit.
func (v *Value) convert(scale unitScale, name string) {
	v.Unit = Unit{Kind: scale.kind, Name: name}
	v.Number = v.Number*scale.factor + scale.zero
	v.High = v.High*scale.factor + scale.zero
	v.Digits *= scale.factor
	v.Round *= scale.factor
}

func isOrdinalSuffix(low string) bool {
	return low == "st" || low == "nd" || low == "rd" || low == "th"
}

// temperature reads °C, °F, K, degrees Celsius.
func (r *valueReader) temperature(v *Value, at int) (int, bool) {
	next := r.skipHyphen(at)
	degrees := r.is(next, "°", "º", "degree", "degrees")
	if degrees {
		next = r.skipHyphen(next + 1)
	}
	scale, ok := temperatureScale(r.low(next))
	if !ok || !degrees && len(r.low(next)) == 1 { // a single letter is a scale only after a degree sign
		return at, false
	}
	v.convert(scale, r.low(next))
	return next + 1, true
}

// temperatureScale returns a temperature scale by its name.
func temperatureScale(name string) (unitScale, bool) {
	scale := unitScale{kind: unitTemperature, factor: 1}
	switch name {
	case "c", "celsius", "centigrade", "℃":
		scale.zero = 273.15
	case "f", "fahrenheit", "℉":
		scale.factor, scale.zero = 5./9, 459.67*5/9
	case "kelvin", "kelvins":
	default:
		return scale, false
	}
	return scale, true
}

// zeroOf returns the zero of v's temperature scale in the base unit.
func zeroOf(v *Value) float64 {
	scale, _ := temperatureScale(v.Unit.Name)
	return scale.zero
}

// unitName reads the name of a unit, or its symbol, which is case-sensitive.
func (r *valueReader) unitName(i int) (unitScale, bool) {
	token := r.at(i)
	if scale, ok := unitLetters.unit(r.text[token.start:token.end]); ok && (token.glued || !token.opens) {
		return scale, true
	}
	return unitNames.unit(foldWord(token.low)) // mètres
}

// powers are the words and signs for square and cubic units, before or after the unit.
var powers = map[string]int{"square": 2, "sq": 2, "cubic": 3, "²": 2, "³": 3}

// unitAt reads a unit's name at token i, including square, cubic and per.
func (r *valueReader) unitAt(i int) (unitScale, string, int) {
	power, at := powers[r.low(i)], i
	if power > 0 {
		at++
	}
	scale, ok := r.unitName(at)
	if !ok {
		return scale, "", i
	}
	name, next := r.low(at), at+1
	if behind := powers[r.low(next)]; behind > 0 && r.glued(next) {
		power, next = behind, next+1
	}
	if scale.kind != unitLength {
		return scale, name, next
	}
	if power > 1 {
		return scale.raised(power), [...]string{2: "square ", 3: "cubic "}[power] + name, next
	}
	// km/h, metres per second, miles an hour
	if by, ok := r.unitName(next + 1); ok && by.kind == unitTime && r.is(next, "/", "per", "an") {
		return unitScale{kind: unitSpeed, factor: scale.factor / by.factor}, name + "/" + r.low(next+1), next + 2
	}
	return scale, name, next
}

// maxCountGap is the most words between a number and the noun it counts: 13 professional football seasons.
const maxCountGap = 3

func isPlural(low string) bool {
	if pluralWords.has(low) {
		return true
	}
	bare, ok := strings.CutSuffix(low, "s")
	return ok && len(low) > 3 && !strings.HasSuffix(bare, "s") && !strings.HasSuffix(bare, "u")
}

// nounKey maps nouns that count the same to one key: residents and inhabitants are people.
func nounKey(low string) string {
	root := string(stem([]byte(low)))
	return cmp.Or(countedNouns[root].name, root)
}

func isDeterminer(low string) bool { return determiners.has(low) || strings.HasSuffix(low, "'s") }

// counted reads the noun that a bare number counts: the first plural after it, or else the next word.
func (r *valueReader) counted(v *Value, at int) int {
	first := r.skipHyphen(at)
	isNoun := func(i int) bool {
		return r.kind(i) == wordToken && !smallWords.has(r.low(i)) && r.sameSentence(at-1, i)
	}
	noun := first
	for i := first; i < first+maxCountGap && isNoun(i); i++ {
		if isPlural(r.low(i)) && !r.tokens[i].upper {
			noun = i
			break
		}
	}
	if !isNoun(noun) || r.tokens[noun].upper {
		return at
	}
	v.Unit = Unit{Kind: unitCount, Name: nounKey(r.low(noun))}
	return noun + 1
}

// qualify reads the words before a number: about, more than, at least, up to.
func (r *valueReader) qualify(v *Value, i int) {
	for at := i - 1; at >= i-3 && r.sameSentence(at, i); at-- {
		bound, before := boundWords[r.low(at)].number, at-1
		if two := boundWords[r.low(at-1)+" "+r.low(at)].number; two != 0 {
			bound, before = two, at-2
		}
		switch {
		case aboutWords.has(r.low(at)):
			v.Approximate = true
			return
		case bound != 0:
			if v.Bound = int(bound); r.is(before, "no", "not", "never", "cannot") {
				v.Bound = -v.Bound
			}
			return
		case !r.is(at, ".", "at", "an", "a", "the", "to"):
			return
		}
	}
}

// ordinal reads first, second, third if they are ranks.
func (r *valueReader) ordinal(i int) int {
	n := ordinalWords[r.low(i)].number
	if n == 0 || r.opens(i) || n <= 2 && !isDeterminer(r.low(i-1)) || r.is(i+1, ",") {
		return i
	}
	v := r.number(i, i+1, n, Unit{Kind: unitOrdinal})
	v.Digits, v.Round = .4, .4
	return i + 1
}

// Pseudo-units, whose values are compared by rules of their own.
const (
	clockUnit   = "clock"   // a time of day, in hours
	versionUnit = "version" // a label, compared as written
)

// version reads 1.10 after "version", "release" or "v", and returns the next token, or i if there is none.
func (r *valueReader) version(i int) int {
	low := r.low(i)
	if r.kind(i) != numberToken || strings.ContainsAny(low, ", ") || !r.is(i-1, "version", "versions") &&
		(!r.is(i-1, "v") || !r.glued(i)) && (!r.is(i-1, "release") || !strings.Contains(low, ".")) {
		return i
	}
	parts := strings.Split(low, ".")
	number, _ := strconv.ParseFloat(strings.Join(parts[:min(len(parts), 2)], "."), 64) // digits and a point
	r.number(i, i+1, number, Unit{Name: versionUnit}).raw = low
	return i + 1
}

// clock reads a time of day: 21:30, 9:30 p.m., 9 a.m. It returns the next token, or i if there is none.
func (r *valueReader) clock(i int) int {
	hours, minutes, next := r.wholeNumber(i, 1, 2), 0, i+1
	if r.is(next, ":") && r.gluedAll(next, next+1) {
		minutes = r.wholeNumber(next+1, 2, 2)
		next += 2
	}
	half, end := r.halfOfDay(next)
	if hours < 0 || minutes < 0 || end == i+1 {
		return i
	}
	if half >= 0 && hours <= 12 {
		hours = hours%12 + half
	}
	v := r.number(i, end, float64(hours)+float64(minutes)/60, Unit{Name: clockUnit})
	v.Digits, v.Round = .001, .001
	v.maybePM = half < 0 && hours > 0 && hours <= 12 && !strings.HasPrefix(r.low(i), "0")
	return end
}

// halfOfDay reads a.m. and p.m. as the hours to add, and returns the next token; -1 and at if it is neither.
func (r *valueReader) halfOfDay(at int) (hours, next int) {
	low, next := r.low(at), at+1
	if r.is(at, "a", "p") && r.is(at+1, ".") && r.is(at+2, "m") {
		low, next = low+"m", at+3
		if r.is(next, ".") && r.glued(next) {
			next++
		}
	}
	switch low {
	case "am":
		return 0, next
	case "pm":
		return 12, next
	}
	return -1, at
}

// sameLabel reports whether two versions may be the same, one given more exactly: 3 and 3.2.
func sameLabel(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// sameClock reports whether two times of day may be the same.
func sameClock(a, b *Value) bool {
	off := math.Abs(a.Number - b.Number)
	if a.maybePM || b.maybePM {
		off = math.Min(off, math.Abs(off-12))
	}
	return off <= a.Digits
}

var (
	scaleWords    = lists["scale"]
	partWords     = lists["part"]
	fractionSigns = lists["fraction"]
	signScales    = lists["sign-scale"]
	gluedScales   = lists["glued-scale"]
	moneyScales   = lists["money-scale"]
)

// figure is a number as written, before any unit.
type figure struct {
	value float64
	exact float64 // half of the last digit written
	round float64 // half of the last digit that is not a trailing zero
	next  int     // the token after it
	words bool
	part  bool // a half, two thirds
}

// wholeFigure is a number in words, partFigure one that includes a fraction, such as a half.
func wholeFigure(value float64, next int) figure {
	return figure{value: value, exact: .5, round: .5, next: next, words: true}
}

func partFigure(value float64, next int) figure {
	return figure{value: value, exact: .02, round: .02, next: next, words: true, part: true}
}

// figureAt reads a number that begins at token i.
func (r *valueReader) figureAt(i int) (f figure, ok bool) {
	switch value := fractionSigns[r.low(i)].number; {
	case r.kind(i) == numberToken:
		if f, ok = readDigits(r.low(i), r.comma); ok {
			f.next = i + 1
			f = r.fraction(f, i)
		}
	case r.kind(i) == wordToken:
		f, ok = r.numberWords(i)
	default:
		f, ok = partFigure(value, i+1), value > 0
	}
	if !ok {
		return f, false
	}
	return r.scaled(r.ideographicScales(f)), true
}

var (
	groupedByCommas = regexp.MustCompile(`^\d{1,3}(,\d{3})+(\.\d+)?$`)
	groupedByPoints = regexp.MustCompile(`^\d{1,3}(\.\d{3})+(,\d+)?$`)
)

// readDigits parses digits with points and commas: grouped (1,234,567), decimal (1.5; also 1,5), European (1.234,5). If
// the language has decimal commas, one point before three digits is a grouping sign.
func readDigits(s string, comma bool) (figure, bool) {
	s = strings.ReplaceAll(s, " ", "")
	points, commas := strings.Count(s, "."), strings.Count(s, ",")
	switch {
	case commas > 0 && (!comma || commas > 1) && groupedByCommas.MatchString(s):
		s = strings.ReplaceAll(s, ",", "")
	case points > 0 && (points > 1 || commas == 1 || comma) && groupedByPoints.MatchString(s):
		s = strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", ".")
	case commas == 1 && points == 0:
		s = strings.Replace(s, ",", ".", 1)
	case commas > 0 || points > 1:
		return figure{}, false // a version, a date or a list
	}
	value, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return figure{}, false // too many digits
	}
	f := figure{value: value, exact: .5, round: .5}
	if _, decimals, ok := strings.Cut(s, "."); ok {
		f.exact = .5 * math.Pow10(-len(decimals))
		f.round = f.exact
		return f, true
	}
	for value != 0 && math.Mod(value, f.round*20) == 0 {
		f.round *= 10
	}
	return f, true
}

// fraction reads the rest of 3/4, 2½ and 1 1/2.
func (r *valueReader) fraction(f figure, i int) figure {
	whole := f
	switch v := fractionSigns[r.low(i+1)].number; {
	case v > 0:
		f = partFigure(f.value+v, i+2)
	case r.is(i+1, "/") && r.gluedAll(i+1, i+2) && !r.is(i+3, "/"):
		below, ok := readDigits(r.low(i+2), r.comma)
		if !ok || f.value >= below.value || below.value > 10 {
			return whole
		}
		f = partFigure(f.value/below.value, i+3)
	}
	f.words = false
	return f
}

// numberWords reads "twenty-one", "two hundred and five thousand", "a hundred", "half", "two thirds".
func (r *valueReader) numberWords(i int) (figure, bool) {
	if r.is(i, "a", "an") {
		// "A third of" is a fraction, a third cousin is not.
		if r.is(i+1, "half", "quarter") || partWords.has(r.low(i+1)) && r.is(i+2, "of") {
			return r.part(1, i+1), true
		}
		return wholeFigure(1, i+1), scaleWords.has(r.low(i + 1))
	}
	if r.is(i, "half") {
		return r.part(1, i), true
	}
	value, next := r.smallWords(i)
	if next == i {
		return figure{}, false
	}
	if r.is(next, "and") && r.is(next+1, "a") && r.is(next+2, "half") {
		return partFigure(value+.5, next+3), true
	}
	at := r.skipHyphen(next)
	low := r.low(at)
	if partWords.has(low) && (value > 1 && strings.HasSuffix(low, "s") || value == 1 && r.is(at+1, "of")) {
		return r.part(value, at), true
	}
	return wholeFigure(value, next), true
}

// part reads a fraction and what it is a fraction of: half a million, a quarter of a mile.
func (r *valueReader) part(times float64, at int) figure {
	f := partFigure(times*partWords[r.low(at)].number, at+1)
	whole := f.next
	if r.is(whole, "of") {
		whole++
	}
	if r.is(whole, "a", "an") {
		if _, _, behind := r.unitAt(whole + 1); behind > whole+1 || scaleWords.has(r.low(whole+1)) {
			f.next = whole + 1
		}
	}
	return f
}

// skipHyphen skips a hyphen between two words.
func (r *valueReader) skipHyphen(i int) int {
	if r.is(i, "-", "‐") && r.gluedAll(i, i+1) {
		return i + 1
	}
	return i
}

// smallWords reads a number below one hundred, or hundreds and the rest: "nineteen hundred and five".
func (r *valueReader) smallWords(i int) (float64, int) {
	value, next := r.belowHundred(i)
	if next == i || !r.is(next, "hundred") {
		return value, next
	}
	value *= 100
	next++
	at := next
	if r.is(at, "and") {
		at++
	}
	if rest, end := r.belowHundred(at); end > at {
		return value + rest, end
	}
	return value, next
}

func (r *valueReader) belowHundred(i int) (float64, int) {
	m, ok := numberWords[r.low(i)]
	value := m.number
	if !ok {
		return 0, i
	}
	at := r.skipHyphen(i + 1)
	if ones := numberWords[r.low(at)].number; value >= 20 && ones > 0 && ones < 10 {
		return value + ones, at + 1
	}
	return value, i + 1
}

// maxScales is the most scale words in one number: "two million five hundred thousand".
const maxScales = 4

// scaleAt returns the scale after a number, or 0.
func (r *valueReader) scaleAt(at int, f figure) float64 {
	scale := scaleWords[r.low(at)].number
	if scale == 0 && r.glued(at) && at == f.next && !f.words {
		letter := r.text[r.tokens[at].start:r.tokens[at].end]
		if scale = gluedScales[letter].number; scale == 0 && r.money {
			scale = moneyScales[letter].number
		}
	}
	return scale
}

// scaled reads the scale after a number, and after number words any lower scales that follow.
func (r *valueReader) scaled(f figure) figure {
	for range maxScales {
		at := r.skipHyphen(f.next)
		scale := r.scaleAt(at, f)
		if scale == 0 {
			return f
		}
		// Only the digits before the scale were written: 5 million is not 5,000,000.
		f.value *= scale
		f.exact *= scale
		f.round = f.exact
		if scale <= 100 {
			f.exact = .5
		}
		f.next = at + 1
		if f.part {
			return f
		}
		at = f.next
		if r.is(at, "and") {
			at++
		}
		rest, next := r.smallWords(at)
		lower := scaleWords[r.low(next)].number
		if !f.words || next == at || lower >= scale {
			return f
		}
		if lower == 0 {
			lower = 1
		} else {
			next++
		}
		f.value += rest * lower
		f.exact, f.round = .5*lower, .5*lower
		f.next = next
	}
	return f
}

// unspacedBefore reports whether token i directly follows a character of a script without spaces.
func (r *valueReader) unspacedBefore(i int) bool {
	if !r.glued(i) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(r.text[:r.tokens[i].start])
	return unspaced(before)
}

// ideographicScales multiplies a figure by the characters after it, and adds the lower part: 1億2000万.
func (r *valueReader) ideographicScales(f figure) figure {
	for range maxScales {
		scale := signScales[r.low(f.next)].number
		if scale == 0 {
			return f
		}
		for next := signScales[r.low(f.next+1)].number; next > 0; next = signScales[r.low(f.next+1)].number {
			scale *= next // 5千万
			f.next++
		}
		f.value, f.exact = f.value*scale, f.exact*scale
		f.round = f.exact
		f.next++
		low, ok := readDigits(r.low(f.next), r.comma)
		if below := signScales[r.low(f.next+1)].number; ok && r.kind(f.next) == numberToken && r.glued(f.next) &&
			max(below, 1)*low.value < scale {
			below = max(below, 1)
			f.value += low.value * below
			f.exact, f.round = low.exact*below, low.round*below
			f.next++
			if below > 1 {
				f.next++
			}
		}
	}
	return f
}
