// Package servertest starts a complete ibid for a test: a [server.Server] on its own port, in front of simulated
// providers that need no network.
package servertest
