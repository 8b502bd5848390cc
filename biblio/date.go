package biblio

import (
	"fmt"
	"strings"
	"time"
)

// date is a day, a month of a year (day 0), a year (month 0) or not known (year 0).
type date struct {
	year  int
	month time.Month
	day   int
}

// parseDate reads an ISO 8601 date of any precision, or the day of an RFC 3339 time as it is written. What it cannot
// read is not known.
func parseDate(s string) date {
	s = strings.TrimSpace(s)
	day := s
	if len(s) > 10 && (s[10] == 'T' || s[10] == 't' || s[10] == ' ') {
		day = s[:10]
	}
	if t, err := time.Parse("2006-01-02", day); err == nil {
		return dateOf(t)
	}
	if t, err := time.Parse("2006-01", s); err == nil {
		return date{year: t.Year(), month: t.Month()}
	}
	if t, err := time.Parse("2006", s); err == nil {
		return date{year: t.Year()}
	}
	return date{}
}

// dateOf returns the day of t in t's own location; the zero time is no day.
func dateOf(t time.Time) date {
	if t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return date{}
	}
	return date{year: t.Year(), month: t.Month(), day: t.Day()}
}

func (d date) known() bool { return d.year > 0 }

// iso returns the date in ISO 8601, to its precision.
func (d date) iso() string {
	switch {
	case !d.known():
		return ""
	case d.month == 0:
		return fmt.Sprintf("%04d", d.year)
	case d.day == 0:
		return fmt.Sprintf("%04d-%02d", d.year, d.month)
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day)
}

// parts returns year, month and day, as far as they are known.
func (d date) parts() []int {
	switch {
	case !d.known():
		return nil
	case d.month == 0:
		return []int{d.year}
	case d.day == 0:
		return []int{d.year, int(d.month)}
	}
	return []int{d.year, int(d.month), d.day}
}

// american returns the date as Chicago writes it: March 5, 2024.
func (d date) american() string {
	switch {
	case !d.known():
		return ""
	case d.month == 0:
		return fmt.Sprint(d.year)
	case d.day == 0:
		return fmt.Sprintf("%s %d", d.month, d.year)
	}
	return fmt.Sprintf("%s %d, %d", d.month, d.day, d.year)
}

// short returns the date as MLA writes it: 5 Mar. 2024.
func (d date) short() string {
	switch {
	case !d.known():
		return ""
	case d.month == 0:
		return fmt.Sprint(d.year)
	case d.day == 0:
		return fmt.Sprintf("%s %d", shortMonth(d.month), d.year)
	}
	return fmt.Sprintf("%d %s %d", d.day, shortMonth(d.month), d.year)
}

// shortMonth returns the month as MLA writes it: names of up to four letters are not shortened.
func shortMonth(m time.Month) string {
	name := m.String()
	switch {
	case len(name) <= 4:
		return name
	case m == time.September:
		return "Sept."
	}
	return name[:3] + "."
}
