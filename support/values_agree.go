package support

// figuresOf returns the numbers and dates of a text.
func figuresOf(text, language string) []Value {
	r := newValueReader(text, valueTokens(text), language)
	r.figures(false)
	return r.out
}

// agrees reports whether a value of the evidence says what v, a number or date of the claim, says: 0.504 km for 504 m,
// a dozen for 12, the 12th century for 1156. What the evidence only bounds, or has as a range, does not agree with one
// number.
func (v *Value) agrees(e *Value) bool {
	switch {
	case v.Kind != e.Kind:
		return false
	case v.Kind == ValueDate:
		return relateDates(&v.Date, &e.Date) == dateWithin
	case !comparableNumbers(v, e) || e.High > e.Number && v.High == v.Number:
		return false
	}
	said := *e
	if v.Bound == 0 {
		said.Bound = 0 // more than 300 are not 412
	}
	return sameNumber(v, &said, roundingSlack(v, &said))
}
