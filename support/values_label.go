package support

import (
	"math"
	"strconv"
	"strings"

	"github.com/ibidhq/ibid"
)

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
