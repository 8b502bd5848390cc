// Package scan walks JSON without decoding it.
//
// A [Value] is a slice of the document itself; nothing is copied until a string with escapes is read. Walking an object
// or an array finds where each member ends and looks no deeper, so members that are not read cost little more than a
// search for their quotes.
//
// The walk is deliberately tolerant: a response that breaks off in the middle still yields everything before. But only
// complete values count: a number, name or address that is cut is not returned, because its beginning is a different
// one. Only text to be shown may be cut ([Value.Content]). A malformed value ends the walk of its container. Whether a
// document is valid JSON is left to encoding/json. There is no recursion: nesting costs a counter, not a stack.
package scan
