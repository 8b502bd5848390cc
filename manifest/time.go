package manifest

import "time"

// Time is an instant as it is written in a manifest: RFC 3339 in UTC, ending in Z, with at most nine digits of
// fraction. It is kept as written, so that a manifest that was read is written again unchanged. The zero value is no
// time.
type Time string

// At returns t as it is written.
func At(t time.Time) Time { return Time(t.UTC().Format(time.RFC3339Nano)) }

// Time returns the instant; the zero time if t is not of the form.
func (t Time) Time() time.Time {
	at, err := time.Parse(time.RFC3339Nano, string(t))
	if err != nil || !timePattern.MatchString(string(t)) { // package time takes 1:02:03 and fractions after a comma
		return time.Time{}
	}
	return at
}
