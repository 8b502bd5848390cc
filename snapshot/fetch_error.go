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

// FetchErrorKind tells in a word why a document was not read.
type FetchErrorKind string

// The kinds of a [FetchError]. None of them means that anything is wrong with the document: it was not read.
const (
	// Blocked means refused before any request. The reason is url (not an address), scheme, host (not a valid name or
	// address), userinfo, zone, port, network (a special one, after the name was resolved) or downgrade (a redirect
	// from https to http).
	Blocked FetchErrorKind = "blocked"
	// RobotsDisallowed means that the site's robots.txt does not allow it (reason rule), or could not be read (reason
	// unreachable).
	RobotsDisallowed FetchErrorKind = "robots-disallowed"
	// Unreachable means that no document was received. The reason is dns, connect, tls, timeout, 5xx, 429, 4xx,
	// redirects (too many, a loop, or none allowed), protocol (invalid HTTP), cancelled (the caller's context ended) or
	// closed (the [Fetcher] is).
	Unreachable FetchErrorKind = "unreachable"
	// Gone means 404 or 410.
	Gone FetchErrorKind = "gone"
	// AccessDenied means 401, 402, 403, 407 or 451.
	AccessDenied FetchErrorKind = "access-denied"
	// TooLarge means over a limit as sent (reason sent) or without its codings (reason decoded).
	TooLarge FetchErrorKind = "too-large"
	// UnsupportedMedia means that the content coding is unknown or was not accepted (reason coding).
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

// FetchError is the reason why a document was not read. Every error of [Fetcher] is one.
type FetchError struct {
	URL        string // as requested, without user and password, and shortened if very long
	Kind       FetchErrorKind
	Reason     string        // see the kinds
	Status     int           // of the last response; 0 if there was none
	RetryAfter time.Duration // the delay that the server asks for; 0 if it does not
	FinalURL   string        // of the request that failed, if other than URL
	// the addresses requested after URL, in order, each the redirect target of the one before
	Hops []string
	Err  error // the underlying error; may be nil
}

// Error returns the address and the reason, in one line.
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

// Unwrap returns the underlying error.
func (e *FetchError) Unwrap() error { return e.Err }

// unreachable returns an error of kind Unreachable.
func unreachable(url, reason string, status int, err error) *FetchError {
	return &FetchError{URL: url, Kind: Unreachable, Reason: reason, Status: status, Err: err}
}

// blocked returns an error of kind Blocked.
func blocked(raw, reason, format string, args ...any) *FetchError {
	return &FetchError{URL: shownURL(raw), Kind: Blocked, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// shownURL returns an address for use in an error: without user and password, and bounded in length.
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

// statusError returns the error for a status without a document.
func statusError(status int) *FetchError {
	e := &FetchError{Kind: Unreachable, Status: status, Err: fmt.Errorf("the server replied %d", status)}
	switch status {
	case http.StatusNotFound, http.StatusGone:
		e.Kind = Gone
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired,
		http.StatusUnavailableForLegalReasons:
		e.Kind = AccessDenied
	case http.StatusTooManyRequests:
		e.Reason = reason429
	case http.StatusPartialContent: // no part was requested
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

// isTemporary reports whether a retry may succeed.
func (e *FetchError) isTemporary() bool {
	if e.Kind != Unreachable {
		return false
	}
	return e.Reason == reason429 || e.Reason == reasonConnect || e.Reason == reason5xx &&
		e.Status != http.StatusNotImplemented && e.Status != http.StatusHTTPVersionNotSupported
}

// classify returns the FetchError for a failed hop.
func (f *Fetcher) classify(ctx context.Context, t *target, err error) *FetchError {
	if ferr, ok := errors.AsType[*FetchError](err); ok { // our own: a host that asked for a delay
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

// errorKind returns the kind and reason of a network error.
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
		return Unreachable, reasonConnect // no connection, or a lost one
	}
	return Unreachable, reasonProtocol
}
