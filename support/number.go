package support

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
		if next := r.low(i + 1); next == "half" || next == "quarter" || partWords[next].number > 0 && r.low(i+2) == "of" {
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
//
//nolint:gocognit // one number has one grammar; its parts mean nothing alone
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
