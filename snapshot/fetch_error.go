package snapshot

import (
	"strings"
	"time"
)

// FetchErrorKind is the word by which a report says why a document was not read.
type FetchErrorKind string

// The kinds of a [FetchError]. None of them says anything against the document: it was not read.
const (
	// Blocked: refused before anything was sent to it. The reason is url (no address), scheme, host (no proper name or
	// address), userinfo, zone, port, network (a special one, as the name was resolved) or downgrade (a redirect from
	// https to http).
	Blocked FetchErrorKind = "blocked"
	// RobotsDisallowed: the site's robots.txt does not want it (reason rule), or could not be read (reason
	// unreachable).
	RobotsDisallowed FetchErrorKind = "robots-disallowed"
	// Unreachable: no document came. The reason is dns, connect, tls, timeout, 5xx, 429, 4xx, redirects (too many, in a
	// circle, or where none is followed), protocol (no proper HTTP), cancelled (the caller's context ended) or closed
	// (the [Fetcher] is).
	Unreachable FetchErrorKind = "unreachable"
	// Gone: 404 or 410.
	Gone FetchErrorKind = "gone"
	// AccessDenied: 401, 402, 403, 407 or 451.
	AccessDenied FetchErrorKind = "access-denied"
	// TooLarge: over a limit as it was sent (reason sent) or with its codings removed (reason decoded).
	TooLarge FetchErrorKind = "too-large"
	// UnsupportedMedia: in a content coding that is not known or was not accepted (reason coding).
	UnsupportedMedia FetchErrorKind = "unsupported-media"
)

// The reasons of a FetchError.
const (
	reasonURL         = "url"
	reasonScheme      = "scheme"
	reasonHost        = "host"
	reasonUserinfo    = "userinfo"
	reasonZone        = "zone"
	reasonPort        = "port"
	reasonNetwork     = "network"
	reasonDowngrade   = "downgrade"
	reasonRule        = "rule"
	reasonUnreachable = "unreachable"
	reasonDNS         = "dns"
	reasonConnect     = "connect"
	reasonTLS         = "tls"
	reasonTimeout     = "timeout"
	reason5xx         = "5xx"
	reason429         = "429"
	reason4xx         = "4xx"
	reasonRedirects   = "redirects"
	reasonProtocol    = "protocol"
	reasonCancelled   = "cancelled"
	reasonClosed      = "closed"
	reasonSent        = "sent"
	reasonDecoded     = "decoded"
	reasonCoding      = "coding"
)

// FetchError says why a document was not read. Every error of [Fetcher] is one.
type FetchError struct {
	URL        string // as it was asked for, without user and password, and shortened if it is very long
	Kind       FetchErrorKind
	Reason     string        // see the kinds
	Status     int           // of the last response; 0: there was none
	RetryAfter time.Duration // how long the server asks to stay away; 0: it does not say
	FinalURL   string        // of the request that went wrong, if it is another than URL
	// the addresses that were asked after URL, in order: each was redirected to by the one before
	Hops []string
	Err  error // what was wrong beneath; it may be nil
}

// Error says what was fetched and what was wrong, in one line.
func (e *FetchError) Error() string {
	var b strings.Builder
	b.WriteString("fetching ")
	b.WriteString(e.URL)
	b.WriteString(": ")
	if e.FinalURL != "" && e.FinalURL != e.URL {
		b.WriteString("at ")
		b.WriteString(e.FinalURL)
		b.WriteString(": ")
	}
	b.WriteString(string(e.Kind))
	if e.Reason != "" {
		b.WriteString(" (" + e.Reason + ")")
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap returns what was wrong beneath.
func (e *FetchError) Unwrap() error { return e.Err }
