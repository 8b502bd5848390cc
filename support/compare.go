package support

import (
	"math"
)

// comparableNumbers reports whether two numbers measure the same kind of thing, so that they can differ.
func comparableNumbers(a, b *Value) bool {
	if a.Unit.Kind == unitNone {
		a, b = b, a
	}
	switch kind := a.Unit.Kind; {
	case kind == b.Unit.Kind:
		return a.Unit.Name == b.Unit.Name || kind != unitMoney && kind != unitCount && kind != unitNone
	case b.Unit.Kind != unitNone:
		return false
	case kind == unitPercent:
		return b.Number <= 1
	}
	return a.Unit.Kind == unitCount && (a.Number < 1) == (b.Number < 1) // a fraction is not a count
}

// roundShare limits the rounding that trailing zeros may stand for: 5,000 may be 5,200 but 2,000 is not 2,400.
const roundShare = .05

// aboutShare is how far an approximate number may be off.
const aboutShare = .1

// slack returns how far another number may be from v and still be the same, given more or less exactly.
func (v *Value) slack() float64 {
	size := max(math.Abs(v.Number-zeroOf(v)), math.Abs(v.High-zeroOf(v)))
	slack := max(v.Digits, min(v.Round, roundShare*size))
	if v.Approximate {
		slack = max(slack, aboutShare*size)
	}
	return slack
}

// boundReach is the factor by which a number may exceed "more than 5", or fall below "less than 5", and still be meant
// by it.
const boundReach = 2

// interval returns the range that a number may stand for, without its slack.
func (v *Value) interval(other *Value) (low, high float64) {
	low, high = v.Number, v.High
	if v.Bound == other.Bound {
		return low, high // equal bounds are compared by their numbers
	}
	switch v.Bound {
	case 1:
		high = max(high, high*boundReach)
	case -1:
		low = min(low, low/boundReach)
	}
	return low, high
}

// sameNumber reports whether two comparable numbers may be the same, within slack.
func sameNumber(a, b *Value, slack float64) bool {
	switch {
	case a.Unit.Name == versionUnit && b.Unit.Name == versionUnit:
		return sameLabel(a.raw, b.raw)
	case a.Unit.Name == clockUnit && b.Unit.Name == clockUnit:
		return sameClock(a, b)
	}
	slack = slack*(1+1e-9) + 1e-9*math.Abs(a.Number)
	lowA, highA := a.interval(b)
	lowB, highB := b.interval(a)
	if a.High > a.Number && b.High > b.Number {
		return math.Abs(lowA-lowB) <= slack && math.Abs(highA-highB) <= slack
	}
	return lowA <= highB+slack && lowB <= highA+slack
}

// sameFigure reports whether two numbers are written with the same figures, including the ends of a range.
func sameFigure(a, b *Value) bool {
	if (a.Unit.Name == versionUnit || b.Unit.Name == versionUnit) && a.raw != "" && b.raw != "" {
		return a.raw == b.raw
	}
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*math.Abs(x) }
	if (a.High > a.Number || b.High > b.Number) && !near(a.High*b.Number, b.High*a.Number) {
		return false
	}
	return near(a.Written, b.Written)
}

// dateRelation is how one date relates to another.
type dateRelation int

const (
	dateOther  dateRelation = iota // nothing that both give agrees
	datePart                       // something agrees, something differs
	dateWider                      // nothing differs, but the second gives less than the first
	dateWithin                     // the second gives all that the first gives
)

// relateDates compares what claim and other both give.
func relateDates(claim, other *Date) (relation dateRelation) {
	for _, c := range claim.readings() {
		for _, o := range other.readings() {
			relation = max(relation, relateOrdered(&c, &o))
		}
	}
	return relation
}

// readings returns the dates that d may mean.
func (d *Date) readings() []Date {
	if !d.Swappable {
		return []Date{*d}
	}
	swapped := *d
	swapped.Month, swapped.Day = d.Day, d.Month
	return []Date{*d, swapped}
}

func relateOrdered(claim, other *Date) dateRelation {
	same, differ, missing := 0, 0, 0
	compare := func(a, b int) {
		switch {
		case a == 0:
		case b == 0:
			missing++
		case a == b:
			same++
		default:
			differ++
		}
	}
	switch {
	case claim.Year == 0:
	case other.Year == 0:
		missing++
	case claim.Year <= other.LastYear && other.Year <= claim.LastYear:
		same++
		if other.LastYear-other.Year > claim.LastYear-claim.Year {
			missing++
		}
	default:
		differ++
	}
	compare(claim.Month, other.Month)
	compare(claim.Day, other.Day)
	switch {
	case differ > 0 && same > 0:
		return datePart
	case differ > 0 || same == 0:
		return dateOther
	case missing > 0:
		return dateWider
	}
	return dateWithin
}

// figuresOf returns the numbers and dates of a text.
func figuresOf(text, language string) []Value {
	r := newValueReader(text, valueTokens(text), language)
	r.figures(false)
	return r.out
}

// agrees reports whether a value of the evidence gives v, a number or date of the claim: 0.504 km for 504 m, a dozen
// for 12, the 12th century for 1156. A bound or a range in the evidence does not agree with a single number.
func (v *Value) agrees(e *Value) bool {
	switch {
	case v.Kind != e.Kind:
		return false
	case v.Kind == ValueDate:
		return relateDates(&v.Date, &e.Date) == dateWithin
	case !comparableNumbers(v, e) || e.High > e.Number && v.High == v.Number:
		return false
	}
	other := *e
	if v.Bound == 0 {
		other.Bound = 0 // more than 300 is not 412
	}
	return sameNumber(v, &other, roundingSlack(v, &other))
}

// sameQuantity reports whether a number of the evidence agrees with the claim's.
func sameQuantity(v, e *Value) bool {
	return e.Kind == ValueNumber && v.Bound*e.Bound >= 0 &&
		(comparableNumbers(v, e) && sameNumber(v, e, roundingSlack(v, e)) || sameFigure(v, e) && !otherUnit(v, e))
}

// roundingSlack returns how far a claim's number may be from the evidence's and still be the same: the rounding that
// the claim shows. A claim with more digits than its evidence is not rounded.
func roundingSlack(claim, evidence *Value) float64 {
	switch {
	case claim.Unit.Name != evidence.Unit.Name && claim.Unit.Kind == evidence.Unit.Kind && claim.Unit.Kind != unitCount:
		return max(claim.slack(), evidence.slack())
	case claim.Approximate:
		return max(claim.Digits, min(2*claim.Round, claim.slack()))
	case claim.Round > 1.5*evidence.Round && claim.Written >= 1000:
		return claim.slack()
	}
	return claim.Digits
}

// otherUnit reports whether two numbers have units of one kind, or money, that differ.
func otherUnit(a, b *Value) bool {
	switch a.Unit.Kind {
	case unitNone, unitCount, unitOrdinal:
		return false
	case unitPercent:
		return b.Unit.Kind == unitPoints
	case unitPoints:
		return b.Unit.Kind == unitPercent
	default:
		return a.Unit.Kind == b.Unit.Kind && a.Unit.Name != b.Unit.Name
	}
}

func (v *Value) isOrdinal() bool { return v.Kind == ValueNumber && v.Unit.Kind == unitOrdinal }
