// Package frame cuts the bytes of a provider's response into JSON documents.
//
// Providers send the same documents in several framings: one JSON body, server-sent events, one document a line, a JSON
// array that grows while the model writes, or the AWS event stream. A [Splitter] recognises the framing from the bytes
// alone, because content types lie, and hands every document on as a [Frame].
//
// A Splitter is pushed: it takes whatever cuts the network makes and calls back. How the input was cut never changes
// the frames. A document that lies whole within one Write is passed on without being copied; one that does not is
// collected in a single reused buffer. Every byte is looked at a bounded number of times, and nothing longer than
// MaxDocument is ever held.
//
// While a document is handed on, Mark tells where in the input it begins to tell its reader something. That costs one
// store an event, and is how a tee knows which bytes to hold back.
//
// Only as much JSON is understood as is needed to find where documents end (brackets and strings). Whether a document
// is valid JSON is for its reader to say.
package frame
