package support

import (
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

var (
	foreignMonths = lists["foreign-month"]
	yearWords     = lists["year"]
)

// The years that a bare number of four digits is taken for.
const (
	firstBareYear = 1400
	lastBareYear  = 2100
)

// date reads a date at token i and returns the token behind it; i if there is none.
func (r *valueReader) date(i int) int {
	if !r.mayBeDate(i) {
		return i
	}
	for _, read := range [...]func(int) (Date, int){
		r.isoDate, r.numericDate, r.ideographicDate, r.monthDayYear, r.dayMonthYear, r.century, r.decade, r.year,
	} {
		d, next := read(i)
		if next == i {
			continue
		}
		next = r.era(&d, next)
		span := ibid.Span{Start: r.tokens[i].start, End: r.tokens[next-1].end}
		r.out = append(r.out, Value{Kind: ValueDate, Span: span, Date: d, figure: span})
		return next
	}
	return i
}

// mayBeDate spares most tokens the seven ways to write a date.
func (r *valueReader) mayBeDate(i int) bool {
	low := r.low(i)
	switch r.kind(i) {
	case numberToken:
		return true
	case signToken:
		return low == "'" || low == "’"
	default:
	}
	return monthNames.has(low) || ordinalWords.has(low) || low == "twenty" ||
		r.foreign && foreignMonths.has(foldWord(low))
}

// wholeNumber reads token i as plain digits, at least low of them and at most high; -1: it is something else.
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

// isoDate reads 2020-05-12 and 2020/05/12.
func (r *valueReader) isoDate(i int) (Date, int) {
	year := r.wholeNumber(i, 4, 4)
	sign := r.low(i + 1)
	if year < 0 || sign != "-" && sign != "/" && sign != "‐" || r.low(i+3) != sign || !r.gluedAll(i+1, i+4) {
		return Date{}, i
	}
	month, day := r.wholeNumber(i+2, 1, 2), r.wholeNumber(i+4, 1, 2)
	if !validDay(month, day) {
		return Date{}, i
	}
	return yearDate(year, month, day), i + 5
}

// numericDate reads 12/05/2020 and 12.05.2020, day first or month first.
func (r *valueReader) numericDate(i int) (Date, int) {
	var parts [3]int
	next := i + 5
	if r.low(i+1) == "/" && r.low(i+3) == "/" && r.gluedAll(i+1, i+4) {
		parts = [3]int{r.wholeNumber(i, 1, 2), r.wholeNumber(i+2, 1, 2), r.wholeNumber(i+4, 4, 4)}
	} else {
		fields := strings.Split(r.low(i), ".")
		if r.kind(i) != numberToken || len(fields) != 3 || len(fields[2]) != 4 {
			return Date{}, i
		}
		for j, field := range fields {
			n, err := strconv.Atoi(field)
			if err != nil {
				return Date{}, i
			}
			parts[j] = n
		}
		next = i + 1
	}
	first, second, year := parts[0], parts[1], parts[2]
	switch {
	case year < 0:
	case validDay(second, first) && validDay(first, second) && first != second:
		return Date{Year: year, LastYear: year, Month: second, Day: first, Swappable: true}, next
	case validDay(second, first):
		return yearDate(year, second, first), next
	case validDay(first, second):
		return yearDate(year, first, second), next
	}
	return Date{}, i
}

// month reads a month's name. May and march are also words, and no month is written small.
func (r *valueReader) month(i int) (int, int) {
	month := 0
	if r.kind(i) == wordToken && r.tokens[i].upper {
		month = int(monthNames[r.low(i)].number)
	}
	if r.foreign && r.kind(i) == wordToken {
		month = int(foreignMonths[foldWord(r.low(i))].number)
	}
	if month == 0 {
		return 0, i
	}
	if low := r.low(i); !r.foreign && (low == "may" || low == "march") {
		before := r.low(i - 1)
		if r.kind(i+1) != numberToken && r.low(i+1) != "," && before != "in" && before != "of" && before != "since" &&
			before != "until" &&
			before != "by" &&
			r.kind(i-1) != numberToken &&
			int(monthNames[before].number) == 0 {
			return 0, i
		}
	}
	next := i + 1
	if r.low(next) == "." && r.glued(next) && len(r.low(i)) <= 4 {
		next++
	}
	return month, next
}

// dayNumber reads 12 and 12th; 0: it is no day.
func (r *valueReader) dayNumber(i int) (int, int) {
	day := r.wholeNumber(i, 1, 2)
	if day < 1 || day > 31 {
		return 0, i
	}
	if r.glued(i + 1) {
		switch low := r.low(i + 1); low {
		case ".", "er", "º":
			if r.foreign && r.kind(i+2) == wordToken {
				return day, i + 2 // 19. März, 1er mars
			}
		case ":", "%", "°", "/":
			return 0, i
		default:
			if isOrdinalSuffix(low) {
				return day, i + 2
			}
		}
	}
	return day, i + 1
}

// yearAfter reads the year behind a month or a day, with or without a comma or "of".
func (r *valueReader) yearAfter(i int) (int, int) {
	at := i
	if low := r.low(at); low == "," || low == "of" || low == "de" {
		at++
	}
	year := r.wholeNumber(at, 4, 4)
	if year < 1000 || year > 2999 {
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
		return Date{}, i // "Mar" or "Jan" alone is a name as well, and so is Marco
	}
	return yearDate(year, month, 0), next
}

// dayMonthYear reads 26 June 1980; the 26th of June; 26 June.
func (r *valueReader) dayMonthYear(i int) (Date, int) {
	day, at := r.dayNumber(i)
	if day == 0 {
		return Date{}, i
	}
	if low := r.low(at); low == "of" || low == "de" || low == "-" && r.glued(at) {
		at++
	}
	month, at := r.month(at)
	if month == 0 || !validDay(month, day) {
		return Date{}, i
	}
	if r.low(at) == "-" && r.glued(at) {
		at++
	}
	year, at := r.yearAfter(at)
	return yearDate(year, month, day), at
}

// century reads 19th century and nineteenth century.
func (r *valueReader) century(i int) (Date, int) {
	n, at := ordinalWords[r.low(i)].number, i+1
	if number := r.wholeNumber(i, 1, 2); number > 0 && r.glued(i+1) && isOrdinalSuffix(r.low(i+1)) {
		n, at = float64(number), i+2
	}
	if low := r.low(i); low == "twenty" && r.low(i+1) == "-" {
		n, at = 20+ordinalWords[r.low(i+2)].number, i+3
	}
	at = r.behindHyphen(at)
	if n < 1 || n > 30 || r.low(at) != "century" && r.low(at) != "centuries" {
		return Date{}, i
	}
	return Date{Year: int(n-1) * 100, LastYear: int(n) * 100}, at + 1
}

// decade reads 1980s and '80s; 1800s is a century.
func (r *valueReader) decade(i int) (Date, int) {
	at := i
	if r.low(at) == "'" || r.low(at) == "’" {
		at++
	}
	year := r.wholeNumber(at, 2, 4)
	next := at + 1
	if low := r.low(next); (low == "'" || low == "’") && r.glued(next) {
		next++
	}
	if year < 0 || year%10 != 0 || len(r.low(at)) == 3 || r.low(next) != "s" || !r.glued(next) {
		return Date{}, i
	}
	switch {
	case len(r.low(at)) == 2:
		return Date{Year: 1900 + year, LastYear: 1909 + year}, next + 1
	case year%100 == 0 && year < 2000:
		return Date{Year: year, LastYear: year + 99}, next + 1
	}
	return Date{Year: year, LastYear: year + 9}, next + 1
}

// year reads a bare year: four digits, by what stands around them.
func (r *valueReader) year(i int) (Date, int) {
	if r.low(i) == "-" || r.low(i) == "–" {
		return Date{}, i
	}
	year := r.wholeNumber(i, 4, 4)
	if year < 0 {
		if n := r.wholeNumber(i, 1, 4); n > 0 && r.eraAt(i+1) != 0 {
			return yearDate(n, 0, 0), i + 1
		}
		return Date{}, i
	}
	if r.eraAt(i+1) != 0 {
		return yearDate(year, 0, 0), i + 1
	}
	if year < 1000 || year > 2999 || r.glued(i) && !r.yearSign(i-1) && !r.unspacedBefore(i) ||
		r.glued(i+1) && r.unitSign(i+1) {
		return Date{}, i
	}
	said := yearWords.has(r.low(i - 1))
	if !said {
		if year < firstBareYear || year > lastBareYear || r.countFollows(i+1) {
			return Date{}, i
		}
	} else if _, _, next := r.unitAt(i + 1); next > i+1 || scaleWords[r.low(i+1)].number > 0 {
		return Date{}, i
	}
	return r.yearRange(i, year)
}

// yearRange reads the rest of 1995–98 as a span only for seasons, 1995/96; the years of 1995–1998 stand for themselves.
func (r *valueReader) yearRange(i, year int) (Date, int) {
	second := r.wholeNumber(i+2, 2, 2)
	sign := r.low(i + 1)
	if second >= 0 && (sign == "/" || sign == "-" || sign == "–") && r.gluedAll(i+1, i+2) && year%100 < second {
		return Date{Year: year, LastYear: year - year%100 + second}, i + 3
	}
	return yearDate(year, 0, 0), i + 1
}

// yearSign reports whether a year may stand right behind sign token i.
func (r *valueReader) yearSign(i int) bool {
	switch r.low(i) {
	case "(", "[", "-", "–", "—", "/", ",", "\"", "'", "“", "‘", "*", ".", ";", ":", "©":
		return true
	}
	return false
}

func (r *valueReader) unitSign(i int) bool {
	switch r.low(i) {
	case "%", "°", "€", "²", "½":
		return true
	}
	return r.kind(i) == wordToken
}

// countFollows reports whether what follows a number is what it counts or measures.
func (r *valueReader) countFollows(i int) bool {
	if r.kind(i) != wordToken || r.opens(i) {
		return false
	}
	low := r.low(i)
	if _, _, next := r.unitAt(i); next > i || scaleWords[low].number > 0 || low == "percent" || low == "degrees" ||
		currencyNames[low].name != "" && len(low) > 3 {
		return true
	}
	return !r.foreign && isPlural(low) && !smallWords.has(low) && !r.tokens[i].upper && low != "series" &&
		low != "elections" &&
		low != "olympics" &&
		low != "games"
}

// eraAt reads BC, BCE, AD or CE at token i: -1, 1; 0: neither.
func (r *valueReader) eraAt(i int) int {
	if !r.at(i).upper {
		return 0
	}
	switch r.low(i) {
	case "bc", "bce":
		return -1
	case "ad", "ce":
		return 1
	}
	return 0
}

func (r *valueReader) era(d *Date, next int) int {
	switch r.eraAt(next) {
	case -1:
		d.Year, d.LastYear = -d.LastYear, -d.Year
	case 0:
		return next
	}
	return next + 1
}

// ideographicDate reads 1932年3月19日, 1932年, 3月19日 and 1932年3月.
func (r *valueReader) ideographicDate(i int) (Date, int) {
	var d Date
	next := i
	if year := r.wholeNumber(i, 4, 4); year > 0 && r.low(i+1) == "年" {
		if low := r.low(i + 2); low == "間" || low == "间" || low == "前" {
			return d, i // 2000年前: so long ago
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
