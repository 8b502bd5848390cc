// Package call holds what ibid knows about calling providers: where they are and how they take a key, which paths are
// answered with an answer, what a request says, and how to write one. What they answer is read by package wire.
//
// To add a provider whose answers package wire reads: one entry in the table of providers, its paths in the table of
// routes and, if chat is to ask it, a case in [BuildRequest].
package call
