// Package curl reads HTTP responses as `curl -i` prints them: one header after the other of what was informational,
// redirected, a proxy's or asked for a password, then the body, then the trailer. Lines end in CRLF or LF. A byte order
// mark and blank lines may stand before all of it, and the body may be in the chunks that `curl --raw` leaves.
package curl
