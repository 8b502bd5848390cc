// Package wire contains everything that ibid knows about providers' responses: how each of them represents text,
// sources and citations. Package call covers how providers are called.
//
// It has one file per provider. A parser reads the JSON documents of one response (a whole body is a stream of one
// document) and emits neutral operations ([Op]) in the provider's own units. It does not join text, convert offsets,
// merge sources or check anything: package ibid does that once for all providers.
//
// Adding a provider takes one file here with a parser and a function that recognises its documents, one line in the
// table of [Formats], and a few vectors in testdata.
package wire
