package support

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

var (
	foreignMonths = lists["foreign-month"]
	yearWords     = lists["year"]
)

// The four-digit numbers that are read as years by themselves.
const (
	firstBareYear = 1400
	lastBareYear  = 2100
)

// dateReaders read the ways to write a date. They return the next token, or i if there is none.
var dateReaders = [...]func(r *valueReader, i int) (Date, int){
	(*valueReader).numericDate, (*valueReader).ideographicDate, (*valueReader).monthDayYear,
	(*valueReader).dayMonthYear, (*valueReader).century, (*valueReader).decade, (*valueReader).year,
}

// date reads a date at token i and returns the next token, or i if there is none.
func (r *valueReader) date(i int) int {
	for _, read := range dateReaders {
		d, next := read(r, i)
		if next == i {
			continue
		}
		if era := r.eraAt(next); era != 0 {
			next++
			if era < 0 {
				d.Year, d.LastYear = -d.LastYear, -d.Year
			}
		}
		span := ibid.Span{Start: r.tokens[i].start, End: r.tokens[next-1].end}
		r.out = append(r.out, Value{Kind: ValueDate, Span: span, Date: d, figure: span})
		return next
	}
	return i
}

// wholeNumber reads token i as plain digits, from low to high of them; -1 if it is something else.
func (r *valueReader) wholeNumber(i, low, high int) int {
	if r.kind(i) != numberToken || len(r.low(i)) < low || len(r.low(i)) > high {
		return -1
	}
	n, err := strconv.Atoi(r.low(i))
	if err != nil {
		return -1
	}
	return n
}

func yearDate(year, month, day int) Date {
	return Date{Year: year, LastYear: year, Month: month, Day: day}
}

func validDay(month, day int) bool {
	return month >= 1 && month <= 12 && day >= 1 && day <= 31 &&
		(day <= 30 || month != 4 && month != 6 && month != 9 && month != 11) &&
		(month != 2 || day <= 29)
}

var (
	yearFirst = regexp.MustCompile(`^((\d{4})[-/](\d\d?)[-/](\d\d?))(?:\D|$)`)
	yearLast  = regexp.MustCompile(`^((\d\d?)[./](\d\d?)[./](\d{4}))(?:\D|$)`)
)

// numericDate reads 2020-05-12 and 2020/05/12, and 12/05/2020 and 12.05.2020, day first or month first.
func (r *valueReader) numericDate(i int) (d Date, next int) {
	if r.kind(i) != numberToken || !r.is(i+1, "-", "/") && strings.Count(r.low(i), ".") != 2 {
		return d, i
	}
	rest, isYearFirst := r.text[r.tokens[i].start:], true
	m := yearFirst.FindStringSubmatch(rest)
	if m == nil {
		isYearFirst, m = false, yearLast.FindStringSubmatch(rest)
	}
	if m == nil {
		return d, i
	}
	var parts [3]int
	for k := range parts {
		parts[k], _ = strconv.Atoi(m[2+k]) // only digits: it cannot fail
	}
	first, second, third := parts[0], parts[1], parts[2]
	switch {
	case isYearFirst && validDay(second, third):
		d = yearDate(first, second, third)
	case isYearFirst:
		return d, i
	case validDay(second, first):
		d = yearDate(third, second, first)
		d.Swappable = validDay(first, second) && first != second
	case validDay(first, second):
		d = yearDate(third, first, second)
	default:
		return d, i
	}
	for next = i; next < len(r.tokens) && r.tokens[next].start < r.tokens[i].start+len(m[1]); next++ {
	}
	return d, next
}

// month reads a month's name. May and march are also words, and English months are always capitalised.
func (r *valueReader) month(i int) (month, next int) {
	low := r.low(i)
	if r.foreign {
		month = int(foreignMonths[foldWord(low)].number)
	}
	if r.at(i).upper && month == 0 {
		month = int(monthNames[low].number)
	}
	isWord := !r.foreign && r.is(i, "may", "march") && r.kind(i-1) != numberToken && r.kind(i+1) != numberToken &&
		!r.is(i+1, ",") && !r.is(i-1, "in", "of", "since", "until", "by") && !monthNames.has(r.low(i-1))
	if month == 0 || isWord {
		return 0, i
	}
	if r.is(i+1, ".") && r.glued(i+1) && len(low) <= 4 {
		i++
	}
	return month, i + 1
}

// dayNumber reads 12 and 12th. Day is 0 if it is not a day.
func (r *valueReader) dayNumber(i int) (day, next int) {
	day = r.wholeNumber(i, 1, 2)
	switch {
	case day < 1 || day > 31 || r.glued(i+1) && r.is(i+1, ":", "%", "°", "/"):
		return 0, i
	case r.glued(i+1) && (isOrdinalSuffix(r.low(i+1)) ||
		r.foreign && r.is(i+1, ".", "er", "º") && r.kind(i+2) == wordToken): // 19. März, 1er mars
		return day, i + 2
	}
	return day, i + 1
}

// yearAfter reads the year after a month or a day, with or without a comma or "of".
func (r *valueReader) yearAfter(i int) (year, next int) {
	at := i
	if r.is(at, ",", "of", "de") {
		at++
	}
	if year = r.wholeNumber(at, 4, 4); year < 1000 || year > 2999 {
		return 0, i
	}
	return year, at + 1
}

// monthDayYear reads June 26, 1980; June 26; June 1980; June.
func (r *valueReader) monthDayYear(i int) (Date, int) {
	month, at := r.month(i)
	if month == 0 {
		return Date{}, i
	}
	if day, next := r.dayNumber(at); day > 0 && validDay(month, day) {
		year, next := r.yearAfter(next)
		return yearDate(year, month, day), next
	}
	year, next := r.yearAfter(at)
	if year == 0 && (r.foreign || len(r.low(i)) < 4 && r.low(i) != "may") {
		return Date{}, i // "Mar" or "Jan" alone may be a name
	}
	return yearDate(year, month, 0), next
}

// dayMonthYear reads 26 June 1980; the 26th of June 1980; 26 June.
func (r *valueReader) dayMonthYear(i int) (Date, int) {
	day, at := r.dayNumber(i)
	if r.is(at, "of", "de", "-") {
		at++
	}
	month, at := r.month(at)
	if day == 0 || !validDay(month, day) {
		return Date{}, i
	}
	if r.is(at, "-") && r.glued(at) {
		at++
	}
	year, at := r.yearAfter(at)
	return yearDate(year, month, day), at
}

// century reads 19th century and nineteenth century.
func (r *valueReader) century(i int) (Date, int) {
	n, at := int(ordinalWords[r.low(i)].number), i+1
	if number := r.wholeNumber(i, 1, 2); number > 0 && isOrdinalSuffix(r.low(i+1)) {
		n, at = number, i+2
	}
	if r.is(i, "twenty") && r.is(i+1, "-") {
		n, at = 20+int(ordinalWords[r.low(i+2)].number), i+3
	}
	at = r.skipHyphen(at)
	if n == 0 || n > 30 || !r.is(at, "century", "centuries") {
		return Date{}, i
	}
	return Date{Year: (n - 1) * 100, LastYear: n * 100}, at + 1
}

// decade reads 1980s and '80s; 1800s is a century.
func (r *valueReader) decade(i int) (Date, int) {
	at := i
	if r.is(at, "'", "’") {
		at++
	}
	year, next := r.wholeNumber(at, 2, 4), at+1
	if r.is(next, "'", "’") && r.glued(next) {
		next++
	}
	last := 9
	switch digits := len(r.low(at)); {
	case year < 0 || year%10 != 0 || digits == 3 || !r.is(next, "s") || !r.glued(next):
		return Date{}, i
	case digits == 2:
		year += 1900
	case year%100 == 0 && year < 2000:
		last = 99
	}
	return Date{Year: year, LastYear: year + last}, next + 1
}

// year reads a bare year: four digits, depending on their context.
func (r *valueReader) year(i int) (Date, int) {
	if n := r.wholeNumber(i, 1, 4); n > 0 && r.eraAt(i+1) != 0 {
		return yearDate(n, 0, 0), i + 1
	}
	year := r.wholeNumber(i, 4, 4)
	if year < 1000 || year > 2999 || r.notANumber(i, figure{}) ||
		r.glued(i+1) && (r.kind(i+1) == wordToken || r.is(i+1, "%", "°", "€", "²", "½")) {
		return Date{}, i
	}
	if yearWords.has(r.low(i - 1)) {
		if r.measureFollows(i + 1) {
			return Date{}, i
		}
	} else if year < firstBareYear || year > lastBareYear || r.measureFollows(i+1) || r.countFollows(i+1) {
		return Date{}, i
	}
	// 1995–98 and 1995/96 are one span; the years of 1995–1998 are read separately.
	second := r.wholeNumber(i+2, 2, 2)
	if r.is(i+1, "/", "-", "–") && r.gluedAll(i+1, i+2) && year%100 < second {
		return Date{Year: year, LastYear: year - year%100 + second}, i + 3
	}
	return yearDate(year, 0, 0), i + 1
}

// measureFollows reports whether a number is followed by a unit or scale.
func (r *valueReader) measureFollows(i int) bool {
	_, _, next := r.unitAt(i)
	return next > i || scaleWords.has(r.low(i)) || r.is(i, "degrees") ||
		r.kind(i) == wordToken && currencyNames.has(r.low(i)) && len(r.low(i)) > 3
}

// countFollows reports whether a number is followed by what it counts.
func (r *valueReader) countFollows(i int) bool {
	return r.kind(i) == wordToken && !r.opens(i) && !r.foreign && isPlural(r.low(i)) && !smallWords.has(r.low(i)) &&
		!r.at(i).upper && !r.is(i, "series", "elections", "olympics", "games")
}

// eraAt reads BC or BCE (-1), AD or CE (1) at token i, or returns 0.
func (r *valueReader) eraAt(i int) int {
	switch {
	case !r.at(i).upper:
	case r.is(i, "bc", "bce"):
		return -1
	case r.is(i, "ad", "ce"):
		return 1
	}
	return 0
}

// ideographicDate reads 1932年3月19日, 1932年, 3月19日 and 1932年3月.
func (r *valueReader) ideographicDate(i int) (Date, int) {
	var d Date
	next := i
	if year := r.wholeNumber(i, 4, 4); year > 0 && r.low(i+1) == "年" {
		if low := r.low(i + 2); low == "間" || low == "间" || low == "前" {
			return d, i // 2000年前: that long ago
		}
		d, next = yearDate(year, 0, 0), i+2
	}
	if month := r.wholeNumber(next, 1, 2); month >= 1 && month <= 12 && r.low(next+1) == "月" {
		d.Month = month
		next += 2
		sign := r.low(next + 1)
		if day := r.wholeNumber(next, 1, 2); validDay(month, day) && (sign == "日" || sign == "号" || sign == "號") {
			d.Day = day
			next += 2
		}
	}
	return d, next
}
