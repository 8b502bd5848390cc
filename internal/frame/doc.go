// Package frame splits the bytes of a provider's response into JSON documents.
//
// Providers send the same documents in several framings: one JSON body, server-sent events, one document per line, a
// JSON array that grows while the model writes, or the AWS event stream. A [Splitter] recognises the framing from the
// bytes alone, because content types are unreliable, and passes on every document as a [Frame].
//
// A Splitter is a push parser: it accepts any chunks that the network delivers, and calls back. The chunking never
// changes the frames. A document that is completely within one Write is not copied; others are collected in a single
// reused buffer. Every byte is examined a bounded number of times, and nothing longer than MaxDocument is ever held.
//
// While a document is emitted, Mark returns where in the input it begins to be visible to a reader. That costs one
// store per event, and tells a tee which bytes to hold back.
//
// JSON is parsed only as far as needed to find where documents end (brackets and strings). Validating a document is up
// to its reader.
package frame
