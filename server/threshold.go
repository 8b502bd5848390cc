package server

import (
	"errors"
	"strconv"

	"github.com/ibidhq/ibid/support"
)

// Threshold is the flag of the closeness from which on a passage is cited: a number, or a name for one. The zero value
// means unset.
type Threshold float64

// String returns the number.
func (t *Threshold) String() string {
	switch *t {
	case 0:
		return ""
	case support.Balanced:
		return "balanced"
	}
	return strconv.FormatFloat(float64(*t), 'g', -1, 64)
}

// Type returns the name of the value in help texts.
func (t *Threshold) Type() string { return "NUMBER" }

// Set accepts balanced, strict, or a number above 0 and at most 1.
func (t *Threshold) Set(word string) error {
	switch word {
	case "balanced":
		*t = support.Balanced
	case "strict":
		*t = support.Strict
	default:
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || !(x > 0 && x <= 1) { // also refuses NaN
			return errors.New("must be balanced (0.35), strict (0.5) or a number above 0 and at most 1")
		}
		*t = Threshold(x)
	}
	return nil
}
