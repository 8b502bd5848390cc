package snapshot

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"github.com/ibidhq/ibid/internal/text"
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
	s := "fetching " + e.URL + ": "
	if e.FinalURL != "" && e.FinalURL != e.URL {
		s += "at " + e.FinalURL + ": "
	}
	s += string(e.Kind)
	if e.Reason != "" {
		s += " (" + e.Reason + ")"
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns what was wrong beneath.
func (e *FetchError) Unwrap() error { return e.Err }

// unreachable returns the error for a document that did not come.
func unreachable(url, reason string, status int, err error) *FetchError {
	return &FetchError{URL: url, Kind: Unreachable, Reason: reason, Status: status, Err: err}
}

// blocked returns the error for an address that is refused.
func blocked(raw, reason, format string, args ...any) *FetchError {
	return &FetchError{URL: shownURL(raw), Kind: Blocked, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// shownURL is an address as an error may show it: what may be a user and password is left out, and it is not endless.
func shownURL(raw string) string {
	const most = 500
	if scheme, rest, ok := strings.Cut(raw, ":"); ok {
		end := strings.IndexAny(strings.TrimLeft(rest, "/\\"), "/\\?#")
		if end < 0 {
			end = len(rest)
		} else {
			end += len(rest) - len(strings.TrimLeft(rest, "/\\"))
		}
		if at := strings.LastIndexByte(rest[:end], '@'); at >= 0 {
			raw = scheme + "://" + rest[at+1:]
		}
	}
	raw = strings.ToValidUTF8(raw, "\uFFFD")
	if len(raw) > most {
		raw = text.Head(raw, most) + "…"
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		raw = strconv.Quote(raw)
	}
	return raw
}

// statusError returns what a status says that is not a document's.
func statusError(status int) *FetchError {
	e := &FetchError{Kind: Unreachable, Status: status, Err: fmt.Errorf("the server said %d", status)}
	switch status {
	case http.StatusNotFound, http.StatusGone:
		e.Kind = Gone
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusUnavailableForLegalReasons:
		e.Kind = AccessDenied
	case http.StatusTooManyRequests:
		e.Reason = reason429
	case http.StatusPartialContent: // nobody asked for a part
		e.Reason = reasonProtocol
	default:
		switch status / 100 {
		case 4:
			e.Reason = reason4xx
		case 5:
			e.Reason = reason5xx
		default:
			e.Reason = reasonProtocol
		}
	}
	return e
}

// passing reports whether what was wrong may be over in a moment.
func (e *FetchError) passing() bool {
	if e.Kind != Unreachable {
		return false
	}
	return e.Reason == reason429 || e.Reason == reasonConnect || e.Reason == reason5xx &&
		e.Status != http.StatusNotImplemented && e.Status != http.StatusHTTPVersionNotSupported
}

// classify says in a report's words what went wrong with a hop.
func (f *Fetcher) classify(ctx context.Context, t *target, err error) *FetchError {
	if ferr, ok := errors.AsType[*FetchError](err); ok { // our own: a host that asked to be left alone
		ferr.URL = t.clean
		return ferr
	}
	e := &FetchError{URL: t.clean, Kind: Unreachable, Err: err}
	cause := context.Cause(ctx)
	switch {
	case cause == nil:
		e.Kind, e.Reason = errorKind(err)
		return e
	case errors.Is(cause, errTotal), errors.Is(cause, errIdle):
		e.Reason = reasonTimeout
	case errors.Is(cause, errClosed):
		e.Reason = reasonClosed
	default:
		e.Reason = reasonCancelled
	}
	e.Err = cause
	return e
}

// errorKind sorts the errors of the network.
func errorKind(err error) (kind FetchErrorKind, reason string) {
	if _, ok := errors.AsType[codingError](err); ok {
		return UnsupportedMedia, reasonCoding
	}
	_, isDNS := errors.AsType[*net.DNSError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	op, _ := errors.AsType[*net.OpError](err)
	var timeout net.Error
	switch {
	case errors.Is(err, errSent):
		return TooLarge, reasonSent
	case errors.Is(err, errDecoded):
		return TooLarge, reasonDecoded
	case errors.Is(err, ssrf.ErrProhibitedPort):
		return Blocked, reasonPort
	case errors.Is(err, ssrf.ErrProhibitedIP), errors.Is(err, ssrf.ErrProhibitedNetwork),
		errors.Is(err, ssrf.ErrInvalidHostPort):
		return Blocked, reasonNetwork
	case isDNS:
		return Unreachable, reasonDNS
	case errors.As(err, &timeout) && timeout.Timeout():
		return Unreachable, reasonTimeout
	case certificate, record, alert, errors.Is(err, http.ErrSchemeMismatch):
		return Unreachable, reasonTLS
	case op != nil && op.Op == "dial", errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return Unreachable, reasonConnect // there was no connection, or suddenly none
	}
	return Unreachable, reasonProtocol
}
