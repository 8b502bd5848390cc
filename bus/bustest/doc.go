// Package bustest has the tests that every bus passes, in memory and over NATS, and what they are written with.
package bustest
