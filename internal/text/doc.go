// Package text makes untrusted strings safe to show in a message, a log line, a heading or a terminal. It also shortens
// strings and extracts the host of a URL.
//
// It is independent of citations, documents and providers, and does no I/O.
package text
