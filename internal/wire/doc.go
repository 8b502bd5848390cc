// Package wire holds everything ibid knows about what providers answer: how each of them says text, sources and
// citations. How they are called is in package call.
//
// It has one file per provider. A parser reads the JSON documents of one response, a whole body being a stream of one
// document, and says what it read as a series of neutral operations ([Op]) in the provider's own units. It does not
// join text, convert offsets, merge sources or check anything: package ibid does that once for all providers.
//
// To add a provider: one file here with a parser and a function that recognises its documents, one line in the table of
// [Formats], a few vectors in testdata.
package wire
