// Package text makes other people's strings safe to repeat: in a message, a log line, a heading, a terminal. It also
// shortens strings and reads the host out of a URL.
//
// It knows nothing of citations, documents or providers, and does no I/O.
package text
