// Package curl reads HTTP responses as printed by `curl -i`: the headers of informational responses, redirects, proxies
// and requests for a password, one after the other, then the final header, the body and the trailer. Lines end in CRLF
// or LF. A byte order mark and blank lines may precede everything, and the body may be chunked, as `curl --raw` prints
// it.
package curl
