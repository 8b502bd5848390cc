package support

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ibidhq/ibid"
	"github.com/ibidhq/ibid/internal/text"
)

// unitScale is what a unit's name means: so many of the base unit of its kind, and for temperatures where its zero
// lies.
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
	thanWords    = lists["than"]
	boundBehind  = lists["bound-behind"]
	determiners  = lists["determiner"]
	countedNouns = lists["count"]
)

// unit reads a unit in one of the lists of units.
func (l wordList) unit(word string) (unitScale, bool) {
	m, ok := l[word]
	return unitScale{kind: UnitKind(m.name), factor: m.number}, ok
}

// raised is the square or the cube of a unit of length.
func (s unitScale) raised(power int) unitScale {
	kinds := [...]UnitKind{1: s.kind, 2: unitArea, 3: unitVolume}
	return unitScale{kind: kinds[power], factor: math.Pow(s.factor, float64(power))}
}

// longestSignUnit is how many signs a unit of signUnits has at most.
const longestSignUnit = 7

// signUnit reads a unit or counter of Chinese or Japanese right behind a figure, and returns the token behind it.
func (r *valueReader) signUnit(v *Value, at int) (int, bool) {
	if r.kind(at) != wordToken || !r.glued(at) {
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
		case power == 1 && signMoney.has(name):
			v.Unit = Unit{Kind: unitMoney, Name: signMoney[name].name}
		case power == 1 && signPeople.has(name):
			v.Unit = Unit{Kind: unitCount, Name: "people"}
		case ok && (power == 1 || scale.kind == unitLength):
			v.convert(scale.raised(power), square+name)
		default:
			continue
		}
		return next, true
	}
	v.Unit = Unit{Kind: unitCount, Name: r.low(at)} // what is counted is said by its first sign
	return at + 1, true
}

// quantity reads a number with its sign, currency, range and unit at token i, and returns the token behind it; i if
// there is none.
func (r *valueReader) quantity(i int) int {
	at, currency := r.currencyBefore(i)
	r.money = currency != ""
	negative := (r.low(at) == "-" || r.low(at) == "−") && r.glued(at+1) &&
		(at == 0 || !r.glued(at) || r.low(at-1) == "(")
	if negative {
		at++
	}
	f, ok := r.figureAt(at)
	if !ok || r.notANumber(at, f) {
		return i
	}
	if next := r.clock(at); next > at {
		return next
	}
	if negative {
		f.value = -f.value
	}
	low, high := f, f
	if second, ok := r.rangeEnd(f); ok {
		high = second
	}
	v := Value{
		Kind:    ValueNumber,
		Written: low.value,
		Number:  low.value,
		High:    max(low.value, high.value),
		Digits:  high.exact,
		Round:   max(low.round, high.round),
	}
	next := high.next
	if low.next != high.next && low.exact < high.exact && high.value/low.value > 500 {
		v.Number *= math.Pow(10, 3*math.Floor(math.Log10(high.exact/low.exact)/3)) // 5 to 10 million
	}
	next = r.measure(&v, next, currency)
	if f.words && f.value == 1 && v.Unit.Kind == unitNone {
		return i // "one" is a pronoun more often than a number
	}
	r.qualify(&v, i)
	if b := boundBehind[r.low(next)+" "+r.low(next+1)].number; b != 0 && v.Bound == 0 {
		v.Bound = int(b)
	}
	v.Span = ibid.Span{Start: r.tokens[i].start, End: r.tokens[next-1].end}
	v.figure = v.Span
	if r.kind(at) == numberToken {
		v.raw = r.low(at)
	}
	if v.Unit.Kind == unitCount {
		next = high.next // the noun may be a name or a negation's word
		v.figure.End = r.tokens[next-1].end
	}
	r.out = append(r.out, v)
	return next
}

func (r *valueReader) currencyBefore(i int) (int, string) {
	if r.kind(i) == signToken {
		if code := currencyNames[r.low(i)].name; code != "" {
			return i + 1, code
		}
	}
	if r.kind(i) == wordToken && r.tokens[i].caps {
		low := r.low(i)
		if code := dollarNames[low].name; code != "" && r.low(i+1) == "$" && r.glued(i+1) {
			return i + 2, code
		}
		if code := currencyNames[low].name; code != "" && low != "try" && len(low) == 3 && r.kind(i+1) == numberToken {
			return i + 1, code
		}
	}
	return i, ""
}

// notANumber reports whether a figure is a part of something else: of a version, an address, a name.
func (r *valueReader) notANumber(i int, f figure) bool {
	if r.kind(i) != numberToken {
		// "No one", "one another", "one of the".
		return f.words && f.value == 1 && f.next == i+1 &&
			(r.low(i-1) == "no" || r.low(i+1) == "another" || r.low(i+1) == "of" || r.low(i+1) == "can")
	}
	if i == 0 || !r.glued(i) || r.unspacedBefore(i) {
		return false
	}
	switch r.low(i - 1) {
	case "_", "#", "@", "=", "&", "\\":
		return true
	case "/":
		return r.glued(i-1) && i > 1 && r.kind(i-2) == wordToken
	}
	return r.kind(i-1) == wordToken && !r.tokens[i-1].initial && !currencyNames.has(r.low(i-1)) && r.low(i-1) != "c"
}

// rangeEnd reads the second number of 5-10, 5 to 10, between 5 and 10.
func (r *valueReader) rangeEnd(f figure) (figure, bool) {
	at := f.next
	switch low := r.low(at); {
	case low == "%" || currencyNames[low].name != "" && r.kind(at) == signToken:
		at++
	}
	switch r.low(at) {
	case "-", "–", "—", "‐", "−", "to":
		if r.low(at) == "to" && r.low(at-1) != "%" && f.words && !f.part {
			if next, ok := r.figureAt(at + 1); !ok || next.value == 0 {
				return figure{}, false
			}
		}
	case "and":
		if !r.between(f) {
			return figure{}, false
		}
	default:
		return figure{}, false
	}
	at++
	if currencyNames[r.low(at)].name != "" && r.kind(at) == signToken {
		at++
	}
	second, ok := r.figureAt(at)
	if !ok || second.value < f.value || f.value <= 0 || r.kind(at) == wordToken && !second.words {
		return figure{}, false
	}
	return second, true
}

// between reports whether "between" stands right before the number that ends before f.next.
func (r *valueReader) between(f figure) bool {
	for at := f.next - 1; at >= 0 && at > f.next-6; at-- {
		if r.low(at) == "between" {
			return true
		}
	}
	return false
}

// measure reads the unit behind a number, or the noun that it counts, and returns the token behind the unit.
func (r *valueReader) measure(v *Value, at int, currency string) int {
	if currency != "" {
		v.Unit = Unit{Kind: unitMoney, Name: currency}
		return at
	}
	if next, ok := r.ordinalSuffix(v, at); ok {
		return next
	}
	if next, ok := r.temperature(v, at); ok {
		return next
	}
	unit := r.behindHyphen(at)
	if r.low(unit) == "percentage" || r.low(unit) == "percent" || r.low(unit) == "%" {
		if low := r.low(unit + 1); low == "point" || low == "points" {
			v.convert(unitScale{kind: unitPoints, factor: .01}, "points")
			return unit + 2
		}
		if r.low(unit) == "percentage" {
			return at
		}
	}
	if r.low(unit) == "per" && r.low(unit+1) == "cent" {
		v.convert(unitScale{kind: unitPercent, factor: .01}, "%")
		return unit + 2
	}
	if next, ok := r.currencyAfter(v, unit); ok {
		return next
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

// currencyAfter reads a currency behind a number.
func (r *valueReader) currencyAfter(v *Value, at int) (int, bool) {
	low := r.low(at)
	if code := currencyNames[low].name; code != "" &&
		(r.kind(at) == signToken || len(low) > 2 && low != "try" && low != "won" && low != "real") {
		v.Unit = Unit{Kind: unitMoney, Name: code}
		return at + 1, true
	}
	if (low == "us" || low == "u.s.") && strings.HasPrefix(r.low(at+1), "dollar") {
		v.Unit = Unit{Kind: unitMoney, Name: "USD"}
		return at + 2, true
	}
	return at, false
}

// convert puts v into the base unit.
func (v *Value) convert(scale unitScale, name string) {
	v.Unit = Unit{Kind: scale.kind, Name: name}
	v.Number = v.Number*scale.factor + scale.zero
	v.High = v.High*scale.factor + scale.zero
	v.Digits *= scale.factor
	v.Round *= scale.factor
}

// ordinalSuffix reads the rest of 21st.
func (r *valueReader) ordinalSuffix(v *Value, at int) (int, bool) {
	if !r.glued(at) || !isOrdinalSuffix(r.low(at)) {
		return at, false
	}
	v.Unit = Unit{Kind: unitOrdinal}
	v.Digits, v.Round = .4, .4
	return at + 1, true
}

func isOrdinalSuffix(low string) bool {
	return low == "st" || low == "nd" || low == "rd" || low == "th"
}

// temperature reads °C, °F, K, degrees Celsius.
func (r *valueReader) temperature(v *Value, at int) (int, bool) {
	next := r.behindHyphen(at)
	degrees := false
	if low := r.low(next); low == "°" || low == "º" || low == "degree" || low == "degrees" {
		degrees = true
		next++
	}
	next = r.behindHyphen(next)
	scale, ok := temperatureScale(r.low(next))
	switch {
	case ok && (degrees || len(r.low(next)) > 1):
		v.convert(scale, r.low(next))
		return next + 1, true
	case degrees:
		v.Unit = Unit{Kind: unitCount, Name: "degree"}
		return next, true
	}
	return at, false
}

// temperatureScale reads the name of a scale of temperatures. A single letter is one only behind a degree sign.
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

// zeroOf is where the scale of v's unit has its zero, in the base unit.
func zeroOf(v *Value) float64 {
	scale, _ := temperatureScale(v.Unit.Name)
	return scale.zero
}

// unitAt reads a unit's name at token i, with what squares, cubes or divides it.
func (r *valueReader) unitAt(i int) (unitScale, string, int) {
	low := r.low(i)
	power, at := 1, i
	switch low {
	case "square", "sq":
		power, at = 2, i+1
		if r.low(at) == "." {
			at++
		}
	case "cubic", "cu":
		power, at = 3, i+1
	}
	low = r.low(at)
	scale, ok := unitNames.unit(foldWord(low)) // mètres
	if token := r.at(at); !ok && token.kind == wordToken && (r.glued(at) || len(low) == 1 && !r.opens(at)) {
		scale, ok = unitLetters.unit(r.text[token.start:token.end])
	}
	if token := r.at(at); ok && token.kind == wordToken && low == "mw" && strings.HasPrefix(r.text[token.start:], "m") {
		scale.factor = 1e-3 // milliwatts
	}
	if !ok || low == "in" {
		return scale, "", i
	}
	name := low
	if next := r.low(at + 1); r.glued(at+1) && (next == "²" || next == "³") {
		power, at = 2, at+1
		if next == "³" {
			power = 3
		}
	}
	if scale.kind == unitLength && power > 1 {
		return scale.raised(power), [...]string{2: "square ", 3: "cubic "}[power] + name, at + 1
	}
	return r.perTime(scale, name, at+1)
}

// perTime reads the rest of km/h, metres per second, miles an hour.
func (r *valueReader) perTime(scale unitScale, name string, at int) (unitScale, string, int) {
	if sign := r.low(at); scale.kind == unitLength && (sign == "/" || sign == "per" || sign == "an" || sign == "a") {
		by, ok := unitNames.unit(r.low(at + 1))
		if token := r.at(at + 1); !ok && token.kind == wordToken {
			by, ok = unitLetters.unit(r.text[token.start:token.end])
		}
		if ok && by.kind == unitTime && (sign == "/" || sign == "per" || by.factor == 3600) {
			return unitScale{kind: unitSpeed, factor: scale.factor / by.factor}, name + "/" + r.low(at+1), at + 2
		}
	}
	if low := r.low(at); scale.kind == unitPower && (low == "hour" || low == "hours") {
		return unitScale{kind: unitEnergy, factor: scale.factor * 3600}, name + " hours", at + 1
	}
	return scale, name, at
}

// maxCountGap is how many words may stand between a number and the noun it counts: 13 professional football seasons.
const maxCountGap = 3

func isPlural(low string) bool {
	if pluralWords.has(low) {
		return true
	}
	bare, ok := strings.CutSuffix(low, "s")
	return ok && len(low) > 3 && !strings.HasSuffix(bare, "s") && !strings.HasSuffix(bare, "u") &&
		!strings.HasSuffix(bare, "i")
}

// nounKey folds nouns that count the same: residents and inhabitants are people.
func nounKey(low string) string {
	root := string(stem([]byte(low)))
	return cmp.Or(countedNouns[root].name, root)
}

func isDeterminer(low string) bool { return determiners.has(low) || strings.HasSuffix(low, "'s") }

// counted finds the noun that a bare number counts: the first plural behind it, or else the next word.
func (r *valueReader) counted(v *Value, at int) int {
	first := r.behindHyphen(at)
	if v.Number < 1 && v.Number > 0 {
		return at
	}
	for i := first; i < first+maxCountGap && r.kind(i) == wordToken && r.sameSentence(at-1, i); i++ {
		low := r.low(i)
		if smallWords.has(low) {
			break
		}
		if isPlural(low) && !r.tokens[i].upper {
			v.Unit = Unit{Kind: unitCount, Name: nounKey(low)}
			return i + 1
		}
	}
	if r.kind(first) == wordToken && !smallWords.has(r.low(first)) && !r.tokens[first].upper &&
		r.sameSentence(at-1, first) &&
		!r.opens(first) {
		v.Unit = Unit{Kind: unitCount, Name: nounKey(r.low(first))}
		return first + 1
	}
	return at
}

// qualify reads what stands before a number: about, more than, at least.
func (r *valueReader) qualify(v *Value, i int) {
	for at := i - 1; at >= 0 && at >= i-3; at-- {
		low := r.low(at)
		switch {
		case r.tokens[at].sentence != r.tokens[i].sentence:
			return
		case aboutWords.has(low):
			v.Approximate = true
			return
		case low == "than" && at > 0:
			v.Bound = int(thanWords[r.low(at-1)].number)
			if low := r.low(at - 2); low == "no" || low == "not" {
				v.Bound = -v.Bound
			}
			return
		case low == "to" && at > 0 && (r.low(at-1) == "close" || r.low(at-1) == "up"):
			if r.low(at-1) == "up" {
				v.Bound = -1
				return
			}
		case int(boundWords[low].number) != 0:
			v.Bound = int(boundWords[low].number)
			if low := r.low(at - 1); low == "not" || low == "never" || low == "cannot" {
				v.Bound = -v.Bound
			}
			return
		case low != "." && low != "at" && low != "an" && low != "a" && low != "the":
			return
		}
	}
}

// ordinal reads first, second, third where they are places in an order.
func (r *valueReader) ordinal(i int) int {
	if r.kind(i) != wordToken {
		return i
	}
	n := ordinalWords[r.low(i)].number
	if n == 0 || r.opens(i) || r.low(i) == "second" && !isDeterminer(r.low(i-1)) {
		return i
	}
	if r.low(i+1) == "," || n == 1 && (r.low(i-1) == "at" || !isDeterminer(r.low(i-1))) {
		return i
	}
	span := ibid.Span{Start: r.tokens[i].start, End: r.tokens[i].end}
	r.out = append(r.out, Value{
		Kind:    ValueNumber,
		Span:    span,
		figure:  span,
		Written: n,
		Number:  n,
		High:    n,
		Digits:  .4,
		Round:   .4,
		Unit:    Unit{Kind: unitOrdinal},
	})
	return i + 1
}

// The names of units that are none: what is written so is compared in its own way.
const (
	clockUnit   = "clock"   // a time of day, in hours
	versionUnit = "version" // a label, compared as it is written
)

// version reads 1.10 behind "version", "release" or "v", and returns the token behind it; i if there is none.
func (r *valueReader) version(i int) int {
	if r.kind(i) != numberToken || strings.ContainsAny(r.low(i), ", ") {
		return i
	}
	switch r.low(i - 1) {
	case "version", "versions":
	case "release", "ver":
		if !strings.Contains(r.low(i), ".") {
			return i
		}
	case "v":
		if !r.glued(i) {
			return i
		}
	default:
		return i
	}
	parts := strings.Split(r.low(i), ".")
	number, err := strconv.ParseFloat(strings.Join(parts[:min(len(parts), 2)], "."), 64)
	if err != nil {
		return i
	}
	span := ibid.Span{Start: r.tokens[i].start, End: r.tokens[i].end}
	r.out = append(r.out, Value{
		Kind:    ValueNumber,
		Span:    span,
		figure:  span,
		Written: number,
		Number:  number,
		High:    number,
		Unit:    Unit{Name: versionUnit},
		raw:     r.low(i),
	})
	return i + 1
}

// clock reads a time of day: 21:30, 9:30 p.m., 9 a.m. It returns the token behind it; i if there is none.
func (r *valueReader) clock(i int) int {
	hours, minutes, next := r.wholeNumber(i, 1, 2), 0, i+1
	if r.low(next) == ":" && r.gluedAll(next, next+1) && len(r.low(next+1)) == 2 {
		minutes = r.wholeNumber(next+1, 2, 2)
		next += 2
	}
	half, end := r.halfOfDay(next)
	if hours < 0 || minutes < 0 || end == i+1 || hours > 12 && next == i+1 {
		return i
	}
	if half >= 0 && hours <= 12 {
		hours = hours%12 + half
	}
	number := float64(hours) + float64(minutes)/60
	span := ibid.Span{Start: r.tokens[i].start, End: r.tokens[end-1].end}
	r.out = append(r.out, Value{
		Kind:       ValueNumber,
		Span:       span,
		figure:     span,
		Written:    number,
		Number:     number,
		High:       number,
		Digits:     .001,
		Round:      .001,
		Unit:       Unit{Name: clockUnit},
		halfOfADay: half < 0 && hours > 0 && hours <= 12 && !strings.HasPrefix(r.low(i), "0"),
	})
	return end
}

// halfOfDay reads a.m. and p.m. as the hours to add, and returns the token behind it; -1, at: it is neither.
func (r *valueReader) halfOfDay(at int) (hours, next int) {
	low, next := r.low(at), at+1
	if (low == "a" || low == "p") && r.low(at+1) == "." && r.low(at+2) == "m" && r.gluedAll(at+1, at+2) {
		low, next = low+"m", at+3
		if r.low(next) == "." && r.glued(next) {
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

// sameLabel reports whether two versions may be the same, one said more exactly: 3 and 3.2.
func sameLabel(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".")
}

// sameClock reports whether two times of day may be the same.
func sameClock(a, b *Value) bool {
	off := math.Abs(a.Number - b.Number)
	if a.halfOfADay || b.halfOfADay {
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

// figure is a number as it is written, before any unit.
type figure struct {
	value float64
	exact float64 // half of the last digit written
	round float64 // half of the last digit that is not a trailing zero
	next  int     // the token behind it
	words bool
	part  bool // a half, two thirds
}

// figureAt reads a number that begins at token i.
func (r *valueReader) figureAt(i int) (figure, bool) {
	var f figure
	var ok bool
	switch {
	case r.kind(i) == numberToken:
		f, ok = readDigits(r.tokens[i].low, r.comma)
		f.next = i + 1
		if !ok {
			return f, false
		}
		f = r.fraction(f, i)
	case r.kind(i) == wordToken:
		f, ok = r.numberWords(i)
	default:
		if v := fractionSigns[r.low(i)].number; v > 0 {
			f, ok = figure{value: v, exact: .02, round: .02, next: i + 1, part: true}, true
		}
	}
	if !ok {
		return f, false
	}
	return r.scaled(r.ideographicScales(f)), true
}

// readDigits reads digits with points and commas: grouped (1,234,567), decimal (1.5; also 1,5), European (1.234,5).
// Where commas stand before decimals, one point before three digits groups them.
func readDigits(s string, comma bool) (figure, bool) {
	s = strings.ReplaceAll(s, " ", "")
	points, commas := strings.Count(s, "."), strings.Count(s, ",")
	switch {
	case commas > 0 && (!comma || commas > 1) && grouped(s, ',', '.'):
		s = strings.ReplaceAll(s, ",", "")
	case points > 0 && (points > 1 || commas == 1 || comma) && grouped(s, '.', ','):
		s = strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", ".")
	case commas == 1 && points == 0:
		s = strings.Replace(s, ",", ".", 1)
	case commas > 0 || points > 1:
		return figure{}, false // a version, a date or a list
	}
	value, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(value, 0) {
		return figure{}, false
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

// grouped reports whether every group behind sep has three digits, up to the decimal sign.
func grouped(s string, sep, decimal byte) bool {
	whole, rest, _ := strings.Cut(s, string(decimal))
	if strings.ContainsRune(rest, rune(sep)) || strings.ContainsRune(rest, rune(decimal)) {
		return false
	}
	groups := strings.Split(whole, string(sep))
	if len(groups) < 2 || len(groups[0]) > 3 {
		return false
	}
	for _, group := range groups[1:] {
		if len(group) != 3 {
			return false
		}
	}
	return true
}

// fraction reads the rest of 3/4, 2½ and 1 1/2.
func (r *valueReader) fraction(f figure, i int) figure {
	if v := fractionSigns[r.low(i+1)].number; v > 0 {
		return figure{value: f.value + v, exact: .02, round: .02, next: i + 2, part: true}
	}
	if r.low(i+1) != "/" || !r.glued(i+1) || r.kind(i+2) != numberToken || !r.glued(i+2) || r.low(i+3) == "/" {
		return f
	}
	below, ok := readDigits(r.low(i+2), r.comma)
	if !ok || f.value >= below.value || below.value > 10 {
		return f
	}
	return figure{value: f.value / below.value, exact: .02, round: .02, next: i + 3, part: true}
}

// numberWords reads "twenty-one", "two hundred and five thousand", "a hundred", "half", "two thirds".
func (r *valueReader) numberWords(i int) (figure, bool) {
	low := r.low(i)
	if low == "a" || low == "an" {
		// "A third of" is a part, a third cousin is none.
		next := r.low(i + 1)
		if next == "half" || next == "quarter" || partWords.has(next) && r.low(i+2) == "of" {
			return r.part(1, i+1)
		}
		if scaleWords[r.low(i+1)].number == 0 || r.kind(i+1) != wordToken {
			return figure{}, false
		}
		return figure{value: 1, exact: .5, round: .5, next: i + 1, words: true}, true
	}
	if low == "half" {
		return r.part(1, i)
	}
	value, next := r.smallWords(i)
	if next == i {
		return figure{}, false
	}
	if r.low(next) == "and" && r.low(next+1) == "a" && r.low(next+2) == "half" {
		return figure{value: value + .5, exact: .02, round: .02, next: next + 3, words: true, part: true}, true
	}
	if at := r.behindHyphen(next); partWords[r.low(at)].number > 0 && value < 10 && r.kind(at) == wordToken {
		if low := r.low(
			at,
		); value > 1 && strings.HasSuffix(low, "s") ||
			value == 1 && low != "second" && r.low(at+1) == "of" {
			return r.part(value, at)
		}
	}
	return figure{value: value, exact: .5, round: .5, next: next, words: true}, true
}

func (r *valueReader) part(times float64, at int) (figure, bool) {
	value := times * partWords[r.low(at)].number
	if value == 0 {
		return figure{}, false
	}
	f := figure{value: value, exact: .02, round: .02, next: at + 1, words: true, part: true}
	// Of what it is a part: half a million, a quarter of a mile.
	whole := f.next
	if r.low(whole) == "of" {
		whole++
	}
	if low := r.low(whole); low == "a" || low == "an" {
		if _, _, behind := r.unitAt(whole + 1); behind > whole+1 || scaleWords[r.low(whole+1)].number > 0 {
			f.next = whole + 1
		}
	}
	return f, true
}

// behindHyphen skips a hyphen that stands between two words.
func (r *valueReader) behindHyphen(i int) int {
	if (r.low(i) == "-" || r.low(i) == "‐") && r.glued(i) && r.glued(i+1) {
		return i + 1
	}
	return i
}

// smallWords reads a number below one hundred, and the hundreds before it.
func (r *valueReader) smallWords(i int) (float64, int) {
	value, next := r.belowHundred(i)
	if next == i || r.low(next) != "hundred" {
		return value, next
	}
	value *= 100
	next++
	at := next
	if r.low(at) == "and" {
		at++
	}
	if rest, end := r.belowHundred(at); end > at {
		return value + rest, end
	}
	return value, next
}

func (r *valueReader) belowHundred(i int) (float64, int) {
	if r.kind(i) != wordToken {
		return 0, i
	}
	m, ok := numberWords[r.low(i)]
	value := m.number
	if !ok {
		return 0, i
	}
	if value < 20 || value > 90 {
		return value, i + 1
	}
	at := r.behindHyphen(i + 1)
	if ones := numberWords[r.low(at)].number; ones > 0 && ones < 10 && r.kind(at) == wordToken {
		return value + ones, at + 1
	}
	return value, i + 1
}

// maxScales bounds how many scale words one number takes: "two million five hundred thousand".
const maxScales = 4

// scaled reads the scale behind a number, and after number words the lower scales behind that.
func (r *valueReader) scaled(f figure) figure {
	for range maxScales {
		at := r.behindHyphen(f.next)
		scale := 0.
		if r.kind(at) == wordToken {
			scale = scaleWords[r.low(at)].number
			if scale == 0 && r.glued(at) && at == f.next && !f.words {
				token := r.tokens[at]
				letter := r.text[token.start:token.end]
				if scale = gluedScales[letter].number; scale == 0 && r.money {
					scale = moneyScales[letter].number
				}
			}
		}
		if scale == 0 {
			return f
		}
		// The digits that were written are those before the scale: 5 million is not 5,000,000.
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
		if r.low(at) == "and" {
			at++
		}
		rest, next := r.smallWords(at)
		lower := scaleWords[r.low(next)].number
		if !f.words || next == at || r.kind(next) == wordToken && lower >= scale {
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

// ideograph reports whether a rune is of Han or Kana, which write no spaces: it is a word of its own.
func ideograph(r rune) bool {
	return r >= 0x3005 &&
		(r <= 0x3007 || r >= 0x3041 && r <= 0x30ff || r >= 0x3400 && r <= 0x4dbf || r >= 0x4e00 && r <= 0x9fff ||
			r >= 0xf900 && r <= 0xfaff || r >= 0xff66 && r <= 0xff9f || r >= 0x20000 && r <= 0x3ffff)
}

// unspaced reports whether digits behind a rune are a figure and no part of a word, as they are where spaces are few.
func unspaced(r rune) bool {
	return ideograph(r) || r >= 0x0e00 && r <= 0x0eff || r >= 0xac00 && r <= 0xd7af
}

// unspacedBefore reports whether such a rune stands right before token i.
func (r *valueReader) unspacedBefore(i int) bool {
	if !r.glued(i) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(r.text[:r.tokens[i].start])
	return unspaced(before)
}

// ideographicScales multiplies a figure by the signs behind it, and adds the lower part: 1億2000万.
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
