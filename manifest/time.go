package manifest

import (
	"errors"
	"time"
)

// Time is an instant as it is written in a manifest: RFC 3339 in UTC, ending in Z, with at most nine digits of
// fraction. It is kept as written, so that a manifest that was read is written again unchanged. The zero value is no
// time.
type Time string

var errTime = errors.New("no time in UTC as RFC 3339 has it")

// At returns t as it is written.
func At(t time.Time) Time {
	return Time(t.UTC().Format(time.RFC3339Nano))
}

// Time returns the instant; the zero time if t is not of the form.
func (t Time) Time() time.Time {
	at, err := t.parse()
	if err != nil {
		return time.Time{}
	}
	return at
}
