package snapshot

import (
	"strings"
	"time"
)

// isoDate returns a date as ISO 8601 or RFC 3339 writes it; empty: s says none.
func isoDate(s string) string {
	s = strings.TrimSpace(s)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05.999Z0700"} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	for _, layout := range []string{"2006-01-02", "2006-1-2", "2006/01/02", "2006/1/2", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "January 2, 2006", "2 January 2006", time.RFC1123, time.RFC1123Z} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.Format(time.DateOnly)
		}
	}
	for _, layout := range []string{"2006-01", "2006"} {
		if _, err := time.Parse(layout, s); err == nil {
			return s
		}
	}
	return ""
}

// pdfDate returns a date of a PDF (D:20260428100000+02'00') as ISO 8601 writes it; empty: s says none.
func pdfDate(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "D:")
	if len(s) >= 8 {
		if at, err := time.Parse("20060102", s[:8]); err == nil {
			return at.Format(time.DateOnly)
		}
	}
	return isoDate(s)
}
