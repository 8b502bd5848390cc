// Package scan walks JSON without decoding it.
//
// A [Value] is a slice of the document itself; nothing is copied until somebody asks for a string that holds escapes.
// Walking an object or an array finds where each member ends and looks no deeper, so what nobody asks for costs little
// more than a search for its quotes.
//
// The walk is tolerant on purpose: a provider's answer that breaks off in the middle still gives everything that came
// before. Only what is whole counts, though: of a number, a name or an address that is cut, nothing is returned,
// because the half of one is another. Text that is shown may be cut ([Value.Content]). A malformed value ends its
// container's walk. Whether a document is JSON at all is for encoding/json to say. There is no recursion: nesting costs
// a counter, not a stack.
package scan
