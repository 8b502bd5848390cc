// Package call contains what ibid knows about calling providers: their addresses and keys, which paths return answers,
// how to read a request, and how to write one. Their answers are read by package wire.
//
// To add a provider whose answers package wire reads, add an entry to the table of providers, its paths to the table of
// routes and, if chat should support it, a case to [BuildRequest].
package call
