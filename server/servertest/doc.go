// Package servertest starts all of ibid for a test: a [server.Server] at a port of its own, in front of providers that
// need no network.
package servertest
